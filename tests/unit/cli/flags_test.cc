#include "cli/flags.h"

#include <gmock/gmock.h>

#include <regex>
#include <sstream>

#include "base/version.h"
#include "tests/unit/cli/shell_words.h"

namespace heddle::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

CommandLine Read(std::vector<const char*> words) {
  words.insert(words.begin(), "kubectl-heddle");
  return ReadCommandLine(int(words.size()), words.data());
}

std::string ErrorOf(std::vector<const char*> words) {
  const CommandLine line = Read(std::move(words));
  EXPECT_TRUE(line.instead);
  if (!line.instead) return "";
  EXPECT_EQ(line.instead->exit_code, Output::kUsage);
  EXPECT_EQ(line.instead->out, "");
  EXPECT_THAT(line.instead->err, StartsWith("Error: "));
  return line.instead->err;
}

TEST(Flags, SayWhatToPlan) {
  const CommandLine line = Read(
      {"plan", "--synthetic", "su:2 node:4", "--taken", "node-0=4", "--parallelism", "tp=8", "-o", "json"});
  ASSERT_FALSE(line.instead) << line.instead->err;
  EXPECT_EQ(line.flags.command, Command::kPlan);
  EXPECT_EQ(line.flags.format, Format::kJson);
  EXPECT_EQ(line.flags.plan.ground.synthetic, "su:2 node:4");
  EXPECT_EQ(line.flags.plan.ground.taken, "node-0=4");
  EXPECT_EQ(line.flags.plan.parallelism, "tp=8");
  EXPECT_FALSE(line.flags.plan.gpus_per_pod || line.flags.plan.defragment || line.flags.plan.slower_percent);
}

TEST(Flags, TellWhatWasGivenFromWhatIsUsual) {
  const CommandLine line = Read({"plan", "--defragment", "4", "--slower", "-1", "--gpus-per-pod", "0"});
  ASSERT_FALSE(line.instead) << line.instead->err;
  EXPECT_EQ(line.flags.plan.defragment, 4);
  EXPECT_EQ(line.flags.plan.slower_percent, -1);
  EXPECT_EQ(line.flags.plan.gpus_per_pod, 0);
  EXPECT_EQ(line.flags.plan.defragment_gpus, std::nullopt);
}

TEST(Flags, TellTheFabricFromItsImport) {
  EXPECT_EQ(Read({"fabric"}).flags.command, Command::kFabric);
  const CommandLine line = Read({"fabric", "import", "ib.txt", "gpu-1=machine.xml", "--link-gbps", "0"});
  EXPECT_EQ(line.flags.command, Command::kImport);
  EXPECT_THAT(line.flags.import.sources, ElementsAre("ib.txt", "gpu-1=machine.xml"));
  EXPECT_EQ(line.flags.import.link_gbps, 0);
  EXPECT_EQ(line.flags.import.gpus_per_node, std::nullopt);
}

TEST(Flags, TellTheFabricFromItsDesign) {
  const CommandLine line = Read({"fabric", "design", "--gpus", "1024", "--machine", "b200", "--transport",
                                 "ib", "--oversubscription", "2:1", "--rails", "4", "-o", "json"});
  ASSERT_FALSE(line.instead) << line.instead->err;
  EXPECT_EQ(line.flags.command, Command::kDesign);
  EXPECT_EQ(line.flags.design.gpus, 1024);
  EXPECT_EQ(line.flags.design.machine, "b200");
  EXPECT_EQ(line.flags.design.rails, 4);
  EXPECT_EQ(line.flags.design.oversubscription, "2:1");
  EXPECT_EQ(line.flags.format, Format::kJson);
  EXPECT_EQ(Read({"fabric"}).flags.command, Command::kFabric);
  EXPECT_THAT(Read({"fabric", "design", "--help"}).instead->out, HasSubstr("Exit codes: 0 sized, 3"));
}

