#include "formats/topo_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "formats/printable.h"
#include "formats/scanner.h"

namespace heddle::formats {
namespace {

using base::Code;
using topology::PciDistance;

constexpr std::size_t kMaxColumns = 256;  // the largest machine has 16 GPUs and 32 NICs
constexpr int kMaxNvlinks = 256;
constexpr std::size_t kMaxLine = 16'384;

// Without colours: ESC, `[`, and all up to a letter.
std::string WithoutEscapes(std::string_view line) {
  std::string plain;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      plain.push_back(line[i]);
      continue;
    }
    if (i + 1 < line.size() && line[i + 1] == '[') ++i;
    while (i + 1 < line.size() &&
           !((line[i + 1] >= 'a' && line[i + 1] <= 'z') || (line[i + 1] >= 'A' && line[i + 1] <= 'Z'))) {
      ++i;
    }
    ++i;
  }
  return plain;
}

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  for (Scanner scan(line); !scan.AtEnd();) words.push_back(scan.Word());
  return words;
}

// The name of the row and its cells: tabs keep an empty cell apart, blanks cannot.
std::vector<std::string_view> Cells(std::string_view line) {
  if (line.find('\t') == std::string_view::npos) return Words(line);
  std::vector<std::string_view> cells;
  for (;;) {
    const std::size_t tab = line.find('\t');
    std::string_view cell = line.substr(0, tab);
    while (!cell.empty() && (cell.front() == ' ' || cell.front() == '\r')) cell.remove_prefix(1);
    while (!cell.empty() && (cell.back() == ' ' || cell.back() == '\r')) cell.remove_suffix(1);
    cells.push_back(cell);
    if (tab == std::string_view::npos) return cells;
    line.remove_prefix(tab + 1);
  }
}

std::optional<int> GpuNumber(std::string_view name) {
  if (!name.starts_with("GPU")) return std::nullopt;
  const auto number = Number<std::uint16_t>(name.substr(3));
  return number ? std::optional<int>(*number) : std::nullopt;
}

struct Cell {
  bool itself = false;
  int nvlinks = 0;
  PciDistance distance = PciDistance::kSys;
};

std::optional<Cell> ParseCell(std::string_view text) {
  if (text == "X") return Cell{.itself = true};
  if (text.starts_with("NV")) {
    const auto links = Number<std::uint16_t>(text.substr(2));
    if (!links || *links > kMaxNvlinks) return std::nullopt;
    return Cell{.nvlinks = *links};
  }
  // SOC is what drivers before 2017 called SYS.
  if (text == "SOC" || text == "N/A") return Cell{};
  if (const auto distance = topology::ParsePciDistance(text)) return Cell{.distance = *distance};
  return std::nullopt;
}

class Reader {
 public:
  base::Status Line(std::string_view raw, int number) {
    if (raw.size() > kMaxLine) {
      return base::Fail(Code::kTooLarge, fmt::format("line {} is longer than {} bytes", number, kMaxLine));
    }
    const std::string line = WithoutEscapes(raw);
    const std::vector<std::string_view> words = Words(line);
    if (words.empty()) return {};
    if (columns_.empty()) return IsHeader(words) ? Header(words, number) : base::Status{};
    if (GpuNumber(words.front())) return Row(Cells(line), number);
    // "  NIC0: mlx5_0"
    if (words.size() == 2 && words[0].back() == ':') {
      legend_.emplace(Printable(words[0].substr(0, words[0].size() - 1)), Printable(words[1]));
    }
    return {};
  }

