#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topology/node.h"

namespace heddle::nodeagent {

// What is known of a network device when it is decided whether it belongs to the fabric at all.
struct NicFacts {
  std::string_view device;  // "mlx5_0"
  bool virtual_function = false;
  bool manages_nvlink =
      false;  // its VPD says SW_MNG: an NVSwitch's management port that looks like a ConnectX
  bool has_ports = true;
  std::string_view served_by =
      {};  // of a software device (rxe, siw): the RDMA device in hardware that its interface has anyway
  bool uncabled = false;  // UncabledByDesign says so of all of its ports, or of the one that is meant
  std::string_view uncabled_by = {};  // the pattern of --uncabled that does; empty: the other cards do
  friend bool operator==(const NicFacts&, const NicFacts&) = default;
};

struct PortFacts {
  topology::LinkState state = topology::LinkState::kUnknown;
  bool disabled = false;        // phys_state 3: Disabled
  bool infiniband = false;      // RoCE reports "Disabled" for a mere missing cable, InfiniBand does not
  bool sibling_active = false;  // another port of the device is up
  friend bool operator==(const PortFacts&, const PortFacts&) = default;
};

// A device that is left out of NodeTopology, and why.
struct Exclusion {
  std::string device;
  std::string pci;
  std::string reason;
  bool whole_function = true;  // its interface is no NIC either
  friend bool operator==(const Exclusion&, const Exclusion&) = default;
};

// The one rule that discovery, health, QoS and the device plugin share. Nothing: the device counts.
std::optional<std::string> WhyExcluded(const NicFacts& facts);
// A port that is down by design: not an alarm, not a rail that is missing.
bool IsDownByDesign(const PortFacts& facts);

// A port as cards of one model are compared by.
struct CardPort {
  std::string model;  // equal for cards of one kind
  std::string card;   // equal for the ports of one card
  std::string place;  // which of the card's ports: equal for that port of every card
  topology::LinkState state = topology::LinkState::kUnknown;
  bool unread = false;    // its state could not be asked for, which is evidence of nothing
  bool was_up = false;    // since its driver was loaded
  bool left_out = false;  // UncabledByDesign said so at the look before
  bool named = false;     // whoever runs the node says that it has no cable: uncabled.h
  friend bool operator==(const CardPort&, const CardPort&) = default;
};

// Of each port whether nobody ever meant to cable it, by position. The second port of a dual-port card is a function
// and an RDMA device of its own, and of RoCE it looks just like a port whose cable was pulled. So the cards of a node
// are compared. A place is without cables if it is down on every card of the model, was up on none, and another port
// of the same card is up on at least two of them. It stays so until one of these ports is up or trains: a cable that
// is pulled beside it takes nothing back. One port that is down while that of another card is up, or was, is an alarm.
// What a card alone of its kind does not tell, its owner may: a port that is named is left out whenever it is down. One
// that is up counts like any other, whoever says what.
std::vector<bool> UncabledByDesign(const std::vector<CardPort>& ports);

}  // namespace heddle::nodeagent