TEST(Flags, SayWhatToLint) {
  const CommandLine line = Read({"lint", "policy.yaml", "leaf.json", "-", "-o", "yaml"});
  ASSERT_FALSE(line.instead) << line.instead->err;
  EXPECT_EQ(line.flags.command, Command::kLint);
  EXPECT_THAT(line.flags.lint.files, ElementsAre("policy.yaml", "leaf.json", "-"));
  EXPECT_EQ(line.flags.format, Format::kYaml);
  EXPECT_TRUE(Read({"lint", "--rules"}).flags.lint.rules);
  EXPECT_TRUE(Read({"lint", "--resolved", "policy.yaml"}).flags.lint.resolved);
  EXPECT_FALSE(line.flags.lint.resolved);
  EXPECT_THAT(Read({"lint", "--help"}).instead->out, HasSubstr("Exit codes: 0 nothing was found, 3"));
}

TEST(Flags, SayWhatToDoWithASwitch) {
  const CommandLine render = Read({"switch", "render", "policy.yaml", "--config", "leaf.json", "--port",
                                   "Ethernet0", "--port", "Ethernet4", "--fabric-port", "Ethernet256",
                                   "--cable-metres", "3", "--format", "patch", "--profile", "spectrum/v1"});
  ASSERT_FALSE(render.instead) << render.instead->err;
  EXPECT_EQ(render.flags.command, Command::kSwitchRender);
  EXPECT_EQ(render.flags.switch_render.policy, "policy.yaml");
  EXPECT_EQ(render.flags.switch_render.config, "leaf.json");
  EXPECT_THAT(render.flags.switch_render.ports, ElementsAre("Ethernet0", "Ethernet4"));
  EXPECT_THAT(render.flags.switch_render.fabric_ports, ElementsAre("Ethernet256"));
  EXPECT_EQ(render.flags.switch_render.cable_metres, 3);
  EXPECT_EQ(render.flags.switch_render.fabric_cable_metres, std::nullopt);
  EXPECT_EQ(render.flags.switch_render.format, "patch");
  const CommandLine compare = Read({"switch", "compare", "-", "leaf-3=a.json", "--problems", "-o", "json"});
  ASSERT_FALSE(compare.instead) << compare.instead->err;
  EXPECT_EQ(compare.flags.command, Command::kSwitchCompare);
  EXPECT_THAT(compare.flags.switch_compare.files, ElementsAre("-", "leaf-3=a.json"));
  EXPECT_TRUE(compare.flags.switch_compare.problems);
  EXPECT_THAT(Read({"switch", "render", "--help"}).instead->out,
              HasSubstr("Exit codes: 0 nothing is to change, 3"));
  EXPECT_THAT(Read({"switch", "compare", "--help"}).instead->out, HasSubstr("no cable to look at"));
  EXPECT_THAT(ErrorOf({"switch", "render"}), HasSubstr("POLICY"));
  EXPECT_THAT(ErrorOf({"switch"}), HasSubstr("`kubectl heddle switch --help`"));
}

TEST(Flags, SayWhatToCheck) {
  const CommandLine line = Read({"check", "--rdma-resource", "example.com/nic", "llama.yaml", "job/bert",
                                 "--gpus-per-node", "4", "--infiniband", "-n", "train"});
  ASSERT_FALSE(line.instead) << line.instead->err;
  EXPECT_EQ(line.flags.command, Command::kCheck);
  EXPECT_THAT(line.flags.check.targets, ElementsAre("llama.yaml", "job/bert"));
  EXPECT_THAT(line.flags.check.rdma_resources, ElementsAre("example.com/nic"));
  EXPECT_EQ(line.flags.check.gpus_per_node, 4);
  EXPECT_TRUE(line.flags.check.infiniband);
  EXPECT_EQ(line.flags.explain.ns, "train");
  EXPECT_THAT(Read({"check", "--help"}).instead->out, HasSubstr("KIND/NAME is one in the cluster"));
}

