#include "nodeagent/discovery/steady_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace heddle::nodeagent {
namespace {

constexpr std::size_t kMaxProblems = 20;
constexpr std::size_t kMaxKept = 4096;  // bytes of a file; longer ones are read anew each time or not at all

// Files of sysfs that say how a device does.
constexpr std::array<std::string_view, 10> kPassing{"state",
                                                    "phys_state",
                                                    "rate",
                                                    "lid",
                                                    "sm_lid",
                                                    "operstate",
                                                    "speed",
                                                    "carrier",
                                                    "current_link_speed",
                                                    "current_link_width"};
constexpr std::array<std::string_view, 3> kCounters{"/counters/", "/hw_counters/", "/statistics/"};

bool Lasts(std::string_view path) {
  const std::string_view name = path.substr(path.find_last_of('/') + 1);
  if (std::find(kPassing.begin(), kPassing.end(), name) != kPassing.end()) return false;
  return std::none_of(kCounters.begin(), kCounters.end(), [path](std::string_view folder) {
    return path.find(folder) != std::string_view::npos;
  });
}

// Only root may read a card's VPD, and what is in it seldom matters.
bool MayBeClosed(std::string_view path) {
  return path.ends_with("/vpd");
}

template <class T>
std::size_t SizeOf(const T& value) {
  return value.size();
}

}  // namespace

template <class T>
base::Result<T> SteadyFileTree::Keep(Answers<T>& answers, std::string_view path, base::Result<T> fresh,
                                     bool lasting) const {
  const std::lock_guard lock(mutex_);
  const auto before = answers.find(path);
  if (fresh) {
    if (!lasting || SizeOf(*fresh) > kMaxKept) return fresh;
    if (before == answers.end()) {
      answers.emplace(path, Kept<T>{*fresh, look_});
    } else {
      if (before->second.value != *fresh) before->second.value = *fresh;
      before->second.look = look_;
    }
    return fresh;
  }
  const base::Code code = fresh.error().code;
  const bool silent = code == base::Code::kUnavailable;
  const bool closed = code == base::Code::kForbidden && !MayBeClosed(path);
  if (!silent && !closed && code != base::Code::kTooLarge) {
    if (before != answers.end()) answers.erase(before);
    return fresh;
  }
  const bool known = silent && before != answers.end();
  std::string sentence = fresh.error().message + (known ? " (taken as it was before)" : "");
  if (std::find(problems_.begin(), problems_.end(), sentence) == problems_.end()) {
    if (problems_.size() < kMaxProblems) {
      problems_.push_back(std::move(sentence));
    } else {
      ++more_;
    }
  }
  if (!known) return fresh;
  before->second.look = look_;
  return before->second.value;
}

base::Result<std::string> SteadyFileTree::Read(std::string_view path) const {
  return Keep(texts_, path, files_.Read(path), Lasts(path));
}

base::Result<std::vector<std::string>> SteadyFileTree::List(std::string_view path) const {
  return Keep(folders_, path, files_.List(path), true);
}

base::Result<std::string> SteadyFileTree::ReadLink(std::string_view path) const {
  return Keep(links_, path, files_.ReadLink(path), true);
}

void SteadyFileTree::Begin() {
  const std::lock_guard lock(mutex_);
  const auto old = [this](const auto& entry) { return entry.second.look != look_; };
  std::erase_if(texts_, old);
  std::erase_if(links_, old);
  std::erase_if(folders_, old);
  problems_.clear();
  more_ = 0;
  ++look_;
}

std::vector<std::string> SteadyFileTree::problems() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> sentences = problems_;
  if (more_ > 0) sentences.push_back(fmt::format("{} more files cannot be read", more_));
  return sentences;
}

}  // namespace heddle::nodeagent
