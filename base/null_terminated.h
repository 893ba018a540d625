#pragma once

#include <string>
#include <vector>

namespace heddle::base {

// argv or envp of these texts, as exec and posix_spawn take them. Good for as long as the texts are and stay
// unchanged.
inline std::vector<char*> NullTerminated(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace heddle::base
