// Every value comes back as it went, and no JSON whatsoever does more than being refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/seeds.h"
#include "tests/unit/crds/samples.h"

namespace heddle::crds {
namespace {

using testing::HasSubstr;
using testing::Not;

base::Result<NodeTopology> Read(const Json& json, const NodeTopology&) {
  return NodeTopologyFromJson(json);
}
base::Result<Fabric> Read(const Json& json, const Fabric&) {
  return FabricFromJson(json);
}
base::Result<Gang> Read(const Json& json, const Gang&) {
  return GangFromJson(json);
}

base::Result<LosslessPolicy> Read(const Json& json, const LosslessPolicy&) {
  return LosslessPolicyFromJson(json);
}
base::Result<RdmaDevicePolicy> Read(const Json& json, const RdmaDevicePolicy&) {
  return RdmaDevicePolicyFromJson(json);
}
base::Result<FabricSwitch> Read(const Json& json, const FabricSwitch&) {
  return FabricSwitchFromJson(json);
}

// Through text, as it goes over the wire.
template <class T>
void ExpectRoundTrip(const T& object) {
  const Json json = ToJson(object);
  const auto back = Read(Json::parse(json.dump()), object);
  ASSERT_TRUE(back) << ToString(back.error()) << "\n" << json.dump(1);
  EXPECT_TRUE(*back == object) << json.dump(1) << "\ncame back as\n" << ToJson(*back).dump(1);
}

TEST(Codec, FullSamplesComeBack) {
  for (const auto& object : samples::FullNodeTopologies()) ExpectRoundTrip(object);
  for (const auto& object : samples::FullFabrics()) ExpectRoundTrip(object);
  for (const auto& object : samples::FullGangs()) ExpectRoundTrip(object);
  for (const auto& object : samples::FullLosslessPolicies()) ExpectRoundTrip(object);
  for (const auto& object : samples::FullRdmaDevicePolicies()) ExpectRoundTrip(object);
  for (const auto& object : samples::FullFabricSwitches()) ExpectRoundTrip(object);
  ExpectRoundTrip(samples::DgxH100());
  ExpectRoundTrip(samples::LargeGang(1000, 40));
}

TEST(Codec, APackedNodeTopologyIsTheSameAndHasLessToKeep) {
  for (const auto& object : samples::FullNodeTopologies()) {
    const Json json = ToJson(object), packed = Packed(json);
    EXPECT_TRUE(packed["status"].is_binary());
    EXPECT_EQ(packed["metadata"], json["metadata"]);
    const auto read = NodeTopologyFromJson(packed);
    ASSERT_TRUE(read);
    EXPECT_EQ(*read, *NodeTopologyFromJson(json));
  }
  Json broken = ToJson(samples::FullNodeTopologies()[0]);
  for (const char* status : {"null", "7", "[]", "\"x\""}) {
    broken["status"] = Json::parse(status);
    EXPECT_EQ(Packed(broken), broken);
  }
  EXPECT_EQ(Packed(Json(7)), Json(7));
  broken["status"] = Json::binary({0xff, 0x00});
  EXPECT_FALSE(NodeTopologyFromJson(broken));
}

TEST(Codec, RandomValuesComeBack) {
  for (const std::uint64_t seed : test::Seeds(500)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    ExpectRoundTrip(samples::RandomNodeTopology(random));
    ExpectRoundTrip(samples::RandomFabric(random));
    ExpectRoundTrip(samples::RandomGang(random));
    ExpectRoundTrip(samples::RandomLosslessPolicy(random));
    ExpectRoundTrip(samples::RandomRdmaDevicePolicy(random));
    ExpectRoundTrip(samples::RandomFabricSwitch(random));
    if (HasFailure()) return;
  }
}

TEST(Codec, AnObjectWithoutStatusReadsAsUnknown) {
  const auto node = NodeTopologyFromJson(Json::parse(R"({"metadata": {"name": "a"}})"));
  ASSERT_TRUE(node);
  EXPECT_EQ(node->status.node.name, "a");
  EXPECT_FALSE(node->status.observed_at);
  EXPECT_EQ(node->status.node.nvlink_domain.missing(), topology::Missing::kUnknown);
  EXPECT_TRUE(FabricFromJson(Json::parse(R"({"metadata": {"name": "a"}, "spec": {}, "status": null})")));
}

TEST(Codec, MissingIsNeverZero) {
  const Json json = ToJson(samples::FullNodeTopologies()[0]);
  const Json& nic = json["status"]["nics"][2];
  EXPECT_EQ(nic["railMissing"], "Ambiguous");
  EXPECT_FALSE(nic.contains("rail"));
  EXPECT_EQ(nic["ports"][0]["leafMissing"], "Stale");
  EXPECT_FALSE(nic["ports"][0].contains("leaf"));
}

TEST(Codec, ARateThatNobodyKnowsIsAbsentAndThatOfALinkThatIsDownIsZero) {
  NodeTopology object = samples::DgxH100();
  auto& port = object.status.node.nics[0].ports[0];
  const auto written = [&object] { return ToJson(object)["status"]["nics"][0]["ports"][0]; };
  port.rate_gbps = port.usable_gbps = 0;
  EXPECT_FALSE(written().contains("rateGbps") || written().contains("usableGbps")) << written().dump();
  port.usable_gbps = 400;
  EXPECT_FALSE(written().contains("rateGbps"));
  EXPECT_EQ(written()["usableGbps"], 400);
  ExpectRoundTrip(object);
  port.state = topology::LinkState::kDown;
  port.usable_gbps = 0;
  EXPECT_EQ(written()["rateGbps"], 0);
  EXPECT_EQ(written()["usableGbps"], 0);
  port.state = topology::LinkState::kActive;
  port.rate_gbps = 400;
  EXPECT_EQ(written()["usableGbps"], 0) << "a fault takes it all";
}

TEST(Codec, UnsortedJsonIsSortedAndUnknownFieldsAreLeftAlone) {
  const auto object = NodeTopologyFromJson(Json::parse(R"({
    "apiVersion": "heddle.dev/v1alpha1", "kind": "NodeTopology",
    "metadata": {"name": "a", "labels": {"x": "y"}, "managedFields": [{"manager": "kubectl"}]},
    "status": {"gpus": [{"index": 1, "health": "Healthy"}, {"index": 0, "health": "Healthy"}], "fromTheFuture": 1}})"));
  ASSERT_TRUE(object) << ToString(object.error());
  EXPECT_EQ(object->status.node.gpus[0].index, 0);
}

TEST(Codec, StatusApplyCarriesUidAndNoVersion) {
  const Json json = StatusApplyJson(samples::DgxH100());
  EXPECT_EQ(json["metadata"].size(), 2U);
  EXPECT_TRUE(json["metadata"].contains("uid"));
  EXPECT_FALSE(json.contains("spec"));
  EXPECT_TRUE(SpecApplyJson(samples::DgxH100())["metadata"].contains("ownerReferences"));
  EXPECT_FALSE(SpecApplyJson(samples::FullGangs()[0]).contains("status"));
  EXPECT_EQ(SpecApplyJson(samples::FullGangs()[0])["metadata"]["namespace"], "training");
  EXPECT_FALSE(StatusApplyJson(samples::FullFabrics()[0]).contains("spec"));
}

TEST(Codec, StrangeBytesAndLongTextsFromMachinesArePublishable) {
  NodeTopology object = samples::DgxH100();
  object.status.node.nics[0].ports[0].leaf_port = topology::LeafPort{"leaf\xff\xc3(\xed\xa0\x80", "1"};
  object.status.node.gpus[0].healthy = false;
  object.status.node.gpus[0].unhealthy_reason = std::string(500, 'x') + "\xe2\x80";
  const Json json = ToJson(object);
  EXPECT_NO_THROW((void)json.dump());
  const auto back = NodeTopologyFromJson(json);
  ASSERT_TRUE(back) << ToString(back.error());
  EXPECT_EQ(back->status.node.nics[0].ports[0].leaf_port->leaf, "leaf��(���");
  EXPECT_THAT(back->status.node.gpus[0].unhealthy_reason, testing::EndsWith("x…"));
  EXPECT_EQ(back->status.node.gpus[0].unhealthy_reason.size(), 255 + std::string_view("…").size());
}

TEST(Codec, ARefusalNamesTheFieldAndSaysWhatFits) {
  Json json = ToJson(samples::DgxH100());
  json["status"]["nics"][3]["ports"][0]["state"] = "Up";
  EXPECT_EQ(NodeTopologyFromJson(json).error().message,
            "NodeTopology dgx-h100-su03-node-0017.cluster.example.com: status.nics[3].ports[0].state: \"Up\" "
            "is not one "
            "of Active, Down, Unknown");
  json = ToJson(samples::DgxH100());
  json["status"]["gpus"][7]["index"] = 3.5;
  EXPECT_THAT(NodeTopologyFromJson(json).error().message,
              HasSubstr("status.gpus[7].index: must be an integer, not a fraction"));
  json["status"]["gpus"][7]["index"] = 18446744073709551615U;
  EXPECT_THAT(NodeTopologyFromJson(json).error().message,
              HasSubstr("is 18446744073709551615, must be 0 to 31"));
  json = ToJson(samples::DgxH100());
  json["status"]["nics"][0]["railMissing"] = "Stale";
  EXPECT_THAT(NodeTopologyFromJson(json).error().message,
              HasSubstr("status.nics[0].railMissing: stands beside rail: remove one"));
  json = ToJson(samples::DgxH100());
  json["kind"] = "Pod";
  EXPECT_THAT(NodeTopologyFromJson(json).error().message, HasSubstr("kind: must be NodeTopology"));
  EXPECT_FALSE(NodeTopologyFromJson(Json::array()));
  EXPECT_FALSE(FabricFromJson("text"));
  EXPECT_FALSE(GangFromJson(nullptr));
}

// An older agent says none.
TEST(Codec, TheChassisIdOfALeafIsThereWhereItIsKnownAndBounded) {
  NodeTopology object = samples::DgxH100();
  const topology::LeafPort leaf = *object.status.node.nics[0].ports[0].leaf_port;
  Json json = ToJson(object);
  EXPECT_FALSE(json["status"]["nics"][0]["ports"][0].contains("leafChassisId"));
  EXPECT_EQ(NodeTopologyFromJson(json)->status.node.nics[0].ports[0].leaf_port->chassis_id, "");
  object.status.node.nics[0].ports[0].leaf_port =
      topology::LeafPort{leaf.leaf, leaf.port, "04:3f:72:aa:bb:cc"};
  json = ToJson(object);
  EXPECT_EQ(json["status"]["nics"][0]["ports"][0]["leafChassisId"], "04:3f:72:aa:bb:cc");
  EXPECT_EQ(NodeTopologyFromJson(json)->status.node, object.status.node);
  json["status"]["nics"][0]["ports"][0]["leafChassisId"] = std::string(256, 'x');
  EXPECT_THAT(NodeTopologyFromJson(json).error().message, HasSubstr("status.nics[0].ports[0].leafChassisId"));
  object.status.node.nics[0].ports[0].leaf_port =
      topology::LeafPort{leaf.leaf, leaf.port, std::string(1000, 'x')};
  EXPECT_TRUE(NodeTopologyFromJson(ToJson(object)));
}

TEST(Codec, CongestionIsBoundedAndNoPartOfTheMachine) {
  NodeTopology object = samples::DgxH100();
  object.status.congestion = {{"mlx5_3", 1, samples::At(1'800'000'100), "70000 CNPs handled in 1 min"},
                              {"mlx5_0", 2, samples::At(1'800'000'160), std::string(10'000, 'x')}};
  const auto read = NodeTopologyFromJson(ToJson(object));
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->status.congestion.size(), 2u);
  EXPECT_EQ(read->status.congestion[0].nic, "mlx5_0") << "sorted";
  EXPECT_EQ(read->status.congestion[0].evidence, std::string(511, 'x') + "…");
  EXPECT_EQ(read->status.congestion[1], object.status.congestion[0]);
  EXPECT_EQ(topology::ContentHash(read->status.node), topology::ContentHash(samples::DgxH100().status.node));

  object.status.congestion.assign(10'000, object.status.congestion[0]);
  Json json = ToJson(object);
  EXPECT_EQ(json["status"]["congestion"].size(), kMaxCongestedPorts);
  const Json entry = json["status"]["congestion"][0];
  json["status"]["congestion"] = Json::array();
  for (int i = 0; i < 10'000; ++i) json["status"]["congestion"].push_back(entry);
  EXPECT_THAT(NodeTopologyFromJson(json).error().message, HasSubstr("status.congestion"));
  json["status"]["congestion"] = Json::array({entry});
  json["status"]["congestion"][0]["port"] = 256;
  EXPECT_THAT(NodeTopologyFromJson(json).error().message,
              HasSubstr("status.congestion[0].port: is 256, must be 0 to 255"));
  for (const char* key : {"nic", "port", "since", "evidence"}) {
    json["status"]["congestion"] = Json::array({entry});
    json["status"]["congestion"][0].erase(key);
    EXPECT_FALSE(NodeTopologyFromJson(json)) << key;
    json["status"]["congestion"][0][key] = Json::object();
    EXPECT_FALSE(NodeTopologyFromJson(json)) << key;
  }
}

TEST(Codec, APlacementThatPointsOutsideItsTablesIsRefused) {
  const Json good = ToJson(samples::FullGangs()[0]);
  const auto refusal = [&](std::string_view column, Json value) {
    Json json = good;
    json["status"]["placement"][std::string(column)] = std::move(value);
    const auto read = GangFromJson(json);
    return read ? std::string("accepted") : read.error().message;
  };
  EXPECT_THAT(refusal("nodes", {0, 0, 1, 3}),
              HasSubstr("status.placement.nodes: entry 3 is 3, and its table has 3"));
  EXPECT_THAT(refusal("nodes", {0, 0, 1, -1}), HasSubstr("status.placement.nodes[3]"));
  EXPECT_THAT(refusal("nodes", {0, 0, 1}), HasSubstr("has 3 entries for 4 pods"));
  EXPECT_THAT(refusal("gpus", {1}), HasSubstr("has 1 entries for 4 pods"));
  EXPECT_THAT(refusal("gpus", {1, 2, 3, 4294967296}), HasSubstr("status.placement.gpus[3]"));
  EXPECT_THAT(refusal("substitutes", {0, 0, -2, 0}), HasSubstr("status.placement.substitutes[2]"));
  EXPECT_THAT(refusal("substitutes", {0, 0, -1, 1}), HasSubstr("entry 3 is 1, and its table has 1"));
  EXPECT_THAT(refusal("substituteSets", Json::array({{7}})), HasSubstr("status.placement.substituteSets[0]"));
}

TEST(Codec, RanksWithoutAPodStandOnceEachInOrderAndAreOfTheGang) {
  const Gang gang = samples::FullGangs()[0];  // four pods
  const Json good = ToJson(gang);
  const auto refusal = [&](Json missing) {
    Json json = good;
    json["status"]["missing"] = std::move(missing);
    const auto read = GangFromJson(json);
    return read ? std::string("accepted") : read.error().message;
  };
  const Json one = good["status"]["missing"][0];
  EXPECT_EQ(one, (Json{{"rank", 1}, {"since", "2027-01-15T08:08:20Z"}}));
  EXPECT_THAT(refusal(Json::array({one, one})), HasSubstr("status.missing: rank 1 stands twice"));
  Json other = one;
  other["rank"] = 4;
  EXPECT_THAT(refusal(Json::array({one, other})), HasSubstr("status.missing[1].rank: is 4, must be 0 to 3"));
  other["rank"] = -1;
  EXPECT_THAT(refusal(Json::array({other})), HasSubstr("status.missing[0].rank"));
  for (const char* key : {"rank", "since"}) {
    other = one;
    other.erase(key);
    EXPECT_THAT(refusal(Json::array({other})), HasSubstr(std::string("status.missing[0].") + key));
    other[key] = "soon";
    EXPECT_THAT(refusal(Json::array({other})), HasSubstr(std::string("status.missing[0].") + key));
  }
  EXPECT_THAT(refusal(one), HasSubstr("status.missing"));
  EXPECT_THAT(refusal(Json(std::vector<Json>(kMaxMissing + 1, one))), HasSubstr("status.missing"));

  Json turned = good;
  std::reverse(turned["status"]["missing"].begin(), turned["status"]["missing"].end());
  const auto read = GangFromJson(turned);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->status.missing, gang.status.missing) << "sorted";
  Json none = good;
  none["status"].erase("missing");
  EXPECT_TRUE(GangFromJson(none)->status.missing.empty()) << "an earlier version writes none";
}

Json Junk(base::Random& random, int depth = 0) {
  switch (random.Below(depth > 3 ? 10 : 13)) {
    case 0:
      return nullptr;
    case 1:
      return true;
    case 2:
      return -1;
    case 3:
      return 0;
    case 4:
      return 18446744073709551615U;
    case 5:
      return -9223372036854775807;
    case 6:
      return 1e308;
    case 7:
      return "";
    case 8:
      return std::string(1 + random.Below(5000), 'x');
    case 9:
      return std::string("\0nul\xff", 6);
    case 10:
      return Json(std::vector<int>(random.Below(3000), 1));
    case 11:
      return Json::object({{"index", Junk(random, depth + 1)}, {"name", Junk(random, depth + 1)}});
    default:
      return Json::array({Junk(random, depth + 1), Junk(random, depth + 1)});
  }
}

// Some value deep inside.
Json& Anywhere(Json& json, base::Random& random) {
  Json* at = &json;
  while (at->is_structured() && !at->empty() && random.Below(8) != 0) {
    at = &*std::next(at->begin(), std::ptrdiff_t(random.Below(at->size())));
  }
  return *at;
}

template <class T>
void ExpectTotal(const T& sample, base::Random& random) {
  Json json = ToJson(sample);
  for (std::uint64_t i = random.Below(3); i < 3; ++i) {
    Json junk = Junk(random);
    Anywhere(json, random) = std::move(junk);
  }
  const auto read = Read(json, sample);
  if (!read) {
    EXPECT_EQ(read.error().code, base::Code::kInvalid);
    EXPECT_THAT(read.error().message, Not(HasSubstr("json.exception")));
    return;
  }
  // What was accepted can be written and means the same afterwards.
  const Json again = ToJson(*read);
  EXPECT_NO_THROW((void)again.dump());
  EXPECT_TRUE(Read(again, sample));
}

TEST(Codec, HostileJsonIsRefusedOrReadAndNeverMore) {
  const auto node = samples::FullNodeTopologies()[0];
  const auto fabric = samples::FullFabrics()[0];
  const auto gang = samples::FullGangs()[0];
  const auto lossless = samples::FullLosslessPolicies()[0];
  const auto devices = samples::FullRdmaDevicePolicies()[0];
  for (const std::uint64_t seed : test::Seeds(4000)) {
    if (HasFailure()) return;
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    ExpectTotal(node, random);
    ExpectTotal(fabric, random);
    ExpectTotal(gang, random);
    ExpectTotal(lossless, random);
    ExpectTotal(devices, random);
  }
}

TEST(Codec, SizesHold) {
  // managedFields of the agent's and the operator's applies measured on a real API server: under 3 KiB. The
  // test against the API server repeats this with the real ones.
  EXPECT_LE(ToJson(samples::DgxH100()).dump().size(), 13U * 1024);
  // etcd takes 1.5 MiB. 63 characters are the longest name that can also be a hostname label.
  Gang large = samples::LargeGang(16384, 63);
  large.status.missing.clear();
  for (int i = 0; i < int(kMaxMissing); ++i)
    large.status.missing.push_back({15'000 + i, *large.status.planned_at});
  EXPECT_LE(ToJson(large).dump().size(), 1536U * 1024 - 8192);
  ExpectRoundTrip(large);
}

}  // namespace
}  // namespace heddle::crds
