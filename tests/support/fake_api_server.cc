#include "tests/support/fake_api_server.h"

#include <fmt/format.h>

#include <charconv>

namespace heddle::test {
namespace {

using base::Code;
using base::Fail;
using kube::HttpRequest;
using kube::HttpResponse;
using kube::Json;
using kube::ObjectKey;

std::string Decode(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16).ec == std::errc{}) {
      plain += char(byte);
      i += 2;
    } else {
      plain += text[i] == '+' ? ' ' : text[i];
    }
  }
  return plain;
}

std::vector<std::string> SplitPath(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    path.remove_prefix(1);
    const auto end = std::min(path.find('/'), path.size());
    parts.push_back(Decode(path.substr(0, end)));
    path.remove_prefix(end);
  }
  return parts;
}

// "/api/v1/namespaces/a/pods/b/status", "/apis/group/version/plural", …
void TakePathApart(ApiRequest& request) {
  std::vector<std::string> parts = SplitPath(request.path);
  const std::size_t prefix = !parts.empty() && parts[0] == "api" ? 2 : 3;
  if (parts.size() <= prefix || (parts[0] != "api" && parts[0] != "apis")) return;
  parts.erase(parts.begin(), parts.begin() + std::ptrdiff_t(prefix));
  const bool of_namespace = parts.size() == 3 && (parts[2] == "status" || parts[2] == "finalize");
  if (parts[0] == "namespaces" && parts.size() >= 3 && !of_namespace) {
    request.key.ns = parts[1];
    parts.erase(parts.begin(), parts.begin() + 2);
  }
  request.plural = parts[0];
  if (parts.size() > 1) request.key.name = parts[1];
  if (parts.size() > 2) request.subresource = parts[2];
}

}  // namespace

ApiRequest TakeApart(const HttpRequest& request) {
  ApiRequest taken;
  taken.method = request.method;
  taken.body = request.body;
  const auto question = std::min(request.target.find('?'), request.target.size());
  taken.path = request.target.substr(0, question);
  std::string_view query =
      std::string_view(request.target).substr(std::min(question + 1, request.target.size()));
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    const auto sign = std::min(pair.find('='), pair.size());
    taken.query[Decode(pair.substr(0, sign))] = Decode(pair.substr(std::min(sign + 1, pair.size())));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
  }
  for (const auto& header : request.headers) {
    if (header.name == "Content-Type") taken.content_type = header.value;
    if (header.name == "Accept")
      taken.metadata_only = header.value.find("as=PartialObjectMetadataList") != std::string::npos;
  }
  TakePathApart(taken);
  return taken;
}

Json ApiRequest::json() const {
  return Json::parse(body, nullptr, false);
}

std::string ApiRequest::Line() const {
  const std::string what = plural.empty() ? path : subresource.empty() ? plural : plural + "/" + subresource;
  const std::string verb = method != "GET" ? method : watch() ? "WATCH" : key.name.empty() ? "LIST" : "GET";
  const std::string whom = key.name.empty() ? key.ns : key.ToString();
  return verb + " " + what + (plural.empty() || whom.empty() ? "" : " " + whom);
}

FakeApiServer::FakeApiServer(base::Clock& clock) : clock_(clock) {
  for (const auto& resource : {kube::kPods, kube::kNodes, kube::kNamespaces, kube::kEvents, kube::kConfigMaps,
                               kube::kLeases, kube::kJobs}) {
    Serve(resource);
  }
}

void FakeApiServer::Serve(const kube::Resource& resource) {
  const std::lock_guard lock(mutex_);
  collections_.try_emplace(resource.group + "/" + resource.plural, Collection{resource, {}});
}

FakeApiServer::Collection& FakeApiServer::CollectionOf(const kube::Resource& resource) {
  const std::string id = resource.group + "/" + resource.plural;
  return collections_.try_emplace(id, Collection{resource, {}}).first->second;
}

Json FakeApiServer::Put(const kube::Resource& resource, Json object) {
  const std::lock_guard lock(mutex_);
  Collection& collection = CollectionOf(resource);
  const ObjectKey key = kube::KeyOf(object);
  const auto there = collection.objects.find(key);
  Json& metadata = object["metadata"];
  object["apiVersion"] = resource.ApiVersion();
  object["kind"] = resource.kind;
  const Json* old = there == collection.objects.end() ? nullptr : &there->second.object["metadata"];
  if (!metadata.contains("uid")) {
    metadata["uid"] = old != nullptr ? (*old)["uid"] : Json(fmt::format("uid-{}", ++uids_));
  }
  if (!metadata.contains("creationTimestamp")) {
    metadata["creationTimestamp"] =
        old != nullptr ? (*old)["creationTimestamp"] : Json(base::FormatTime(clock_.WallNow()));
  }
  if (!metadata.contains("generation"))
    metadata["generation"] = old != nullptr ? (*old)["generation"] : Json(1);
  Commit(collection, key, Stored{std::move(object), old == nullptr ? FieldOwners{} : there->second.owners});
  return collection.objects.at(key).object;
}

void FakeApiServer::Remove(const kube::Resource& resource, const ObjectKey& key) {
  const std::lock_guard lock(mutex_);
  Collection& collection = CollectionOf(resource);
  if (collection.objects.contains(key)) Commit(collection, key, std::nullopt);
}

