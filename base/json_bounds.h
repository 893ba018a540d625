#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace heddle::base {

// Whether a text is worth a tree: four megabytes of brackets would become 300 of memory. Counts what would
// become values, and how deep they nest; says nothing of whether it is JSON.
bool IsBounded(std::string_view json, std::size_t max_values, int max_depth);
// How many values it has: exactly, but that an empty object or array counts twice. Nothing where it is not so bounded.
std::optional<std::size_t> CountValues(std::string_view json, std::size_t max_values, int max_depth);

// Where the JSON value at the start of `text` ends: behind the bracket that closes its first. The whole length where
// none does.
std::size_t EndOfValue(std::string_view text);

// The line, counted from 1, of a byte of `text`.
int LineOf(std::string_view text, std::size_t byte);

}  // namespace heddle::base