TEST(Flags, SayWhatToBench) {
  const CommandLine line =
      Read({"bench", "--nodes", "a,b", "--nodes", "c", "--image", "x/nccl", "--rdma-resource", "rdma/hca",
            "--network", "rails", "--collective", "alltoall", "-n", "team"});
  ASSERT_FALSE(line.instead) << line.instead->err;
  EXPECT_EQ(line.flags.command, Command::kBench);
  EXPECT_THAT(line.flags.bench.nodes, ElementsAre("a", "b", "c"));
  EXPECT_THAT(line.flags.bench.rdma_resources, ElementsAre("rdma/hca"));
  EXPECT_EQ(line.flags.bench.collective, "alltoall");
  EXPECT_TRUE(AsksCluster(line.flags.bench));
  const CommandLine offline = Read({"bench", "job/llama", "--topology", "a.json", "--results", "-"});
  ASSERT_FALSE(offline.instead) << offline.instead->err;
  EXPECT_EQ(offline.flags.bench.target, "job/llama");
  EXPECT_FALSE(AsksCluster(offline.flags.bench));
  const std::string help = Read({"bench", "--help"}).instead->out;
  EXPECT_THAT(help, HasSubstr("Exit codes: 0 done, 3 something is slow"));
  EXPECT_THAT(help, HasSubstr("or has no such gang, no such node"));
  EXPECT_LT(help.find("kubectl wait -n team --for=condition=Running"), help.find("kubectl logs"))
      << "the launcher's Job is not there at once";
}

TEST(Flags, SayWhatToRecord) {
  const CommandLine line = Read({"record", "gpu-017", "--scrub"});
  ASSERT_FALSE(line.instead) << line.instead->err;
  EXPECT_EQ(line.flags.command, Command::kRecord);
  EXPECT_EQ(line.flags.record.node, "gpu-017");
  EXPECT_TRUE(line.flags.record.scrub);
  EXPECT_THAT(ErrorOf({"record"}), HasSubstr("NODE"));
  EXPECT_THAT(Read({"record", "--help"}).instead->out, HasSubstr("Exit codes: 0 the archive is whole"));
}

TEST(Flags, SayWhatToLookAt) {
  EXPECT_EQ(Read({"status"}).flags.command, Command::kStatus);
  EXPECT_TRUE(Read({"status", "--all", "-n", "team"}).flags.status.all);
  EXPECT_EQ(Read({"doctor", "-o", "yaml"}).flags.command, Command::kDoctor);
  const CommandLine line = Read({"cables", "--problems", "--csv", "--node", "gpu-017"});
  ASSERT_FALSE(line.instead) << line.instead->err;
  EXPECT_EQ(line.flags.command, Command::kCables);
  EXPECT_TRUE(line.flags.cables.problems && line.flags.cables.csv);
  EXPECT_EQ(line.flags.cables.node, "gpu-017");
  EXPECT_EQ(Read({"cables", "gpu-017"}).flags.cables.node, "gpu-017");
  for (const char* word : {"status", "doctor", "cables"})
    EXPECT_THAT(Read({word, "--help"}).instead->out, HasSubstr("Exit codes: 0 no"));
}

TEST(Flags, TakeFilesInPlaceOfACluster) {
  const CommandLine topology = Read({"topology", "--topology", "a.json", "gpu-017", "--topology", "-"});
  ASSERT_FALSE(topology.instead) << topology.instead->err;
  EXPECT_EQ(topology.flags.command, Command::kTopology);
  EXPECT_EQ(topology.flags.node, "gpu-017");
  EXPECT_THAT(topology.flags.topology, ElementsAre("a.json", "-"));
  const CommandLine fabric = Read({"fabric", "--topology", "a.json"});
  ASSERT_FALSE(fabric.instead) << fabric.instead->err;
  EXPECT_EQ(fabric.flags.command, Command::kFabric);
  EXPECT_THAT(fabric.flags.topology, ElementsAre("a.json"));
  EXPECT_THAT(Read({"cables", "--topology", "a.json", "gpu-017"}).flags.cables.topology,
              ElementsAre("a.json"));
  const CommandLine check = Read({"check", "--where", "--topology", "a.json", "llama.yaml"});
  ASSERT_FALSE(check.instead) << check.instead->err;
  EXPECT_THAT(check.flags.check.targets, ElementsAre("llama.yaml"));
  EXPECT_THAT(check.flags.check.topology, ElementsAre("a.json"));
  EXPECT_FALSE(AsksCluster(check.flags.check));
  const CommandLine status = Read({"status", "--topology", "a.json", "--topology", "-", "-n", "train"});
  ASSERT_FALSE(status.instead) << status.instead->err;
  EXPECT_EQ(status.flags.command, Command::kStatus);
  EXPECT_THAT(status.flags.status.topology, ElementsAre("a.json", "-"));
  const CommandLine explain = Read({"explain", "--topology", "a.json", "gang/llama"});
  ASSERT_FALSE(explain.instead) << explain.instead->err;
  EXPECT_EQ(explain.flags.explain.target, "gang/llama");
  EXPECT_THAT(explain.flags.explain.topology, ElementsAre("a.json"));
  EXPECT_THAT(Read({"observe", "--topology", "a.json"}).flags.observed.topology, ElementsAre("a.json"));
  for (const char* word : {"status", "topology", "fabric", "cables", "check"})
    EXPECT_THAT(Read({word, "--help"}).instead->out, HasSubstr("--topology fabric.json")) << word;
  for (const char* word : {"explain", "observe"})
    EXPECT_THAT(Read({word, "--help"}).instead->out, HasSubstr("--topology now.json")) << word;
  for (const char* word : {"doctor", "record", "prepare", "release", "version"})
    EXPECT_THAT(ErrorOf({word, "--topology", "a.json"}), HasSubstr("no option --topology")) << word;
}

