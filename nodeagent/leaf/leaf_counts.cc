#include "nodeagent/leaf/leaf_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "formats/ib_neighbours.h"
#include "formats/printable.h"
#include "formats/scanner.h"
#include "nodeagent/nic/rdma_probe.h"

namespace heddle::nodeagent {
namespace {

constexpr int kStrays = 4;               // as smp.cc's
constexpr int kPartitions = 128;         // more than any card's table is searched in vain each time
constexpr std::size_t kMaxPorts = 1024;  // a node has at most 128 NICs of 8 ports
constexpr std::size_t kMaxName = 64, kMaxSentence = 256;

std::string PortFolder(const RdmaPortName& port) {
  return fmt::format("sys/class/infiniband/{}/ports/{}", port.first, port.second);
}

// Where the default partition's key stands in the port's table: 0xffff of a full member, 0x7fff of a limited one
// (section 10.9.1.2), which may talk to a switch as well. Subnet managers put it first.
int DefaultPartition(const base::FileTree& files, const RdmaPortName& port) {
  for (int i = 0; i < kPartitions; ++i) {
    const auto text = base::ReadTrimmed(files, fmt::format("{}/pkeys/{}", PortFolder(port), i));
    if (!text) break;
    const auto key =
        text->starts_with("0x") ? formats::Number<std::uint16_t>(text->substr(2), 16) : std::nullopt;
    if (key && (*key & 0x7fff) == 0x7fff) return i;
  }
  return 0;
}

bool IsActive(const base::FileTree& files, const RdmaPortName& port) {
  const auto state = base::ReadTrimmed(files, PortFolder(port) + "/state");
  return state && ParsePortState(*state) == topology::LinkState::kActive;
}

// Of one port, counted one way.
bool Moved(const std::vector<PmaCount>& before, const std::vector<PmaCount>& now) {
  return before.size() == now.size() &&
         !std::equal(before.begin(), before.end(), now.begin(),
                     [](const PmaCount& a, const PmaCount& b) { return !StandsStill(a.name) || a == b; });
}

std::string Quotable(std::string_view text, std::size_t most) {
  std::string printable = formats::Printable(text, most);
  std::replace(printable.begin(), printable.end(), '"', '\'');
  return printable;
}

}  // namespace

// One port's leaf in one pass.
class PmaLeafCounts::Asking {
 public:
  Asking(LeafLine& line, int port, base::Clock& clock, std::uint32_t& transaction, Known& known)
      : line_(line),
        port_(port),
        clock_(clock),
        end_(clock.Now() + kLeafBudget),
        transaction_(transaction),
        known_(known) {}

  base::Status Run() {
    const auto now = clock_.Now();
    const bool located = !known_.confirmed || now - *known_.confirmed >= kLeafAddressHolds;
    if (located) TRY(Locate());
    if (!known_.is_switch) return {};
    ASSIGN_OR_RETURN(std::vector<PmaCount> counts, Count());
    if (!located && Moved(known_.counts, counts)) {
      const Address before = known_.address;
      TRY(Locate());
      if (!known_.is_switch) return {};
      if (known_.address != before) {
        ASSIGN_OR_RETURN(counts, Count());
      }
    }
    known_.counts = std::move(counts);
    return {};
  }

 private:
  std::chrono::nanoseconds Left() { return std::max(end_ - clock_.Now(), std::chrono::nanoseconds(0)); }

  base::Result<Mad> Ask(const Mad& question, int lid, bool (*answers)(const Mad&, const Mad&)) {
    const base::Error late{base::Code::kTimeout, fmt::format("no answer within {} ms", kLeafBudget.count()),
                           std::nullopt};
    if (Left().count() == 0) return base::Fail(late);
    TRY(line_.Send(question, lid, Left()));
    for (int i = 0; i < kStrays; ++i) {
      auto answer = line_.Receive(Left());
      if (!answer) return base::Fail(answer.error().code == base::Code::kTimeout ? late : answer.error());
      if (!answers(*answer, question)) continue;
      if (std::string why = WhyRefused(*answer); !why.empty())
        return base::Fail(base::Code::kUnimplemented, std::move(why));
      return answer;
    }
    return base::Fail(base::Code::kUnavailable, "only answers to other questions came");
  }

  base::Result<Mad> AskByRoute(SmpAttribute attribute) {
    return Ask(AskNeighbour(attribute, port_, ++transaction_), 0, &Answers);
  }

