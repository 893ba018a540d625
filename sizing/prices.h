#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sizing/design.h"

namespace heddle::sizing {

// Prices are estimates, as ranges: nobody publishes what is paid. Whoever has a quotation puts it in their place.

struct Band {
  double low = 0, high = 0;  // of one, in the book's currency
  friend bool operator==(const Band&, const Band&) = default;
};

struct PriceBook {
  std::string currency = "USD";
  std::string date;                   // "2026-11", of the estimates
  std::string source;                 // who says so
  std::map<std::string, Band> items;  // by key: "switch.qm9700", "transceiver.multimode.400"
  friend bool operator==(const PriceBook&, const PriceBook&) = default;
};
const PriceBook& UsualPrices();
std::string PriceKeys();  // of UsualPrices, for sentences

struct BillLine {
  std::string key;    // in the price book
  std::string title;  // for people
  std::int64_t count = 0;
  std::optional<Band> each;  // nothing: no price is known, which is not nought
  friend bool operator==(const BillLine&, const BillLine&) = default;
};

struct Bill {
  std::vector<BillLine> lines;  // without those of count 0
  Band total;                   // of the lines with a price
  std::int64_t unpriced = 0;    // things without one
};
Bill BillOf(const Design& design, const PriceBook& prices);

struct Watts {
  double low = 0, high = 0;
};
// Of the optical ends of the cables of `cables`, those in machines among them; copper, also with chips in it, and the
// storage network are not counted.
Watts CableWatts(const Design& design);

}  // namespace heddle::sizing
