#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace heddle::nodeagent {

// How many files may be kept open at once: half of what this process may open (RLIMIT_NOFILE), 1024 at most. The
// kernel keeps a page for each.
std::size_t MostKeptFiles();

// One small file that is read every few seconds, open in between: the walk over its path costs more than what it
// says. sysfs makes the text anew for each read from its beginning, and neither a device nor a module waits for who has
// one of its files open. A file of a device that is gone says so and is opened anew, and so is one whose path has
// another file. One that goes with its device when that is renamed is still that device's: whoever keeps a file lets
// go of it when he learns what its path means now.
// Thread rule: one thread.
class KeptFile {
 public:
  KeptFile() = default;
  KeptFile(KeptFile&& other) noexcept;
  KeptFile& operator=(KeptFile&& other) noexcept;
  ~KeptFile() { Close(); }

  // All of the file `path` below `root`, at most 4,095 bytes, without the blanks and newlines that it ends in; the same
  // file each time. Nothing: it cannot be read this way, and the path has to say why. `kept` counts the files that are
  // open, `most` of them at most, and outlives this.
  std::optional<std::string> Read(const std::string& root, const std::string& path, std::size_t& kept,
                                  std::size_t most);

 private:
  void Close();

  int descriptor_ = -1;
  std::size_t* kept_ = nullptr;  // where it is counted; not null while it is open
};

}  // namespace heddle::nodeagent
