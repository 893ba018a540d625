#include "nodeagent/discovery/printed_facts.h"

#include <fmt/format.h>

#include "formats/printable.h"

namespace heddle::nodeagent {
namespace {

std::string Line(const base::FileTree& files, const std::string& path) {
  const auto text = base::ReadTrimmed(files, path);
  return text ? formats::Printable(*text, 64) : std::string();
}

// Only drivers that are not the kernel's own have versions: of the others its release says it.
std::string DriverText(const base::FileTree& files, const std::string& driver) {
  if (driver.empty()) return {};
  const auto version = base::ReadTrimmed(files, fmt::format("sys/module/{}/version", driver));
  if (!version && version.error().code == base::Code::kNotFound) return driver + ", the kernel's own";
  return fmt::format("{} {}", driver, version && !version->empty() ? formats::Printable(*version, 64) : "?");
}

}  // namespace

PrintedFacts ReadPrintedFacts(const base::FileTree& files, const Readings& readings,
                              const Observation& seen) {
  PrintedFacts facts;
  facts.xgmi = seen.xgmi;
  facts.file_alone = seen.file_alone;
  facts.distances = DistancesOf(readings, seen.node);
  facts.excluded = seen.excluded;
  if (seen.file_alone) return facts;
  facts.read = true;
  facts.kernel = Line(files, "proc/sys/kernel/osrelease");
  facts.gpu_driver = readings.gpus.driver;
  for (const topology::Nic& nic : seen.node.nics) {
    if (nic.transport == topology::Transport::kEthernet) continue;
    const std::string base = "sys/class/infiniband/" + nic.name;
    facts.nics[nic.name] = {Line(files, base + "/fw_ver"), Line(files, base + "/hca_type"),
                            Line(files, base + "/board_id"), DriverText(files, nic.driver)};
  }
  return facts;
}

}  // namespace heddle::nodeagent
