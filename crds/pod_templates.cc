#include "crds/pod_templates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "crds/json_at.h"

namespace heddle::crds {
namespace {

constexpr int kMaxDepth = 16;          // a template of a JobSet is at 6
constexpr std::size_t kMaxList = 256;  // replicated jobs and worker groups of one object

bool IsPodTemplate(const Json& json) {
  return At(json, {"spec", "containers"}).is_array();
}

// A whole number, or `absent`; never less than 0.
std::int64_t Number(const Json& json, std::string_view key, std::int64_t absent) {
  const Json& value = At(json, key);
  if (!value.is_number_integer()) return absent;
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t(kMaxPodsOfTemplate))
    return kMaxPodsOfTemplate;
  return std::clamp<std::int64_t>(value.get<std::int64_t>(), 0, kMaxPodsOfTemplate);
}

std::int64_t Times(std::int64_t a, std::int64_t b) {
  return std::min(a * b, kMaxPodsOfTemplate);
}

class Walk {
 public:
  std::vector<PodTemplate> Run(const Json& object) {
    if (IsPodTemplate(object)) {
      found_.push_back({"", &object, 1});
    } else {
      Into(object, "", 1, 0);
    }
    return std::move(found_);
  }

 private:
  void Into(const Json& json, const std::string& path, std::int64_t pods, int depth) {
    if (!json.is_object() || depth > kMaxDepth) return;
    // replicas: most kinds. parallelism and completions: a Job runs no more pods than it has to complete.
    pods = Times(pods, Number(json, "replicas", 1));
    const std::int64_t completions = Number(json, "completions", kMaxPodsOfTemplate);
    pods = Times(pods, std::min(completions, Number(json, "parallelism", 1)));
    for (auto field = json.begin(); field != json.end(); ++field) {
      if (depth == 0 && field.key() != "spec") continue;
      Field(json, field.key(), *field, path.empty() ? field.key() : path + "." + field.key(), pods, depth);
    }
  }

  void Field(const Json& parent, const std::string& key, const Json& value, const std::string& path,
             std::int64_t pods, int depth) {
    if (IsPodTemplate(value)) {
      if (found_.size() < kMaxPodTemplates)
        found_.push_back({path, &value, Times(pods, OfGroup(parent, key))});
    } else if (value.is_array()) {
      for (std::size_t i = 0; i < std::min(value.size(), kMaxList); ++i)
        Into(value[i], fmt::format("{}[{}]", path, i), pods, depth + 1);
    } else {
      Into(value, path, pods, depth + 1);
    }
  }

  // A LeaderWorkerSet's group has `size` pods, of which one is the leader.
  static std::int64_t OfGroup(const Json& parent, const std::string& key) {
    if (key != "workerTemplate") return 1;
    const std::int64_t size = Number(parent, "size", 1);
    return parent.contains("leaderTemplate") ? std::max<std::int64_t>(size - 1, 0) : size;
  }

  std::vector<PodTemplate> found_;
};

}  // namespace

std::vector<PodTemplate> PodTemplatesOf(const Json& object) {
  return Walk().Run(object);
}

std::int64_t CountOf(const Json& quantity) {
  std::int64_t count = 0;
  if (quantity.is_number_integer()) {
    count = Number(Json{{"count", quantity}}, "count", 0);
  } else if (quantity.is_string()) {
    const std::string text = quantity.get<std::string>();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc() || end != text.data() + text.size()) return 0;
  }
  return count < 0 || count > 1'000'000 ? 0 : count;
}

std::int64_t BytesOf(const Json& quantity) {
  // Kubernetes, apimachinery pkg/api/resource: the suffixes of a quantity from a byte on.
  constexpr std::array<std::pair<std::string_view, double>, 11> kUnits{{{"", 1},
                                                                        {"k", 1e3},
                                                                        {"M", 1e6},
                                                                        {"G", 1e9},
                                                                        {"T", 1e12},
                                                                        {"P", 1e15},
                                                                        {"Ki", 1024.0},
                                                                        {"Mi", 1048576.0},
                                                                        {"Gi", 1073741824.0},
                                                                        {"Ti", 1099511627776.0},
                                                                        {"Pi", 1125899906842624.0}}};
  constexpr double kMost = 1152921504606846976.0;  // 2^60
  std::string text = TextOf(quantity);
  if (quantity.is_number()) text = quantity.dump();
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, std::size_t(text.data() + text.size() - end));
  const auto known =
      std::find_if(kUnits.begin(), kUnits.end(), [unit](const auto& one) { return one.first == unit; });
  if (error != std::errc() || known == kUnits.end() || !std::isfinite(number) || number < 0) return -1;
  return std::int64_t(std::min(number * known->second, kMost));
}

}  // namespace heddle::crds
