#include "cli/flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <sstream>
#include <vector>

#include "base/nearest_word.h"
#include "base/version.h"
#include "cli/completion.h"
#include "cli/flags_commands.h"
#include "cli/help_text.h"
#include "cli/man_page.h"
#include "cli/patience.h"
#include "cli/typed_words.h"

namespace heddle::cli {
namespace {

constexpr const char* kAbout =
    "Shows how training jobs lie on the fabric: NVLink domains, rails, leaves, and what that costs.";
constexpr const char* kExamples = R"(
Examples:
  kubectl heddle status                       what is wrong, the worst first, and what to do about it
  kubectl heddle doctor                       whether Heddle itself is whole
  kubectl heddle cables --problems            which cable ends where it should not
  kubectl heddle explain job/llama -n train    why here, why waiting, what would help; also jobset/, lws/, gang/ …
  kubectl heddle explain job/llama -n train --parallelism "tp=8,pp=2,dp=8"   a Job that Heddle did not place
  kubectl heddle topology                     all nodes
  kubectl heddle topology gpu-017             one node: GPU, NIC, rail, leaf
  kubectl heddle fabric
  kubectl heddle fabric --topology fabric.json    of a file, as status, cables and others take it too; asks no cluster
  kubectl heddle fabric design --gpus 1024     what a network would take, on paper: switches, cables, price, times
  kubectl heddle fabric import ibnetdiscover.txt ndv4-topo.xml -o json > fabric.json    from files; asks no cluster
  kubectl get nt,fabrics,gangs -A -o json | kubectl heddle plan --topology - --parallelism "tp=8,dp=16"
  kubectl heddle plan --synthetic "su:2 node:16 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100" \
      --parallelism "tp=8,pp=2,dp=8" --gpus-per-pod 4
  kubectl heddle observe                      with mode=observe: what the cluster's scheduler did, and Heddle would have
  kubectl heddle lint policy.yaml config_db.json mlnx_qos.txt    lossless settings that contradict each other
  kubectl heddle switch compare nodes.yaml leaf-*.json    which cables are lossless, by what both ends are set to
  kubectl heddle check llama.yaml             what of a workload would go wrong, before it runs
  kubectl heddle bench job/llama -n train --image registry.example/nccl-tests:2.18    nccl-tests in plan order
  kubectl heddle bench job/llama -n train --results results.txt    what they measured beside what was predicted
  kubectl heddle record gpu-017 --scrub > gpu-017.tar    a node's machine, to attach to a bug report
  kubectl heddle release --all                after `helm uninstall`: nobody waits for ever at Heddle's gate

Exit codes: 0 done, 1 failed, 2 called wrongly, 3 the answer is a refusal, or something is wrong.)";

std::string VersionLine() {
  return "kubectl-heddle " + std::string(base::kVersion);
}

}  // namespace

