#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "crds/fabric.h"
#include "crds/node_topology.h"
#include "kube/client.h"
#include "kube/events.h"
#include "operator/resources.h"
#include "operator/view.h"
#include "tests/support/fake_api_server.h"
#include "tests/support/fake_clock.h"
#include "topology/synthetic.h"

namespace heddle::operators {

using kube::Json;

// Reads the server itself, or the past of it while frozen.
class ServerView final : public View {
 public:
  ServerView(const test::FakeApiServer& server, kube::Resource resource)
      : server_(server), resource_(std::move(resource)) {}

  void Freeze() { frozen_ = List(); }
  void Thaw() { frozen_.reset(); }

  kube::ObjectPtr Get(const kube::ObjectKey& key) const override {
    for (const kube::ObjectPtr& object : List()) {
      if (kube::KeyOf(*object) == key) return object;
    }
    return nullptr;
  }
  kube::SortedObjects List() const override {
    if (frozen_) return *frozen_;
    std::vector<kube::ObjectPtr> objects;
    for (Json& object : server_.All(resource_)) {
      kube::ObjectPtr& known = known_[kube::Name(object)];
      if (known == nullptr || *known != object) known = std::make_shared<const Json>(std::move(object));
      objects.push_back(known);
    }
    return objects;
  }

 private:
  const test::FakeApiServer& server_;
  kube::Resource resource_;
  std::optional<kube::SortedObjects> frozen_;
  mutable std::map<std::string, kube::ObjectPtr> known_;
};

// A cluster on a fake API server, and what people and agents do to it.
class Stage : public testing::Test {
 protected:
  Stage() {
    server.Serve(kNodeTopologies);
    server.Serve(kFabrics);
    server.Serve(kLosslessPolicies);
    server.Serve(kRdmaDevicePolicies);
    server.Serve(kFabricSwitches);
    server.Serve(kGangs);
  }

  Json AddNode(const std::string& name, Json labels = Json::object()) {
    Json node = kube::NewObject(kube::kNodes, {"", name});
    node["metadata"]["labels"] = std::move(labels);
    return server.Put(kube::kNodes, node);
  }

  // As an agent does: a status under an object that its Node owns.
  void Report(const topology::Node& node) {
    crds::NodeTopology object;
    object.name = node.name;
    if (const auto owner = server.Find(kube::kNodes, {"", node.name})) {
      object.owners = {{.api_version = "v1", .kind = "Node", .name = node.name, .uid = kube::Uid(*owner)}};
    }
    object.status.node = node;
    object.status.hash = topology::ContentHash(node);
    object.status.observed_at = std::chrono::floor<std::chrono::seconds>(clock.WallNow());
    server.Put(kNodeTopologies, crds::ToJson(object));
  }

  void AddPolicy(const kube::Resource& kind, const std::string& name, Json spec, int generation = 1) {
    Json policy = kube::NewObject(kind, {"", name});
    policy["metadata"]["generation"] = generation;
    policy["spec"] = std::move(spec);
    server.Put(kind, policy);
  }
  crds::NodeTopology NodeOf(const std::string& name) const {
    return *crds::NodeTopologyFromJson(*server.Find(kNodeTopologies, {"", name}));
  }

  std::vector<topology::Node> ReportCluster(const std::string& line) {
    const auto synthetic = topology::ParseSynthetic(line);
    EXPECT_TRUE(synthetic) << line;
    if (!synthetic) return {};
    for (const topology::Node& node : synthetic->nodes) {
      if (!server.Find(kube::kNodes, {"", node.name})) AddNode(node.name);
      Report(node);
    }
    return synthetic->nodes;
  }

  std::vector<std::string> WriteLines() const {
    std::vector<std::string> lines;
    for (const test::ApiRequest& request : server.writes()) lines.push_back(request.Line());
    return lines;
  }

  crds::Fabric FabricNamed(const std::string& name) const {
    const auto object = server.Find(kFabrics, {"", name});
    EXPECT_TRUE(object) << name;
    if (!object) return {};
    auto fabric = crds::FabricFromJson(*object);
    EXPECT_TRUE(fabric);
    return fabric ? *fabric : crds::Fabric{};
  }

  test::FakeClock clock;
  test::FakeApiServer server{clock};
  kube::Client client{server, clock, {.field_manager = "heddle-operator"}};
  ServerView nodes{server, kube::kNodes};
  ServerView topologies{server, kNodeTopologies};
  ServerView fabrics{server, kFabrics};
  std::stop_token never;
};

}  // namespace heddle::operators
