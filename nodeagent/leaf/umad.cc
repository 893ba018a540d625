#include "nodeagent/leaf/umad.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <infiniband/umad.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <map>
#include <mutex>
#include <system_error>

#include "formats/printable.h"

namespace heddle::nodeagent {
namespace {

using topology::LinkState;

constexpr int kTimeoutMs = 200;  // opensm's default for one transaction
constexpr int kMarginMs = 50;    // the kernel reports a timeout by itself; this is for one that does not
constexpr int kDirectedRouteClass = 0x81, kPerformanceClass = 0x04, kClassVersion = 1;
// Queue pair 1 of every node and its well-known key: InfiniBand Architecture Specification, volume 1, section 3.9.1.
constexpr int kGeneralServices = 1, kGeneralKey = int(0x80010000);
constexpr int kPermissiveLid = 0xffff;
constexpr std::string_view kUmadClass = "sys/class/infiniband_mad";

std::string Say(int error) {
  return std::error_code(std::abs(error), std::generic_category()).message();
}

using std::chrono::milliseconds;

// In whole milliseconds, and never 0, which the kernel takes for "for ever".
int Milliseconds(std::chrono::nanoseconds time) {
  return std::max(1, int(std::chrono::duration_cast<milliseconds>(time).count()));
}

// Whoever has a port open: see UmadLines.
std::mutex& OpenPort() {
  static std::mutex mutex;
  return mutex;
}

struct Destination {
  int lid = kPermissiveLid;
  int partition = 0;
};

// A port, and our places for the classes of datagrams that are sent through it.
class Umad {
 public:
  Umad(std::unique_lock<std::mutex> turn, int port)
      : turn_(std::move(turn)), port_(port), buffer_(umad_alloc(1, umad_size() + sizeof(Mad)), &umad_free) {}
  Umad(const Umad&) = delete;
  Umad& operator=(const Umad&) = delete;
  ~Umad() {
    for (const auto& [management_class, agent] : agents_) umad_unregister(port_, agent);
    umad_close_port(port_);
  }

  base::Status Register(int management_class) {
    const int agent = umad_register(port_, management_class, kClassVersion, 0, nullptr);
    if (agent >= 0) {
      agents_[management_class] = agent;
      return {};
    }
    const bool forbidden = agent == -EPERM || agent == -EACCES;
    return base::Fail(
        forbidden ? base::Code::kForbidden : base::Code::kUnavailable,
        fmt::format("the kernel gives us no place for {} management datagrams ({})",
                    management_class == kPerformanceClass ? "performance" : "subnet", Say(agent)));
  }

  base::Status Send(const Mad& question, const Destination& to, milliseconds timeout) {
    const auto agent = agents_.find(question[1]);
    if (buffer_ == nullptr || agent == agents_.end())
      return base::Fail(base::Code::kUnavailable, "no memory for a datagram");
    std::memset(buffer_.get(), 0, umad_size() + sizeof(Mad));
    std::memcpy(umad_get_mad(buffer_.get()), question.data(), question.size());
    if (agent->first == kPerformanceClass) {
      umad_set_addr(buffer_.get(), to.lid, kGeneralServices, 0, kGeneralKey);
      umad_set_pkey(buffer_.get(), to.partition);
    } else {
      umad_set_addr(buffer_.get(), kPermissiveLid, 0, 0, 0);
    }
    const int sent =
        umad_send(port_, agent->second, buffer_.get(), int(sizeof(Mad)), int(timeout.count()), 0);
    if (sent == 0) return {};
    return base::Fail(base::Code::kUnavailable,
                      fmt::format("sending failed ({})", Say(sent < -1 ? sent : errno)));
  }

