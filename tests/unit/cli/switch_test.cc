#include <gmock/gmock.h>

#include <functional>

#include "cli/object_documents.h"
#include "cli/switch_compare.h"
#include "cli/switch_render.h"
#include "formats/sonic_patch.h"
#include "tests/unit/cli/from_disk.h"
#include "tests/unit/cli/golden.h"

namespace heddle::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kFixtures = std::string(HEDDLE_SOURCE_DIR) + "/tests/fixtures/lossless/";
const std::string kDefaults =
    std::string(HEDDLE_SOURCE_DIR) + "/tests/cluster/samples/good/lossless-defaults.yaml";
const std::string kLeaf = kFixtures + "sonic-default.json";
const std::string kNodes = kFixtures + "nodes.yaml";

// Files that stand nowhere, and those on disk.
ReadFile With(std::map<std::string, std::string> texts) {
  return [texts = std::move(texts)](const std::string& path) -> base::Result<std::string> {
    const auto found = texts.find(path);
    if (found != texts.end()) return found->second;
    return FromDisk(path);
  };
}

Output Render(const SwitchRenderOptions& options, Format format = Format::kText) {
  return SwitchRender(options, FromDisk, {.format = format});
}
Output Compare(const std::vector<std::string>& files, Format format = Format::kText, bool problems = false) {
  return SwitchCompare({.files = files, .problems = problems}, FromDisk, {.format = format});
}

// What SONiC makes itself of ports with PFC on 3 and 4 and a cable of 5 m, and what its template has for queues
// (sonic-swss, buffermgr.cpp; sonic-buildimage, buffers_config.j2).
Json WithBuffers(Json config) {
  config["BUFFER_POOL"] = Json::parse(R"({
    "ingress_lossless_pool": {"type": "ingress", "mode": "dynamic", "size": "30000000"},
    "egress_lossless_pool": {"type": "egress", "mode": "static", "size": "30000000"},
    "egress_lossy_pool": {"type": "egress", "mode": "dynamic", "size": "20000000"}})");
  config["BUFFER_PROFILE"] = Json::parse(R"({
    "ingress_lossy_profile": {"pool": "ingress_lossless_pool", "size": "0", "dynamic_th": "3"},
    "pg_lossless_400000_5m_profile": {"pool": "ingress_lossless_pool", "size": "118432", "xon": "18432",
                                      "xoff": "100000", "dynamic_th": "0"},
    "egress_lossless_profile": {"pool": "egress_lossless_pool", "size": "0", "static_th": "30000000"},
    "egress_lossy_profile": {"pool": "egress_lossy_pool", "size": "1518", "dynamic_th": "3"}})");
  for (const std::string port : {"Ethernet0", "Ethernet4"}) {
    config["BUFFER_PG"][port + "|0"]["profile"] = "ingress_lossy_profile";
    config["BUFFER_PG"][port + "|3-4"]["profile"] = "pg_lossless_400000_5m_profile";
    config["BUFFER_QUEUE"][port + "|0-2"]["profile"] = "egress_lossy_profile";
    config["BUFFER_QUEUE"][port + "|3-4"]["profile"] = "egress_lossless_profile";
    config["BUFFER_QUEUE"][port + "|5-7"]["profile"] = "egress_lossy_profile";
  }
  return config;
}

// The configuration of leaf-3 after what was rendered for it.
std::string Mended() {
  const Output output =
      Render({.policy = kDefaults, .config = kLeaf, .hosts_on = {kNodes}, .format = "patch"});
  const Json config = Json::parse(*FromDisk(kLeaf));
  return WithBuffers(config.patch(Json::parse(output.out))).dump();
}

TEST(SwitchRenderCommand, SaysWhatToChangeWithWhyAndSource) {
  const Output output = Render({.policy = kDefaults, .config = kLeaf, .ports = {"Ethernet0"}});
  EXPECT_EQ(output.exit_code, Output::kRefused);
  EXPECT_THAT(output.out, HasSubstr("PORT_QOS_MAP|Ethernet0 pfc_enable\n        was 3,4\n        is  3\n"));
  EXPECT_THAT(output.out, HasSubstr("DSCP_TO_TC_MAP|HEDDLE_"));
  EXPECT_THAT(output.out, HasSubstr("0-25,27-47,49-63: 0; 26: 3; 48: 6"));
  EXPECT_THAT(output.err,
              HasSubstr("Note: cableMetres is left as it is: nobody says how long hosts' cables are"));
  ExpectGolden("switch_render.txt", output.out);
  ExpectFits([](const Style& style) {
    return SwitchRender({.policy = kDefaults, .config = kLeaf, .ports = {"Ethernet0"}}, FromDisk,
                        {.style = style})
        .out;
  });
}

