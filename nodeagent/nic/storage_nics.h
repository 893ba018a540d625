#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace heddle::nodeagent {

// The RDMA devices that whoever runs the node says carry storage and no traffic of jobs: what no measurement tells of
// one that is as near to a GPU and as fast as its rail. A value.
class StorageNics {
 public:
  StorageNics() = default;  // none

  // "mlx5_2,mlx5_[67]": names of RDMA devices with the shell's *, ? and [...] (fnmatch), separated by commas. Empty:
  // none. kInvalid: a sentence that names the pattern and what is wrong with it, also of one that names every device
  // there is, since no rail would be left.
  [[nodiscard]] static base::Result<StorageNics> Parse(std::string_view text);

  // The pattern that names the device, as it was written; empty: none does.
  std::string_view Naming(const std::string& device) const;
  // All of them, as Parse takes them.
  const std::string& text() const { return text_; }
  friend bool operator==(const StorageNics&, const StorageNics&) = default;

 private:
  std::string text_;
  std::vector<std::string> patterns_;
};

}  // namespace heddle::nodeagent
