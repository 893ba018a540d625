#include "nodeagent/nccl_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "nodeagent/nccl/export.h"
#include "nodeagent/nccl/import.h"
#include "nodeagent/print.h"

namespace heddle::nodeagent {
namespace {

// `node`: what the user called the machine; empty: nothing.
base::Status UseNcclXml(const std::string& path, bool alone, const std::string& node, Discovery& discovery) {
  const std::filesystem::path file(path);
  const base::DiskFileTree folder(file.has_parent_path() ? file.parent_path().string() : ".");
  ASSIGN_OR_RETURN(SuppliedTopology supplied, ReadSuppliedTopology(folder, file.filename().string(), path));
  supplied.alone = alone;
  supplied.node = node.empty() ? "unknown" : node;  // not the name of the host that reads the file
  discovery.Use(std::move(supplied));
  return {};
}

base::Status WriteNccl(const base::FileTree& files, Discovery& discovery, const std::string& path) {
  const Readings readings = discovery.Read();
  const std::string xml = NcclTopologyOf(files, readings, Assemble(readings));
  if (path == "-") {
    return Say(xml);
  }
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << xml;
  file.close();
  if (file) return {};
  return base::Fail(base::Code::kUnavailable,
                    fmt::format("{} cannot be written: does its folder exist, and is there space?", path));
}

}  // namespace

base::Result<bool> ServeNccl(const base::FileTree& files, const Flags& flags, bool live,
                             Discovery& discovery) {
  if (!flags.from_nccl_xml.empty()) {
    TRY(UseNcclXml(flags.from_nccl_xml, flags.print && live, flags.named, discovery));
  }
  if (flags.nccl_topo.empty()) return false;
  TRY(WriteNccl(files, discovery, flags.nccl_topo));
  return true;
}

}  // namespace heddle::nodeagent
