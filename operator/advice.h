#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace heddle::operators {

// What a person can do about an API server that does not answer as we need: a sentence to log beside the
// error.
std::string Advice(const base::Error& error);

}  // namespace heddle::operators
