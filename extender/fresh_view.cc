#include "extender/fresh_view.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

namespace heddle::extender {
namespace {

constexpr std::chrono::seconds kOverdue{30};
constexpr std::size_t kLostKept = 256;

std::optional<std::uint64_t> Number(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

bool AtLeastAsNew(const std::string& a, const std::string& b) {
  const auto left = Number(a), right = Number(b);
  return left && right ? *left >= *right : a == b;
}

kube::ObjectPtr FreshView::Merge(const kube::ObjectPtr& cached, const Entry& entry, bool& settled) const {
  settled = false;
  if (entry.object == nullptr) {
    // The same one is about to vanish from the cache, or to come into it yet: then CacheLost ends this. Another uid
    // under this name is a later object.
    if (cached == nullptr || kube::Uid(*cached) == entry.uid) return nullptr;
    settled = true;
    return cached;
  }
  if (cached != nullptr &&
      AtLeastAsNew(kube::ResourceVersion(*cached), kube::ResourceVersion(*entry.object))) {
    settled = true;
    return cached;
  }
  return entry.object;
}

kube::ObjectPtr FreshView::Get(const kube::ObjectKey& key) const {
  const std::lock_guard lock(mutex_);
  kube::ObjectPtr cached = store_.Get(key);
  const auto found = newer_.find(key);
  if (found == newer_.end()) return cached;
  bool settled = false;
  kube::ObjectPtr merged = Merge(cached, found->second, settled);
  if (settled) newer_.erase(found);
  return merged;
}

kube::SortedObjects FreshView::List() const {
  const std::lock_guard lock(mutex_);
  kube::SortedObjects cached = store_.List();
  if (relaid_ || !cached.SharesWith(listed_from_)) {
    listed_ = newer_.empty() ? cached : Laid(cached);
    listed_from_ = std::move(cached);
    relaid_ = false;
  }
  return listed_;
}

// The store's list is long and in order, what lies over it is short: each entry is looked up in it.
kube::SortedObjects FreshView::Laid(const kube::SortedObjects& cached) const {
  std::vector<kube::ObjectPtr> list = cached.items();
  const auto before = [](const kube::ObjectPtr& a, const kube::ObjectPtr& b) {
    return kube::KeyOf(*a) < kube::KeyOf(*b);
  };
  std::vector<std::pair<std::size_t, kube::ObjectPtr>> replaced;  // null = gone
  std::vector<kube::ObjectPtr> added;
  for (auto it = newer_.begin(); it != newer_.end();) {
    const auto at = std::lower_bound(
        list.begin(), list.end(), it->first,
        [](const kube::ObjectPtr& a, const kube::ObjectKey& b) { return kube::KeyOf(*a) < b; });
    const bool known = at != list.end() && kube::KeyOf(**at) == it->first;
    bool settled = false;
    kube::ObjectPtr object = Merge(known ? *at : nullptr, it->second, settled);
    if (known) {
      replaced.emplace_back(at - list.begin(), std::move(object));
    } else if (object != nullptr) {
      added.push_back(std::move(object));
    }
    it = settled ? newer_.erase(it) : std::next(it);
  }
  for (auto& [index, object] : replaced) list[index] = std::move(object);
  std::erase(list, nullptr);
  if (added.empty()) return list;
  const auto middle = std::ptrdiff_t(list.size());
  list.insert(list.end(), std::make_move_iterator(added.begin()), std::make_move_iterator(added.end()));
  std::inplace_merge(list.begin(), list.begin() + middle, list.end(), before);
  return list;
}

void FreshView::Saw(kube::Json object, base::MonotonicTime now) {
  kube::ObjectKey key = kube::KeyOf(object);
  std::string uid = kube::Uid(object);
  auto shared = std::make_shared<const kube::Json>(std::move(object));
  const std::lock_guard lock(mutex_);
  relaid_ = true;
  if (std::find(lost_.begin(), lost_.end(), uid) != lost_.end()) return;
  const kube::ObjectPtr cached = store_.Get(key);
  if (cached != nullptr && AtLeastAsNew(kube::ResourceVersion(*cached), kube::ResourceVersion(*shared))) {
    newer_.erase(key);
    return;
  }
  const auto laid = newer_.find(key);
  if (laid != newer_.end() && laid->second.object != nullptr &&
      AtLeastAsNew(kube::ResourceVersion(*laid->second.object), kube::ResourceVersion(*shared))) {
    // Read again just now, and so it is.
    if (kube::ResourceVersion(*laid->second.object) == kube::ResourceVersion(*shared))
      laid->second.since = now;
    return;
  }
  newer_[std::move(key)] = Entry{std::move(shared), std::move(uid), now};
}

void FreshView::Gone(const kube::ObjectKey& key, const std::string& uid, base::MonotonicTime now) {
  const std::lock_guard lock(mutex_);
  relaid_ = true;
  const auto laid = newer_.find(key);
  const bool another = laid != newer_.end() && laid->second.object != nullptr && laid->second.uid != uid;
  if (another) return;  // it has the name now
  const kube::ObjectPtr cached = store_.Get(key);
  const bool shown = cached != nullptr && kube::Uid(*cached) == uid;
  if (!shown && std::find(lost_.begin(), lost_.end(), uid) != lost_.end()) return;  // nor will it be again
  newer_[key] = Entry{nullptr, uid, now};
}

void FreshView::CacheLost(const kube::ObjectKey& key, const std::string& uid) {
  const std::lock_guard lock(mutex_);
  relaid_ = true;
  const auto found = newer_.find(key);
  if (found != newer_.end() && found->second.uid == uid) newer_.erase(found);
  lost_.push_back(uid);
  if (lost_.size() > kLostKept) lost_.pop_front();
}

std::vector<kube::ObjectPtr> FreshView::SawAll(const kube::ObjectChanges& list, base::MonotonicTime now) {
  std::set<kube::ObjectKey> listed(list.unchanged.begin(), list.unchanged.end());
  for (const kube::Json& object : list.objects) {
    listed.insert(kube::KeyOf(object));
    const kube::ObjectPtr cached = store_.Get(kube::KeyOf(object));
    if (cached == nullptr || kube::ResourceVersion(*cached) != kube::ResourceVersion(object))
      Saw(object, now);
  }
  for (const kube::ObjectPtr& cached : store_.List()) {
    const kube::ObjectKey key = kube::KeyOf(*cached);
    if (listed.contains(key) || !AtLeastAsNew(list.resource_version, kube::ResourceVersion(*cached)))
      continue;
    Gone(key, kube::Uid(*cached), now);
  }
  std::vector<kube::ObjectPtr> vanished;
  const std::lock_guard lock(mutex_);
  relaid_ = true;
  for (auto it = newer_.begin(); it != newer_.end();) {
    const kube::ObjectPtr object = it->second.object;
    const kube::ObjectPtr cached = store_.Get(it->first);
    // What the cache still shows of that name may be one from before it.
    const bool unseen = object != nullptr &&
                        (cached == nullptr ||
                         (kube::Uid(*cached) != it->second.uid &&
                          !AtLeastAsNew(kube::ResourceVersion(*cached), kube::ResourceVersion(*object))));
    const bool gone = unseen && !listed.contains(it->first) &&
                      AtLeastAsNew(list.resource_version, kube::ResourceVersion(*object));
    if (gone) vanished.push_back(object);
    if (gone && cached != nullptr) it->second = Entry{nullptr, kube::Uid(*cached), now};
    it = gone && cached == nullptr ? newer_.erase(it) : std::next(it);
  }
  return vanished;
}

std::vector<kube::ObjectKey> FreshView::Overdue(base::MonotonicTime now) const {
  const std::lock_guard lock(mutex_);
  std::vector<kube::ObjectKey> keys;
  for (auto it = newer_.begin(); it != newer_.end();) {
    bool settled = false;
    const bool late = now - it->second.since >= kOverdue;
    // The cache may have caught up with nobody looking.
    if (late) (void)Merge(store_.Get(it->first), it->second, settled);
    if (late && !settled) keys.push_back(it->first);
    it = settled ? newer_.erase(it) : std::next(it);
  }
  return keys;
}

void FreshView::Forget(const kube::ObjectKey& key) {
  const std::lock_guard lock(mutex_);
  relaid_ = true;
  newer_.erase(key);
}

}  // namespace heddle::extender
