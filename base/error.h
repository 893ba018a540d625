#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace heddle::base {

// Why an operation failed. Retry is decided from the code, in one place per caller, never from the text.
enum class Code : std::uint8_t {
  kInvalid,        // the input is wrong; the same call fails again
  kNotFound,       // the object does not exist
  kAlreadyExists,  // an object of this name exists
  kConflict,       // somebody else wrote first; read again
  kExpired,        // the resource version or the continue token is too old; list again
  kThrottled,      // the server asks us to slow down; see retry_after
  kUnavailable,    // no connection, a cut one, or a server that is starting or gave up waiting
  kUnauthorized,   // who we are was not accepted
  kForbidden,      // who we are is known and may not do this
  kTimeout,        // our own side gave up waiting; the write may have happened
  kCancelled,      // our own side asked to stop
  kTooLarge,       // a bound on size was reached
  kUnimplemented,  // the other side does not offer this
  kInternal,       // the other side failed
};

// The code's name as it stands in logs, e.g. "NotFound".
std::string_view CodeName(Code code);

struct Error {
  Code code = Code::kInternal;
  std::string message;  // a sentence without a full stop; the outermost context first
  std::optional<std::chrono::milliseconds> retry_after;  // only where the server gave one

  // Adds what this layer was doing: Error{"410 expired"}.In("list nodes") reads "list nodes: 410 expired".
  [[nodiscard]] Error In(std::string_view context) const;

  friend bool operator==(const Error&, const Error&) = default;
};

// "NotFound: list nodes: ..." for logs.
std::string ToString(const Error& error);

}  // namespace heddle::base
