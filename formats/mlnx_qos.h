#pragma once

#include <string_view>

#include "base/result.h"
#include "lossless/port_settings.h"

namespace heddle::formats {

// What `mlnx_qos -i DEV` prints of one interface (Mellanox/mlnx-tools, python/mlnx_qos): DCBX mode, trust,
// DSCP map, PFC, buffers, cable length, traffic classes. It says neither MTU nor watchdog nor ToS. Lines of
// newer versions that are not known are passed over; a known one with other values than it can have is
// refused with its number, and so is what one interface has once and stands twice: that is two interfaces.
// Errors: kInvalid, kTooLarge past 1 MiB.
[[nodiscard]] base::Result<lossless::PortSettings> ParseMlnxQos(std::string_view text);

// Whether a text is meant to be that.
bool LooksLikeMlnxQos(std::string_view text);

}  // namespace heddle::formats
