#include "nodeagent/devices/plugins.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "nodeagent/grants/connect.h"

namespace heddle::nodeagent {
namespace {

constexpr std::uint32_t kEvents = IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM;

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { Reset(-1); }
  int number() const { return number_; }
  void Reset(int number) {
    if (number_ >= 0) ::close(number_);
    number_ = number;
  }

 private:
  int number_;
};

void Drain(int descriptor) {
  alignas(inotify_event) std::array<char, 8192> buffer;
  while (::read(descriptor, buffer.data(), buffer.size()) > 0) {
  }
}

// Which socket lies there: another one, also under the same number, is another kubelet. Empty: none.
std::string IdentityOf(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return {};
  return fmt::format("{}:{}:{}.{}", found.st_dev, found.st_ino, found.st_ctim.tv_sec, found.st_ctim.tv_nsec);
}

// Whether the open file is still the one of that name.
bool LiesAt(int descriptor, const std::string& path) {
  struct stat open {
  }, named{};
  return ::fstat(descriptor, &open) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

}  // namespace

// What is served for one resource.
struct Plugins::Plugin {
  std::unique_ptr<Endpoint> endpoint;
  std::string socket;       // IdentityOf its socket
  std::string kubelet;      // IdentityOf the one that took it; empty = none has
  std::uint64_t begun = 0;  // streams, when it took it
  base::MonotonicTime taken_at{}, next_try{};
  std::chrono::nanoseconds back_off{0};
  std::string reason;
};

// The kubelet's folder: who serves it, and what happens in it.
class Plugins::Folder {
 public:
  explicit Folder(std::string path) : path_(std::move(path)) {}

  // Why this agent may not serve it, as a sentence; empty = it may.
  std::string Take() {
    Watch();  // before anything is looked at, or what happens after the look is not heard
    const std::string file = fmt::format("{}/{}", path_, kLockFile);
    // Kubelets of Kubernetes 1.32 and older, which an API server of 1.33 to 1.35 still serves, delete every file of the
    // folder when they start, not only the sockets (CleanupPluginDirectory, kubernetes#130187), and people empty it by
    // hand. The lock of a file without a name keeps nobody out.
    if (lock_.number() >= 0 && !LiesAt(lock_.number(), file)) lock_.Reset(-1);
    if (lock_.number() >= 0) return {};
    Descriptor lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (lock.number() < 0)
      return fmt::format("{} cannot be written ({}): mount the kubelet's folder of device plugins", file,
                         std::strerror(errno));
    if (::flock(lock.number(), LOCK_EX | LOCK_NB) != 0)
      return fmt::format("another heddle-nodeagent serves the device plugins in {}: it holds {}", path_,
                         kLockFile);
    if (!LiesAt(lock.number(), file))
      return fmt::format("{} was deleted while it was taken; it is taken anew in a moment", file);
    lock_.Reset(::dup(lock.number()));
    return {};
  }

  // Until something happens there, `wake` is written, or `timeout` is over.
  void Wait(int wake, std::chrono::nanoseconds timeout) {
    std::array<pollfd, 2> ready{{{wake, POLLIN, 0}, {inotify_.number(), POLLIN, 0}}};
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
    if (::poll(ready.data(), ready.size(), int(std::clamp<std::int64_t>(ms, 0, 3'600'000))) < 0) return;
    std::uint64_t count = 0;
    if (ready[0].revents != 0) (void)!::read(wake, &count, sizeof(count));
    if (ready[1].revents != 0) Drain(inotify_.number());
    // A folder that was made anew is another one: look whether it is still the one that is watched.
    if (watched_ != FolderIdentity()) Forget();
  }

 private:
  std::string FolderIdentity() const {
    struct stat found {};
    return ::stat(path_.c_str(), &found) == 0 ? fmt::format("{}:{}", found.st_dev, found.st_ino)
                                              : std::string();
  }
  void Watch() {
    if (inotify_.number() >= 0) return;
    inotify_.Reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    watched_ = FolderIdentity();
    if (::inotify_add_watch(inotify_.number(), path_.c_str(), kEvents | IN_ONLYDIR) < 0) inotify_.Reset(-1);
  }
  void Forget() {
    inotify_.Reset(-1);
    lock_.Reset(-1);
  }

