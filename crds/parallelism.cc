#include "crds/parallelism.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/trimmed.h"
#include "crds/codec.h"

namespace heddle::crds {
namespace {

using base::Code;
using base::Fail;
using placement::Axis;

struct Word {
  std::string_view name;
  std::string_view value;
};

// What somebody wrote, short enough for a sentence.
std::string Quote(std::string_view text) {
  return "\"" + codec::Clean(text, 40) + "\"";
}

// "a=1, b=2" as words, none of them empty and no name twice.
base::Result<std::vector<Word>> SplitWords(std::string_view text, std::string_view example) {
  if (base::Trimmed(text).empty())
    return Fail(Code::kInvalid, fmt::format("is empty: write it as in \"{}\"", example));
  std::vector<Word> words;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view piece = base::Trimmed(text.substr(0, comma));
    const std::size_t equals = piece.find('=');
    const Word word{base::Trimmed(piece.substr(0, equals)), equals == std::string_view::npos
                                                                ? std::string_view()
                                                                : base::Trimmed(piece.substr(equals + 1))};
    if (piece.empty()) {
      return Fail(Code::kInvalid,
                  fmt::format("has a comma with nothing beside it: write it as in \"{}\"", example));
    }
    if (word.name.empty() || word.value.empty()) {
      return Fail(Code::kInvalid,
                  fmt::format("{} is not NAME=VALUE: write it as in \"{}\"", Quote(piece), example));
    }
    if (word.value.find('=') != std::string_view::npos) {
      return Fail(Code::kInvalid,
                  fmt::format("has no comma between {}: write it as in \"{}\"", Quote(piece), example));
    }
    if (std::any_of(words.begin(), words.end(), [&](const Word& other) { return other.name == word.name; })) {
      return Fail(Code::kInvalid,
                  fmt::format("{} stands twice: keep one of them", codec::Clean(word.name, 40)));
    }
    words.push_back(word);
    if (comma == std::string_view::npos) return words;
    text.remove_prefix(comma + 1);
  }
}

base::Result<int> ParseCount(const Word& word, int max) {
  std::int64_t number = 0;
  const char* end = word.value.data() + word.value.size();
  const auto [stop, error] = std::from_chars(word.value.data(), end, number);
  if (error == std::errc::invalid_argument || stop != end ||
      (error == std::errc() && (number < 1 || number > max)) || error == std::errc::result_out_of_range) {
    return Fail(Code::kInvalid,
                fmt::format("{}={} does not fit: write a whole number from 1 to {}, or leave {} out",
                            word.name, codec::Clean(word.value, 40), max, word.name));
  }
  return int(number);
}

base::Result<void> CheckFits(const placement::Parallelism& parallelism) {
  std::int64_t world = 1;
  for (const int size : {parallelism.tp, parallelism.cp, parallelism.dp, parallelism.pp}) {
    world *= size;
    if (world > kMaxWorld) {
      return Fail(Code::kInvalid,
                  fmt::format("tp*cp*dp*pp is more than {} GPUs, the most that a gang can have: "
                              "write smaller sizes",
                              kMaxWorld));
    }
  }
  if (parallelism.fsdp > 0 && parallelism.dp % parallelism.fsdp != 0) {
    return Fail(Code::kInvalid,
                fmt::format("fsdp={} does not divide dp={}: write a shard size that does, as fsdp={}",
                            parallelism.fsdp, parallelism.dp, std::gcd(parallelism.fsdp, parallelism.dp)));
  }
  if (parallelism.ep == 1 && parallelism.etp > 0) {
    return Fail(Code::kInvalid,
                fmt::format("etp={} means nothing without ep: add ep, or leave etp out", parallelism.etp));
  }
  const std::int64_t etp = parallelism.etp == 0 ? parallelism.tp : parallelism.etp;
  const std::int64_t rest = world / parallelism.pp;  // what ep * etp must divide
  if (parallelism.ep > 1 && rest % (parallelism.ep * etp) != 0) {
    const std::string advice = rest % etp == 0 ? fmt::format("write an ep that divides {}", rest / etp)
                                               : fmt::format("write etp={} or another divisor of {} first",
                                                             std::gcd(etp, rest), rest);
    return Fail(Code::kInvalid, fmt::format("ep={} x etp={} x pp={} does not divide the {} ranks: {}",
                                            parallelism.ep, etp, parallelism.pp, world, advice));
  }
  if (std::string why = placement::WhyNotLaidOut(parallelism); !why.empty()) {
    return Fail(Code::kInvalid, why + ": write sizes that do");
  }
  return {};
}

// 1, 2, 4 and 8 of "tp=8,pp=2"; for the sentences of CheckWorld.
std::string Product(const placement::Parallelism& parallelism) {
  std::string text;
  for (const Axis axis : {Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp}) {
    if (parallelism.size(axis) == 1) continue;
    if (!text.empty()) text += " x ";
    text += fmt::format("{}={}", placement::AxisName(axis), parallelism.size(axis));
  }
  return text.empty() ? "tp=1" : text;
}

base::Result<double> ParseParameters(const Word& word) {
  double parameters = 0;
  const char* end = word.value.data() + word.value.size();
  const auto [stop, error] = std::from_chars(word.value.data(), end, parameters);
  if (error != std::errc() || stop != end || !(parameters >= 1) || parameters > 1e15) {
    return Fail(Code::kInvalid, fmt::format("{0}={1} does not fit: write the number of parameters, from 1 to "
                                            "1e15, as in {0}=70e9",
                                            word.name, codec::Clean(word.value, 40)));
  }
  return std::round(parameters);
}

}  // namespace

