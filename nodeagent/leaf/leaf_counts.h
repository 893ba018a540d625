#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file_tree.h"
#include "nodeagent/leaf/pma.h"
#include "nodeagent/leaf/smp.h"

namespace heddle::nodeagent {

// What the switch port at the other end of one InfiniBand port of this host has counted.
struct LeafCounts {
  std::string device;  // of this host
  int port = 1;
  std::string leaf, guid;  // as LeafPort names it; both empty where nobody knows the switch
  int leaf_port = 0;       // of it; 0 = not known
  int lid = 0;             // of it; 0 = not known
  bool extended = false;   // counted in 64 bits
  std::vector<PmaCount>
      counts;          // empty: `unread` says why, or nothing came this time and what came before stands
  std::string unread;  // a sentence that names the leaf where it is known
  friend bool operator==(const LeafCounts&, const LeafCounts&) = default;
};

// An RDMA device and its port.
using RdmaPortName = std::pair<std::string, int>;

// Whoever knows what leaves have counted. Thread rule: one thread.
class LeafCountSource {
 public:
  LeafCountSource() = default;
  LeafCountSource(const LeafCountSource&) = delete;
  LeafCountSource& operator=(const LeafCountSource&) = delete;
  virtual ~LeafCountSource() = default;
  // An entry for each of the InfiniBand `ports` that is Active and ends at a switch, in their order.
  virtual std::vector<LeafCounts> Read(const std::vector<RdmaPortName>& ports) = 0;
};

// One port of this host, open for questions about the other end of its cable.
class LeafLine {
 public:
  LeafLine() = default;
  LeafLine(const LeafLine&) = delete;
  LeafLine& operator=(const LeafLine&) = delete;
  virtual ~LeafLine() = default;
  // A subnet management datagram by directed route, or one of performance management to `lid`.
  [[nodiscard]] virtual base::Status Send(const Mad& question, int lid, std::chrono::nanoseconds at_most) = 0;
  // The next datagram, whatever it is; kTimeout where none came in that time.
  [[nodiscard]] virtual base::Result<Mad> Receive(std::chrono::nanoseconds at_most) = 0;
};

class LeafLines {
 public:
  LeafLines() = default;
  LeafLines(const LeafLines&) = delete;
  LeafLines& operator=(const LeafLines&) = delete;
  virtual ~LeafLines() = default;
  // The error says what an admin has to change, as SmpPorts' does. `partition`: the place of the default partition's
  // key in the port's table.
  [[nodiscard]] virtual base::Result<std::unique_ptr<LeafLine>> Open(const std::string& device, int port,
                                                                     int partition) = 0;
};

// All that may go into asking one port's leaf, in one pass. A switch answers within a millisecond.
inline constexpr std::chrono::milliseconds kLeafBudget(50);
// Which switch port it is, and its LID, is asked anew after this, and whenever a counter moved that stands still while
// nothing is wrong: a LID that a subnet manager gave to another switch must not look like a thousand errors.
inline constexpr std::chrono::seconds kLeafAddressHolds(60);
// Datagrams get lost; so many passes in a row without an answer do not come of that. From then on the leaf is asked
// after 1 min, 2, 4 and so on to 10.
inline constexpr int kLeafMisses = 3;
inline constexpr std::chrono::minutes kLeafBackOff(1), kLeafBackOffMost(10);

// Asks the leaves by performance management (pma.h): Gets only, one datagram a port and pass, and three more each
// minute by directed route for which switch port it is. Nothing is asked of ports that are not Active.
class PmaLeafCounts final : public LeafCountSource {
 public:
  // `files` is rooted at "/"; it and `clock` must outlive it. `stop` ends a pass at the next port.
  PmaLeafCounts(const base::FileTree& files, base::Clock& clock, std::unique_ptr<LeafLines> lines,
                std::stop_token stop = {})
      : files_(files), clock_(clock), lines_(std::move(lines)), stop_(std::move(stop)) {}
  std::vector<LeafCounts> Read(const std::vector<RdmaPortName>& ports) override;

 private:
  struct Address {
    std::string leaf, guid;
    int leaf_port = 0, lid = 0;
    friend bool operator==(const Address&, const Address&) = default;
  };
  struct Known {
    Address address;
    std::optional<base::MonotonicTime> confirmed;  // the address; nothing: never, or the port was down since
    bool is_switch = true;
    std::optional<PmaAbilities> abilities;
    std::vector<PmaCount> counts;  // as last read
    int misses = 0;
    base::MonotonicTime ask_again{};
    std::string unread;
  };
  class Asking;

  std::optional<LeafCounts> ReadPort(const RdmaPortName& port, Known& known);
  void Miss(const base::Error& why, Known& known);

  const base::FileTree& files_;
  base::Clock& clock_;
  const std::unique_ptr<LeafLines> lines_;
  const std::stop_token stop_;
  std::map<RdmaPortName, Known> known_;
  std::uint32_t transaction_ = 0;
};

// leaf-counters.txt of a recorded machine, one port a line:
//   mlx5_0 1 0xfc6a1c0300ab12cd "su1-r3" 18 lid 12 link_downed=3 symbol_error=0
//   mlx5_1 1 0xfc6a1c0300ab12ce "su1-r4" 18 lid 13 extended link_downed=3
//   mlx5_2 1 none "" 0 lid 0 unread "no permission for /dev/infiniband/umad2"
// Total: a line that cannot be read is passed over, and so is a counter that nobody knows.
std::vector<LeafCounts> ParseLeafCounts(std::string_view text);
// ParseLeafCounts(FormatLeafCounts(x)) is x, where each has a device and a port that is not 0. Quotes inside a name or
// a sentence become apostrophes.
std::string FormatLeafCounts(const std::vector<LeafCounts>& ports);
inline constexpr const char* kLeafCountersFile = "leaf-counters.txt";

// The file, read anew each time. Absent = nobody asked.
class RecordedLeafCounts final : public LeafCountSource {
 public:
  explicit RecordedLeafCounts(const base::FileTree& files) : files_(files) {}
  std::vector<LeafCounts> Read(const std::vector<RdmaPortName>& ports) override;

 private:
  const base::FileTree& files_;
};

}  // namespace heddle::nodeagent
