#pragma once

#include <memory>
#include <set>
#include <stop_token>
#include <string>

namespace heddle::nodeagent {

// What the kernel says of its own accord about DCB: that somebody wrote it, we or another. It tells only when to look.
// Of interfaces, and so of their MTU, the monitor hears; the rest (watchdog, files of mlx5, DCBX modes) is changed
// without a word, and found by looking from time to time. Thread rule: Wait on one thread, the rest from any.
class QosEvents {
 public:
  QosEvents() = default;
  QosEvents(const QosEvents&) = delete;
  QosEvents& operator=(const QosEvents&) = delete;
  virtual ~QosEvents() = default;

  struct Changed {
    std::set<std::string> netdevs;
    bool lost = false;  // there was more than could be taken: look at all of them
    friend bool operator==(const Changed&, const Changed&) = default;
  };
  // Blocks until something was changed, or stop is asked, then with nothing.
  virtual Changed Wait(std::stop_token stop) = 0;
  // Why nothing will ever be heard; empty = it will. Wait then only waits for stop.
  virtual std::string closed() const = 0;
};

// The group RTNLGRP_DCB of rtnetlink, in the network namespace of this process. Needs no rights.
std::unique_ptr<QosEvents> OpenQosEvents();

}  // namespace heddle::nodeagent
