#pragma once

#include <tl/expected.hpp>
#include <utility>

#include "base/error.h"

namespace heddle::base {

// A value, or why there is none. Every function that returns one is [[nodiscard]].
template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

// What a function returns when it fails: return Fail(Code::kInvalid, "tp=0: must be at least 1");
inline tl::unexpected<Error> Fail(Code code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::nullopt});
}
inline tl::unexpected<Error> Fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace heddle::base

#define HEDDLE_CONCAT_INNER(a, b) a##b
#define HEDDLE_CONCAT(a, b) HEDDLE_CONCAT_INNER(a, b)

// Returns the error of `expression` to the caller, with an optional line of context: TRY(Write(x), "write the
// plan").
#define TRY(expression, ...)                                                                      \
  do {                                                                                            \
    if (auto heddle_status = (expression); !heddle_status) {                                      \
      return ::heddle::base::Fail(std::move(heddle_status).error() __VA_OPT__(.In(__VA_ARGS__))); \
    }                                                                                             \
  } while (false)

// ASSIGN_OR_RETURN(auto node, ReadNode(name), "read the node");
#define ASSIGN_OR_RETURN(declaration, expression, ...) \
  HEDDLE_ASSIGN_OR_RETURN(HEDDLE_CONCAT(heddle_result_, __LINE__), declaration, expression, __VA_ARGS__)
#define HEDDLE_ASSIGN_OR_RETURN(result, declaration, expression, ...)                    \
  auto result = (expression);                                                            \
  if (!result) {                                                                         \
    return ::heddle::base::Fail(std::move(result).error() __VA_OPT__(.In(__VA_ARGS__))); \
  }                                                                                      \
  declaration = *std::move(result)
