#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/support/fake_api_server.h"

namespace heddle::sim {

// What the actors ask of a pod again and again; reading a whole one takes a hundred times as long.
struct PodRow {
  kube::ObjectKey key;
  std::string uid, owner;  // owner = its controller's UID
  std::string node, phase;
  int index = -1;  // its completion index, or its worker index in a LeaderWorkerSet
  int group = -1;  // of a LeaderWorkerSet
  int gpus = 0;
  int priority = 0;
  bool gated = false, terminating = false;
  bool channel = false;  // it has a claim of a ComputeDomain, which is for the node's one channel

  bool finished() const { return phase == "Succeeded" || phase == "Failed"; }
  bool occupies() const { return !node.empty() && !finished(); }
};
PodRow ReadPodRow(const kube::Json& pod);
std::vector<PodRow> PodRows(const test::FakeApiServer& server);  // in the order of their names

}  // namespace heddle::sim
