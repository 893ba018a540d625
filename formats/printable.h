#pragma once

#include "base/printable.h"

namespace heddle::formats {

using base::kMaxName;
using base::Printable;

}  // namespace heddle::formats
