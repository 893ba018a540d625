#include "kube/client.h"

#include <fmt/format.h>

#include <map>

#include "kube/json_reader.h"
#include "kube/watch_decoder.h"

namespace heddle::kube {
namespace {

using base::Code;
using base::Fail;
using base::Result;
using base::Status;

constexpr int kMaxRetries = 10;                   // client-go rest/request.go, maxRetries
constexpr std::size_t kMaxEventBytes = 8u << 20;  // etcd holds 1.5 MiB an object; JSON with escapes is larger
constexpr std::int64_t kPageSize = 500;           // client-go tools/pager, defaultPageSize
constexpr int kPagedStarts = 3;                   // of one list, before it is asked for in full
constexpr int kPageRetries = 3;
constexpr std::chrono::milliseconds kFirstPageWait{500};  // then 1 s and 2 s

using Query = std::map<std::string, std::string>;  // sorted, as Go encodes it

std::string Encoded(const std::string& path, const Query& query) {
  std::string target = path;
  char sign = '?';
  for (const auto& [name, value] : query) {
    if (value.empty()) continue;
    target += fmt::format("{}{}={}", sign, name, PercentEncode(value));
    sign = '&';
  }
  return target;
}

std::string CollectionPath(const Resource& resource, const std::string& ns) {
  std::string path = resource.group.empty() ? "/api/" + resource.version
                                            : fmt::format("/apis/{}/{}", resource.group, resource.version);
  if (resource.namespaced && !ns.empty()) path += "/namespaces/" + PercentEncode(ns);
  return path + "/" + resource.plural;
}

std::string ObjectPath(const Resource& resource, const ObjectKey& key, std::string_view subresource) {
  std::string path = CollectionPath(resource, key.ns) + "/" + PercentEncode(key.name);
  if (!subresource.empty()) path += fmt::format("/{}", subresource);
  return path;
}

std::string Subject(std::string_view verb, const Resource& resource, const ObjectKey& key,
                    std::string_view subresource = "") {
  return fmt::format("{} {}{}{}{}{}", verb, resource.Title(), subresource.empty() ? "" : "/", subresource,
                     key.name.empty() && key.ns.empty() ? "" : " ",
                     key.name.empty() ? key.ns : key.ToString());
}

// An empty name would turn GET into a list and DELETE into the deletion of everything.
Status CheckKey(const Resource& resource, const ObjectKey& key) {
  if (key.name.empty() || key.name == "." || key.name == "..") {
    return Fail(Code::kInvalid,
                fmt::format("{}: \"{}\" is not an object's name", resource.Title(), key.name));
  }
  if (resource.namespaced && key.ns.empty()) {
    return Fail(Code::kInvalid, fmt::format("{} {}: a namespace is missing", resource.Title(), key.name));
  }
  return {};
}

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Query SelectorQuery(const std::string& labels, const std::string& fields) {
  return Query{{"labelSelector", labels}, {"fieldSelector", fields}};
}

std::string_view ContentType(PatchType type) {
  switch (type) {
    case PatchType::kMerge:
      return "application/merge-patch+json";
    case PatchType::kJson:
      return "application/json-patch+json";
    case PatchType::kStrategic:
      return "application/strategic-merge-patch+json";
  }
  return "";
}

std::string_view PolicyName(Propagation propagation) {
  switch (propagation) {
    case Propagation::kDefault:
      return "";
    case Propagation::kBackground:
      return "Background";
    case Propagation::kForeground:
      return "Foreground";
    case Propagation::kOrphan:
      return "Orphan";
  }
  return "";
}

Json DeleteBody(const DeleteOptions& options) {
  Json body{{"apiVersion", "v1"}, {"kind", "DeleteOptions"}};
  if (!options.uid.empty()) body["preconditions"]["uid"] = options.uid;
  if (!options.resource_version.empty()) body["preconditions"]["resourceVersion"] = options.resource_version;
  if (options.propagation != Propagation::kDefault)
    body["propagationPolicy"] = PolicyName(options.propagation);
  if (options.grace_period_seconds) body["gracePeriodSeconds"] = *options.grace_period_seconds;
  return body;
}

// Servers that cannot, none since Kubernetes 1.15, send all of it.
constexpr std::string_view kMetadataOnly =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

base::Error NotAnObject(const std::string& subject, const HttpResponse& response) {
  return {Code::kInternal,
          fmt::format("{}: the answer of {} bytes is not a JSON object", subject, response.body.size()),
          std::nullopt};
}

// Of a read that only looked bad for a moment. What came with a Retry-After has been repeated already.
bool MayPass(const base::Error& error) {
  return !error.retry_after && (error.code == Code::kUnavailable || error.code == Code::kTimeout ||
                                error.code == Code::kThrottled || error.code == Code::kInternal);
}

bool MayRepeat(const HttpResponse& response) {
  return (response.status == 429 || response.status >= 500) && response.Header("Retry-After").has_value();
}

Result<ObjectList> DecodeList(const Resource& resource, Json&& body) {
  const auto items = body.find("items");
  ObjectList list;
  list.resource_version = ResourceVersion(body);
  list.continue_token = StringAt(body, {"metadata", "continue"});
  // A Go server writes null for no items.
  if (items == body.end() || items->is_null()) return list;
  if (!items->is_array()) return Fail(Code::kInternal, "the answer's items are not an array");
  list.items.reserve(items->size());
  for (Json& item : *items) {
    if (!item.is_object()) return Fail(Code::kInternal, "an item of the answer is not an object");
    if (!item.contains("kind")) item["kind"] = resource.kind;
    if (!item.contains("apiVersion")) item["apiVersion"] = resource.ApiVersion();
    list.items.push_back(std::move(item));
  }
  return list;
}

}  // namespace

struct Client::Call {
  std::string subject;  // "patch pods train/w-3", what every error begins with
  std::string method;
  std::string target;
  std::string content_type = {};
  std::string body = {};
  std::chrono::milliseconds timeout;
  std::string_view accept = "application/json";
};

Client::Client(HttpTransport& transport, base::Clock& clock, ClientOptions options)
    : transport_(transport), clock_(clock), options_(std::move(options)) {}

Client Client::WithRequestTimeout(std::chrono::milliseconds timeout) const {
  ClientOptions options = options_;
  options.request_timeout = timeout;
  return Client(transport_, clock_, std::move(options));
}

HttpRequest Client::Compose(const Call& call) const {
  HttpRequest request;
  request.method = call.method;
  request.target = call.target;
  request.body = call.body;
  request.timeout = call.timeout;
  request.headers = {{"Accept", std::string(call.accept)}, {"User-Agent", options_.user_agent}};
  if (!call.content_type.empty()) request.headers.push_back({"Content-Type", call.content_type});
  return request;
}

Result<HttpResponse> Client::Send(const Call& call, std::stop_token stop) {
  const HttpRequest request = Compose(call);
  // As in client-go, where a request's time-out is one for all tries: a Lease that is to be renewed in seconds is not
  // waited for, for minutes.
  const base::MonotonicTime deadline = clock_.Now() + call.timeout;
  for (int attempt = 0;; ++attempt) {
    ASSIGN_OR_RETURN(HttpResponse response, transport_.Do(request, stop), call.subject);
    if (response.status / 100 == 2) return response;
    const base::Error error = ErrorFromResponse(response).In(call.subject);
    const bool repeat = MayRepeat(response) && attempt < kMaxRetries && error.retry_after &&
                        clock_.Now() + *error.retry_after <= deadline;
    if (!repeat) return Fail(error);
    if (!clock_.SleepFor(*error.retry_after, stop)) {
      return Fail(Code::kCancelled, call.subject + ": stopped while waiting to repeat");
    }
  }
}

Result<Json> Client::SendJson(const Call& call, std::stop_token stop) {
  ASSIGN_OR_RETURN(const HttpResponse response, Send(call, std::move(stop)));
  Json body = Json::parse(response.body, nullptr, false);
  if (!body.is_object()) return Fail(NotAnObject(call.subject, response));
  return body;
}

Result<Json> Client::Get(const Resource& resource, const ObjectKey& key, std::stop_token stop) {
  TRY(CheckKey(resource, key), "get");
  return SendJson({.subject = Subject("get", resource, key),
                   .method = "GET",
                   .target = ObjectPath(resource, key, ""),
                   .timeout = options_.request_timeout},
                  std::move(stop));
}

Result<ObjectList> Client::List(const Resource& resource, const ListOptions& options, std::stop_token stop) {
  JsonReader reader;
  return ReadList(resource, options, reader, std::move(stop));
}

Result<ObjectList> Client::ReadList(const Resource& resource, const ListOptions& options, JsonReader& reader,
                                    std::stop_token stop) {
  Query query = SelectorQuery(options.label_selector, options.field_selector);
  query["resourceVersion"] = options.resource_version;
  query["resourceVersionMatch"] = options.resource_version_match;
  query["limit"] = options.limit > 0 ? std::to_string(options.limit) : "";
  query["continue"] = options.continue_token;
  const Call call{.subject = Subject("list", resource, ObjectKey{options.ns, ""}),
                  .method = "GET",
                  .target = Encoded(CollectionPath(resource, options.ns), query),
                  .timeout = options_.list_timeout,
                  .accept = options.metadata_only ? kMetadataOnly : "application/json"};
  ASSIGN_OR_RETURN(const HttpResponse response, Send(call, std::move(stop)));
  const Pruning pruning = options.pruning.Under("items");
  Json body = reader.Read(response.body, &pruning);
  if (!body.is_object()) return Fail(NotAnObject(call.subject, response));
  ASSIGN_OR_RETURN(ObjectList list, DecodeList(resource, std::move(body)), call.subject);
  return list;
}

// The first page is asked for once: nothing is lost with it, and those who ask have back-offs of their own.
Result<ObjectList> Client::ReadPage(const Resource& resource, const ListOptions& options, JsonReader& reader,
                                    const std::stop_token& stop) {
  std::chrono::milliseconds wait = kFirstPageWait;
  for (int attempt = 0;; ++attempt, wait *= 2) {
    auto page = ReadList(resource, options, reader, stop);
    if (page || options.continue_token.empty() || attempt >= kPageRetries || !MayPass(page.error()))
      return page;
    if (!clock_.SleepFor(wait, stop))
      return Fail(Code::kCancelled, page.error().message + ": stopped while waiting to repeat");
  }
}

Result<ObjectList> Client::ListAll(const Resource& resource, ListOptions options, std::stop_token stop) {
  if (options.limit <= 0) options.limit = kPageSize;
  JsonReader reader;
  ObjectList all;
  for (int start = 1;;) {
    auto page = ReadPage(resource, options, reader, stop);
    if (!page && page.error().code == Code::kExpired && !options.continue_token.empty() &&
        start <= kPagedStarts) {
      // The snapshot that the token names is gone: pages would not fit together. The server offers a token for what is
      // left as it is now, from which no watch may begin. Etcd is compacted every five minutes, so that the next pages
      // nearly always come in time.
      if (++start > kPagedStarts) options.limit = 0;
      options.continue_token.clear();
      all.items.clear();
      continue;
    }
    if (!page) return page;
    for (Json& item : page->items) {
      all.items.push_back(options.transform ? options.transform(std::move(item)) : std::move(item));
    }
    all.resource_version = page->resource_version;
    if (page->continue_token.empty()) return all;
    options.continue_token = page->continue_token;
    // A token carries its own version; the server refuses both together.
    options.resource_version.clear();
    options.resource_version_match.clear();
  }
}

Status Client::Watch(const Resource& resource, const WatchOptions& options,
                     const std::function<bool(WatchEvent&&)>& on_event, std::stop_token stop) {
  Query query = SelectorQuery(options.label_selector, options.field_selector);
  query["watch"] = "true";
  query["allowWatchBookmarks"] = "true";
  query["resourceVersion"] = options.resource_version;
  query["timeoutSeconds"] = std::to_string(options.timeout.count());
  if (options.send_initial_events) {
    query["sendInitialEvents"] = "true";
    query["resourceVersionMatch"] = "NotOlderThan";
  }
  const std::string subject = Subject("watch", resource, ObjectKey{options.ns, ""});
  HttpRequest request = Compose({.subject = subject,
                                 .method = "GET",
                                 .target = Encoded(CollectionPath(resource, options.ns), query),
                                 .timeout = options_.request_timeout});
  request.idle_timeout = options.idle_timeout;

  WatchDecoder decoder(kMaxEventBytes, options.pruning);
  Result<bool> fed = true;
  const auto read = [&](std::string_view chunk) {
    if (chunk.empty() && options.on_open) options.on_open();
    fed = decoder.Feed(chunk, on_event);
    return fed && *fed;
  };
  ASSIGN_OR_RETURN(const HttpResponse response, transport_.Stream(request, read, std::move(stop)), subject);
  if (response.status / 100 != 2) return Fail(ErrorFromResponse(response).In(subject));
  if (!fed) return Fail(fed.error().In(subject));
  return {};
}

Result<Json> Client::Create(const Resource& resource, const Json& object, std::stop_token stop) {
  const ObjectKey key = KeyOf(object);
  if (resource.namespaced && key.ns.empty()) {
    return Fail(Code::kInvalid,
                fmt::format("create {} {}: a namespace is missing", resource.Title(), key.name));
  }
  return SendJson(
      {.subject = Subject("create", resource, key),
       .method = "POST",
       .target = Encoded(CollectionPath(resource, key.ns), {{"fieldManager", options_.field_manager}}),
       .content_type = "application/json",
       .body = Dump(object),
       .timeout = options_.request_timeout},
      std::move(stop));
}

Result<Json> Client::Put(const Resource& resource, const Json& object, std::string_view subresource,
                         std::stop_token stop) {
  const ObjectKey key = KeyOf(object);
  TRY(CheckKey(resource, key), "update");
  return SendJson(
      {.subject = Subject("update", resource, key, subresource),
       .method = "PUT",
       .target = Encoded(ObjectPath(resource, key, subresource), {{"fieldManager", options_.field_manager}}),
       .content_type = "application/json",
       .body = Dump(object),
       .timeout = options_.request_timeout},
      std::move(stop));
}

Result<Json> Client::Update(const Resource& resource, const Json& object, std::stop_token stop) {
  return Put(resource, object, "", std::move(stop));
}

Result<Json> Client::UpdateStatus(const Resource& resource, const Json& object, std::stop_token stop) {
  return Put(resource, object, "status", std::move(stop));
}

Result<Json> Client::Patch(const Resource& resource, const ObjectKey& key, PatchType type, const Json& patch,
                           const PatchOptions& options, std::stop_token stop) {
  TRY(CheckKey(resource, key), "patch");
  return SendJson({.subject = Subject("patch", resource, key, options.subresource),
                   .method = "PATCH",
                   .target = Encoded(ObjectPath(resource, key, options.subresource),
                                     {{"fieldManager", options_.field_manager}}),
                   .content_type = std::string(ContentType(type)),
                   .body = Dump(patch),
                   .timeout = options_.request_timeout},
                  std::move(stop));
}

Result<Json> Client::Apply(const Resource& resource, const Json& object, const ApplyOptions& options,
                           std::stop_token stop) {
  const ObjectKey key = KeyOf(object);
  TRY(CheckKey(resource, key), "apply");
  if (options.field_manager.empty()) return Fail(Code::kInvalid, "apply: a field manager is missing");
  return SendJson(
      {.subject = Subject("apply", resource, key, options.subresource),
       .method = "PATCH",
       .target = Encoded(ObjectPath(resource, key, options.subresource),
                         {{"fieldManager", options.field_manager}, {"force", options.force ? "true" : ""}}),
       .content_type = "application/apply-patch+yaml",
       .body = Dump(object),
       .timeout = options_.request_timeout},
      std::move(stop));
}

Result<Json> Client::Delete(const Resource& resource, const ObjectKey& key, const DeleteOptions& options,
                            std::stop_token stop) {
  TRY(CheckKey(resource, key), "delete");
  return SendJson({.subject = Subject("delete", resource, key),
                   .method = "DELETE",
                   .target = ObjectPath(resource, key, ""),
                   .content_type = "application/json",
                   .body = Dump(DeleteBody(options)),
                   .timeout = options_.request_timeout},
                  std::move(stop));
}

Result<Json> Client::CreateSubresource(const Resource& resource, const ObjectKey& key,
                                       std::string_view subresource, const Json& body, std::stop_token stop) {
  TRY(CheckKey(resource, key), "create");
  return SendJson(
      {.subject = Subject("create", resource, key, subresource),
       .method = "POST",
       .target = Encoded(ObjectPath(resource, key, subresource), {{"fieldManager", options_.field_manager}}),
       .content_type = "application/json",
       .body = Dump(body),
       .timeout = options_.request_timeout},
      std::move(stop));
}

Result<std::string> Client::GetRaw(std::string_view target, std::stop_token stop) {
  ASSIGN_OR_RETURN(HttpResponse response, Send({.subject = fmt::format("get {}", target),
                                                .method = "GET",
                                                .target = std::string(target),
                                                .timeout = options_.request_timeout},
                                               std::move(stop)));
  return std::move(response.body);
}

}  // namespace heddle::kube
