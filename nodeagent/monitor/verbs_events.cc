#include "nodeagent/monitor/verbs_events.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/file_tree.h"
#include "formats/printable.h"
#include "nodeagent/pci/driver.h"

namespace heddle::nodeagent {
namespace {

struct Meaning {
  ibv_event_type type;
  const char* what;
  bool port;  // it is about a port and not about the device
};
constexpr std::array<Meaning, 8> kMeanings{{
    {IBV_EVENT_PORT_ACTIVE, "port became Active", true},
    {IBV_EVENT_PORT_ERR, "port went down", true},
    {IBV_EVENT_LID_CHANGE, "LID changed", true},
    {IBV_EVENT_PKEY_CHANGE, "partition keys changed", true},
    {IBV_EVENT_SM_CHANGE, "another subnet manager", true},
    {IBV_EVENT_CLIENT_REREGISTER, "subnet manager asks to register again", true},
    {IBV_EVENT_GID_CHANGE, "GIDs changed", true},
    {IBV_EVENT_DEVICE_FATAL, "device failed or went", false},
}};

// Linux, drivers/infiniband: those with ib_device_ops.disassociate_ucontext, by the driver of their function. EFA,
// rxe and siw have none.
constexpr std::array<std::string_view, 9> kLetGo{"mlx5_core", "mlx4_core", "bnxt_en", "ice", "i40e",
                                                 "idpf",      "mana",      "ionic",   "hns3"};

std::string DriverBehind(const ibv_device& device) {
  std::string_view path(device.ibdev_path);  // "/sys/class/infiniband/mlx5_0"
  path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  return DriverOf(base::DiskFileTree("/"), std::string(path) + "/device");
}

ibv_context* ContextOf(void* context) {
  return static_cast<ibv_context*>(context);
}

}  // namespace

std::optional<KernelEvent> OfAsyncEvent(const std::string& device, int type, int port) {
  for (const Meaning& meaning : kMeanings) {
    if (int(meaning.type) != type) continue;
    if (!meaning.port) return KernelEvent{KernelEvent::Kind::kDevice, device, meaning.what, true};
    // A subnet manager's doings change nothing here, but for what the other events say of their own.
    const bool topology =
        type != IBV_EVENT_PKEY_CHANGE && type != IBV_EVENT_SM_CHANGE && type != IBV_EVENT_CLIENT_REREGISTER;
    return KernelEvent{KernelEvent::Kind::kPort, fmt::format("{} port {}", device, port), meaning.what,
                       topology};
  }
  return std::nullopt;
}

bool LetsGoOfOpen(std::string_view driver) {
  return std::find(kLetGo.begin(), kLetGo.end(), driver) != kLetGo.end();
}

VerbsDevices::~VerbsDevices() {
  for (const auto& [name, device] : devices_) Close(device);
}

void VerbsDevices::Close(const Device& device) {
  ibv_close_device(ContextOf(device.context));
}

std::string VerbsDevices::Open(const std::set<std::string>& wanted) {
  std::erase_if(devices_, [&wanted](const auto& entry) {
    if (wanted.contains(entry.first)) return false;
    Close(entry.second);
    return true;
  });
  std::erase_if(left_alone_, [&wanted](const std::string& name) { return !wanted.contains(name); });
  if (devices_.size() + left_alone_.size() == wanted.size()) return {};
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  const int listed = errno;
  std::map<std::string, std::string> why;
  for (const std::string& name : wanted) {
    if (!devices_.contains(name) && !left_alone_.contains(name))
      why[name] = "libibverbs does not list it: is ib_uverbs loaded?";
  }
  for (int i = 0; list != nullptr && i < count; ++i) {
    const std::string name = ibv_get_device_name(list[i]);
    if (!why.contains(name)) continue;
    if (!opens_(DriverBehind(*list[i]))) {
      left_alone_.insert(name);
      why.erase(name);
      continue;
    }
    errno = 0;
    ibv_context* context = ibv_open_device(list[i]);
    if (context == nullptr) {
      const int error = errno;
      why[name] =
          fmt::format("/dev/infiniband/{} cannot be opened ({})", formats::Printable(list[i]->dev_name, 64),
                      std::error_code(error, std::generic_category()).message());
      continue;
    }
    const int flags = ::fcntl(context->async_fd, F_GETFL);
    (void)::fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK);
    devices_[name] = {context, context->async_fd};
    why.erase(name);
  }
  if (list != nullptr) ibv_free_device_list(list);
  if (why.empty()) return {};
  const auto& [first, reason] = *why.begin();
  const std::string more = why.size() == 1 ? "" : fmt::format(", and {} more", why.size() - 1);
  if (list == nullptr && listed != 0 && listed != ENOSYS) {
    return fmt::format("{}{}: libibverbs lists nothing ({})", first, more,
                       std::error_code(listed, std::generic_category()).message());
  }
  return fmt::format("{}{}: {}", first, more, reason);
}

std::vector<int> VerbsDevices::descriptors() const {
  std::vector<int> all;
  for (const auto& [name, device] : devices_) all.push_back(device.descriptor);
  return all;
}

void VerbsDevices::Take(int descriptor, std::vector<KernelEvent>& events) {
  for (auto entry = devices_.begin(); entry != devices_.end(); ++entry) {
    if (entry->second.descriptor != descriptor) continue;
    bool fatal = false;
    ibv_async_event event{};
    // An event on the way when the device goes is not worth waiting for: the next Open finds it gone.
    while (!fatal && ibv_get_async_event(ContextOf(entry->second.context), &event) == 0) {
      fatal = event.event_type == IBV_EVENT_DEVICE_FATAL;
      if (auto known = OfAsyncEvent(entry->first, int(event.event_type), event.element.port_num))
        events.push_back(*std::move(known));
      ibv_ack_async_event(&event);
    }
    // A descriptor whose device is gone stays readable for ever.
    if (!fatal && errno != EAGAIN && errno != EINTR) {
      events.push_back(*OfAsyncEvent(entry->first, IBV_EVENT_DEVICE_FATAL, 0));
      fatal = true;
    }
    if (fatal) {
      Close(entry->second);
      devices_.erase(entry);
    }
    return;
  }
}

}  // namespace heddle::nodeagent
