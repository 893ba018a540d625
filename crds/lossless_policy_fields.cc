#include "crds/lossless_policy_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/nearest_word.h"
#include "crds/codec.h"
#include "crds/lossless_codec.h"
#include "lossless/port_settings.h"

namespace heddle::crds {
namespace {

using codec::Field;
using Names = std::span<const std::string_view>;

// Those of losslesspolicies.yaml.
constexpr std::array<std::string_view, 5> kOfObject{"apiVersion", "kind", "metadata", "spec", "status"};
constexpr std::array<std::string_view, 25> kOfSpec{"nodeSelector",
                                                   "roles",
                                                   "rails",
                                                   "mode",
                                                   "onDrift",
                                                   "canary",
                                                   "countedCables",
                                                   "profile",
                                                   "trust",
                                                   "rdma",
                                                   "cnp",
                                                   "pfcPriorities",
                                                   "ecnPriorities",
                                                   "classes",
                                                   "ets",
                                                   "cableMetres",
                                                   "mtu",
                                                   "bufferBytes",
                                                   "watchdog",
                                                   "priorityToBuffer",
                                                   "ncclTrafficClass",
                                                   "dcqcn",
                                                   "tos",
                                                   "switchMarking",
                                                   "infiniBand"};
constexpr std::array<std::string_view, 3> kOfRdma{"dscp", "priority", "percent"};
constexpr std::array<std::string_view, 2> kOfCnp{"dscp", "priority"};
constexpr std::array<std::string_view, 4> kOfClass{"name", "use", "dscps", "priority"};
constexpr std::array<std::string_view, 3> kOfShare{"priority", "algorithm", "percent"};
constexpr std::array<std::string_view, 2> kOfWatchdog{"mode", "timeoutMs"};
constexpr std::array<std::string_view, 3> kOfMarking{"minBytes", "maxBytes", "probabilityPercent"};
constexpr std::array<std::string_view, 2> kOfInfiniBand{"serviceLevel", "adaptiveRouting"};

class Strangers {
 public:
  void LookAt(const Field& field, Names known) {
    for (const std::string& key : field.Keys()) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      if (++found_ > codec::kMaxUnknown) return;
      const std::string path = field.Path();
      std::string one = codec::Clean(path.empty() ? key : path + "." + key, 200);
      const std::string near = base::NearestWord(key, std::vector<std::string>(known.begin(), known.end()));
      if (!near.empty()) one += fmt::format(" (is {} meant?)", near);
      text_ += (text_.empty() ? "" : ", ") + one;
    }
  }
  void LookAtEach(const Field& list, Names known) {
    list.Each(codec::kMaxUnknown, [&](const Field& item) { LookAt(item, known); });
  }
  std::size_t found() const { return found_; }
  const std::string& text() const { return text_; }

 private:
  std::size_t found_ = 0;
  std::string text_;
};

bool IsIn(char c, std::string_view others) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || others.find(c) != std::string_view::npos;
}

// A label's value, or its key without the prefix: letters and digits, and - _ . within.
bool IsLabelPart(std::string_view text) {
  constexpr std::string_view kCapitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  constexpr std::string_view kWithin = "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_.";
  return !text.empty() && text.size() <= 63 && IsIn(text.front(), kCapitals) &&
         IsIn(text.back(), kCapitals) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return IsIn(c, kWithin); });
}

// k8s.io/apimachinery, pkg/util/validation: IsQualifiedName, its prefix without a look at each part between dots.
bool IsLabelKey(std::string_view key) {
  const std::size_t slash = key.find('/');
  if (slash == std::string_view::npos) return IsLabelPart(key);
  const std::string_view prefix = key.substr(0, slash);
  return !prefix.empty() && prefix.size() <= 253 && IsIn(prefix.front(), "") && IsIn(prefix.back(), "") &&
         std::all_of(prefix.begin(), prefix.end(), [](char c) { return IsIn(c, "-."); }) &&
         IsLabelPart(key.substr(slash + 1));
}

// The API server takes any text there, and no Node can have such a label.
void RefuseLabelsOfNoNode(const Field& selector) {
  for (const std::string& key : selector.Keys()) {
    if (!IsLabelKey(key)) return selector.Refuse("\"" + codec::Clean(key, 80) + "\" is no key of a label");
    const Field value = selector(key);
    const std::string text = value.Text(63);
    if (!text.empty() && !IsLabelPart(text))
      return value.Refuse("\"" + codec::Clean(text, 80) + "\" is no value of a label");
  }
}

// What the schema says by CEL, or by a list's keys.
void RefuseContradictions(const Field& spec) {
  std::set<std::int64_t> shared;
  const Field ets = spec("ets");
  ets.Each(lossless::kPriorities, [&shared](const Field& item) {
    const Field priority = item("priority"), percent = item("percent");
    if (!shared.insert(priority.Int64(0, lossless::kPriorities - 1)).second) priority.Refuse("stands twice");
    if ((item("algorithm").Text(64) == "ETS") != percent.present())
      percent.Refuse("belongs to algorithm ETS: set it there, and not with Strict");
  });
  const Field watchdog = spec("watchdog");
  if (const Field time = watchdog("timeoutMs"); time.present() && watchdog("mode").Text(64) != "Fixed")
    time.Refuse("belongs to mode Fixed: set both, or neither");
  const Field infiniband = spec("infiniBand");
  if (infiniband.present() && !infiniband("serviceLevel").present() &&
      !infiniband("adaptiveRouting").present())
    infiniband.Refuse("says nothing: set serviceLevel or adaptiveRouting, or leave it out");
}

}  // namespace

base::Status CheckLosslessPolicyFields(const Json& policy) {
  codec::Problem problem;
  const Field root(policy, problem);
  const Field metadata = root("metadata"), spec = root("spec");
  const std::string name = "LosslessPolicy " + metadata("name").Text(253);
  Strangers strangers;
  strangers.LookAt(root, kOfObject);
  strangers.LookAt(spec, kOfSpec);
  strangers.LookAt(spec("rdma"), kOfRdma);
  strangers.LookAt(spec("cnp"), kOfCnp);
  strangers.LookAtEach(spec("classes"), kOfClass);
  strangers.LookAtEach(spec("ets"), kOfShare);
  strangers.LookAt(spec("watchdog"), kOfWatchdog);
  strangers.LookAt(spec("dcqcn"), lossless::DcqcnParameterNames());
  strangers.LookAt(spec("switchMarking"), kOfMarking);
  strangers.LookAt(spec("infiniBand"), kOfInfiniBand);
  if (strangers.found() > 0) {
    return base::Fail(
        base::Code::kInvalid,
        fmt::format(
            "{}: {}: a LosslessPolicy of this version has no such {}; the API server refuses or drops {}",
            name, strangers.text(), strangers.found() == 1 ? "field" : "fields",
            strangers.found() == 1 ? "it" : "them"));
  }
  RefuseContradictions(spec);
  RefuseLabelsOfNoNode(spec("nodeSelector"));
  if (problem.found()) return base::Fail(problem.error().In(name));
  return {};
}

}  // namespace heddle::crds
