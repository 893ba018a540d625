#include "nodeagent/recording/recording.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>

#include "nodeagent/recording/tar.h"

namespace heddle::nodeagent {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxLinks = 40;  // as the kernel has it: more is a loop

void PushParts(std::deque<std::string>& parts, std::string_view path) {
  std::deque<std::string> more;
  for (const auto& part : fs::path(path)) {
    if (!part.empty() && part != "/" && part != ".") more.push_back(part.string());
  }
  parts.insert(parts.begin(), more.begin(), more.end());
}

// Whether a link in the folder `at` leads above the root. What is behind it is recorded as if it lay here.
bool LeadsOut(const fs::path& at, const std::string& target) {
  const fs::path end = (at / target).lexically_normal();
  return !target.starts_with('/') && !end.empty() && *end.begin() == "..";
}

base::Error Failure(const fs::path& path, const std::error_code& error) {
  return base::Error{base::Code::kUnavailable, fmt::format("write {}: {}", path.string(), error.message()),
                     std::nullopt};
}

base::Status MakeFolder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  return error ? base::Status(base::Fail(Failure(folder, error))) : base::Status();
}

base::Status WriteFile(const fs::path& path, const std::string& content) {
  TRY(MakeFolder(path.parent_path()));
  std::ofstream file(path, std::ios::binary);
  file << content;
  file.close();
  if (!file)
    return base::Fail(base::Code::kUnavailable, fmt::format("write {}: is there space left?", path.string()));
  return {};
}

}  // namespace

std::string RecordingFileTree::Place(std::string_view path, bool last) const {
  std::deque<std::string> ahead;
  PushParts(ahead, path);
  fs::path at;
  int followed = 0;
  while (!ahead.empty()) {
    const std::string part = std::move(ahead.front());
    ahead.pop_front();
    if (part == "..") {
      at = at.parent_path();
      continue;
    }
    const fs::path here = at / part;
    const bool follow = last || !ahead.empty();
    const auto target = follow && followed < kMaxLinks ? files_.ReadLink(here.string())
                                                       : base::Fail(base::Code::kNotFound, "");
    if (!target || LeadsOut(at, *target)) {
      at = here;
      continue;
    }
    ++followed;
    links_[here.string()] = *target;
    if (target->starts_with('/')) at.clear();
    PushParts(ahead, *target);
  }
  return at.string();
}

base::Result<std::string> RecordingFileTree::Read(std::string_view path) const {
  auto content = files_.Read(path);
  if (content) {
    const std::lock_guard lock(mutex_);
    read_[Place(path, true)] = *content;
  }
  return content;
}

base::Result<std::vector<std::string>> RecordingFileTree::List(std::string_view path) const {
  auto names = files_.List(path);
  if (!names) return names;
  const std::lock_guard lock(mutex_);
  const std::string place = Place(path, true);
  folders_.insert(place);
  // Whoever lists a folder counts its entries, read or not. Links are kept as such; what is a folder stays
  // one.
  for (const std::string& name : *names) {
    std::string entry = place;
    if (!entry.empty()) entry += '/';
    entry += name;
    if (const auto target = files_.ReadLink(entry); target && !LeadsOut(place, *target)) {
      links_[entry] = *target;
    } else if (files_.List(entry)) {
      folders_.insert(entry);
    }
  }
  return names;
}

base::Result<std::string> RecordingFileTree::ReadLink(std::string_view path) const {
  auto target = files_.ReadLink(path);
  if (target) {
    const std::lock_guard lock(mutex_);
    const fs::path link = Place(path, false);
    if (!LeadsOut(link.parent_path(), *target)) links_[link.string()] = *target;
  }
  return target;
}

RecordedFiles RecordingFileTree::Recorded(const std::map<std::string, std::string>& extra) const {
  const std::lock_guard lock(mutex_);
  RecordedFiles recorded{read_, links_, folders_};
  for (const auto& [path, content] : extra) recorded.files[path] = content;
  return recorded;
}

std::map<std::string, std::string> RecordingFileTree::files() const {
  const std::lock_guard lock(mutex_);
  return read_;
}

base::Status WriteRecording(const RecordedFiles& recorded, const std::string& folder) {
  const fs::path root(folder);
  std::error_code error;
  if (fs::exists(root, error) && !fs::is_empty(root, error)) {
    return base::Fail(base::Code::kAlreadyExists, fmt::format("{} is not empty: name a new folder", folder));
  }
  TRY(MakeFolder(root));
  for (const std::string& path : recorded.folders) TRY(MakeFolder(root / path));
  for (const auto& [path, content] : recorded.files) TRY(WriteFile(root / path, content));
  for (const auto& [path, target] : recorded.links) {
    const fs::path link = root / path;
    TRY(MakeFolder(link.parent_path()));
    // A recording may be looked at on another machine: no link leads out of it.
    if (target.starts_with('/') || fs::exists(fs::symlink_status(link, error))) continue;
    fs::create_symlink(target, link, error);
    if (error) return base::Fail(Failure(link, error));
  }
  return {};
}

base::Status Deliver(const RecordedFiles& recorded, const std::string& to) {
  if (to != kToStdout) return WriteRecording(recorded, to);
  if (::isatty(STDOUT_FILENO) != 0) {
    return base::Fail(base::Code::kInvalid,
                      "an archive is no text for a terminal: send it into a file, as in record - > node.tar");
  }
  const std::string tar = ToTar(recorded);
  if (std::fwrite(tar.data(), 1, tar.size(), stdout) != tar.size() || std::fflush(stdout) != 0)
    return base::Fail(base::Code::kUnavailable, "write the archive: standard output took not all of it");
  return {};
}

}  // namespace heddle::nodeagent
