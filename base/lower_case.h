#pragma once

#include <string>

namespace heddle::base {

// ASCII letters only, whatever the locale: names of DNS, Kubernetes, LLDP and of words that people type.
inline std::string LowerCase(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  }
  return text;
}

}  // namespace heddle::base
