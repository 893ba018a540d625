#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string_view>

namespace heddle::kube {

// As an Indexed Job says in status.completedIndexes which of its pods have succeeded, "0-3,7": those below `pods`. What
// cannot be read is left out. Requires: pods fits int. Thread rule: any.
std::set<int> ReadIndexes(std::string_view text, std::int64_t pods);

// All of these digits or nothing.
std::optional<std::int64_t> ReadIndex(std::string_view digits);

}  // namespace heddle::kube
