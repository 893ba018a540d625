#include "switches/neighbours.h"

#include <utility>

#include "base/lower_case.h"
#include "formats/printable.h"
#include "switches/port_counters.h"

namespace heddle::switches {
namespace {

using crds::Json;

constexpr std::size_t kMaxWord = 255;  // IEEE 802.1AB: of each of them
constexpr std::size_t kMaxPort = 64;

std::string WordAt(const Json& row, const char* field) {
  const auto found = row.find(field);
  const bool text = found != row.end() && found->is_string();
  return text ? formats::Printable(found->get<std::string>(), kMaxWord) : "";
}

std::string WithoutDomain(const std::string& name) {
  const bool address = name.find_first_not_of("0123456789.") == std::string::npos;
  return address ? name : name.substr(0, name.find('.'));
}

}  // namespace

Neighbours ReadNeighbours(const Json& table) {
  Neighbours neighbours;
  if (!table.is_object()) return neighbours;
  for (const auto& [port, row] : table.items()) {
    if (!row.is_object() || port.empty() || port.size() > kMaxPort) continue;
    if (neighbours.size() >= kMaxCountedPorts) break;
    Neighbour one{WordAt(row, "lldp_rem_sys_name"), WordAt(row, "lldp_rem_chassis_id"),
                  WordAt(row, "lldp_rem_port_id"), WordAt(row, "lldp_rem_port_desc")};
    if (one != Neighbour{}) neighbours.emplace(port, std::move(one));
  }
  return neighbours;
}

bool IsCalled(std::string_view system, std::string_view name) {
  return !system.empty() && !name.empty() &&
         base::LowerCase(WithoutDomain(std::string(system))) ==
             base::LowerCase(WithoutDomain(std::string(name)));
}

void ByName::Add(const std::string& name, int number) {
  if (name.empty()) return;
  Put(base::LowerCase(name), number);
  Put(base::LowerCase(WithoutDomain(name)), number);
}

void ByName::AddChassis(const std::string& chassis_id, int number) {
  if (!chassis_id.empty()) Put(base::LowerCase(chassis_id), number);
}

void ByName::Put(std::string key, int number) {
  const auto [found, fresh] = numbers_.emplace(std::move(key), number);
  if (!fresh && found->second != number) found->second = kSeveral;
}

int ByName::Find(const std::string& system) const {
  if (system.empty() || numbers_.empty()) return kNobody;
  // Its own name before the one without a domain, which two may share.
  const std::string name = base::LowerCase(system);
  const auto whole = numbers_.find(name);
  if (whole != numbers_.end()) return whole->second;
  const std::string host = WithoutDomain(name);
  const auto found = host.size() == name.size() ? numbers_.end() : numbers_.find(host);
  return found == numbers_.end() ? kNobody : found->second;
}

}  // namespace heddle::switches
