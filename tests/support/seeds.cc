#include "tests/support/seeds.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string_view>

namespace heddle::test {
namespace {

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HEDDLE_UNDER_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEDDLE_UNDER_SANITIZER 1
#endif

#ifdef HEDDLE_UNDER_SANITIZER
constexpr int kShare = 5;
#else
constexpr int kShare = 1;
#endif

// What the formats read give meaning to: JSON, XML, YAML, ibnetdiscover.
constexpr std::string_view kSpecial("\"[](){}<>:,#\\&*-\n9\xff\0", 20);

}  // namespace

std::vector<std::uint64_t> Seeds(int count) {
  if (const char* const only = std::getenv("HEDDLE_SEED")) return {std::strtoull(only, nullptr, 10)};
  std::vector<std::uint64_t> seeds(std::size_t(std::max(1, count / kShare)));
  std::iota(seeds.begin(), seeds.end(), std::uint64_t(1));
  return seeds;
}

std::string Replay(std::uint64_t seed) {
  return "HEDDLE_SEED=" + std::to_string(seed);
}

std::string Damage(std::string text, base::Random& random) {
  const auto at = [&] { return text.empty() ? std::size_t(0) : std::size_t(random.Below(text.size())); };
  for (std::uint64_t i = 0, hits = 1 + random.Below(6); i < hits; ++i) {
    switch (random.Below(5)) {
      case 0:
        text.resize(at());
        break;
      case 1:
        if (!text.empty()) text[at()] = char(random.Below(256));
        break;
      case 2:
        text.insert(at(), std::string(1 + random.Below(8), kSpecial[random.Below(kSpecial.size())]));
        break;
      case 3:
        text.erase(at(), random.Below(64));
        break;
      default:
        text.insert(at(), text.substr(at(), random.Below(200)));
        break;
    }
  }
  return text;
}

}  // namespace heddle::test
