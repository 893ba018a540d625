#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace heddle::kube {

// RFC 4648 with padding; decoding skips line breaks, as kubeconfigs are folded sometimes.
std::string EncodeBase64(std::string_view bytes);
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace heddle::kube
