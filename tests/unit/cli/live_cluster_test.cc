#include "cli/live_cluster.h"

#include <gtest/gtest.h>

#include "tests/support/fake_clock.h"
#include "tests/support/memory_file_tree.h"

namespace heddle::cli {
namespace {

// What a person reads whose kubeconfig cannot be used.
std::string Said(const kube::ConfigSources& sources) {
  test::FakeClock clock;
  test::MemoryFileTree files;
  files.Write("a",
              "current-context: main\ncontexts:\n- name: main\n  context: {cluster: c}\n"
              "clusters:\n- name: c\n  cluster: {server: 'https://10.0.0.1:6443'}\n");
  const auto config = kube::LoadConfig(sources, files, clock);
  EXPECT_FALSE(config);
  if (config) return "";
  const Output output = NoCluster(sources, config.error());
  EXPECT_EQ(output.exit_code, Output::kFailed);
  EXPECT_EQ(output.out, "");
  return output.err;
}

TEST(NoCluster, NamesWhatWasTried) {
  EXPECT_EQ(Said({.home = "/home/me"}),
            "Error: no kubeconfig was found at /home/me/.kube/config; give --kubeconfig FILE\n");
  EXPECT_EQ(Said({.kubeconfig_env = "/nope"}),
            "Error: no kubeconfig was found at /nope; mend $KUBECONFIG, or give --kubeconfig FILE\n");
}

TEST(NoCluster, NamesTheContextThatWasAskedForAndThePodsAccount) {
  EXPECT_EQ(
      Said({.home = "/home/me", .context = "prod", .service_host = "10.0.0.1", .service_port = "443"}),
      "Error: the context \"prod\": no kubeconfig was found at /home/me/.kube/config; give --kubeconfig "
      "FILE\n");
  const std::string pod =
      Said({.home = "/home/me", .service_host = "10.0.0.1", .service_port = "443", .like_kubectl = true});
  EXPECT_TRUE(
      pod.starts_with("Error: no kubeconfig was found at /home/me/.kube/config, and in this pod: read the "
                      "service account's CA: "))
      << pod;
}

TEST(NoCluster, AdvisesNobodyToGiveWhatWasGiven) {
  const std::string file = Said({.kubeconfig_flag = "/nope"});
  EXPECT_NE(file.find("/nope"), std::string::npos) << file;
  EXPECT_EQ(file.find("give --kubeconfig"), std::string::npos) << file;
  EXPECT_EQ(Said({.kubeconfig_flag = "/a", .context = "other"}),
            "Error: the kubeconfig /a has no context \"other\"; it has main\n");
}

}  // namespace
}  // namespace heddle::cli