TEST(SwitchRenderCommand, GivesTheSameToScriptsAndAsAPatch) {
  const SwitchRenderOptions options{.policy = kDefaults, .config = kLeaf, .ports = {"Ethernet0,Ethernet4"}};
  const Json json = Json::parse(Render(options, Format::kJson).out);
  EXPECT_EQ(json["switch"], "leaf-3");
  EXPECT_EQ(json["ports"].size(), 2u);
  ASSERT_FALSE(json["patch"].empty());
  for (const Json& line : json["patch"]) {
    for (const char* key : {"op", "path", "where", "why", "source"})
      EXPECT_FALSE(line.at(key).empty()) << line.dump();
  }
  SwitchRenderOptions patch = options;
  patch.format = "patch";
  const Json operations = Json::parse(Render(patch).out);
  ASSERT_EQ(operations.size(), json["patch"].size());
  EXPECT_NO_THROW(Json::parse(*FromDisk(kLeaf)).patch(operations));
}

TEST(SwitchRenderCommand, TakesThePortsOfTheHostsAndHasNothingToSayTheSecondTime) {
  const Output output = Render({.policy = kDefaults, .config = kLeaf, .hosts_on = {kNodes}}, Format::kJson);
  const Json json = Json::parse(output.out);
  ASSERT_EQ(json["ports"].size(), 2u);
  EXPECT_EQ(json["ports"][0]["port"], "Ethernet0");
  EXPECT_EQ(json["ports"][1]["port"], "Ethernet4") << "which LLDP calls etp2";
  const Output again = SwitchRender({.policy = kDefaults, .config = "mended", .hosts_on = {kNodes}},
                                    With({{"mended", Mended()}}), {});
  EXPECT_EQ(again.exit_code, Output::kOk) << again.err << again.out;
  EXPECT_THAT(again.out, HasSubstr("leaf-3 is as LosslessPolicy"));
  EXPECT_THAT(again.out, HasSubstr("nothing to change"));
}

TEST(SwitchRenderCommand, WritesNvueWithoutAConfiguration) {
  const Output output = Render({.policy = kDefaults,
                                .ports = {"swp1,swp2"},
                                .fabric_ports = {"swp64"},
                                .profile = "spectrum/v1",
                                .format = "nvue",
                                .fabric_cable_metres = 40});
  EXPECT_EQ(output.exit_code, Output::kOk) << output.err;
  EXPECT_THAT(output.out, HasSubstr("nv set interface swp1,swp2 qos pfc profile"));
  EXPECT_THAT(output.out, HasSubstr("cable-length 40"));
}

TEST(SwitchRenderCommand, GivesCumulusLinuxItsOwnValuesAndNotThoseOfSonic) {
  const SwitchRenderOptions unnamed{.policy = kDefaults, .ports = {"swp1"}, .format = "nvue"};
  const Output output = Render(unnamed);
  EXPECT_EQ(output.exit_code, Output::kOk) << output.err;
  EXPECT_EQ(output.err, "") << "nobody named a chip, and headroom is left to the switch";
  EXPECT_THAT(output.out, HasSubstr("spectrum/v1: NVIDIA Cumulus Linux 5.x"));
  EXPECT_THAT(output.out, Not(HasSubstr("sonic/v1")));
  EXPECT_THAT(output.out, Not(HasSubstr("how fast the port is"))) << "which NVUE is not told";
  EXPECT_THAT(output.out, HasSubstr("nv set qos pfc-watchdog robustness 3\n"));
  SwitchRenderOptions named = unnamed;
  named.profile = "sonic/v1";
  EXPECT_THAT(Render(named).out, HasSubstr("sonic/v1: ")) << "who names a profile gets it";
  EXPECT_THAT(Render({.policy = kDefaults, .config = kLeaf, .ports = {"Ethernet0"}}).out,
              HasSubstr("profile sonic/v1"));
}