TEST(Flags, TellTheFileOfADesignFromTheFabricsOwn) {
  const CommandLine design = Read({"fabric", "design", "--gpus", "8", "--topology", "a.json"});
  ASSERT_FALSE(design.instead) << design.instead->err;
  EXPECT_EQ(design.flags.design.topology, "a.json");
  EXPECT_TRUE(design.flags.topology.empty());
  EXPECT_THAT(ErrorOf({"fabric", "--topology", "a.json", "design", "--gpus", "8"}),
              HasSubstr("write it behind `design`"));
  EXPECT_THAT(ErrorOf({"fabric", "import", "ib.txt", "--topology", "a.json"}),
              HasSubstr("says nothing to `import`"));
}

TEST(Flags, SayWhatIsWrongInSentences) {
  EXPECT_THAT(ErrorOf({}), HasSubstr("say what to do: status, doctor, cables, explain, observe, topology, "
                                     "fabric, plan, lint, switch, check, bench, record, prepare, release, "
                                     "completion, man or version\n"));
  EXPECT_THAT(ErrorOf({"plam"}), HasSubstr("there is no command plam; did you mean plan? Write status, "));
  EXPECT_THAT(ErrorOf({"statuss", "-n", "team"}), HasSubstr("did you mean status?"));
  EXPECT_THAT(ErrorOf({"logs"}), HasSubstr("there is no command logs: write status, doctor, "));
  EXPECT_THAT(ErrorOf({"plan", "--defragment", "x"}), HasSubstr("--defragment \"x\": write a whole number"));
  EXPECT_THAT(ErrorOf({"plan", "--spares", "99999999999"}), HasSubstr("--spares \"99999999999\": write"));
  EXPECT_THAT(ErrorOf({"plan", "--nope"}), HasSubstr("--nope"));
  EXPECT_THAT(ErrorOf({"plan", "--nope"}), HasSubstr("`kubectl heddle plan --help`"));
  EXPECT_THAT(ErrorOf({"plan", "-o", "xml"}), HasSubstr("--output \"xml\": write table, json or yaml"));
  EXPECT_THAT(ErrorOf({"fabric", "import"}), HasSubstr("FILE"));
  EXPECT_THAT(ErrorOf({"fabric", "import"}), HasSubstr("`kubectl heddle fabric import --help`"));
  EXPECT_THAT(ErrorOf({"plan", "--parallelism", "tp=8", "--parallelism", "tp=4"}),
              HasSubstr("--parallelism"));
}

