#include "cli/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/counted.h"
#include "cli/advice.h"
#include "cli/named_gang.h"
#include "cli/object_documents.h"
#include "crds/pod_templates.h"
#include "crds/train_job.h"
#include "kube/object.h"

namespace heddle::cli {
namespace {

using crds::CheckedWorkload;
using crds::WorkloadFinding;
using crds::WorkloadTemplate;

constexpr std::size_t kMaxTargets = 10'000;
constexpr int kMostGpus = 1024;  // of a node

struct LookedAt {
  CheckedWorkload checked;
  std::optional<Landing> landing;  // where it was asked for
  std::optional<NamedGang> gang;   // of a Pod that names one
  std::string pod;                 // its name then
};

struct Looked {
  std::vector<LookedAt> workloads;
  std::vector<std::string> notes;
  std::vector<base::Error> unread;  // sentences that name the target
};

// An object of a file that says nothing without another one.
struct Half {
  std::string file;
  Json object;
  bool used = false;
};

// A Pod of a file, of which its PodGroup says how many there are.
struct GroupedPod {
  std::string file;
  Json object;
  crds::PodGroupRef group;
};

class Looking {
 public:
  Looking(const crds::WorkloadGround& ground, const CheckSources& sources)
      : ground_(ground), sources_(sources) {}

  Looked Run(const CheckOptions& options) {
    for (const std::string& target : options.targets) {
      const auto workload = LiveWorkloadOf(target);
      const base::Status done = workload ? Live(target, *workload) : File(target);
      if (!done) looked_.unread.push_back(done.error());
    }
    TakeGroupedPods();
    TakeTrainJobs();
    for (const auto& [named, times] : named_) {
      if (times < 2) continue;
      looked_.notes.push_back(fmt::format(
          "{} stands {} times in what was given: each is looked at, but a cluster has one of a name",
          named.second, times));
    }
    return std::move(looked_);
  }

 private:
  base::Status Live(const std::string& target, const LiveWorkload& workload) {
    ASSIGN_OR_RETURN(const Json object, sources_.live(workload));
    if (!Take(target, object, "", LiveGroup(target, object)))
      return base::Fail(base::Code::kInvalid, target + ": there is no pod template in it");
    return {};
  }

  crds::PodGroupFacts LiveGroup(const std::string& target, const Json& object) {
    const auto ref = crds::PodGroupOf(object);
    if (!ref) return {};
    const base::Result<Json> group = sources_.group(*ref);
    if (group) return crds::FactsOf(*group);
    looked_.notes.push_back(fmt::format(
        "{}: how many pods its PodGroup {} has could not be read, so whether its parallelism makes "
        "their GPUs is not said: {}",
        target, ref->name, group.error().message));
    return {};
  }

  base::Status File(const std::string& target) {
    const std::string path = InputName(target);
    auto read = sources_.read(target);
    if (!read) {
      base::Error error = std::move(read).error();
      if (error.code == base::Code::kNotFound) error.message += MeantInCluster(target);
      return base::Fail(std::move(error));
    }
    const std::string text = *std::move(read);
    TRY(IsText(target, text, "Kubernetes objects"));
    std::map<std::string, int> others;
    bool any = false;
    TRY(ForEachObject(text, nullptr,
                      [&](const Json& object) -> base::Status {
                        if (!TakeFromFile(path, object)) {
                          const std::string kind = kube::StringAt(object, {"kind"});
                          ++others[kind.empty() ? "object without a kind" : kind];
                          return {};
                        }
                        any = true;
                        return {};
                      }),
        path);
    for (const auto& [kind, count] : others)
      looked_.notes.push_back(fmt::format("{}: {} of kind {} left out: no pod template", path, count, kind));
    if (any) return {};
    return base::Fail(base::Code::kInvalid,
                      path + ": there is no pod and no object with a pod template in it");
  }

  // Whether it is something to look at, by itself or once all files are read.
  bool TakeFromFile(const std::string& path, const Json& object) {
    if (!TakeByKind(path, object)) return false;
    const std::string name = kube::Name(object);  // empty: the cluster makes one up
    if (!name.empty()) {
      ++named_[{kube::StringAt(object, {"apiVersion"}),
                kube::StringAt(object, {"kind"}) + " " + kube::KeyOf(object).ToString()}];
    }
    return true;
  }

