// What every rule says of itself.
#include <algorithm>
#include <array>

#include "lossless/lint.h"

namespace heddle::lossless {
namespace {

constexpr Severity kError = Severity::kError;
constexpr Severity kWarning = Severity::kWarning;

constexpr std::array kRules{
    RuleAbout{"trust-not-dscp", kError, "priorities by the VLAN tag where RDMA is marked by DSCP",
              "RoCE packets carry no VLAN tag on a routed fabric, so all of them would be priority 0",
              "trust DSCP (`trust: DSCP`, `mlnx_qos --trust dscp`)"},
    RuleAbout{"rdma-unmarked", kError, "DSCP 0 as the mark of RDMA",
              "every packet that nobody marked has DSCP 0 and would be in the lossless class",
              "give RDMA a DSCP of its own; 26 is usual"},
    RuleAbout{"tos-elsewhere", kError, "a ToS byte of rdma_cm with another DSCP than the RDMA class",
              "connections by rdma_cm would run outside of the class that was made for them",
              "set tos to the RDMA DSCP times 4 plus 2 (ECT)"},
    RuleAbout{"tos-nccl-differ", kError, "a ToS byte of rdma_cm other than NCCL_IB_TC",
              "NCCL asks verbs and not rdma_cm: half of a job's traffic would be in another class",
              "make both the same; 106 is DSCP 26 with ECT(0)"},
    RuleAbout{"tos-congested", kError, "a ToS byte that ends in the bits 11",
              "the two last bits are ECN, and 11 says that the packet has met congestion: every packet would "
              "be answered by a CNP",
              "end the byte in 2 (ECT) or 0"},
    RuleAbout{
        "data-lossy", kError, "data in a class without PFC",
        "the class that was made lossless would stay empty, and data would be dropped like anything else",
        "map the DSCP of data to the priority that has PFC"},
    RuleAbout{"pfc-several-classes", kError, "PFC on several priorities",
              "every lossless priority takes headroom from the same buffer, and pauses of one spread to the "
              "other through it",
              "leave PFC on the RDMA priority alone"},
    RuleAbout{"pfc-without-watchdog", kError, "PFC without a watchdog",
              "one NIC that pauses for ever stops its leaf, then the spines, then the fabric",
              "turn the watchdog on: hosts pfc-prevention-tout auto, SONiC `pfcwd start_default`"},
    RuleAbout{"global-pause", kError, "global pause (802.3x) beside PFC",
              "it stops all classes of the link at once, and where a NIC has only one of both PFC is not in "
              "force",
              "turn it off (`ethtool -A eth2 rx off tx off`), or let the agent apply the policy"},
    RuleAbout{"watchdog-range", kError, "a watchdog of fewer than 80 or more than 8000 ms",
              "mlx5 takes 80 to 8000, 0 for off and 65535 for auto", "use auto (100 ms)"},
    RuleAbout{"cnp-lossless", kError, "congestion notifications in a lossless class",
              "they say that a class is congested, and would wait behind the very packets it holds",
              "send CNPs with DSCP 48 and map it to a priority without PFC"},
    RuleAbout{"class-lossless", kError, "storage, management or any other class in a lossless one",
              "bursts that DCQCN does not slow down would fill the class and pause RDMA",
              "map those DSCPs to a priority without PFC"},
    RuleAbout{"class-elsewhere", kWarning, "a class whose DSCP gets another priority than the class says",
              "a DSCP has one priority: CNPs or another class named it too, and theirs holds",
              "give each class DSCPs of its own"},
    RuleAbout{
        "class-with-cnps", kWarning, "storage in the priority of congestion notifications",
        "CNPs are sent before all others, and so would storage be: RDMA waits for it, and CNPs wait among it",
        "give storage a priority of its own, or 0"},
    RuleAbout{"lossless-shared", kWarning, "other DSCPs than that of data in the lossless class",
              "whatever is marked so by chance pauses RDMA", "map them to priority 0"},
    RuleAbout{"class-shared", kWarning, "a traffic class that a lossless priority shares with others",
              "a pause for the one holds up all that wait in the same queue",
              "give the lossless priority a traffic class of its own"},
    RuleAbout{"queue-differs", kError, "a pause that stops another queue than the one that data waits in",
              "the pause would not stop the data it is for",
              "map the priority to the same queue in both tables"},
    RuleAbout{"buffer-shared", kError, "a buffer that a lossless priority shares with a lossy one",
              "the lossy one can fill it, and then lossless packets are dropped or all is paused",
              "give the lossless priority a buffer of its own"},
    RuleAbout{"buffer-empty", kError, "a lossless priority whose buffer has no bytes",
              "nothing can be held while the other end stops",
              "give that buffer room, or leave sizes to the driver"},
    RuleAbout{
        "queue-lossy", kError, "a lossless priority that leaves a switch by a lossy queue",
        "what a pause kept from being lost on the way in is dropped on the way out",
        "give that queue a lossless profile (`egress_lossless_profile`; `kubectl heddle switch render`)"},
    RuleAbout{"ets-sum", kError, "ETS shares that do not sum to 100",
              "IEEE 802.1Qaz and the kernel take nothing else", "make the shares sum to 100"},
    RuleAbout{"ets-starved", kError, "a lossless class with no share",
              "it would be sent only when nobody else has anything to send",
              "give the RDMA priority a share"},
    RuleAbout{"ets-strict-data", kWarning, "data sent strictly before all others",
              "bulk data that always goes first starves everything else on the port",
              "give the RDMA priority a share by ETS and leave strict to CNPs"},
    RuleAbout{
        "ets-rest-first", kError,
        "a policy whose ETS leaves priority 0 without a share, or sends it strictly",
        "priority 0 and all priorities that ets does not name are one class, which is then sent strictly "
        "before those with a share: ordinary traffic before RDMA",
        "name priority 0 in ets with algorithm ETS and a share"},
    RuleAbout{"ets-rest-starved", kWarning, "a policy that leaves ordinary traffic no share",
              "storage, ssh and the node's own heartbeat would be sent only when RDMA has nothing to send",
              "leave priority 0 some percent: rdma.percent below 100, or a share of its own in ets"},
    RuleAbout{"cnp-waits", kWarning, "CNPs that wait their turn among others",
              "a late CNP slows a sender when the queue is full already",
              "send the CNP priority strictly before the others"},
    RuleAbout{"cnp-two-priorities", kWarning, "CNPs whose DSCP and 802.1p priority disagree",
              "switches that look at the one and those that look at the other put them in different queues",
              "map the CNP DSCP to the CNP priority"},
    RuleAbout{"ecn-off", kWarning, "a lossless class without ECN",
              "then PFC alone slows senders down, and it stops whole ports instead of flows",
              "turn ECN on for the lossless priority (hosts: DCQCN; switches: a WRED profile with ecn_all)"},
    RuleAbout{"ecn-thresholds", kError, "ECN that begins at or above where it ends, or marks nothing",
              "the marking has no room to grow: no packet is marked until all are",
              "set min below max, and a probability above 0; SONiC's own are 1 and 2 MiB, 5 %"},
    RuleAbout{"mtu-small", kError, "an MTU below 4192",
              "RDMA payloads are powers of two, and 4096 needs 4192: each step less halves the packets",
              "set the MTU to 9000 on hosts and at least that on switches"},
    RuleAbout{"mtu-above-switch", kError, "a host's MTU above its switch's",
              "the switch drops what is larger, and RDMA retries it for ever",
              "raise the switch's MTU, or lower the host's"},
    RuleAbout{"mtu-below-switch", kWarning,
              "a host's MTU that makes RDMA packets smaller than the switch takes",
              "more packets for the same bytes", "raise the host's MTU"},
    RuleAbout{"mtu-peers", kError, "hosts whose MTUs make RDMA packets of different sizes",
              "queue pairs agree on the smaller one: one host slows down all that talk to it",
              "set the same MTU on all of them"},
    RuleAbout{"mtu-uneven", kWarning, "hosts with different MTUs that come to the same size of RDMA packets",
              "RDMA does not care; TCP between them loses what is larger than the smaller MTU where path MTU "
              "discovery is filtered",
              "set the same MTU on all of them"},
    RuleAbout{"dcbx-firmware", kWarning, "DCB settings under the control of the NIC's firmware",
              "firmware takes over what its switch says by DCBX, and overwrites what the host set",
              "let the OS control them (`mlnx_qos -d os`, `dcbx: Host`)"},
    RuleAbout{"switch-data-lossy", kError, "data that its switch puts in a class without PFC",
              "the host pauses for a class that the switch drops from",
              "map that DSCP to the lossless TC on the switch, or send the DSCP that it has for it"},
    RuleAbout{"switch-cnp-lossless", kError, "CNPs that their switch puts in a lossless class",
              "they wait behind the congestion that they report",
              "send CNPs with DSCP 48, or map theirs to a TC without PFC on the switch"},
    RuleAbout{"switch-cnp-waits", kWarning, "CNPs that wait their turn among others on their switch",
              "a late CNP slows a sender when the queue is full already",
              "send the switch's queue of CNPs strictly before the others"},
    RuleAbout{"switch-pauses-other", kError,
              "a switch that pauses another priority than the host sends data in",
              "a pause for priority 4 does not stop priority 3: the switch's buffer overflows",
              "use one number for the lossless priority at both ends"},
    RuleAbout{"lossless-dscps-differ", kError, "no DSCP that is lossless at both ends",
              "whatever mark data carries, one of both drops it",
              "map the DSCP of data to the lossless priority at both ends"},
    RuleAbout{"drift", kError, "a port that its agent reports as changed",
              "somebody else wrote it, or a reboot took it back",
              "stop the other writer, or let the policy repair"},
    RuleAbout{
        "not-set", kError, "a port that its agent could not set, or that somebody else sets, too",
        "the policy is not in force there",
        "mend what the agent names, or stop the other writer; then change the policy, which tries again"},
    RuleAbout{"two-policies", kError, "a port that several LosslessPolicies select",
              "none of them is in force there: which one would be chance",
              "narrow nodeSelector, roles or rails until one of them selects the port"},
    RuleAbout{"nic-unfit", kError, "a policy for ports whose NIC cannot have what it wants",
              "the operator tells such a port nothing, so none of the policy is in force there",
              "name the profile of that NIC, or generic/v1, in a policy of its own; or select other NICs by "
              "nodeSelector, roles or rails"},
    RuleAbout{"watchdog-nowhere", kWarning, "PFC on NICs that have no watchdog",
              "a pause that does not end is then ended by its switch or by nobody",
              "run the watchdog of every switch (SONiC `pfcwd start_default`), and name its config_db.json "
              "beside the policy"},
    RuleAbout{"infiniband-nowhere", kWarning,
              "a service level or adaptive routing for InfiniBand in a policy that selects no such port",
              "nothing takes it: on RoCE the service level is the priority of the RDMA class, and NCCL keeps "
              "packets in order",
              "select InfiniBand ports by nodeSelector, roles or rails, or take infiniBand out"},
    RuleAbout{
        "infiniband-differs", kError,
        "policies that tell InfiniBand ports of one node different service levels or adaptive routing",
        "NCCL has one of each for all NICs of a process, so none is written into its configuration there",
        "say the same in infiniBand of all policies of these nodes"},
    RuleAbout{"devices-conflict", kError,
              "a NIC in two resources of one node, or a resource in two of its RdmaDevicePolicies or in two "
              "entries of one",
              "neither is offered there: which one would be chance",
              "narrow nodeSelector, roles or rails of one of them, or give it another name"},
    RuleAbout{"devices-refused", kError, "a resource of an RdmaDevicePolicy that a node cannot offer",
              "pods that ask for it are never bound there",
              "correct roles, rails or plugin, or leave the node out by nodeSelector"},
    RuleAbout{"differs-from-policy", kError, "a port that is not as the policy says",
              "the policy is not in force there", "let the agent apply the policy, or change the policy"},
};

}  // namespace

std::span<const RuleAbout> Rules() {
  return kRules;
}

const RuleAbout* FindRule(std::string_view id) {
  const auto found =
      std::find_if(kRules.begin(), kRules.end(), [&](const RuleAbout& rule) { return rule.id == id; });
  return found == kRules.end() ? nullptr : &*found;
}

std::string_view SeverityName(Severity severity) {
  return severity == kError ? "Error" : "Warning";
}

}  // namespace heddle::lossless
