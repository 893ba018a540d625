#pragma once

#include "base/table.h"

namespace heddle::cli {

// Most of what the CLI prints is made of these.
using base::Cell;
using base::Colour;
using base::DisplayWidth;
using base::Style;
using base::Table;
using base::WithoutControls;

}  // namespace heddle::cli
