#include "nodeagent/assembly/nvlink_assembly.h"

#include <gmock/gmock.h>

namespace heddle::nodeagent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

GpuReading GpuWith(int index, std::vector<NvlinkReading> links) {
  GpuReading gpu;
  gpu.index = index;
  gpu.nvlink_generation = 4;
  gpu.nvlinks = std::move(links);
  return gpu;
}

NvlinkReading Link(int number, bool active, LinkWord word = LinkWord::kSaid) {
  NvlinkReading link;
  link.link = number;
  link.active = active;
  link.word = word;
  return link;
}

Observation Seen(const Readings& readings) {
  Observation seen;
  seen.node.name = "gpu-1";
  seen.file_alone = readings.file_alone;
  AssembleNvlink(readings, seen);
  return seen;
}

TEST(NvlinkAssembly, SaysOfLinksThatAreDownThoseThatAreUpElsewhere) {
  Readings readings;
  readings.gpus.gpus = {GpuWith(0, {Link(0, true), Link(1, true), Link(2, false)}),
                        GpuWith(1, {Link(0, false), Link(1, true), Link(2, false)})};
  const Observation seen = Seen(readings);
  EXPECT_EQ(seen.node.nvlink.links_per_gpu, 2);
  EXPECT_THAT(seen.inactive_nvlinks, ElementsAre(Pair(0, ElementsAre(2)), Pair(1, ElementsAre(0))))
      << "no board here uses 2, and GPU 1 lacks 0";
  EXPECT_THAT(seen.untold_nvlinks, IsEmpty());
}

TEST(NvlinkAssembly, ALinkOfWhichTheDriverNeverSpokeIsNotDown) {
  Readings readings;
  readings.gpus.gpus = {GpuWith(0, {Link(0, true), Link(1, false, LinkWord::kUntold)})};
  const Observation seen = Seen(readings);
  EXPECT_THAT(seen.inactive_nvlinks, IsEmpty());
  EXPECT_THAT(seen.untold_nvlinks, ElementsAre(Pair(0, 1))) << "beyond the one that counts";
}

TEST(NvlinkAssembly, TellsASwitchByTheBusWhereTheDriverDoesNot) {
  Readings readings;
  GpuReading gpu = GpuWith(0, {Link(0, true)});
  gpu.nvlinks[0].remote_pci = "0000:07:00.0";
  readings.gpus.gpus = {gpu};
  EXPECT_FALSE(Seen(readings).nvswitches_unseen) << "nobody says that a switch is there";
  PciDevice device;
  device.address = gpu.nvlinks[0].remote_pci;
  device.vendor = kVendorNvidia;
  device.class_code = 0x068000;
  readings.pci.devices[device.address] = device;
  EXPECT_TRUE(Seen(readings).nvswitches_unseen) << "and `seen` has none of the bus";
}

TEST(NvlinkAssembly, KnowsNoDomainWhereAFileAloneHasNoLinks) {
  Readings readings;
  readings.gpus.gpus = {GpuWith(0, {})};
  EXPECT_EQ(Seen(readings).node.nvlink_domain.missing(), topology::Missing::kNotApplicable);
  readings.file_alone = true;
  EXPECT_EQ(Seen(readings).node.nvlink_domain.missing(), topology::Missing::kUnknown);
}

}  // namespace
}  // namespace heddle::nodeagent
