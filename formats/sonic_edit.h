#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/sonic_patch.h"
#include "formats/sonic_tables.h"

// Of the writer of SONiC's patches, and included by nobody else.
namespace heddle::formats::sonic {

struct Reason {
  std::string why;
  std::string source;
};

// A configuration that is being changed, with the reason of each change.
class Editor {
 public:
  // Requires: CheckTables(live).
  explicit Editor(const Json& live) : live_(live), work_(live) {}
  // Whether what is edited are tables. Errors: kInvalid with the first that is none.
  [[nodiscard]] static base::Status CheckTables(const Json& live);

  const Json& work() const { return work_; }
  // Sets a field unless it says the same already.
  void Set(std::string_view table, std::string_view key, std::string_view field, const std::string& value,
           const Reason& reason);
  void Remove(std::string_view table, std::string_view key, const Reason& reason);
  void PutEntry(std::string_view table, std::string_view key, Json value, const Reason& reason);

  // New values of fields (nothing = removed) for queues or groups of one port, in a table with ranges. Ranges are taken
  // apart where their parts come to differ.
  using Cells = std::map<int, std::map<std::string, std::optional<std::string>>>;
  void EditCells(std::string_view table, const std::string& port, const Cells& cells, const Reason& reason);

  // The name of an entry of `table` with this content: that which `current` names if it says the same, else one that
  // begins with `base`, made or changed as needed. `others_use(name)`: whether it must stay as it is.
  std::string Named(std::string_view table, const std::string& base, const std::string& current,
                    const Json& content, const Reason& reason,
                    const std::function<bool(const std::string&)>& others_use);
  // A port of this patch uses the entry as it is: Named() changes it for no other.
  void Keep(std::string_view table, const std::string& name);

  // What has changed, as operations: what is referred to first.
  std::vector<PatchLine> Lines() const;

 private:
  // New ranges for one key of a table, of which `port` has cells to change.
  void EditKey(std::string_view table, const std::string& port, const std::string& key, const RangeKey& range,
               const Cells& cells, const Reason& reason);
  void Because(std::string_view table, std::string_view key, const Reason& reason);
  void Diff(const std::string& table, std::vector<PatchLine>& lines) const;
  void DiffEntry(const std::string& table, const std::string& key, const Json& before, const Json& after,
                 std::vector<PatchLine>& lines) const;
  PatchLine Line(std::string op, const std::vector<std::string>& way, const Json* before, const Json* after,
                 const Reason& reason) const;
  Reason ReasonOf(const std::string& table, const std::string& key, const std::string& field) const;

  const Json& live_;
  Json work_;
  std::map<std::string, Reason> reasons_;  // by "TABLE|KEY" and "TABLE|KEY field"
  std::set<std::string> taken_;            // "TABLE|NAME" that this patch has given out or left to a port
};

}  // namespace heddle::formats::sonic
