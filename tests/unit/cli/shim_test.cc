// tools/kubectl-heddle.sh, with a kubectl of our own that writes down how it was called.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace heddle::cli {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

struct Ran {
  int exit_code = 0;
  std::string out, err;
};

class Shim : public testing::Test {
 protected:
  Shim() {
    std::string pattern = (fs::path(testing::TempDir()) / "heddle-shim-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    fs::create_directory(folder_ / "bin");
    // Says each word on a line of its own, then what came by standard input.
    Write("bin/kubectl", R"(#!/bin/sh
case "$*" in
  "config view"*) printf team; exit 0 ;;
  *"get deploy heddle-cli"*) exit ${DEPLOYMENT:-0} ;;
  *"get pods -l"*) printf %s "${AGENT-heddle-nodeagent-x}"; exit 0 ;;
  *"get pod heddle-nodeagent-x"*)
    printf '%s\n' heddle-nodeagent '--node=$(NODE_NAME)' --nvml=/host/ --listen=:1
    printf '%s\n' '--uncabled=mlx5_1,*:[ab]*' --storage '[ab]*'
    exit 0 ;;
esac
for word in "$@"; do printf '[%s]' "$word"; done
printf '\n'
cat
exit ${STATUS:-0}
)");
    fs::permissions(folder_ / "bin/kubectl", fs::perms::owner_all);
    Write("policy.yaml", "kind: LosslessPolicy\n");
    Write("a b.json", "{}\n");
  }
  ~Shim() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  std::string Read(const std::string& name) const {
    std::ifstream file(folder_ / name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  // `words` as a shell takes them, with what stands behind them.
  Ran Run(const std::string& words, const std::string& environment = "") {
    const std::string program = fs::absolute(HEDDLE_SOURCE_DIR "/tools/kubectl-heddle.sh").string();
    const std::string command = "cd '" + folder_.string() + "' && PATH='" + folder_.string() +
                                "/bin':$PATH " + environment + " '" + program + "' " + words +
                                " > out 2> err";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, Read("out"), Read("err")};
  }

  static std::string Exec(const std::string& words, const std::string& how = "") {
    return "[-n][heddle-system][exec]" + how + "[deploy/heddle-cli][-c][cli][--][kubectl-heddle]" + words +
           "\n";
  }

  fs::path folder_;
};

TEST_F(Shim, StartsTheProgramInItsPod) {
  EXPECT_EQ(Run("status --all").out, Exec("[status][--all]"));
  EXPECT_EQ(Run("status -n 'a b' -o json").out, Exec("[status][-n][a b][-o][json]"));
  EXPECT_EQ(Run("").out, Exec(""));
  EXPECT_EQ(Run("status", "HEDDLE_NAMESPACE=fabric").out,
            "[-n][fabric][exec][deploy/heddle-cli][-c][cli][--][kubectl-heddle][status]\n");
}

TEST_F(Shim, KeepsKubectlsOwnWordsForIt) {
  EXPECT_EQ(Run("--context prod status --kubeconfig=/a/k").out,
            "[--kubeconfig][/a/k][--context][prod]" + Exec("[status]"));
  EXPECT_EQ(Run("status --kubeconfig /a/k").out, "[--kubeconfig][/a/k]" + Exec("[status]"));
}

TEST_F(Shim, LetsNobodyBelieveThatThePodAsksAsAnother) {
  for (const char* words : {"status --as ada", "--as=ada status", "status --as-group dev"}) {
    const Ran ran = Run(words);
    EXPECT_EQ(ran.exit_code, 2) << words;
    EXPECT_EQ(ran.out, "") << words;
    EXPECT_NE(ran.err.find("the pod answers as the account heddle-cli"), std::string::npos) << ran.err;
  }
  EXPECT_EQ(Run("status -A").out, Exec("[status][-A]"));
}

TEST_F(Shim, AsksInYourNamespace) {
  EXPECT_EQ(Run("explain job/llama").out, Exec("[explain][job/llama][-n][team]"));
  EXPECT_EQ(Run("explain job/llama -n other").out, Exec("[explain][job/llama][-n][other]"));
  EXPECT_EQ(Run("-n other explain job/llama").out, Exec("[-n][other][explain][job/llama]"));
  EXPECT_EQ(Run("--request-timeout 5s explain job/llama").out,
            Exec("[--request-timeout][5s][explain][job/llama][-n][team]"));
}

