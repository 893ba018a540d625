// topology.yaml of Slurm. yaml-cpp stands in this library's link list; crds has a reader into JSON, and
// formats does not see crds, nor does JSON keep the lines that errors name.
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "formats/hostlist.h"
#include "formats/printable.h"
#include "formats/scanner.h"
#include "formats/slurm_topology.h"

namespace heddle::formats {
namespace {

using base::Code;

// 100,000 hosts written one by one are 2 MB; a tree of values takes a hundred times its text.
constexpr std::size_t kMaxBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxItems = 65'536;

base::Error At(const YAML::Node& node, const std::string& why) {
  return {Code::kInvalid, fmt::format("line {}: {}", node.Mark().line + 1, why), std::nullopt};
}

int LineOf(const YAML::Node& node) {
  return node.Mark().line + 1;
}

class Reader {
 public:
  base::Result<SlurmTopology> Read(const YAML::Node& root) {
    if (!root.IsSequence() || root.size() == 0 || root.size() > kMaxItems) {
      return base::Fail(Code::kInvalid, "it is no list of topologies, as topology.yaml is");
    }
    YAML::Node chosen = root[0];
    for (const YAML::Node& one : root) {
      if (!one.IsMap()) return base::Fail(At(one, "a topology is no map"));
      const YAML::Node is_default = one["cluster_default"];
      if (is_default && is_default.as<bool>(false)) chosen.reset(one);  // True, yes and on, too: YAML 1.1
    }
    TRY(Topology(chosen));
    for (const YAML::Node& one : root) {
      if (!one.is(chosen)) {
        topology_.notes.push_back(fmt::format("line {}: topology {} is left out: {} is the cluster's default",
                                              LineOf(one), NameOf(one), NameOf(chosen)));
      }
      if (topology_.notes.size() > 100) break;
    }
    TRY(CheckSlurmTopology(topology_));
    return std::move(topology_);
  }

 private:
  static std::string NameOf(const YAML::Node& one) {
    const YAML::Node name = one["topology"];
    return name && name.IsScalar() ? Printable(name.Scalar(), 60) : std::string("without a name");
  }

  base::Status Topology(const YAML::Node& one) {
    if (const YAML::Node tree = one["tree"]) {
      TRY(Each(tree, "switches", [this](const YAML::Node& item) { return Switch(item); }));
    } else if (const YAML::Node block = one["block"]) {
      TRY(Each(block, "blocks", [this](const YAML::Node& item) { return Block(item); }));
      return BlockSizes(block);
    } else {
      return base::Fail(At(
          one, fmt::format("topology {} has neither `tree` nor `block`: this reads no other", NameOf(one))));
    }
    return {};
  }

  template <class Take>
  static base::Status Each(const YAML::Node& parent, const char* key, Take take) {
    if (!parent.IsMap())
      return base::Fail(At(parent, std::string("a map with `") + key + "` should stand here"));
    const YAML::Node list = parent[key];
    if (!list || !list.IsSequence()) return base::Fail(At(parent, std::string("`") + key + "` is no list"));
    if (list.size() > kMaxItems) {
      return base::Fail(Code::kTooLarge, fmt::format("`{}` has more than {} items", key, kMaxItems));
    }
    for (const YAML::Node& item : list) {
      if (!item.IsMap()) return base::Fail(At(item, std::string("an item of `") + key + "` is no map"));
      TRY(take(item));
    }
    return {};
  }

  static base::Result<std::string> Name(const YAML::Node& item, const char* key) {
    const YAML::Node name = item[key];
    if (!name || !name.IsScalar()) return base::Fail(At(item, std::string("`") + key + "` is missing"));
    std::string text = Printable(name.Scalar());
    if (text.empty() || text != name.Scalar() || text.find_first_of("[], ") != std::string::npos) {
      return base::Fail(At(name, fmt::format("{}: `{}` is not one name", key, text)));
    }
    return text;
  }

  // A hostlist, or a list of them.
  base::Status Names(const YAML::Node& item, const char* key, std::vector<std::string>& into) {
    const YAML::Node value = item[key];
    if (!value || value.IsNull()) return {};
    if (value.IsScalar()) return Expand(value, key, into);
    if (!value.IsSequence() || value.size() > kMaxHosts) {
      return base::Fail(At(value, std::string(key) + " is no hostlist"));
    }
    for (const YAML::Node& one : value) {
      if (!one.IsScalar()) return base::Fail(At(one, std::string(key) + " is no hostlist"));
      TRY(Expand(one, key, into));
    }
    return {};
  }

  base::Status Expand(const YAML::Node& value, const char* key, std::vector<std::string>& into) {
    auto names = ExpandHostlist(value.Scalar(), kMaxHosts - named_);
    if (!names) {
      return base::Fail(names.error().code,
                        fmt::format("line {}: {}: {}", LineOf(value), key, names.error().message));
    }
    named_ += names->size();
    std::move(names->begin(), names->end(), std::back_inserter(into));
    return {};
  }

  base::Status Switch(const YAML::Node& item) {
    SlurmSwitch one;
    one.line = LineOf(item);
    ASSIGN_OR_RETURN(one.name, Name(item, "switch"));
    TRY(Names(item, "children", one.switches));
    TRY(Names(item, "nodes", one.nodes));
    topology_.switches.push_back(std::move(one));
    return {};
  }

  base::Status Block(const YAML::Node& item) {
    SlurmBlock block;
    block.line = LineOf(item);
    ASSIGN_OR_RETURN(block.name, Name(item, "block"));
    TRY(Names(item, "nodes", block.nodes));
    topology_.blocks.push_back(std::move(block));
    return {};
  }

  base::Status BlockSizes(const YAML::Node& block) {
    const YAML::Node sizes = block["block_sizes"];
    if (!sizes) return {};
    if (!sizes.IsSequence() || sizes.size() > 64)
      return base::Fail(At(sizes, "block_sizes is no short list"));
    for (const YAML::Node& size : sizes) {
      const auto count = size.IsScalar() ? Number<int>(size.Scalar()) : std::nullopt;
      if (!count || *count < 1) return base::Fail(At(size, "block_sizes counts hosts"));
      topology_.block_sizes.push_back(*count);
    }
    return {};
  }

  SlurmTopology topology_;
  std::size_t named_ = 0;
};

}  // namespace

base::Result<SlurmTopology> ParseSlurmYaml(const std::string& text) {
  if (text.size() > kMaxBytes) {
    return base::Fail(Code::kTooLarge, "topology.yaml of more than 4 MiB is not read; topology.conf is");
  }
  try {
    return Reader().Read(YAML::Load(text));
  } catch (const YAML::Exception& failure) {
    return base::Fail(Code::kInvalid, fmt::format("line {}: {}", failure.mark.line + 1, failure.msg));
  }
}

}  // namespace heddle::formats
