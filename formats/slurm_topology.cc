#include "formats/slurm_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "base/lower_case.h"
#include "formats/hostlist.h"
#include "formats/printable.h"
#include "formats/scanner.h"

namespace heddle::formats {
namespace {

using base::Code;

constexpr std::size_t kMaxSwitches = 65'536;
constexpr std::size_t kMaxNotes = 1000;

struct Word {
  std::string key;  // lower case
  std::string value;
};

// `Key=value Key2="value with blanks"`, blanks allowed around the sign.
base::Result<std::vector<Word>> WordsOf(std::string_view line) {
  std::vector<Word> words;
  Scanner scan(line);
  while (!scan.AtEnd()) {
    const std::string_view rest = scan.rest();
    const std::string_view key = rest.substr(0, rest.find_first_of("= \t\r"));
    (void)scan.Take(key);
    scan.SkipBlanks();
    if (key.empty() || !scan.Take("=")) {
      return base::Fail(Code::kInvalid, fmt::format("`{}` is no Key=value", Printable(rest, 60)));
    }
    scan.SkipBlanks();
    const auto quoted = scan.Between('"', '"');
    words.push_back({base::LowerCase(Printable(key, 60)), std::string(quoted ? *quoted : scan.Word())});
  }
  return words;
}

// Without its comment; `\#` is a plain sign.
std::string WithoutComment(std::string_view line) {
  std::string kept;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size() && line[i + 1] == '#') {
      kept.push_back(line[++i]);
    } else if (line[i] == '#') {
      break;
    } else {
      kept.push_back(line[i]);
    }
  }
  while (!kept.empty() && (kept.back() == '\r' || kept.back() == ' ' || kept.back() == '\t')) kept.pop_back();
  return kept;
}

class ConfReader {
 public:
  base::Result<SlurmTopology> Read(std::string_view text) {
    std::optional<base::Error> error;
    std::string joined;
    int first = 0;
    ForEachLine(text, [&](std::string_view line, int number) {
      if (error) return;
      if (joined.empty()) first = number;
      std::string part = WithoutComment(line);
      const bool goes_on = !part.empty() && part.back() == '\\';
      if (goes_on) part.back() = ' ';
      joined += part;
      if (goes_on) return;
      if (base::Status read = Line(joined, first); !read) error = InLine(first, read.error());
      joined.clear();
    });
    if (!error && !joined.empty()) {
      if (base::Status read = Line(joined, first); !read) error = InLine(first, read.error());
    }
    if (error) return base::Fail(*std::move(error));
    TRY(CheckSlurmTopology(topology_));
    return std::move(topology_);
  }

 private:
  static base::Error InLine(int line, const base::Error& error) {
    return {error.code, fmt::format("line {}: {}", line, error.message), std::nullopt};
  }

  base::Status Line(std::string_view line, int number) {
    Scanner scan(line);
    if (scan.AtEnd()) return {};
    if (base::LowerCase(std::string(scan.Word())) == "include") {
      return base::Fail(Code::kInvalid, "Include is not followed: put that file's lines here");
    }
    ASSIGN_OR_RETURN(const std::vector<Word> words, WordsOf(line));
    const std::string& kind = words.front().key;
    if (kind == "switchname") return Switch(words, number);
    if (kind == "blockname") return Block(words, number);
    if (kind == "blocksizes") return BlockSizes(words);
    return base::Fail(Code::kInvalid,
                      fmt::format("{} is no word of topology.conf, whose lines begin with SwitchName, "
                                  "BlockName or BlockSizes",
                                  kind));
  }

  base::Result<std::vector<std::string>> Names(const Word& word) {
    auto names = ExpandHostlist(word.value, kMaxHosts - named_);
    if (!names) return base::Fail(names.error().code, word.key + ": " + names.error().message);
    named_ += names->size();
    return names;
  }

  static base::Result<std::string> OneName(const Word& word) {
    const std::string name = Printable(word.value);
    if (name.empty() || name != word.value || name.find_first_of("[], ") != std::string::npos) {
      return base::Fail(Code::kInvalid, fmt::format("{}: `{}` is not one name", word.key, name));
    }
    return name;
  }

  base::Status Switch(const std::vector<Word>& words, int number) {
    SlurmSwitch one;
    one.line = number;
    for (const Word& word : words) {
      if (word.key == "switchname" && one.name.empty()) {
        ASSIGN_OR_RETURN(one.name, OneName(word));
      } else if (word.key == "switches" && one.switches.empty()) {
        ASSIGN_OR_RETURN(one.switches, Names(word));
      } else if (word.key == "nodes" && one.nodes.empty()) {
        ASSIGN_OR_RETURN(one.nodes, Names(word));
      } else if (word.key == "linkspeed" && one.link_speed == 0) {
        const auto speed = Number<std::uint32_t>(word.value);
        if (!speed) {
          return base::Fail(Code::kInvalid,
                            fmt::format("linkspeed: `{}` is no number", Printable(word.value, 40)));
        }
        one.link_speed = *speed;
      } else {
        return base::Fail(Code::kInvalid, word.key + " does not belong here, or stands twice");
      }
    }
    if (topology_.switches.size() == kMaxSwitches) {
      return base::Fail(Code::kTooLarge, fmt::format("more than {} switches", kMaxSwitches));
    }
    topology_.switches.push_back(std::move(one));
    return {};
  }

  base::Status Block(const std::vector<Word>& words, int number) {
    SlurmBlock block;
    block.line = number;
    for (const Word& word : words) {
      if (word.key == "blockname" && block.name.empty()) {
        ASSIGN_OR_RETURN(block.name, OneName(word));
      } else if (word.key == "nodes" && block.nodes.empty()) {
        ASSIGN_OR_RETURN(block.nodes, Names(word));
      } else {
        return base::Fail(Code::kInvalid, word.key + " does not belong here, or stands twice");
      }
    }
    if (topology_.blocks.size() == kMaxSwitches) {
      return base::Fail(Code::kTooLarge, fmt::format("more than {} blocks", kMaxSwitches));
    }
    topology_.blocks.push_back(std::move(block));
    return {};
  }

