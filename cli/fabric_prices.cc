#include <fmt/format.h>

#include <cmath>

#include "cli/fabric_design.h"
#include "crds/yaml.h"

namespace heddle::cli {
namespace {

using base::Code;

constexpr std::size_t kMostItems = 1000;
constexpr std::size_t kMostWord = 200;
constexpr double kMostPrice = 1e9;

base::Status ReadWord(const Json& json, const char* key, std::string& into) {
  const auto found = json.find(key);
  if (found == json.end()) return {};
  // A date that looks like a number is none.
  std::string text = found->is_string() ? found->get<std::string>() : found->dump();
  if (found->is_structured() || text.empty() || text.size() > kMostWord)
    return base::Fail(Code::kInvalid, fmt::format("{}: write a short text", key));
  into = std::move(text);
  return {};
}

base::Result<double> ReadPrice(const std::string& key, const Json& json) {
  const double price = json.is_number() ? json.get<double>() : -1;
  if (std::isfinite(price) && price >= 0 && price <= kMostPrice) return price;
  return base::Fail(
      Code::kInvalid,
      fmt::format("items.{}: write a price from 0 to {:.0f}, or {{low: …, high: …}}", key, kMostPrice));
}

bool IsOwnSwitch(const std::string& key) {
  constexpr std::string_view kStart = "switch.radix";
  return key.starts_with(kStart) && key.size() > kStart.size() &&
         key.find_first_not_of("0123456789", kStart.size()) == std::string::npos;
}

base::Result<sizing::Band> ReadBand(const std::string& key, const Json& json) {
  if (!sizing::UsualPrices().items.contains(key) && !IsOwnSwitch(key)) {
    return base::Fail(Code::kInvalid,
                      fmt::format("items.{}: nothing here is called that: write one of {}, or "
                                  "switch.radixN for switches of N ports",
                                  key.substr(0, kMostWord), sizing::PriceKeys()));
  }
  sizing::Band band;
  if (!json.is_object()) {
    ASSIGN_OR_RETURN(band.low, ReadPrice(key, json));
    band.high = band.low;
    return band;
  }
  for (const auto& [word, value] : json.items()) {
    if (word != "low" && word != "high")
      return base::Fail(Code::kInvalid,
                        fmt::format("items.{}.{}: write low and high", key, word.substr(0, kMostWord)));
  }
  ASSIGN_OR_RETURN(band.low, ReadPrice(key, json.value("low", Json())));
  ASSIGN_OR_RETURN(band.high, ReadPrice(key, json.value("high", Json())));
  if (band.low <= band.high) return band;
  return base::Fail(Code::kInvalid, fmt::format("items.{}: low is more than high: exchange them", key));
}

}  // namespace

base::Result<sizing::PriceBook> ReadPrices(const std::string& text) {
  ASSIGN_OR_RETURN(const Json json, crds::FromYaml(text));
  if (!json.is_object()) {
    return base::Fail(Code::kInvalid,
                      "it holds no prices: write items: {switch.qm9700: {low: 28000, high: 31000}}");
  }
  for (const auto& [key, value] : json.items()) {
    if (key != "currency" && key != "date" && key != "source" && key != "items") {
      return base::Fail(Code::kInvalid, fmt::format("{}: a price file has currency, date, source and items",
                                                    key.substr(0, kMostWord)));
    }
  }
  sizing::PriceBook book = sizing::UsualPrices();
  TRY(ReadWord(json, "currency", book.currency));
  TRY(ReadWord(json, "date", book.date));
  TRY(ReadWord(json, "source", book.source));
  const auto items = json.find("items");
  if (items == json.end() || !items->is_object() || items->empty() || items->size() > kMostItems) {
    return base::Fail(Code::kInvalid,
                      "items: write prices by key, as items: {switch.qm9700: {low: 28000, high: 31000}}");
  }
  // Ranges of one currency do not sum with those of another.
  if (book.currency != sizing::UsualPrices().currency) book.items.clear();
  for (const auto& [key, value] : items->items()) {
    ASSIGN_OR_RETURN(book.items[key], ReadBand(key, value));
  }
  return book;
}

}  // namespace heddle::cli
