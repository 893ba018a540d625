#include "kube/reflector.h"

#include <fmt/format.h>

#include "kube/consistent_read.h"

namespace heddle::kube {
namespace {

using base::Code;
using base::Result;
using base::Status;
using std::chrono::milliseconds;
using std::chrono::seconds;

// client-go tools/cache/reflector.go
constexpr milliseconds kFirstBackOff{800};
constexpr seconds kLongestBackOff{30};
constexpr std::chrono::minutes kBackOffReset{2};
constexpr seconds kShortestWatch{300};
constexpr seconds kWatchSpread{300};
constexpr seconds kDiedAtOnce{1};  // a watch that ends sooner and without an event is a failure
constexpr int kInternalRetries = 3;
// A parser needs ten times a page's bytes; of 500 NodeTopologies that is 50 MB.
constexpr std::int64_t kPageSize = 100;

}  // namespace

Reflector::Reflector(Client& client, base::Clock& clock, base::Random random, Resource resource,
                     ReflectorOptions options)
    : client_(client),
      clock_(clock),
      random_(random),
      resource_(std::move(resource)),
      options_(std::move(options)) {
  watch_list_works_ = options_.use_watch_list && !options_.in_pages;
  in_pages_ = options_.in_pages;
}

void Reflector::Run(std::stop_token stop) {
  Next next = Next::kList;
  while (!stop.stop_requested()) {
    if (next == Next::kWatch) {
      next = Stream(false, stop);
    } else if (watch_list_works_) {
      next = Stream(true, stop);
    } else {
      next = ListAndReplace(stop);
    }
  }
}

bool Reflector::healthy() const {
  const std::lock_guard lock(mutex_);
  return healthy_;
}

std::optional<base::MonotonicTime> Reflector::heard_at() const {
  const std::lock_guard lock(mutex_);
  return heard_at_;
}

std::optional<base::Error> Reflector::last_error() const {
  const std::lock_guard lock(mutex_);
  return last_error_;
}

std::string Reflector::resource_version() const {
  const std::lock_guard lock(mutex_);
  return resource_version_;
}

Result<ObjectList> Reflector::ListOnce(const std::stop_token& stop) {
  const std::string known = resource_version();
  ListOptions options{.ns = options_.ns,
                      .label_selector = options_.label_selector,
                      .field_selector = options_.field_selector,
                      .transform = options_.transform,
                      .pruning = options_.pruning.And({"metadata.managedFields"})};
  if (!expired_ && !in_pages_) {
    // From the server's cache, which ignores limit; not older than what we have shown to others.
    options.resource_version = known.empty() ? "0" : known;
    auto list = client_.List(resource_, options, stop);
    for (std::size_t i = 0; list && options_.transform && i < list->items.size(); ++i)
      list->items[i] = options_.transform(std::move(list->items[i]));
    if (list || (list.error().code != Code::kExpired && list.error().code != Code::kTooLarge)) return list;
    if (list.error().code == Code::kTooLarge) {
      Say(base::ToString(list.error()));
      in_pages_ = true;  // it would be too large the next time, too
    }
    options.resource_version.clear();
  }
  if (in_pages_) options.limit = kPageSize;
  return client_.ListAll(resource_, options, stop);
}

Reflector::Next Reflector::ListAndReplace(const std::stop_token& stop) {
  auto list = ListOnce(stop);
  if (!list) {
    if (list.error().code == Code::kExpired) expired_ = true;
    Failed(list.error());
    BackOff(stop, list.error().retry_after);
    return Next::kList;
  }
  std::map<ObjectKey, ObjectPtr> fresh;
  for (Json& item : list->items) {
    ObjectKey key = KeyOf(item);
    fresh.insert_or_assign(std::move(key), std::make_shared<const Json>(std::move(item)));
  }
  Replace(fresh, list->resource_version);
  return Next::kWatch;
}

// One watch. With `initial` it is a WatchList: the state comes first, up to a marked bookmark, and the stream
// goes on.
Reflector::Next Reflector::Stream(bool initial, const std::stop_token& stop) {
  const base::MonotonicTime started = clock_.Now();
  bool collecting = initial;
  bool any_event = false;
  std::map<ObjectKey, ObjectPtr> fresh;
  const auto on_event = [&](WatchEvent&& event) {
    any_event = true;
    if (!collecting) {
      Handle(std::move(event));
    } else if (event.type == EventType::kBookmark) {
      if (!EndsInitialEvents(event.object)) return true;
      collecting = false;
      Replace(fresh, ResourceVersion(event.object));
    } else {
      // The resource version of a synthetic ADDED is the object's own and older than the state: never to
      // watch from.
      ObjectKey key = KeyOf(event.object);
      if (event.type == EventType::kDeleted) {
        fresh.erase(key);
      } else {
        fresh.insert_or_assign(std::move(key), Prepare(std::move(event.object)));
      }
    }
    return true;
  };
  const WatchOptions options = MakeWatchOptions(initial);
  const Status ended = client_.Watch(resource_, options, on_event, stop);
  if (stop.stop_requested()) return Next::kWatch;
  const auto lasted = clock_.Now() - started;
  if (collecting) return AfterFailedStart(ended, lasted > options.timeout * 3 / 4, stop);
  return AfterWatch(ended, !any_event && lasted < kDiedAtOnce, stop);
}

WatchOptions Reflector::MakeWatchOptions(bool initial) {
  WatchOptions options;
  options.ns = options_.ns;
  options.label_selector = options_.label_selector;
  options.field_selector = options_.field_selector;
  options.resource_version = initial && expired_ ? "" : resource_version();
  options.send_initial_events = initial;
  options.timeout = kShortestWatch + seconds(random_.Below(std::uint64_t(kWatchSpread.count())));
  options.pruning = options_.pruning;
  if (!initial) options.on_open = [this] { Succeeded(); };
  return options;
}

Reflector::Next Reflector::AfterFailedStart(const Status& ended, bool ran_out, const std::stop_token& stop) {
  // A server that goes down, or a proxy, ends a stream in order as well: that says nothing of what it has.
  if (ended && !ran_out) return ListAndReplace(stop);
  if (ended || ended.error().code == Code::kInvalid || ended.error().code == Code::kUnimplemented) {
    // An older server refuses sendInitialEvents, or ignores it and never marks the end, until the watch's time is over.
    Say(fmt::format("List {}: the server has no WatchList, listing instead", resource_.Title()));
    watch_list_works_ = false;
    return ListAndReplace(stop);
  }
  switch (ended.error().code) {
    case Code::kExpired:
      expired_ = true;
      [[fallthrough]];
    case Code::kUnavailable:
    case Code::kThrottled:
    case Code::kTimeout:
    case Code::kUnauthorized:
      Failed(ended.error());
      BackOff(stop, ended.error().retry_after);
      return Next::kList;
    default:
      return ListAndReplace(stop);
  }
}

Reflector::Next Reflector::AfterWatch(const Status& ended, bool died_at_once, const std::stop_token& stop) {
  if (ended) {
    internal_errors_ = 0;
    if (died_at_once) {
      Failed({Code::kUnavailable, fmt::format("watch {}: ended at once", resource_.Title()), std::nullopt});
      BackOff(stop);
    }
    return Next::kWatch;
  }
  const base::Error& error = ended.error();
  Failed(error);
  Next next = Next::kList;
  switch (error.code) {
    case Code::kExpired:
      expired_ = true;
      break;
    case Code::kUnavailable:
    case Code::kThrottled:
    case Code::kTimeout:
    case Code::kUnauthorized:
      next = Next::kWatch;
      break;
    case Code::kInternal:
      if (++internal_errors_ <= kInternalRetries) next = Next::kWatch;
      break;
    default:
      break;
  }
  if (next == Next::kList) internal_errors_ = 0;
  // Also before listing anew: after a compaction every reflector of the cluster comes at once.
  BackOff(stop, error.retry_after);
  return next;
}

void Reflector::Handle(WatchEvent&& event) {
  const std::string version = ResourceVersion(event.object);
  const ObjectKey key = KeyOf(event.object);
  if (event.type == EventType::kDeleted) {
    Remove(key);
  } else if (event.type != EventType::kBookmark) {
    Upsert(key, Prepare(std::move(event.object)));
  }
  Advance(version);
  Succeeded();
}

void Reflector::Replace(const std::map<ObjectKey, ObjectPtr>& fresh, const std::string& resource_version) {
  for (const ObjectKey& key : store_.Keys()) {
    if (!fresh.contains(key)) Remove(key);
  }
  for (const auto& [key, object] : fresh) Upsert(key, object);
  Advance(resource_version);
  expired_ = false;
  internal_errors_ = 0;
  Succeeded();
  const bool first = !store_.synced();
  store_.MarkSynced();
  if (first && options_.on_synced) options_.on_synced();
}

void Reflector::Upsert(const ObjectKey& key, const ObjectPtr& object) {
  if (key.name.empty()) return Say(fmt::format("Ignored {} without a name", resource_.Title()));
  const ObjectPtr old = store_.Get(key);
  if (old != nullptr && Uid(*old) == Uid(*object) && ResourceVersion(*old) == ResourceVersion(*object))
    return;
  store_.Put(key, object);
  if (old == nullptr) return Notify(ChangeType::kAdded, key, nullptr, object);
  if (Uid(*old) == Uid(*object)) return Notify(ChangeType::kModified, key, old, object);
  Notify(ChangeType::kDeleted, key, old, nullptr);
  Notify(ChangeType::kAdded, key, nullptr, object);
}

void Reflector::Remove(const ObjectKey& key) {
  if (const ObjectPtr old = store_.Erase(key)) Notify(ChangeType::kDeleted, key, old, nullptr);
}

void Reflector::Notify(ChangeType type, const ObjectKey& key, const ObjectPtr& old,
                       const ObjectPtr& current) const {
  if (options_.on_change) options_.on_change(type, key, old, current);
}

ObjectPtr Reflector::Prepare(Json&& object) const {
  return std::make_shared<const Json>(options_.transform ? options_.transform(std::move(object))
                                                         : std::move(object));
}

void Reflector::Advance(const std::string& resource_version) {
  if (resource_version.empty()) return;
  const base::MonotonicTime now = clock_.Now();
  const std::lock_guard lock(mutex_);
  resource_version_ = resource_version;
  heard_at_ = now;
}

void Reflector::Succeeded() {
  const std::lock_guard lock(mutex_);
  healthy_ = true;
  last_error_.reset();
}

void Reflector::Failed(const base::Error& error) {
  Say(base::ToString(error));
  const std::lock_guard lock(mutex_);
  healthy_ = false;
  last_error_ = error;
}

void Reflector::BackOff(const std::stop_token& stop, std::optional<milliseconds> at_least) {
  const base::MonotonicTime now = clock_.Now();
  if (now - last_failure_ > kBackOffReset) back_off_ = {};
  last_failure_ = now;
  back_off_ = back_off_.count() == 0 ? kFirstBackOff
                                     : std::min<std::chrono::nanoseconds>(2 * back_off_, kLongestBackOff);
  const std::chrono::nanoseconds delay = random_.Jitter(back_off_);
  clock_.SleepFor(at_least ? std::max<std::chrono::nanoseconds>(delay, *at_least) : delay, stop);
}

void Reflector::Say(const std::string& line) const {
  if (options_.log) options_.log(line);
}

}  // namespace heddle::kube
