#include "nodeagent/gpu/amd_gpus.h"

#include <gmock/gmock.h>

#include "recorded_machine.h"
#include "tests/support/memory_file_tree.h"

namespace heddle::nodeagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kNodes = "sys/class/kfd/kfd/topology/nodes/";

// Two MI300X behind one root port each, and a processor.
struct Bed {
  test::MemoryFileTree files;
  PciTree tree;

  Bed() {
    for (const char* bus : {"0c", "15"}) {
      PciDevice device;
      device.address = std::string("0000:") + bus + ":00.0";
      device.class_code = 0x120000;
      device.vendor = kVendorAmd;
      device.device = 0x74a1;
      tree.devices.emplace(device.address, device);
    }
    Write(0, "cpu_cores_count 48\nsimd_count 0\n");
  }

  void Write(int node, const std::string& properties) {
    files.Write(kNodes + std::to_string(node) + "/properties", properties);
  }
  void Link(int node, int link, const std::string& properties) {
    files.Write(kNodes + std::to_string(node) + "/io_links/" + std::to_string(link) + "/properties",
                properties);
  }
  GpuReadings Read() const {
    GpuReadings readings;
    AddAmdGpus(files, tree, readings);
    return readings;
  }
};

TEST(AmdGpus, AreCountedInTheOrderOfTheComputeDriver) {
  Bed bed;
  bed.Write(
      1,
      "simd_count 1216\nlocation_id 5376\ndomain 0\nunique_id 81985529216486895\ngfx_target_version 90402\n");
  bed.Write(2, "simd_count 1216\nlocation_id 3072\ndomain 0\n");
  bed.files.Write(std::string(kNodes) + "1/mem_banks/0/properties",
                  "heap_type 1\nsize_in_bytes 206141652992\n");
  bed.files.Write("sys/bus/pci/devices/0000:0c:00.0/product_name", "AMD Instinct MI300X OAM\n");
  bed.files.Write("sys/bus/pci/devices/0000:0c:00.0/mem_info_vram_total", "206141652992\n");
  bed.files.Write("sys/bus/pci/devices/0000:0c:00.0/ras/umc_err_count", "ue: 2\nce: 17\n");
  const GpuReadings readings = bed.Read();
  ASSERT_EQ(readings.gpus.size(), 2u);
  EXPECT_THAT(readings.problems, IsEmpty());
  EXPECT_EQ(readings.gpus[0].pci, "0000:15:00.0");
  EXPECT_EQ(readings.gpus[0].uuid, "GPU-0123456789abcdef");
  EXPECT_EQ(readings.gpus[0].name, "AMD GPU 74a1 (gfx942)");
  EXPECT_EQ(readings.gpus[0].memory_mib, 196592);
  EXPECT_EQ(readings.gpus[0].uncorrected_ecc, std::nullopt);
  EXPECT_EQ(readings.gpus[1].index, 1);
  EXPECT_EQ(readings.gpus[1].name, "AMD Instinct MI300X OAM");
  EXPECT_EQ(readings.gpus[1].memory_mib, 196592);
  EXPECT_EQ(readings.gpus[1].uncorrected_ecc, 2);
  EXPECT_THAT(FaultOf(readings.gpus[1]), HasSubstr("2 uncorrectable ECC errors"));
}

TEST(AmdGpus, HaveTheXgmiLinksThatAreOneHopLong) {
  Bed bed;
  bed.Write(1, "simd_count 1216\nlocation_id 3072\ndomain 0\n");
  bed.Write(2, "simd_count 1216\nlocation_id 5376\ndomain 0\n");
  bed.Link(1, 0, "type 2\nnode_to 0\nweight 20\n");                                              // PCIe
  bed.Link(1, 1, "type 11\nnode_to 2\nweight 15\nmin_bandwidth 64000\nmax_bandwidth 128000\n");  // two links
  bed.Link(1, 2, "type 11\nnode_to 2\nweight 30\n");                                             // two hops
  bed.Link(1, 3, "type 11\nnode_to 0\nweight 15\n");  // to a processor
  bed.Link(1, 4, "type 11\nnode_to 77\nweight 15\n");
  bed.Link(2, 0, "type 11\nnode_to 1\nweight 15\nmin_bandwidth 0\nmax_bandwidth 0\n");  // an old kernel
  const GpuReadings readings = bed.Read();
  ASSERT_EQ(readings.gpus.size(), 2u);
  ASSERT_EQ(readings.gpus[0].nvlinks.size(), 2u);
  EXPECT_EQ(readings.gpus[0].nvlinks[1], (NvlinkReading{1, true, LinkEnd::kGpu, "0000:15:00.0", 64000}));
  EXPECT_EQ(readings.gpus[1].nvlinks.size(), 1u);
  const topology::NvLink links = NvlinkOf(readings.gpus);
  EXPECT_EQ(links.generation, 0);
  EXPECT_EQ(links.links_per_gpu, 2);
  EXPECT_EQ(links.gbps_per_gpu, 1024);
}

// CPX: eight nodes of one GPU.
TEST(AmdGpus, AreWholeHoweverManyPartitionsTheyHave) {
  Bed bed;
  for (int node = 1; node <= 16; ++node)
    bed.Write(node,
              std::string("simd_count 152\nlocation_id ") + (node <= 8 ? "3072" : "5376") + "\ndomain 0\n");
  bed.Link(1, 0, "type 11\nnode_to 2\nweight 15\n");
  const GpuReadings readings = bed.Read();
  ASSERT_EQ(readings.gpus.size(), 2u);
  EXPECT_THAT(readings.gpus[0].nvlinks, IsEmpty());  // a partition is no neighbour
}

// The kernel hides a node's properties from who may not use the GPU; on other machines there is no amdgpu at all.
TEST(AmdGpus, AreStillThereWhereTheComputeDriverDoesNotShowThem) {
  Bed bed;
  bed.Write(1, "simd_count 1216\nlocation_id 3072\ndomain 0\n");
  bed.files.Write("sys/bus/pci/devices/0000:15:00.0/unique_id", "89abcdef01234567\n");
  bed.files.FailReads(std::string(kNodes) + "2/properties",
                      {base::Code::kForbidden, "Operation not permitted", std::nullopt});
  const GpuReadings readings = bed.Read();
  ASSERT_EQ(readings.gpus.size(), 2u);
  EXPECT_EQ(readings.gpus[1].uuid, "GPU-89abcdef01234567");
  EXPECT_THAT(readings.problems, ElementsAre(HasSubstr("1 of 2 AMD GPUs are not in /sys/class/kfd")));
}

TEST(AmdGpus, SurviveAnyText) {
  Bed bed;
  for (const char* text : {"", "\0\xff", "simd_count", "simd_count 99999999999999999999999\nlocation_id -1\n",
                           "simd_count 1\nlocation_id 18446744073709551615\ndomain 18446744073709551615\n"}) {
    bed.Write(1, text);
    bed.Link(1, 0, text);
    bed.files.Write("sys/bus/pci/devices/0000:0c:00.0/mem_info_vram_total", text);
    bed.files.Write("sys/bus/pci/devices/0000:0c:00.0/unique_id", text);
    bed.files.Write("sys/bus/pci/devices/0000:0c:00.0/ras/umc_err_count", text);
    EXPECT_EQ(bed.Read().gpus.size(), 2u);
  }
}

}  // namespace
}  // namespace heddle::nodeagent
