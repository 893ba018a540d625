#pragma once

#include <chrono>
#include <list>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "kube/http_server.h"
#include "operator/page/journal.h"
#include "operator/view.h"

namespace heddle::operators::page {

// ADDRESS:PORT on loopback. The page has no login, and kubectl port-forward, which has one, reaches loopback.
[[nodiscard]] base::Status CheckAddress(std::string_view listen);

// Whether a Host header names this machine's loopback. A name that somebody else's DNS points here does not, so that
// no page of his reads ours.
bool IsLocalHost(std::string_view host);

// The fabric page to a browser: the static files, /fabric/view.json and /fabric/about.json. GET and HEAD only.
// Thread rule: every member may be called from any thread. What is passed must outlive it.
class Page {
 public:
  struct Reads {
    const View& topologies;
    const View& gangs;
  };
  static constexpr std::chrono::seconds kLongestWait{20};
  static constexpr std::chrono::seconds kInterest{60};

  Page(base::Clock& clock, Reads reads, std::string instance)
      : clock_(clock), reads_(reads), journal_(std::move(instance)) {}

  // Waits for news up to kLongestWait where the request says so, on the caller's thread.
  kube::ServedAnswer Answer(const kube::ServedRequest& request);

  void Publish(const Pieces& pieces);
  // Whether somebody has asked for the view lately. What nobody looks at need not be made.
  bool wanted();
  void Stop();  // who waits gets an answer now, and nobody waits any more

 private:
  kube::ServedAnswer Route(const kube::ServedRequest& request);
  kube::ServedAnswer AnswerView(const kube::ServedRequest& request);
  kube::ServedAnswer AnswerAbout(const kube::ServedRequest& request) const;
  // Says where nothing is newer that nothing is. Nothing: there is no view yet.
  std::optional<std::string> NewerThan(const std::string& since, std::chrono::seconds wait);
  std::optional<std::string> NoNews() const;  // of this moment; under mutex_
  void WakeAll();

  base::Clock& clock_;
  const Reads reads_;
  std::mutex mutex_;  // guards what follows
  Journal journal_;
  std::list<std::stop_source> waiting_;
  std::optional<base::MonotonicTime> asked_;
  bool stopped_ = false;
};

}  // namespace heddle::operators::page