  const std::string path_;
  Descriptor inotify_, lock_;
  std::string watched_;
};

Plugins::Plugins(base::Clock& clock, base::Random random, PluginsOptions options,
                 std::function<void(const std::map<std::string, Standing>&)> on_change)
    : clock_(clock),
      random_(random),
      options_(std::move(options)),
      on_change_(std::move(on_change)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Plugins::~Plugins() {
  plugins_.clear();  // their streams' ends are written to wake_
  if (wake_ >= 0) ::close(wake_);
}

void Plugins::Say(const std::string& line) const {
  if (options_.log) options_.log(line);
}

void Plugins::Set(std::vector<Offer> offers) {
  {
    const std::lock_guard lock(mutex_);
    wanted_.clear();
    for (Offer& offer : offers) {
      std::string resource = offer.resource;
      if (offer.offered()) wanted_.insert_or_assign(std::move(resource), std::move(offer));
    }
  }
  const std::uint64_t one = 1;
  (void)!::write(wake_, &one, sizeof(one));
}

void Plugins::Renew(const std::string& resource) {
  {
    const std::lock_guard lock(mutex_);
    renew_.insert(resource);
  }
  const std::uint64_t one = 1;
  (void)!::write(wake_, &one, sizeof(one));
}

std::string Plugins::SocketOf(const std::string& resource) const {
  // Two resources are two names: what their names may have stays as it is, and no domain has the '_' of the slash.
  std::string name = "heddle-";
  for (const char c : resource) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_';
    name += plain ? c : '_';
  }
  constexpr std::string_view kEnd = ".sock";
  const std::size_t room = kMaxSocketPath - std::min(kMaxSocketPath, options_.folder.size() + 1);
  if (name.size() + kEnd.size() > room) {
    // FNV-1a, so that two long names stay two.
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const char c : resource) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    name = fmt::format("heddle-{:016x}", hash);
  }
  return name + std::string(kEnd);
}

void Plugins::Run(std::stop_token stop) {
  Folder folder(options_.folder);
  const std::stop_callback end(stop, [this] {
    const std::uint64_t one = 1;
    (void)!::write(wake_, &one, sizeof(one));
  });
  while (!stop.stop_requested()) Pass(folder, stop);
  plugins_.clear();
}

void Plugins::Pass(Folder& folder, const std::stop_token& stop) {
  std::map<std::string, Offer> wanted;
  {
    const std::lock_guard lock(mutex_);
    wanted = wanted_;
    for (const std::string& resource : std::exchange(renew_, {})) plugins_.erase(resource);
  }
  std::map<std::string, Standing> standings;
  std::chrono::nanoseconds wait = options_.look_interval;
  if (const std::string why = folder.Take(); !why.empty()) {
    plugins_.clear();
    for (const auto& [resource, offer] : wanted) standings[resource] = {false, why};
    wait = std::min<std::chrono::nanoseconds>(wait, options_.min_back_off * 5);
  } else {
    std::erase_if(plugins_, [&](const auto& plugin) { return !wanted.contains(plugin.first); });
    const std::string kubelet = IdentityOf(fmt::format("{}/{}", options_.folder, kKubeletSocket));
    for (const auto& [resource, offer] : wanted) {
      Plugin& plugin = plugins_[resource];
      Serve(plugin, resource, offer);
      Settle(plugin, resource, kubelet, stop);
      const bool taken = !plugin.kubelet.empty() && plugin.endpoint && plugin.endpoint->streams() > 0;
      standings[resource] = {taken, taken ? std::string() : plugin.reason, !taken && !plugin.kubelet.empty()};
      if (!taken && plugin.next_try > clock_.Now()) wait = std::min(wait, plugin.next_try - clock_.Now());
      if (!taken && !plugin.kubelet.empty()) wait = std::min(wait, options_.patience);
    }
  }
  if (stop.stop_requested()) return;
  Tell(standings);
  folder.Wait(wake_, wait);
}

