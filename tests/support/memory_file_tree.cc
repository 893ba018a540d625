#include "tests/support/memory_file_tree.h"

#include <algorithm>
#include <filesystem>
#include <set>

namespace heddle::test {
namespace {

using base::Code;
using base::Fail;

constexpr std::size_t kMaxFileBytes = 4 << 20;  // base::DiskFileTree's bound

bool HasDotDot(std::string_view path) {
  const std::filesystem::path parts(path);
  return std::any_of(parts.begin(), parts.end(), [](const auto& part) { return part == ".."; });
}

// "/sys//class/" → "sys/class"; "." and "" → "".
std::string Normal(std::string_view path) {
  std::string normal = std::filesystem::path(path).lexically_normal().relative_path().string();
  while (!normal.empty() && normal.back() == '/') normal.pop_back();
  return normal == "." ? "" : normal;
}

std::string ParentOf(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

}  // namespace

MemoryFileTree::MemoryFileTree(std::map<std::string, std::string> files) {
  for (auto& [path, content] : files) Write(path, std::move(content));
}

void MemoryFileTree::Write(std::string_view path, std::string content) {
  MakeFolder(ParentOf(Normal(path)));
  const std::lock_guard lock(mutex_);
  entries_[Normal(path)] = Entry{Entry::Kind::kFile, std::move(content)};
}

void MemoryFileTree::Link(std::string_view path, std::string target) {
  MakeFolder(ParentOf(Normal(path)));
  const std::lock_guard lock(mutex_);
  entries_[Normal(path)] = Entry{Entry::Kind::kLink, std::move(target)};
}

void MemoryFileTree::MakeFolder(std::string_view path) {
  const std::lock_guard lock(mutex_);
  for (std::string at = Normal(path); !at.empty(); at = ParentOf(at)) {
    entries_.try_emplace(at, Entry{Entry::Kind::kFolder, ""});
  }
}

void MemoryFileTree::Remove(std::string_view path) {
  const std::string normal = Normal(path);
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const auto& entry) {
    return entry.first == normal || entry.first.starts_with(normal + "/");
  });
}

void MemoryFileTree::FailReads(std::string_view path, base::Error error) {
  const std::lock_guard lock(mutex_);
  failures_[Normal(path)] = std::move(error);
}

// The entry that the path leads to, links resolved; `last` says whether the last step's link is followed too.
base::Result<std::string> MemoryFileTree::Follow(std::string_view path, bool last, int depth) const {
  if (depth > 20) return Fail(Code::kUnavailable, std::string(path) + ": Too many levels of symbolic links");
  std::string at;
  const std::filesystem::path whole(Normal(path));
  for (auto step = whole.begin(); step != whole.end(); ++step) {
    at = at.empty() ? step->string() : at + "/" + step->string();
    const auto entry = entries_.find(at);
    if (entry == entries_.end())
      return Fail(Code::kNotFound, std::string(path) + ": No such file or directory");
    const bool is_last = std::next(step) == whole.end();
    if (entry->second.kind != Entry::Kind::kLink || (is_last && !last)) continue;
    const std::string& target = entry->second.content;
    ASSIGN_OR_RETURN(at,
                     Follow(target.starts_with('/') ? target : ParentOf(at) + "/" + target, true, depth + 1));
  }
  return at;
}

base::Result<std::string> MemoryFileTree::Read(std::string_view path) const {
  const std::lock_guard lock(mutex_);
  reads_.emplace_back(path);
  if (HasDotDot(path)) return Fail(Code::kInvalid, std::string(path) + ": a path may not contain \"..\"");
  if (const auto failure = failures_.find(Normal(path)); failure != failures_.end())
    return Fail(failure->second);
  ASSIGN_OR_RETURN(const std::string at, Follow(path, true, 0));
  const auto entry = entries_.find(at);
  if (entry == entries_.end() || entry->second.kind != Entry::Kind::kFile) {
    return Fail(Code::kUnavailable, std::string(path) + ": Is a directory");
  }
  if (entry->second.content.size() > kMaxFileBytes)
    return Fail(Code::kTooLarge, std::string(path) + ": too large");
  return entry->second.content;
}

base::Result<std::vector<std::string>> MemoryFileTree::List(std::string_view path) const {
  const std::lock_guard lock(mutex_);
  if (HasDotDot(path)) return Fail(Code::kInvalid, std::string(path) + ": a path may not contain \"..\"");
  ASSIGN_OR_RETURN(const std::string at, Follow(path, true, 0));
  if (const auto entry = entries_.find(at);
      entry != entries_.end() && entry->second.kind == Entry::Kind::kFile) {
    return Fail(Code::kNotFound, std::string(path) + ": Not a directory");
  }
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) {
    if (ParentOf(name) == at) names.push_back(at.empty() ? name : name.substr(at.size() + 1));
  }
  std::sort(names.begin(), names.end());
  return names;
}

base::Result<std::string> MemoryFileTree::ReadLink(std::string_view path) const {
  const std::lock_guard lock(mutex_);
  if (HasDotDot(path)) return Fail(Code::kInvalid, std::string(path) + ": a path may not contain \"..\"");
  ASSIGN_OR_RETURN(const std::string at, Follow(path, false, 0));
  const auto entry = entries_.find(at);
  if (entry == entries_.end() || entry->second.kind != Entry::Kind::kLink) {
    return Fail(Code::kInvalid, std::string(path) + ": Invalid argument");
  }
  return entry->second.content;
}

std::vector<std::string> MemoryFileTree::reads() const {
  const std::lock_guard lock(mutex_);
  return reads_;
}

}  // namespace heddle::test
