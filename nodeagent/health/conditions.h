#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "crds/condition.h"
#include "nodeagent/assembly/assemble.h"

namespace heddle::nodeagent {

// What an admin should know of a machine, one question a condition; those that do not arise are left out.
// True is good.
inline constexpr std::string_view kDiscoveryComplete = "DiscoveryComplete";  // every probe got its answers
inline constexpr std::string_view kGpusHealthy = "GpusHealthy";
inline constexpr std::string_view kNvlinksUp = "NvlinksUp";
inline constexpr std::string_view kNvlinkFabricHealthy = "NvlinkFabricHealthy";  // by NVML's health mask
inline constexpr std::string_view kNvlinkHealthy =
    "NvlinkHealthy";  // by errors, links lost and clique changes
inline constexpr std::string_view kPcieLinksFull = "PcieLinksFull";  // of GPUs and compute NICs: pcie_links.h
inline constexpr std::string_view kRdmaMtuEqual = "RdmaMtuEqual";    // of compute NICs over RoCE: rdma_mtu.h
inline constexpr std::string_view kRailsMeasured = "RailsMeasured";
inline constexpr std::string_view kLinksUp = "LinksUp";          // of compute NICs, at full rate
inline constexpr std::string_view kLeavesKnown = "LeavesKnown";  // of compute NICs' ports that are up
// Of compute and storage NICs' InfiniBand ports that are up: what the other end has counted, too. Never False: a leaf
// that may not be asked says nothing against a link.
inline constexpr std::string_view kLeavesCounted = "LeavesCounted";

// "Rail0Healthy": one for each rail that was measured, so that no NIC's name outlives a reboot that changes it. False
// with a link of the rail that flaps, is down, takes in errors, is stopped or is slow; Unknown where none is, and
// the state of one cannot be read.
std::string RailHealthy(int rail);
inline constexpr int kMaxRailConditions = 32;

// Sorted by type; transition times are left to whoever publishes.
std::vector<crds::Condition> ConditionsOf(const Observation& observation);

}  // namespace heddle::nodeagent
