#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "nodeagent/devices/offer.h"

namespace heddle::nodeagent {

// What the kubelet would like to know before it takes `size` of `available`.
struct PreferenceQuestion {
  std::vector<std::string> available;
  std::vector<std::string> must_include;
  int size = 0;
};
using Prefer =
    std::function<std::vector<std::string>(const Offer& offer, const PreferenceQuestion& question)>;

struct EndpointCallbacks {
  Prefer prefer;                    // may block for a second; an empty answer is no preference
  std::function<void()> on_stream;  // a kubelet began or ceased to listen; must not block or call back
  std::function<void(const std::string& line)> log;
};

// The device plugin of one resource on a socket of its own: list and changes of the devices, preference, allocation.
// Thread rule: every member may be called from any thread; callbacks come on gRPC's.
class Endpoint {
 public:
  // Listens on `socket`, in place of a socket of that name that nobody listens on. kUnavailable: it cannot.
  [[nodiscard]] static base::Result<std::unique_ptr<Endpoint>> Open(const std::string& socket, Offer offer,
                                                                    EndpointCallbacks callbacks);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  ~Endpoint();  // ends every call; the kubelet then takes the devices for unhealthy

  // Those who listen hear of it where the devices changed.
  void Update(Offer offer);
  int streams() const;                  // of kubelets that listen now
  std::uint64_t streams_begun() const;  // ever

 private:
  struct State;
  explicit Endpoint(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;
};

// Tells the kubelet that listens on `kubelet_socket` of a plugin's endpoint, by the name of its socket in the same
// folder. Blocks for `deadline` at most. kUnavailable: nobody listens, or nobody answers; kInvalid: it refuses.
struct Registration {
  std::string kubelet_socket;
  std::string endpoint;
  std::string resource;
  int deadline_ms = 15'000;  // the kubelet connects back meanwhile, for which it gives itself 10 s
};
[[nodiscard]] base::Status Register(const Registration& registration, std::stop_token stop);

}  // namespace heddle::nodeagent
