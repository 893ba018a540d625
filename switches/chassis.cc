#include "switches/chassis.h"

#include <cstddef>

#include "base/lower_case.h"
#include "formats/printable.h"

namespace heddle::switches {
namespace {

constexpr std::size_t kMacDigits = 12;

bool IsHexDigit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

// A MAC is its digits; anything else stays as it is, in small letters.
std::string Plain(std::string_view id) {
  std::string text = base::LowerCase(std::string(id));
  std::string digits;
  for (const char c : text) {
    if (IsHexDigit(c)) {
      digits += c;
    } else if (c != ':' && c != '-' && c != '.') {
      return text;
    }
  }
  return digits.size() == kMacDigits ? digits : text;
}

}  // namespace

std::string ChassisIdIn(const crds::Json& answer) {
  return answer.is_string() ? formats::Printable(answer.get<std::string>(), kMaxChassisId) : "";
}

// Nearly always both are written alike.
bool IsSameChassis(std::string_view a, std::string_view b) {
  return a == b || Plain(a) == Plain(b);
}

}  // namespace heddle::switches
