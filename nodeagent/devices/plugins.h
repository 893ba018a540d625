#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "nodeagent/devices/endpoint.h"
#include "nodeagent/devices/offer.h"

namespace heddle::nodeagent {

// Where a kubelet listens for device plugins, and they for it, whatever its --root-dir.
inline constexpr std::string_view kKubeletSocket = "kubelet.sock";
// Held by the agent that serves a folder. No socket, because a kubelet deletes all of those when it starts.
inline constexpr std::string_view kLockFile = "heddle-nodeagent.lock";

struct PluginsOptions {
  std::string folder;  // /var/lib/kubelet/device-plugins
  // Between two tries to register, doubling; each is lengthened by up to as much again.
  std::chrono::nanoseconds min_back_off = std::chrono::seconds(1);
  std::chrono::nanoseconds max_back_off = std::chrono::seconds(60);
  // How long a kubelet that took a plugin may leave its list unread.
  std::chrono::nanoseconds patience = std::chrono::seconds(20);
  // Without news the folder is looked at after so long, for file systems that tell nothing.
  std::chrono::nanoseconds look_interval = std::chrono::seconds(30);
  Prefer prefer;
  std::function<void(const std::string& line)> log;
};

// How an offer stands with the kubelet.
struct Standing {
  bool taken = false;  // the kubelet took it and listens
  std::string reason;  // why not, as a sentence; empty while taken
  // The kubelet took it a moment ago and may yet ask for its devices (PluginsOptions::patience).
  bool settling = false;
  friend bool operator==(const Standing&, const Standing&) = default;
};

// Keeps the kubelet offered what there is to offer: an endpoint and a registration for each resource. A kubelet that
// starts deletes all sockets of the folder and knows nobody: its new socket is heard of by inotify, and every endpoint
// is made anew. One that drops a plugin, or never asks it for its list, is told again; one that is away is waited for.
// Of two agents on one folder the second waits for the first to go.
// Thread rule: Run on a thread of its own; Set from any; on_change comes on Run's thread.
class Plugins {
 public:
  Plugins(base::Clock& clock, base::Random random, PluginsOptions options,
          std::function<void(const std::map<std::string, Standing>&)> on_change = {});
  ~Plugins();

  // Offers that are not offered (Offer::offered) have no endpoint.
  void Set(std::vector<Offer> offers);
  // The kubelet listens and yet does not have the resource, as when another plugin of that name came and went: it is
  // told anew.
  void Renew(const std::string& resource);
  void Run(std::stop_token stop);  // blocks until stop; then the devices are gone from the kubelet

 private:
  struct Plugin;
  class Folder;

  void Pass(Folder& folder, const std::stop_token& stop);
  void Serve(Plugin& plugin, const std::string& resource, const Offer& offer);
  void Settle(Plugin& plugin, const std::string& resource, const std::string& kubelet,
              const std::stop_token& stop);
  void Registered(Plugin& plugin, const std::string& resource, const std::string& kubelet,
                  const std::stop_token& stop);
  void PutOff(Plugin& plugin, std::string reason);
  void Tell(const std::map<std::string, Standing>& now);
  std::string SocketOf(const std::string& resource) const;  // its name in the folder
  void Say(const std::string& line) const;

  base::Clock& clock_;
  base::Random random_;
  const PluginsOptions options_;
  const std::function<void(const std::map<std::string, Standing>&)> on_change_;
  const int wake_;  // eventfd

  std::mutex mutex_;  // guards what follows
  std::map<std::string, Offer> wanted_;
  std::set<std::string> renew_;

  // Of Run's thread.
  std::map<std::string, Plugin> plugins_;
  std::optional<std::map<std::string, Standing>> told_;
};

}  // namespace heddle::nodeagent