TEST(SwitchRenderCommand, SaysInFullThatHeadroomHasNoRoomInTheSwitch) {
  Json config = WithBuffers(Json::parse(*FromDisk(kLeaf)));
  config["BUFFER_POOL"]["egress_lossless_pool"]["mode"] = "dynamic";
  config["BUFFER_POOL"]["egress_lossless_pool"]["size"] = "30500000";
  const auto notes = [&config](std::string_view format) {
    return SwitchRender({.policy = kDefaults,
                         .config = "leaf",
                         .ports = {"Ethernet0,Ethernet4"},
                         .profile = "spectrum/v1",
                         .format = std::string(format),
                         .cable_metres = 300},
                        With({{"leaf", config.dump()}}), {})
        .err;
  };
  for (const char* format : {"sonic", "patch", "load"}) {
    EXPECT_THAT(notes(format), HasSubstr("Note: headroom of all ports has no room in the switch's memory: 2 "
                                         "ports x 1 group x "));
    EXPECT_THAT(notes(format), HasSubstr(" bytes smaller first\n")) << "what to do is not cut off";
  }
  config["BUFFER_POOL"]["egress_lossless_pool"]["size"] = "60000000";
  EXPECT_THAT(notes("sonic"), Not(HasSubstr("headroom of all ports")));
}

TEST(SwitchRenderCommand, RefusesAPolicyThatContradictsItself) {
  const Output output =
      Render({.policy = kFixtures + "nic-operator.yaml", .config = kLeaf, .ports = {"Ethernet0"}});
  EXPECT_EQ(output.exit_code, Output::kRefused);
  EXPECT_EQ(output.out, "");
  EXPECT_THAT(output.err, HasSubstr("rdma-unmarked"));
}

TEST(SwitchRenderCommand, SaysWhatIsWrongWithTheQuestion) {
  const auto error = [](const SwitchRenderOptions& options) {
    const Output output = Render(options);
    EXPECT_EQ(output.exit_code, Output::kUsage);
    EXPECT_EQ(output.out, "");
    return output.err;
  };
  EXPECT_THAT(error({.policy = kDefaults, .config = kLeaf}), HasSubstr("say which ports"));
  EXPECT_THAT(error({.policy = kDefaults, .ports = {"Ethernet0"}}), HasSubstr("--config config_db.json"));
  EXPECT_THAT(error({.policy = kDefaults, .config = kLeaf, .ports = {"Ethernet99"}}),
              HasSubstr("PORT has no Ethernet99"));
  EXPECT_THAT(error({.policy = kDefaults, .config = kLeaf, .ports = {"Ethernet0"}, .profile = "junos/v1"}),
              HasSubstr("name one of sonic/v1, spectrum/v1, spectrum4/v1, tomahawk/v1"));
  EXPECT_THAT(error({.policy = kDefaults, .config = kLeaf, .ports = {"Ethernet0"}, .format = "xml"}),
              HasSubstr("write sonic, patch, load or nvue"));
  EXPECT_THAT(error({.policy = kDefaults, .config = kLeaf, .ports = {"Ethernet0"}, .cable_metres = 0}),
              HasSubstr("1 to 100000 metres"));
  EXPECT_THAT(error({.policy = kNodes, .config = kLeaf, .ports = {"Ethernet0"}}),
              HasSubstr("holds 0 LosslessPolicies"));
  const auto error_of = [](const SwitchRenderOptions& options) {
    const Output output = SwitchRender(options,
                                       With({{"-", ""},
                                             {"program",
                                              "\x7f"
                                              "ELF\x02\x01"}}),
                                       {});
    EXPECT_EQ(output.exit_code, Output::kUsage);
    return output.err;
  };
  EXPECT_THAT(error_of({.policy = "-", .config = kLeaf, .ports = {"Ethernet0"}}),
              HasSubstr("standard input is empty; it should hold one LosslessPolicy"));
  EXPECT_THAT(error_of({.policy = "program", .config = kLeaf, .ports = {"Ethernet0"}}),
              HasSubstr("program is neither YAML nor JSON but binary; it should hold one LosslessPolicy"));
  EXPECT_THAT(error_of({.policy = kDefaults, .config = "program", .ports = {"Ethernet0"}}),
              HasSubstr("--config: program is neither YAML nor JSON but binary; it should hold a switch's"));
  EXPECT_THAT(error_of({.policy = kDefaults, .config = kLeaf, .hosts_on = {"-"}}),
              HasSubstr("--hosts-on: standard input is empty; it should hold NodeTopologies"));
  EXPECT_THAT(error({.policy = "nowhere.yaml", .config = kLeaf, .ports = {"Ethernet0"}}),
              HasSubstr("nowhere.yaml"));
  EXPECT_THAT(error({.policy = kDefaults, .config = kNodes, .ports = {"Ethernet0"}}), HasSubstr("no JSON"));
}

