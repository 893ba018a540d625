#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_tree.h"

namespace heddle::test {

// Another tree in which some paths fail, and in which something happens in the middle of a look.
class FaultyFileTree final : public base::FileTree {
 public:
  explicit FaultyFileTree(const base::FileTree& files) : files_(files) {}

  // Reads, lists and links of `path` and of all below it, until Heal.
  void Fail(std::string path, base::Code code = base::Code::kUnavailable,
            std::string why = "Input/output error") {
    failures_.emplace_back(std::move(path), base::Error{code, std::move(why), std::nullopt});
  }
  void Heal() { failures_.clear(); }
  // Before the first read below `path`, once.
  void Before(std::string path, std::function<void()> happens) {
    events_[std::move(path)] = std::move(happens);
  }
  bool happened() const { return events_.empty(); }

  base::Result<std::string> Read(std::string_view path) const override {
    if (auto failure = FailureOf(path)) return base::Fail(*std::move(failure));
    return files_.Read(path);
  }
  base::Result<std::vector<std::string>> List(std::string_view path) const override {
    if (auto failure = FailureOf(path)) return base::Fail(*std::move(failure));
    return files_.List(path);
  }
  base::Result<std::string> ReadLink(std::string_view path) const override {
    if (auto failure = FailureOf(path)) return base::Fail(*std::move(failure));
    return files_.ReadLink(path);
  }

 private:
  static bool IsBelow(std::string_view path, std::string_view folder) {
    return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
  }
  std::optional<base::Error> FailureOf(std::string_view path) const {
    for (auto event = events_.begin(); event != events_.end(); ++event) {
      if (!IsBelow(path, event->first)) continue;
      const std::function<void()> happens = std::move(event->second);
      events_.erase(event);
      happens();
      break;
    }
    for (const auto& [folder, error] : failures_) {
      if (IsBelow(path, folder))
        return base::Error{error.code, std::string(path) + ": " + error.message, std::nullopt};
    }
    return std::nullopt;
  }

  const base::FileTree& files_;
  std::vector<std::pair<std::string, base::Error>> failures_;
  mutable std::map<std::string, std::function<void()>> events_;
};

}  // namespace heddle::test