base::Result<std::array<Axis, 4>> ParseOrder(std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    return Fail(Code::kInvalid,
                fmt::format("order={} {}: write tp, cp, dp and pp once each, as in tp-cp-ep-dp-pp",
                            codec::Clean(text, 40), why));
  };
  std::vector<Axis> axes;
  for (std::string_view rest = text;;) {
    const std::size_t dash = rest.find('-');
    const auto axis = placement::ParseAxis(rest.substr(0, dash));
    if (!axis || *axis == Axis::kFsdp || *axis == Axis::kGang) return refuse("has an unknown word");
    if (std::find(axes.begin(), axes.end(), *axis) != axes.end()) return refuse("names an axis twice");
    axes.push_back(*axis);
    if (dash == std::string_view::npos) break;
    rest.remove_prefix(dash + 1);
  }
  if (const auto ep = std::find(axes.begin(), axes.end(), Axis::kEp); ep != axes.end()) {
    const auto outer =
        std::find_if(axes.begin(), axes.end(), [](Axis a) { return a == Axis::kDp || a == Axis::kPp; });
    if (ep + 1 != outer) return refuse("has ep in another place than right before the first of dp and pp");
    axes.erase(ep);
  }
  if (axes.size() != 4) return refuse("leaves an axis out");
  return std::array<Axis, 4>{axes[0], axes[1], axes[2], axes[3]};
}

std::string FormatOrder(const std::array<Axis, 4>& order) {
  std::string text;
  for (const Axis axis : order) {
    if (!text.empty()) text += "-";
    text += placement::AxisName(axis);
  }
  return text;
}

base::Result<placement::Parallelism> ParseParallelism(std::string_view text) {
  ASSIGN_OR_RETURN(const auto words, SplitWords(text, "tp=8,pp=2,dp=8"));
  placement::Parallelism parallelism;
  const std::pair<std::string_view, int*> sizes[] = {
      {"tp", &parallelism.tp}, {"cp", &parallelism.cp},   {"dp", &parallelism.dp},    {"pp", &parallelism.pp},
      {"ep", &parallelism.ep}, {"etp", &parallelism.etp}, {"fsdp", &parallelism.fsdp}};
  for (const Word& word : words) {
    if (word.name == "order") {
      ASSIGN_OR_RETURN(parallelism.order, ParseOrder(word.value));
      continue;
    }
    const auto* size =
        std::find_if(std::begin(sizes), std::end(sizes), [&](auto& s) { return s.first == word.name; });
    if (size == std::end(sizes)) {
      return Fail(Code::kInvalid,
                  fmt::format("unknown word {}: the words are tp, cp, dp, pp, ep, etp, fsdp and order",
                              Quote(word.name)));
    }
    ASSIGN_OR_RETURN(*size->second, ParseCount(word, kMaxWorld));
  }
  TRY(CheckFits(parallelism));
  return parallelism;
}