TEST(SwitchCompareCommand, ShowsTheGoldenCaseWithBothEnds) {
  const Output output = Compare({kNodes, kLeaf});
  EXPECT_EQ(output.exit_code, Output::kRefused);
  EXPECT_THAT(output.out,
              HasSubstr("host: DSCP 0: priority 0, PFC 3\n    switch: DSCP 0: priority 0, PFC 3,4"));
  EXPECT_THAT(output.out,
              HasSubstr("host: DSCP 4: priority 0, PFC 3\n    switch: DSCP 4: priority 4, PFC 3,4"));
  EXPECT_THAT(output.err, HasSubstr("Note: leaf-9: no configuration was given, and 1 cable ends there"));
  ExpectGolden("switch_compare.txt", output.out);
}

TEST(SwitchCompareCommand, FitsATerminalOf80Columns) {
  const Output output = SwitchCompare({.files = {kNodes, kLeaf}}, FromDisk, {.style = {.width = 80}});
  ExpectGolden("switch_compare_80.txt", output.out);
  ExpectFits([](const Style& style) {
    return SwitchCompare({.files = {kNodes, kLeaf}}, FromDisk, {.style = style}).out;
  });
  EXPECT_EQ(WiderThan(80, output.out), std::vector<std::string>{});
}

TEST(SwitchCompareCommand, GivesScriptsBothEndsOfEachCableAndARailsWorst) {
  const Json json = Json::parse(Compare({kNodes, kLeaf}, Format::kJson).out);
  ASSERT_EQ(json["cables"].size(), 4u);
  std::map<std::string, Json> by_name;
  for (const Json& cable : json["cables"])
    by_name[cable["node"].get<std::string>() + " " + cable["port"].get<std::string>()] = cable;
  EXPECT_EQ(by_name["gpu-017 mlx5_0:1"]["verdict"], "Contradiction");
  // Of leaf-9 nothing is known, and the host alone drops its data: PFC is on another priority than that of DSCP 0.
  EXPECT_EQ(by_name["gpu-017 mlx5_1:1"]["verdict"], "Contradiction");
  EXPECT_EQ(by_name["gpu-018 mlx5_0:1"]["verdict"], "Contradiction") << "26 is lossy on that switch";
  EXPECT_EQ(by_name["gpu-018 mlx5_0:1"]["switchPort"], "Ethernet4");
  EXPECT_EQ(by_name["gpu-018 mlx5_1:1"]["verdict"], "Unproved");
  EXPECT_FALSE(by_name["gpu-018 mlx5_1:1"].contains("switch"));
  EXPECT_EQ(
      json["rails"],
      Json::parse(R"([{"rail": 0, "verdict": "Contradiction"}, {"rail": 1, "verdict": "Contradiction"}])"));
  for (const Json& cable : json["cables"]) {
    for (const Json& finding : cable["findings"]) {
      for (const char* key : {"rule", "weight", "setting", "host", "switch", "sentence", "next"})
        EXPECT_FALSE(finding.at(key).get<std::string>().empty()) << finding.dump();
    }
  }
}

TEST(SwitchCompareCommand, CallsLosslessWhatWasRenderedForIt) {
  const Output output = SwitchCompare({.files = {kNodes, "leaf-3=mended"}, .problems = true},
                                      With({{"mended", Mended()}}), {.format = Format::kJson});
  const Json json = Json::parse(output.out);
  for (const Json& cable : json["cables"])
    EXPECT_NE(cable["node"].get<std::string>() + cable["port"].get<std::string>(), "gpu-018mlx5_0:1");
  EXPECT_EQ(output.exit_code, Output::kRefused) << "the other host still sends ToS 0";
}