  base::Status BlockSizes(const std::vector<Word>& words) {
    if (words.size() != 1) return base::Fail(Code::kInvalid, "blocksizes stands with other words");
    std::string_view list = words.front().value;
    for (;;) {
      const std::size_t comma = list.find(',');
      const auto size = Number<int>(list.substr(0, comma));
      if (!size || *size < 1 || topology_.block_sizes.size() == 64) {
        return base::Fail(Code::kInvalid, fmt::format("blocksizes: `{}` is no list of host counts",
                                                      Printable(words.front().value, 40)));
      }
      topology_.block_sizes.push_back(*size);
      if (comma == std::string_view::npos) return {};
      list.remove_prefix(comma + 1);
    }
  }

  SlurmTopology topology_;
  std::size_t named_ = 0;
};

class Check {
 public:
  explicit Check(SlurmTopology& topology) : topology_(topology) {}

  base::Status Run() {
    if (topology_.switches.empty() && topology_.blocks.empty()) {
      return base::Fail(Code::kInvalid, "it names no switch and no block");
    }
    TRY(Names());
    TRY(Children());
    TRY(Circles());
    Hosts();
    return {};
  }

 private:
  base::Status Names() {
    for (std::size_t i = 0; i < topology_.switches.size(); ++i) {
      const SlurmSwitch& one = topology_.switches[i];
      const auto [known, fresh] = index_.emplace(one.name, i);
      if (!fresh) {
        return base::Fail(Code::kInvalid,
                          fmt::format("line {}: switch {} stands in line {} already", one.line, one.name,
                                      topology_.switches[known->second].line));
      }
      if (one.switches.empty() == one.nodes.empty()) {
        return base::Fail(
            Code::kInvalid,
            fmt::format("line {}: switch {} has {}", one.line, one.name,
                        one.nodes.empty() ? "neither hosts nor switches below it"
                                          : "both hosts and switches below it: Slurm takes one"));
      }
    }
    std::map<std::string_view, int> blocks;
    for (const SlurmBlock& block : topology_.blocks) {
      const auto [known, fresh] = blocks.emplace(block.name, block.line);
      if (fresh) continue;
      return base::Fail(Code::kInvalid, fmt::format("line {}: block {} stands in line {} already", block.line,
                                                    block.name, known->second));
    }
    return {};
  }

  base::Status Children() {
    std::vector<const SlurmSwitch*> parent(topology_.switches.size(), nullptr);
    parents_.assign(topology_.switches.size(), 0);
    for (const SlurmSwitch& one : topology_.switches) {
      for (const std::string& child : one.switches) {
        const auto found = index_.find(child);
        if (found == index_.end()) {
          return base::Fail(Code::kInvalid,
                            fmt::format("line {}: switch {} is below {} and has no line of its own", one.line,
                                        child, one.name));
        }
        ++parents_[found->second];
        const SlurmSwitch*& first = parent[found->second];
        if (first != nullptr) {
          Note(fmt::format("line {}: switch {} is below {} and below {}", one.line, child, first->name,
                           one.name));
        }
        first = &one;
      }
    }
    return {};
  }

  // Takes switches away from the top; what cannot be taken leads back to itself.
  base::Status Circles() {
    std::vector<std::size_t> free;
    for (std::size_t i = 0; i < parents_.size(); ++i) {
      if (parents_[i] == 0) free.push_back(i);
    }
    std::size_t taken = 0;
    while (!free.empty()) {
      const SlurmSwitch& one = topology_.switches[free.back()];
      free.pop_back();
      ++taken;
      for (const std::string& child : one.switches) {
        const std::size_t at = index_.find(child)->second;
        if (--parents_[at] == 0) free.push_back(at);
      }
    }
    if (taken == parents_.size()) return {};
    const auto stuck = std::find_if(parents_.begin(), parents_.end(), [](int count) { return count > 0; });
    const SlurmSwitch& one = topology_.switches[std::size_t(stuck - parents_.begin())];
    return base::Fail(
        Code::kInvalid,
        fmt::format("line {}: switch {} is above itself, or below a switch that is", one.line, one.name));
  }

  template <class Group>
  void HostsOf(std::vector<Group>& groups, std::string_view what) {
    std::map<std::string, const Group*, std::less<>> seen;
    for (Group& group : groups) {
      std::erase_if(group.nodes, [&](const std::string& node) {
        const auto [known, fresh] = seen.emplace(node, &group);
        if (fresh) return false;
        Note(known->second == &group
                 ? fmt::format("line {}: host {} stands twice in {}", group.line, node, group.name)
                 : fmt::format("line {}: host {} is in {} {} and in {}: the first counts", group.line, node,
                               what, known->second->name, group.name));
        return true;
      });
    }
  }

  void Hosts() {
    HostsOf(topology_.switches, "switch");
    HostsOf(topology_.blocks, "block");
  }

  void Note(std::string sentence) {
    if (topology_.notes.size() < kMaxNotes) topology_.notes.push_back(std::move(sentence));
  }

  SlurmTopology& topology_;
  std::map<std::string, std::size_t, std::less<>> index_;
  std::vector<int> parents_;
};

}  // namespace

base::Status CheckSlurmTopology(SlurmTopology& topology) {
  return Check(topology).Run();
}

base::Result<SlurmTopology> ParseSlurmConf(std::string_view text) {
  return ConfReader().Read(text);
}

}  // namespace heddle::formats
