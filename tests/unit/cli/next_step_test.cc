// Whatever keeps a command from its answer, its last words say what to do next.
#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench.h"
#include "cli/cables.h"
#include "cli/check.h"
#include "cli/doctor.h"
#include "cli/kubectl.h"
#include "cli/observed.h"
#include "cli/record.h"
#include "cli/release.h"
#include "cli/status.h"
#include "tests/unit/cli/from_disk.h"
#include "tests/unit/cli/stage.h"

namespace heddle::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

class CommandsInVain : public Stage {
 protected:
  using Command = std::function<Output()>;

  // Those that Heddle's own kinds answer.
  std::map<std::string, Command> OfHeddlesKinds() {
    return {{"status", [this] { return RunStatus(client, clock, {}, {}, {}); }},
            {"cables", [this] { return RunCables(client, {}, {}, {}); }},
            {"explain gang/llama", [this] { return ExplainJob("gang/llama"); }},
            {"observe", [this] { return RunObserved(client, {}, clock.WallNow(), {}, {}); }},
            {"topology", [this] { return RunTopology(client, "", {}, {}); }},
            {"fabric", [this] { return RunFabric(client, {}, {}); }},
            {"check --where", [this] { return Look(true); }},
            {"bench", [this] {
               const BenchOptions options{.target = "gang/llama", .ns = "train", .image = "nccl-tests"};
               return RunBench(client, options, FromDisk, {}, {});
             }}};
  }

  std::map<std::string, Command> All() {
    std::map<std::string, Command> all = OfHeddlesKinds();
    all["check"] = [this] { return Look(false); };
    all["explain job/llama"] = [this] { return ExplainJob("job/llama"); };
    all["doctor"] = [this] { return RunDoctor(client, clock, {}, {}); };
    all["release"] = [this] { return RunRelease(client, clock, {.all = true}, {}, {}); };
    all["record"] = [this] {
      const RunKubectl kubectl = [](const std::vector<std::string>&) -> base::Result<KubectlEnd> {
        return KubectlEnd{};
      };
      return RunRecord(client, {.node = "gpu-017"}, kubectl, {}, {});
    };
    return all;
  }

  Output Look(bool where) {
    const CheckOptions options{.targets = {"job/llama"}, .ns = "train", .where = where};
    return RunCheck(client, clock, options, FromDisk, {}, {});
  }

  // Every request is answered so; 0 = the connection is refused.
  void AnswerAllWith(int status) {
    server.ClearFaults();
    server.FailNext({.status = status}, 1000);
  }
};

TEST_F(CommandsInVain, SayWhatToDoNext) {
  const std::map<int, std::string> steps{
      {0, "Is the cluster up"},   {401, "Log in again"},      {429, "The API server has more to do"},
      {503, "Is the cluster up"}, {504, "Is the cluster up"}, {403, "Ask for the right"}};
  for (const auto& [status, step] : steps) {
    for (const auto& [name, command] : All()) {
      if (status == 403 && name == "doctor") continue;  // it says check by check what it may not look at
      SCOPED_TRACE(name + ", " + std::to_string(status));
      AnswerAllWith(status);
      const Output output = command();
      EXPECT_EQ(output.exit_code, Output::kFailed) << output.out;
      EXPECT_THAT(output.err, HasSubstr("Error: "));
      EXPECT_THAT(output.err, HasSubstr("\n" + step));
      EXPECT_THAT(output.err, Not(HasSubstr("--request-timeout")))
          << "the server did answer, or nobody listens";
    }
  }
}

TEST_F(CommandsInVain, AskWhetherHeddleIsInstalledWhereItsKindsAreNotServed) {
  Json job = AddJob("llama", 2, "tp=8,dp=2");
  job["spec"]["template"]["spec"]["containers"] = Json::array({{{"name", "trainer"}}});
  server.Put(kube::kJobs, job);
  server.Intercept([](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
    if (request.path.find("/apis/heddle.dev/") == std::string::npos) return std::nullopt;
    return test::StatusResponse(404, "", "the server could not find the requested resource");
  });
  std::map<std::string, Command> commands = OfHeddlesKinds();
  commands["explain job/llama"] = [this] { return ExplainJob("job/llama"); };
  for (const auto& [name, command] : commands) {
    SCOPED_TRACE(name);
    const Output output = command();
    EXPECT_EQ(output.exit_code, Output::kFailed) << output.out;
    EXPECT_THAT(output.err, HasSubstr("\nIs Heddle installed here?"));
  }
  const Output check = Look(false);
  EXPECT_EQ(check.exit_code, Output::kOk) << "a workload can be looked at without Heddle: " << check.err;
  EXPECT_THAT(check.err, HasSubstr("this cluster has no nodetopologies.heddle.dev resource"));
}

}  // namespace
}  // namespace heddle::cli