TEST(SwitchCompareCommand, LooksAtTheOtherFilesWhereOneCannotBeRead) {
  const Output output = Compare({kNodes, "nowhere.json", kLeaf});
  EXPECT_EQ(output.exit_code, Output::kUsage);
  EXPECT_THAT(output.err, HasSubstr("Error: nowhere.json cannot be read"));
  EXPECT_THAT(output.out, HasSubstr("4 cables: 3 Contradiction, 1 Unproved"));
  EXPECT_THAT(Compare({}).err, HasSubstr("name the NodeTopologies"));
}

TEST(SwitchCompareCommand, CountsNoCableTwice) {
  const Output output = Compare({kNodes, kNodes, kLeaf});
  EXPECT_EQ(output.exit_code, Output::kUsage);
  EXPECT_THAT(output.err, HasSubstr("NodeTopology gpu-017 stands twice; was a file given twice?"));
  EXPECT_THAT(output.out, HasSubstr("4 cables: 3 Contradiction, 1 Unproved"));
  const Output rendered = Render({.policy = kDefaults, .config = kLeaf, .hosts_on = {kNodes, kNodes}});
  EXPECT_EQ(rendered.exit_code, Output::kUsage);
  EXPECT_THAT(rendered.err, HasSubstr("NodeTopology gpu-017 stands twice; was a file given twice?"));
}

TEST(SwitchCompareCommand, CallsNothingLosslessWhereThereIsNoCable) {
  for (const Format format : {Format::kText, Format::kJson}) {
    const Output empty = Compare({kLeaf}, format);
    EXPECT_EQ(empty.exit_code, Output::kUsage) << empty.out;
    EXPECT_THAT(empty.err, HasSubstr("Error: there is no RoCE port in these files"));
  }
}

TEST(SwitchCompareCommand, CountsNoCablesOfFilesThatCannotBeRead) {
  for (const auto& [text, why] :
       {std::pair("", "standard input is empty; it should hold NodeTopologies or a switch's settings"),
        std::pair("\x7f"
                  "ELF\x02\x01",
                  "standard input is neither YAML nor JSON but binary"),
        std::pair("kind: [", "standard input: line ")}) {
    const Output output = SwitchCompare({.files = {"-"}}, With({{"-", text}}), {});
    EXPECT_EQ(output.exit_code, Output::kUsage) << why;
    EXPECT_EQ(output.out, "") << why;
    EXPECT_THAT(output.err, AllOf(HasSubstr(why), Not(HasSubstr("no RoCE port")))) << why;
  }
}

// What Mended() makes of leaf-3, changed by a test, against both hosts.
Json CompareWith(const std::function<void(Json&)>& change, const std::string& nodes = *FromDisk(kNodes)) {
  Json config = Json::parse(Mended());
  change(config);
  const Output output =
      SwitchCompare({.files = {"nodes", "leaf-3=leaf"}}, With({{"nodes", nodes}, {"leaf", config.dump()}}),
                    {.format = Format::kJson});
  const Json report = Json::parse(output.out);
  for (const Json& cable : report["cables"]) {
    if (cable["node"] == "gpu-018" && cable["port"] == "mlx5_0:1") return cable;
  }
  return {};
}

std::string Replaced(std::string text, const std::string& what, const std::string& with) {
  const auto at = text.rfind(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), with);
}

TEST(SwitchCompareCommand, TakesAWatchdogThatCouldNotBeReadForUnknown) {
  const auto as_is = [](Json&) {};
  EXPECT_EQ(CompareWith(as_is)["verdict"], "Lossless");
  const std::string unread = Replaced(*FromDisk(kNodes), "      watchdogMs: 65535\n", "") +
                             "    gaps: [{setting: watchdogMs, reason: Operation not permitted}]\n";
  EXPECT_EQ(CompareWith(as_is, unread)["verdict"], "Unproved");
  // A NIC that has none, and whose policy asks for none.
  const std::string none = Replaced(unread, "metadata: {name: gpu-018}\n",
                                    "metadata: {name: gpu-018}\nspec:\n  lossless:\n"
                                    "  - {ports: [\"mlx5_0:1\"], policies: [roce], settings: {pfc: [3]}}\n");
  EXPECT_EQ(CompareWith(as_is, none)["verdict"], "Lossless");
}

