#pragma once

#include <span>

#include "crds/codec.h"
#include "crds/node_devices.h"

// Between our own codecs and included by nobody else.
namespace heddle::crds::codec {

DeviceMode ReadDeviceMode(const Field& field);
DevicePlugin ReadDevicePlugin(const Field& field);
// "heddle.dev/rail0"; with `mark`, "{rail}" may end it.
std::string ReadResourceName(const Field& field, bool mark);

Json WriteDeviceWish(const DeviceWish& wish);
DeviceWish ReadDeviceWish(const Field& field);
DeviceWish ReadDeviceWishHead(const Field& field);  // resource, policies, generation and UID only
std::span<const std::string_view> DeviceWishKeys();
Json WriteDeviceReport(const DeviceReport& report);
DeviceReport ReadDeviceReport(const Field& field);

}  // namespace heddle::crds::codec
