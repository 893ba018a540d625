#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "kube/object.h"

namespace heddle::operators {

// What we wrote into one field of NodeTopologies' specs, for as long as our cache may show what was there before. Who
// decides by the cache alone writes it again, and takes for untold a node that was told. Which of both is older says
// metadata.generation, which the server counts up with each change of a spec and with none of a status; a
// resourceVersion may only be compared for equality, and agents write statuses in between.
// Thread rule: one thread at a time.
class SpecsAhead {
 public:
  // No cache that still gets events is behind for so long. One that is shows a server that was set back to a backup,
  // whose generations count from there: what we wrote is gone and has to be written again.
  static constexpr std::chrono::nanoseconds kPatience = std::chrono::minutes(1);

  explicit SpecsAhead(std::string field) : field_(std::move(field)) {}

  const std::string& field() const { return field_; }
  // `answer`: the object, as the server answered our write of the field.
  void Wrote(const kube::Json& answer, base::MonotonicTime now);
  // `shown` with the field as we wrote it, where `shown` is the same object from before that; nothing: it says what
  // there is.
  std::optional<kube::Json> Over(const kube::Json& shown, base::MonotonicTime now);
  // Until the first of those that Over found behind is taken at its word; nothing: none is behind.
  std::optional<std::chrono::nanoseconds> Left(base::MonotonicTime now) const;

 private:
  struct Written {
    std::string uid;
    std::int64_t generation = 0;
    kube::Json value;  // null = the field was taken away
    base::MonotonicTime at;
    bool behind = false;
  };
  const std::string field_;
  std::map<std::string, Written> written_;  // by node
};

}  // namespace heddle::operators
