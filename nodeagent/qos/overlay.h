#pragma once

#include "lossless/port_settings.h"

namespace heddle::nodeagent {

// What `have` is once `setting` of `want` is written: table entries and DCQCN parameters that `want` leaves open
// (kNotSaid, Any) stay as they are. Nothing happens where `want` does not say the setting. Pure.
void Overlay(const lossless::PortSettings& want, lossless::Setting setting, lossless::PortSettings& have);

}  // namespace heddle::nodeagent