TEST(Flags, SayWhichWordIsWrongAtEveryLevel) {
  EXPECT_THAT(ErrorOf({"status", "--outptu", "json"}),
              HasSubstr("Error: there is no option --outptu of `status`; did you mean --output?\n"));
  EXPECT_THAT(ErrorOf({"--outptu", "json", "status"}),
              HasSubstr("there is no option --outptu; did you mean --output?\n"));
  EXPECT_THAT(ErrorOf({"topology", "--topolgy=x"}),
              HasSubstr("no option --topolgy of `topology`; did you mean --topology?\n"));
  EXPECT_THAT(ErrorOf({"plan", "-defragment", "2"}),
              HasSubstr("there is no option -defragment of `plan`; did you mean --defragment?"));
  EXPECT_THAT(ErrorOf({"plan", "--nope"}), HasSubstr("there is no option --nope of `plan`\n"));
  EXPECT_THAT(ErrorOf({"prepare", "--filname", "job.yaml"}),
              HasSubstr("no option --filname of `prepare`; did you mean --filename?"));
  EXPECT_THAT(ErrorOf({"fabric", "impor", "x"}),
              HasSubstr("there is no command fabric impor; did you mean import? Write import or design\n"));
  EXPECT_THAT(ErrorOf({"fabric", "desing", "--gpus", "8"}),
              HasSubstr("no command fabric desing; did you mean design? Write import or design\n"));
  EXPECT_THAT(ErrorOf({"fabric", "desing", "--gpus", "8"}), HasSubstr("`kubectl heddle fabric --help`"));
  EXPECT_THAT(ErrorOf({"switch", "rendr", "x"}),
              HasSubstr("no command switch rendr; did you mean render? Write render or compare\n"));
  EXPECT_THAT(ErrorOf({"switch", "foo"}),
              HasSubstr("there is no command switch foo: write render or compare\n"));
  EXPECT_THAT(ErrorOf({"-n", "team", "switch"}), HasSubstr("say what to do: render or compare\n"));
  EXPECT_THAT(ErrorOf({"topology", "gpu-017", "gpu-018"}),
              HasSubstr("`topology` takes 1 word at most, and \"gpu-018\" is one more\n"));
  EXPECT_THAT(ErrorOf({"status", "all"}),
              HasSubstr("`status` takes options only, and \"all\" is none; did you mean --all?\n"));
  EXPECT_THAT(ErrorOf({"status", "plan"}), HasSubstr("\"plan\" is none"));
}

TEST(Flags, SayWhatIsWrongWithAValue) {
  EXPECT_THAT(ErrorOf({"fabric", "design", "--gpus", "64GPU"}),
              HasSubstr("Error: --gpus \"64GPU\": write a whole number without a unit\n"));
  EXPECT_THAT(ErrorOf({"fabric", "design", "--row-metres", "-3m"}), HasSubstr("without a unit"));
  EXPECT_THAT(ErrorOf({"fabric", "design", "--gpus", "many"}), HasSubstr("not beyond all bounds"));
  EXPECT_THAT(ErrorOf({"cables", "--problems=x"}),
              HasSubstr("Error: --problems takes no value, as \"x\" is\n"));
  EXPECT_THAT(ErrorOf({"cables", "gpu-017", "--node", "gpu-018"}),
              HasSubstr("Error: --node is given more than once: leave all but one out\n"));
}

TEST(Flags, SayWhatIsMissingAndHowItIsWritten) {
  EXPECT_THAT(ErrorOf({"status", "-n"}), HasSubstr("Error: --namespace needs a value\n"));
  EXPECT_THAT(ErrorOf({"status", "--kubeconfig"}), HasSubstr("Error: --kubeconfig needs a value\n"));
  EXPECT_THAT(ErrorOf({"prepare"}),
              HasSubstr("--filename is required, as in: kubectl heddle prepare -f job.yaml "
                        "| kubectl create -f -\n"));
  EXPECT_THAT(ErrorOf({"fabric", "import"}),
              HasSubstr("FILE is required, as in: kubectl heddle fabric import "));
  EXPECT_THAT(ErrorOf({"switch", "render"}),
              HasSubstr("POLICY is required, as in: kubectl heddle switch render "));
}

TEST(Flags, ExplainThemselvesBehindHelpToo) {
  for (const char* command : {"", "status", "fabric", "fabric design", "switch", "prepare"}) {
    SCOPED_TRACE(command);
    const CommandLine asked = ReadWords(WordsOf("heddle help " + std::string(command)));
    const CommandLine option = ReadWords(WordsOf("heddle " + std::string(command) + " --help"));
    ASSERT_TRUE(asked.instead && option.instead);
    EXPECT_EQ(asked.instead->exit_code, Output::kOk);
    EXPECT_EQ(asked.instead->out, option.instead->out);
  }
  EXPECT_THAT(ErrorOf({"help", "statsu"}), HasSubstr("there is no command statsu; did you mean status?"));
  EXPECT_THAT(ErrorOf({"help", "fabric", "desing"}), HasSubstr("did you mean design?"));
}

