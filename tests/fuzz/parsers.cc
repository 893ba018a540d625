// The parsers of formats/ and of topology/.

#include <algorithm>
#include <string>

#include "base/check.h"
#include "formats/dcb.h"
#include "formats/hostlist.h"
#include "formats/ib_neighbours.h"
#include "formats/ibnetdiscover.h"
#include "formats/lldp.h"
#include "formats/mlnx_qos.h"
#include "formats/nccl_tests.h"
#include "formats/nccl_xml.h"
#include "formats/printable.h"
#include "formats/scanner.h"
#include "formats/slurm_topology.h"
#include "formats/sonic_config.h"
#include "formats/sonic_patch.h"
#include "formats/sonic_yang.h"
#include "formats/topo_matrix.h"
#include "lossless/compare.h"
#include "tests/fuzz/targets.h"
#include "topology/synthetic.h"

namespace heddle::fuzz {
namespace {

void CheckSlurm(const formats::SlurmTopology& topology) {
  std::size_t hosts = 0;
  for (const auto& one : topology.switches) {
    CHECK(!one.name.empty());
    CHECK(one.line > 0);
    hosts += one.nodes.size();
  }
  CHECK(hosts <= formats::kMaxHosts);
}

// What was read is in range: a port compares with itself, and every table points inside itself.
void CheckSettings(const lossless::PortSettings& settings) {
  CHECK(lossless::Compare(settings, settings).compliant());
  for (int dscp = 0; dscp < lossless::kDscps; ++dscp) {
    const int priority = lossless::PriorityOf(settings, dscp);
    CHECK(priority >= lossless::kNotSaid && priority < lossless::kPriorities);
  }
  if (settings.priority_to_buffer) {
    for (const int buffer : *settings.priority_to_buffer)
      CHECK(buffer >= -1 && buffer < lossless::kPriorities);
  }
}

}  // namespace

bool Hostlist(std::string_view bytes) {
  const auto names = formats::ExpandHostlist(bytes, 1000);
  if (!Read(names)) return false;
  CHECK(!names->empty() && names->size() <= 1000);
  std::string joined;
  for (const std::string& name : *names) joined += (joined.empty() ? "" : ",") + name;
  const auto again = formats::ExpandHostlist(joined, 1000);
  CHECK(again && *again == *names);
  return true;
}

bool SlurmConf(std::string_view bytes) {
  const auto topology = formats::ParseSlurmConf(bytes);
  if (!Read(topology)) return false;
  CheckSlurm(*topology);
  return !topology->switches.empty();
}

bool SlurmYaml(std::string_view bytes) {
  const auto topology = formats::ParseSlurmYaml(std::string(bytes));
  if (!Read(topology)) return false;
  CheckSlurm(*topology);
  return !topology->switches.empty();
}

bool TopoMatrix(std::string_view bytes) {
  const auto matrix = formats::ParseTopoMatrix(bytes);
  if (!Read(matrix)) return false;
  CHECK(!matrix->gpus.empty());
  for (const formats::TopoGpu& gpu : matrix->gpus) {
    CHECK(gpu.nvlinks.size() == matrix->gpus.size());
    CHECK(gpu.distances.size() == matrix->nics.size());
  }
  return true;
}

bool NcclTests(std::string_view bytes) {
  const auto output = formats::ParseNcclTests(bytes);
  if (!Read(output)) return false;
  CHECK(!output->tables.empty() && output->tables.size() <= formats::kMaxNcclTestTables + 1);
  for (const formats::NcclTestTable& table : output->tables) {
    CHECK(table.program == formats::Printable(table.program));
    CHECK(!table.rows.empty() && table.rows.size() <= formats::kMaxNcclTestRows);
    for (const formats::NcclTestRow& row : table.rows) {
      CHECK(row.out_of_place && row.in_place && row.line > 0);
      CHECK(row.out_of_place->micros >= 0 && row.in_place->bus_gbs >= 0);
    }
  }
  return true;
}

bool Ibnetdiscover(std::string_view bytes) {
  const formats::IbNetwork network = formats::ParseIbNetwork(bytes);
  for (const formats::IbNode& node : network.nodes) {
    CHECK(node.description == formats::Printable(node.description));
    CHECK(network.Find(node.id) != nullptr);
    (void)formats::ParseIbAdapterName(node.description);
    for (const formats::IbLink& link : node.links) CHECK(formats::IbLinkGbps(link) >= 0);
  }
  return !network.nodes.empty();
}

bool IbNeighbours(std::string_view bytes) {
  const formats::IbNeighbours neighbours = formats::ParseIbNeighbours(bytes);
  for (const formats::IbNeighbour& one : neighbours.entries)
    CHECK(!formats::IbSwitchName(one.description, "0x1").empty());
  return !neighbours.entries.empty();
}

bool Lldp(std::string_view bytes) {
  const auto neighbours = formats::ParseLldp(bytes);
  if (!Read(neighbours)) return false;
  for (const auto& [interface, heard] : *neighbours) {
    CHECK(!heard.empty());
    (void)formats::LeafOf(heard);
  }
  return !neighbours->empty();
}

bool NcclXml(std::string_view bytes) {
  const auto topology = formats::ParseNcclXml(bytes);
  if (!Read(topology)) return false;
  for (const formats::NcclGpu& gpu : topology->gpus) {
    CHECK(formats::NearestNics(*topology, gpu).empty() == topology->nics.empty());
  }
  return !topology->gpus.empty();
}

bool SonicConfig(std::string_view bytes) {
  const auto config = formats::ParseSonicConfig(bytes);
  if (!Read(config)) return false;
  for (const formats::SonicPort& port : config->ports) {
    CHECK(port.name == formats::Printable(port.name));
    CheckSettings(port.settings);
  }
  (void)formats::CheckSonic(bytes);
  if (config->ports.empty()) return false;
  // What was made to fit has nothing more to change.
  const std::vector<formats::SonicWish> wishes{
      {config->ports.front().name,
       lossless::RenderSwitchPort(*lossless::Resolve({}), *lossless::FindSwitchProfile("spectrum/v1"), {})}};
  const auto patch = formats::PatchSonic(bytes, "roce", wishes);
  if (!Read(patch)) return false;
  const auto patched = formats::Patched(bytes, *patch);
  CHECK(patched);
  const auto again = formats::PatchSonic(*patched, "roce", wishes);
  CHECK(!again || again->lines.empty());
  return true;
}

bool MlnxQos(std::string_view bytes) {
  const auto settings = formats::ParseMlnxQos(bytes);
  if (!Read(settings)) return false;
  CHECK(formats::LooksLikeMlnxQos(bytes) || settings->dscp_to_priority || settings->pfc);
  CheckSettings(*settings);
  return true;
}

bool Dcb(std::string_view bytes) {
  (void)formats::LooksLikeDcb(bytes);
  const auto settings = formats::ParseDcb(bytes);
  if (!Read(settings)) return false;
  CheckSettings(*settings);
  return true;
}

// A cluster takes as long as it is large, and 100,000 nodes are no fault: only small ones are built here.
bool Synthetic(std::string_view bytes) {
  std::uint64_t size = 1;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::uint64_t number = 0;
    for (; i < bytes.size() && bytes[i] >= '0' && bytes[i] <= '9'; ++i) {
      number = std::min<std::uint64_t>(number * 10 + std::uint64_t(bytes[i] - '0'), 10'000'000);
    }
    // Larger numbers are refused whatever they count.
    if (number > 1 && number < 10'000'000) size = std::min<std::uint64_t>(size * number, 1'000'000'000);
  }
  if (size > 20'000) return false;
  const auto canonical = topology::CanonicalSynthetic(bytes);
  if (!Read(canonical)) return false;
  const auto again = topology::CanonicalSynthetic(*canonical);
  CHECK(again && *again == *canonical);
  const auto made = topology::ParseSynthetic(bytes);
  if (!Read(made)) return false;
  const topology::Fabric fabric = topology::BuildFabric(made->nodes, made->declaration);
  CHECK(topology::Check(fabric).empty());
  return true;
}

}  // namespace heddle::fuzz