Json FakeApiServer::Edit(const kube::Resource& resource, const ObjectKey& key,
                         const std::function<void(Json&)>& change) {
  std::optional<Json> object = Find(resource, key);
  if (!object) object = kube::NewObject(resource, key);
  change(*object);
  return Put(resource, *std::move(object));
}

std::optional<Json> FakeApiServer::Find(const kube::Resource& resource, const ObjectKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto collection = collections_.find(resource.group + "/" + resource.plural);
  if (collection == collections_.end()) return std::nullopt;
  const auto found = collection->second.objects.find(key);
  return found == collection->second.objects.end() ? std::nullopt : std::optional(found->second.object);
}

std::vector<Json> FakeApiServer::All(const kube::Resource& resource) const {
  const std::lock_guard lock(mutex_);
  std::vector<Json> objects;
  const auto collection = collections_.find(resource.group + "/" + resource.plural);
  if (collection == collections_.end()) return objects;
  for (const auto& [key, stored] : collection->second.objects) objects.push_back(stored.object);
  return objects;
}

void FakeApiServer::Visit(const kube::Resource& resource,
                          const std::function<void(const Json& object)>& visitor) const {
  const std::lock_guard lock(mutex_);
  const auto collection = collections_.find(resource.group + "/" + resource.plural);
  if (collection == collections_.end()) return;
  for (const auto& [key, stored] : collection->second.objects) visitor(stored.object);
}

void FakeApiServer::set_cached_version(std::int64_t version) {
  const std::lock_guard lock(mutex_);
  cached_version_ = version;
}

void FakeApiServer::set_track_owners(bool on) {
  const std::lock_guard lock(mutex_);
  track_owners_ = on;
}

void FakeApiServer::OnChange(ChangeListener listener) {
  const std::lock_guard lock(mutex_);
  listener_ = std::move(listener);
}

std::string FakeApiServer::resource_version() const {
  const std::lock_guard lock(mutex_);
  return std::to_string(version_);
}

std::vector<ApiRequest> FakeApiServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

std::vector<ApiRequest> FakeApiServer::writes() const {
  std::vector<ApiRequest> all = requests();
  std::erase_if(all, [](const ApiRequest& request) { return !request.write(); });
  return all;
}

std::vector<std::string> FakeApiServer::lines() const {
  std::vector<std::string> lines;
  for (const ApiRequest& request : requests()) lines.push_back(request.Line());
  return lines;
}

void FakeApiServer::ClearRequests() {
  const std::lock_guard lock(mutex_);
  requests_.clear();
}

void FakeApiServer::FailNext(Fault fault, int times) {
  const std::lock_guard lock(mutex_);
  faults_.emplace_back(std::move(fault), times);
}

void FakeApiServer::ClearFaults() {
  const std::lock_guard lock(mutex_);
  faults_.clear();
}

void FakeApiServer::Intercept(std::function<std::optional<HttpResponse>(const ApiRequest&)> interceptor) {
  const std::lock_guard lock(mutex_);
  interceptor_ = std::move(interceptor);
}

// The connection's or the server's answer in place of the real one, where a fault is due.
std::optional<base::Result<HttpResponse>> FakeApiServer::Disturb(const ApiRequest& request, bool after) {
  const std::string method = request.watch() ? "WATCH" : request.method;
  for (auto fault = faults_.begin(); fault != faults_.end(); ++fault) {
    const Fault wanted = fault->first;
    if (wanted.after_the_fact != after || (!wanted.method.empty() && wanted.method != method) ||
        request.path.find(wanted.path_contains) == std::string::npos) {
      continue;
    }
    if (--fault->second <= 0) faults_.erase(fault);
    if (wanted.status == 0) return Fail(Code::kUnavailable, "connection reset by peer");
    HttpResponse response = StatusResponse(wanted.status, wanted.reason, "injected by the test");
    if (wanted.retry_after_seconds) {
      response.headers.push_back({"Retry-After", std::to_string(*wanted.retry_after_seconds)});
    }
    return response;
  }
  return std::nullopt;
}

base::Result<HttpResponse> FakeApiServer::Do(const HttpRequest& request, std::stop_token stop) {
  if (stop.stop_requested()) return Fail(Code::kCancelled, "stopped");
  const ApiRequest taken = TakeApart(request);
  std::function<std::optional<HttpResponse>(const ApiRequest&)> interceptor;
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(taken);
    interceptor = interceptor_;
  }
  if (interceptor) {
    if (auto answer = interceptor(taken)) return *std::move(answer);
  }
  const std::lock_guard lock(mutex_);
  if (auto disturbed = Disturb(taken, false)) {
    changed_.notify_all();
    return *std::move(disturbed);
  }
  HttpResponse response = Answer(taken);
  changed_.notify_all();
  if (auto disturbed = Disturb(taken, true)) return *std::move(disturbed);
  return response;
}

bool FakeApiServer::WaitUntil(const std::function<bool()>& condition, std::chrono::milliseconds limit) const {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    std::unique_lock lock(mutex_);
    // The condition calls us, so it cannot be a predicate under our lock; a change between the two is seen 5
    // ms late.
    changed_.wait_for(lock, std::chrono::milliseconds(5));
    if (std::chrono::steady_clock::now() > deadline) return false;
  }
  return true;
}

}  // namespace heddle::test
