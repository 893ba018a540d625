#include "formats/nccl_tests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "formats/printable.h"
#include "formats/scanner.h"

namespace heddle::formats {
namespace {

using base::Code;
using base::Fail;
using Words = std::vector<std::string_view>;

constexpr std::size_t kMaxWords = 64;
constexpr std::string_view kDigits = "0123456789";

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

// "2026-11-25T03:27:40.123Z", as kubectl logs --timestamps has it.
bool IsTimestamp(std::string_view word) {
  return word.size() >= 20 && word[4] == '-' && word[10] == 'T' && word.find_first_of(kDigits) == 0;
}

// Without what mpirun ("[1,0]<stdout>:", "[gpu-1-4711@1,0]<stdout>: ") and kubectl ("[pod/nccl-launcher/mpirun] ") put
// before it.
std::string_view WithoutMarks(std::string_view line) {
  for (int marks = 0; marks < 3; ++marks) {
    Scanner scan(line);
    scan.SkipBlanks();
    if (scan.rest().starts_with("[")) {
      const bool pod = scan.rest().starts_with("[pod/");
      if (!scan.Between('[', ']')) return line;
      if (!pod && (!scan.Between('<', '>') || !scan.Take(":"))) return line;
    } else if (!IsTimestamp(scan.Word())) {
      return line;
    }
    line = scan.rest();
  }
  return line;
}

Words WordsOf(std::string_view line) {
  Words words;
  for (Scanner scan(line); !scan.AtEnd() && words.size() < kMaxWords;) words.push_back(scan.Word());
  return words;
}

// Finite and not negative: from_chars takes "inf" and "nan" too.
std::optional<double> Quantity(std::string_view word) {
  double number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return std::isfinite(number) && number >= 0 ? std::optional(number) : std::nullopt;
}

// Where the columns of a table stand, counted from behind the type of the data: redop and root are missing in some.
struct Columns {
  std::size_t after_type = 0;           // redop and root
  std::array<std::size_t, 2> times{};   // out of place, in place: from the first column behind those
  std::array<std::size_t, 2> wrongs{};  // by the same
  std::size_t count = 0;                // of those up to the last of these two
  bool counts_wrong = false;            // "#wrong", where old versions have "error"
};

// "#  size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw  busbw  #wrong"
std::optional<Columns> ColumnsOf(const Words& words) {
  if (words.size() < 11 || words[0] != "#" || words[1] != "size" || words[2] != "count" || words[3] != "type")
    return std::nullopt;
  const auto is_time = [](std::string_view word) { return word == "time" || word == "cputime"; };
  Columns columns;
  const auto first = std::find_if(words.begin() + 4, words.end(), is_time);
  columns.after_type = std::size_t(first - words.begin()) - 4;
  if (columns.after_type > 2) return std::nullopt;
  std::size_t found = 0;
  for (auto word = first; word != words.end() && found < 2; ++word) {
    if (!is_time(*word)) continue;
    if (words.end() - word < 4 || word[1] != "algbw" || word[2] != "busbw") return std::nullopt;
    if (word[3] != "#wrong" && word[3] != "error") return std::nullopt;
    columns.counts_wrong = word[3] == "#wrong";
    columns.times[found] = std::size_t(word - first);
    columns.wrongs[found] = columns.times[found] + 3;
    ++found;
  }
  if (found < 2) return std::nullopt;
  columns.count = columns.wrongs[1] + 1;
  return columns;
}

class Reader {
 public:
  base::Status Line(std::string_view raw, int number) {
    const std::string_view line = WithoutMarks(raw.substr(0, raw.find('\r')));
    NoteWays(line);
    const Words words = WordsOf(line);
    if (words.empty()) return {};
    if (words[0].front() == '#') return Comment(words, line);
    return columns_ && IsDigit(words[0][0]) ? Row(words, number) : base::Status{};
  }

  base::Result<NcclTestOutput> Finish() {
    // A run that ended before its first size says nothing.
    std::erase_if(output_.tables, [](const NcclTestTable& table) { return table.rows.empty(); });
    if (output_.tables.empty()) {
      return Fail(
          Code::kInvalid,
          headers_ > 0
              ? "there is a header of nccl-tests and no size below it: the run ended before its first "
                "result, and what it printed before says why"
              : "there is no table of nccl-tests in it: give what all_reduce_perf printed, as "
                "`kubectl logs` of the launcher's pod has it");
    }
    return std::move(output_);
  }

 private:
  // NCCL INFO NET/Socket : Using …; NCCL INFO NET/IB : Using …; … [send] via NET/IB/0/GDRDMA
  void NoteWays(std::string_view line) {
    if (line.find("NCCL INFO") == std::string_view::npos) return;
    const auto has = [&](std::string_view what) { return line.find(what) != std::string_view::npos; };
    output_.sockets = output_.sockets || has("via NET/Socket") || has("Using network Socket");
    output_.rdma = output_.rdma || has("via NET/IB") || has("Using network IB") ||
                   has("via NET/AWS Libfabric") || has("via NET/Libfabric");
    output_.gdr = output_.gdr || has("/GDRDMA");
  }