// The setting of the worst finding of an unproved cable; else its verdict.
std::string Unknown(const std::function<void(Json&)>& change) {
  const Json cable = CompareWith(change);
  if (cable["verdict"] != "Unproved") return cable["verdict"].get<std::string>();
  EXPECT_EQ(cable["findings"][0]["rule"], "not-known");
  return cable["findings"][0]["setting"].get<std::string>();
}

TEST(SwitchCompareCommand, ProvesNothingOfASwitchThatNamesNoBuffersForData) {
  EXPECT_EQ(Unknown([](Json&) {}), "Lossless");
  EXPECT_EQ(Unknown([](Json& config) {
              for (const char* table : {"BUFFER_POOL", "BUFFER_PROFILE", "BUFFER_PG", "BUFFER_QUEUE"})
                config.erase(table);
            }),
            "lossyQueues");
  EXPECT_EQ(Unknown([](Json& config) { config.erase("BUFFER_PG"); }), "bufferBytes");
  EXPECT_EQ(Unknown([](Json& config) { config["BUFFER_PG"].erase("Ethernet4|3-4"); }), "bufferBytes")
      << "only group 0 has a row";
  const auto on_group_4 = [](Json& config) {
    config["BUFFER_PG"]["Ethernet4|4"] = config["BUFFER_PG"]["Ethernet4|3-4"];
    config["BUFFER_PG"].erase("Ethernet4|3-4");
  };
  EXPECT_EQ(Unknown(on_group_4), "bufferBytes") << "data is in group 3";
  EXPECT_EQ(Unknown([](Json& config) { config.erase("BUFFER_QUEUE"); }), "lossyQueues");
  EXPECT_EQ(Unknown([](Json& config) { config["BUFFER_QUEUE"].erase("Ethernet4|3-4"); }), "lossyQueues");
  EXPECT_EQ(Unknown([](Json& config) { config["BUFFER_QUEUE"]["Ethernet4|3-4"]["profile"] = "NULL"; }),
            "lossyQueues");
  // Profiles of the dynamic model, of which nobody makes any here.
  EXPECT_EQ(Unknown([](Json& config) { config["BUFFER_PG"]["Ethernet4|3-4"]["profile"] = "NULL"; }),
            "bufferBytes");
}

TEST(SwitchCompareCommand, NamesTheBufferThatCannotBeRead) {
  const auto why = [](const std::function<void(Json&)>& change) {
    const Json cable = CompareWith(change);
    EXPECT_EQ(cable["verdict"], "Unproved");
    EXPECT_EQ(cable["findings"][0]["setting"], "settings");
    return cable["findings"][0]["sentence"].get<std::string>();
  };
  EXPECT_EQ(why([](Json& config) { config["BUFFER_PG"]["Ethernet4|3-4"]["profile"] = "gone"; }),
            "the switch's port cannot be read (BUFFER_PG|Ethernet4|3-4: profile names gone, which is not in "
            "BUFFER_PROFILE)");
  EXPECT_EQ(
      why([](Json& config) { config["BUFFER_QUEUE"]["Ethernet4|3-4"]["profile"] = "gone"; }),
      "the switch's port cannot be read (BUFFER_QUEUE|Ethernet4|3-4: profile names gone, which is not in "
      "BUFFER_PROFILE)");
  // Of this port alone: its neighbour's profile stays.
  const auto mine = [](const char* field, const char* value) {
    return [field, value](Json& config) {
      config["BUFFER_PROFILE"]["mine"] = config["BUFFER_PROFILE"]["pg_lossless_400000_5m_profile"];
      config["BUFFER_PROFILE"]["mine"][field] = value;
      config["BUFFER_PG"]["Ethernet4|3-4"]["profile"] = "mine";
    };
  };
  EXPECT_THAT(why(mine("xoff", "garbage")), HasSubstr("BUFFER_PROFILE|mine: xoff \"garbage\" is not 0 to"));
  EXPECT_THAT(why(mine("pool", "gone")),
              HasSubstr("BUFFER_PROFILE|mine: pool names gone, which is not in BUFFER_POOL"));
}

