#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "base/file_tree.h"
#include "nodeagent/leaf/leaf_counts.h"
#include "nodeagent/leaf/probe.h"
#include "nodeagent/leaf/smp.h"

namespace heddle::nodeagent {

// Opens ports for subnet management datagrams. Thread rule: one thread.
class SmpPorts {
 public:
  SmpPorts() = default;
  SmpPorts(const SmpPorts&) = delete;
  SmpPorts& operator=(const SmpPorts&) = delete;
  virtual ~SmpPorts() = default;
  // The error says what an admin has to change: the module, the device node, the right.
  [[nodiscard]] virtual base::Result<std::unique_ptr<SmpPort>> Open(const std::string& device, int port) = 0;
};

// libibumad: /dev/infiniband/umad*. `files` is rooted at "/".
class UmadPorts final : public SmpPorts {
 public:
  explicit UmadPorts(const base::FileTree& files) : files_(files) {}
  [[nodiscard]] base::Result<std::unique_ptr<SmpPort>> Open(const std::string& device, int port) override;

 private:
  const base::FileTree& files_;
};

// The same for questions by route and by LID. libibumad says nothing of threads, so a process opens one port at a time:
// who opens another waits until the one before is closed.
class UmadLines final : public LeafLines {
 public:
  explicit UmadLines(const base::FileTree& files) : files_(files) {}
  [[nodiscard]] base::Result<std::unique_ptr<LeafLine>> Open(const std::string& device, int port,
                                                             int partition) override;

 private:
  const base::FileTree& files_;
};

// The switch at the other end of every InfiniBand port that is Active and not excluded: two Gets by directed
// route over one hop, NodeInfo and NodeDescription, for which no subnet manager is asked and nothing is set.
// A port costs two datagrams whatever the size of the fabric; a port that is up and silent 0.6 s.
// What cannot be asked is kUnknown, with the reason in a sentence of its own.
// Thread rule: one thread.
class UmadLeaves final : public LeafSource {
 public:
  // `stop` ends a walk at the next port.
  UmadLeaves(const base::FileTree& files, std::unique_ptr<SmpPorts> ports, std::stop_token stop = {})
      : files_(files), ports_(std::move(ports)), stop_(std::move(stop)) {}
  LeafReadings Read(const RdmaReadings& rdma) override;

 private:
  formats::IbNeighbour Ask(const RdmaDevice& device, const RdmaPort& port, bool& silent);
  [[nodiscard]] base::Status AskOpen(SmpPort& line, formats::IbNeighbour& neighbour);

  const base::FileTree& files_;
  std::unique_ptr<SmpPorts> ports_;
  const std::stop_token stop_;
  std::uint32_t transaction_ = 0;
};

}  // namespace heddle::nodeagent
