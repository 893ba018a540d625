#pragma once

#include "base/json_bounds.h"

namespace heddle::formats {

using base::EndOfValue;
using base::IsBounded;
using base::LineOf;

}  // namespace heddle::formats
