#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace heddle::nodeagent {

// Other identifiers for those of one recording: equal ones become equal ones, different ones different ones.
// What is all zeros or all ones names nothing and stays. First every text is shown to Learn, so that no number is
// dealt that some device already has.
class Identifiers {
 public:
  // Finds hardware addresses wherever they stand in a text.
  void Learn(std::string_view text);
  // The text with each MAC address, GUID, GID and UUID replaced.
  std::string Replace(std::string_view text);

  // One word of a kind: "host" → "host-1", the next "host-2". Empty stays empty.
  std::string Name(std::string_view kind, std::string_view original);
  // 64 bits that name a chip, as AMD's unique_id.
  std::uint64_t Chip(std::uint64_t original);
  // The GUID's digits without marks: 16 of them in, 16 out.
  std::string Guid(std::string_view digits);
  // 12 digits.
  std::string Mac(std::string_view digits);

 private:
  std::string Low(std::string_view digits);
  std::string Middle(std::string_view digits);
  std::string Uuid(std::string_view text);
  std::string Address4(std::string_view digits);
  std::string Token(std::string_view text);

  std::set<std::string, std::less<>> taken_;  // low halves that the recording has
  std::map<std::string, std::string, std::less<>> lows_, middles_, uuids_;
  std::map<std::string, std::map<std::string, std::string, std::less<>>, std::less<>> names_;
  std::map<std::uint64_t, std::uint64_t> chips_;
  std::uint32_t next_low_ = 0;
};

}  // namespace heddle::nodeagent
