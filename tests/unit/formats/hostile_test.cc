// Bytes that nobody meant to send: every parser gets its real input with random damage, and must neither
// crash nor hang. Under asan this is where reads past the end show.
#include <gtest/gtest.h>

#include "base/random.h"
#include "formats/dcb.h"
#include "formats/ib_neighbours.h"
#include "formats/ibnetdiscover.h"
#include "formats/lldp.h"
#include "formats/mlnx_qos.h"
#include "formats/nccl_tests.h"
#include "formats/nccl_xml.h"
#include "formats/printable.h"
#include "formats/sonic_config.h"
#include "nccl_text.h"
#include "qos_text.h"
#include "shared_data.h"
#include "tests/support/seeds.h"

namespace heddle::formats {
namespace {

template <class Parse>
void Torture(const std::string& good, Parse parse) {
  for (const std::uint64_t seed : test::Seeds(2000)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    parse(test::Damage(good, random));
  }
}

TEST(Hostile, LldpSurvivesDamage) {
  Torture(
      R"({"lldp":[{"interface":[{"name":"eth1","via":"LLDP","chassis":[{"id":[{"type":"mac","value":"aa:bb"}],
      "name":[{"value":"tor-1"}]}],"port":[{"id":[{"type":"local","value":"Ethernet1"}],"ttl":[{"value":"120"}]}]}]}]})",
      [](const std::string& text) {
        const auto parsed = ParseLldp(text);
        for (const auto& [name, neighbours] : parsed.value_or(LldpNeighbours())) {
          EXPECT_EQ(name, Printable(name));
          (void)LeafOf(neighbours);
        }
      });
}

TEST(Hostile, QosOfPortsSurvivesDamage) {
  Torture(test::LosslessFixture("mlnx_qos.txt"), [](const std::string& text) { (void)ParseMlnxQos(text); });
  for (const char* name : {"dcb.txt", "dcb.json"}) {
    Torture(test::LosslessFixture(name), [](const std::string& text) {
      (void)LooksLikeDcb(text);
      (void)ParseDcb(text);
    });
  }
}

TEST(Hostile, SonicConfigSurvivesDamage) {
  Torture(test::LosslessFixture("sonic-default.json"), [](const std::string& text) {
    const auto config = ParseSonicConfig(text);
    if (!config) {
      EXPECT_EQ(config.error().message, Printable(config.error().message, 1000));
      return;
    }
    for (const SonicPort& port : config->ports) EXPECT_EQ(port.name, Printable(port.name));
  });
}

TEST(Hostile, NcclTestsSurviveDamage) {
  for (const std::string& good : {test::kAllReducePerf, test::kTaggedAllToAll, test::kOldAllGather}) {
    Torture(good, [](const std::string& text) {
      const auto read = ParseNcclTests(text);
      if (!read) {
        EXPECT_EQ(read.error().message, Printable(read.error().message, 1000));
        return;
      }
      for (const NcclTestTable& table : read->tables) EXPECT_EQ(table.program, Printable(table.program));
    });
  }
}

TEST(Hostile, IbNeighboursSurviveDamage) {
  Torture(
      "mlx5_0 1 34 switch 0xfc6a1c0300ab12cd \"leaf r0\" 7\nmlx5_1 1 0 none\nmlx5_2 1 9 ca 0x12 \"x\" 2\n",
      [](const std::string& text) {
        for (const IbNeighbour& neighbour : ParseIbNeighbours(text).entries) {
          EXPECT_EQ(neighbour.description, Printable(neighbour.description));
        }
      });
}

TEST(Hostile, IbNetworkSurvivesDamage) {
  Torture(test::SharedData("ibnetdiscover/ibtopotool-1.topo"), [](const std::string& text) {
    for (const IbNode& node : ParseIbNetwork(text).nodes)
      EXPECT_EQ(node.description, Printable(node.description));
  });
}

TEST(Hostile, NcclXmlSurvivesDamage) {
  Torture(test::SharedData("nccl-xml/p4d-24xl-topo.xml"), [](const std::string& text) {
    const auto parsed = ParseNcclXml(text);
    if (!parsed) return;
    for (const NcclGpu& gpu : parsed->gpus) (void)NearestNics(*parsed, gpu);
  });
}

TEST(Hostile, DeeplyNestedJsonIsNoLldpAndNoCrash) {
  EXPECT_FALSE(ParseLldp(std::string(1'000'000, '[')));
  EXPECT_FALSE(ParseLldp(std::string(1'000'000, '[') + std::string(1'000'000, ']')));
}

TEST(Printable, KeepsAsciiAndNothingElse) {
  EXPECT_EQ(Printable("  leaf-1\n"), "leaf-1");
  EXPECT_EQ(Printable("leaf 1", 5), "leaf") << "nothing ends in a blank, cut or not";
  EXPECT_EQ(Printable(std::string("a\0b\xff\x7f", 5)), "a?b??");
  EXPECT_EQ(Printable("abcdef", 3), "abc");
  EXPECT_EQ(Printable("\n \t"), "");
}

}  // namespace
}  // namespace heddle::formats
