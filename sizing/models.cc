#include "sizing/models.h"

#include <algorithm>
#include <array>

namespace heddle::sizing {
namespace {

constexpr std::string_view kLlama3 =
    "Llama 3, arXiv 2407.21783, table 3 and section 3.4: sequences of 8,192, batches of 16M tokens";

placement::ModelHints Hints(double params, int layers, int hidden, int heads) {
  placement::ModelHints hints;
  hints.params = params;
  hints.layers = layers;
  hints.hidden = hidden;
  hints.seq = 8192;
  hints.microbatch = 1;
  hints.heads = heads;
  hints.kvheads = 8;
  return hints;
}

const std::array<NamedModel, 3>& ModelTable() {
  static const std::array<NamedModel, 3> kTable = {{
      {"llama3-8b", Hints(8.03e9, 32, 4096, 32), 2048, kLlama3},
      {"llama3-70b", Hints(70.6e9, 80, 8192, 64), 2048, kLlama3},
      {"llama3-405b", Hints(405e9, 126, 16384, 128), 2048, kLlama3},
  }};
  return kTable;
}

}  // namespace

std::span<const NamedModel> Models() {
  return ModelTable();
}

const NamedModel* FindModel(std::string_view word) {
  const auto found = std::find_if(ModelTable().begin(), ModelTable().end(),
                                  [&](const NamedModel& one) { return one.word == word; });
  return found == ModelTable().end() ? nullptr : &*found;
}

std::string ModelWords() {
  std::string words;
  for (const NamedModel& one : ModelTable()) (words += words.empty() ? "" : ", ") += one.word;
  return words;
}

const NamedModel& UsualModel(std::int64_t gpus) {
  return ModelTable()[gpus < 64 ? 0 : gpus < 2048 ? 1 : 2];
}

}  // namespace heddle::sizing
