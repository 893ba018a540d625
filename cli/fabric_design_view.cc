#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "cli/advice.h"
#include "cli/fabric_design.h"
#include "cli/quality_view.h"

namespace heddle::cli {
namespace {

using sizing::Design;
using sizing::Grouped;
using sizing::Segment;

// Two digits: more would say that anybody knows.
double TwoDigits(double value, bool up) {
  if (value <= 0) return 0;
  const double unit = std::pow(10, std::floor(std::log10(value)) - 1);
  return (up ? std::ceil(value / unit - 1e-9) : std::floor(value / unit + 1e-9)) * unit;
}

std::string Range(double low, double high) {
  const double from = TwoDigits(low, false), to = TwoDigits(high, true);
  const double unit = to >= 1e9 ? 1e9 : to >= 1e6 ? 1e6 : 1;
  const auto number = [unit](double value) {
    return unit > 1 || value < 100 ? fmt::format("{:g}", value / unit) : Grouped(std::llround(value));
  };
  const std::string_view word = unit == 1e9 ? " billion" : unit == 1e6 ? " million" : "";
  return from == to ? fmt::format("{}{}", number(from), word)
                    : fmt::format("{} to {}{}", number(from), number(to), word);
}

// "1 rack", "2,048 racks"
std::string Counted(std::int64_t count, std::string_view word) {
  return fmt::format("{} {}{}", Grouped(count), word, count == 1 ? "" : "s");
}

std::string Tbps(std::int64_t gbps) {
  if (gbps >= 1'000'000) return Grouped(gbps / 1000) + " Tb/s";
  return gbps < 1000 ? fmt::format("{} Gb/s", gbps) : fmt::format("{:.1f} Tb/s", double(gbps) / 1000);
}

std::string Units(const Design& design) {
  const std::vector<int>& units = design.tree.unit_nodes;
  const std::string nodes = units.front() == units.back()
                                ? std::to_string(units.front())
                                : fmt::format("{} to {}", units.back(), units.front());
  return fmt::format("{} of {} node{}", Grouped(std::int64_t(units.size())), nodes, nodes == "1" ? "" : "s");
}

std::string TierText(const Design& design, std::size_t tier) {
  if (tier >= design.tiers.size()) return "none";
  const sizing::SwitchTier& one = design.tiers[tier];
  return fmt::format("{} ({} down{})", Grouped(one.switches), one.down,
                     one.up > 0 ? fmt::format(", {} up", one.up) : "");
}

std::string Reach(const Design& design) {
  int longest = 0;
  for (const sizing::CableRun& run : design.cables) longest = std::max(longest, run.longest);
  return fmt::format("{} m", longest);
}

std::string WattText(const Design& design) {
  const sizing::Watts watts = sizing::CableWatts(design);
  return watts.high == 0 ? "none" : fmt::format("{} kW", Range(watts.low / 1000, watts.high / 1000));
}

std::string StorageText(const Design& design) {
  const sizing::StorageFabric& storage = design.storage;
  std::string text = Grouped(storage.leaves) + " leaves";  // two at least
  if (storage.spines > 0) text += fmt::format(", {} spines", Grouped(storage.spines));
  if (storage.blocks > 1) text += fmt::format(" in {} blocks", storage.blocks);
  return text;
}

std::string PriceText(const DesignAnswer& answer, const DesignedFabric& fabric) {
  const sizing::Bill& bill = fabric.bill;
  if (bill.total.high == 0) return "unknown";
  return fmt::format("{} {}{}", Range(bill.total.low, bill.total.high), answer.prices.currency,
                     bill.unpriced > 0 ? " and more" : "");
}

std::string AllReduceText(const DesignedFabric& fabric) {
  if (!fabric.prediction) return "unknown";
  if (fabric.prediction->all_reduce_micros <= 0) return "none: one GPU";
  return fmt::format("{:.2f} ms, {:.0f} GB/s", fabric.prediction->all_reduce_micros / 1000,
                     fabric.prediction->bus_gbs);
}

const placement::Suggestion* StepOf(const DesignedFabric& fabric) {
  return fabric.prediction ? std::get_if<placement::Suggestion>(&fabric.prediction->step) : nullptr;
}

std::string StepText(const DesignedFabric& fabric) {
  const placement::Suggestion* const step = StepOf(fabric);
  return step == nullptr ? "unknown" : fmt::format("{:.2f} s", step->step_micros / 1e6);
}

std::string LayoutText(const DesignedFabric& fabric) {
  const placement::Suggestion* const step = StepOf(fabric);
  return step == nullptr ? "unknown" : ParallelismText(step->layout.parallelism);
}

std::string Needs(const DesignedFabric& fabric) {
  return fabric.transport == topology::Transport::kInfiniBand ? "credits, subnet manager"
                                                              : "PFC and ECN on every hop";
}

std::string SwitchText(const Design& design) {
  return design.type == nullptr ? "any of that many ports" : std::string(design.type->title);
}

std::string Heading(const DesignAnswer& answer, const Design& design) {
  const sizing::Request& request = design.request;
  std::string wiring(sizing::WiringWord(request.wiring));
  wiring.front() = char(wiring.front() - 'a' + 'A');
  std::string text = fmt::format("{} in {}: {}, {} GPUs and {} NICs of {} Gb/s each.\n{}, {}",
                                 Counted(answer.request.gpus, "GPU"), Counted(design.nodes, "node"),
                                 design.machine->title, design.machine->gpus, design.machine->nics,
                                 design.machine->nic_gbps, wiring, sizing::RatioText(request.leaf));
  if (request.core != sizing::Ratio{1, 1})
    text += fmt::format(" and {} to the cores", sizing::RatioText(request.core));
  if (request.planes > 1) text += fmt::format(", {} planes", request.planes);
  return text + ".\n\n";
}

std::vector<std::string> Header(std::vector<std::string> header,
                                const std::vector<const DesignedFabric*>& fabrics) {
  for (const DesignedFabric* one : fabrics) {
    header.emplace_back(one->transport == topology::Transport::kInfiniBand ? "INFINIBAND" : "ROCE");
  }
  return header;
}

// The transports side by side.
std::string Comparison(const DesignAnswer& answer, const std::vector<const DesignedFabric*>& fabrics,
                       const Style& style) {
  Table table(Header({""}, fabrics));
  const auto add = [&](std::string title, const std::function<std::string(const DesignedFabric&)>& cell) {
    std::vector<Cell> row{std::move(title)};
    for (const DesignedFabric* one : fabrics) row.emplace_back(cell(*one));
    table.Add(std::move(row));
  };
  const auto of = [](auto text) { return [text](const DesignedFabric& one) { return text(*one.fits()); }; };
  add("switch", of(SwitchText));
  add("ports of one", of([](const Design& d) { return fmt::format("{} of {} Gb/s", d.radix, d.link_gbps); }));
  add("units", of(Units));
  add("leaves", of([](const Design& d) { return TierText(d, 0); }));
  add("spines", of([](const Design& d) { return TierText(d, 1); }));
  add("cores", of([](const Design& d) { return TierText(d, 2); }));
  add("switches in all", of([](const Design& d) { return Grouped(d.switches()); }));
  add("cables", of([](const Design& d) {
        return fmt::format("{}, {} optical", Grouped(d.cable_count()), Grouped(d.optical_cables()));
      }));
  add("transceivers", of([](const Design& d) { return Grouped(d.transceivers()); }));
  add("optics draw", of(WattText));
  add("longest cable", of(Reach));
  add("bisection", of([](const Design& d) {
        return d.bisection_gbps == 0 && d.injection_gbps > 0 ? "none between rails" : Tbps(d.bisection_gbps);
      }));
  add("holds at most", of([](const Design& d) { return Grouped(d.most_gpus) + " GPUs"; }));
  add("storage beside", of(StorageText));
  add("price, roughly", [&](const DesignedFabric& one) { return PriceText(answer, one); });
  add("all-reduce 1 GiB", AllReduceText);
  add("step", StepText);
  add("its layout", LayoutText);
  add("lossless by", Needs);
  return table.Format(style);
}

// Equal times side by side look like a finding, and are none.
std::string WhatTimesTell(const std::vector<const DesignedFabric*>& fabrics) {
  const bool times = std::any_of(fabrics.begin(), fabrics.end(),
                                 [](const DesignedFabric* one) { return one->prediction.has_value(); });
  if (fabrics.size() < 2 || !times) return "";
  return "Times are of the topology alone: the model does not tell InfiniBand from RoCE.\n";
}

// A row for each segment and medium that one of them has.
std::string CableTable(const std::vector<const DesignedFabric*>& fabrics, const Style& style) {
  Table table(Header({"CABLES", "MADE AS"}, fabrics));
  for (const Segment segment : {Segment::kNodeLeaf, Segment::kLeafSpine, Segment::kSpineCore}) {
    for (int m = 0; m < sizing::kMediums; ++m) {
      const auto medium = static_cast<sizing::Medium>(m);
      std::vector<Cell> row{std::string(sizing::SegmentName(segment)),
                            std::string(sizing::MediumTitle(medium))};
      bool any = false;
      for (const DesignedFabric* fabric : fabrics) {
        const auto& runs = fabric->fits()->cables;
        const auto run = std::find_if(runs.begin(), runs.end(), [&](const sizing::CableRun& one) {
          return one.segment == segment && one.medium == medium;
        });
        any = any || run != runs.end();
        row.emplace_back(run == runs.end()
                             ? ""
                             : fmt::format("{}, {} m", Grouped(run->cables),
                                           run->shortest == run->longest
                                               ? std::to_string(run->longest)
                                               : fmt::format("{}-{}", run->shortest, run->longest)));
      }
      if (any) table.Add(std::move(row));
    }
  }
  return "\n" + table.Format(style);
}

// A row for each thing that one of them has; sums stand in the comparison.
std::string BillTable(const DesignAnswer& answer, const std::vector<const DesignedFabric*>& fabrics,
                      const Style& style) {
  std::vector<std::string> header = Header({"TO BUY"}, fabrics);
  header.push_back("EACH, " + WithoutControls(answer.prices.currency));
  Table table(std::move(header));
  std::vector<sizing::BillLine> things;
  for (const DesignedFabric* fabric : fabrics) {
    for (const sizing::BillLine& line : fabric->bill.lines) {
      const bool known = std::any_of(things.begin(), things.end(),
                                     [&](const sizing::BillLine& one) { return one.title == line.title; });
      if (!known) things.push_back(line);
    }
  }
  // Switches, cables, transceivers, fibres.
  const auto rank = [](const sizing::BillLine& one) {
    return std::string_view("sctf").find(one.key.front());
  };
  std::stable_sort(things.begin(), things.end(),
                   [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  for (const sizing::BillLine& thing : things) {
    std::vector<Cell> row{thing.title};
    for (const DesignedFabric* fabric : fabrics) {
      const auto& lines = fabric->bill.lines;
      const auto line = std::find_if(lines.begin(), lines.end(),
                                     [&](const sizing::BillLine& one) { return one.title == thing.title; });
      row.emplace_back(line == lines.end() ? "" : Grouped(line->count));
    }
    row.emplace_back(thing.each ? Range(thing.each->low, thing.each->high) : "unknown");
    table.Add(std::move(row));
  }
  return "\n" + table.Format(style);
}

std::string Notes(const DesignAnswer& answer, const std::vector<const DesignedFabric*>& fabrics) {
  const Design& design = *fabrics.front()->fits();
  const sizing::Floor& floor = design.floor;
  std::string text = fmt::format("\nHall: {} of {}, {} of switches, {} to a row; lengths follow from that.\n",
                                 Counted(floor.node_racks, "rack"), Counted(floor.nodes_per_rack, "node"),
                                 Grouped(floor.network_racks), floor.racks_per_row);
  text += fmt::format("Storage: reads of {} GB/s in all, {} ports of nodes and {} of storage.\n",
                      Grouped(std::llround(design.storage.read_gbs)), Grouped(design.storage.node_ports),
                      Grouped(design.storage.storage_ports));
  text += fmt::format(
      "Prices: {}, {}{}. No servers, no NICs.\n", WithoutControls(answer.prices.source),
      WithoutControls(answer.prices.date),
      answer.prices_from.empty() ? "" : "; " + WithoutControls(answer.prices_from) + " in their place");
  const placement::Suggestion* const step = StepOf(*fabrics.front());
  if (step != nullptr) {
    text += fmt::format("Step: {}, {} sequences; as `kubectl heddle plan --suggest` predicts it.\n",
                        WithoutControls(answer.model), Grouped(fabrics.front()->prediction->batch));
  }
  return text;
}

// Why a cell above says "unknown", and what did not fit.
std::string Unknowns(const DesignAnswer& answer) {
  std::string text;
  std::string before;
  const auto say = [&](const DesignedFabric& fabric, std::string_view what, const std::string& why) {
    if (why == before) return;
    before = why;
    text +=
        fmt::format("{}, {}: {}.\n", topology::TransportName(fabric.transport), what, WithoutControls(why));
  };
  for (const DesignedFabric& fabric : answer.fabrics) {
    if (const auto* refusal = std::get_if<sizing::Refusal>(&fabric.design)) {
      say(fabric, "not sized", refusal->sentence);
      continue;
    }
    if (!fabric.prediction) {
      say(fabric, "no times", fabric.prediction.error().message);
    } else if (const auto* why = std::get_if<std::string>(&fabric.prediction->step)) {
      say(fabric, "no step", *why);
    }
    if (fabric.bill.unpriced > 0)
      say(fabric, "price",
          fmt::format("{} things have none; give it by --prices", Grouped(fabric.bill.unpriced)));
  }
  return text.empty() ? "" : "\n" + text;
}

std::string Lines(const std::vector<const DesignedFabric*>& fabrics, const Style& style) {
  std::string text = "\nThe same for `kubectl heddle plan --synthetic`:\n";
  for (const DesignedFabric* fabric : fabrics) {
    text += fabric->line ? fmt::format("  \"{}\"\n", *fabric->line)
                         : fmt::format("  {}: {}\n", topology::TransportName(fabric->transport),
                                       fabric->line.error().message);
  }
  if (!fabrics.front()->fits()->machine->predicted)
    text += SentenceText(
        "Its times there are of NCCL's rings, which these GPUs do not run: for what lies where only.", style);
  return text;
}

}  // namespace

std::string DesignText(const DesignAnswer& answer, const Style& style) {
  std::vector<const DesignedFabric*> fabrics;
  for (const DesignedFabric& one : answer.fabrics) {
    if (one.fits() != nullptr) fabrics.push_back(&one);
  }
  if (fabrics.empty()) return ProseText(Unknowns(answer), style);
  // The lines at the end are to be copied whole.
  return ProseText(Heading(answer, *fabrics.front()->fits()) + Comparison(answer, fabrics, style) +
                       WhatTimesTell(fabrics) + CableTable(fabrics, style) +
                       BillTable(answer, fabrics, style) + Notes(answer, fabrics) + Unknowns(answer),
                   style) +
         Lines(fabrics, style);
}

}  // namespace heddle::cli
