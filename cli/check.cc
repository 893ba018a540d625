#include "cli/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/counted.h"
#include "cli/advice.h"
#include "cli/object_documents.h"
#include "crds/pod_templates.h"
#include "crds/train_job.h"

namespace heddle::cli {
namespace {

using crds::CheckedWorkload;
using crds::WorkloadFinding;
using crds::WorkloadTemplate;

constexpr std::size_t kMaxTargets = 10'000;
constexpr int kMostGpus = 1024;  // of a node

struct Looked {
  std::vector<CheckedWorkload> workloads;
  std::vector<Landing> landings;  // of each workload, where they were asked for
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

  base::Status File(const std::string& path) {
    ASSIGN_OR_RETURN(const std::string text, sources_.read(path));
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
    for (const GroupedPod& one : grouped_) {
      if (!crds::CheckWorkload(one.object, ground_).templates.empty()) ++here[one.group];
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
        if (sources_.ground != nullptr) {
          looked_.landings.push_back(
              {.workload = alone.name, .why_not_asked = "its pods are made from a runtime that is not here"});
        }
        looked_.workloads.push_back(std::move(alone));
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
    if (sources_.ground != nullptr) looked_.landings.push_back(LandingOf(object, checked, *sources_.ground));
    looked_.workloads.push_back(std::move(checked));
    return true;
  }

  const crds::WorkloadGround& ground_;
  const CheckSources& sources_;
  std::vector<Half> train_jobs_, runtimes_;
  std::vector<GroupedPod> grouped_;
  std::vector<Json> groups_;
  Looked looked_;
};

// Whether a server is to blame, and not the words or the files.
bool IsOfCluster(base::Code code) {
  return code != base::Code::kInvalid && code != base::Code::kNotFound && code != base::Code::kTooLarge;
}

std::size_t Count(const Looked& looked, bool errors) {
  std::size_t count = 0;
  for (const CheckedWorkload& workload : looked.workloads) {
    for (const WorkloadFinding& finding : workload.findings) count += finding.rule->error == errors ? 1 : 0;
  }
  return count;
}

std::string Summary(const Looked& looked, const crds::WorkloadGround& ground) {
  // That nothing was found would be no news of files that nobody could read, or that hold nothing.
  if (looked.workloads.empty()) return looked.unread.empty() ? "no workload asks for a GPU\n" : "";
  const std::size_t errors = Count(looked, true), warnings = Count(looked, false);
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

std::string TextOf(const Looked& looked, const crds::WorkloadGround& ground, const Style& style) {
  const std::vector<std::string> header{"WORKLOAD", "PODS", "GPUS", "RDMA", "FINDINGS"};
  const std::vector<std::size_t> below{3};  // RDMA
  std::vector<std::vector<Cell>> rows;
  for (const CheckedWorkload& workload : looked.workloads) {
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
  for (const CheckedWorkload& workload : looked.workloads) {
    for (const WorkloadFinding& finding : workload.findings) {
      text += FoundText({.error = finding.rule->error,
                         .rule = std::string(finding.rule->id),
                         .where = WhereOf(workload, finding.where),
                         .sentence = fmt::format("{}: {}", finding.fact, finding.rule->why),
                         .remedy = finding.remedy},
                        style);
    }
  }
  for (const Landing& landing : looked.landings) text += LandingText(landing, style) + "\n";
  return ProseText(text + Summary(looked, ground), style);
}

Json JsonOf(const Looked& looked, const crds::WorkloadGround& ground) {
  Json workloads = Json::array();
  for (std::size_t w = 0; w < looked.workloads.size(); ++w) {
    const CheckedWorkload& workload = looked.workloads[w];
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
    if (!looked.landings.empty()) workloads.back()["landing"] = LandingJson(looked.landings[w]);
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
  ground.rdma_resources = options.rdma_resources;
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
    output.err += "Error: " + Printable(error.message) + "\n";
    next.insert(NextStep(error));
    asked_in_vain = asked_in_vain || IsOfCluster(error.code);
  }
  for (const std::string& step : next) output.err += step.empty() ? "" : step + "\n";
  if (asked_in_vain) {
    output.exit_code = Output::kFailed;
  } else if (!looked.unread.empty()) {
    output.exit_code = Output::kUsage;
  } else if (Count(looked, true) + Count(looked, false) > 0) {
    output.exit_code = Output::kRefused;
  }
  return output;
}

}  // namespace heddle::cli
