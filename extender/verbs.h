#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "extender/name_list.h"
#include "extender/slots_left.h"
#include "extender/snapshot.h"
#include "kube/status_endpoints.h"

namespace heddle::extender {

// kube-scheduler's extender protocol (facts 1.2): Go's field names as they are, unknown keys ignored. The
// verbs are pure: the scheduler calls them speculatively, so nothing is remembered.

// What a verb reads of ExtenderArgs.
struct ExtenderArgs {
  std::string pod_name;      // "ns/name"
  bool of_gang = false;      // released by us, or waiting at our gate
  std::string planned_node;  // empty = none
  int gpus = 0;              // that its containers ask for
  int priority = 0;
  std::vector<std::string_view> node_names;  // of NodeNames, or of Nodes where the scheduler sends whole ones
  bool whole_nodes = false;                  // Nodes was sent: the answer needs them back
  std::string nodes_json;                    // then, as it came
  std::vector<char> bytes;                   // which node_names are views of
};
[[nodiscard]] base::Result<ExtenderArgs> ParseExtenderArgs(std::string_view body);

// Whether there is nothing against any node.
bool PassesEverywhere(const ExtenderArgs& args, const KeptNodes& kept, const Snapshot* snapshot,
                      const SlotsLeftByNode& left = {});

// Its names are views of the request's.
struct FilterAnswer {
  std::vector<std::string_view> passed;
  std::map<std::string_view, std::string> unresolvable;  // node → why; preemption cannot help there
  std::string error;
  friend bool operator==(const FilterAnswer&, const FilterAnswer&) = default;
};
// A gang's pod goes to its planned node and to no other; that its annotations say, which only we may write. A
// pod of a gang without a plan passes everywhere: there is no positive evidence against it. So does every other pod,
// but to nodes that others have left for a gang of higher priority, and to those with GPUs for a pod that is not there
// yet (Snapshot::Reservation), whatever else is free there: several pods may come before one of them is seen, the
// kubelet chooses their GPUs, and a rank needs its CPUs and memory too. `snapshot`: null = nothing is reserved.
// `left`: what is not in the snapshot yet.
FilterAnswer Filter(const ExtenderArgs& args, const KeptNodes& kept = {}, const Snapshot* snapshot = nullptr,
                    const SlotsLeftByNode& left = {});

struct HostScore {
  std::string_view host;  // of the request
  int score = 0;          // 0 … 10, the scheduler's MaxExtenderPriority
  friend bool operator==(const HostScore&, const HostScore&) = default;
};
// Ranks nodes for a GPU pod of no gang, so that whole domains stay whole. Nodes that the snapshot does not
// know get 0, as does everything before there is one.
std::vector<HostScore> Prioritize(const ExtenderArgs& args, const Snapshot* snapshot);
// Takes from each what the lowest has, and leaves out those that have nothing then: the same to kube-scheduler, which
// adds scores up and takes a node that is not told for one with 0 (prioritizeNodes). Of thousands of nodes most are
// alike, and to read the score of each costs it several times what it costs us to write it.
void KeepDifferences(std::vector<HostScore>& scores);

// Whether the pod of that UID is of a gang. Every pod that we ever let go is known by then: we have seen its gate.
using IsGangPodUid = std::function<bool(const std::string& uid)>;
// Which nodes kube-scheduler may empty for this pod; takes both forms of victims and answers the meta form. No pod of
// a gang is evicted alone, so nodes where one is among the victims are dropped; a gang's own pod has no use for another
// than its planned node, and a pod of no gang none for one where GPUs are reserved: filter might keep it from what was
// emptied. Who a victim is says its own annotation where the whole pod came (only we may write it), else `is_gang_pod`;
// there is no positive evidence against one that is not known.
[[nodiscard]] base::Result<std::string> Preempt(std::string_view body, const IsGangPodUid& is_gang_pod,
                                                const KeptNodes& kept = {},
                                                const Snapshot* snapshot = nullptr,
                                                const SlotsLeftByNode& left = {});

// Appends it as JSON. A node's name needs no escapes, but what came in is not always a node's name.
void AppendQuoted(std::string& body, std::string_view name);
std::string ToBody(const FilterAnswer& answer, const ExtenderArgs& args);
std::string ToBody(const NamesApart& passed);  // all of them
std::string ToBody(const std::vector<HostScore>& scores);
std::string ToBodyOfPlain(
    const std::vector<HostScore>& scores);  // the same. Requires: plain names, scores 0 to 10

inline constexpr std::size_t kMaxBody = 4u << 20;  // 16,384 names and a large pod are under 1 MiB
struct Endpoints {
  std::function<std::shared_ptr<const Snapshot>()> snapshot;
  std::function<std::shared_ptr<const KeptNodes>()> kept_nodes;             // never null
  std::function<std::shared_ptr<const SlotsLeftByNode>()> slots_left = {};  // never null; without it, none
  IsGangPodUid is_gang_pod;  // true for everybody while not all pods have been read
  kube::StatusEndpoints status;
};
kube::ServedAnswer Answer(const kube::ServedRequest& request, const Endpoints& endpoints);

}  // namespace heddle::extender