// A group with the profile NULL and the length of its cable is what SONiC reckons a profile of.
TEST(SwitchCompareCommand, BelievesASwitchThatSizesHeadroomItselfWhereItCan) {
  const auto dynamic = [](const std::function<void(Json&)>& change) {
    return Unknown([&change](Json& config) {
      config["DEVICE_METADATA"]["localhost"]["buffer_model"] = "dynamic";
      config["BUFFER_PG"]["Ethernet4|3-4"]["profile"] = "NULL";
      config["CABLE_LENGTH"]["AZURE"]["Ethernet4"] = "5m";
      change(config);
    });
  };
  EXPECT_EQ(dynamic([](Json&) {}), "Lossless");
  EXPECT_EQ(dynamic([](Json& config) {
              config["BUFFER_PG"]["Ethernet4|3-4"] = Json{{"NULL", "NULL"}};
            }),
            "bufferBytes");
  EXPECT_EQ(dynamic([](Json& config) { config["BUFFER_PG"].erase("Ethernet4|3-4"); }), "bufferBytes");
  EXPECT_EQ(dynamic([](Json& config) { config["BUFFER_PG"]["Ethernet4|3-4"] = Json::object(); }),
            "bufferBytes");
  EXPECT_EQ(dynamic([](Json& config) { config["CABLE_LENGTH"]["AZURE"]["Ethernet4"] = "0m"; }),
            "bufferBytes");
  EXPECT_EQ(dynamic([](Json& config) { config.erase("CABLE_LENGTH"); }), "bufferBytes");
  EXPECT_EQ(dynamic([](Json& config) { config["DEVICE_METADATA"]["localhost"].erase("buffer_model"); }),
            "bufferBytes");
  const auto named = [](const char* type) {
    return [type](Json& config) {
      config["BUFFER_PROFILE"]["mine"] = {{"pool", "ingress_lossless_pool"}, {"dynamic_th", "0"}};
      if (type != nullptr) config["BUFFER_PROFILE"]["mine"]["headroom_type"] = type;
      config["BUFFER_PG"]["Ethernet4|3-4"]["profile"] = "mine";
    };
  };
  EXPECT_EQ(dynamic(named("dynamic")), "Lossless");
  EXPECT_EQ(dynamic(named(nullptr)), "bufferBytes");
}

// What is left of a table that came in half, whichever half it is, proves nothing; nor does it hide what contradicts.
TEST(SwitchCompareCommand, ProvesNothingByHalfOfTheRowsOfBuffers) {
  for (const char* table : {"BUFFER_PG", "BUFFER_QUEUE"}) {
    int lost = 0;
    for (const int half : {0, 1}) {
      bool there = false;
      const Json cable = CompareWith([&](Json& config) {
        Json rows = Json::object();
        int at = 0;
        for (const auto& [key, row] : config[table].items()) {
          if (at++ % 2 == half) rows[key] = row;
        }
        there = rows.contains("Ethernet4|3-4");
        config[table] = std::move(rows);
      });
      EXPECT_EQ(cable["verdict"], there ? "Lossless" : "Unproved") << table << " " << half;
      lost += there ? 0 : 1;
    }
    EXPECT_EQ(lost, 1) << table;
  }
  const auto short_of_room = [](Json& config) {
    config["CABLE_LENGTH"]["AZURE"]["Ethernet4"] = "5m";
    config["BUFFER_PROFILE"]["pg_lossless_400000_5m_profile"]["xoff"] = "1000";
    config["BUFFER_QUEUE"]["Ethernet4|3-4"]["profile"] = "egress_lossy_profile";
  };
  EXPECT_EQ(CompareWith(short_of_room)["verdict"], "Contradiction");
  EXPECT_EQ(CompareWith([&](Json& config) {
              short_of_room(config);
              config["BUFFER_PG"].erase("Ethernet4|3-4");
              config["BUFFER_QUEUE"].erase("Ethernet4|3-4");
            })["verdict"],
            "Unproved");
}

TEST(SwitchCompareCommand, ProvesNothingOfASwitchThatDoesNotSayWhatItsWatchdogLooksAt) {
  EXPECT_EQ(Unknown([](Json& config) { config["PORT_QOS_MAP"]["Ethernet4"].erase("pfcwd_sw_enable"); }),
            "watched");
}

TEST(SwitchCompareCommand, SaysWhyNothingIsKnownOfAPort) {
  EXPECT_EQ(
      CompareWith([](Json& config) { config["PORT"]["Ethernet4"]["admin_status"] = "down"; })["verdict"],
      "Unproved");
  Json config = Json::parse(Mended());
  config["PORT_QOS_MAP"].erase("Ethernet4");
  const Output output =
      SwitchCompare({.files = {kNodes, "leaf-3=leaf"}}, With({{"leaf", config.dump()}}), {});
  EXPECT_THAT(output.err, HasSubstr("Note: leaf-3 Ethernet4 has no PORT_QOS_MAP, and nothing is known"));
}