  base::Result<Mad> Receive(milliseconds timeout) {
    int length = int(sizeof(Mad));
    const int got = umad_recv(port_, buffer_.get(), &length, int(timeout.count()));
    const base::Error silent{base::Code::kTimeout, "the port is Active and its other end does not answer",
                             std::nullopt};
    if (got == -ETIMEDOUT || got == -EWOULDBLOCK || got == -EINTR) return base::Fail(silent);
    if (got < 0) return base::Fail(base::Code::kUnavailable, fmt::format("receiving failed ({})", Say(got)));
    const int status = umad_status(buffer_.get());
    if (status == ETIMEDOUT) return base::Fail(silent);
    if (status != 0)
      return base::Fail(base::Code::kUnavailable, fmt::format("the kernel says {}", Say(status)));
    if (length < int(sizeof(Mad)))
      return base::Fail(base::Code::kUnavailable, fmt::format("an answer of {} bytes", length));
    Mad answer;
    std::memcpy(answer.data(), umad_get_mad(buffer_.get()), answer.size());
    return answer;
  }

 private:
  std::unique_lock<std::mutex> turn_;  // first: the port is closed before it is given up
  const int port_;
  std::map<int, int> agents_;  // by class
  std::unique_ptr<void, void (*)(void*)> buffer_;
};

class UmadPort final : public SmpPort {
 public:
  explicit UmadPort(std::unique_ptr<Umad> umad) : umad_(std::move(umad)) {}
  base::Status Send(const Mad& question) override {
    return umad_->Send(question, {}, milliseconds(kTimeoutMs));
  }
  base::Result<Mad> Receive() override { return umad_->Receive(milliseconds(kTimeoutMs + kMarginMs)); }

 private:
  const std::unique_ptr<Umad> umad_;
};

class UmadLine final : public LeafLine {
 public:
  UmadLine(std::unique_ptr<Umad> umad, int partition) : umad_(std::move(umad)), partition_(partition) {}
  base::Status Send(const Mad& question, int lid, std::chrono::nanoseconds at_most) override {
    return umad_->Send(question, {lid, partition_}, milliseconds(Milliseconds(at_most)));
  }
  base::Result<Mad> Receive(std::chrono::nanoseconds at_most) override {
    return umad_->Receive(milliseconds(Milliseconds(at_most)));
  }