TEST(Flags, NameAWrongWordBeforeHelpAsTheyDoWithoutIt) {
  for (const std::vector<const char*>& wrong :
       std::vector<std::vector<const char*>>{{"statsu"},
                                             {"fabric", "desing"},
                                             {"switch", "rendr"},
                                             {"status", "--al"},
                                             {"topology", "a", "b"}}) {
    const std::string without = ErrorOf(wrong);
    for (const char* help : {"--help", "-h"}) {
      std::vector<const char*> words = wrong;
      words.push_back(help);
      EXPECT_EQ(ErrorOf(words), without) << wrong.front();
    }
  }
  EXPECT_THAT(ErrorOf({"--help", "statsu"}), HasSubstr("did you mean status?"));
  EXPECT_EQ(Read({"status", "-n", "train", "-o", "json", "--help"}).instead->exit_code, Output::kOk);
}

// Who mistyped a word is not sent to mend a kubeconfig first.
TEST(Flags, AreCheckedBeforeAClusterIsAsked) {
  EXPECT_THAT(ErrorOf({"explain", "foo/bar"}), HasSubstr("\"foo/bar\" names nothing that makes a gang"));
  EXPECT_THAT(ErrorOf({"explain", "foo/bar"}), HasSubstr("`kubectl heddle explain --help`"));
  EXPECT_THAT(ErrorOf({"explain", "job/a", "--parallelism", "tp=0"}), HasSubstr("--parallelism: tp=0"));
  EXPECT_THAT(ErrorOf({"explain", "job/a", "--model", "params=nan"}), HasSubstr("--model: "));
  EXPECT_THAT(ErrorOf({"bench"}), HasSubstr("name either KIND/NAME of what made a gang"));
  EXPECT_THAT(ErrorOf({"bench", "job/llama"}), HasSubstr("--image: say what to run"));
  EXPECT_THAT(ErrorOf({"bench", "foo/bar", "--image", "x"}), HasSubstr("names nothing that makes a gang"));
  EXPECT_THAT(ErrorOf({"check", "--where"}), HasSubstr("name at least one FILE or KIND/NAME"));
  EXPECT_THAT(ErrorOf({"check", "job/a", "--gpus-per-node", "0"}),
              HasSubstr("--gpus-per-node: write a number"));
  EXPECT_THAT(ErrorOf({"observe", "--last", "0"}), HasSubstr("--last and --days count from 1"));
  EXPECT_THAT(ErrorOf({"release"}), HasSubstr("say --all"));
  EXPECT_THAT(ErrorOf({"prepare", "-f", "/nowhere", "--gpu-resource", "gpu"}),
              HasSubstr("--gpu-resource \"gpu\": write amd.com/gpu, heddle.dev/gpu or nvidia.com/gpu, as it "
                        "stands in a container's limits"));
  EXPECT_FALSE(Read({"prepare", "-f", "/nowhere", "--gpu-resource", "amd.com/gpu"}).instead);
  EXPECT_FALSE(Read({"prepare", "-f", "/nowhere"}).flags.prepare.without_fabric);
  EXPECT_TRUE(Read({"prepare", "-f", "/nowhere", "--without-fabric"}).flags.prepare.without_fabric);
}

TEST(Flags, SayWhichVersionThisIs) {
  for (const std::vector<const char*>& words :
       std::vector<std::vector<const char*>>{{"version"}, {"--version"}, {"status", "--version"}}) {
    const CommandLine line = Read(words);
    ASSERT_TRUE(line.instead) << words.front();
    EXPECT_EQ(line.instead->exit_code, Output::kOk);
    EXPECT_EQ(line.instead->err, "");
    EXPECT_EQ(line.instead->out, "kubectl-heddle " + std::string(base::kVersion) + "\n");
  }
  EXPECT_EQ(crds::Json::parse(Read({"version", "-o", "json"}).instead->out).at("version"),
            std::string(base::kVersion));
  EXPECT_THAT(ErrorOf({"version", "-o", "xml"}), HasSubstr("write table, json or yaml"));
}

