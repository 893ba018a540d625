#include "nodeagent/nic/verbs.h"

#include <fmt/format.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>
#include <thread>

namespace heddle::nodeagent {
namespace {

using topology::LinkState;

base::Error Failure(const std::string& device, std::string_view what, int error) {
  const base::Code code =
      error == EACCES || error == EPERM ? base::Code::kForbidden : base::Code::kUnavailable;
  return {code,
          fmt::format("{}: {} ({})", device, what, std::error_code(error, std::generic_category()).message()),
          std::nullopt};
}

LinkState StateOf(ibv_port_state state) {
  if (state == IBV_PORT_ACTIVE) return LinkState::kActive;
  return state == IBV_PORT_DOWN ? LinkState::kDown : LinkState::kUnknown;
}

std::string LayerOf(int layer) {
  if (layer == IBV_LINK_LAYER_INFINIBAND) return "InfiniBand";
  return layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "Unspecified";
}

// IBV_MTU_256 is 1, and each doubles.
int BytesOf(int mtu) {
  return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128 << mtu : 0;
}

// What was said by a driver is taken as long as sysfs agrees that it is the same port, and up.
void Take(const RdmaDevice& device, const VerbsPort& told, RdmaPort& port,
          std::vector<std::string>& problems) {
  if (told.state != LinkState::kActive) return;
  if (!port.link_layer.empty() && !told.link_layer.empty() && port.link_layer != told.link_layer) {
    problems.push_back(fmt::format("{} port {} is {} by sysfs and {} by its driver", device.name, port.number,
                                   port.link_layer, told.link_layer));
    return;
  }
  port.active_mtu = told.active_mtu;
}

}  // namespace

base::Result<VerbsPort> LiveVerbs::Ask(const std::string& device, int port) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  if (list == nullptr) return base::Fail(Failure(device, "libibverbs lists nothing", errno));
  ibv_context* context = nullptr;
  bool listed = false;
  int error = 0;
  for (int i = 0; i < count && !listed; ++i) {
    if (device != ibv_get_device_name(list[i])) continue;
    listed = true;
    errno = 0;
    context = ibv_open_device(list[i]);
    error = errno;
  }
  ibv_free_device_list(list);
  if (!listed) return base::Fail(base::Code::kNotFound, device + ": libibverbs does not list it");
  if (context == nullptr) return base::Fail(Failure(device, "it cannot be opened", error));
  ibv_port_attr attributes{};
  error = ibv_query_port(context, std::uint8_t(port), &attributes);
  (void)ibv_close_device(context);
  if (error != 0) return base::Fail(Failure(device, "it does not answer for its port", error));
  return VerbsPort{StateOf(attributes.state), LayerOf(attributes.link_layer), BytesOf(attributes.active_mtu)};
}

struct DriverMtus::Worker {
  std::unique_ptr<VerbsSource> verbs;
  std::mutex mutex;  // guards what follows
  std::condition_variable_any changed;
  std::deque<Port> wanted;
  std::map<Port, base::Result<VerbsPort>> answers;
  std::optional<Port> busy;  // the port that the driver is asked for now
  bool started = false, ended = false;

  bool Idle() const { return wanted.empty() && !busy; }

  void Run() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return ended || !wanted.empty(); });
      if (ended) return;
      busy = wanted.front();
      wanted.pop_front();
      const Port port = *busy;
      lock.unlock();
      base::Result<VerbsPort> answer = verbs->Ask(port.first, port.second);
      lock.lock();
      answers.insert_or_assign(port, std::move(answer));
      busy.reset();
      changed.notify_all();
    }
  }
};

DriverMtus::DriverMtus(std::unique_ptr<VerbsSource> verbs, std::stop_token stop,
                       std::chrono::milliseconds patience)
    : stop_(std::move(stop)), patience_(patience), worker_(std::make_shared<Worker>()) {
  worker_->verbs = std::move(verbs);
}

DriverMtus::~DriverMtus() {
  std::unique_lock lock(worker_->mutex);
  worker_->ended = true;
  worker_->wanted.clear();
  worker_->changed.notify_all();
  worker_->changed.wait_for(lock, patience_, [this] { return worker_->Idle(); });
}

void DriverMtus::Tell(RdmaReadings& rdma, const NetReadings& net) {
  std::map<Port, Asked> now;
  for (const RdmaDevice& device : rdma.devices) {
    std::set<std::string> netdevs(device.netdevs.begin(), device.netdevs.end());
    for (const RdmaPort& port : device.ports) {
      if (port.state != LinkState::kActive) continue;
      Asked& asked = now[{device.name, port.number}];
      asked.guid = device.guid;
      asked.rate_gbps = port.rate_gbps;
      netdevs.insert(port.netdevs.begin(), port.netdevs.end());
      for (const std::string& name : netdevs) {
        const auto netdev = net.netdevs.find(name);
        asked.mtus.push_back(netdev == net.netdevs.end() ? 0 : netdev->second.mtu);
      }
    }
  }
  std::unique_lock lock(worker_->mutex);
  const bool hung = worker_->busy.has_value();  // since the look before
  for (const auto& [port, as] : now) {
    const auto before = asked_.find(port);
    if (before != asked_.end() && before->second == as) continue;
    told_.erase(port);
    worker_->answers.erase(port);
    if (std::find(worker_->wanted.begin(), worker_->wanted.end(), port) == worker_->wanted.end())
      worker_->wanted.push_back(port);
  }
  std::erase_if(told_, [&now](const auto& entry) { return !now.contains(entry.first); });
  asked_ = now;
  if (!worker_->Idle()) {
    if (!worker_->started) {
      worker_->started = true;
      // Nobody can end a call that sleeps in the kernel, so nobody joins it.
      std::thread([worker = worker_] { worker->Run(); }).detach();
    }
    worker_->changed.notify_all();
    if (!hung) worker_->changed.wait_for(lock, stop_, patience_, [this] { return worker_->Idle(); });
  }
  for (auto& [port, answer] : worker_->answers) {
    if (answer && now.contains(port)) told_[port] = *answer;
    // A card that could not answer is asked at the next look; one that libibverbs does not know stays unknown to it.
    if ((!answer && answer.error().code == base::Code::kUnavailable) ||
        (answer && answer->state != LinkState::kActive))
      asked_.erase(port);
  }
  worker_->answers.clear();
  if (worker_->busy) {
    rdma.problems.push_back(
        fmt::format("the driver of {} does not answer for port {} (ibv_query_port): it hangs, and RDMA MTUs "
                    "are those of the "
                    "interfaces",
                    worker_->busy->first, worker_->busy->second));
  }
  lock.unlock();
  for (RdmaDevice& device : rdma.devices) {
    for (RdmaPort& port : device.ports) {
      const auto told = told_.find({device.name, port.number});
      if (told != told_.end()) Take(device, told->second, port, rdma.problems);
    }
  }
}

void RecordedMtus::Tell(RdmaReadings& rdma, const NetReadings& /*net*/) {
  const auto text = files_.Read("verbs.yaml");
  if (!text) {
    if (text.error().code != base::Code::kNotFound) rdma.problems.push_back(text.error().message);
    return;
  }
  VerbsFile file = ParseVerbsYaml(*text);
  for (std::string& problem : file.problems) rdma.problems.push_back(std::move(problem));
  for (RdmaDevice& device : rdma.devices) {
    for (RdmaPort& port : device.ports) {
      const auto told = file.ports.find({device.name, port.number});
      if (told != file.ports.end() && port.state == LinkState::kActive)
        Take(device, told->second, port, rdma.problems);
    }
  }
}

}  // namespace heddle::nodeagent
