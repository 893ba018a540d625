#include "kube/consistent_read.h"

#include <map>
#include <optional>
#include <utility>

namespace heddle::kube {
namespace {

using base::Result;

constexpr std::chrono::seconds kLongestStream{120};
// Between two objects; a stream that says nothing for so long is given up for a list.
constexpr std::chrono::seconds kLongestSilence{20};
// More objects than this are read together.
constexpr std::size_t kMostSingly = 100;

// Nothing where the stream ended before the state was whole.
std::optional<ObjectList> ReadStream(Client& client, const Resource& resource, const ListOptions& options,
                                     const std::stop_token& stop) {
  WatchOptions watch{.ns = options.ns,
                     .label_selector = options.label_selector,
                     .field_selector = options.field_selector,
                     .send_initial_events = true,
                     .timeout = kLongestStream,
                     .idle_timeout = kLongestSilence,
                     .pruning = options.pruning};
  std::map<ObjectKey, Json> objects;
  std::string version;
  const auto see = [&](WatchEvent&& event) {
    if (event.type == EventType::kBookmark) {
      if (EndsInitialEvents(event.object)) version = ResourceVersion(event.object);
      return version.empty();
    }
    // Until the mark comes, what changes meanwhile comes too.
    ObjectKey key = KeyOf(event.object);
    if (event.type == EventType::kDeleted) {
      objects.erase(key);
    } else {
      objects.insert_or_assign(std::move(key), options.transform ? options.transform(std::move(event.object))
                                                                 : std::move(event.object));
    }
    return true;
  };
  // How it ended says nothing: we end it ourselves once we have what we came for.
  (void)client.Watch(resource, watch, see, stop);
  if (version.empty()) return std::nullopt;
  ObjectList list{.resource_version = std::move(version)};
  list.items.reserve(objects.size());
  for (auto& [_, object] : objects) list.items.push_back(std::move(object));
  return list;
}

}  // namespace

bool EndsInitialEvents(const Json& bookmark) {
  return Annotation(bookmark, "k8s.io/initial-events-end") == "true";
}

Result<ObjectList> ReadConsistently(Client& client, const Resource& resource, const ListOptions& options,
                                    const std::stop_token& stop) {
  if (auto read = ReadStream(client, resource, options, stop)) return *std::move(read);
  return client.ListAll(resource, options, stop);
}

Result<ObjectChanges> ReadChanges(Client& client, const Resource& resource, const ListOptions& options,
                                  const KnownVersion& known, const std::stop_token& stop) {
  ListOptions metadata = options;
  metadata.metadata_only = true;
  metadata.pruning = Pruning({"spec", "status", "metadata.labels", "metadata.annotations",
                              "metadata.ownerReferences", "metadata.managedFields"});
  metadata.transform = {};
  ASSIGN_OR_RETURN(const ObjectList heads, client.ListAll(resource, metadata, stop));
  ObjectChanges changes{.resource_version = heads.resource_version};
  std::vector<ObjectKey> others;
  for (const Json& head : heads.items) {
    (known(head) ? changes.unchanged : others).push_back(KeyOf(head));
  }
  if (others.size() > kMostSingly) {
    ASSIGN_OR_RETURN(ObjectList all, ReadConsistently(client, resource, options, stop));
    return ObjectChanges{std::move(all.items), {}, std::move(all.resource_version)};
  }
  for (const ObjectKey& key : others) {
    auto object = client.Get(resource, key, stop);
    if (!object && object.error().code == base::Code::kNotFound) continue;  // it has gone since
    if (!object) return base::Fail(std::move(object).error());
    changes.objects.push_back(options.transform ? options.transform(*std::move(object)) : *std::move(object));
  }
  return changes;
}

}  // namespace heddle::kube
