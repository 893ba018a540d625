#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::nodeagent {

// What the kernel says of its own accord. Nothing is concluded from it: it only tells when to look. A message
// that is lost costs the time until the next pass, and no more.
struct KernelEvent {
  enum class Kind : std::uint8_t {
    kInterface,  // an Ethernet or IPoIB interface
    kPort,       // a port of an RDMA device
    kDevice,     // a PCI or RDMA device came, went or was renamed
    kLost,       // there was more than could be taken: look at everything
  };
  Kind kind = Kind::kLost;
  std::string subject;    // "eth1", "mlx5_0 port 1", "0000:1b:00.0"; empty for kLost
  std::string what;       // "carrier lost"
  bool topology = false;  // calls for a full look, not for the counters alone
  friend bool operator==(const KernelEvent&, const KernelEvent&) = default;
};

std::string_view KernelEventKindName(KernelEvent::Kind kind);  // "interface", "port", "device", "lost"

// One of the places where the kernel speaks, and why it cannot be heard; empty = it can.
struct KernelSourceState {
  std::string source;  // "rtnetlink", "uevent", "rdma-netlink", "verbs"
  std::string closed;
  friend bool operator==(const KernelSourceState&, const KernelSourceState&) = default;
};

// Thread rule: Wait on one thread, the rest from any.
class KernelEvents {
 public:
  KernelEvents() = default;
  KernelEvents(const KernelEvents&) = delete;
  KernelEvents& operator=(const KernelEvents&) = delete;
  virtual ~KernelEvents() = default;

  // Blocks until there is something, or stop is asked (then perhaps nothing). What was said several times
  // meanwhile is there once, and of a storm no more than kMaxEvents.
  virtual std::vector<KernelEvent> Wait(std::stop_token stop) = 0;
  virtual std::vector<KernelSourceState> States() const = 0;
  // The RDMA devices that count, by name: those that discovery did not leave out.
  virtual void Watch(const std::set<std::string>& rdma_devices) = 0;
};

inline constexpr std::size_t kMaxEvents = 64;  // of one Wait; a DGX has 10 NICs with two or three events each

// In the order in which they came, each once; more than kMaxEvents become one kLost at the end.
std::vector<KernelEvent> Coalesce(std::vector<KernelEvent> events);

// An interface as one RTM_NEWLINK or RTM_DELLINK shows it (linux/if_link.h).
struct LinkMessage {
  int index = 0;
  bool gone = false;
  bool loopback = false;
  bool up = false;       // IFF_UP: somebody wants it up
  bool carrier = false;  // IFF_LOWER_UP: there is a signal
  int mtu = 0;
  std::uint32_t carrier_changes = 0;  // since the interface is there; 0 also where the kernel does not say
  bool elsewhere = false;             // its other end is in another network namespace: a pod's
  std::string name;
  std::string kind;  // "veth", "bond"; empty for hardware
  friend bool operator==(const LinkMessage&, const LinkMessage&) = default;
};

struct LinkMessages {
  std::vector<LinkMessage> links;
  bool done = false;     // the end of a dump
  bool damaged = false;  // bytes that are no netlink message; what came before them counts
  int error = 0;         // errno of an NLMSG_ERROR
};
// One datagram of a rtnetlink socket. Total.
LinkMessages ParseLinkMessages(std::string_view datagram);

// What each message changes. Interfaces that containers come and go with are passed over: a node has one for
// each of its pods.
// Pure. Thread rule: one thread.
class LinkTable {
 public:
  std::optional<KernelEvent> Apply(const LinkMessage& message);
  // From here on a new interface is one that came, and not one that was there.
  void EndDump() { complete_ = true; }

 private:
  bool complete_ = false;
  std::map<int, LinkMessage> links_;
};

// One kobject uevent of the kernel ("add@/devices/…", then NAME=value, each ended by a zero byte). Nothing: of a
// device that is none of ours. Total.
std::optional<KernelEvent> ParseUevent(std::string_view datagram);

// What the kernel of this machine says. A source that cannot be opened, or not yet, is tried again every
// minute; States() says why it is closed.
std::unique_ptr<KernelEvents> OpenKernelEvents();
// The same, but RDMA devices are listened to where `opens` says so of their driver, in place of LetsGoOfOpen
// (verbs_events.h): for a test bed, where nobody waits for us to let go of soft-RoCE.
std::unique_ptr<KernelEvents> OpenKernelEvents(std::function<bool(std::string_view driver)> opens);

}  // namespace heddle::nodeagent
