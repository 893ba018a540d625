#include "switches/queue_looks.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace heddle::switches {
namespace {

// A first one, or more than twice as much as before.
bool IsNews(std::uint64_t now, std::uint32_t before) {
  return now > 2 * std::uint64_t(before);
}

std::uint32_t Most(std::uint32_t before, std::uint64_t now) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  return std::max(before, std::uint32_t(std::min(now, kMost)));
}

}  // namespace

void QueueLooks::Take(const QueueHint& hint) {
  auto port = std::lower_bound(ports_.begin(), ports_.end(), hint.port,
                               [](const Port& one, const std::string& name) { return one.name < name; });
  if (port == ports_.end() || port->name != hint.port) {
    Port fresh;
    fresh.name = hint.port;
    port = ports_.insert(port, std::move(fresh));
  }
  port->hinted = look_;
  if (!IsNews(hint.discards, port->discards) && !IsNews(hint.pause, port->pause)) return;
  port->discards = Most(port->discards, hint.discards);
  port->pause = Most(port->pause, hint.pause);
  if (port->left == 0) {
    port->since = look_;
    port->asked = false;
  }
  port->left = kLooksAtAPort;
}

QueueLooks::Ask QueueLooks::Next(const std::vector<QueueHint>& hints, bool looked) {
  ++look_;
  for (const QueueHint& hint : hints) Take(hint);
  std::erase_if(
      ports_, [this](const Port& port) { return port.left == 0 && look_ - port.hinted >= kLooksRemembered; });
  if (ports_.empty()) ports_.shrink_to_fit();
  std::vector<Port*> waiting;
  for (Port& port : ports_) {
    if (port.left > 0) waiting.push_back(&port);
  }
  Ask ask;
  const bool many = waiting.size() > kMostPortsAtOnce;
  ask.all = !looked && many && look_ - all_at_ >= kLooksBetweenAll;
  if (looked || ask.all) all_at_ = look_;
  if (many && !looked && !ask.all) {
    // Those that were asked for with a look stand behind those that came with it, so nobody ahead comes back ahead. Of
    // those that came together discards go first: pause may be no fault. Else by name.
    std::stable_sort(waiting.begin(), waiting.end(), [](const Port* a, const Port* b) {
      return std::make_tuple(a->since, a->asked, a->discards == 0) <
             std::make_tuple(b->since, b->asked, b->discards == 0);
    });
    waiting.resize(kMostPortsAtOnce);
  }
  for (Port* const port : waiting) {
    --port->left;
    port->since = look_;
    port->asked = true;
    if (!looked && !ask.all) ask.ports.push_back(port->name);
  }
  return ask;
}

std::vector<Steps> SonicQueuePaths(const QueueLooks::Ask& ask, bool watched, const NamesByAlias& names) {
  const char* const what = watched ? "Pfcwd" : "Queues";
  if (ask.all) return {Steps{"COUNTERS", "Ethernet*", what}};
  std::vector<Steps> paths;
  for (const std::string& port : ask.ports) {
    const auto alias = names.find(port);
    if (alias == names.end() || alias->second == port) paths.push_back(Steps{"COUNTERS", port, what});
  }
  return paths;
}

}  // namespace heddle::switches
