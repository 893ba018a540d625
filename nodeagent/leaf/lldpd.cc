#include "nodeagent/leaf/lldpd.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::nodeagent {
namespace {

bool HasRoce(const RdmaReadings& rdma) {
  return std::any_of(rdma.devices.begin(), rdma.devices.end(),
                     [](const RdmaDevice& device) { return device.transport == topology::Transport::kRoce; });
}

// lldpcli is not there, or fails because lldpd is not.
bool IsAbsent(base::Code code) {
  return code == base::Code::kNotFound || code == base::Code::kForbidden || code == base::Code::kInternal;
}

// lldpcli writes "2026-11-21T23:35:55 [WARN/control] " before a complaint. What is the same problem at each look
// has to read the same.
std::string WithoutTime(const std::string& complaint) {
  const std::size_t level = complaint.find(" [");
  const std::size_t end = complaint.find("] ", level);
  constexpr std::size_t kTime = 19;
  if (level == std::string::npos || end == std::string::npos || level < kTime) return complaint;
  return complaint.substr(0, level - kTime) + complaint.substr(end + 2);
}

}  // namespace

CommandOptions AskLldpd(const std::string& socket) {
  CommandOptions options;
  options.arguments = {"lldpcli", "-f", "json0", "show", "neighbors"};
  if (!socket.empty()) options.arguments.insert(options.arguments.begin() + 1, {"-u", socket});
  return options;
}

LeafReadings LldpdLeaves::Read(const RdmaReadings& rdma) {
  auto text = lldpcli_.Run();
  if (text) {
    LeafReadings readings = LeavesOfLldp(*text, "lldpd");
    if (!readings.lldp_unanswered) readings.files["lldp.json"] = *std::move(text);
    return readings;
  }
  LeafReadings readings;
  readings.lldp_unanswered = true;
  if (!IsAbsent(text.error().code) || HasRoce(rdma)) {
    readings.problems.push_back(
        fmt::format("lldpd does not say where Ethernet cables end: {}", WithoutTime(text.error().message)));
    readings.files[kLldpUnanswered] = readings.problems.back() + "\n";
  }
  return readings;
}

}  // namespace heddle::nodeagent