// Sees to it that the socket is there: a kubelet that starts deletes it under us.
void Plugins::Serve(Plugin& plugin, const std::string& resource, const Offer& offer) {
  const std::string socket = fmt::format("{}/{}", options_.folder, SocketOf(resource));
  const std::string identity = IdentityOf(socket);
  if (plugin.endpoint && plugin.socket == identity && !identity.empty()) {
    plugin.endpoint->Update(offer);
    return;
  }
  if (plugin.endpoint == nullptr && clock_.Now() < plugin.next_try) return;
  // First the old one: a kubelet that hears its end late would take that for the new one's.
  plugin.endpoint.reset();
  plugin.kubelet.clear();
  EndpointCallbacks callbacks;
  callbacks.prefer = options_.prefer;
  callbacks.log = options_.log;
  callbacks.on_stream = [wake = wake_] {
    const std::uint64_t one = 1;
    (void)!::write(wake, &one, sizeof(one));
  };
  auto opened = Endpoint::Open(socket, offer, std::move(callbacks));
  if (!opened) {
    PutOff(plugin, opened.error().message);
    return;
  }
  plugin.endpoint = *std::move(opened);
  plugin.socket = IdentityOf(socket);
  plugin.next_try = {};
}

void Plugins::Settle(Plugin& plugin, const std::string& resource, const std::string& kubelet,
                     const std::stop_token& stop) {
  if (!plugin.endpoint) return;
  const base::MonotonicTime now = clock_.Now();
  if (kubelet.empty()) {
    plugin.kubelet.clear();
    plugin.back_off = {};
    plugin.next_try = {};
    plugin.reason = fmt::format("no kubelet listens in {}", options_.folder);
    return;
  }
  if (plugin.kubelet == kubelet) {
    if (plugin.endpoint->streams() > 0) {
      plugin.back_off = {};
      return;
    }
    const bool heard = plugin.endpoint->streams_begun() > plugin.begun;
    if (!heard && now - plugin.taken_at < options_.patience) {
      plugin.reason = "the kubelet took it and has not asked for its devices yet";
      return;
    }
    plugin.kubelet.clear();
    PutOff(plugin,
           heard ? "the kubelet stopped to listen: it went away, or another plugin has the same resource"
                 : "the kubelet took it and never asked for its devices");
    return;
  }
  // Another kubelet is no reason to wait as long as the last one made us.
  if (!plugin.kubelet.empty()) plugin.next_try = {};
  if (now >= plugin.next_try) Registered(plugin, resource, kubelet, stop);
}

void Plugins::Registered(Plugin& plugin, const std::string& resource, const std::string& kubelet,
                         const std::stop_token& stop) {
  plugin.begun = plugin.endpoint->streams_begun();
  Registration registration;
  registration.kubelet_socket = fmt::format("{}/{}", options_.folder, kKubeletSocket);
  registration.endpoint = SocketOf(resource);
  registration.resource = resource;
  const base::Status done = Register(registration, stop);
  if (!done) {
    plugin.kubelet.clear();
    if (!stop.stop_requested()) PutOff(plugin, done.error().message);
    return;
  }
  Say(fmt::format("Registered resource={} with the kubelet in {}", resource, options_.folder));
  plugin.kubelet = kubelet;
  plugin.taken_at = clock_.Now();
  plugin.reason = "the kubelet took it and has not asked for its devices yet";
}

void Plugins::PutOff(Plugin& plugin, std::string reason) {
  plugin.back_off = std::clamp(plugin.back_off * 2, options_.min_back_off, options_.max_back_off);
  plugin.next_try = clock_.Now() + plugin.back_off + random_.Jitter(plugin.back_off);
  plugin.reason = std::move(reason);
}

void Plugins::Tell(const std::map<std::string, Standing>& now) {
  if (told_ == now) return;
  for (const auto& [resource, standing] : now) {
    const Standing* before = nullptr;
    if (told_) {
      if (const auto found = told_->find(resource); found != told_->end()) before = &found->second;
    }
    if (before != nullptr && *before == standing) continue;
    Say(standing.taken ? fmt::format("Offered resource={}", resource)
                       : fmt::format("Not offered resource={} why=\"{}\"", resource, standing.reason));
  }
  told_ = now;
  if (on_change_) on_change_(now);
}

}  // namespace heddle::nodeagent
