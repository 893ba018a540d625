#include "cli/record.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cli/kubectl.h"
#include "stage.h"

namespace heddle::cli {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class RecordCommand : public Stage {
 protected:
  void AddAgent(const std::string& name, const std::string& node, const std::string& phase = "Running",
                const std::string& ns = "heddle-system") {
    Json pod = kube::NewObject(kube::kPods, {ns, name});
    pod["metadata"]["labels"] = {{"app.kubernetes.io/name", "heddle"},
                                 {"app.kubernetes.io/component", "nodeagent"}};
    Json container{{"name", "nodeagent"}};
    container["command"] = Json::array({"heddle-nodeagent", "--node=$(NODE_NAME)", "--nvml=/host/",
                                        "--listen=:9559", "--lldpd-socket=/run/heddle-lldpd/lldpd.socket",
                                        "--labels-file=/run/heddle-labels/labels", "--uncabled=mlx5_1",
                                        "--storage=mlx5_2", "--follow-plans"});
    pod["spec"]["containers"] = Json::array({container});
    pod["spec"]["nodeName"] = node;
    pod["status"]["phase"] = phase;
    server.Put(kube::kPods, pod);
  }

  Output Run(RecordOptions options, const OutputOptions& look = {}) {
    const RunKubectl kubectl = [&](const std::vector<std::string>& arguments) -> base::Result<KubectlEnd> {
      arguments_ = arguments;
      return end_;
    };
    return RunRecord(client, options, kubectl, look, {});
  }

