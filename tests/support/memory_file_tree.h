#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_tree.h"

namespace heddle::test {

// Files in memory under the same contract as DiskFileTree, and a record of what was read.
class MemoryFileTree final : public base::FileTree {
 public:
  MemoryFileTree() = default;
  // {"sys/class/net/eth0/mtu", "1500\n"}, …
  explicit MemoryFileTree(std::map<std::string, std::string> files);

  void Write(std::string_view path, std::string content);
  void Link(std::string_view path, std::string target);  // followed by Read and List, as on disk
  void MakeFolder(std::string_view path);
  void Remove(std::string_view path);                        // a file, a link, or a folder with all in it
  void FailReads(std::string_view path, base::Error error);  // of this file, from now on

  base::Result<std::string> Read(std::string_view path) const override;
  base::Result<std::vector<std::string>> List(std::string_view path) const override;
  base::Result<std::string> ReadLink(std::string_view path) const override;

  std::vector<std::string> reads() const;  // every path that Read was asked for, in order

 private:
  struct Entry {
    enum class Kind { kFile, kFolder, kLink } kind = Kind::kFile;
    std::string content;
  };
  base::Result<std::string> Follow(std::string_view path, bool last, int depth) const;

  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, base::Error> failures_;
  mutable std::vector<std::string> reads_;
};

}  // namespace heddle::test
