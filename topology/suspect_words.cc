#include "topology/suspect_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/counted.h"

namespace heddle::topology {
namespace {

std::string_view Word(SuspectKind kind) {
  constexpr std::array<std::string_view, 4> kWords{"cable", "host", "leaf", "spine"};
  return kWords[std::size_t(kind)];
}

// Where the one who saw it said no more.
std::string_view Bare(Symptom symptom) {
  constexpr std::array<std::string_view, kSymptomCount> kTexts{"flaps", "errors", "a storm of pause",
                                                               "lost packets", "dropped packets"};
  return kTexts[std::size_t(symptom)];
}

std::string TextOf(const SeenOfLink& seen, Symptom symptom, End end) {
  const std::string* text = seen.text[std::size_t(symptom)][end];
  return text == nullptr || text->empty() ? std::string(Bare(symptom)) : *text;
}

// "812 CRC errors in 1 min, seen from both ends"
std::string FromBothEnds(const SuspectLinks& all, int link, Symptom symptom) {
  const SeenOfLink& seen = *all.SeenOf(link);
  const std::string near = TextOf(seen, symptom, kNear), far = TextOf(seen, symptom, kFar);
  if (near == far) return far + ", seen from both ends";
  const std::string name = EndName(all, link, kNear);
  return fmt::format("{}, seen from both ends ({}{}{})", far, name, name.empty() ? "" : ": ", near);
}

std::string PauseText(const SuspectLinks& all, int link, End source) {
  const std::string name = EndName(all, link, source);
  const std::string text = TextOf(*all.SeenOf(link), Symptom::kPauseStorm, Other(source));
  return name.empty() ? text : fmt::format("{}, sent by {}", text, name);
}

// All that is a cause, the gravest first.
std::string CausesText(const SuspectLinks& all, const ExplainedLink& of) {
  const SeenOfLink& seen = *all.SeenOf(of.link);
  std::string text;
  const auto add = [&](const std::string& one) { text += (text.empty() ? "" : "; ") + one; };
  if ((of.causes & kFlaps) != 0) {
    const bool both = seen.Has(Symptom::kFlap, kNear) && seen.Has(Symptom::kFlap, kFar);
    // Both ends of a cable go down, so who of them said it says nothing.
    add(both ? FromBothEnds(all, of.link, Symptom::kFlap)
             : TextOf(seen, Symptom::kFlap, seen.Has(Symptom::kFlap, kFar) ? kFar : kNear));
  }
  if ((of.causes & kNearStops) != 0) add(PauseText(all, of.link, kNear));
  if ((of.causes & kFarStops) != 0) add(PauseText(all, of.link, kFar));
  if ((of.causes & kBroken) != 0) {
    const bool near = seen.Has(Symptom::kErrors, kNear), far = seen.Has(Symptom::kErrors, kFar);
    const End end = far ? kFar : kNear;
    const std::string name = EndName(all, of.link, end);
    add(near && far    ? FromBothEnds(all, of.link, Symptom::kErrors)
        : name.empty() ? TextOf(seen, Symptom::kErrors, end)
                       : fmt::format("{}, received by {} alone", TextOf(seen, Symptom::kErrors, end), name));
  }
  return text;
}

std::string NextOfPause(const SuspectLinks& all, const ExplainedLink& of) {
  const End source = (of.causes & kNearStops) != 0 ? kNear : kFar;
  const int device = all.DeviceOf(of.link, source);
  const std::string& node = all.links[std::size_t(of.link)].said->node;
  if (source == kNear && (device == kNobody || all.IsHost(device))) {
    return fmt::format(
        "drain {}: its NIC takes in less than arrives; look at PCIe width and speed, IOMMU and firmware",
        node.empty() ? "the host" : node);
  }
  return fmt::format("look at the queues of {}: no watched link stops it",
                     EndName(all, of.link, source).empty() ? "the switch" : EndName(all, of.link, source));
}

std::string NextOfCable(const SuspectLinks& all, const ExplainedLink& of) {
  switch (GravestOf(of.causes)) {
    case Symptom::kFlap:
      return "drain or reseat it";
    case Symptom::kPauseStorm:
      return NextOfPause(all, of);
    case Symptom::kErrors:
    case Symptom::kLoss:
    case Symptom::kDrops:
      break;
  }
  const SeenOfLink& seen = *all.SeenOf(of.link);
  if (seen.Has(Symptom::kErrors, kNear) && seen.Has(Symptom::kErrors, kFar))
    return "clean, reseat or replace it";
  // What only one end receives broken was sent so by the other, or broke on the way.
  const std::string sender = EndName(all, of.link, seen.Has(Symptom::kErrors, kNear) ? kFar : kNear);
  if (sender.empty()) return "clean or reseat it; then replace the transceiver at its other end";
  return fmt::format("clean or reseat it; then replace the transceiver of {}", sender);
}

std::string NextOfDevice(SuspectKind kind, Symptom symptom) {
  if (kind == SuspectKind::kHost) {
    return symptom == Symptom::kPauseStorm
               ? "drain it: its NICs take in less than arrives; look at what they share: PCIe, IOMMU, "
                 "memory, firmware"
               : "drain it, and look at what its NICs share: PCIe, power, firmware";
  }
  return symptom == Symptom::kPauseStorm
             ? "look at its queues and buffers: no watched link stops it"
             : "move its gangs, and look at what its ports share: power, line card, firmware";
}

// "port Ethernet48" of a switch, "mlx5_3:1" of a host.
std::string PortOf(const SuspectLinks& all, int link, int device) {
  const SuspectLink& of = all.links[std::size_t(link)];
  const bool near = of.device[kNear] == device;
  const std::string& port = near ? of.said->port : of.said->leaf_port;
  if (port.empty()) return EndName(all, link, near ? kFar : kNear);
  return all.IsHost(device) ? port : "port " + port;
}

}  // namespace

std::string EndName(const SuspectLinks& all, int link, End end) {
  const SuspectLink& of = all.links[std::size_t(link)];
  const int device = of.device[end];
  if (device == kNobody) return "";
  const SuspectDevice& named = all.devices[std::size_t(device)];
  const std::string& port = end == kNear ? of.said->port : of.said->leaf_port;
  if (named.is_host) return fmt::format("{}{}{}", named.name, port.empty() ? "" : " ", port);
  return fmt::format("{} {}{}{}", Word(named.kind()), named.name, port.empty() ? "" : " port ", port);
}

Suspect NamedCable(const SuspectLinks& all, int link) {
  const WatchedLink& said = *all.links[std::size_t(link)].said;
  Suspect suspect;
  const std::string near = EndName(all, link, kNear), far = EndName(all, link, kFar);
  suspect.name = fmt::format("{}{}{}", far, near.empty() || far.empty() ? "" : " <-> ", near);
  suspect.node = said.node;
  suspect.port = PortAt(said, kNear);
  suspect.leaf = said.leaf;
  suspect.leaf_port = PortAt(said, kFar);
  return suspect;
}

Suspect NamedDevice(const SuspectLinks& all, int device) {
  const SuspectDevice& of = all.devices[std::size_t(device)];
  Suspect suspect;
  suspect.kind = of.kind();
  suspect.name = fmt::format("{} {}", Word(suspect.kind), of.name);
  (of.is_host ? suspect.node : suspect.leaf) = of.name;
  return suspect;
}

void DescribeCauses(const SuspectLinks& all, const Explanation& explanation, int stopped, Suspect& suspect) {
  const auto worse = [&](const ExplainedLink& a, const ExplainedLink& b) {
    if (GravityOf(a.causes) != GravityOf(b.causes)) return GravityOf(a.causes) > GravityOf(b.causes);
    return NamedBefore(*all.links[std::size_t(a.link)].said, *all.links[std::size_t(b.link)].said);
  };
  const ExplainedLink& worst = *std::min_element(explanation.links.begin(), explanation.links.end(), worse);
  suspect.symptom = GravestOf(worst.causes);
  if (explanation.device == kNobody) {
    suspect.evidence = CausesText(all, worst);
    suspect.next = NextOfCable(all, worst);
  } else {
    int flaps = 0, pauses = 0, broken = 0;
    for (const ExplainedLink& of : explanation.links) {
      const Symptom gravest = GravestOf(of.causes);
      ++(gravest == Symptom::kFlap ? flaps : gravest == Symptom::kErrors ? broken : pauses);
    }
    std::string text;
    for (const auto& [count, what] : {std::pair(flaps, "flap"), std::pair(pauses, "are stopped by its pause"),
                                      std::pair(broken, "have errors")}) {
      if (count == 0) continue;
      text += text.empty() ? fmt::format("{} of its {} links {}", count, explanation.watched, what)
                           : fmt::format(", {} {}", count, what);
    }
    suspect.evidence =
        fmt::format("{}; {}: {}", text, PortOf(all, worst.link, explanation.device), CausesText(all, worst));
    suspect.next = NextOfDevice(suspect.kind, suspect.symptom);
  }
  if (stopped > 0) suspect.evidence += fmt::format("; {} stopped by it", base::Counted(stopped, "more link"));
}

void DescribeLoss(const SuspectLinks& all, const std::vector<int>& links, int watched, Suspect& suspect) {
  const int first = *std::min_element(links.begin(), links.end(), [&](int a, int b) {
    return NamedBefore(*all.links[std::size_t(a)].said, *all.links[std::size_t(b)].said);
  });
  const SeenOfLink& seen = *all.SeenOf(first);
  const bool loss = std::any_of(links.begin(), links.end(),
                                [&](int link) { return all.SeenOf(link)->Has(Symptom::kLoss); });
  suspect.symptom = loss ? Symptom::kLoss : Symptom::kDrops;
  const Symptom shown = seen.Has(suspect.symptom) ? suspect.symptom : Symptom::kDrops;
  const std::string text = TextOf(seen, shown, seen.Has(shown, kFar) ? kFar : kNear);
  if (suspect.kind == SuspectKind::kCable) {
    suspect.evidence = text;
    suspect.next = loss ? "look at both of its ends: of those that work together it alone loses packets"
                        : "compare the lossless settings of its ends";
    return;
  }
  suspect.evidence = fmt::format(
      "{} of {} links that work over it lose packets, as {}: {}", links.size(), watched,
      EndName(all, first, kNear).empty() ? EndName(all, first, kFar) : EndName(all, first, kNear), text);
  suspect.next =
      suspect.kind == SuspectKind::kHost
          ? "look at its firmware and its lossless settings: those that work elsewhere lose nothing"
          : "look at its drop counters: those that work elsewhere lose nothing";
}

void DescribeSilent(int peers, Suspect& suspect) {
  suspect.symptom = Symptom::kLoss;
  suspect.evidence = fmt::format("all {} hosts that work with it lose packets, and it says nothing", peers);
  suspect.next = "see whether it is up";
}

std::string GangsText(int gangs, Symptom symptom) {
  if (gangs <= 0) return "";
  const bool lost = symptom == Symptom::kLoss;
  return fmt::format(", {} {}", base::Counted(gangs, "gang"),
                     lost         ? "slowed"
                     : gangs == 1 ? "crosses it"
                                  : "cross it");
}

std::string SentenceOf(const Suspect& suspect) {
  return fmt::format("{}{}{}{}{}{}", suspect.name, suspect.evidence.empty() ? "" : ": ", suspect.evidence,
                     GangsText(suspect.gangs, suspect.symptom), suspect.next.empty() ? "" : "; ",
                     suspect.next);
}

}  // namespace heddle::topology
