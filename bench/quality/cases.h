#pragma once

#include <cstdint>
#include <vector>

#include "bench/peers/clusters.h"
#include "bench/quality/policies.h"

namespace heddle::quality {

// One gang placed by one policy on one state of one cluster.
struct Case {
  peers::Ties ties = peers::Ties::kByLot;
  peers::ClusterShape shape;
  int fill = 0;  // percent of the GPUs that were wanted held before
  int gang = 0;  // GPUs
  std::uint64_t seed = 0;
  Policy policy = Policy::kHeddle;
  bool placed = false;
  Measures measures;
  double micros = 0;  // to choose
};

struct Survey {
  std::vector<peers::ClusterShape> shapes;  // with every oversubscription below
  std::vector<int> oversubscriptions{100, 200, 400};
  std::vector<int> fills{70, 80, 90, 95};
  std::vector<int> gangs{128, 512, 1024, 4096};
  int gpus_per_pod = 8;
  int seeds = 20;
};
Survey FullSurvey();
Survey QuickSurvey();

// Every policy on every state; the four answers of a state stand beside each other, in the order of kPolicies.
std::vector<Case> Run(const Survey& survey, peers::Ties ties);

// A whole life: the same jobs come and go, and one policy places them all.
struct Life {
  int placed = 0, refused = 0;
  double whole_domains = 0, whole_units = 0;  // mean over the second half
  int running_gangs = 0;                      // of two nodes and more, at the end
  double network_ms = 0;                      // mean predicted network time of their steps
  double network_ms_by_gpu = 0;               // the same, each gang counted by its GPUs
  double crossings_per_gpu = 0;               // of all their groups
};
struct LifeShape {
  peers::ClusterShape cluster{4000, 16, 200, 16, false};
  int load_percent = 85;
  int ticks = 6000;
};
Life Live(Policy policy, const LifeShape& shape, std::uint64_t seed);

}  // namespace heddle::quality
