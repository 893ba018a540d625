#include <fmt/format.h>

#include "tests/support/fake_api_server.h"

namespace heddle::test {
namespace {

using kube::HttpResponse;
using kube::Json;
using kube::ObjectKey;

std::string ReasonOf(int status) {
  switch (status) {
    case 400:
      return "BadRequest";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "NotFound";
    case 405:
      return "MethodNotAllowed";
    case 409:
      return "Conflict";
    case 410:
      return "Expired";
    case 413:
      return "RequestEntityTooLarge";
    case 415:
      return "UnsupportedMediaType";
    case 422:
      return "Invalid";
    case 429:
      return "TooManyRequests";
    case 503:
      return "ServiceUnavailable";
    case 504:
      return "Timeout";
    default:
      return "InternalError";
  }
}

HttpResponse JsonResponse(int status, const Json& body) {
  return HttpResponse{status, {{"Content-Type", "application/json"}}, body.dump()};
}

bool BuiltIn(const kube::Resource& resource) {
  return resource.group.find('.') == std::string::npos || resource.group.ends_with(".k8s.io");
}

bool HasStatus(const kube::Resource& resource) {
  return resource != kube::kConfigMaps && resource != kube::kLeases && resource != kube::kEvents;
}

std::string Quoted(const kube::Resource& resource, const ObjectKey& key) {
  return fmt::format("{} \"{}\"", resource.Title(), key.name);
}

HttpResponse NotFound(const kube::Resource& resource, const ObjectKey& key) {
  return StatusResponse(404, "", Quoted(resource, key) + " not found");
}

HttpResponse Stale(const kube::Resource& resource, const ObjectKey& key) {
  return StatusResponse(
      409, "",
      fmt::format("Operation cannot be fulfilled on {}: the object has been modified; please apply "
                  "your changes to the latest version and try again",
                  Quoted(resource, key)));
}

std::string QueryOf(const ApiRequest& request, const std::string& name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? "" : found->second;
}

std::string Writer(const ApiRequest& request) {
  return QueryOf(request, "fieldManager") + " (Update)";
}

// What a write may not change comes from the stored object: status or, through /status, everything else.
void KeepWhatIsNotWritable(Json& wanted, const Json& stored, const std::string& subresource,
                           bool has_status) {
  if (subresource == "status") {
    Json kept = stored;
    if (wanted.contains("status")) {
      kept["status"] = wanted["status"];
    } else {
      kept.erase("status");
    }
    wanted = std::move(kept);
  } else if (has_status) {
    wanted.erase("status");
    if (stored.contains("status")) wanted["status"] = stored["status"];
  }
  for (const char* name : {"uid", "creationTimestamp", "generation", "resourceVersion", "deletionTimestamp",
                           "name", "namespace"}) {
    if (stored["metadata"].contains(name)) wanted["metadata"][name] = stored["metadata"][name];
  }
}

// Whether anything but metadata and status differs. Without copies: a simulation writes thousands of times a minute.
bool SpecDiffers(const Json& one, const Json& other) {
  const auto says_more = [](const Json& more, const Json& than) {
    for (const auto& [name, value] : more.items()) {
      if (name == "metadata" || name == "status") continue;
      const auto found = than.find(name);
      if (found == than.end() || *found != value) return true;
    }
    return false;
  };
  return says_more(one, other) || says_more(other, one);
}

}  // namespace

HttpResponse StatusResponse(int status, std::string reason, const std::string& message) {
  return JsonResponse(status, Json{{"kind", "Status"},
                                   {"apiVersion", "v1"},
                                   {"metadata", Json::object()},
                                   {"status", "Failure"},
                                   {"message", message},
                                   {"reason", reason.empty() ? ReasonOf(status) : std::move(reason)},
                                   {"code", status}});
}

FakeApiServer::Collection* FakeApiServer::CollectionOf(const ApiRequest& request) {
  const std::string prefix = request.path.starts_with("/apis/") ? request.path.substr(6) : "";
  const auto found = collections_.find(prefix.substr(0, prefix.find('/')) + "/" + request.plural);
  return found == collections_.end() ? nullptr : &found->second;
}

HttpResponse FakeApiServer::Answer(const ApiRequest& request) {
  if (request.path == "/version") return JsonResponse(200, {{"gitVersion", "v1.36.3"}});
  if (request.path == "/readyz") return HttpResponse{200, {}, "ok"};
  Collection* collection = CollectionOf(request);
  if (collection == nullptr)
    return StatusResponse(404, "", "the server could not find the requested resource");
  if (request.write() && !Json::accept(request.body) &&
      !(request.method == "DELETE" && request.body.empty())) {
    return StatusResponse(400, "", "the body is not JSON");
  }
  if (request.subresource == "status" && !HasStatus(collection->resource)) {
    return StatusResponse(404, "", "the server could not find the requested resource");
  }
  if (request.method == "POST") {
    return request.subresource.empty() ? AnswerCreate(*collection, request)
                                       : AnswerSubresource(*collection, request);
  }
  if (request.key.name.empty()) {
    return request.method == "GET" ? AnswerList(*collection, request)
                                   : StatusResponse(405, "", "the server does not allow this method");
  }
  const auto found = collection->objects.find(request.key);
  const bool apply = request.content_type.starts_with("application/apply-patch");
  if (found == collection->objects.end() && !(apply && request.subresource.empty())) {
    return NotFound(collection->resource, request.key);
  }
  if (request.method == "GET") return JsonResponse(200, found->second.object);
  if (request.method == "PUT") return AnswerUpdate(*collection, request);
  if (request.method == "PATCH")
    return apply ? AnswerApply(*collection, request) : AnswerPatch(*collection, request);
  if (request.method == "DELETE") return AnswerDelete(*collection, request);
  return StatusResponse(405, "", "the server does not allow this method");
}

// What a collection was at a version: later changes are taken back, the last one first.
std::map<ObjectKey, Json> FakeApiServer::AsOf(const Collection& collection, std::int64_t version) const {
  std::map<ObjectKey, Json> objects;
  for (const auto& [key, stored] : collection.objects) objects.emplace(key, stored.object);
  const std::string name = collection.resource.group + "/" + collection.resource.plural;
  for (auto change = history_.rbegin(); change != history_.rend() && change->version > version; ++change) {
    if (change->collection != name) continue;
    const Json& known = change->before.is_null() ? change->after : change->before;
    objects.erase(kube::KeyOf(known));
    if (!change->before.is_null()) objects.emplace(kube::KeyOf(known), change->before);
  }
  return objects;
}

HttpResponse FakeApiServer::AnswerList(Collection& collection, const ApiRequest& request) {
  const std::string wanted = QueryOf(request, "resourceVersion");
  if (!wanted.empty() && std::atoll(wanted.c_str()) > version_) {
    return StatusResponse(504, "Timeout",
                          fmt::format("Too large resource version: {}, current: {}", wanted, version_));
  }
  if (QueryOf(request, "resourceVersionMatch") == "Exact" && std::atoll(wanted.c_str()) < expired_before_) {
    return StatusResponse(410, "", "The provided resource version is too old");
  }
  const std::string token = QueryOf(request, "continue");  // "<version>|<ns/name>"
  if (!token.empty() && std::atoll(token.c_str()) < expired_before_) {
    return StatusResponse(410, "",
                          "The provided continue parameter is too old to display a consistent list result");
  }
  const std::int64_t asked = std::atoll(wanted.c_str());
  const bool cached = cached_version_ > 0 && !wanted.empty() && asked <= cached_version_;
  const std::int64_t newest = cached ? cached_version_ : version_;
  const std::string version = token.empty() ? std::to_string(newest) : token.substr(0, token.find('|'));
  const auto after = token.empty() ? ObjectKey{} : ObjectKey::Parse(token.substr(token.find('|') + 1));
  const std::size_t limit = std::size_t(std::atoll(QueryOf(request, "limit").c_str()));
  Json items = Json::array();
  Json metadata{{"resourceVersion", version}};
  ObjectKey last;
  // False when the page is full.
  const auto add = [&](const ObjectKey& key, const Json& object) {
    if ((!token.empty() && !(after < key)) || !Selects(request, object)) return true;
    if (limit > 0 && items.size() == limit) {
      metadata["continue"] = version + "|" + last.ToString();
      return false;
    }
    last = key;
    if (request.metadata_only) {
      items.push_back({{"kind", "PartialObjectMetadata"},
                       {"apiVersion", "meta.k8s.io/v1"},
                       {"metadata", object["metadata"]}});
      return true;
    }
    items.push_back(object);
    if (!BuiltIn(collection.resource)) return true;
    items.back().erase("kind");
    items.back().erase("apiVersion");
    return true;
  };
  if (newest == version_) {
    for (const auto& [key, stored] : collection.objects) {
      if (!add(key, stored.object)) break;
    }
  } else {
    for (const auto& [key, object] : AsOf(collection, newest)) {
      if (!add(key, object)) break;
    }
  }
  return JsonResponse(200, {{"kind", collection.resource.kind + "List"},
                            {"apiVersion", collection.resource.ApiVersion()},
                            {"metadata", std::move(metadata)},
                            {"items", std::move(items)}});
}

HttpResponse FakeApiServer::AnswerCreate(Collection& collection, const ApiRequest& request) {
  Json object = request.json();
  Json& metadata = object["metadata"];
  if (!metadata.is_object()) metadata = Json::object();
  if (!request.key.ns.empty()) metadata["namespace"] = request.key.ns;
  if (collection.resource.namespaced && request.key.ns.empty()) {
    return StatusResponse(400, "", "an empty namespace may not be set during creation");
  }
  if (kube::Name(object).empty() && metadata.contains("generateName")) {
    metadata["name"] = kube::StringAt(object, {"metadata", "generateName"}) + fmt::format("{:05}", uids_ + 1);
  }
  const ObjectKey key = kube::KeyOf(object);
  if (key.name.empty())
    return StatusResponse(422, "", "metadata.name: Required value: name or generateName is required");
  if (!kube::ResourceVersion(object).empty()) {
    return StatusResponse(400, "", "resourceVersion should not be set on objects to be created");
  }
  if (collection.objects.contains(key)) {
    return StatusResponse(409, "AlreadyExists", Quoted(collection.resource, key) + " already exists");
  }
  if (HasStatus(collection.resource) && collection.resource != kube::kNodes) object.erase("status");
  FieldOwners owners;
  if (track_owners_) TakeOwnership(owners, Writer(request), Json::object(), object);
  return StoreNew(collection, std::move(object), std::move(owners));
}

HttpResponse FakeApiServer::StoreNew(Collection& collection, Json object, FieldOwners owners) {
  const ObjectKey key = kube::KeyOf(object);
  object["apiVersion"] = collection.resource.ApiVersion();
  object["kind"] = collection.resource.kind;
  object["metadata"]["uid"] = fmt::format("uid-{}", ++uids_);
  object["metadata"]["generation"] = 1;
  object["metadata"]["creationTimestamp"] = base::FormatTime(clock_.WallNow());
  Commit(collection, key, Stored{std::move(object), std::move(owners)});
  return JsonResponse(201, collection.objects.at(key).object);
}

HttpResponse FakeApiServer::AnswerSubresource(Collection& collection, const ApiRequest& request) {
  const auto found = collection.objects.find(request.key);
  if (found == collection.objects.end()) return NotFound(collection.resource, request.key);
  if (collection.resource == kube::kPods && request.subresource == "binding") {
    if (!kube::StringAt(found->second.object, {"spec", "nodeName"}).empty()) {
      return StatusResponse(409, "", fmt::format("pod {} is already assigned to a node", request.key.name));
    }
    Stored bound = found->second;
    bound.object["spec"]["nodeName"] = kube::StringAt(request.json(), {"target", "name"});
    Commit(collection, request.key, std::move(bound));
    return JsonResponse(201, {{"kind", "Status"}, {"status", "Success"}});
  }
  if (collection.resource == kube::kPods && request.subresource == "eviction") {
    Commit(collection, request.key, std::nullopt);
    return JsonResponse(201, {{"kind", "Status"}, {"status", "Success"}});
  }
  return StatusResponse(404, "", "the server could not find the requested resource");
}

HttpResponse FakeApiServer::AnswerUpdate(Collection& collection, const ApiRequest& request) {
  Json wanted = request.json();
  if (kube::Name(wanted) != request.key.name) {
    return StatusResponse(400, "", "the name of the object does not match the name on the URL");
  }
  FieldOwners owners = collection.objects.at(request.key).owners;
  return StoreChanged(collection, request, std::move(wanted), std::move(owners));
}

HttpResponse FakeApiServer::AnswerPatch(Collection& collection, const ApiRequest& request) {
  const Stored& stored = collection.objects.at(request.key);
  const Json patch = request.json();
  Json wanted = stored.object;
  if (request.content_type.starts_with("application/merge-patch")) {
    wanted.merge_patch(patch);
  } else if (request.content_type.starts_with("application/strategic-merge-patch") &&
             BuiltIn(collection.resource)) {
    wanted = StrategicMerge(wanted, patch);
  } else if (request.content_type.starts_with("application/json-patch")) {
    try {
      wanted = wanted.patch(patch);
    } catch (const Json::exception& failure) {
      return StatusResponse(422, "", std::string("the server rejected our request: ") + failure.what());
    }
  } else {
    return StatusResponse(415, "",
                          "the body of the request was in an unknown format: " + request.content_type);
  }
  return StoreChanged(collection, request, std::move(wanted), stored.owners);
}

// The tail of every change: preconditions, what may not be written, generation, finalizers, and no write
// without change.
HttpResponse FakeApiServer::StoreChanged(Collection& collection, const ApiRequest& request, Json wanted,
                                         FieldOwners owners) {
  const Json& stored = collection.objects.at(request.key).object;
  const std::string version = kube::ResourceVersion(wanted);
  if (!version.empty() && version != kube::ResourceVersion(stored))
    return Stale(collection.resource, request.key);
  const std::string uid = kube::Uid(wanted);
  if (!uid.empty() && uid != kube::Uid(stored)) {
    return StatusResponse(409, "",
                          fmt::format("Precondition failed: UID in precondition: {}, UID in object meta: {}",
                                      uid, kube::Uid(stored)));
  }
  KeepWhatIsNotWritable(wanted, stored, request.subresource, HasStatus(collection.resource));
  if (track_owners_ && !request.content_type.starts_with("application/apply-patch")) {
    TakeOwnership(owners, Writer(request), stored, wanted);
  }
  if (wanted == stored) {
    collection.objects.at(request.key).owners = std::move(owners);
    return JsonResponse(200, stored);
  }
  if (SpecDiffers(wanted, stored)) wanted["metadata"]["generation"] = kube::Generation(stored) + 1;
  const bool leaving =
      kube::DeletionTimestamp(wanted) && kube::ArrayAt(wanted, {"metadata", "finalizers"}).empty();
  if (leaving) {
    Commit(collection, request.key, std::nullopt);
    return JsonResponse(200, wanted);
  }
  Commit(collection, request.key, Stored{std::move(wanted), std::move(owners)});
  return JsonResponse(200, collection.objects.at(request.key).object);
}

HttpResponse FakeApiServer::AnswerApply(Collection& collection, const ApiRequest& request) {
  const std::string name = QueryOf(request, "fieldManager");
  if (name.empty())
    return StatusResponse(422, "", "fieldManager: Required value: is required for apply patch");
  const std::string manager = request.subresource.empty() ? name : name + "/" + request.subresource;
  Json wanted = request.json();
  if (kube::Name(wanted) != request.key.name) {
    return StatusResponse(400, "", "the name of the object does not match the name on the URL");
  }
  const auto found = collection.objects.find(request.key);
  if (request.subresource == "status") {
    wanted = Json{{"metadata", wanted["metadata"]}, {"status", wanted.value("status", Json::object())}};
  } else if (HasStatus(collection.resource)) {
    wanted.erase("status");
  }
  if (found == collection.objects.end()) {
    AppliedObject applied = ServerSideApply(Json::object(), {}, manager, wanted, false);
    if (!request.key.ns.empty()) applied.object["metadata"]["namespace"] = request.key.ns;
    return StoreNew(collection, std::move(applied.object), std::move(applied.owners));
  }
  AppliedObject applied = ServerSideApply(found->second.object, found->second.owners, manager, wanted,
                                          QueryOf(request, "force") == "true");
  if (!applied.conflicts.empty()) {
    return StatusResponse(
        409, "",
        fmt::format("Apply failed with {} conflict{}: {}", applied.conflicts.size(),
                    applied.conflicts.size() == 1 ? "" : "s", fmt::join(applied.conflicts, ", ")));
  }
  return StoreChanged(collection, request, std::move(applied.object), std::move(applied.owners));
}

HttpResponse FakeApiServer::AnswerDelete(Collection& collection, const ApiRequest& request) {
  Stored stored = collection.objects.at(request.key);
  const Json options = request.body.empty() ? Json::object() : request.json();
  const std::string uid = kube::StringAt(options, {"preconditions", "uid"});
  const std::string version = kube::StringAt(options, {"preconditions", "resourceVersion"});
  if (!uid.empty() && uid != kube::Uid(stored.object)) return Stale(collection.resource, request.key);
  if (!version.empty() && version != kube::ResourceVersion(stored.object)) {
    return Stale(collection.resource, request.key);
  }
  if (!kube::ArrayAt(stored.object, {"metadata", "finalizers"}).empty()) {
    if (!kube::DeletionTimestamp(stored.object)) {
      stored.object["metadata"]["deletionTimestamp"] = base::FormatTime(clock_.WallNow());
      Commit(collection, request.key, std::move(stored));
    }
    return JsonResponse(200, collection.objects.at(request.key).object);
  }
  Commit(collection, request.key, std::nullopt);
  return JsonResponse(200, {{"kind", "Status"}, {"apiVersion", "v1"}, {"status", "Success"}});
}

void FakeApiServer::Commit(Collection& collection, const ObjectKey& key, std::optional<Stored> after) {
  ++version_;
  Change change{version_, collection.resource.group + "/" + collection.resource.plural, {}, {}};
  if (const auto there = collection.objects.find(key); there != collection.objects.end()) {
    change.before = std::move(there->second.object);  // another comes in its place, or none
  }
  if (after) {
    after->object["metadata"]["resourceVersion"] = std::to_string(version_);
    change.after = after->object;
    collection.objects[key] = *std::move(after);
  } else {
    collection.objects.erase(key);
  }
  history_.push_back(std::move(change));
  if (listener_) listener_(collection.resource, history_.back().before, history_.back().after);
  changed_.notify_all();
}

bool Selects(const ApiRequest& request, const Json& object) {
  const auto matches = [&](const char* selector, auto* matching) {
    const auto asked = request.query.find(selector);
    return asked == request.query.end() || asked->second.empty() || matching(object, asked->second);
  };
  return (request.key.ns.empty() || kube::Namespace(object) == request.key.ns) &&
         matches("labelSelector", &MatchesLabels) && matches("fieldSelector", &MatchesFields);
}

}  // namespace heddle::test
