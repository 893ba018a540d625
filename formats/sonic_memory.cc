#include "formats/sonic_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "base/counted.h"
#include "formats/scanner.h"
#include "lossless/port_settings.h"

namespace heddle::formats::sonic {
namespace {

// More than any chip has; sums of as many sizes as a configuration may hold stay far below what 64 bits take.
constexpr std::int64_t kMostBytes = std::int64_t(1) << 40;
constexpr std::size_t kMostNamed = 4;

std::optional<std::int64_t> BytesOf(const Json& entry, std::string_view field) {
  const std::string text = TextOf(Member(entry, field));
  return Within<std::int64_t>(text, 0, kMostBytes);
}

// Of the pools; whether all of them say what this takes.
bool PutPools(const Json& root, Memory& memory) {
  const Json& pools = Member(root, "BUFFER_POOL");
  if (!pools.is_object()) return false;
  for (const auto& [name, pool] : pools.items()) {
    const std::string type = TextOf(Member(pool, "type"));
    if (type == "egress") continue;
    const auto size = BytesOf(pool, "size");
    if (type != "ingress" || !size) return false;
    std::optional<std::int64_t> xoff = 0;
    if (!Member(pool, "xoff").is_null()) xoff = BytesOf(pool, "xoff");
    if (!xoff) return false;
    memory.ingress += *size + *xoff;
    memory.shares_headroom = memory.shares_headroom || *xoff > 0;
  }
  const Json& egress = Member(pools, "egress_lossless_pool");
  const auto all = BytesOf(egress, "size");
  if (!all || TextOf(Member(egress, "type")) != "egress" || TextOf(Member(egress, "mode")) != "dynamic")
    return false;
  memory.all = *all;
  return memory.ingress > 0 && memory.ingress < memory.all;
}

// By port and group, what its profile reserves: of those with xoff, which are the lossless ones.
std::map<std::pair<std::string, int>, std::int64_t> GroupsOf(const Json& root) {
  std::map<std::pair<std::string, int>, std::int64_t> groups;
  const Json& table = Member(root, "BUFFER_PG");
  if (!table.is_object()) return groups;
  for (const auto& [key, row] : table.items()) {
    const auto range = ParseRangeKey(key);
    const std::string name = NameIn("BUFFER_PROFILE", TextOf(Member(row, "profile")));
    const Json& profile = Entry(root, "BUFFER_PROFILE", name);
    const auto bytes = BytesOf(profile, "size");
    if (!range || !bytes || *bytes == 0 || Member(profile, "xoff").is_null()) continue;
    for (const std::string& port : range->ports) {
      const Json& of_port = Entry(root, "PORT", port);
      // Of a port that is not up (sonic-port.yang: down where nothing is said) SONiC takes back the profiles that it
      // made itself, and no other (sonic-swss, cfgmgr/buffermgr.cpp, doSpeedUpdateTask).
      const bool up = TextOf(Member(of_port, "admin_status")) == "up";
      if (!of_port.is_object() || (!up && name.starts_with("pg_lossless_"))) continue;
      for (int group = range->first; group <= std::min(range->last, lossless::kPriorities - 1); ++group) {
        const auto [at, fresh] = groups.try_emplace({port, group}, *bytes);
        if (!fresh) at->second = std::min(at->second, *bytes);
      }
    }
  }
  return groups;
}

void PutReservations(const Json& root, Memory& memory) {
  std::map<std::pair<std::string, std::int64_t>, int> of_port;  // groups, by what each of them reserves
  for (const auto& [group, bytes] : GroupsOf(root)) {
    ++of_port[{group.first, bytes}];
    memory.reserved += bytes;
  }
  std::map<std::pair<int, std::int64_t>, int> ports;
  for (const auto& [port, groups] : of_port) ++ports[{groups, port.second}];
  for (const auto& [groups, count] : ports)
    memory.reservations.push_back({count, groups.first, groups.second});
  std::stable_sort(memory.reservations.begin(), memory.reservations.end(),
                   [](const Reservation& a, const Reservation& b) { return a.sum() > b.sum(); });
}

// "30 ports x 1 group x 334848 bytes + 2 ports x 2 groups x 58368 bytes = 10278912 bytes"
std::string SumText(const Memory& memory) {
  std::string text;
  std::int64_t rest = memory.reserved;
  for (std::size_t i = 0; i < std::min(kMostNamed, memory.reservations.size()); ++i) {
    const Reservation& one = memory.reservations[i];
    text += fmt::format("{}{} x {} x {} bytes", i == 0 ? "" : " + ", base::Counted(one.ports, "port"),
                        base::Counted(one.groups, "group"), one.bytes);
    rest -= one.sum();
  }
  if (rest > 0) text += fmt::format(" + {} of others", rest);
  return fmt::format("{} = {} bytes", text, memory.reserved);
}

}  // namespace

std::optional<Memory> MemoryOf(const Json& root) {
  if (TextOf(Member(Entry(root, "DEVICE_METADATA", "localhost"), "buffer_model")) == "dynamic")
    return std::nullopt;
  Memory memory;
  if (!PutPools(root, memory)) return std::nullopt;
  PutReservations(root, memory);
  return memory;
}

std::string NoteOf(const Memory& wanted, const std::optional<Memory>& now) {
  if (wanted.missing() <= 0) return "";
  std::string before;
  if (now && now->reserved != wanted.reserved) {
    before = fmt::format("; as it is, {} bytes are reserved, {}", now->reserved,
                         now->missing() > 0 ? "which have no room either" : "which have room");
  } else if (now) {
    before = "; so it is already";
  }
  return fmt::format(
      "headroom of all ports has no room in the switch's memory: {}, and BUFFER_POOL leaves {} of {} (size "
      "of "
      "egress_lossless_pool) beside {} of ingress pools{}. Say how long cables are where they are shorter, "
      "take PFC "
      "and lossless profiles off what carries no RDMA{}, or make the ingress pools {} bytes smaller first",
      SumText(wanted), wanted.left(), wanted.all, wanted.ingress, before,
      wanted.shares_headroom ? "" : ", let groups share headroom (xoff of ingress_lossless_pool)",
      wanted.missing());
}

}  // namespace heddle::formats::sonic