  bool TakeByKind(const std::string& path, const Json& object) {
    if (crds::IsTrainJob(object)) {
      train_jobs_.push_back({path, object});
    } else if (crds::IsTrainingRuntime(object)) {
      runtimes_.push_back({path, object});
    } else if (crds::IsPodGroup(object)) {
      groups_.push_back(object);
    } else if (const auto group = crds::PodGroupOf(object); group && !crds::PodTemplatesOf(object).empty()) {
      grouped_.push_back({path, object, *group});
    } else {
      return Take(path, object);
    }
    return true;
  }

  // Pods of a PodGroup are as many as it says, in whatever file that stands; of one that stands in none they are taken
  // for all that there are.
  void TakeGroupedPods() {
    std::map<crds::PodGroupRef, std::int64_t> here;
    std::set<std::pair<crds::PodGroupRef, std::string>> counted;  // two of one name are one pod
    for (const GroupedPod& one : grouped_) {
      if (crds::CheckWorkload(one.object, ground_).templates.empty()) continue;
      const std::string name = kube::Name(one.object);
      if (name.empty() || counted.emplace(one.group, name).second) ++here[one.group];
    }
    std::set<crds::PodGroupRef> missing;
    for (const GroupedPod& one : grouped_) {
      const auto group = std::find_if(groups_.begin(), groups_.end(), [&one](const Json& object) {
        return crds::IsNamed(object, one.group);
      });
      if (group == groups_.end()) missing.insert(one.group);
      Take(one.file, one.object, "",
           group == groups_.end() ? crds::PodGroupFacts{.pods = here[one.group]} : crds::FactsOf(*group));
    }
    for (const crds::PodGroupRef& group : missing) {
      looked_.notes.push_back(
          fmt::format("PodGroup {} is in no file, so its gang is taken for the pods that are: {}", group.name,
                      here[group]));
    }
  }

  // A TrainJob is looked at as the JobSet that comes of it and of its runtime, in whatever file that stands, and a
  // runtime that none of them names as it is.
  void TakeTrainJobs() {
    for (const Half& job : train_jobs_) {
      const auto runtime = std::find_if(runtimes_.begin(), runtimes_.end(), [&job](const Half& one) {
        return crds::Names(job.object, one.object);
      });
      CheckedWorkload alone = crds::CheckWorkload(job.object, ground_);
      if (runtime != runtimes_.end()) {
        runtime->used = true;
        TakeMade(job, alone.name, runtime->object);
      } else if (alone.findings.empty()) {
        looked_.notes.push_back(fmt::format("{}: {} left out: it asks for no GPU", job.file, alone.name));
      } else {
        LookedAt one;
        if (sources_.ground != nullptr) {
          one.landing = Landing{.workload = alone.name,
                                .why_not_asked = "its pods are made from a runtime that is not here"};
        }
        one.checked = std::move(alone);
        looked_.workloads.push_back(std::move(one));
      }
    }
    const Json nothing = Json::object();
    for (const Half& one : runtimes_) {
      if (!one.used) TakeMade({one.file, nothing}, crds::CheckWorkload(one.object, ground_).name, one.object);
    }
  }

  void TakeMade(const Half& job, const std::string& name, const Json& runtime) {
    if (Take(job.file, crds::JobSetOf(job.object, runtime), name)) return;
    looked_.unread.push_back(
        {base::Code::kInvalid, fmt::format("{}: {} has no pod template", job.file, name), std::nullopt});
  }

  // Whether it is something to look at. `name`: of what it was made from; empty = its own. `group`: of a pod.
  bool Take(const std::string& target, const Json& object, const std::string& name = "",
            const crds::PodGroupFacts& group = {}) {
    if (crds::PodTemplatesOf(object).empty()) return false;
    CheckedWorkload checked = crds::CheckWorkload(object, ground_, group);
    if (!name.empty()) checked.name = name;
    if (checked.templates.empty()) {
      looked_.notes.push_back(fmt::format("{}: {} left out: it asks for no GPU", target, checked.name));
      return true;
    }
    LookedAt one;
    one.gang = NamedGangOf(object);
    if (one.gang) one.pod = kube::Name(object).empty() ? "a pod without a name" : kube::Name(object);
    if (sources_.ground != nullptr) {
      one.landing =
          one.gang ? LandingOfGang(*one.gang, object, checked) : LandingOf(object, checked, *sources_.ground);
    }
    one.checked = std::move(checked);
    looked_.workloads.push_back(std::move(one));
    return true;
  }

