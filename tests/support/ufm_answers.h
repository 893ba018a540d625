#pragma once

#include <fmt/format.h>

#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/http.h"
#include "kube/object.h"

namespace heddle::test {

// What a UFM would answer of a small InfiniBand fabric, in the shapes that switches/ufm.h names: one cannot run here, it
// needs a subnet manager's license and a fabric of its own.
struct UfmFabric {
  struct Port {
    std::string guid;
    int number = 1;
    std::string system;
    std::string peer, peer_system, peer_description;
    std::map<std::string, std::uint64_t> counters;
  };
  std::vector<Port> ports;
  std::string taken = "2026-11-25 16:00:00";

  Port& At(const std::string& guid, int number) {
    for (Port& port : ports) {
      if (port.guid == guid && port.number == number) return port;
    }
    return ports.emplace_back(Port{.guid = guid, .number = number});
  }
  // A cable between two switches, told at both ends.
  void Cable(const std::string& guid, int number, const std::string& other, int other_number) {
    At(guid, number).peer = fmt::format("{}_{}", other, other_number);
    At(other, other_number).peer = fmt::format("{}_{}", guid, number);
  }

  kube::Json PortsJson() const {
    kube::Json list = kube::Json::array();
    for (const Port& port : ports) {
      list.push_back({{"name", fmt::format("{}_{}", port.guid, port.number)},
                      {"number", port.number},
                      {"description", "Switch IB Port"},
                      {"system_name", port.system},
                      {"peer", port.peer.empty() ? "N/A" : port.peer},
                      {"peer_node_name", port.peer_system},
                      {"peer_node_description", port.peer_description},
                      {"logical_state", "Active"}});
    }
    return {{"total_resources", ports.size()}, {"filtered_resources", ports.size()}, {"data", list}};
  }
  kube::Json CountersJson() const {
    kube::Json all = kube::Json::object();
    kube::Json& of_ports = all[taken]["Port"] = kube::Json::object();
    for (const Port& port : ports) {
      kube::Json statistics = kube::Json::object();
      for (const auto& [name, count] : port.counters) statistics["Infiniband_" + name] = count;
      of_ports[fmt::format("{}_{}", port.guid, port.number)] = {{"statistics", statistics}};
    }
    return all;
  }
};

// The same without a socket. What it does is read at each call, so the fabric may change meanwhile.
class FakeUfm final : public kube::HttpTransport {
 public:
  struct Doing {
    UfmFabric fabric;
    int status = 200;
    std::optional<base::Error> broken;         // of the connection
    std::optional<std::string> counters_body;  // in place of what it counts
    int port_questions = 0, counter_questions = 0, connections = 0;
  };
  explicit FakeUfm(Doing& doing) : doing_(doing) { ++doing_.connections; }

  base::Result<kube::HttpResponse> Do(const kube::HttpRequest& request, std::stop_token) override {
    const bool ports = request.target.find("/resources/ports") != std::string::npos;
    ++(ports ? doing_.port_questions : doing_.counter_questions);
    if (doing_.broken) return base::Fail(*doing_.broken);
    if (doing_.status != 200) return kube::HttpResponse{doing_.status, {}, ""};
    if (ports) return kube::HttpResponse{200, {}, doing_.fabric.PortsJson().dump()};
    return kube::HttpResponse{200, {}, doing_.counters_body.value_or(doing_.fabric.CountersJson().dump())};
  }
  base::Result<kube::HttpResponse> Stream(const kube::HttpRequest& request, const kube::ChunkReader&,
                                          std::stop_token stop) override {
    return Do(request, std::move(stop));
  }

 private:
  Doing& doing_;
};

}  // namespace heddle::test
