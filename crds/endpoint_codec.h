#pragma once

#include <string>
#include <string_view>

#include "crds/codec.h"

// Shared by the codecs of what is asked over the network, and included by nobody else.
namespace heddle::crds::codec {

// Required: "leaf-3:8080", "10.0.0.3:8080", "[fd00::3]:8080". `example`: for the refusal.
std::string ReadAddress(const Field& field, std::string_view example);
// {"name": ...} of a Secret; absent is "".
std::string ReadSecretName(const Field& field);
Json WriteSecretName(const std::string& name);

}  // namespace heddle::crds::codec