  NcclTestTable& Open() {
    if (output_.tables.empty() || closed_) {
      output_.tables.emplace_back();
      closed_ = false;
      columns_.reset();
    }
    return output_.tables.back();
  }

  base::Status Comment(const Words& words, std::string_view line) {
    if (output_.tables.size() > kMaxNcclTestTables)
      return Fail(Code::kTooLarge, fmt::format("more than {} tables", kMaxNcclTestTables));
    // "# Collective test starting: all_reduce_perf"
    if (words.size() == 5 && words[1] == "Collective" && words[3] == "starting:") {
      closed_ = true;
      Open().program = Printable(words[4], 64);
    } else if (words.size() > 4 && words[1] == "Rank") {
      return Rank(words);
    } else if (const auto columns = ColumnsOf(words)) {
      ++headers_;
      // Programs that were built without MPI print a header each; the ranks of one have nothing below theirs.
      if (!output_.tables.empty() && !output_.tables.back().rows.empty()) closed_ = true;
      Open();
      columns_ = columns;
    } else if (line.find("Out of bounds values") != std::string_view::npos && columns_) {
      const std::size_t colon = line.find(':');
      if (colon == std::string_view::npos) return {};
      Open().out_of_bounds = Number<std::int64_t>(Scanner(line.substr(colon + 1)).Word());
      closed_ = true;
      columns_.reset();
    }
    return {};
  }

  // "#  Rank  9 Group  0 Pid   4711 on gpu-018 device  1 [0000:2a:00] NVIDIA H100 80GB HBM3"
  base::Status Rank(const Words& words) {
    const auto rank = Number<std::uint32_t>(words[2]);
    const auto on = std::find(words.begin(), words.end(), "on");
    if (!rank || on == words.end() || on + 1 == words.end()) return {};
    // The list of a run that follows without a word of its beginning.
    if (*rank == 0 && !output_.tables.empty() && !output_.tables.back().rows.empty()) closed_ = true;
    std::vector<std::string>& hosts = Open().hosts;
    if (*rank != hosts.size()) return {};  // printed out of order, or twice: then it is no list of all ranks
    if (hosts.size() >= kMaxNcclTestRanks)
      return Fail(Code::kTooLarge, fmt::format("more than {} ranks", kMaxNcclTestRanks));
    hosts.push_back(Printable(on[1]));
    return {};
  }

  base::Status Row(const Words& words, int number) {
    const auto bytes = Number<std::uint64_t>(words[0]);
    const auto wrong = [&](std::string_view what) {
      return Fail(Code::kInvalid, fmt::format("line {}: {}", number, what));
    };
    if (!bytes || words.size() < 3 || !Number<std::uint64_t>(words[1]))
      return {};  // some other program's line
    // Rows of tests without redop or root lack them, whatever the header says; the root is a whole number.
    std::size_t first = 3;
    while (first < 3 + columns_->after_type && first < words.size() && !IsTime(words, first)) ++first;
    if (words.size() < first + columns_->count)
      return wrong("it has fewer columns than the header above it: was it cut?");
    NcclTestRow row{.line = number, .bytes = *bytes, .out_of_place = {}, .in_place = {}};
    for (const std::size_t way : {0U, 1U}) {
      const auto time = TimeOf(words, first, way);
      if (!time)
        return wrong(fmt::format("`{}` is no result of nccl-tests",
                                 Printable(words[first + columns_->times[way]], 40)));
      (way == 0 ? row.out_of_place : row.in_place) = *time;
    }
    if (++rows_ > kMaxNcclTestRows)
      return Fail(Code::kTooLarge, fmt::format("more than {} rows", kMaxNcclTestRows));
    Open().rows.push_back(row);
    return {};
  }

  // Whether the columns of times begin here: redop is a word ("sum", "none"), root -1 or a rank, and a time has a point
  // or as many words behind it as times take.
  bool IsTime(const Words& words, std::size_t at) const {
    if (!Quantity(words[at])) return false;
    return words.size() - at <= columns_->count;
  }

  std::optional<NcclTestTime> TimeOf(const Words& words, std::size_t first, std::size_t way) const {
    const std::size_t at = first + columns_->times[way];
    const auto micros = Quantity(words[at]), algorithm = Quantity(words[at + 1]),
               bus = Quantity(words[at + 2]);
    if (!micros || !algorithm || !bus) return std::nullopt;
    NcclTestTime time{.micros = *micros, .bus_gbs = *bus, .wrong = {}};
    const std::string_view count = words[first + columns_->wrongs[way]];
    if (count == "N/A") return time;
    const auto wrong = Quantity(count);
    if (!wrong && columns_->counts_wrong) return std::nullopt;
    if (columns_->counts_wrong) time.wrong = wrong;
    return time;
  }

  NcclTestOutput output_;
  std::optional<Columns> columns_;  // of the table that is open
  bool closed_ = false;
  int headers_ = 0;
  std::size_t rows_ = 0;
};

}  // namespace

base::Result<NcclTestOutput> ParseNcclTests(std::string_view text) {
  Reader reader;
  base::Status status;
  ForEachLine(text, [&](std::string_view line, int number) {
    if (status) status = reader.Line(line, number);
  });
  if (!status) return Fail(std::move(status).error());
  return reader.Finish();
}

}  // namespace heddle::formats
