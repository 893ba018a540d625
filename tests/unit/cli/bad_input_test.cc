#include <gmock/gmock.h>

#include <functional>

#include "cli/plan.h"
#include "crds/fabric.h"
#include "tests/unit/cli/cluster_text.h"

namespace heddle::cli {
namespace {

using ::testing::HasSubstr;

constexpr const char* kCluster = "su:1 node:2 gpu:8 nic:8 rail:8 spine:0";

// What a person may get wrong with `plan`: what is changed of a question that has an answer, and what the error names.
struct Mistake {
  const char* what;
  std::function<void(PlanOptions&)> change;
  const char* named;
};

void PrintTo(const Mistake& mistake, std::ostream* out) {
  *out << mistake.what;
}

class BadOptions : public ::testing::TestWithParam<Mistake> {};

TEST_P(BadOptions, AreNamed) {
  Files files;
  PlanOptions options{.ground = {.synthetic = kCluster}, .parallelism = "tp=8,dp=2"};
  ASSERT_EQ(Plan(options, files.read, {}).exit_code, Output::kOk);
  GetParam().change(options);
  const Output output = Plan(options, files.read, {});
  EXPECT_EQ(output.exit_code, Output::kUsage) << output.out;
  EXPECT_EQ(output.out, "");
  EXPECT_THAT(output.err, HasSubstr(GetParam().named));
}

std::function<void(PlanOptions&)> Parallelism(const char* text) {
  return [text](PlanOptions& options) { options.parallelism = text; };
}
std::function<void(PlanOptions&)> Model(const char* text) {
  return [text](PlanOptions& options) { options.model = text; };
}
std::function<void(PlanOptions&)> Taken(const char* text) {
  return [text](PlanOptions& options) { options.ground.taken = text; };
}
std::function<void(PlanOptions&)> Line(const char* text) {
  return [text](PlanOptions& options) { options.ground.synthetic = text; };
}

INSTANTIATE_TEST_SUITE_P(
    Plan, BadOptions,
    ::testing::Values(
        Mistake{"no sizes", Parallelism(""), "--parallelism"},
        Mistake{"sizes that fill no pod", Parallelism("tp=3,dp=2"), "--gpus-per-pod"},
        Mistake{"a size of zero", Parallelism("tp=0"), "tp=0"},
        Mistake{"a negative size", Parallelism("tp=-8"), "tp=-8"},
        Mistake{"a size that overflows", Parallelism("dp=99999999999999999999"), "dp=99999999999999999999"},
        Mistake{"a product that overflows", Parallelism("tp=65536,dp=65536,pp=65536,cp=65536"), "524288"},
        Mistake{"ten million ranks", Parallelism("tp=8,pp=10,dp=125000"), "more than 524288"},
        Mistake{"experts that do not divide", Parallelism("tp=8,dp=2,ep=3"), "ep=3"},
        Mistake{"a size twice", Parallelism("tp=8,tp=8"), "tp stands twice"},
        Mistake{"a size that is no number", Parallelism("tp=nan"), "tp=nan"},
        Mistake{"NaN parameters", Model("params=nan"), "params=nan"},
        Mistake{"infinite parameters", Model("params=inf"), "params=inf"},
        Mistake{"negative parameters", Model("params=-70e9"), "params=-70e9"},
        Mistake{"parameters beyond doubles", Model("params=1e999"), "params=1e999"},
        Mistake{"negative layers", Model("layers=-1"), "layers=-1"},
        Mistake{"a sequence that overflows", Model("seq=99999999999"), "seq=99999999999"},
        Mistake{"pods without GPUs", [](PlanOptions& o) { o.gpus_per_pod = 0; }, "--gpus-per-pod 0"},
        Mistake{"negative pods", [](PlanOptions& o) { o.gpus_per_pod = -8; }, "--gpus-per-pod -8"},
        Mistake{"pods beyond any machine", [](PlanOptions& o) { o.gpus_per_pod = 64; }, "--gpus-per-pod 64"},
        Mistake{"more GPUs taken than there are", Taken("node-00=99"), "node-00 has 8 GPUs"},
        Mistake{"a node taken twice", Taken("node-00=2,node-00=4"), "node-00 stands twice"},
        Mistake{"GPUs taken of nobody", Taken("=4"), "write NODE=GPUS"},
        Mistake{"GPUs taken of a node that is not there", Taken("node-7=1"), "no node node-7"},
        Mistake{"a file of taken GPUs that is not there", Taken("pods"), "pods: No such file"},
        Mistake{"a share to be slower by, without a question", [](PlanOptions& o) { o.slower_percent = 5; },
                "--slower goes with --defragment only"},
        Mistake{"a level to open, without a question", [](PlanOptions& o) { o.defragment_level = "su"; },
                "--defragment-level goes with --defragment"},
        Mistake{"a size of places, without a question", [](PlanOptions& o) { o.defragment_gpus = 8; },
                "--defragment-gpus goes with --defragment"},
        Mistake{"a batch without a question", [](PlanOptions& o) { o.global_batch = 8; },
                "--global-batch goes with --suggest"},
        Mistake{"a model without values", Model("foo"),
                "as in \"params=70e9,layers=80,hidden=8192,seq=8192,microbatch=1\""},
        Mistake{"a cluster beyond any site", Line("su:1000000 node:1000000"), "su:1000000"},
        Mistake{"a cluster of nothing", Line("su:0 node:0"), "su:0"},
        Mistake{"a torus that is no box", Line("torus:4x4"), "torus:4x4"},
        Mistake{"a torus beyond any hall", Line("torus:100000x100000x100000"),
                "torus:100000x100000x100000"}));

// A file that is damaged or is of something else.
struct BadFile {
  const char* what;
  std::function<std::string()> text;
  std::vector<std::string> named;
};

void PrintTo(const BadFile& file, std::ostream* out) {
  *out << file.what;
}

class BadFiles : public ::testing::TestWithParam<BadFile> {};

TEST_P(BadFiles, AreNamedWithWhatIsWrong) {
  Files files;
  files.texts["nt.json"] = GetParam().text();
  const PlanOptions options{.ground = {.topology = {"nt.json"}}, .parallelism = "tp=8,dp=2"};
  const Output output = Plan(options, files.read, {});
  EXPECT_EQ(output.exit_code, Output::kUsage) << output.out;
  for (const std::string& named : GetParam().named) EXPECT_THAT(output.err, HasSubstr(named));
}

Json Items() {
  return NodeTopologiesOf(kCluster);
}

Json FabricWith(const std::vector<topology::SwitchDeclaration>& switches) {
  crds::Fabric fabric;
  fabric.name = "infiniband";
  fabric.spec.switches = switches;
  return crds::ToJson(fabric);
}

// A Fabric that excludes every node.
std::string Excluded() {
  Json items = Items();
  crds::Fabric fabric;
  fabric.name = "infiniband";
  for (const Json& item : items) fabric.spec.excluded_nodes.push_back(item.at("metadata").at("name"));
  items.push_back(crds::ToJson(fabric));
  return ListOf(std::move(items));
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string Pretty() {
  return Json{{"items", Items()}}.dump(4);
}

std::string Nested(std::size_t depth, const char* open, const char* close) {
  std::string text;
  for (std::size_t i = 0; i < depth; ++i) text += open;
  text += "1";
  for (std::size_t i = 0; i < depth; ++i) text += close;
  return text;
}

INSTANTIATE_TEST_SUITE_P(
    Plan, BadFiles,
    ::testing::Values(
        BadFile{"another version",
                [] {
                  Json items = Items();
                  items[1]["apiVersion"] = "heddle.dev/v2";
                  return ListOf(items);
                },
                {"nt.json: item 1", "node-01", "apiVersion", "heddle.dev/v1alpha1"}},
        BadFile{"other kinds",
                [] {
                  return ListOf(Json::array({{{"kind", "Node"}}, {{"kind", "Node"}}, {{"kind", "Service"}}}));
                },
                {"no NodeTopology", "only 2 Node, 1 Service", "kubectl get nt"}},
        BadFile{"cut short", [] { return Pretty().substr(0, 4000); }, {"nt.json: line ", "ends too early"}},
        BadFile{"a Fabric that excludes every node", Excluded, {"every node is excluded"}},
        BadFile{"cut short in a string", [] { return R"({"items":[{"kind":"NodeTo)"; }, {"nt.json: line 1"}},
        BadFile{"a word that is no JSON",
                [] { return Replaced(Pretty(), "\"memoryGib\": 80", "\"memoryGib\": NaN"); },
                {"nt.json: line ", "no JSON"}},
        BadFile{
            "a number of thirty digits",
            [] { return Replaced(Pretty(), "\"memoryGib\": 80", "\"memoryGib\": 8" + std::string(30, '0')); },
            {"nt.json: item 0", "status.gpus[0].memoryGib"}},
        BadFile{"a negative number",
                [] { return Replaced(Pretty(), "\"memoryGib\": 80", "\"memoryGib\": -80"); },
                {"nt.json: item 0", "status.gpus[0].memoryGib"}},
        BadFile{"bytes that are no text",
                [] { return Replaced(Pretty(), "\"kind\": \"", "\"kind\": \"\xff"); },
                {"nt.json: line "}},
        BadFile{"arrays in arrays",
                [] { return R"({"items":[)" + Nested(100'000, "[", "]") + "]}"; },
                {"nt.json"}},
        BadFile{"objects in objects", [] { return Nested(100'000, "{\"a\":", "}"); }, {"no NodeTopology"}},
        BadFile{"lists in lists of YAML", [] { return Nested(100'000, "[", "]"); }, {"nt.json"}},
        BadFile{"a list behind a list",
                [] {
                  return ListOf(Items()) + "\n" + ListOf(Json::array({GangOn({{"node-00", 0, {}}})})) + "\n";
                },
                {"nt.json: line 2", "something follows the list", "a file of its own"}},
        BadFile{"a list behind an empty one",
                [] { return std::string(R"({"items": [], "kind": "]}"})") + ListOf(Items()); },
                {"nt.json: line 1", "something follows the list"}},
        BadFile{"one name twice",
                [] {
                  Json items = Items();
                  items.push_back(items[0]);
                  return ListOf(items);
                },
                {"nt.json: item 2", "node-00 stands twice"}},
        BadFile{"switches that hang on themselves",
                [] {
                  Json items = Items();
                  items.push_back(FabricWith({{"a", {"b"}}, {"b", {"c"}}, {"c", {"b"}}}));
                  return ListOf(items);
                },
                {"nt.json: item 2", "Fabric infiniband", "spec.switches", "uplinks of b lead back"}},
        BadFile{"a switch above itself",
                [] {
                  Json items = Items();
                  items.push_back(FabricWith({{"a", {"a"}}}));
                  return ListOf(items);
                },
                {"Fabric infiniband", "uplinks of a lead back"}}));

TEST(ClusterFile, AllowsTwoWaysToOneCore) {
  Files files;
  Json items = Items();
  items.push_back(FabricWith({{"a", {"b", "c"}}, {"b", {"d"}}, {"c", {"d"}}, {"d", {}}}));
  files.texts["nt.json"] = "\xef\xbb\xbf" + ListOf(items);
  const PlanOptions options{.ground = {.topology = {"nt.json"}}, .parallelism = "tp=8,dp=2"};
  EXPECT_EQ(Plan(options, files.read, {}).exit_code, Output::kOk) << "and a byte order mark";
}

TEST(ClusterFile, NamesTheSecondFileThatRepeatsTheFirst) {
  Files files;
  files.texts["nt.json"] = files.texts["all.json"] = ListOf(Items());
  const PlanOptions options{.ground = {.topology = {"nt.json", "all.json"}}, .parallelism = "tp=8,dp=2"};
  EXPECT_THAT(Plan(options, files.read, {}).err,
              HasSubstr("all.json: item 0: NodeTopology node-00 stands twice"));
}

}  // namespace
}  // namespace heddle::cli
