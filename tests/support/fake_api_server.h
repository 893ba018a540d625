#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "kube/http.h"
#include "kube/object.h"
#include "tests/support/fake_api_server_patch.h"

namespace heddle::test {

// What a client asked, taken apart.
struct ApiRequest {
  std::string method;                        // "GET", "POST", "PUT", "PATCH", "DELETE"
  std::string path;                          // without query: "/api/v1/namespaces/train/pods/w-0"
  std::map<std::string, std::string> query;  // decoded
  std::string content_type;
  bool metadata_only = false;  // of a list: by its Accept header
  std::string body;

  std::string plural;       // "pods"; "" where the path is of no resource
  kube::ObjectKey key;      // name "" for collections
  std::string subresource;  // "status", …

  bool watch() const { return query.contains("watch"); }
  bool write() const { return method != "GET"; }
  kube::Json json() const;   // the body; discarded (is_discarded()) where it is no JSON
  std::string Line() const;  // "PATCH pods/status train/w-0", for short assertions
};

// A request as the server sees it.
ApiRequest TakeApart(const kube::HttpRequest& request);
// Whether a list or watch includes an object: namespace, label and field selectors.
bool Selects(const ApiRequest& request, const kube::Json& object);
// A metav1.Status as a failed response; "" = the status's usual reason.
kube::HttpResponse StatusResponse(int status, std::string reason, const std::string& message);

// What goes wrong with a request that matches.
struct Fault {
  std::string method;         // "" = any; "WATCH" for watches, which "GET" then does not match
  std::string path_contains;  // "" = any
  int status = 0;             // answer with this status and a Status body; 0 = the connection is lost
  std::string reason;         // Status.reason; "" = the usual one
  std::optional<int> retry_after_seconds;
  bool after_the_fact = false;  // the request is carried out, then the answer is lost or replaced
};

// An API server in memory, as a transport: no sockets, no threads. What it does like the real one:
// resourceVersion, uid, generation (moves with anything but metadata and status), creationTimestamp,
// generateName, the status subresource, finalizers, no new version for a write that changes nothing,
// 404/409/410/422 with Status bodies, list with label and field selectors (metadata.name, metadata.namespace,
// and any dotted path such as spec.nodeName), limit and continue, watch with bookmarks and WatchList, merge,
// JSON and strategic patches (lists of conditions by type, of containers, env, volumes and the like by name),
// server-side apply with owners, conflicts and removal of fields given up, pods' binding and eviction. What
// it does not: schemas, admission, garbage collection, pod controllers, namespaces' existence. Thread rule:
// every member may be called from any thread.
class FakeApiServer final : public kube::HttpTransport {
 public:
  // Serves kube/object.h's resources from the start. The clock stamps creationTimestamp.
  explicit FakeApiServer(base::Clock& clock);

  void Serve(const kube::Resource& resource);  // another resource, with a status subresource

  // Setting the stage and looking at it, past the API: no requests are recorded, watches do see it.
  // Creates or replaces the whole object, status too; returns it as stored.
  kube::Json Put(const kube::Resource& resource, kube::Json object);
  void Remove(const kube::Resource& resource, const kube::ObjectKey& key);
  std::optional<kube::Json> Find(const kube::Resource& resource, const kube::ObjectKey& key) const;
  std::vector<kube::Json> All(const kube::Resource& resource) const;
  std::string resource_version() const;
  // Changes one object in place: Edit(kPods, key, [](Json& pod) { pod["status"]["phase"] = "Running"; }).
  kube::Json Edit(const kube::Resource& resource, const kube::ObjectKey& key,
                  const std::function<void(kube::Json&)>& change);

  // What was asked.
  std::vector<ApiRequest> requests() const;
  std::vector<ApiRequest> writes() const;
  std::vector<std::string> lines() const;  // requests' Line()s
  void ClearRequests();

  // What goes wrong.
  void FailNext(Fault fault, int times = 1);  // the next `times` requests that match it
  void ClearFaults();
  // Looks at every request first; an answer it returns is sent instead. Called without the server's lock.
  void Intercept(std::function<std::optional<kube::HttpResponse>(const ApiRequest&)> interceptor);
  void CutStreams();             // every open watch loses its connection
  void EndStreams();             // every open watch ends properly, as after timeoutSeconds
  void ExpireHistory();          // as etcd compaction: watches and continue tokens from before now get 410
  void SendBookmarks();          // on every open watch that allows them
  void SendError(int code);      // a Status as ERROR event on every open watch
  void set_watch_list(bool on);  // off: an older server, which refuses sendInitialEvents with 422
  // Off: open watches get no events (a slow watch cache) until it is on again. New lists still see
  // everything.
  void set_deliver_events(bool on);

  // Watches that were accepted and not yet ended.
  std::size_t open_streams() const;
  bool WaitForStreams(std::size_t count, std::chrono::milliseconds limit = std::chrono::seconds(10)) const;
  // Blocks until a condition on this server holds; it is looked at after every request. False after the
  // limit.
  bool WaitUntil(const std::function<bool()>& condition,
                 std::chrono::milliseconds limit = std::chrono::seconds(10)) const;