TEST_F(Shim, HandsAFileIn) {
  EXPECT_EQ(Run("lint policy.yaml").out, Exec("[lint][-]", "[-i]") + "kind: LosslessPolicy\n");
  EXPECT_EQ(Run("lint --resolved policy.yaml").out,
            Exec("[lint][--resolved][-]", "[-i]") + "kind: LosslessPolicy\n");
  EXPECT_EQ(Run("plan --topology 'a b.json' --parallelism tp=8").out,
            Exec("[plan][--topology][-][--parallelism][tp=8]", "[-i]") + "{}\n");
  EXPECT_EQ(Run("plan --topology='a b.json'").out, Exec("[plan][--topology=-]", "[-i]") + "{}\n");
  EXPECT_EQ(Run("status --all --topology='a b.json'").out,
            Exec("[status][--all][--topology=-]", "[-i]") + "{}\n");
  EXPECT_EQ(Run("fabric import 'gpu-1=a b.json'").out, Exec("[fabric][import][gpu-1=-]", "[-i]") + "{}\n");
  EXPECT_EQ(Run("fabric import ibnetdiscover:policy.yaml").out,
            Exec("[fabric][import][ibnetdiscover:-]", "[-i]") + "kind: LosslessPolicy\n");
  EXPECT_EQ(Run("fabric import 'topo-m:gpu-1=a b.json'").out,
            Exec("[fabric][import][topo-m:gpu-1=-]", "[-i]") + "{}\n");
  EXPECT_EQ(Run("fabric import slurm-conf:- < policy.yaml").out,
            Exec("[fabric][import][slurm-conf:-]", "[-i]") + "kind: LosslessPolicy\n");
  EXPECT_EQ(Run("prepare -fpolicy.yaml --gpu-resource policy.yaml").out,
            Exec("[prepare][-f-][--gpu-resource][policy.yaml]", "[-i]") + "kind: LosslessPolicy\n");
  EXPECT_EQ(Run("prepare -f- < policy.yaml").out, Exec("[prepare][-f-]", "[-i]") + "kind: LosslessPolicy\n");
  EXPECT_EQ(Run("plan --topology=- < 'a b.json'").out, Exec("[plan][--topology=-]", "[-i]") + "{}\n");
  EXPECT_EQ(Run("topology gpu-017 --topology 'a b.json'").out,
            Exec("[topology][gpu-017][--topology][-]", "[-i]") + "{}\n");
  EXPECT_EQ(Run("cables --csv --topology='a b.json'").out,
            Exec("[cables][--csv][--topology=-]", "[-i]") + "{}\n");
  EXPECT_EQ(Run("status --all --topology 'a b.json'").out,
            Exec("[status][--all][--topology][-]", "[-i]") + "{}\n");
  EXPECT_EQ(Run("observe --days 30 --topology='a b.json'").out,
            Exec("[observe][--days][30][--topology=-]", "[-i]") + "{}\n");
  EXPECT_EQ(Run("status --topology=- < 'a b.json'").out, Exec("[status][--topology=-]", "[-i]") + "{}\n");
  EXPECT_EQ(Run("fabric --topology 'a b.json'").out, Exec("[fabric][--topology][-]", "[-i]") + "{}\n");
  EXPECT_EQ(Run("fabric --topology - < 'a b.json'").out, Exec("[fabric][--topology][-]", "[-i]") + "{}\n");
  EXPECT_EQ(Run("fabric design --topology=-").out, Exec("[fabric][design][--topology=-]"));
  EXPECT_EQ(Run("fabric -o json design --topology -").out, Exec("[fabric][-o][json][design][--topology][-]"));
  EXPECT_EQ(Run("prepare -f policy.yaml").out, Exec("[prepare][-f][-]", "[-i]") + "kind: LosslessPolicy\n");
  EXPECT_EQ(Run("lint - < policy.yaml").out, Exec("[lint][-]", "[-i]") + "kind: LosslessPolicy\n");
  EXPECT_EQ(Run("check --infiniband policy.yaml -n x").out,
            Exec("[check][--infiniband][-][-n][x]", "[-i]") + "kind: LosslessPolicy\n");
}

