#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "kube/http.h"
#include "kube/object.h"
#include "kube/pruning.h"

namespace heddle::kube {

class JsonReader;

using Log = std::function<void(std::string_view line)>;

struct ListOptions {
  std::string ns;  // "" = all namespaces
  std::string label_selector;
  std::string field_selector;
  // "" is a consistent read, "0" whatever the server has cached.
  std::string resource_version;
  std::string resource_version_match;  // "Exact", "NotOlderThan"
  std::int64_t limit = 0;              // 0 = unpaged
  std::string continue_token;
  // Of ListAll: what is kept of each object, page by page; a tree takes ten times its bytes.
  std::function<Json(Json)> transform;
  Pruning pruning;  // what of each object is not read
  bool metadata_only =
      false;  // the server sends no more of each, in a fifth of the time (PartialObjectMetadata)
};

struct ObjectList {
  std::vector<Json> items;  // with apiVersion and kind, which the server leaves out of lists
  std::string resource_version;
  std::string continue_token;  // "" = the last page
};

enum class EventType : std::uint8_t { kAdded, kModified, kDeleted, kBookmark };
struct WatchEvent {
  EventType type = EventType::kAdded;
  Json object;
};

struct WatchOptions {
  std::string ns;
  std::string label_selector;
  std::string field_selector;
  std::string resource_version;
  bool send_initial_events = false;  // WatchList: needs Kubernetes 1.34, 1.32, or the gate
  std::chrono::seconds timeout{300};
  // The server sends bookmarks about once a minute, so this much silence is a dead connection.
  std::chrono::milliseconds idle_timeout{150'000};
  std::function<void()> on_open;  // once, when the server has accepted the watch
  Pruning pruning;                // what of the objects is not read
};

enum class PatchType : std::uint8_t { kMerge, kJson, kStrategic };
struct PatchOptions {
  std::string subresource;  // "status", …
};
struct ApplyOptions {
  std::string field_manager;  // required
  bool force = false;         // take fields over from other managers
  std::string subresource;
};
enum class Propagation : std::uint8_t { kDefault, kBackground, kForeground, kOrphan };
struct DeleteOptions {
  std::string uid;               // precondition, "" = none
  std::string resource_version;  // precondition, "" = none
  Propagation propagation = Propagation::kDefault;
  std::optional<std::int64_t> grace_period_seconds;
};

struct ClientOptions {
  std::string user_agent = "heddle";
  std::string field_manager = "heddle";  // for create, update and patch; apply names its own
  std::chrono::milliseconds request_timeout{30'000};
  // An unpaged LIST of 5,000 nodes may take this long on a busy server.
  std::chrono::milliseconds list_timeout{60'000};
};

// One cluster's API, generic over resources. Error codes come from the HTTP status and Status.reason;
// messages name verb, resource and object and quote the server: "patch pods train/w-3: Pod "w-3" is invalid:
// …".
//   400 422 kInvalid · 401 kUnauthorized · 403 kForbidden · 404 kNotFound · 405 415 kUnimplemented
//   409 kConflict, or kAlreadyExists by reason · 410 kExpired · 413 kTooLarge · 429 kThrottled
//   408 502 503 504 kUnavailable · other kInternal; kTimeout is the transport's alone: our wait was over
// Repeats what client-go repeats (rest/with_retry.go): 429 and 5xx with a Retry-After header, at most 10
// times and for no longer than one request may take; what then fails has the wait that is left to the caller in
// Error::retry_after, a minute at most. Lost connections are not repeated here, as the write may have happened, but for
// the pages of ListAll. Thread rule: every member may be called from any thread. Transport and clock must outlive the
// client.
class Client {
 public:
  Client(HttpTransport& transport, base::Clock& clock, ClientOptions options = {});

  [[nodiscard]] base::Result<Json> Get(const Resource& resource, const ObjectKey& key, std::stop_token stop);
  // One page, or everything where limit is 0.
  [[nodiscard]] base::Result<ObjectList> List(const Resource& resource, const ListOptions& options,
                                              std::stop_token stop);
  // All pages (options.limit, or 500, at a time), which are of one state. A continue token that expires in the middle
  // starts the list anew: twice in pages, and at last in full, which of 10,000 Nodes is 100 MB at once. A page after
  // the first that gets no answer, a 429 or a 5xx is asked for up to three times more.
  [[nodiscard]] base::Result<ObjectList> ListAll(const Resource& resource, ListOptions options,
                                                 std::stop_token stop);
  // Returns when the server ended the watch, which it does every few minutes, or when on_event returned
  // false. An ERROR event is returned as an error (410: kExpired); bookmarks are delivered. A line over 8 MiB
  // is kTooLarge.
  [[nodiscard]] base::Status Watch(const Resource& resource, const WatchOptions& options,
                                   const std::function<bool(WatchEvent&&)>& on_event, std::stop_token stop);

  // Namespace and name are the object's own.
  [[nodiscard]] base::Result<Json> Create(const Resource& resource, const Json& object, std::stop_token stop);
  // PUT: with metadata.resourceVersion it fails with kConflict if somebody else wrote first.
  [[nodiscard]] base::Result<Json> Update(const Resource& resource, const Json& object, std::stop_token stop);
  [[nodiscard]] base::Result<Json> UpdateStatus(const Resource& resource, const Json& object,
                                                std::stop_token stop);
  [[nodiscard]] base::Result<Json> Patch(const Resource& resource, const ObjectKey& key, PatchType type,
                                         const Json& patch, const PatchOptions& options,
                                         std::stop_token stop);
  // Server-side apply of exactly the fields in `object`. Another manager's field is kConflict unless forced.
  [[nodiscard]] base::Result<Json> Apply(const Resource& resource, const Json& object,
                                         const ApplyOptions& options, std::stop_token stop);
  // Returns the object as it was, or a Status.
  [[nodiscard]] base::Result<Json> Delete(const Resource& resource, const ObjectKey& key,
                                          const DeleteOptions& options, std::stop_token stop);
  // POST to a subresource: pods' "eviction", "binding"; serviceaccounts' "token".
  [[nodiscard]] base::Result<Json> CreateSubresource(const Resource& resource, const ObjectKey& key,
                                                     std::string_view subresource, const Json& body,
                                                     std::stop_token stop);
  // A path outside the resources: "/version", "/readyz", "/apis". The body as text.
  [[nodiscard]] base::Result<std::string> GetRaw(std::string_view target, std::stop_token stop);

  // The same client with another bound on one request.
  [[nodiscard]] Client WithRequestTimeout(std::chrono::milliseconds timeout) const;

 private:
  struct Call;
  // `reader` keeps its buffers from page to page.
  base::Result<ObjectList> ReadList(const Resource& resource, const ListOptions& options, JsonReader& reader,
                                    std::stop_token stop);
  base::Result<ObjectList> ReadPage(const Resource& resource, const ListOptions& options, JsonReader& reader,
                                    const std::stop_token& stop);
  base::Result<HttpResponse> Send(const Call& call, std::stop_token stop);
  base::Result<Json> SendJson(const Call& call, std::stop_token stop);
  base::Result<Json> Put(const Resource& resource, const Json& object, std::string_view subresource,
                         std::stop_token stop);
  HttpRequest Compose(const Call& call) const;

  HttpTransport& transport_;
  base::Clock& clock_;
  ClientOptions options_;
};

// The error a failed response stands for, without context. Public for tests and for other users of
// HttpTransport.
base::Error ErrorFromResponse(const HttpResponse& response);
// The same for a metav1.Status, as watch ERROR events carry it.
base::Error ErrorFromStatus(const Json& status);

}  // namespace heddle::kube
