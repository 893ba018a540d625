#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "tests/support/fake_api_server.h"

namespace heddle::test {
namespace {

using base::Code;
using base::Fail;
using kube::HttpResponse;
using kube::Json;

std::string Line(std::string_view type, const Json& object) {
  return Json{{"type", type}, {"object", object}}.dump() + "\n";
}

std::string ErrorLine(int code, const std::string& message) {
  return Line("ERROR", Json::parse(StatusResponse(code, "", message).body));
}

bool Asked(const ApiRequest& request, const std::string& name) {
  const auto found = request.query.find(name);
  return found != request.query.end() && (found->second == "true" || found->second == "1");
}

}  // namespace

void FakeApiServer::CutStreams() {
  const std::lock_guard lock(mutex_);
  for (Watcher* watcher : watchers_) watcher->end = Watcher::End::kCut;
  changed_.notify_all();
}

void FakeApiServer::EndStreams() {
  const std::lock_guard lock(mutex_);
  for (Watcher* watcher : watchers_) watcher->end = Watcher::End::kProper;
  changed_.notify_all();
}

void FakeApiServer::ExpireHistory() {
  const std::lock_guard lock(mutex_);
  // A version of its own, so that what was read before is really older.
  expired_before_ = ++version_;
}

void FakeApiServer::SendBookmarks() {
  const std::lock_guard lock(mutex_);
  for (Watcher* watcher : watchers_) {
    if (watcher->bookmarks) watcher->bookmark_due = true;
  }
  changed_.notify_all();
}

void FakeApiServer::SendError(int code) {
  const std::lock_guard lock(mutex_);
  for (Watcher* watcher : watchers_) watcher->extra.push_back(ErrorLine(code, "injected by the test"));
  changed_.notify_all();
}

void FakeApiServer::set_watch_list(bool on) {
  const std::lock_guard lock(mutex_);
  watch_list_ = on;
}

void FakeApiServer::set_deliver_events(bool on) {
  const std::lock_guard lock(mutex_);
  deliver_events_ = on;
  changed_.notify_all();
}

std::size_t FakeApiServer::open_streams() const {
  const std::lock_guard lock(mutex_);
  return watchers_.size();
}

bool FakeApiServer::WaitForStreams(std::size_t count, std::chrono::milliseconds limit) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [&] { return watchers_.size() >= count; });
}

std::string FakeApiServer::Bookmark(const Collection& collection, bool initial_end) const {
  Json object{{"kind", collection.resource.kind},
              {"apiVersion", collection.resource.ApiVersion()},
              {"metadata", {{"resourceVersion", std::to_string(version_)}}}};
  if (initial_end) object["metadata"]["annotations"] = {{"k8s.io/initial-events-end", "true"}};
  return Line("BOOKMARK", object);
}

// The first lines of a watch, and where it goes on from.
std::vector<std::string> FakeApiServer::StartWatch(Watcher& watcher, const Collection& collection,
                                                   const ApiRequest& request) {
  std::vector<std::string> lines;
  const auto version = request.query.find("resourceVersion");
  const std::int64_t from = version == request.query.end() ? 0 : std::atoll(version->second.c_str());
  const bool initial = Asked(request, "sendInitialEvents");
  watcher.bookmarks = Asked(request, "allowWatchBookmarks");
  if (!initial && from > 0) {
    if (from < expired_before_) {
      watcher.end = Watcher::End::kProper;
      return {ErrorLine(410, fmt::format("too old resource version: {} ({})", from, version_))};
    }
    watcher.next = from;
    return lines;
  }
  watcher.next = version_;
  for (const auto& [key, stored] : collection.objects) {
    if (Selects(request, stored.object)) lines.push_back(Line("ADDED", stored.object));
  }
  if (initial) lines.push_back(Bookmark(collection, true));
  return lines;
}

std::vector<std::string> FakeApiServer::NextLines(Watcher& watcher, const Collection& collection,
                                                  const ApiRequest& request) {
  std::vector<std::string> lines(watcher.extra.begin(), watcher.extra.end());
  watcher.extra.clear();
  if (!deliver_events_) return lines;
  // Every version is one change, but ExpireHistory skips some.
  auto change =
      std::upper_bound(history_.begin(), history_.end(), watcher.next,
                       [](std::int64_t version, const Change& entry) { return version < entry.version; });
  for (; change != history_.end(); ++change) {
    if (change->collection != watcher.collection) continue;
    const bool before = !change->before.is_null() && Selects(request, change->before);
    const bool after = !change->after.is_null() && Selects(request, change->after);
    if (after) lines.push_back(Line(before ? "MODIFIED" : "ADDED", change->after));
    if (!before || after) continue;
    Json last = change->before;
    last["metadata"]["resourceVersion"] = std::to_string(change->version);
    lines.push_back(Line("DELETED", last));
  }
  watcher.next = version_;
  if (std::exchange(watcher.bookmark_due, false)) lines.push_back(Bookmark(collection, false));
  return lines;
}

