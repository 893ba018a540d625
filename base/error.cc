#include "base/error.h"

#include <fmt/format.h>

namespace heddle::base {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kInvalid:
      return "Invalid";
    case Code::kNotFound:
      return "NotFound";
    case Code::kAlreadyExists:
      return "AlreadyExists";
    case Code::kConflict:
      return "Conflict";
    case Code::kExpired:
      return "Expired";
    case Code::kThrottled:
      return "Throttled";
    case Code::kUnavailable:
      return "Unavailable";
    case Code::kUnauthorized:
      return "Unauthorized";
    case Code::kForbidden:
      return "Forbidden";
    case Code::kTimeout:
      return "Timeout";
    case Code::kCancelled:
      return "Cancelled";
    case Code::kTooLarge:
      return "TooLarge";
    case Code::kUnimplemented:
      return "Unimplemented";
    case Code::kInternal:
      return "Internal";
  }
  return "Unknown";
}

Error Error::In(std::string_view context) const {
  return Error{code, fmt::format("{}: {}", context, message), retry_after};
}

std::string ToString(const Error& error) {
  return fmt::format("{}: {}", CodeName(error.code), error.message);
}

}  // namespace heddle::base
