#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/client.h"
#include "kube/json_reader.h"

namespace heddle::kube {

// Cuts a watch's body into events: one JSON object a line, whatever the chunk borders. The objects come without
// metadata.managedFields, half of many an object and read by nobody who watches.
// Thread rule: one owner.
class WatchDecoder {
 public:
  using Handler = std::function<bool(WatchEvent&&)>;

  // `pruning` is of the objects.
  explicit WatchDecoder(std::size_t max_line_bytes, const Pruning& pruning = {})
      : max_line_bytes_(max_line_bytes), pruning_(pruning.And({"metadata.managedFields"}).Under("object")) {}

  // Hands on every event that is complete now. False once the handler asked to end; an error for an ERROR
  // event, a line that is no event, or one over the bound.
  [[nodiscard]] base::Result<bool> Feed(std::string_view chunk, const Handler& handler);

 private:
  [[nodiscard]] base::Result<bool> Decode(std::string_view line, const Handler& handler);

  const std::size_t max_line_bytes_;
  const Pruning pruning_;  // of events
  std::string partial_;
  JsonReader reader_;
};

}  // namespace heddle::kube
