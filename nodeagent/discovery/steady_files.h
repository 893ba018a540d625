#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_tree.h"

namespace heddle::nodeagent {

// Passes reads through, and keeps a device while the kernel cannot answer for it. Port queries of a busy card fail
// with EIO and succeed a second later; a device that goes for that second takes its rail and its alarms along.
//
// What a device is (name, GUID, PCI address, link layer) stays as it was read last. How it does (state, rate, carrier,
// counters) is never taken from before: it is unknown until it can be read. Either way the file is a problem, and so
// is one that nobody may read. Absent files, and those of which the kernel says that they have no value now, are
// answers and stay as they are.
//
// Thread rule: every member may be called from any thread.
class SteadyFileTree final : public base::FileTree {
 public:
  explicit SteadyFileTree(const base::FileTree& files) : files_(files) {}

  [[nodiscard]] base::Result<std::string> Read(std::string_view path) const override;
  [[nodiscard]] base::Result<std::vector<std::string>> List(std::string_view path) const override;
  [[nodiscard]] base::Result<std::string> ReadLink(std::string_view path) const override;

  // A look begins: what the one before did not ask for is forgotten, and so are its problems.
  void Begin();
  // Sentences since Begin, each once, 20 at most and how many more.
  std::vector<std::string> problems() const;

 private:
  template <class T>
  struct Kept {
    T value;
    std::uint64_t look = 0;  // that asked for it last
  };
  template <class T>
  using Answers = std::map<std::string, Kept<T>, std::less<>>;

  template <class T>
  base::Result<T> Keep(Answers<T>& answers, std::string_view path, base::Result<T> fresh, bool lasting) const;

  const base::FileTree& files_;
  mutable std::mutex mutex_;  // guards what follows
  mutable Answers<std::string> texts_, links_;
  mutable Answers<std::vector<std::string>> folders_;
  mutable std::vector<std::string> problems_;
  mutable std::size_t more_ = 0;
  std::uint64_t look_ = 0;
};

}  // namespace heddle::nodeagent
