#include <fmt/format.h>

#include <algorithm>

#include "base/lower_case.h"
#include "topology/synthetic_line.h"

namespace heddle::topology {
namespace {

// One direction, all links: 12 and 18 links of 25 GB/s, 18 of 50 GB/s; of an MI300X seven xGMI links of 64 GB/s, which
// are no generation of NVLink.
const std::array<SyntheticMachine, 8>& Machines() {
  static const std::array<SyntheticMachine, 8> kMachines = {{
      {"a100", "HGX A100", "NVIDIA A100-SXM4-80GB", 80, {3, 12, 2400, {}}},
      {"b200", "HGX B200", "NVIDIA B200", 180, {5, 18, 7200, {}}},
      {"b300", "HGX B300", "NVIDIA B300", 288, {5, 18, 7200, {}}},
      {"gb200", "GB200 NVL72", "NVIDIA GB200", 186, {5, 18, 7200, {}}},
      {"h100", "HGX H100", "NVIDIA H100 80GB HBM3", 80, {4, 18, 3600, {}}},
      {"h200", "HGX H200", "NVIDIA H200", 141, {4, 18, 3600, {}}},
      {"l40s", "L40S server", "NVIDIA L40S", 48, {}},
      {"mi300x", "MI300X platform", "AMD Instinct MI300X", 192, {0, 7, 3584, {}}},
  }};
  return kMachines;
}

class LineWriter {
 public:
  explicit LineWriter(const SyntheticLine& line) : line_(line) {}

  std::string Write() && {
    WriteLevels();
    AddList("gpu", line_.gpus);
    AddList("nic", line_.nics);
    AddList("rail", line_.rails);
    if (line_.planes > 1) Add("plane", line_.planes);
    WriteSwitches();
    AddList("rate", line_.rates_gbps);
    WriteOversubscription();
    Add("transport", TransportWord(line_.transport));
    AddList("machine", line_.machines);
    if (line_.nvlink_nodes == 0) Add("nvlink", "none");
    if (line_.nvlink_nodes > 1) Add("nvlink", line_.nvlink_nodes);
    if (line_.nvlink_nodes == SyntheticLine::kWholeRack) out_ += " nvl";
    if (line_.rail_only) out_ += " railonly";
    if (line_.dual_tor) out_ += " dualtor";
    for (const SyntheticFault& fault : line_.faults) WriteFault(fault);
    return std::move(out_);
  }

 private:
  template <class T>
  void Add(std::string_view word, const T& value) {
    out_ += fmt::format("{}{}:{}", out_.empty() ? "" : " ", word, value);
  }
  template <class T>
  void AddList(std::string_view word, const std::vector<T>& values) {
    Add(word, fmt::format("{}", fmt::join(values, ",")));
  }

  bool Several(LevelKind kind) const {
    return std::any_of(line_.levels.begin(), line_.levels.end(), [&](const Level& level) {
      return level.kind == kind && level.counts != std::vector<int>{1};
    });
  }

  void WriteLevels() {
    for (const Level& level : line_.levels) {
      const bool may_be_left_out =
          level.kind == LevelKind::kSite || level.kind == LevelKind::kZone || level.kind == LevelKind::kPod;
      if (may_be_left_out && level.counts == std::vector<int>{1}) continue;
      if (line_.layout == Layout::kTorus && level.kind == LevelKind::kHost) {
        Add("torus", fmt::format("{}x{}x{}", line_.torus[0], line_.torus[1], line_.torus[2]));
      } else {
        AddList(level.word, level.counts);
      }
    }
  }

  void WriteSwitches() {
    if (line_.layout == Layout::kTorus || line_.layout == Layout::kDragonfly || line_.rail_only) return;
    const bool zones = Several(LevelKind::kZone), pods = Several(LevelKind::kPod);
    Add("spine", line_.spines);
    if (zones || line_.superspines > 0) Add("superspine", line_.superspines);
    if (zones || pods || line_.cores > 0) Add("core", line_.cores);
  }

  static std::string Ratio(int percent) {
    std::string ratio = fmt::format("{}.{:02}", percent / 100, percent % 100);
    ratio.erase(ratio.find_last_not_of('0') + 1);
    if (ratio.back() == '.') ratio.pop_back();
    return ratio;
  }

  void WriteOversubscription() {
    std::vector<std::string> ratios;
    const auto add = [&](std::string_view tier, int percent) {
      if (percent > 0) ratios.push_back(fmt::format("{}={}", tier, Ratio(percent)));
    };
    add("su", line_.leaf_percent);
    add("spine", line_.spine_percent);
    add("superspine", line_.superspine_percent);
    if (line_.spine_percent > 0 || line_.superspine_percent > 0) {
      AddList("oversub", ratios);
    } else if (line_.leaf_percent > 0) {
      Add("oversub", line_.leaf_percent);
    }
  }

  void WriteFault(const SyntheticFault& fault) {
    if (fault.word == "badgpu") {
      Add(fault.word, fmt::format("{}/{}", fault.node, fault.number));
    } else if (fault.word != "swap") {
      Add(fault.word, fmt::format("{}/rail-{}", fault.node, fault.number));
    } else {
      const std::string other = fault.other_node == fault.node ? "" : "/" + fault.other_node;
      Add(fault.word, fmt::format("{}/rail-{}{}/rail-{}", fault.node, fault.number, other, fault.other));
    }
  }

  const SyntheticLine& line_;
  std::string out_;
};

}  // namespace

const SyntheticMachine* FindMachine(std::string_view word) {
  const auto found = std::find_if(Machines().begin(), Machines().end(),
                                  [&](const SyntheticMachine& machine) { return machine.word == word; });
  return found == Machines().end() ? nullptr : &*found;
}

std::string TransportWord(Transport transport) {
  if (transport == Transport::kInfiniBand) return "ib";
  return base::LowerCase(std::string(TransportName(transport)));
}

std::string MachineWords() {
  std::vector<std::string_view> words;
  for (const SyntheticMachine& machine : Machines()) words.push_back(machine.word);
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string WriteSyntheticLine(const SyntheticLine& line) {
  return LineWriter(line).Write();
}

}  // namespace heddle::topology
