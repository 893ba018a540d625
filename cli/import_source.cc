#include "cli/import_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/lower_case.h"
#include "formats/printable.h"
#include "formats/scanner.h"

namespace heddle::cli {
namespace {

constexpr std::array<std::pair<SourceKind, std::string_view>, 6> kKinds{{
    {SourceKind::kIbnetdiscover, "ibnetdiscover"},
    {SourceKind::kSlurmConf, "slurm-conf"},
    {SourceKind::kSlurmYaml, "slurm-yaml"},
    {SourceKind::kNcclXml, "nccl-xml"},
    {SourceKind::kTopoMatrix, "topo-m"},
    {SourceKind::kLldp, "lldp"},
}};
constexpr std::string_view kKindWords = "ibnetdiscover, slurm-conf, slurm-yaml, nccl-xml, topo-m, lldp";

// The sign of a format is near its top, behind comments and a tool's complaints at most.
constexpr std::size_t kLooksAt = std::size_t{1} << 18;

bool IsIbLine(std::string_view line) {
  formats::Scanner scan(line);
  const std::string_view word = scan.Word();
  if (word != "Switch" && word != "Ca" && word != "Rt") return false;
  const bool counted = formats::Number<int>(scan.Word()).has_value();
  scan.SkipBlanks();
  return counted && scan.rest().starts_with('"');
}

bool IsSlurmConfLine(std::string_view line) {
  const std::string key = base::LowerCase(std::string(line.substr(0, line.find_first_of("= \t"))));
  return line.find('=') != std::string_view::npos &&
         (key == "switchname" || key == "blockname" || key == "blocksizes");
}

bool IsSlurmYamlLine(std::string_view line) {
  formats::Scanner scan(line);
  scan.SkipBlanks();
  if (!scan.Take("-")) return false;
  scan.SkipBlanks();
  return scan.rest().starts_with("topology:") || scan.rest().starts_with("cluster_default:") ||
         scan.rest().starts_with("tree:") || scan.rest().starts_with("block:");
}

bool IsTopoRow(std::string_view line) {
  formats::Scanner scan(line);
  const std::string_view name = scan.Word();
  return name.starts_with("GPU") && formats::Number<int>(name.substr(3)) && scan.Word() == "X";
}

std::string FirstLine(std::string_view text) {
  std::string first;
  formats::ForEachLine(text, [&first](std::string_view line, int) {
    if (first.empty()) first = formats::Printable(line, 60);
  });
  return first;
}

// A Job says something in annotations of heddle.dev/, and is none of Heddle's.
bool HoldsObjectsOfHeddle(std::string_view text) {
  constexpr std::string_view kApiVersion = "apiVersion";
  for (std::size_t at = text.find(kApiVersion); at != std::string_view::npos;
       at = text.find(kApiVersion, at + 1)) {
    const std::string_view rest = text.substr(at + kApiVersion.size());
    const std::size_t value = rest.find_first_not_of("\"': ");
    if (value != std::string_view::npos && rest.substr(value).starts_with("heddle.dev/")) return true;
  }
  return false;
}

}  // namespace

std::string_view SourceKindName(SourceKind kind) {
  return std::find_if(kKinds.begin(), kKinds.end(), [kind](const auto& one) { return one.first == kind; })
      ->second;
}

SourceWord ParseSourceWord(std::string_view word) {
  SourceWord source;
  const auto take_kind = [&] {
    for (const auto& [kind, name] : kKinds) {
      if (source.kind || !word.starts_with(name) || word.substr(name.size(), 1) != ":") continue;
      source.kind = kind;
      word.remove_prefix(name.size() + 1);
    }
  };
  take_kind();
  const std::size_t equals = word.find('=');
  if (equals != std::string_view::npos && equals > 0 &&
      word.substr(0, equals).find('/') == std::string_view::npos) {
    source.host = formats::Printable(word.substr(0, equals), 253);
    word.remove_prefix(equals + 1);
  }
  take_kind();
  source.path = std::string(word);
  return source;
}

base::Result<SourceKind> RecogniseSource(std::string_view text) {
  text = text.substr(0, kLooksAt);
  const std::size_t first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first == std::string_view::npos) return base::Fail(base::Code::kInvalid, "it is empty");
  if (text[first] == '{' && text.find("\"lldp\"") != std::string_view::npos) return SourceKind::kLldp;
  if (text[first] == '<' && text.find("<system") != std::string_view::npos) return SourceKind::kNcclXml;
  if (HoldsObjectsOfHeddle(text)) {
    return base::Fail(
        base::Code::kInvalid,
        "it holds Heddle's objects already: give it to `plan --topology`, not to `fabric import`");
  }
  std::vector<SourceKind> found;
  const auto find = [&found](SourceKind kind) {
    if (std::find(found.begin(), found.end(), kind) == found.end()) found.push_back(kind);
  };
  formats::ForEachLine(text, [&](std::string_view line, int) {
    if (IsIbLine(line)) find(SourceKind::kIbnetdiscover);
    if (IsTopoRow(line)) find(SourceKind::kTopoMatrix);
    formats::Scanner scan(line);
    if (scan.AtEnd() || scan.rest().front() == '#') return;
    if (IsSlurmConfLine(scan.rest())) find(SourceKind::kSlurmConf);
    if (IsSlurmYamlLine(line)) find(SourceKind::kSlurmYaml);
  });
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    return base::Fail(
        base::Code::kInvalid,
        fmt::format("it is no format that is known here; it begins with `{}`. If it is one, write "
                    "KIND:FILE, where KIND is one of {}",
                    FirstLine(text), kKindWords));
  }
  return base::Fail(base::Code::kInvalid, fmt::format("it could be {} and {}: write KIND:FILE",
                                                      SourceKindName(found[0]), SourceKindName(found[1])));
}

}  // namespace heddle::cli