  base::Result<TopoMatrix> Finish() {
    if (columns_.empty())
      return base::Fail(Code::kInvalid, "no line of it names GPUs as `nvidia-smi topo -m` does");
    for (const std::string& column : columns_) {
      const auto number = GpuNumber(column);
      if (number && !rows_.contains(*number)) {
        return base::Fail(Code::kInvalid, fmt::format("{} has a column and no row", column));
      }
    }
    TopoMatrix matrix;
    std::vector<std::size_t> gpu_columns;
    for (const auto& [number, row] : rows_) gpu_columns.push_back(row.column);
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (GpuNumber(columns_[c])) continue;
      const auto said = legend_.find(columns_[c]);
      matrix.nics.push_back(said == legend_.end() ? columns_[c] : said->second);
    }
    std::set<std::string_view> names;
    for (const std::string& nic : matrix.nics) {
      if (!names.insert(nic).second)
        return base::Fail(Code::kInvalid, fmt::format("two NICs are called {}", nic));
    }
    for (auto& [number, row] : rows_) {
      row.gpu.index = number;
      for (const std::size_t c : gpu_columns) row.gpu.nvlinks.push_back(row.cells[c].nvlinks);
      for (std::size_t c = 0; c < columns_.size(); ++c) {
        if (!GpuNumber(columns_[c])) row.gpu.distances.push_back(row.cells[c].distance);
      }
      matrix.gpus.push_back(std::move(row.gpu));
    }
    CompareDirections(matrix);
    return matrix;
  }

 private:
  struct RowRead {
    TopoGpu gpu;
    std::size_t column = 0;
    std::vector<Cell> cells;
  };

  // A row has a cell behind its name, the header another name.
  static bool IsHeader(const std::vector<std::string_view>& words) {
    return GpuNumber(words[0]) && (words.size() == 1 || !ParseCell(words[1]));
  }

  base::Status Header(const std::vector<std::string_view>& words, int number) {
    for (const std::string_view word : words) {
      if (word == "CPU") break;  // "CPU Affinity", and what follows it
      if (columns_.size() == kMaxColumns) {
        return base::Fail(Code::kTooLarge, fmt::format("line {}: more than {} columns", number, kMaxColumns));
      }
      std::string name = Printable(word, 64);
      if (std::find(columns_.begin(), columns_.end(), name) != columns_.end()) {
        return base::Fail(Code::kInvalid, fmt::format("line {}: two columns are called {}", number, name));
      }
      columns_.push_back(std::move(name));
    }
    return {};
  }

  base::Status Row(const std::vector<std::string_view>& cells, int number) {
    const std::string name = Printable(cells.front(), 64);
    const auto gpu = GpuNumber(name);
    const auto column = std::find(columns_.begin(), columns_.end(), name);
    if (!gpu || column == columns_.end()) {
      return base::Fail(Code::kInvalid,
                        fmt::format("line {}: the header has no column for {}", number, name));
    }
    if (cells.size() <= columns_.size()) {
      return base::Fail(Code::kInvalid,
                        fmt::format("line {}: {} has {} cells and the header names {} devices", number, name,
                                    cells.size() - 1, columns_.size()));
    }
    const auto [slot, fresh] = rows_.try_emplace(*gpu);
    if (!fresh) return base::Fail(Code::kInvalid, fmt::format("line {}: {} has two rows", number, name));
    RowRead& row = slot->second;
    row.column = std::size_t(column - columns_.begin());
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const auto cell = ParseCell(cells[c + 1]);
      if (!cell || cell->itself != (c == row.column)) {
        return base::Fail(Code::kInvalid,
                          fmt::format("line {}: {} to {} is `{}`, which is no cell of the format there",
                                      number, name, columns_[c], Printable(cells[c + 1], 40)));
      }
      row.cells.push_back(*cell);
    }
    const std::size_t cpus = columns_.size() + 1;
    if (cells.size() > cpus && cells[cpus] != "N/A") row.gpu.cpus = Printable(cells[cpus]);
    if (cells.size() > cpus + 1) {
      if (const auto numa = Number<std::uint8_t>(cells[cpus + 1])) row.gpu.numa = int(*numa);
    }
    return {};
  }

  static void CompareDirections(TopoMatrix& matrix) {
    for (std::size_t a = 0; a < matrix.gpus.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const int there = matrix.gpus[a].nvlinks[b], back = matrix.gpus[b].nvlinks[a];
        if (there == back || matrix.problems.size() == 100) continue;
        matrix.problems.push_back(fmt::format("GPU{} has {} NVLinks to GPU{}, which has {} to it",
                                              matrix.gpus[a].index, there, matrix.gpus[b].index, back));
      }
    }
  }

  std::vector<std::string> columns_;
  std::map<int, RowRead> rows_;
  std::map<std::string, std::string> legend_;
};

}  // namespace

base::Result<TopoMatrix> ParseTopoMatrix(std::string_view text) {
  Reader reader;
  base::Status status;
  ForEachLine(text, [&](std::string_view line, int number) {
    if (status) status = reader.Line(line, number);
  });
  TRY(status);
  return reader.Finish();
}

}  // namespace heddle::formats
