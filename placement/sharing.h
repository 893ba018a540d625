#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace heddle::placement {

// Equal flows: `count` of them, each of which would run at `mbps` alone, over the same links.
struct Flow {
  std::array<std::int32_t, 4> links{-1, -1, -1, -1};  // -1 = none
  std::int64_t mbps = 0;
  std::int64_t count = 0;
  double part = 1;  // what sharing leaves of `mbps`, in (0, 1]
};

// Weighted max-min fairness: all flows rise together, as parts of what each wants, until a link is full; its
// flows stop there and the others rise on (progressive filling; Bertsekas and Gallager, Data Networks, 6.5).
// Thread rule: one owner; buffers are reused.
class Sharing {
 public:
  // By link, Mb/s: what it carries; 0 = no bottleneck, since nobody knows its width. Keeps the span.
  explicit Sharing(std::span<const std::int64_t> capacity);

  // Fills in `part`. `load`: what others send over each link, Mb/s; links beyond its end carry nothing else.
  // Their traffic takes its share as if it wanted the same part of its load.
  void Share(std::span<Flow> flows, std::span<const std::int64_t> load);

 private:
  double FullAt(std::int32_t link) const;
  bool Stops(const Flow& flow, double part) const;

  std::span<const std::int64_t> capacity_, load_;
  std::vector<std::int64_t> moving_;  // demand by link of the flows that still rise
  std::vector<double> stopped_;       // what the others were given
  std::vector<std::int32_t> used_;    // links with flows
  std::vector<std::pair<std::int32_t, std::int64_t>> stopping_;
};

}  // namespace heddle::placement