  base::Status Locate() {
    constexpr std::string_view kWhich = "the other end of the cable does not say which port it is";
    ASSIGN_OR_RETURN(const Mad node, AskByRoute(SmpAttribute::kNodeInfo), std::string(kWhich));
    const auto info = ReadNodeInfo(node);
    if (!info) return base::Fail(base::Code::kInvalid, std::string(kWhich) + ": its NodeInfo makes no sense");
    known_.is_switch = info->kind == formats::IbNodeKind::kSwitch;
    known_.confirmed = clock_.Now();
    if (!known_.is_switch) return {};
    ASSIGN_OR_RETURN(const Mad name, AskByRoute(SmpAttribute::kNodeDescription), std::string(kWhich));
    ASSIGN_OR_RETURN(const Mad first, AskByRoute(SmpAttribute::kPortInfo), std::string(kWhich));
    Address address;
    address.guid = fmt::format("{:#018x}", info->guid);
    address.leaf = Quotable(formats::IbSwitchName(ReadNodeDescription(name), address.guid), kMaxName);
    address.leaf_port = info->port;
    address.lid = ReadLid(first).value_or(0);
    if (address != known_.address) {
      known_.address = std::move(address);
      known_.counts.clear();
      known_.abilities.reset();
    }
    if (known_.address.lid != 0) return {};
    return base::Fail(base::Code::kUnavailable,
                      fmt::format("{} has no LID: has a subnet manager seen it?", known_.address.leaf));
  }

  base::Result<Mad> AskCounter(PmaAttribute attribute) {
    return Ask(AskCounters(attribute, known_.address.leaf_port, ++transaction_), known_.address.lid,
               &AnswersCounters);
  }

  base::Result<std::vector<PmaCount>> Count() {
    const std::string what = fmt::format("{} port {} does not tell what it has counted (LID {})",
                                         known_.address.leaf, known_.address.leaf_port, known_.address.lid);
    if (!known_.abilities) {
      const auto answer = AskCounter(PmaAttribute::kClassPortInfo);
      // One that refuses to say has what every switch must have.
      if (!answer && answer.error().code != base::Code::kUnimplemented)
        return base::Fail(answer.error().In(what));
      known_.abilities = answer ? ReadClassPortInfo(*answer) : PmaAbilities();
    }
    const PmaAttribute attribute =
        known_.abilities->extended_errors ? PmaAttribute::kPortCountersExtended : PmaAttribute::kPortCounters;
    ASSIGN_OR_RETURN(const Mad answer, AskCounter(attribute), what);
    auto counts = ReadCounters(answer, attribute, known_.address.leaf_port, *known_.abilities);
    if (!counts) return base::Fail(base::Code::kInvalid, what + ": it answers for another port");
    return *std::move(counts);
  }