 private:
  const std::unique_ptr<Umad> umad_;
  const int partition_;
};

// libibumad answers every failure to open with EIO. Which it was is found out by looking at what it looks at.
base::Error WhyNotOpen(const base::FileTree& files, const std::string& device, int port) {
  const auto names = files.List(kUmadClass);
  for (const std::string& name : names ? *names : std::vector<std::string>()) {
    const std::string base = fmt::format("{}/{}", kUmadClass, name);
    if (base::ReadTrimmed(files, base + "/ibdev") != device) continue;
    if (base::ReadTrimmed(files, base + "/port") != std::to_string(port)) continue;
    const std::string path = fmt::format("/dev/infiniband/{}", formats::Printable(name));
    const int opened = ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    const int error = errno;
    if (opened >= 0) ::close(opened);
    if (opened >= 0) return {base::Code::kUnavailable, fmt::format("{} was not ready", path), std::nullopt};
    if (error == EACCES || error == EPERM)
      return {base::Code::kForbidden, fmt::format("no permission for {}", path), std::nullopt};
    return {base::Code::kUnavailable, fmt::format("{} cannot be opened ({})", path, Say(error)),
            std::nullopt};
  }
  return {base::Code::kUnavailable, "the kernel has no umad device for this port", std::nullopt};
}

base::Result<std::unique_ptr<Umad>> OpenUmad(const base::FileTree& files, const std::string& device, int port,
                                             std::initializer_list<int> classes) {
  // The library would say so too, on standard error and each time.
  if (!files.Read(fmt::format("{}/abi_version", kUmadClass))) {
    return base::Fail(base::Code::kUnavailable, "the kernel module ib_umad is not loaded (modprobe ib_umad)");
  }
  std::unique_lock turn(OpenPort());
  const int opened = umad_open_port(device.c_str(), port);
  if (opened < 0) return base::Fail(WhyNotOpen(files, device, port));
  auto umad = std::make_unique<Umad>(std::move(turn), opened);
  for (const int management_class : classes) TRY(umad->Register(management_class));
  return umad;
}

}  // namespace

base::Result<std::unique_ptr<SmpPort>> UmadPorts::Open(const std::string& device, int port) {
  ASSIGN_OR_RETURN(std::unique_ptr<Umad> umad, OpenUmad(files_, device, port, {kDirectedRouteClass}));
  return std::make_unique<UmadPort>(std::move(umad));
}

base::Result<std::unique_ptr<LeafLine>> UmadLines::Open(const std::string& device, int port, int partition) {
  ASSIGN_OR_RETURN(std::unique_ptr<Umad> umad,
                   OpenUmad(files_, device, port, {kDirectedRouteClass, kPerformanceClass}));
  return std::make_unique<UmadLine>(std::move(umad), partition);
}

base::Status UmadLeaves::AskOpen(SmpPort& line, formats::IbNeighbour& neighbour) {
  ASSIGN_OR_RETURN(const Mad node, Exchange(line, SmpAttribute::kNodeInfo, neighbour.port, transaction_));
  if (std::string why = WhyRefused(node); !why.empty())
    return base::Fail(base::Code::kUnavailable, std::move(why));
  const auto info = ReadNodeInfo(node);
  if (!info)
    return base::Fail(base::Code::kInvalid, "the other end answers with a NodeInfo that makes no sense");
  // Without its name the switch is not called by its GUID for a while: it would look like another switch.
  ASSIGN_OR_RETURN(const Mad name,
                   Exchange(line, SmpAttribute::kNodeDescription, neighbour.port, transaction_));
  if (std::string why = WhyRefused(name); !why.empty())
    return base::Fail(base::Code::kUnavailable, std::move(why));
  neighbour.kind = info->kind;
  neighbour.guid = fmt::format("{:#018x}", info->guid);
  neighbour.remote_port = std::to_string(info->port);
  neighbour.description = ReadNodeDescription(name);
  return {};
}

formats::IbNeighbour UmadLeaves::Ask(const RdmaDevice& device, const RdmaPort& port, bool& silent) {
  formats::IbNeighbour neighbour;
  neighbour.device = device.name;
  neighbour.port = port.number;
  neighbour.lid = port.lid;
  if (port.state != LinkState::kActive) {
    const auto state = base::ReadTrimmed(
        files_, fmt::format("sys/class/infiniband/{}/ports/{}/state", device.name, port.number));
    neighbour.description =
        port.state == LinkState::kDown
            ? "the port is Down"
            : fmt::format("the port is not Active ({}): has a subnet manager seen it?",
                          state ? formats::Printable(*state, 40) : "its state cannot be read");
    return neighbour;
  }
  const auto line = ports_->Open(device.name, port.number);
  const base::Status asked = line ? AskOpen(**line, neighbour) : base::Status(base::Fail(line.error()));
  if (!asked) {
    silent = true;
    neighbour.description = asked.error().message;
  }
  return neighbour;
}

LeafReadings UmadLeaves::Read(const RdmaReadings& rdma) {
  formats::IbNeighbours found;
  std::set<std::pair<std::string, int>> unanswered;
  for (const RdmaDevice& device : rdma.devices) {
    if (device.transport != topology::Transport::kInfiniBand) continue;
    for (const RdmaPort& port : device.ports) {
      if (port.link_layer != "InfiniBand" || stop_.stop_requested()) continue;
      bool silent = false;
      found.entries.push_back(Ask(device, port, silent));
      if (silent) unanswered.emplace(device.name, port.number);
    }
  }
  // By way of the recording's own words: a replay then says what was seen here.
  const std::string text = formats::FormatIbNeighbours(found.entries);
  LeafReadings readings = LeavesOfIb(formats::ParseIbNeighbours(text));
  readings.unanswered = std::move(unanswered);
  if (!text.empty()) readings.files["ib.txt"] = text;
  return readings;
}

}  // namespace heddle::nodeagent