base::Result<placement::ModelHints> ParseModel(std::string_view text) {
  ASSIGN_OR_RETURN(const auto words,
                   SplitWords(text, "params=70e9,layers=80,hidden=8192,seq=8192,microbatch=1"));
  placement::ModelHints model;
  const struct {
    std::string_view name;
    int* to;
    int max;
  } counts[] = {{"layers", &model.layers, 1'000'000},
                {"hidden", &model.hidden, 10'000'000},
                {"seq", &model.seq, 1'000'000'000},
                {"microbatch", &model.microbatch, 1'000'000},
                {"microbatches", &model.microbatches, 1'000'000},
                {"tflops", &model.tflops, 1'000'000},
                {"experts", &model.experts, 1'000'000},
                {"topk", &model.topk, 1'000'000},
                {"heads", &model.heads, 1'000'000},
                {"kvheads", &model.kvheads, 1'000'000}};
  for (const Word& word : words) {
    if (word.name == "params" || word.name == "active") {
      ASSIGN_OR_RETURN((word.name == "params" ? model.params : model.active), ParseParameters(word));
      continue;
    }
    const auto* count =
        std::find_if(std::begin(counts), std::end(counts), [&](auto& c) { return c.name == word.name; });
    if (count == std::end(counts)) {
      return Fail(Code::kInvalid,
                  fmt::format("unknown word {}: the words are params, layers, hidden, seq, microbatch, "
                              "microbatches, tflops, active, experts, topk, heads and kvheads",
                              Quote(word.name)));
    }
    ASSIGN_OR_RETURN(*count->to, ParseCount(word, count->max));
  }
  if (std::string why = placement::WhyNoModel(model); !why.empty())
    return Fail(Code::kInvalid, std::move(why));
  return model;
}

base::Result<std::vector<placement::Requirement>> ParseConstraints(std::string_view text) {
  ASSIGN_OR_RETURN(const auto words, SplitWords(text, "tp=nvlink,dp=leaf"));
  std::vector<placement::Requirement> requirements;
  for (const Word& word : words) {
    const auto axis = placement::ParseAxis(word.name);
    if (!axis) {
      return Fail(
          Code::kInvalid,
          fmt::format("unknown word {}: the axes are tp, cp, ep, dp, pp, fsdp and gang", Quote(word.name)));
    }
    const auto level = placement::ParseLevel(word.value);
    if (!level) {
      return Fail(Code::kInvalid,
                  fmt::format("{}={} names no place: write nvlink, node, leaf, su, spine or site", word.name,
                              codec::Clean(word.value, 40)));
    }
    requirements.push_back({*axis, *level});
  }
  std::sort(requirements.begin(), requirements.end(),
            [](const auto& a, const auto& b) { return a.axis < b.axis; });
  return requirements;
}

base::Result<std::chrono::seconds> ParseWait(std::string_view text) {
  constexpr std::int64_t kMaxSeconds = 365 * 24 * 3600;
  const auto refuse = [&] {
    return Fail(Code::kInvalid,
                fmt::format("{} is no time to wait: write hours, minutes and seconds, as in 90s, 30m or "
                            "1h30m, at most 8760h",
                            Quote(text)));
  };
  std::string_view rest = base::Trimmed(text);
  std::string_view units = "hms";
  std::int64_t seconds = 0;
  if (rest.empty()) return refuse();
  while (!rest.empty()) {
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc() || rest[0] == '-') return refuse();
    rest.remove_prefix(std::size_t(stop - rest.data()));
    const std::size_t unit = rest.empty() ? std::string_view::npos : units.find(rest[0]);
    if (unit == std::string_view::npos || number > kMaxSeconds) return refuse();
    seconds += number * (units[unit] == 'h' ? 3600 : units[unit] == 'm' ? 60 : 1);
    units.remove_prefix(unit + 1);
    rest.remove_prefix(1);
  }
  if (seconds > kMaxSeconds) return refuse();
  return std::chrono::seconds(seconds);
}

base::Result<bool> ParseOnDegraded(std::string_view text) {
  const std::string_view word = base::Trimmed(text);
  if (word == "restart" || word == "wait") return word == "restart";
  return Fail(
      Code::kInvalid,
      fmt::format("{} is no answer to a lost rank: write wait (the default), or restart to have the whole "
                  "gang stopped and placed anew where one of its ranks finds no place",
                  Quote(text)));
}

base::Result<bool> ParseComputeDomain(std::string_view text) {
  if (text == "true" || text == "false") return text == "true";
  return Fail(Code::kInvalid,
              fmt::format("{} does not say whether the gang gets a ComputeDomain: write true, for NVLink "
                          "between its nodes, or false",
                          Quote(text)));
}

base::Status CheckWorld(const placement::Parallelism& parallelism, int pods, int gpus_per_pod) {
  const std::int64_t world = parallelism.world();
  const std::int64_t gpus = std::int64_t(pods) * gpus_per_pod;
  if (world == gpus) return {};
  const std::int64_t without_dp = world / parallelism.dp;
  const std::string fact = fmt::format("{} is {} ranks, but {} pods of {} GPUs have {}", Product(parallelism),
                                       world, pods, gpus_per_pod, gpus);
  if (gpus > 0 && gpus % without_dp == 0) {
    return Fail(Code::kInvalid,
                fmt::format("{}: write dp={}, or change the number of pods", fact, gpus / without_dp));
  }
  if (gpus_per_pod > 0 && world % gpus_per_pod == 0) {
    return Fail(Code::kInvalid, fmt::format("{}: make it {} pods, or write sizes that multiply to {}", fact,
                                            world / gpus_per_pod, gpus));
  }
  return Fail(Code::kInvalid, fmt::format("{}: write sizes that multiply to the GPUs of all pods", fact));
}

}  // namespace heddle::crds
