#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace heddle::crds {

// A Kubernetes resource quantity ("250m", "1.5Gi", "2e3") in whole units or in thousandths, rounded up as the
// scheduler does, and capped at the largest int64. Nothing when the text is no quantity or is negative.
std::optional<std::int64_t> ParseQuantity(std::string_view text);
std::optional<std::int64_t> ParseMilliQuantity(std::string_view text);

}  // namespace heddle::crds
