#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace heddle::cli {

// What an admin may already have of a fabric.
enum class SourceKind : std::uint8_t {
  kIbnetdiscover,  // text of `ibnetdiscover`
  kSlurmConf,      // topology.conf
  kSlurmYaml,      // topology.yaml
  kNcclXml,        // NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE
  kTopoMatrix,     // `nvidia-smi topo -m`
  kLldp,           // `lldpcli -f json0 show neighbors` of one host
};
std::string_view SourceKindName(SourceKind kind);  // "ibnetdiscover", "slurm-conf", "slurm-yaml", "nccl-xml",
                                                   // "topo-m", "lldp"

// An argument of `fabric import`: FILE, KIND:FILE, HOST=FILE or HOST=KIND:FILE.
struct SourceWord {
  std::optional<SourceKind> kind;  // nothing: by content
  std::string host;                // empty = not said
  std::string path;
  friend bool operator==(const SourceWord&, const SourceWord&) = default;
};
SourceWord ParseSourceWord(std::string_view word);

// What a text is, from its words and never from a file's name. Errors: kInvalid for an empty text, for one
// that is none of these, and for one that could be two of them.
[[nodiscard]] base::Result<SourceKind> RecogniseSource(std::string_view text);

}  // namespace heddle::cli