// The namespace of your kubeconfig is none of the file's: it has its own.
TEST_F(Shim, AsksInEveryNamespaceOfAFile) {
  EXPECT_EQ(Run("explain gang/llama --topology 'a b.json'").out,
            Exec("[explain][gang/llama][--topology][-]", "[-i]") + "{}\n");
  EXPECT_EQ(Run("explain gang/llama --topology='a b.json'").out,
            Exec("[explain][gang/llama][--topology=-]", "[-i]") + "{}\n");
  EXPECT_EQ(Run("explain gang/llama --topology - -n x < 'a b.json'").out,
            Exec("[explain][gang/llama][--topology][-][-n][x]", "[-i]") + "{}\n");
  EXPECT_EQ(Run("bench job/llama --topology 'a b.json'").out,
            Exec("[bench][job/llama][--topology][-]", "[-i]") + "{}\n");
  // The Job is in the cluster, and so in a namespace.
  EXPECT_EQ(Run("check job/llama --topology 'a b.json'").out,
            Exec("[check][job/llama][--topology][-][-n][team]", "[-i]") + "{}\n");
}

// A node, a namespace or an image may be called like a file that lies there.
TEST_F(Shim, TakesNoOtherWordForAFile) {
  Write("gpu-017", "");
  EXPECT_EQ(Run("topology gpu-017").out, Exec("[topology][gpu-017]"));
  EXPECT_EQ(Run("explain gpu-017").out, Exec("[explain][gpu-017][-n][team]"));
  EXPECT_EQ(Run("status -n policy.yaml").out, Exec("[status][-n][policy.yaml]"));
  EXPECT_EQ(Run("lint --rules -n policy.yaml").out, Exec("[lint][--rules][-n][policy.yaml]"));
  EXPECT_EQ(Run("bench --nodes gpu-017 --image policy.yaml -n x").out,
            Exec("[bench][--nodes][gpu-017][--image][policy.yaml][-n][x]"));
}

TEST_F(Shim, KeepsTheProgramsExitCode) {
  EXPECT_EQ(Run("status", "STATUS=3").exit_code, 3);
  EXPECT_EQ(Run("status", "STATUS=3").err, "");
  const Ran none = Run("status", "STATUS=1 DEPLOYMENT=1");
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err, HasSubstr("no Deployment heddle-cli in heddle-system"));
}

TEST_F(Shim, RefusesWhatCannotBeInASentence) {
  for (const auto& [words, sentence] :
       {std::pair("lint policy.yaml 'a b.json'", "one FILE at a time"),
        std::pair("lint - policy.yaml", "one FILE at a time"),
        std::pair("prepare -fpolicy.yaml -f'a b.json'", "one FILE at a time"),
        std::pair("lint policy.yaml -", "standard input is taken by policy.yaml"),
        std::pair("release --all", "release changes jobs"),
        std::pair("fabric design --gpus 8 --topology x.json", "--topology - > FILE"),
        std::pair("record", "NODE is required")}) {
    const Ran ran = Run(words);
    EXPECT_EQ(ran.exit_code, 2) << words;
    EXPECT_EQ(ran.out, "") << words;
    EXPECT_THAT(ran.err, AllOf(HasSubstr("Error: "), HasSubstr(sentence))) << words;
  }
}

TEST_F(Shim, RecordsByTheAgentsPod) {
  EXPECT_EQ(
      Run("record gpu-017 --scrub").out,
      "[-n][heddle-system][exec][heddle-nodeagent-x][-c][nodeagent][--][heddle-nodeagent][--node=gpu-017]"
      "[--nvml=/host/][--uncabled=mlx5_1,*:[ab]*][--storage][[ab]*][record][-][--scrub]\n");
  EXPECT_EQ(Run("record gpu-017", "STATUS=4").exit_code, 4);
  const Ran none = Run("record gpu-017", "AGENT=");
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err, HasSubstr("no agent of Heddle runs on gpu-017"));
}

}  // namespace
}  // namespace heddle::cli
