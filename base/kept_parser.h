#pragma once

#include <simdjson.h>

#include <cstddef>
#include <string>

namespace heddle::base {

// A parser keeps buffers of some five times its largest text. This is one for each thread, and for a text over 1 MiB,
// which is rare, one that goes with this object. What it parsed is there until the thread's next Parse, and as long as
// this. Thread rule: of the thread that made it.
class KeptParser {
 public:
  simdjson::simdjson_result<simdjson::dom::element> Parse(const std::string& json) {
    constexpr std::size_t kKeptText = 1u << 20;
    thread_local simdjson::dom::parser kept;
    return (json.size() <= kKeptText ? kept : own_).parse(json);
  }

 private:
  simdjson::dom::parser own_;
};

}  // namespace heddle::base
