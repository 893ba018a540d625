#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_tree.h"
#include "nodeagent/recording/scrub.h"

namespace heddle::nodeagent {

// Passes reads through and remembers each at the place where the file really lies, with the links on the way
// there: what it wrote, replayed through another FileTree, gives the same answers. Thread rule: every member
// may be called from any thread.
class RecordingFileTree final : public base::FileTree {
 public:
  explicit RecordingFileTree(const base::FileTree& files) : files_(files) {}

  [[nodiscard]] base::Result<std::string> Read(std::string_view path) const override;
  [[nodiscard]] base::Result<std::vector<std::string>> List(std::string_view path) const override;
  [[nodiscard]] base::Result<std::string> ReadLink(std::string_view path) const override;

  // What was read until now, and `extra`: files at the root, such as nvml.yaml.
  RecordedFiles Recorded(const std::map<std::string, std::string>& extra) const;
  // Of that the files, by path below the root, without links in it.
  std::map<std::string, std::string> files() const;

 private:
  // Where `path` really is; records the links it went through. `last`: whether to follow the last part too.
  std::string Place(std::string_view path, bool last) const;

  const base::FileTree& files_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::string> read_;
  mutable std::map<std::string, std::string> links_;
  mutable std::set<std::string> folders_;
};

// Writes a recorded machine into `folder`, which must be empty or absent: nobody's files are overwritten.
[[nodiscard]] base::Status WriteRecording(const RecordedFiles& recorded, const std::string& folder);
[[nodiscard]] inline base::Status WriteRecording(const RecordingFileTree& recording,
                                                 const std::map<std::string, std::string>& extra,
                                                 const std::string& folder) {
  return WriteRecording(recording.Recorded(extra), folder);
}

// In place of a folder: the recording as a tar archive (tar.h) on standard output.
inline constexpr std::string_view kToStdout = "-";

// Into that folder, or as kToStdout says; a terminal is refused, since an archive is no text.
[[nodiscard]] base::Status Deliver(const RecordedFiles& recorded, const std::string& to);

}  // namespace heddle::nodeagent
