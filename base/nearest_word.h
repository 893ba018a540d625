#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heddle::base {

// Which of `words` somebody meant who typed another: the one that begins so, or else the one with the fewest letters
// written otherwise, at most a third of them; the first of several. Empty = none is near.
std::string NearestWord(std::string_view typed, const std::vector<std::string>& words);

// "a, b or c"
std::string OneOf(const std::vector<std::string>& words);

}  // namespace heddle::base
