#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_tree.h"
#include "base/result.h"
#include "nodeagent/health/ethtool_socket.h"

namespace heddle::nodeagent {

// The statistics of one interface as its driver names them, in its order: as many names as values. Who asks again
// and gets the same `names` need not search them again.
struct EthtoolStats {
  std::shared_ptr<const std::vector<std::string>> names;  // never null
  std::vector<std::uint64_t> values;
};

// Whoever knows them: the kernel, or what it answered when a machine was recorded. Thread rule: one thread.
class EthtoolSource {
 public:
  EthtoolSource() = default;
  EthtoolSource(const EthtoolSource&) = delete;
  EthtoolSource& operator=(const EthtoolSource&) = delete;
  virtual ~EthtoolSource() = default;

  // kNotFound: there is no such interface, or its driver has no statistics.
  [[nodiscard]] virtual base::Result<EthtoolStats> Read(const std::string& netdev) = 0;
};

// By SIOCETHTOOL, in the network namespace of this process; needs no rights. The names are asked for once, and
// again when their number changes, when another interface has that name (its driver was loaded anew, say), and every
// few minutes: where one priority gives PFC to another, the number stays and a name changes.
class LiveEthtool final : public EthtoolSource {
 public:
  [[nodiscard]] base::Result<EthtoolStats> Read(const std::string& netdev) override;

 private:
  struct Known {
    int interface = 0;  // its index
    int reads = 0;      // since the names were asked for
    std::shared_ptr<const std::vector<std::string>> names;
  };
  EthtoolSocket socket_;
  std::map<std::string, Known> known_;
};

// ethtool/NETDEV at the root of a recorded machine, as `ethtool -S` prints it. A text that stays is parsed once.
class RecordedEthtool final : public EthtoolSource {
 public:
  explicit RecordedEthtool(const base::FileTree& files) : files_(files) {}
  [[nodiscard]] base::Result<EthtoolStats> Read(const std::string& netdev) override;

 private:
  struct Known {
    std::string text;
    EthtoolStats stats;
  };
  const base::FileTree& files_;
  std::map<std::string, Known> known_;
};

// Total: lines that are no statistic are skipped. ParseEthtoolStats(FormatEthtoolStats(x)) says what x says.
EthtoolStats ParseEthtoolStats(std::string_view text);
std::string FormatEthtoolStats(const EthtoolStats& stats);

}  // namespace heddle::nodeagent
