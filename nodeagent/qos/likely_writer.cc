#include "nodeagent/qos/likely_writer.h"

#include <algorithm>
#include <string_view>

namespace heddle::nodeagent {
namespace {

using lossless::Setting;

// What DCBX carries (IEEE 802.1Qaz: ETS, PFC, APP), and the mode itself.
bool IsOfDcbx(Setting setting) {
  switch (setting) {
    case Setting::kDcbx:
    case Setting::kTrust:
    case Setting::kDscpToPriority:
    case Setting::kPfc:
    case Setting::kPriorityToClass:
    case Setting::kClassAlgorithm:
    case Setting::kClassPercent:
      return true;
    default:
      return false;
  }
}

bool LldpadRuns(const base::FileTree& files) {
  // lldpad, include/clif.h: the abstract name of its control socket.
  const auto sockets = files.Read("proc/net/unix");
  if (sockets && sockets->find("@/com/intel/lldpad") != std::string::npos) return true;
  // In another network namespace its socket is not seen; in another PID namespace its process is not.
  const auto processes = files.List("proc");
  if (!processes) return false;
  return std::any_of(processes->begin(), processes->end(), [&files](const std::string& entry) {
    if (entry.find_first_not_of("0123456789") != std::string::npos) return false;
    return base::ReadTrimmed(files, "proc/" + entry + "/comm").value_or("") == "lldpad";
  });
}

}  // namespace

std::string LikelyWriterOf(const base::FileTree& files, const std::optional<DcbState>& state,
                           Setting setting) {
  if (!IsOfDcbx(setting)) return "manual";
  const bool firmware =
      state && state->dcbx &&
      ((*state->dcbx & DCB_CAP_DCBX_LLD_MANAGED) != 0 || (*state->dcbx & DCB_CAP_DCBX_HOST) == 0);
  if (firmware) return "firmware DCBX";
  return LldpadRuns(files) ? "lldpad" : "manual";
}

}  // namespace heddle::nodeagent
