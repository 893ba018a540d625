#include "formats/sonic_steps.h"

#include <fmt/format.h>

#include <utility>

#include "base/shell_word.h"
#include "formats/printable.h"
#include "formats/sonic_tables.h"

namespace heddle::formats {
namespace {

using sonic::Json;

constexpr std::string_view kApplyPatch = "config apply-patch", kLoad = "config load",
                           kDatabase = "sonic-db-cli";

// "WRED_PROFILE", "HEDDLE_ROCE", "ecn" of "/WRED_PROFILE/HEDDLE_ROCE/ecn".
std::vector<std::string> PartsOf(std::string_view pointer) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < pointer.size(); ++i) {
    if (pointer[i] == '/') {
      parts.emplace_back();
    } else if (!parts.empty() && pointer[i] == '~' && i + 1 < pointer.size()) {
      parts.back() += pointer[++i] == '1' ? '/' : '~';
    } else if (!parts.empty()) {
      parts.back() += pointer[i];
    }
  }
  return parts;
}

// As a shell takes it for one word, whatever a switch has in its tables.
std::string Quoted(const std::string& word) {
  return base::ShellQuoted(Printable(word, 255));
}

void Load(const PatchLine& line, Json& config) {
  Json* at = &config;
  for (const std::string& part : PartsOf(line.path)) {
    if (!at->is_object()) *at = Json::object();
    at = &(*at)[part];
  }
  *at = Json::parse(line.value, nullptr, false);
}

std::string Removal(const PatchLine& line) {
  const std::vector<std::string> parts = PartsOf(line.path);
  const std::string entry = Quoted(parts[0] + "|" + parts[1]);
  if (parts.size() == 2) return fmt::format("sudo sonic-db-cli CONFIG_DB DEL {}", entry);
  return fmt::format("sudo sonic-db-cli CONFIG_DB HDEL {} {}", entry, Quoted(parts[2]));
}

}  // namespace

std::string_view TakenBy(const PatchLine& line) {
  const std::vector<std::string> parts = PartsOf(line.path);
  if (parts.empty()) return kApplyPatch;
  const bool profile = parts[0] == "WRED_PROFILE" || parts[0] == "BUFFER_PROFILE";
  const bool global = parts[0] == "PFC_WD" && (parts.size() == 1 || parts[1] == "GLOBAL");
  if (!profile && !global) return kApplyPatch;
  // A table that goes as a whole has nothing left that anybody refers to.
  if (line.op == "remove") return parts.size() == 1 ? kApplyPatch : kDatabase;
  return kLoad;
}

SonicSteps StepsOf(const SonicPatch& patch) {
  SonicSteps steps;
  SonicPatch rest;
  Json config = Json::object();
  for (const PatchLine& line : patch.lines) {
    const std::string_view by = TakenBy(line);
    if (by == kLoad) Load(line, config);
    if (by == kDatabase) steps.removals.push_back(Removal(line));
    if (by == kApplyPatch) rest.lines.push_back(line);
  }
  if (!config.empty()) steps.load = config.dump(1) + "\n";
  steps.patches = !rest.lines.empty();
  steps.patch = PatchJson(rest);
  return steps;
}

std::vector<std::string> CommandsOf(const SonicSteps& steps, std::string_view load_file,
                                    std::string_view patch_file) {
  std::vector<std::string> commands;
  if (!steps.load.empty()) commands.push_back(fmt::format("sudo config load -y {}", load_file));
  commands.insert(commands.end(), steps.removals.begin(), steps.removals.end());
  if (steps.patches) commands.push_back(fmt::format("sudo config apply-patch {}", patch_file));
  if (!commands.empty()) commands.emplace_back("sudo config save -y");
  return commands;
}

}  // namespace heddle::formats