void DefineProgram(CLI::App& app, Flags& flags, std::string& output) {
  app.footer(kExamples);
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--kubeconfig", flags.kubeconfig,
                 "Default: $KUBECONFIG, then ~/.kube/config, then the pod's own account");
  app.add_option("--context", flags.context, "Context of the kubeconfig (default: its current one)");
  app.add_option("--as", flags.as,
                 "Ask as this user, or as system:serviceaccount:NAMESPACE:NAME, if you may");
  app.add_option("--as-group", flags.as_groups, "Ask as one of this group, with --as; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--request-timeout", flags.request_timeout,
                 "Longest wait for an answer of the API server, as 5s or 2m; 0: an hour (default: 20s)");
  app.add_option("-n,--namespace", flags.explain.ns,
                 "Namespace (default: the context's; of status, observe and release, and with --topology: "
                 "all; of record: Heddle's)");
  app.add_option("-o,--output", output, "table, or json or yaml for scripts")->capture_default_str();

  const auto command = [&app](const char* name, const char* about) -> CLI::App& {
    return *app.add_subcommand(name, about);
  };
  DefineStatus(command("status", "What is wrong, the worst first, and what to do about it"), flags.status);
  DefineDoctor(command("doctor", "Whether this installation of Heddle is whole, and what goes past it"));
  DefineCables(command("cables", "Port by port: rail, leaf, and what is cabled wrongly"), flags.cables);
  DefineExplain(command("explain", "Why a gang is where it is, why it waits, and what would help"),
                flags.explain);
  DefineObserve(
      command(
          "observe",
          "What the cluster's own scheduler did with the last gangs, and Heddle would have (mode=observe)"),
      flags.observed);
  DefineTopology(command("topology", "What the nodes' agents see: all nodes, or one as a tree"), flags);
  DefineFabric(command("fabric", "Leaves by rail and scalable unit, NVLink domains, cabling faults"), flags);
  DefinePlan(command("plan", "What if: places a gang on a cluster in files or in one line; asks no cluster"),
             flags.plan);
  DefineLint(
      command("lint", "Policies and lossless settings that contradict each other, in files; asks no cluster"),
      flags.lint);
  DefineSwitch(command("switch", "Switch ports: what a policy makes of them, and both ends of each cable"),
               flags);
  DefineCheck(command("check", "What of a training workload would go wrong, in files or running"),
              flags.check);
  DefineBench(command("bench", "nccl-tests over a gang's GPUs: a manifest, and measured beside predicted"),
              flags.bench);
  DefineRecord(command("record", "What the agent on a node reads of its machine, as a tar archive"),
               flags.record);
  DefinePrepare(command("prepare", "Does to a manifest what admission does, where it cannot"), flags.prepare);
  DefineRelease(command("release", "Hand back what Heddle still holds, once it is uninstalled"),
                flags.release);
  for (const char* name : {"status", "observe", "release"}) {
    app.get_subcommand(name)->add_flag("-A,--all-namespaces", flags.all_namespaces,
                                       "All namespaces, as without -n");
  }
  command("wait", "").group("");  // of the chart's cli.enabled; nobody is shown it
  DefineCompletion(
      command("completion", "The file that lets kubectl complete these commands; install it as it says"));
  DefineMan(command("man", "All of this as a manual page: kubectl heddle man | man -l -"));
  app.set_version_flag("--version", VersionLine(), "Print the version of this program and exit");
  DefineVersion(command("version", "Which version of Heddle this program is; asks no cluster"));
}