TEST(Flags, TakeAllNamespacesWhereAllAreLookedAtAnyway) {
  for (const std::vector<const char*>& words : std::vector<std::vector<const char*>>{
           {"status", "-A"}, {"observe", "--all-namespaces"}, {"release", "--all", "-A"}}) {
    const CommandLine line = Read(words);
    ASSERT_FALSE(line.instead) << line.instead->err;
    EXPECT_TRUE(line.flags.all_namespaces);
    EXPECT_EQ(line.flags.explain.ns, "");
  }
  for (const std::vector<const char*>& words :
       std::vector<std::vector<const char*>>{{"status", "-A", "-n", "train"},
                                             {"-n", "train", "observe", "-A"},
                                             {"release", "--all", "-A", "-n", "a"}})
    EXPECT_THAT(ErrorOf(words), HasSubstr("--all-namespaces and --namespace contradict each other"));
  EXPECT_THAT(ErrorOf({"explain", "job/a", "-A"}), HasSubstr("no option -A of `explain`"));
}

TEST(Flags, SayWhomToAskAs) {
  const CommandLine line = Read({"status", "--as", "ada", "--as-group=dev", "--as-group", "ops"});
  ASSERT_FALSE(line.instead) << line.instead->err;
  EXPECT_EQ(line.flags.as, "ada");
  EXPECT_THAT(line.flags.as_groups, ElementsAre("dev", "ops"));
  // One value each: what stands behind it is the command.
  EXPECT_EQ(Read({"--as", "ada", "--as-group", "dev", "doctor"}).flags.command, Command::kDoctor);
  EXPECT_THAT(ErrorOf({"status", "--as-group", "dev"}), HasSubstr("give --as USER too"));
  EXPECT_THAT(ErrorOf({"status", "--as"}), HasSubstr("--as needs a value"));
}

// The command lines under "Examples:", without what is said of them and without what the shell does with them.
std::vector<std::string> ExamplesOf(const std::string& help) {
  std::vector<std::string> examples;
  std::istringstream lines(std::regex_replace(help, std::regex("\\\\\n *"), ""));
  const std::string program = "kubectl heddle ";
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find(program);
    if (!line.starts_with("  ") || at == std::string::npos) continue;
    examples.push_back(
        std::regex_replace(line.substr(at + program.size()), std::regex(" +(\\||>|<|&&) .*| {2,}.*"), ""));
  }
  return examples;
}

TEST(Flags, HelpOfEachCommandEndsWithItsOwnExamplesAndExitCodes) {
  for (const char* command :
       {"status",  "doctor",        "cables",        "explain", "observe",       "topology",
        "fabric",  "fabric import", "fabric design", "plan",    "lint",          "switch",
        "check",   "bench",         "record",        "prepare", "switch render", "switch compare",
        "release", "completion",    "man",           "version"}) {
    SCOPED_TRACE(command);
    const CommandLine line = ReadWords(WordsOf("heddle " + std::string(command) + " --help"));
    ASSERT_TRUE(line.instead);
    const std::string& help = line.instead->out;
    EXPECT_THAT(help, HasSubstr("\nExit codes: 0 "));
    EXPECT_THAT(help, Not(HasSubstr("nobody waits for ever at Heddle's gate"))) << "it is the program's list";
    const std::vector<std::string> examples = ExamplesOf(help);
    EXPECT_FALSE(examples.empty());
    for (const std::string& example : examples) {
      const CommandLine taken = ReadWords(WordsOf("heddle " + example));
      EXPECT_TRUE(!taken.instead || taken.instead->exit_code == Output::kOk)
          << example << "\n"
          << (taken.instead ? taken.instead->err : "");
    }
  }
  const std::string tab = Read({"completion", "--help"}).instead->out;
  for (const char* shell : {"kubectl completion bash", "kubectl completion zsh", "kubectl completion fish"})
    EXPECT_THAT(tab, HasSubstr(shell));
}

TEST(Flags, PrintHelpWhenAsked) {
  const CommandLine line = Read({"plan", "--help"});
  ASSERT_TRUE(line.instead);
  EXPECT_EQ(line.instead->exit_code, Output::kOk);
  EXPECT_EQ(line.instead->err, "");
  EXPECT_THAT(line.instead->out, HasSubstr("--global-batch"));
}

}  // namespace
}  // namespace heddle::cli
