#include <fmt/format.h>

#include <array>
#include <utility>

#include "crds/devices_codec.h"
#include "crds/lossless_codec.h"
#include "crds/node_topology.h"

namespace heddle::crds {
namespace {

using codec::Field;
using codec::Problem;

// What is not understood, for the condition of that: no more names than a person reads.
class Unknown {
 public:
  void Add(std::string what) {
    if (names_.size() < codec::kMaxUnknown) names_.push_back(std::move(what));
  }
  std::vector<std::string> Take() { return std::move(names_); }

 private:
  std::vector<std::string> names_;
};

// Calls each(path, entry) for the entries of a list. One that is none, or is too long, has none.
template <class Each>
void ForEachEntry(const Json& spec, const std::string& key, std::size_t max, Unknown& unknown, Each each) {
  const auto list = spec.find(key);
  if (list == spec.end() || list->is_null()) return;
  if (!list->is_array() || list->size() > max) {
    return unknown.Add(fmt::format("spec.{}: must be a list of at most {} entries", key, max));
  }
  for (std::size_t i = 0; i < list->size(); ++i) each(fmt::format("spec.{}[{}]", key, i), (*list)[i]);
}

std::string In(const std::string& path, const std::string& what) {
  return path + (what.starts_with("must ") ? ": " : ".") + what;
}

void ReadLossless(const Json& spec, NodeTopologySpec& to, Unknown& unknown) {
  ForEachEntry(spec, "lossless", kMaxLosslessEntries, unknown,
               [&](const std::string& path, const Json& entry) {
                 Problem problem;
                 LosslessWish wish = codec::ReadWish(Field(entry, problem));
                 if (problem.found()) {
                   Problem of_head;
                   wish = codec::ReadWishHead(Field(entry, of_head));
                   wish.not_understood = {problem.error().message};
                   if (of_head.found()) return unknown.Add(In(path, of_head.error().message));
                 }
                 for (std::string& what : wish.not_understood) {
                   what = In(path, what);
                   unknown.Add(what);
                 }
                 to.lossless.push_back(std::move(wish));
               });
}

void ReadDevices(const Json& spec, NodeTopologySpec& to, Unknown& unknown) {
  ForEachEntry(spec, "devices", kMaxDeviceEntries, unknown, [&](const std::string& path, const Json& entry) {
    Problem problem;
    const Field field(entry, problem);
    DeviceWish wish = codec::ReadDeviceWish(field);
    std::vector<std::string> strange = std::exchange(wish.not_understood, {});
    if (problem.found()) {
      Problem of_head;
      wish = codec::ReadDeviceWishHead(Field(entry, of_head));
      strange = {problem.error().message};
      if (of_head.found()) return unknown.Add(In(path, of_head.error().message));
    }
    for (const std::string& what : strange) unknown.Add(In(path, what));
    if (!strange.empty() && wish.reason.empty()) {
      wish.reason = fmt::format("this agent is older than its spec and does not know {}: update it",
                                In(path, strange.front()));
    }
    to.devices.push_back(std::move(wish));
  });
}

void ReadLabels(const Json& spec, NodeTopologySpec& to, Unknown& unknown) {
  Problem problem;
  const Field root(spec, problem);
  PlaceLabels labels = root("labels").Texts(kMaxLabels, 63);
  if (problem.found()) return unknown.Add("spec." + problem.error().message);
  to.labels = std::move(labels);
}

void ReadCables(const Json& spec, NodeTopologySpec& to, Unknown& unknown) {
  ForEachEntry(spec, "cables", kMaxCableEntries, unknown, [&](const std::string& path, const Json& entry) {
    Problem problem;
    CableReport report = codec::ReadCableReport(Field(entry, problem));
    if (problem.found()) return unknown.Add(In(path, problem.error().message));
    to.cables.push_back(std::move(report));
  });
}

std::vector<std::string> ReadSpec(const Json& spec, NodeTopologySpec& to) {
  static constexpr std::array<std::string_view, 4> kKeys{"labels", "lossless", "devices", "cables"};
  Unknown unknown;
  if (!spec.is_object()) return {"spec: must be an object"};
  Problem none;
  std::vector<std::string> strange;
  codec::NoteUnknown(Field(spec, none), kKeys, strange);
  for (const std::string& key : strange) unknown.Add("spec." + key);
  ReadLabels(spec, to, unknown);
  ReadLossless(spec, to, unknown);
  ReadDevices(spec, to, unknown);
  ReadCables(spec, to, unknown);
  return unknown.Take();
}

}  // namespace

base::Result<OwnNodeTopology> OwnNodeTopologyFromJson(const Json& json) {
  OwnNodeTopology own;
  if (!json.is_object()) return base::Fail(base::Code::kInvalid, "NodeTopology: must be an object");
  Json rest = json;
  rest.erase("spec");
  auto read = NodeTopologyFromJson(rest);
  if (!read) {
    rest.erase("status");
    read = NodeTopologyFromJson(rest);
  }
  if (!read) return base::Fail(read.error());
  own.object = *std::move(read);
  own.has_status = own.object.status.observed_at.has_value();
  if (const auto spec = json.find("spec"); spec != json.end() && !spec->is_null())
    own.not_understood = ReadSpec(*spec, own.object.spec);
  return own;
}

}  // namespace heddle::crds
