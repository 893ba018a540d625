#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/memory_file_tree.h"

namespace heddle::fuzz {

// Records are one byte that names a file of `paths` and what it holds, ended by 0x1e.
inline void WriteRecords(std::string_view bytes, const std::vector<std::string>& paths,
                         test::MemoryFileTree& files) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\x1e');
    const std::string_view record = bytes.substr(0, end);
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    if (!record.empty())
      files.Write(paths[std::uint8_t(record.front()) % paths.size()], std::string(record.substr(1)));
  }
}

}  // namespace heddle::fuzz
