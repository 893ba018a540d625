#include "cli/kept_spares.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "crds/keys.h"

namespace heddle::cli {
namespace {

constexpr std::string_view kSparesFlag = "--spares", kExtenderProgram = "heddle-extender";
constexpr const char* kSchedulerDeployment = "heddle-scheduler";
constexpr const char* kObserverDeployment = "heddle-observer";  // in its place, in mode observe

std::vector<std::string> WordsOf(const kube::Json& container) {
  std::vector<std::string> words;
  for (const char* part : {"command", "args"}) {
    for (const kube::Json& word : kube::ArrayAt(container, {part}))
      words.push_back(word.is_string() ? word.get<std::string>() : "");
  }
  return words;
}

bool IsExtender(const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word == kExtenderProgram || word.ends_with("/" + std::string(kExtenderProgram));
  });
}

// The last word of it counts; "" where it is not said.
std::string SaidSpares(const std::vector<std::string>& words) {
  const std::string with = std::string(kSparesFlag) + "=";
  std::string said;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].starts_with(with)) said = words[i].substr(with.size());
    if (words[i] == kSparesFlag && i + 1 < words.size()) said = words[i + 1];
  }
  return said;
}

}  // namespace

KeptSpares KeptSparesOf(const kube::Json& deployment) {
  for (const kube::Json& container : kube::ArrayAt(deployment, {"spec", "template", "spec", "containers"})) {
    const std::vector<std::string> words = WordsOf(container);
    if (!IsExtender(words)) continue;
    const std::string said = SaidSpares(words);
    if (said.empty()) return {};
    int nodes = 0;
    const auto [end, error] = std::from_chars(said.data(), said.data() + said.size(), nodes);
    if (error != std::errc{} || end != said.data() + said.size() || nodes < 0)
      return {0, fmt::format("its --spares {} is no number", said)};
    return {nodes, ""};
  }
  return {0, "no container there runs heddle-extender"};
}

bool MayHaveSpares(const std::vector<FabricPtr>& fabrics) {
  return std::any_of(fabrics.begin(), fabrics.end(), [](const FabricPtr& fabric) {
    return std::any_of(fabric->domains.begin(), fabric->domains.end(),
                       [](const topology::NvlinkDomain& domain) { return domain.nodes.size() > 1; });
  });
}

int ReadKeptSpares(kube::Client& client, const std::vector<FabricPtr>& fabrics,
                   std::vector<std::string>& notes, const std::stop_token& stop) {
  if (!MayHaveSpares(fabrics)) return 0;
  const kube::Resource deployments{"apps", "v1", "deployments", "Deployment", true};
  const std::string ns(crds::keys::kNamespace);
  const auto scheduler = client.Get(deployments, {ns, kSchedulerDeployment}, stop);
  const bool absent = !scheduler && scheduler.error().code == base::Code::kNotFound;
  const auto observer = absent ? client.Get(deployments, {ns, kObserverDeployment}, stop) : scheduler;
  const char* name = absent && observer ? kObserverDeployment : kSchedulerDeployment;
  const auto& deployment = absent && observer ? observer : scheduler;
  const KeptSpares kept = deployment ? KeptSparesOf(*deployment) : KeptSpares{0, deployment.error().message};
  if (!kept.why_unknown.empty()) {
    notes.push_back(
        fmt::format("How many nodes of an NVLink domain the extender keeps as spares is not known, so they "
                    "count as free: "
                    "Deployment {}/{}: {}",
                    ns, name, kept.why_unknown));
  }
  return kept.nodes;
}

}  // namespace heddle::cli
