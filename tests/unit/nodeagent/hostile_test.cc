// Damage to whole machines: every file of a recorded machine may hold anything. The agent must come to an
// observation that is sound enough to publish, and to the same one each time.
#include <gtest/gtest.h>

#include "base/random.h"
#include "nodeagent/publish/report.h"
#include "recorded_machine.h"
#include "tests/support/memory_file_tree.h"
#include "tests/support/seeds.h"

namespace heddle::nodeagent {
namespace {

// Passes reads through and damages some of what they bring.
class DamagedFileTree final : public base::FileTree {
 public:
  DamagedFileTree(const base::FileTree& files, std::uint64_t seed) : files_(files), seed_(seed) {}
  base::Result<std::string> Read(std::string_view path) const override {
    base::Random random = For(path);
    auto text = files_.Read(path);
    if (!text || random.Below(20) != 0) return text;
    if (random.Below(4) == 0)
      return base::Fail(base::Code::kUnavailable, std::string(path) + ": Input/output error");
    return test::Damage(*std::move(text), random);
  }
  base::Result<std::vector<std::string>> List(std::string_view path) const override {
    base::Random random = For(path);
    auto names = files_.List(path);
    if (!names || random.Below(20) != 0) return names;
    names->insert(names->begin(), {"", "..", "a/b", "\xff\xfe", std::string(5000, 'x')});
    return names;
  }
  base::Result<std::string> ReadLink(std::string_view path) const override {
    base::Random random = For(path);
    auto target = files_.ReadLink(path);
    if (!target || random.Below(20) != 0) return target;
    return test::Damage(*std::move(target), random);
  }

 private:
  base::Random For(std::string_view path) const {
    std::uint64_t hash = seed_;
    for (const char c : path) hash = (hash ^ std::uint8_t(c)) * 1099511628211u;
    return base::Random(hash);
  }
  const base::FileTree& files_;
  const std::uint64_t seed_;
};

std::string ReportOf(const base::FileTree& files) {
  RecordedGpus gpus(files);
  Discovery discovery(files, gpus, RecordedLeaves(files), {"node-00", "", ""}, {});
  const Observation seen = discovery.Look();
  (void)topology::Check(seen.node);
  return crds::ToJson(Report({}, seen, base::WallTime{std::chrono::seconds(1'800'000'000)}))
      .dump();  // throws on bad UTF-8
}

TEST(Hostile, AMachineOfDamagedFilesIsStillDescribed) {
  for (const char* shape : {"hgx-h100", "roce-dual-tor"}) {
    const test::RecordedMachine machine(shape);
    const base::DiskFileTree files(machine.path());
    for (const std::uint64_t seed : test::Seeds(60)) {
      const DamagedFileTree damaged(files, seed);
      EXPECT_EQ(ReportOf(damaged), ReportOf(damaged)) << shape << " " << test::Replay(seed);
    }
  }
}

TEST(Hostile, NvmlYamlSurvivesDamage) {
  GpuReadings readings;
  for (int i = 0; i < 2; ++i) {
    GpuReading gpu;
    gpu.index = i;
    gpu.nvlinks = {{0, true, LinkEnd::kSwitch, "0000:c4:00.0", 26562}, {1, false, LinkEnd::kGpu, "", 0}};
    readings.gpus.push_back(gpu);
  }
  readings.gpus[0].fabric = {FabricState::kCompleted, "7a1c", 1, 0x2fff, 2, 9};
  readings.gpus[1].state = GpuState::kLost;
  readings.problems = {"one", "two"};
  const std::string good = FormatNvmlYaml(readings);
  for (const std::uint64_t seed : test::Seeds(2000)) {
    base::Random random(seed);
    const GpuReadings damaged = ParseNvmlYaml(test::Damage(good, random));
    std::vector<std::string> problems;
    (void)NvlinkOf(damaged.gpus);
    (void)FabricFaults(damaged.gpus);
    (void)DomainOf(damaged.gpus, "n", problems);
  }
}

TEST(Hostile, NvmlYamlOfMoreValuesThanAnyDriverGivesIsNotMadeATree) {
  std::string text = "gpus: [0";
  for (int i = 0; i < 200'000; ++i) text += ",0";
  EXPECT_EQ(ParseNvmlYaml(text + "]").absent, "nvml.yaml has over 100000 values");
  GpuReadings readings;
  for (int gpu = 0; gpu < 64; ++gpu) {
    readings.gpus.emplace_back().index = gpu;
    for (int link = 0; link < 36; ++link)
      readings.gpus.back().nvlinks.push_back({link, true, LinkEnd::kSwitch, "0000:c4:00.0", 53125});
  }
  EXPECT_EQ(ParseNvmlYaml(FormatNvmlYaml(readings)).gpus, readings.gpus);
}

TEST(Hostile, MachineYamlSurvivesDamage) {
  const std::string good = FormatMachineYaml({"node-00", "HGX H100", "eu"});
  for (const std::uint64_t seed : test::Seeds(2000)) {
    base::Random random(seed);
    (void)ParseMachineYaml(test::Damage(good, random));
  }
  EXPECT_FALSE(ParseMachineYaml(std::string(100'000, '[')));
  EXPECT_FALSE(ParseMachineYaml("- a\n"));
  EXPECT_EQ(ParseMachineYaml("name: " + std::string(100'000, 'x')).error().code, base::Code::kTooLarge);
}

}  // namespace
}  // namespace heddle::nodeagent
