#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace heddle::nodeagent {

// The ports of RDMA devices that whoever runs the node says nobody cabled: what no comparison of cards can tell of a
// card that is alone of its kind. A value.
class UncabledPorts {
 public:
  UncabledPorts() = default;  // none

  // "mlx5_1,mlx5_[45]:2": DEVICE, which is all of its ports, or DEVICE:PORT, each with the shell's *, ? and [...]
  // (fnmatch), separated by commas. Empty: none. kInvalid: a sentence that names the pattern and what is wrong with it,
  // also of one that names every port there is, since no alarm would be left.
  [[nodiscard]] static base::Result<UncabledPorts> Parse(std::string_view text);

  // The pattern that names the port, as it was written; empty: none does.
  std::string_view Naming(const std::string& device, int port) const;
  // All of them, as Parse takes them.
  const std::string& text() const { return text_; }
  friend bool operator==(const UncabledPorts&, const UncabledPorts&) = default;

 private:
  struct Pattern {
    std::string text, device, port;
    friend bool operator==(const Pattern&, const Pattern&) = default;
  };
  std::string text_;
  std::vector<Pattern> patterns_;
};

}  // namespace heddle::nodeagent
