// What switches answer over gNMI, and how paths are written.
#include <string>

#include "base/check.h"
#include "gnmi/gnmi.pb.h"
#include "gnmi/path.h"
#include "gnmi/value.h"
#include "gnmi/wire.h"
#include "tests/fuzz/targets.h"

namespace heddle::fuzz {

using namespace gnmi;  // NOLINT(google-build-using-namespace): this file is about nothing else

namespace {

// It can be sent, and its text is that of no other.
void CheckWhole(const Path& path) {
  CHECK(CheckPath(path));
  const auto again = ParsePath(FormatPath(path));
  CHECK(again && *again == path);
}

// It can be printed, which is not so of a text that is no UTF-8. Whether there is one.
bool CheckValue(const base::Result<std::string>& json) {
  if (!Read(json)) return false;
  const auto tree = TreeOf(*json);
  if (!Read(tree)) return false;
  CHECK(!tree->dump().empty());
  return true;
}

}  // namespace

bool GnmiPath(std::string_view bytes) {
  const auto path = ParsePath(bytes);
  if (!Read(path)) return false;
  CheckWhole(*path);
  return !path->elems.empty();
}

bool GnmiAnswer(std::string_view bytes) {
  ::gnmi::GetResponse answer;
  if (!answer.ParseFromArray(bytes.data(), int(bytes.size()))) return false;
  const AnswerLimits limits{.updates = 64, .values = 1024};
  const auto notices = NoticesOf(answer, "TARGET", limits);
  if (!Read(notices)) return false;
  std::size_t count = 0;
  bool told = false;
  for (const Notice& notice : *notices) {
    count += notice.updates.size() + notice.deletes.size();
    for (const Path& path : notice.deletes) CheckWhole(path);
    for (const Update& update : notice.updates) {
      CheckWhole(update.path);
      CHECK(!update.path.target.empty());
      told = CheckValue(update.json) || told;
    }
  }
  CHECK(count <= limits.updates);
  return told;
}

bool GnmiJson(std::string_view bytes) {
  ::gnmi::TypedValue value;
  value.set_json_ietf_val(std::string(bytes));
  ValueBudget budget{1024};
  const bool told = CheckValue(JsonOf(value, budget));
  CHECK(budget.values <= 1024);
  return told;
}

}  // namespace heddle::fuzz
