#include "sizing/catalogue.h"

#include <gmock/gmock.h>

#include <set>

#include "sizing/models.h"
#include "topology/synthetic_line.h"

namespace heddle::sizing {
namespace {

TEST(Catalogue, NamesASourceForEveryValue) {
  for (const MachineType& machine : Machines()) {
    SCOPED_TRACE(machine.word);
    std::set<std::string_view> fields;
    for (const auto& [field, source] : machine.sources) {
      EXPECT_GT(source.size(), 10u) << field;
      EXPECT_TRUE(fields.insert(field).second) << field;
    }
    for (const char* field : {"gpus", "nics", "nicGbps", "storagePorts", "managementPorts", "watts"})
      EXPECT_TRUE(fields.contains(field)) << field;
  }
  for (const SwitchType& type : Switches()) EXPECT_GT(type.source.size(), 10u) << type.word;
  for (const CableType& type : Cables()) EXPECT_GT(type.source.size(), 10u);
  for (const NamedModel& model : Models()) EXPECT_GT(model.source.size(), 10u) << model.word;
}

TEST(Catalogue, HasMachinesThatCanBeDrawn) {
  for (const MachineType& machine : Machines())
    EXPECT_NE(topology::FindMachine(machine.word), nullptr) << machine.word;
}

TEST(Catalogue, SplitsPorts) {
  EXPECT_EQ(FindSwitchType("qm9700")->PortsAt(400), 64);
  EXPECT_EQ(FindSwitchType("qm9700")->PortsAt(200), 128);
  EXPECT_EQ(FindSwitchType("qm9700")->PortsAt(100), 128);
  EXPECT_EQ(FindSwitchType("qm9700")->PortsAt(800), 0);
  EXPECT_EQ(FindSwitchType("sn5600")->PortsAt(400), 128);
  EXPECT_EQ(FindSwitchType("sn5600")->PortsAt(100), 256);
  EXPECT_EQ(FindSwitchType("q3400")->PortsAt(800), 144);
  EXPECT_EQ(FindSwitchType("sn5600")->PortsAt(0), 0);
}

TEST(Catalogue, TakesTheCheapestCableThatReaches) {
  EXPECT_EQ(CableFor(400, 2)->medium, Medium::kDac);
  EXPECT_EQ(CableFor(400, 3)->medium, Medium::kDac);
  EXPECT_EQ(CableFor(400, 4)->medium, Medium::kAec);
  EXPECT_EQ(CableFor(400, 6)->medium, Medium::kMultimode);
  EXPECT_EQ(CableFor(400, 51)->medium, Medium::kSingleMode);
  EXPECT_EQ(CableFor(400, 501)->medium, Medium::kLongReach);
  EXPECT_EQ(CableFor(400, 2001), nullptr);
  EXPECT_EQ(CableFor(1600, 1), nullptr);
  EXPECT_EQ(CableFor(200, 3)->medium, Medium::kAoc);
  int rate = 0, reach = 0;
  for (const CableType& type : Cables()) {  // by rate, then by reach
    EXPECT_TRUE(type.link_gbps > rate || (type.link_gbps == rate && type.metres > reach));
    rate = type.link_gbps;
    reach = type.metres;
  }
}

}  // namespace
}  // namespace heddle::sizing