namespace {

using Words = std::vector<std::string>;

// "--namespace: 1 required TEXT missing" is what the parser says of an option at the end of the line.
std::string WithoutValue(const std::string& what) {
  const std::size_t colon = what.find(": ");
  if (colon == std::string::npos || !what.ends_with(" missing")) return "";
  return what.substr(0, colon) + " needs a value";
}

// "--node: At Most 1 required but received 2" is what it says of what counts once.
std::string GivenTwice(const std::string& what) {
  const std::size_t most = what.find(": At Most 1 required but received ");
  return most == std::string::npos ? ""
                                   : what.substr(0, most) + " is given more than once: leave all but one out";
}

// "64GPU", "-3m"
bool HasUnit(const std::string& value) {
  const std::size_t digit = value.find_first_of("0123456789");
  return digit != std::string::npos && digit <= 1 &&
         std::isalpha(static_cast<unsigned char>(value.back())) != 0;
}

// "Could not convert: --spares = x". Every option that is converted is a whole number, or takes nothing.
std::string NotConverted(const CLI::App& command, const std::string& what) {
  const std::size_t colon = what.find(": "), equals = what.find(" = ");
  if (colon == std::string::npos || equals == std::string::npos || equals < colon) return what;
  const std::string name = what.substr(colon + 2, equals - colon - 2), value = what.substr(equals + 3);
  const CLI::Option* option = OptionNamed(&command, name);
  if (option != nullptr && !TakesValue(*option))
    return fmt::format("{} takes no value, as \"{}\" is", name, value);
  return fmt::format("{} \"{}\": write a whole number {}", name, value,
                     HasUnit(value) ? "without a unit" : "that is not beyond all bounds");
}

// What a person reads of an error in the words of the parser. `words`: without the program's name.
std::string Sentence(const CLI::App& app, const Words& words, const CLI::ParseError& error) {
  std::string what = error.what();
  while (!what.empty() && what.back() == '\n') what.pop_back();
  // By the exit code, for what the parser calls an error is the command's name where a word is too many.
  const auto is = [&error](CLI::ExitCodes code) { return error.get_exit_code() == int(code); };
  if (is(CLI::ExitCodes::ConversionError)) return NotConverted(CommandNamed(app, words), what);
  if (is(CLI::ExitCodes::ArgumentMismatch)) {
    if (std::string missing = WithoutValue(what); !missing.empty()) return missing;
    if (std::string twice = GivenTwice(what); !twice.empty()) return twice;
  }
  if (!is(CLI::ExitCodes::RequiredError) && !is(CLI::ExitCodes::ExtrasError)) return what;
  // A mistyped option is no option that is there, so what is missing may be the word that is wrong.
  if (std::string wrong = WrongWord(app, words); !wrong.empty()) return wrong;
  if (is(CLI::ExitCodes::ExtrasError)) return what;
  const CLI::App& command = CommandNamed(app, words);
  if (command.get_require_subcommand_min() > 0)
    return "say what to do: " + base::OneOf(SubcommandsOf(command));
  const std::size_t required = what.find(" is required");
  return required == std::string::npos ? what : MissingWord(command, what.substr(0, required));
}

Output Refused(const CLI::App& app, const Words& words, const std::string& sentence) {
  Output output = Failure({base::Code::kInvalid, sentence, std::nullopt});
  output.err += "`" + CalledAs(CommandNamed(app, words)) + " --help` says how it is called.\n";
  return output;
}

// `fabric`'s own --topology is within reach of its `import` and `design`, and nothing is ignored.
bool IsMisplaced(const Flags& flags) {
  return !flags.topology.empty() && (flags.command == Command::kImport || flags.command == Command::kDesign);
}

// What needs neither files nor a cluster.
std::optional<Output> SaidAtOnce(const CLI::App& app) {
  if (app.got_subcommand("completion")) return Output{.out = std::string(kCompletionFile)};
  if (app.got_subcommand("man")) return Output{.out = ManPage(app)};
  return std::nullopt;
}

Command CommandOf(const CLI::App& app) {
  if (app.got_subcommand("status")) return Command::kStatus;
  if (app.got_subcommand("doctor")) return Command::kDoctor;
  if (app.got_subcommand("cables")) return Command::kCables;
  if (app.got_subcommand("explain")) return Command::kExplain;
  if (app.got_subcommand("observe")) return Command::kObserve;
  if (app.got_subcommand("topology")) return Command::kTopology;
  if (app.got_subcommand("plan")) return Command::kPlan;
  if (app.got_subcommand("lint")) return Command::kLint;
  if (app.got_subcommand("switch"))
    return app.get_subcommand("switch")->got_subcommand("render") ? Command::kSwitchRender
                                                                  : Command::kSwitchCompare;
  if (app.got_subcommand("check")) return Command::kCheck;
  if (app.got_subcommand("bench")) return Command::kBench;
  if (app.got_subcommand("record")) return Command::kRecord;
  if (app.got_subcommand("wait")) return Command::kWait;
  if (app.got_subcommand("prepare")) return Command::kPrepare;
  if (app.got_subcommand("release")) return Command::kRelease;
  const CLI::App* const fabric = app.get_subcommand("fabric");
  if (fabric->got_subcommand("design")) return Command::kDesign;
  return fabric->got_subcommand("import") ? Command::kImport : Command::kFabric;
}

// What `version` prints: a line, or for scripts {"version": "0.1.0"}.
Output VersionOf(Format format) {
  if (format == Format::kText) return {.out = VersionLine() + "\n"};
  const crds::Json json{{"version", std::string(base::kVersion)}};
  return {.out = Printed(json, format)};
}

// Whether the words of a command go together: who mistyped one is told so at once, and not that a kubeconfig or a
// file is missing first.
base::Status WordsGoTogether(const Flags& flags) {
  if (!flags.request_timeout.empty()) {
    TRY(ParseRequestTimeout(flags.request_timeout));
  }
  if (flags.all_namespaces && !flags.explain.ns.empty()) {
    return base::Fail(base::Code::kInvalid,
                      "--all-namespaces and --namespace contradict each other: leave one out");
  }
  if (!flags.as_groups.empty() && flags.as.empty()) {
    return base::Fail(base::Code::kInvalid, "--as-group says more of whom --as names: give --as USER too");
  }
  switch (flags.command) {
    case Command::kExplain:
      return CheckWords(flags.explain);
    case Command::kObserve:
      return CheckWords(flags.observed);
    case Command::kCheck:
      return CheckWords(flags.check);
    case Command::kBench:
      return CheckWords(flags.bench);
    case Command::kPrepare:
      return CheckWords(flags.prepare);
    case Command::kRelease:
      return CheckWords(flags.release);
    default:
      return {};
  }
}

void WantNames(const NamesWanted& names, Flags& flags) {
  flags.command = Command::kComplete;
  flags.names = names;
  flags.kubeconfig = names.kubeconfig;
  flags.context = names.context;
  flags.as = names.as;
  flags.as_groups = names.as_groups;
  flags.explain.ns = names.ns;
}

}  // namespace

