#include "nodeagent/print.h"

#include <cstdio>
#include <mutex>

#include "base/write_all.h"
#include "crds/yaml.h"
#include "nodeagent/follow.h"
#include "nodeagent/grants/pod_resources.h"
#include "nodeagent/health/leaf_end.h"
#include "nodeagent/publish/report.h"
#include "nodeagent/ticket.h"

namespace heddle::nodeagent {
namespace {

constexpr int kInterrupted = 130;  // what a shell says of a program that Ctrl-C ended

}  // namespace

int Refuse(const std::string& why, int code) {
  std::fprintf(stderr, "heddle-nodeagent: %s\n", why.c_str());
  return code;
}

base::Status Say(const std::string& text) {
  return base::WriteAll(text, stdout);
}

int PrintNode(const base::FileTree& files, Machine& machine, GrantSource* kubelet, const Flags& flags,
              base::Clock& clock, const std::stop_token& stop) {
  const auto grants = ReadOnce(kubelet, flags.pod_resources.has_value(), stop);
  const Readings readings = machine.discovery->Read();
  Observation seen = machine.discovery->Put(readings);
  const std::vector<WatchedPort> ports = WatchedPorts(readings, seen.node);
  PrintedFacts facts = ReadPrintedFacts(files, readings, seen);
  facts.leaves = machine.leaf_counts->Read(PortsWithLeaves(ports));
  SayLeafEnds(facts.leaves, ports, seen);
  if (stop.stop_requested()) return kInterrupted;
  crds::NodeTopology object;
  object.name = seen.node.name;
  object = Report(object, seen, clock.WallNow(), &grants);
  const std::string text =
      flags.output == "text" ? Ticket(object, facts)
      : flags.output == "json"
          ? crds::ToJson(object).dump(2, ' ', false, crds::Json::error_handler_t::replace) + "\n"
          : crds::ToYaml(crds::ToJson(object));
  const base::Status said = Say(text);
  return said ? 0 : Refuse(said.error().message, 1);
}

int FollowNode(Monitor& monitor, const std::string& node, const Flags& flags, base::Clock& clock,
               const std::stop_token& stop) {
  Follow follow(node, flags.output == "json" ? FollowFormat::kJson : FollowFormat::kText);
  std::mutex mutex;  // the kernel's words and the sights come on two threads
  base::Status said;
  std::stop_source ending;
  const std::stop_callback forward(stop, [&ending] { ending.request_stop(); });
  const auto say = [&](const std::string& text) {
    if (!said) return;
    said = Say(text);
    if (!said) ending.request_stop();
  };
  MonitorCallbacks callbacks;
  callbacks.on_sight = [&](const SightPtr& sight) {
    const std::lock_guard lock(mutex);
    say(follow.Look(*sight, clock.WallNow()));
  };
  callbacks.on_events = [&](const std::vector<KernelEvent>& events) {
    const std::lock_guard lock(mutex);
    say(follow.Hear(events, clock.WallNow()));
  };
  monitor.Run(callbacks, ending.get_token());
  return said ? 0 : Refuse(said.error().message, 1);
}

}  // namespace heddle::nodeagent
