#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/random.h"
#include "kube/client.h"
#include "kube/work_queue.h"

namespace heddle::kube {

// Who an event is about.
struct ObjectReference {
  std::string api_version, kind, ns, name, uid;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 in it for a pointer
  friend auto operator<=>(const ObjectReference&, const ObjectReference&) = default;
};
ObjectReference ReferenceTo(
    const Json& object);  // needs apiVersion and kind, which our lists and watches fill in

enum class Severity : std::uint8_t { kNormal, kWarning };

struct EventRecorderOptions {
  std::string component;  // "heddle-extender"
  std::string instance;   // the pod's or host's name
  std::size_t max_queued = 1000;
  // Of one event, with 2 s between them and up to a minute later on; 0: until the server takes it, or refuses it.
  int tries = 3;
  // Of one object: client-go's spam filter (record/events_cache.go) allows 25, then one in five minutes.
  int burst = 25;
  std::chrono::nanoseconds refill = std::chrono::minutes(5);
  Log log;
};

// Says to people what happened, as core/v1 Events. Nothing waits for it and nothing depends on it: what the
// server does not take, or what is too much, is dropped and counted. The same event again raises `count` by a
// patch. Events about cluster-scoped objects go to "default", as kubectl expects. Thread rule: Record from
// any thread, it never blocks on the network; Run on one thread.
class EventRecorder {
 public:
  EventRecorder(Client& client, base::Clock& clock, base::Random random, EventRecorderOptions options);

  // reason is one UpperCamel word; a note over 1 KiB is cut at a character border.
  void Record(const ObjectReference& about, Severity severity, std::string_view reason,
              std::string_view note);
  void Run(std::stop_token stop);
  // Sends what is queued now and returns; for tests and for a last word before exit.
  void Flush(std::stop_token stop);
  std::uint64_t dropped() const;

 private:
  struct Note {
    ObjectReference about;
    Severity severity;
    std::string reason, text;
    base::WallTime at;
  };
  struct Series {
    ObjectKey event;
    std::int64_t count = 0;
    base::MonotonicTime last{};
  };
  struct Budget {
    double tokens = 0;
    base::MonotonicTime at{};
  };
  bool Allow(const ObjectReference& about);
  std::optional<Note> Take();
  void Send(const Note& note, const std::stop_token& stop);
  base::Status Raise(Series& series, const Note& note, const std::stop_token& stop);
  base::Status Create(Series& series, const Note& note, const std::stop_token& stop);

  Client& client_;
  base::Clock& clock_;
  const EventRecorderOptions options_;
  WorkQueue wake_;
  mutable std::mutex mutex_;
  base::Random random_;
  std::deque<Note> queue_;
  std::map<ObjectReference, Budget> budgets_;
  std::uint64_t dropped_ = 0;
  std::map<std::string, Series> series_;  // Run's thread only
};

}  // namespace heddle::kube
