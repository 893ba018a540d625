#include "formats/sonic_edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "formats/printable.h"

namespace heddle::formats::sonic {
namespace {

// What is referred to stands before what refers to it.
constexpr std::array<std::string_view, 14> kOrder{"DSCP_TO_TC_MAP",  "TC_TO_PRIORITY_GROUP_MAP",
                                                  "TC_TO_QUEUE_MAP", "MAP_PFC_PRIORITY_TO_QUEUE",
                                                  "SCHEDULER",       "WRED_PROFILE",
                                                  "BUFFER_PROFILE",  "PORT",
                                                  "CABLE_LENGTH",    "PORT_QOS_MAP",
                                                  "QUEUE",           "BUFFER_PG",
                                                  "BUFFER_QUEUE",    "PFC_WD"};

std::string Pointer(const std::vector<std::string>& way) {
  std::string pointer;
  for (const std::string& part : way) {
    pointer += '/';
    for (const char c : part) pointer += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  return pointer;
}

// Fields of a queue or group with the changes of one cell.
Json With(Json value, const std::map<std::string, std::optional<std::string>>& changes) {
  if (!value.is_object()) value = Json::object();
  for (const auto& [field, text] : changes) {
    if (!text) {
      value.erase(field);
    } else if (TextOf(Member(value, field)) != *text) {
      value[field] = *text;
    }
  }
  return value;
}

std::string Where(const std::vector<std::string>& way) {
  std::string where = way.front();
  if (way.size() > 1) where += "|" + way[1];
  if (way.size() > 2) where += " " + way[2];
  return Printable(where, 120);
}

}  // namespace

base::Status Editor::CheckTables(const Json& live) {
  for (const std::string_view table : kOrder) {
    const Json& entries = Member(live, table);
    if (!entries.is_null() && !entries.is_object())
      return base::Fail(base::Code::kInvalid, fmt::format("{} is no table with entries", table));
  }
  return {};
}

void Editor::Because(std::string_view table, std::string_view key, const Reason& reason) {
  reasons_.insert_or_assign(fmt::format("{}|{}", table, key), reason);
}

void Editor::Set(std::string_view table, std::string_view key, std::string_view field,
                 const std::string& value, const Reason& reason) {
  if (TextOf(Member(Entry(work_, table, key), field)) == value &&
      !Member(Entry(work_, table, key), field).is_null())
    return;
  Json& entry = work_[std::string(table)][std::string(key)];
  if (!entry.is_object()) entry = Json::object();
  entry[std::string(field)] = value;
  Because(table, fmt::format("{} {}", key, field), reason);
}

void Editor::Remove(std::string_view table, std::string_view key, const Reason& reason) {
  if (Entry(work_, table, key).is_null()) return;
  work_[std::string(table)].erase(std::string(key));
  Because(table, key, reason);
}

void Editor::PutEntry(std::string_view table, std::string_view key, Json value, const Reason& reason) {
  Json& entry = work_[std::string(table)][std::string(key)];
  if (entry == value) return;
  for (const auto& [field, text] : value.items()) {
    if (Member(entry, field) != text) Because(table, fmt::format("{} {}", key, field), reason);
  }
  for (const auto& [field, text] : entry.items()) {
    if (!value.contains(field)) Because(table, fmt::format("{} {}", key, field), reason);
  }
  entry = std::move(value);
}

void Editor::EditCells(std::string_view table, const std::string& port, const Cells& cells,
                       const Reason& reason) {
  Cells left = cells;
  std::vector<std::pair<std::string, RangeKey>> keys;
  if (const Json& entries = Member(work_, table); entries.is_object()) {
    for (const auto& [key, value] : entries.items()) {
      auto range = ParseRangeKey(key);
      if (range && range->Has(port) && range->last - range->first < 64)
        keys.emplace_back(key, *std::move(range));
    }
  }
  for (const auto& [key, range] : keys) {
    EditKey(table, port, key, range, cells, reason);
    for (int number = range.first; number <= range.last; ++number) left.erase(number);
  }
  for (const auto& [number, changes] : left) {
    Json value = With(Json::object(), changes);
    if (!value.empty()) PutEntry(table, fmt::format("{}|{}", port, number), std::move(value), reason);
  }
}

void Editor::EditKey(std::string_view table, const std::string& port, const std::string& key,
                     const RangeKey& range, const Cells& cells, const Reason& reason) {
  const Json before = Entry(work_, table, key);
  std::vector<Json> after;
  for (int number = range.first; number <= range.last; ++number) {
    const auto found = cells.find(number);
    after.push_back(found == cells.end() ? before : With(before, found->second));
  }
  const auto same_as = [](const Json& value) {
    return [&value](const Json& other) { return other == value; };
  };
  if (std::all_of(after.begin(), after.end(), same_as(before))) return;
  if (range.ports.size() == 1 && std::all_of(after.begin(), after.end(), same_as(after.front()))) {
    if (after.front().empty()) return Remove(table, key, reason);
    return PutEntry(table, key, after.front(), reason);
  }
  Remove(table, key, reason);
  std::string others;
  for (const std::string& other : range.ports) {
    if (other != port) others += (others.empty() ? "" : ",") + other;
  }
  if (!others.empty()) {
    // They may have an entry of their own beside the shared one.
    const std::string name = fmt::format("{}|{}", others, RangeText(range.first, range.last));
    Json kept = before;
    if (const Json& there = Entry(work_, table, name); there.is_object() && kept.is_object())
      kept.update(there);
    PutEntry(table, name, std::move(kept),
             {"other ports of the same entry keep what they have", reason.source});
  }
  for (std::size_t first = 0; first < after.size();) {
    std::size_t last = first;
    while (last + 1 < after.size() && after[last + 1] == after[first]) ++last;
    const std::string name =
        fmt::format("{}|{}", port, RangeText(range.first + int(first), range.first + int(last)));
    // This port, too, may have such an entry, whose own cells are changed in their turn.
    Json value = after[first];
    if (const Json& there = Entry(work_, table, name); there.is_object() && value.is_object())
      value.update(there);
    if (!value.empty()) PutEntry(table, name, std::move(value), reason);
    first = last + 1;
  }
}

void Editor::Keep(std::string_view table, const std::string& name) {
  taken_.insert(fmt::format("{}|{}", table, name));
}

std::string Editor::Named(std::string_view table, const std::string& base, const std::string& current,
                          const Json& content, const Reason& reason,
                          const std::function<bool(const std::string&)>& others_use) {
  const auto same = [&](const std::string& name) { return Entry(work_, table, name) == content; };
  const auto id = [table](const std::string& name) { return fmt::format("{}|{}", table, name); };
  if (!current.empty() && same(current)) {
    Keep(table, current);
    return current;
  }
  constexpr int kMostNames = 64;
  std::string free;
  for (int i = 1; i <= kMostNames; ++i) {
    std::string name = i == 1 ? base : fmt::format("{}_{}", base, i);
    if (same(name)) {
      Keep(table, name);
      return name;
    }
    const bool absent = Entry(work_, table, name).is_null();
    if (free.empty() && (absent || (!taken_.contains(id(name)) && !others_use(name)))) free = std::move(name);
  }
  if (free.empty()) free = fmt::format("{}_{}", base, kMostNames + 1);
  Keep(table, free);
  PutEntry(table, free, content, reason);
  return free;
}

Reason Editor::ReasonOf(const std::string& table, const std::string& key, const std::string& field) const {
  const std::string entry = fmt::format("{}|{}", table, key);
  if (const auto found = reasons_.find(entry + " " + field); !field.empty() && found != reasons_.end())
    return found->second;
  if (const auto found = reasons_.find(entry); found != reasons_.end()) return found->second;
  // What is new as a whole: all that was said of its fields, each once.
  Reason joined;
  const std::string prefix = key.empty() ? entry : entry + " ";
  for (const auto& [name, reason] : reasons_) {
    if (!name.starts_with(prefix)) continue;
    if (joined.why.find(reason.why) == std::string::npos)
      joined.why += (joined.why.empty() ? "" : "; ") + reason.why;
    if (joined.source.find(reason.source) == std::string::npos)
      joined.source += (joined.source.empty() ? "" : "; ") + reason.source;
  }
  return joined;
}

PatchLine Editor::Line(std::string op, const std::vector<std::string>& way, const Json* before,
                       const Json* after, const Reason& reason) const {
  PatchLine line{std::move(op), Pointer(way), "", Where(way), "", reason.why, reason.source};
  const auto words = [](const Json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  if (after != nullptr) line.value = after->dump();
  if (before != nullptr) line.before = Printable(words(*before), 1024);
  return line;
}

void Editor::DiffEntry(const std::string& table, const std::string& key, const Json& before,
                       const Json& after, std::vector<PatchLine>& lines) const {
  for (const auto& [field, value] : after.items()) {
    const Json& old = Member(before, field);
    if (old == value) continue;
    const bool fresh = !before.contains(field);
    lines.push_back(Line(fresh ? "add" : "replace", {table, key, field}, fresh ? nullptr : &old, &value,
                         ReasonOf(table, key, field)));
  }
  for (const auto& [field, value] : before.items()) {
    if (!after.contains(field))
      lines.push_back(Line("remove", {table, key, field}, &value, nullptr, ReasonOf(table, key, field)));
  }
}

void Editor::Diff(const std::string& table, std::vector<PatchLine>& lines) const {
  const Json &before = Member(live_, table), &after = Member(work_, table);
  if (before == after || !after.is_object()) return;
  if (!before.is_object()) {
    if (after.empty()) return;
    Json first = after;
    // `config apply-patch` takes its ports and refuses GLOBAL (sonic_steps.h), so that they stand apart.
    const bool apart = table == "PFC_WD" && after.contains("GLOBAL");
    if (apart) first = Json::object({{"GLOBAL", after.at("GLOBAL")}});
    lines.push_back(Line("add", {table}, nullptr, &first, ReasonOf(table, apart ? "GLOBAL" : "", "")));
    for (const auto& [key, value] : after.items()) {
      if (apart && key != "GLOBAL")
        lines.push_back(Line("add", {table, key}, nullptr, &value, ReasonOf(table, key, "")));
    }
    return;
  }
  // The configuration has no empty tables.
  if (after.empty()) {
    Reason reason;
    for (const auto& [key, value] : before.items()) reason = ReasonOf(table, key, "");
    return lines.push_back(Line("remove", {table}, &before, nullptr, reason));
  }
  for (const auto& [key, value] : before.items()) {
    if (!after.contains(key))
      lines.push_back(Line("remove", {table, key}, &value, nullptr, ReasonOf(table, key, "")));
  }
  for (const auto& [key, value] : after.items()) {
    const Json& old = Member(before, key);
    if (old == value) continue;
    if (old.is_object() && value.is_object()) {
      DiffEntry(table, key, old, value, lines);
    } else {
      lines.push_back(Line(old.is_null() ? "add" : "replace", {table, key}, old.is_null() ? nullptr : &old,
                           &value, ReasonOf(table, key, "")));
    }
  }
}

std::vector<PatchLine> Editor::Lines() const {
  std::vector<PatchLine> lines;
  for (const std::string_view table : kOrder) Diff(std::string(table), lines);
  return lines;
}

}  // namespace heddle::formats::sonic