  // Of however many pods of a gang, the planner is asked once.
  Landing LandingOfGang(const NamedGang& gang, const Json& pod, const CheckedWorkload& checked) {
    std::vector<std::pair<Json, Landing>>& known = landings_[gang];
    Json words = LandingWords(pod, checked);
    for (const auto& [said, landing] : known) {
      if (said == words) return landing;
    }
    known.emplace_back(std::move(words), LandingOf(pod, checked, *sources_.ground));
    return known.back().second;
  }

  const crds::WorkloadGround& ground_;
  const CheckSources& sources_;
  std::vector<Half> train_jobs_, runtimes_;
  std::vector<GroupedPod> grouped_;
  std::vector<Json> groups_;
  std::map<NamedGang, std::vector<std::pair<Json, Landing>>> landings_;  // by LandingWords
  std::map<std::pair<std::string, std::string>, int> named_;  // apiVersion, and "Job train/llama": how often
  Looked looked_;
};

// Whether a server is to blame, and not the words or the files.
bool IsOfCluster(base::Code code) {
  return code != base::Code::kInvalid && code != base::Code::kNotFound && code != base::Code::kTooLarge;
}

bool AnyFinding(const Looked& looked) {
  return std::any_of(looked.workloads.begin(), looked.workloads.end(),
                     [](const LookedAt& one) { return !one.checked.findings.empty(); });
}

// A finding, and whose it is: a workload's, or that of pods of one gang, of which the same is said once.
struct ToldFinding {
  const WorkloadFinding* finding = nullptr;
  std::vector<const LookedAt*> of;
};

std::vector<ToldFinding> ToldOnce(const Looked& looked) {
  using Words = std::tuple<NamedGang, std::string_view, std::string, std::string, std::string>;
  std::vector<ToldFinding> told;
  std::map<Words, std::size_t> known;  // in `told`
  for (const LookedAt& one : looked.workloads) {
    for (const WorkloadFinding& finding : one.checked.findings) {
      std::size_t at = told.size();
      if (one.gang) {
        const Words words(*one.gang, finding.rule->id, finding.where, finding.fact, finding.remedy);
        at = known.emplace(words, told.size()).first->second;
      }
      if (at == told.size()) told.push_back({&finding, {}});
      std::vector<const LookedAt*>& of = told[at].of;
      if (of.empty() || of.back() != &one) of.push_back(&one);
    }
  }
  return told;
}

std::size_t Count(const std::vector<ToldFinding>& told, bool errors) {
  return std::size_t(std::count_if(told.begin(), told.end(), [errors](const ToldFinding& one) {
    return one.finding->rule->error == errors;
  }));
}

std::string Summary(const Looked& looked, const std::vector<ToldFinding>& told,
                    const crds::WorkloadGround& ground) {
  // That nothing was found would be no news of files that nobody could read, or that hold nothing.
  if (looked.workloads.empty()) return looked.unread.empty() ? "no workload asks for a GPU\n" : "";
  const std::size_t errors = Count(told, true), warnings = Count(told, false);
  const std::string workloads = base::Counted(looked.workloads.size(), "workload");
  const std::string where =
      fmt::format("for nodes of {} GPUs with {}", ground.gpus_per_node, ground.roce ? "RoCE" : "InfiniBand");
  if (errors + warnings == 0) return fmt::format("{} looked at, {}: nothing was found\n", workloads, where);
  return fmt::format("{} and {} in {}, {}\n", base::Counted(errors, "error"),
                     base::Counted(warnings, "warning"), workloads, where);
}

// Paths of templates say which only where there are several.
std::string WhereOf(const CheckedWorkload& workload, const std::string& path) {
  return workload.templates.size() > 1 && !path.empty() ? workload.name + " " + path : workload.name;
}

// "Job train/llama", "16 pods of PodGroup train/llama: llama-0, llama-1, … 14 more"
std::string WhereOf(const ToldFinding& told) {
  if (told.of.size() == 1) return WhereOf(told.of.front()->checked, told.finding->where);
  std::vector<std::string> names;
  names.reserve(told.of.size());
  for (const LookedAt* one : told.of) names.push_back(one->pod);
  return fmt::format("{} of {}: {}", base::Counted(names.size(), "pod"), Title(*told.of.front()->gang),
                     FirstNames(names));
}

// Each once, that of a gang for all of its pods.
std::string LandingsText(const Looked& looked, const Style& style) {
  struct Told {
    const LookedAt* first = nullptr;
    std::vector<std::string> pods;
  };
  std::vector<Told> told;
  // In `told`; several where pods of one gang differ in what decides it.
  std::map<NamedGang, std::vector<std::size_t>> of_gang;
  for (const LookedAt& one : looked.workloads) {
    if (!one.landing) continue;
    if (!one.gang) {
      told.push_back({&one, {}});
      continue;
    }
    std::vector<std::size_t>& known = of_gang[*one.gang];
    const auto same = std::find_if(known.begin(), known.end(),
                                   [&](std::size_t at) { return told[at].first->landing == one.landing; });
    if (same != known.end()) {
      told[*same].pods.push_back(one.pod);
    } else {
      known.push_back(told.size());
      told.push_back({&one, {one.pod}});
    }
  }
  std::string text;
  for (const Told& one : told) {
    Landing landing = *one.first->landing;
    if (one.first->gang && of_gang[*one.first->gang].size() > 1) {
      landing.workload +=
          fmt::format(" as {} {} it", FirstNames(one.pods), one.pods.size() == 1 ? "has" : "have");
    }
    text += LandingText(landing, style) + "\n";
  }
  return text;
}

std::string TextOf(const Looked& looked, const crds::WorkloadGround& ground, const Style& style) {
  const std::vector<std::string> header{"WORKLOAD", "PODS", "GPUS", "RDMA", "FINDINGS"};
  const std::vector<std::size_t> below{3};  // RDMA
  std::vector<std::vector<Cell>> rows;
  for (const LookedAt& looked_at : looked.workloads) {
    const CheckedWorkload& workload = looked_at.checked;
    for (const WorkloadTemplate& one : workload.templates) {
      const auto findings = std::count_if(
          workload.findings.begin(), workload.findings.end(), [&](const WorkloadFinding& finding) {
            return finding.where == one.where || (finding.where.empty() && &one == workload.templates.data());
          });
      rows.push_back({WhereOf(workload, one.where), std::to_string(one.pods),
                      std::to_string(one.pods * one.gpus),
                      one.rdma.empty() ? "-" : fmt::format("{}", fmt::join(one.rdma, ",")),
                      Cell(findings == 0 ? "-" : std::to_string(findings),
                           findings == 0 ? Colour::kNone : Colour::kBad)});
    }
  }
  std::string text = rows.empty() ? std::string() : ColumnsText(header, rows, below, style) + "\n";
  const std::vector<ToldFinding> told = ToldOnce(looked);
  for (const ToldFinding& one : told) {
    const WorkloadFinding& finding = *one.finding;
    text += FoundText({.error = finding.rule->error,
                       .rule = std::string(finding.rule->id),
                       .where = WhereOf(one),
                       .sentence = fmt::format("{}: {}", finding.fact, finding.rule->why),
                       .remedy = finding.remedy},
                      style);
  }
  text += LandingsText(looked, style);
  return ProseText(text + Summary(looked, told, ground), style);
}

Json JsonOf(const Looked& looked, const crds::WorkloadGround& ground) {
  Json workloads = Json::array();
  for (const LookedAt& looked_at : looked.workloads) {
    const CheckedWorkload& workload = looked_at.checked;
    Json templates = Json::array(), findings = Json::array();
    for (const WorkloadTemplate& one : workload.templates) {
      templates.push_back(
          {{"where", one.where}, {"pods", one.pods}, {"gpusPerPod", one.gpus}, {"rdma", one.rdma}});
    }
    for (const WorkloadFinding& finding : workload.findings) {
      findings.push_back({{"rule", finding.rule->id},
                          {"severity", finding.rule->error ? "Error" : "Warning"},
                          {"where", finding.where},
                          {"fact", finding.fact},
                          {"why", finding.rule->why},
                          {"remedy", finding.remedy}});
    }
    workloads.push_back({{"workload", workload.name},
                         {"templates", std::move(templates)},
                         {"findings", std::move(findings)}});
    // Scripts read each workload by itself, so what pods of one gang share stands at each of them.
    if (looked_at.gang) {
      workloads.back()["gang"] = {{"namespace", looked_at.gang->ns}, {"group", looked_at.gang->group}};
    }
    if (looked_at.landing) workloads.back()["landing"] = LandingJson(*looked_at.landing);
  }
  Json unread = Json::array();
  for (const base::Error& error : looked.unread) unread.push_back(error.message);
  return {{"workloads", std::move(workloads)},
          {"unreadable", std::move(unread)},
          {"nodes", {{"gpus", ground.gpus_per_node}, {"transport", ground.roce ? "RoCE" : "InfiniBand"}}}};
}

Output Rules(const OutputOptions& look) {
  Output output;
  Table table({"RULE", "SEVERITY", "FORBIDS"});
  Json rules = Json::array();
  for (const crds::WorkloadRule& rule : crds::WorkloadRules()) {
    const char* severity = rule.error ? "Error" : "Warning";
    table.Add({std::string(rule.id), severity, std::string(rule.forbids)});
    rules.push_back({{"rule", rule.id},
                     {"severity", severity},
                     {"forbids", rule.forbids},
                     {"why", rule.why},
                     {"remedy", rule.remedy}});
  }
  output.out = look.format == Format::kText ? table.Format(look.style)
                                            : Printed({{"rules", std::move(rules)}}, look.format);
  return output;
}

}  // namespace

crds::WorkloadGround GroundOf(const CheckOptions& options) {
  crds::WorkloadGround ground;
  ground.gpus_per_node = options.gpus_per_node.value_or(ground.gpus_per_node);
  ground.roce = !options.infiniband;
  for (const std::string& name : options.rdma_resources) ground.rdma_resources.push_back({.name = name});
  return ground;
}

base::Status CheckWords(const CheckOptions& options) {
  const auto wrong = [](std::string why) { return base::Fail(base::Code::kInvalid, std::move(why)); };
  if (options.rules) return {};
  if (options.targets.empty()) return wrong("name at least one FILE or KIND/NAME to look at, as job/llama");
  if (options.targets.size() > kMaxTargets) return wrong(fmt::format("name at most {} files", kMaxTargets));
  const int gpus = options.gpus_per_node.value_or(1);
  if (gpus < 1 || gpus > kMostGpus)
    return wrong(fmt::format("--gpus-per-node: write a number from 1 to {}", kMostGpus));
  return {};
}

Output Check(const CheckOptions& options, const crds::WorkloadGround& ground, const CheckSources& sources,
             const OutputOptions& look) {
  if (options.rules) return Rules(look);
  const base::Status words = CheckWords(options);
  if (!words) return Failure(words.error());
  const Looked looked = Looking(ground, sources).Run(options);
  Output output;
  output.out = look.format == Format::kText ? TextOf(looked, ground, look.style)
                                            : Printed(JsonOf(looked, ground), look.format);
  output.err += NoteLines(looked.notes);
  std::set<std::string> next;  // the same server fails all of them in the same way
  bool asked_in_vain = false;
  for (const base::Error& error : looked.unread) {
    output.err += "Error: " + WithoutControls(error.message) + "\n";
    next.insert(NextStep(error));
    asked_in_vain = asked_in_vain || IsOfCluster(error.code);
  }
  for (const std::string& step : next) output.err += step.empty() ? "" : step + "\n";
  if (asked_in_vain) {
    output.exit_code = Output::kFailed;
  } else if (!looked.unread.empty()) {
    output.exit_code = Output::kUsage;
  } else if (AnyFinding(looked)) {
    output.exit_code = Output::kRefused;
  }
  return output;
}

}  // namespace heddle::cli
