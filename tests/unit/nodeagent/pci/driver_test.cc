#include "nodeagent/pci/driver.h"

#include <gmock/gmock.h>

#include "tests/support/memory_file_tree.h"

namespace heddle::nodeagent {
namespace {

constexpr const char* kFunction = "sys/bus/pci/devices/0000:1b:00.0";

TEST(Driver, IsTheLastPartOfWhatTheLinkSays) {
  test::MemoryFileTree files;
  const std::string link = std::string(kFunction) + "/driver";
  files.Link(link, "../../../../bus/pci/drivers/mlx5_core");
  EXPECT_EQ(DriverOf(files, kFunction), "mlx5_core");
  files.Remove(link);
  files.Link(link, "mlx5_core");
  EXPECT_EQ(DriverOf(files, kFunction), "mlx5_core");
}

TEST(Driver, IsEmptyWhereNothingDrivesTheDevice) {
  test::MemoryFileTree files;
  EXPECT_EQ(DriverOf(files, kFunction), "");
  files.Write(std::string(kFunction) + "/driver", "mlx5_core\n");  // no link
  EXPECT_EQ(DriverOf(files, kFunction), "");
}

TEST(Driver, CanBePublishedWhateverTheLinkSays) {
  test::MemoryFileTree files;
  files.Link(std::string(kFunction) + "/driver", "../drivers/" + std::string(70, '\x01'));
  EXPECT_EQ(DriverOf(files, kFunction), std::string(64, '?'));
}

}  // namespace
}  // namespace heddle::nodeagent
