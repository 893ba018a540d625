#include "operator/port_sightings.h"

#include <string>
#include <string_view>
#include <utility>

#include "crds/cable_evidence.h"

namespace heddle::operators {
namespace {

using topology::LinkFault;
using topology::Sighting;
using topology::Symptom;

bool Has(std::string_view text, std::string_view words) {
  return text.find(words) != std::string_view::npos;
}

// A port has one fault, the worse of its two ends; what the other end saw its words tell (nodeagent/health/
// link_rules.cc).
Symptom SymptomOfWords(std::string_view text, LinkFault worse) {
  const bool down = Has(text, "link downs") || Has(text, "link changes");
  if (down && worse == LinkFault::kFlapping) return Symptom::kFlap;
  if (Has(text, "pause")) return Symptom::kPauseStorm;
  if (Has(text, "acknowledgement time-outs") || Has(text, "asked for again")) return Symptom::kLoss;
  return Symptom::kErrors;
}

Symptom SymptomOf(LinkFault fault) {
  switch (fault) {
    case LinkFault::kFlapping:
      return Symptom::kFlap;
    case LinkFault::kPauseStorm:
      return Symptom::kPauseStorm;
    case LinkFault::kPathLoss:
      return Symptom::kLoss;
    case LinkFault::kErrors:
    case LinkFault::kNotLossless:
    case LinkFault::kNone:
      break;
  }
  return Symptom::kErrors;
}

// Of a storm the end that was stopped saw it: a NIC that sends pause stops the switch.
Sighting SeenByPort(Symptom symptom, std::string text) {
  const bool sends =
      symptom == Symptom::kPauseStorm && (Has(text, "sent pause") || Has(text, "stopped by the driver"));
  return {symptom, sends, std::move(text)};
}

}  // namespace

std::vector<Sighting> SightingsOf(const topology::NicPort& port) {
  // kNotLossless says how a cable is set, and nothing of what happened on it.
  if (port.fault == LinkFault::kNone || port.fault == LinkFault::kNotLossless) return {};
  crds::CableEvidence said = crds::ReadCableEvidence(port.reason);
  const Symptom worse = SymptomOf(port.fault);
  std::vector<Sighting> seen;
  if (!said.port.empty() || !said.leaf_worse) {
    const Symptom symptom = said.leaf_worse ? SymptomOfWords(said.port, port.fault) : worse;
    seen.push_back(SeenByPort(symptom, std::move(said.port)));
  }
  if (!said.leaf.empty() || said.leaf_worse) {
    const Symptom symptom = said.leaf_worse ? worse : SymptomOfWords(said.leaf, port.fault);
    seen.push_back({symptom, true, std::move(said.leaf)});
  }
  return seen;
}

}  // namespace heddle::operators