CommandLine ReadCommandLine(int argc, const char* const* argv, std::size_t width) {
  CommandLine line;
  std::string output = "table";
  CLI::App app(kAbout, "kubectl heddle");
  DefineProgram(app, line.flags, output);
  Words words(argv + std::min(argc, 1), argv + argc);
  if (!words.empty() && words.front() == "__complete") {  // by kCompletionFile
    words.erase(words.begin());
    if (words.size() > 1 && words.front() == "help") words.erase(words.begin());
    const Completion completion = Complete(app, words);
    if (completion.names) {
      WantNames(*completion.names, line.flags);
    } else {
      line.instead = Output{.out = Printed(completion)};
    }
    return line;
  }
  if (!words.empty() && words.front() == "help") {  // as of kubectl itself: help COMMAND is COMMAND --help
    words.erase(words.begin());
    if (const std::string wrong = WrongWord(app, words); !wrong.empty()) {
      line.instead = Refused(app, words, wrong);
      return line;
    }
    words.emplace_back("--help");
  }
  try {
    app.parse(Words(words.rbegin(), words.rend()));  // it takes them from the back
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      line.instead = Refused(app, words, Sentence(app, words, error));
      return line;
    }
    // The parser takes a mistyped command for none, and would show the help of all.
    if (const std::string wrong = WrongWord(app, words); !wrong.empty()) {
      line.instead = Refused(app, words, wrong);
      return line;
    }
    std::ostringstream out, err;
    app.exit(error, out, err);
    line.instead = Output{.out = HelpText(out.str(), width)};
    return line;
  }
  line.instead = SaidAtOnce(app);
  if (line.instead) return line;
  line.flags.command = CommandOf(app);
  if (output == "json") {
    line.flags.format = Format::kJson;
  } else if (output == "yaml") {
    line.flags.format = Format::kYaml;
  } else if (output != "table") {
    line.instead = Refused(app, words, "--output \"" + output + "\": write table, json or yaml");
  }
  if (line.instead) return line;
  if (app.got_subcommand("version")) {
    line.instead = VersionOf(line.flags.format);
  } else if (IsMisplaced(line.flags)) {
    line.instead =
        Refused(app, words,
                "`fabric --topology` shows what is in a file, and says nothing to `import` and `design`: "
                "leave it out, or write it behind `design`");
  } else if (const base::Status together = WordsGoTogether(line.flags); !together) {
    line.instead = Refused(app, words, together.error().message);
  }
  return line;
}

}  // namespace heddle::cli