  LeafLine& line_;
  const int port_;
  base::Clock& clock_;
  const base::MonotonicTime end_;
  std::uint32_t& transaction_;
  Known& known_;
};

void PmaLeafCounts::Miss(const base::Error& why, Known& known) {
  known.confirmed.reset();
  ++known.misses;
  if (known.misses >= kLeafMisses || known.counts.empty())
    known.unread = formats::Printable(why.message, kMaxSentence);
  if (known.misses < kLeafMisses) return;
  std::chrono::nanoseconds wait = kLeafBackOff;
  for (int i = kLeafMisses; i < known.misses && wait < kLeafBackOffMost; ++i) wait *= 2;
  known.ask_again = clock_.Now() + std::min<std::chrono::nanoseconds>(wait, kLeafBackOffMost);
}

std::optional<LeafCounts> PmaLeafCounts::ReadPort(const RdmaPortName& port, Known& known) {
  if (!IsActive(files_, port)) {
    known.confirmed.reset();
    known.misses = 0;
    known.ask_again = {};
    return std::nullopt;
  }
  bool fresh = false;
  if (clock_.Now() >= known.ask_again) {
    const auto line = lines_->Open(port.first, port.second, DefaultPartition(files_, port));
    const base::Status asked = line ? Asking(**line, port.second, clock_, transaction_, known).Run()
                                    : base::Status(base::Fail(line.error()));
    fresh = asked.has_value();
    if (fresh) {
      known.misses = 0;
      known.unread.clear();
    } else {
      Miss(asked.error(), known);
    }
  }
  if (!known.is_switch) return std::nullopt;
  const Address& address = known.address;
  return LeafCounts{port.first,
                    port.second,
                    address.leaf,
                    address.guid,
                    address.leaf_port,
                    address.lid,
                    known.abilities && known.abilities->extended_errors,
                    fresh ? known.counts : std::vector<PmaCount>(),
                    known.unread};
}

std::vector<LeafCounts> PmaLeafCounts::Read(const std::vector<RdmaPortName>& ports) {
  const std::set<RdmaPortName> here(ports.begin(), ports.end());
  std::erase_if(known_, [&here](const auto& entry) { return !here.contains(entry.first); });
  std::vector<LeafCounts> read;
  for (const RdmaPortName& port : ports) {
    if (stop_.stop_requested() || read.size() >= kMaxPorts) break;
    if (auto counts = ReadPort(port, known_[port])) read.push_back(*std::move(counts));
  }
  return read;
}

std::string FormatLeafCounts(const std::vector<LeafCounts>& ports) {
  std::string text;
  for (const LeafCounts& port : ports) {
    text += fmt::format("{} {} {} \"{}\" {} lid {}", port.device, port.port,
                        port.guid.empty() ? "none" : port.guid, Quotable(port.leaf, kMaxName), port.leaf_port,
                        port.lid);
    if (port.extended) text += " extended";
    if (!port.unread.empty()) text += fmt::format(" unread \"{}\"", Quotable(port.unread, kMaxSentence));
    for (const PmaCount& count : port.counts) text += fmt::format(" {}={}", count.name, count.value);
    text += '\n';
  }
  return text;
}

namespace {

std::optional<LeafCounts> ParseLine(std::string_view line) {
  formats::Scanner scan(line);
  LeafCounts port;
  port.device = formats::Printable(scan.Word(), kMaxName);
  const auto number = formats::Within<int>(scan.Word(), 1, 255);
  const std::string_view guid = scan.Word();
  scan.SkipBlanks();
  const auto leaf = scan.Between('"', '"');
  const auto leaf_port = formats::Within<int>(scan.Word(), 0, 255);
  const bool says_lid = scan.Word() == "lid";
  const auto lid = formats::Within<int>(scan.Word(), 0, 0xbfff);
  if (port.device.empty() || !number || !leaf || !leaf_port || !says_lid || !lid) return std::nullopt;
  port.port = *number;
  if (guid != "none") port.guid = formats::Printable(guid, kMaxName);
  port.leaf = formats::Printable(*leaf, kMaxName);
  port.leaf_port = *leaf_port;
  port.lid = *lid;
  std::set<std::string_view> seen;
  while (!scan.AtEnd()) {
    const std::string_view word = scan.Word();
    if (word == "extended") {
      port.extended = true;
    } else if (word == "unread") {
      scan.SkipBlanks();
      port.unread = formats::Printable(scan.Between('"', '"').value_or("nobody says why"), kMaxSentence);
    } else if (const std::size_t equals = word.find('='); equals != std::string_view::npos) {
      const std::string_view name = FindPmaCount(word.substr(0, equals));
      const auto value = formats::Number<std::uint64_t>(word.substr(equals + 1));
      if (!name.empty() && value && seen.insert(name).second) port.counts.push_back({name, *value});
    }
  }
  return port;
}

}  // namespace

std::vector<LeafCounts> ParseLeafCounts(std::string_view text) {
  std::vector<LeafCounts> ports;
  formats::ForEachLine(text, [&ports](std::string_view line, int) {
    if (line.empty() || line.front() == '#' || ports.size() >= kMaxPorts) return;
    if (auto port = ParseLine(line)) ports.push_back(*std::move(port));
  });
  return ports;
}

std::vector<LeafCounts> RecordedLeafCounts::Read(const std::vector<RdmaPortName>& ports) {
  const auto text = files_.Read(kLeafCountersFile);
  if (!text) return {};
  const std::vector<LeafCounts> recorded = ParseLeafCounts(*text);
  std::vector<LeafCounts> read;
  for (const RdmaPortName& port : ports) {
    const auto found = std::find_if(recorded.begin(), recorded.end(), [&port](const LeafCounts& one) {
      return one.device == port.first && one.port == port.second;
    });
    if (found != recorded.end()) read.push_back(*found);
  }
  return read;
}

}  // namespace heddle::nodeagent
