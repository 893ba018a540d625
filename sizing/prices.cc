#include "sizing/prices.h"

#include <fmt/format.h>

#include <array>

namespace heddle::sizing {
namespace {

class Lines {
 public:
  explicit Lines(const PriceBook& prices) : prices_(prices) {}

  void Add(std::string key, std::string title, std::int64_t count) {
    if (count == 0) return;
    for (BillLine& line : bill_.lines) {
      if (line.key != key || line.title != title) continue;
      line.count += count;
      return;
    }
    const auto found = prices_.items.find(key);
    bill_.lines.push_back({std::move(key), std::move(title), count,
                           found == prices_.items.end() ? std::nullopt : std::optional(found->second)});
  }

  void AddLinks(Medium medium, int rate, std::int64_t cables) {
    const std::string_view word = MediumWord(medium);
    if (!HasTransceivers(medium)) {
      Add(fmt::format("cable.{}.{}", word, rate),
          fmt::format("{} cables, {} Gb/s", MediumTitle(medium), rate), cables);
      return;
    }
    Add(fmt::format("transceiver.{}.{}", word, rate),
        fmt::format("transceivers {}, {} Gb/s",
                    medium == Medium::kMultimode    ? "multimode"
                    : medium == Medium::kSingleMode ? "single mode"
                                                    : "2 km",
                    rate),
        2 * cables);
    Add(medium == Medium::kMultimode ? "fibre.multimode" : "fibre.singlemode",
        medium == Medium::kMultimode ? "fibre cables, multimode" : "fibre cables, single mode", cables);
  }

  Bill Take() && {
    for (const BillLine& line : bill_.lines) {
      if (!line.each) {
        bill_.unpriced += line.count;
        continue;
      }
      bill_.total.low += line.each->low * double(line.count);
      bill_.total.high += line.each->high * double(line.count);
    }
    return std::move(bill_);
  }

 private:
  const PriceBook& prices_;
  Bill bill_;
};

}  // namespace

const PriceBook& UsualPrices() {
  // A QM9700 at 35,000 and transceivers at 500 to 1,000: infra-economics.com; the same switch at 36,000 and 50,000 and
  // a link of 400 Gb/s with both ends at 1,280: a public sheet of August 2024. Everything else is scaled from these by
  // bandwidth and is our own guess.
  static const PriceBook kBook{"USD",
                               "2026-11",
                               "estimates of this project from public lists of 2024 to 2026",
                               {{"switch.qm8790", {10e3, 25e3}},
                                {"switch.qm9700", {25e3, 50e3}},
                                {"switch.q3400", {90e3, 200e3}},
                                {"switch.sn5600", {45e3, 100e3}},
                                {"switch.tomahawk4", {18e3, 40e3}},
                                {"switch.tomahawk5", {40e3, 95e3}},
                                {"cable.dac.200", {80, 200}},
                                {"cable.dac.400", {100, 350}},
                                {"cable.dac.800", {200, 600}},
                                {"cable.aec.400", {250, 700}},
                                {"cable.aoc.200", {350, 1100}},
                                {"transceiver.multimode.400", {400, 1000}},
                                {"transceiver.singlemode.200", {250, 700}},
                                {"transceiver.singlemode.400", {450, 1300}},
                                {"transceiver.singlemode.800", {800, 2200}},
                                {"transceiver.longreach.200", {400, 1200}},
                                {"transceiver.longreach.400", {800, 2500}},
                                {"transceiver.longreach.800", {1500, 4500}},
                                {"fibre.multimode", {40, 200}},
                                {"fibre.singlemode", {30, 200}}}};
  return kBook;
}

std::string PriceKeys() {
  std::string keys;
  for (const auto& [key, band] : UsualPrices().items) (keys += keys.empty() ? "" : ", ") += key;
  return keys;
}

Bill BillOf(const Design& design, const PriceBook& prices) {
  Lines lines(prices);
  const auto add_switches = [&](const SwitchType* type, std::string_view use, std::int64_t count) {
    lines.Add(
        type == nullptr ? fmt::format("switch.radix{}", design.radix) : fmt::format("switch.{}", type->word),
        fmt::format(
            "{}, {}",
            type == nullptr ? fmt::format("switches of {} ports", design.radix) : std::string(type->title),
            use),
        count);
  };
  add_switches(design.type, "compute", design.switches());
  for (const CableRun& run : design.cables)
    lines.AddLinks(run.medium, RateClass(design.link_gbps), run.cables);
  const StorageFabric& storage = design.storage;
  add_switches(storage.type, "storage", storage.leaves + storage.spines);
  // Nobody says where storage stands, so its links are taken for those that reach across a hall.
  const int rate = RateClass(storage.link_gbps);
  lines.AddLinks(rate == 200   ? Medium::kAoc
                 : rate == 400 ? Medium::kMultimode
                               : Medium::kSingleMode,
                 rate, storage.node_ports + storage.storage_ports + storage.leaf_cables);
  return std::move(lines).Take();
}

Watts CableWatts(const Design& design) {
  Watts watts;
  for (const CableRun& run : design.cables) {
    const CableType* const type = CableFor(design.link_gbps, run.longest);
    if (type == nullptr || !IsOptical(run.medium)) continue;
    watts.low += 2 * type->end_watts_low * double(run.cables);
    watts.high += 2 * type->end_watts_high * double(run.cables);
  }
  return watts;
}

}  // namespace heddle::sizing
