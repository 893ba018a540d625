#pragma once

#include <string_view>

#include "base/result.h"
#include "lossless/port_settings.h"

namespace heddle::formats {

// What iproute2's `dcb pfc|ets|app|buffer|dcbx|apptrust show dev DEV` prints of one interface, any of them
// one after the other, as text or with -j as JSON. The DSCPs that `dcb app` leaves out have the default
// priority (net/dcb/dcbnl.c). Statistics, and words that are not known, are passed over; a known word with
// other values than it can have is refused with its line, in JSON with its key; and so is one that stands twice, which
// is of two interfaces.
// Errors: kInvalid, kTooLarge past 1 MiB.
[[nodiscard]] base::Result<lossless::PortSettings> ParseDcb(std::string_view text);

// Whether a text is meant to be that, as text or as JSON.
bool LooksLikeDcb(std::string_view text);

}  // namespace heddle::formats