std::optional<HttpResponse> FakeApiServer::RefuseWatch(const Collection* collection,
                                                       const ApiRequest& request) const {
  if (collection == nullptr)
    return StatusResponse(404, "", "the server could not find the requested resource");
  const auto match = request.query.find("resourceVersionMatch");
  if (request.query.contains("sendInitialEvents") && (!watch_list_ || match == request.query.end())) {
    return StatusResponse(422, "", "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch");
  }
  return std::nullopt;
}

std::optional<HttpResponse> FakeApiServer::Open(const kube::HttpRequest& request,
                                                std::shared_ptr<PolledWatch>& watch) {
  auto opened = std::make_shared<PolledWatch>();
  opened->request_ = TakeApart(request);
  const std::lock_guard lock(mutex_);
  opened->collection_ = CollectionOf(opened->request_);
  if (auto refused = RefuseWatch(opened->collection_, opened->request_)) return refused;
  opened->watcher_.collection =
      opened->collection_->resource.group + "/" + opened->collection_->resource.plural;
  opened->first_ = StartWatch(opened->watcher_, *opened->collection_, opened->request_);
  watch = std::move(opened);
  return std::nullopt;
}

std::vector<std::string> FakeApiServer::Take(PolledWatch& watch, bool bookmark) {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> lines = std::exchange(watch.first_, {});
  if (watch.watcher_.end != Watcher::End::kOpen) return lines;
  watch.watcher_.bookmark_due = bookmark && watch.watcher_.bookmarks;
  for (std::string& line : NextLines(watch.watcher_, *watch.collection_, watch.request_)) {
    lines.push_back(std::move(line));
  }
  return lines;
}

bool FakeApiServer::Ended(const PolledWatch& watch) {
  return watch.watcher_.end != Watcher::End::kOpen;
}

base::Result<HttpResponse> FakeApiServer::Stream(const kube::HttpRequest& request,
                                                 const kube::ChunkReader& on_chunk, std::stop_token stop) {
  const ApiRequest taken = TakeApart(request);
  if (!taken.watch()) {
    auto response = Do(request, stop);
    if (response && response->status / 100 == 2) on_chunk(response->body);
    return response;
  }
  if (stop.stop_requested()) return Fail(Code::kCancelled, "stopped");
  std::function<std::optional<HttpResponse>(const ApiRequest&)> interceptor;
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(taken);
    interceptor = interceptor_;
  }
  if (interceptor) {
    if (auto answer = interceptor(taken)) return *std::move(answer);
  }
  std::unique_lock lock(mutex_);
  changed_.notify_all();
  if (auto disturbed = Disturb(taken, false)) return *std::move(disturbed);
  const Collection* collection = CollectionOf(taken);
  if (auto refused = RefuseWatch(collection, taken)) return *std::move(refused);
  Watcher watcher;
  watcher.collection = collection->resource.group + "/" + collection->resource.plural;
  std::vector<std::string> lines = StartWatch(watcher, *collection, taken);
  watchers_.insert(&watcher);
  changed_.notify_all();
  lock.unlock();
  auto result = Pump(watcher, *collection, taken, std::move(lines), on_chunk, stop);
  lock.lock();
  watchers_.erase(&watcher);
  changed_.notify_all();
  return result;
}

base::Result<HttpResponse> FakeApiServer::Pump(Watcher& watcher, const Collection& collection,
                                               const ApiRequest& request, std::vector<std::string> lines,
                                               const kube::ChunkReader& on_chunk,
                                               const std::stop_token& stop) {
  if (!on_chunk("")) return HttpResponse{200, {}, ""};
  for (;;) {
    for (const std::string& line : lines) {
      if (!on_chunk(line)) return HttpResponse{200, {}, ""};
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [&] {
      return watcher.end != Watcher::End::kOpen || !watcher.extra.empty() ||
             (deliver_events_ && (watcher.next < version_ || watcher.bookmark_due));
    });
    if (stop.stop_requested()) return Fail(Code::kCancelled, "stopped");
    if (watcher.end == Watcher::End::kCut) return Fail(Code::kUnavailable, "unexpected end of the stream");
    lines = NextLines(watcher, collection, request);
    if (watcher.end == Watcher::End::kProper && lines.empty()) return HttpResponse{200, {}, ""};
  }
}

}  // namespace heddle::test