TEST(SwitchCompareCommand, UsesNeitherOfTwoConfigurationsWithOneName) {
  const Output output =
      SwitchCompare({.files = {kNodes, "leaf-3=mended", kLeaf}}, With({{"mended", Mended()}}), {});
  EXPECT_THAT(output.err, HasSubstr("Note: leaf-3: several configurations have this name"));
  EXPECT_THAT(output.out, Not(HasSubstr("Lossless  ")));
  EXPECT_THAT(output.out, HasSubstr("gpu-018  mlx5_0:1     0  leaf-3 etp2"));
}

TEST(SwitchRenderCommand, RendersForAPortThatHasNothingYet) {
  Json config = Json::parse(*FromDisk(kLeaf));
  config["PORT_QOS_MAP"].erase("Ethernet4");
  const Output output =
      SwitchRender({.policy = kDefaults, .config = "leaf", .ports = {"etp2"}, .format = "patch"},
                   With({{"leaf", config.dump()}}), {});
  EXPECT_EQ(output.exit_code, Output::kRefused) << output.err;
  const Json patched = config.patch(Json::parse(output.out));
  EXPECT_EQ(patched["PORT_QOS_MAP"]["Ethernet4"]["pfc_enable"], "3");
  EXPECT_EQ(patched["PORT_QOS_MAP"]["Ethernet4"]["pfcwd_sw_enable"], "3") << "else no queue is watched";
}

TEST(SwitchRenderCommand, PartsWhatApplyPatchTakesFromWhatItRefusesAndSaysInWhichOrder) {
  SwitchRenderOptions options{
      .policy = kDefaults, .config = kLeaf, .ports = {"Ethernet0"}, .profile = "spectrum/v1"};
  const std::string commands =
      "  sudo config load -y leaf-3.load.json\n  sudo config apply-patch leaf-3.patch.json\n"
      "  sudo config save -y\n";
  const Output all = Render(options);
  EXPECT_THAT(all.out, AllOf(HasSubstr("WRED_PROFILE|HEDDLE_"), HasSubstr(commands)));
  EXPECT_THAT(all.err, HasSubstr("Note: spectrum/v1: "));
  options.format = "patch";
  const Output patch = Render(options);
  EXPECT_THAT(patch.out, Not(HasSubstr("\"/WRED_PROFILE")));
  EXPECT_THAT(patch.err, AllOf(HasSubstr("Note: `config apply-patch` refuses some"), HasSubstr(commands)));
  options.format = "load";
  const Json load = Json::parse(Render(options).out);
  EXPECT_EQ(load.size(), 1u) << load;
  EXPECT_TRUE(load.contains("WRED_PROFILE"));
  options.format = "sonic";
  const Json json = Json::parse(Render(options, Format::kJson).out);
  EXPECT_EQ(json["commands"].size(), 3u);
  for (const Json& line : json["patch"]) {
    const bool profile = line["path"].get<std::string>().starts_with("/WRED_PROFILE");
    EXPECT_EQ(line["by"], profile ? "config load" : "config apply-patch") << line;
  }
}

TEST(SwitchRenderCommand, PutsNoHostnameIntoACommandThatAShellTakesForMore) {
  Json config = Json::parse(*FromDisk(kLeaf));
  config["DEVICE_METADATA"]["localhost"]["hostname"] = "leaf; reboot";
  const Output output = SwitchRender({.policy = kDefaults, .config = "leaf", .ports = {"Ethernet0"}},
                                     With({{"leaf", config.dump()}}), {});
  EXPECT_THAT(output.out, HasSubstr("sudo config apply-patch switch.patch.json\n"));
}

TEST(SwitchRenderCommand, MakesNvueCommandsAndNoJson) {
  const SwitchRenderOptions options{
      .policy = kDefaults, .ports = {"swp1"}, .profile = "spectrum/v1", .format = "nvue"};
  const Output output = Render(options, Format::kJson);
  EXPECT_EQ(output.exit_code, Output::kUsage);
  EXPECT_THAT(output.err, HasSubstr("leave -o out"));
}

}  // namespace
}  // namespace heddle::cli
