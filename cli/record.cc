#include "cli/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "crds/keys.h"
#include "kube/object.h"

namespace heddle::cli {
namespace {

namespace keys = crds::keys;
using base::Code;
using base::Fail;
using crds::Json;

const std::string kAgents = "app.kubernetes.io/name=heddle,app.kubernetes.io/component=nodeagent";
constexpr std::string_view kContainer = "nodeagent";

std::string AtTheMachine(const RecordOptions& options) {
  return fmt::format("On the machine itself `heddle-nodeagent record DIR{}` does the same.",
                     options.scrub ? " --scrub" : "");
}

// As Kubernetes has it: it goes into a selector.
bool IsNodeName(const std::string& name) {
  return !name.empty() && name.size() <= 253 &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == std::string::npos;
}

base::Result<std::vector<Json>> AgentsOn(kube::Client& client, const std::string& node, const std::string& ns,
                                         const std::stop_token& stop) {
  ASSIGN_OR_RETURN(
      kube::ObjectList list,
      client.ListAll(kube::kPods,
                     {.ns = ns, .label_selector = kAgents, .field_selector = "spec.nodeName=" + node}, stop),
      "find the agent's pod");
  return std::move(list.items);
}

bool IsRunning(const Json& pod) {
  return kube::StringAt(pod, {"status", "phase"}) == "Running" &&
         kube::StringAt(pod, {"metadata", "deletionTimestamp"}).empty();
}

// The one that runs; while a DaemonSet is rolled out there may be another beside it.
base::Result<Json> FindAgent(kube::Client& client, const RecordOptions& options,
                             const std::stop_token& stop) {
  std::vector<std::string> places{options.ns};
  if (options.ns.empty()) places = {std::string(keys::kNamespace), ""};
  std::vector<Json> pods;
  for (const std::string& ns : places) {
    ASSIGN_OR_RETURN(pods, AgentsOn(client, options.node, ns, stop));
    if (!pods.empty()) break;
  }
  if (pods.empty()) {
    const std::string where = options.ns.empty() ? "" : " in namespace " + options.ns;
    return Fail(
        Code::kNotFound,
        fmt::format(
            "no agent of Heddle runs on {}{}: is that the name of a Node (`kubectl get node {}`), and "
            "does the DaemonSet put a pod there (`kubectl -n {} get pods -o wide -l "
            "app.kubernetes.io/component=nodeagent`)?",
            options.node, where, options.node,
            options.ns.empty() ? std::string(keys::kNamespace) : options.ns));
  }
  const auto running = std::find_if(pods.begin(), pods.end(), IsRunning);
  if (running != pods.end()) return *running;
  return Fail(
      Code::kNotFound,  // not kUnavailable: the cluster has answered
      fmt::format("the agent's pod {} on {} does not run ({}): `kubectl -n {} describe pod {}` says why",
                  kube::Name(pods.front()), options.node, kube::StringAt(pods.front(), {"status", "phase"}),
                  kube::Namespace(pods.front()), kube::Name(pods.front())));
}

// What the DaemonSet tells its agent of where driver, lldpd and labels are, of ports without a cable and of NICs for
// storage: the recording agent needs it, too. `agent.arguments` of the chart may have flag and value as two words.
std::vector<std::string> PlacesOf(const Json& pod) {
  constexpr std::array<std::string_view, 5> kFlags{"--nvml", "--lldpd-socket", "--labels-file", "--uncabled",
                                                   "--storage"};
  std::vector<std::string> places;
  for (const Json& container : kube::ArrayAt(pod, {"spec", "containers"})) {
    if (kube::StringAt(container, {"name"}) != kContainer) continue;
    bool is_value = false;  // of the word before
    for (const char* list : {"command", "args"}) {
      for (const Json& word : kube::ArrayAt(container, {list})) {
        if (!word.is_string()) continue;
        const auto text = word.get<std::string>();
        const std::string_view name = std::string_view(text).substr(0, text.find('='));
        const bool is_flag = !is_value && std::find(kFlags.begin(), kFlags.end(), name) != kFlags.end();
        if (is_flag || is_value) places.push_back(text);
        is_value = is_flag && name.size() == text.size();
      }
    }
  }
  return places;
}

std::vector<std::string> ExecOf(const Json& pod, const RecordOptions& options) {
  std::vector<std::string> words;
  if (!options.kubeconfig.empty()) words.insert(words.end(), {"--kubeconfig", options.kubeconfig});
  if (!options.context.empty()) words.insert(words.end(), {"--context", options.context});
  if (!options.as.empty()) words.insert(words.end(), {"--as", options.as});
  for (const std::string& group : options.as_groups) words.insert(words.end(), {"--as-group", group});
  words.insert(words.end(), {"-n", kube::Namespace(pod), "exec", kube::Name(pod), "-c",
                             std::string(kContainer), "--", "heddle-nodeagent", "--node=" + options.node});
  for (std::string& place : PlacesOf(pod)) words.push_back(std::move(place));
  words.insert(words.end(), {"record", "-"});
  if (options.scrub) words.emplace_back("--scrub");
  return words;
}

// The last lines of what kubectl, or the agent through it, has said.
std::string LastWords(std::string said) {
  while (!said.empty() && (said.back() == '\n' || said.back() == ' ')) said.pop_back();
  constexpr int kLines = 3;
  std::size_t from = said.size();
  for (int line = 0; line < kLines && from != std::string::npos && from > 0; ++line)
    from = said.rfind('\n', from - 1);
  if (from != std::string::npos && from > 0 && from < said.size()) said = said.substr(from + 1);
  std::replace(said.begin(), said.end(), '\n', ' ');
  return WithoutControls(said.empty() ? "it said nothing" : said);
}

Output NotRecorded(const Json& pod, const RecordOptions& options, const KubectlEnd& end) {
  Output output{.exit_code = Output::kFailed};
  const std::string name = kube::Namespace(pod) + "/" + kube::Name(pod);
  const bool forbidden =
      end.said.find("orbidden") != std::string::npos && end.said.find("exec") != std::string::npos;
  output.err =
      fmt::format("Error: {} was not recorded by pod {} (kubectl's exit code {}): {}\n",
                  WithoutControls(options.node), WithoutControls(name), end.exit_code, LastWords(end.said));
  if (forbidden) {
    output.err +=
        fmt::format("It takes the right to create pods/exec in {}: ask somebody who has it, or for it. ",
                    WithoutControls(kube::Namespace(pod)));
  } else {
    output.err += "What was written until then is no whole archive. ";
  }
  output.err += AtTheMachine(options) + "\n";
  return output;
}

}  // namespace

Output RunRecord(kube::Client& client, const RecordOptions& options, const RunKubectl& kubectl,
                 const OutputOptions& look, const std::stop_token& stop) {
  if (look.format != Format::kText)
    return Failure({Code::kInvalid, "--output says nothing of an archive: leave it out", std::nullopt});
  if (!IsNodeName(options.node))
    return Failure({Code::kInvalid, fmt::format("\"{}\" is no name of a Node", options.node), std::nullopt});
  if (options.to_terminal) {
    return Failure({Code::kInvalid,
                    fmt::format("an archive is no text for a terminal: kubectl heddle record {} > {}.tar",
                                options.node, options.node),
                    std::nullopt});
  }
  const auto pod = FindAgent(client, options, stop);
  if (!pod) {
    Output output = Failure(pod.error());
    output.err += AtTheMachine(options) + "\n";
    return output;
  }
  const auto end = kubectl(ExecOf(*pod, options));
  if (!end) return Failure(end.error());
  if (end->exit_code != 0) return NotRecorded(*pod, options, *end);
  Output output;
  output.err = fmt::format(
      "Recorded {} by its agent, pod {}/{}. Unpack it into a folder DIR; `heddle-nodeagent "
      "--machine DIR --print` shows what is in it.\n",
      WithoutControls(options.node), WithoutControls(kube::Namespace(*pod)),
      WithoutControls(kube::Name(*pod)));
  if (!options.scrub)
    output.err +=
        "Note: it holds names, addresses and serial numbers; with --scrub it holds others in their place\n";
  return output;
}

}  // namespace heddle::cli