  // For a simulation, which owns all waiting. A watch without a thread: Open answers what a server would that does
  // not accept it, else nothing, and `watch` is there; Take hands over the lines that have come since, the first
  // ones with the first call. After an ERROR the watch has ended.
  class PolledWatch;
  std::optional<kube::HttpResponse> Open(const kube::HttpRequest& request,
                                         std::shared_ptr<PolledWatch>& watch);
  std::vector<std::string> Take(PolledWatch& watch, bool bookmark = false);
  static bool Ended(const PolledWatch& watch);
  // Lists that allow it (resourceVersion 0, or one that is not newer) are answered as of that version, as by a server
  // whose cache is behind; 0 = always the newest.
  void set_cached_version(std::int64_t version);
  // Off: nobody applies here, so nobody need know who set which field; plain writes are much quicker then.
  void set_track_owners(bool on);
  // Called after each change with the kind and the object before and after, null where there is none. Must not call
  // this server.
  using ChangeListener =
      std::function<void(const kube::Resource& resource, const kube::Json& before, const kube::Json& after)>;
  void OnChange(ChangeListener listener);
  // Every object of a kind in order, without a copy. Must not call this server.
  void Visit(const kube::Resource& resource,
             const std::function<void(const kube::Json& object)>& visitor) const;

  base::Result<kube::HttpResponse> Do(const kube::HttpRequest& request, std::stop_token stop) override;
  base::Result<kube::HttpResponse> Stream(const kube::HttpRequest& request, const kube::ChunkReader& on_chunk,
                                          std::stop_token stop) override;

 private:
  struct Stored {
    kube::Json object;
    FieldOwners owners;
  };
  struct Collection {
    kube::Resource resource;
    std::map<kube::ObjectKey, Stored> objects;
  };
  struct Change {
    std::int64_t version;
    std::string collection;
    kube::Json before;  // null = was not there
    kube::Json after;   // null = is gone
  };
  struct Watcher {
    std::int64_t next = 0;          // versions up to here were sent
    std::deque<std::string> extra;  // lines to send first
    enum class End { kOpen, kProper, kCut } end = End::kOpen;
    bool bookmarks = false;
    bool bookmark_due = false;
    std::string collection;
  };

  std::optional<base::Result<kube::HttpResponse>> Disturb(const ApiRequest& request, bool after);
  kube::HttpResponse Answer(const ApiRequest& request);
  kube::HttpResponse AnswerList(Collection& collection, const ApiRequest& request);
  std::map<kube::ObjectKey, kube::Json> AsOf(const Collection& collection, std::int64_t version) const;
  kube::HttpResponse AnswerCreate(Collection& collection, const ApiRequest& request);
  kube::HttpResponse AnswerSubresource(Collection& collection, const ApiRequest& request);
  kube::HttpResponse AnswerUpdate(Collection& collection, const ApiRequest& request);
  kube::HttpResponse AnswerPatch(Collection& collection, const ApiRequest& request);
  kube::HttpResponse AnswerApply(Collection& collection, const ApiRequest& request);
  kube::HttpResponse AnswerDelete(Collection& collection, const ApiRequest& request);
  kube::HttpResponse StoreNew(Collection& collection, kube::Json object, FieldOwners owners);
  kube::HttpResponse StoreChanged(Collection& collection, const ApiRequest& request, kube::Json wanted,
                                  FieldOwners owners);
  void Commit(Collection& collection, const kube::ObjectKey& key, std::optional<Stored> after);
  Collection* CollectionOf(const ApiRequest& request);
  Collection& CollectionOf(const kube::Resource& resource);
  std::vector<std::string> StartWatch(Watcher& watcher, const Collection& collection,
                                      const ApiRequest& request);
  std::vector<std::string> NextLines(Watcher& watcher, const Collection& collection,
                                     const ApiRequest& request);
  std::optional<kube::HttpResponse> RefuseWatch(const Collection* collection,
                                                const ApiRequest& request) const;
  std::string Bookmark(const Collection& collection, bool initial_end) const;
  base::Result<kube::HttpResponse> Pump(Watcher& watcher, const Collection& collection,
                                        const ApiRequest& request, std::vector<std::string> lines,
                                        const kube::ChunkReader& on_chunk, const std::stop_token& stop);

  base::Clock& clock_;
  mutable std::mutex mutex_;
  mutable std::condition_variable_any changed_;
  std::map<std::string, Collection> collections_;  // by "group/plural"
  std::vector<Change> history_;
  std::int64_t version_ = 1000;
  std::int64_t expired_before_ = 0;
  std::int64_t cached_version_ = 0;
  std::uint64_t uids_ = 0;
  std::vector<ApiRequest> requests_;
  std::deque<std::pair<Fault, int>> faults_;
  std::function<std::optional<kube::HttpResponse>(const ApiRequest&)> interceptor_;
  ChangeListener listener_;
  std::set<Watcher*> watchers_;
  bool watch_list_ = true;
  bool deliver_events_ = true;
  bool track_owners_ = true;
};

class FakeApiServer::PolledWatch {
 private:
  friend class FakeApiServer;
  Watcher watcher_;
  ApiRequest request_;
  const Collection* collection_ = nullptr;
  std::vector<std::string> first_;
};

}  // namespace heddle::test
