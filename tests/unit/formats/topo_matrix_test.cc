#include "formats/topo_matrix.h"

#include <gmock/gmock.h>

namespace heddle::formats {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using topology::PciDistance;

// As a driver of 2024 writes it: tabs, an underlined header, a legend of NICs.
constexpr const char* kToday =
    "\t\x1b[4mGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV18\tPXB\tSYS\t0-47,96-143\t0\t\tN/A\n"
    "GPU1\tNV18\t X \tNODE\tPIX\t48-95\t1\t\tN/A\n"
    "NIC0\tPXB\tNODE\t X \tSYS\t\t\t\t\n"
    "NIC1\tSYS\tPIX\tSYS\t X \t\t\t\t\n"
    "\n"
    "Legend:\n\n"
    "  X    = Self\n"
    "  NV#  = Connection traversing a bonded set of # NVLinks\n\n"
    "NIC Legend:\n\n"
    "  NIC0: mlx5_0\n"
    "  NIC1: mlx5_3\n";

// As one of 2018 did, copied out of a terminal: blanks, columns named for the devices, SOC.
constexpr const char* kOld =
    "        GPU0    GPU1    mlx5_0  CPU Affinity\n"
    "GPU0     X      NV2     PHB     0-19\n"
    "GPU1    NV2      X      SOC     20-39\n"
    "mlx5_0  PHB     SOC      X\n";

TopoMatrix Read(std::string_view text) {
  auto matrix = ParseTopoMatrix(text);
  EXPECT_TRUE(matrix) << matrix.error().message;
  return matrix.value_or(TopoMatrix());
}

std::string Refusal(std::string_view text) {
  const auto matrix = ParseTopoMatrix(text);
  EXPECT_FALSE(matrix);
  return matrix ? "" : matrix.error().message;
}

TEST(TopoMatrix, ReadsTabsUnderlinesAndTheLegendOfNics) {
  const TopoMatrix matrix = Read(kToday);
  EXPECT_THAT(matrix.nics, ElementsAre("mlx5_0", "mlx5_3"));
  ASSERT_EQ(matrix.gpus.size(), 2u);
  EXPECT_EQ(matrix.gpus[0], (TopoGpu{0, "0-47,96-143", 0, {0, 18}, {PciDistance::kPxb, PciDistance::kSys}}));
  EXPECT_EQ(matrix.gpus[1], (TopoGpu{1, "48-95", 1, {18, 0}, {PciDistance::kNode, PciDistance::kPix}}));
}

TEST(TopoMatrix, ReadsBlanksAndColumnsOfDeviceNames) {
  const TopoMatrix matrix = Read(kOld);
  EXPECT_THAT(matrix.nics, ElementsAre("mlx5_0"));
  ASSERT_EQ(matrix.gpus.size(), 2u);
  EXPECT_EQ(matrix.gpus[1].distances, std::vector{PciDistance::kSys});
  EXPECT_EQ(matrix.gpus[1].nvlinks, (std::vector{2, 0}));
  EXPECT_EQ(matrix.gpus[1].cpus, "20-39");
  EXPECT_FALSE(matrix.gpus[1].numa);
}

TEST(TopoMatrix, ReadsAMachineOfOneGpu) {
  const TopoMatrix matrix = Read("\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t0-7\tN/A\n");
  ASSERT_EQ(matrix.gpus.size(), 1u);
  EXPECT_FALSE(matrix.gpus[0].numa);
}

TEST(TopoMatrix, NamesNvlinksThatDifferByDirection) {
  const TopoMatrix matrix = Read("\tGPU0\tGPU1\nGPU0\tX\tNV4\nGPU1\tNV3\tX\n");
  EXPECT_THAT(matrix.problems, Contains("GPU1 has 3 NVLinks to GPU0, which has 4 to it"));
}

TEST(TopoMatrix, NamesTheLineOfWhatIsWrong) {
  EXPECT_THAT(Refusal(""), HasSubstr("no line of it names GPUs"));
  EXPECT_THAT(Refusal("\tGPU0\tGPU1\nGPU0\tX\n"),
              HasSubstr("line 2: GPU0 has 1 cells and the header names 2"));
  EXPECT_THAT(Refusal("\tGPU0\tGPU1\nGPU0\tX\tFOO\n"), HasSubstr("line 2: GPU0 to GPU1 is `FOO`"));
  EXPECT_THAT(Refusal("\tGPU0\tGPU1\nGPU0\tNV4\tX\n"), HasSubstr("line 2: GPU0 to GPU0 is `NV4`"));
  EXPECT_THAT(Refusal("\tGPU0\tGPU1\nGPU0\tX\tNV4\n"), HasSubstr("GPU1 has a column and no row"));
  EXPECT_THAT(Refusal("\tGPU0\tGPU0\n"), HasSubstr("line 1: two columns are called GPU0"));
  EXPECT_THAT(Refusal("\tGPU0\nGPU0\tX\nGPU0\tX\n"), HasSubstr("line 3: GPU0 has two rows"));
  EXPECT_THAT(Refusal("\tGPU0\nGPU7\tX\n"), HasSubstr("line 2: the header has no column for GPU7"));
  EXPECT_THAT(Refusal("\tGPU0\tGPU1\nGPU0\tX\tNV99999\n"), HasSubstr("NV99999"));
}

}  // namespace
}  // namespace heddle::formats