  std::vector<std::string> arguments_;
  base::Result<KubectlEnd> end_ = KubectlEnd{};
};

TEST_F(RecordCommand, RunsTheAgentInItsPod) {
  AddAgent("heddle-nodeagent-a", "gpu-016");
  AddAgent("heddle-nodeagent-b", "gpu-017", "Pending");
  AddAgent("heddle-nodeagent-c", "gpu-017");
  const Output output = Run({.node = "gpu-017", .scrub = true, .kubeconfig = "/k", .context = "prod"});
  EXPECT_EQ(output.exit_code, Output::kOk) << output.err;
  EXPECT_EQ(output.out, "") << "what stands there is the archive";
  EXPECT_THAT(arguments_,
              ElementsAre("--kubeconfig", "/k", "--context", "prod", "-n", "heddle-system", "exec",
                          "heddle-nodeagent-c", "-c", "nodeagent", "--", "heddle-nodeagent", "--node=gpu-017",
                          "--nvml=/host/", "--lldpd-socket=/run/heddle-lldpd/lldpd.socket",
                          "--labels-file=/run/heddle-labels/labels", "--uncabled=mlx5_1", "--storage=mlx5_2",
                          "record", "-", "--scrub"));
  EXPECT_THAT(output.err,
              AllOf(HasSubstr("by its agent, pod heddle-system/heddle-nodeagent-c"), Not(HasSubstr("Note"))));
  EXPECT_THAT(Run({.node = "gpu-017"}).err, HasSubstr("with --scrub it holds others"));
  EXPECT_EQ(arguments_.back(), "-");
}

TEST_F(RecordCommand, TakesAFlagAndItsValueAsTwoWordsToo) {
  AddAgent("heddle-nodeagent-a", "gpu-016");
  server.Edit(kube::kPods, {"heddle-system", "heddle-nodeagent-a"}, [](Json& pod) {
    pod["spec"]["containers"][0]["command"] =
        Json::array({"heddle-nodeagent", "--state-dir", "/var/lib/heddle", "--nvml", "/opt/driver/",
                     "--interval", "30", "--labels-file", "/l=1", "--follow-plans"});
  });
  EXPECT_EQ(Run({.node = "gpu-016"}).exit_code, Output::kOk);
  ASSERT_GE(arguments_.size(), 6u);
  EXPECT_THAT(std::vector<std::string>(arguments_.end() - 6, arguments_.end()),
              ElementsAre("--nvml", "/opt/driver/", "--labels-file", "/l=1", "record", "-"));
}

TEST_F(RecordCommand, LetsKubectlAskAsTheSameUser) {
  AddAgent("heddle-nodeagent-a", "gpu-016");
  EXPECT_EQ(Run({.node = "gpu-016", .as = "ada", .as_groups = {"dev", "ops"}}).exit_code, Output::kOk);
  ASSERT_GE(arguments_.size(), 7u);
  EXPECT_THAT(std::vector<std::string>(arguments_.begin(), arguments_.begin() + 7),
              ElementsAre("--as", "ada", "--as-group", "dev", "--as-group", "ops", "-n"));
}

TEST_F(RecordCommand, FindsAgentsOfAnotherNamespace) {
  AddAgent("heddle-nodeagent-a", "gpu-016", "Running", "fabric");
  EXPECT_EQ(Run({.node = "gpu-016"}).exit_code, Output::kOk);
  EXPECT_EQ(Run({.node = "gpu-016", .ns = "other"}).exit_code, Output::kFailed);
}

TEST_F(RecordCommand, SaysWhereThereIsNoAgent) {
  AddAgent("heddle-nodeagent-a", "gpu-016", "Pending");
  const Output none = Run({.node = "gpu-017"});
  EXPECT_EQ(none.exit_code, Output::kFailed);
  EXPECT_THAT(none.err, AllOf(HasSubstr("no agent of Heddle runs on gpu-017"),
                              HasSubstr("`heddle-nodeagent record DIR` does the same")));
  const Output pending = Run({.node = "gpu-016"});
  EXPECT_THAT(
      pending.err,
      HasSubstr(
          "heddle-nodeagent-a on gpu-016 does not run (Pending): `kubectl -n heddle-system describe pod"));
  EXPECT_THAT(pending.err, Not(HasSubstr("Is the cluster up"))) << "it has answered";
  EXPECT_TRUE(arguments_.empty());
}

TEST_F(RecordCommand, SaysWhatKubectlMadeOfIt) {
  AddAgent("heddle-nodeagent-a", "gpu-016");
  end_ = KubectlEnd{
      1,
      "Error from server (Forbidden): pods \"heddle-nodeagent-a\" is forbidden: User \"eve\" cannot create "
      "resource \"pods/exec\" in API group \"\" in the namespace \"heddle-system\"\n"};
  const Output forbidden = Run({.node = "gpu-016"});
  EXPECT_EQ(forbidden.exit_code, Output::kFailed);
  EXPECT_THAT(forbidden.err, AllOf(HasSubstr("It takes the right to create pods/exec in heddle-system"),
                                   HasSubstr("User \"eve\" cannot create")));
  end_ = KubectlEnd{137, "one\ntwo\nthree\nfour\n"};
  const Output broken = Run({.node = "gpu-016", .scrub = true});
  EXPECT_THAT(broken.err, AllOf(HasSubstr("(kubectl's exit code 137): two three four\n"),
                                HasSubstr("is no whole archive"), HasSubstr("record DIR --scrub")));
  end_ = base::Fail(base::Code::kNotFound, "kubectl cannot be started");
  EXPECT_EQ(Run({.node = "gpu-016"}).exit_code, Output::kFailed);
}

TEST_F(RecordCommand, IsForFilesOnly) {
  AddAgent("heddle-nodeagent-a", "gpu-016");
  const Output terminal = Run({.node = "gpu-016", .to_terminal = true});
  EXPECT_EQ(terminal.exit_code, Output::kUsage);
  EXPECT_THAT(terminal.err, HasSubstr("kubectl heddle record gpu-016 > gpu-016.tar"));
  EXPECT_EQ(Run({.node = "gpu-016"}, {.format = Format::kJson}).exit_code, Output::kUsage);
  EXPECT_EQ(Run({.node = "gpu-016,metadata.name=x"}).exit_code, Output::kUsage);
  EXPECT_TRUE(arguments_.empty());
}

// A kubectl of our own on PATH.
class KubectlChild : public testing::Test {
 protected:
  KubectlChild() : folder_(fs::path(testing::TempDir()) / "heddle-kubectl-XXXXXX") {
    std::string pattern = folder_.string();
    folder_ = ::mkdtemp(pattern.data());
    path_ = std::getenv("PATH");
  }
  ~KubectlChild() override {
    ::setenv("PATH", path_.c_str(), 1);
    fs::remove_all(folder_);
  }
  base::Result<KubectlEnd> Run(const std::string& script) {
    const fs::path program = folder_ / "kubectl";
    std::ofstream(program) << "#!/bin/sh\n" << script << "\n";
    fs::permissions(program, fs::perms::owner_all);
    ::setenv("PATH", (folder_.string() + ":" + path_).c_str(), 1);
    return KubectlToStdout({"-n", "ns with space", "exec"}, {"GREETING=hi", "PATH=" + path_});
  }

  fs::path folder_;
  std::string path_;
};

TEST_F(KubectlChild, WritesItsOutputToOurs) {
  testing::internal::CaptureStdout();
  const auto end = Run(R"(printf 'a\0b'; echo "$2 $GREETING"; cat; echo hm >&2)");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), std::string("a\0b", 3) + "ns with space hi\n");
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->exit_code, 0);
  EXPECT_EQ(end->said, "hm\n");
}

TEST_F(KubectlChild, TellsHowItEnded) {
  EXPECT_EQ(Run("exit 7")->exit_code, 7);
  EXPECT_EQ(Run("kill -9 $$")->exit_code, 137);
  const auto much =
      Run("i=0; while [ $i -lt 3000 ]; do echo 0123456789 >&2; i=$((i+1)); done; echo last >&2");
  EXPECT_LE(much->said.size(), 16'384U);
  EXPECT_TRUE(much->said.ends_with("\nlast\n"));
}

TEST_F(KubectlChild, IsMissedWhereThereIsNone) {
  ::setenv("PATH", folder_.c_str(), 1);
  const auto end = KubectlToStdout({"version"}, {});
  ASSERT_FALSE(end);
  EXPECT_THAT(end.error().message, HasSubstr("kubectl cannot be started"));
}

}  // namespace
}  // namespace heddle::cli
