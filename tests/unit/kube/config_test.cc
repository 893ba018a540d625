#include "kube/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "kube/base64.h"
#include "kube/credentials.h"
#include "tests/support/fake_clock.h"
#include "tests/support/memory_file_tree.h"

namespace heddle::kube {
namespace {

using base::Code;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

std::string HeaderNamed(const std::vector<HttpHeader>& headers, std::string_view name) {
  std::string values;
  for (const HttpHeader& header : headers) {
    if (header.name == name) values += (values.empty() ? "" : ",") + header.value;
  }
  return values;
}

class ConfigTest : public testing::Test {
 protected:
  static std::string File(const std::string& user, const std::string& cluster = "") {
    return "apiVersion: v1\nkind: Config\ncurrent-context: main\n"
           "contexts:\n- name: main\n  context: {cluster: c, user: u, namespace: train}\n"
           "clusters:\n- name: c\n  cluster: {server: 'https://10.0.0.1:6443'" +
           cluster +
           "}\n"
           "users:\n- name: u\n  user: {" +
           user + "}\n";
  }
  base::Result<ClientConfig> Load(const std::string& user, const std::string& cluster = "") {
    files_.Write("home/me/.kube/config", File(user, cluster));
    return LoadKubeconfig({.home = "/home/me"}, files_, clock_);
  }
  std::string Authorization(const ClientConfig& config) {
    const auto headers = config.authenticator->Headers();
    return headers ? HeaderNamed(*headers, "Authorization") : "error: " + headers.error().message;
  }

  test::FakeClock clock_;
  test::MemoryFileTree files_;
};

TEST_F(ConfigTest, ReadsServerNamespaceAndToken) {
  const auto config = Load("token: abc");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->server, "https://10.0.0.1:6443");
  EXPECT_EQ(config->ns, "train");
  EXPECT_EQ(Authorization(*config), "Bearer abc");
  EXPECT_FALSE(config->tls.authority);
}

TEST_F(ConfigTest, ReadsBasicAuthAndImpersonation) {
  const auto config = Load(
      "username: user, password: pass, as: alice, as-uid: '7', as-groups: [g1, g2], "
      "as-user-extra: {'a/b': [x]}");
  ASSERT_TRUE(config) << config.error().message;
  const auto headers = *config->authenticator->Headers();
  EXPECT_EQ(HeaderNamed(headers, "Authorization"), "Basic dXNlcjpwYXNz");
  EXPECT_EQ(HeaderNamed(headers, "Impersonate-User"), "alice");
  EXPECT_EQ(HeaderNamed(headers, "Impersonate-Uid"), "7");
  EXPECT_EQ(HeaderNamed(headers, "Impersonate-Group"), "g1,g2");
  EXPECT_EQ(HeaderNamed(headers, "Impersonate-Extra-a%2Fb"), "x");
}

TEST_F(ConfigTest, ReadsCertificatesFromFilesBesideItAndFromData) {
  files_.Write("home/me/.kube/tls/cert.pem", "CERT");
  files_.Write("home/me/key.pem", "KEY");
  files_.Write("etc/ca.pem", "CA");
  auto config = Load("client-certificate: tls/cert.pem, client-key: ../key.pem",
                     ", certificate-authority: /etc/ca.pem, tls-server-name: api.test");
  ASSERT_TRUE(config) << config.error().message;
  auto pair = config->authenticator->Certificate();
  ASSERT_TRUE(pair) << pair.error().message;
  EXPECT_EQ(pair->certificate, "CERT");
  EXPECT_EQ(pair->key, "KEY");
  EXPECT_EQ(*config->tls.authority(), "CA");
  EXPECT_EQ(config->tls.server_name, "api.test");
  files_.Write("etc/ca.pem", "NEW");
  EXPECT_EQ(*config->tls.authority(), "NEW") << "authorities are replaced while we run";

  config = Load("client-certificate-data: " + EncodeBase64("C") + ", client-key-data: " + EncodeBase64("K"),
                ", certificate-authority-data: " + EncodeBase64("A") + ", insecure-skip-tls-verify: true");
  ASSERT_TRUE(config) << config.error().message;
  pair = config->authenticator->Certificate();
  EXPECT_EQ(pair->certificate + pair->key + *config->tls.authority(), "CKA");
  EXPECT_TRUE(config->tls.insecure_skip_verify);
}

TEST_F(ConfigTest, MergesFilesWhereTheFirstToNameAThingWins) {
  files_.Write("a", "current-context: main\nusers:\n- name: u\n  user: {token: first}\n");
  files_.Write("b", File("token: second"));
  const auto config = LoadKubeconfig({.kubeconfig_env = "/absent:/a::/b"}, files_, clock_);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(Authorization(*config), "Bearer first");
}

TEST_F(ConfigTest, TakesAnotherContext) {
  files_.Write("a", File("token: t") + "\n");
  EXPECT_TRUE(LoadKubeconfig({.kubeconfig_flag = "/a", .context = "main"}, files_, clock_));
  const auto none = LoadKubeconfig({.kubeconfig_flag = "/a", .context = "other"}, files_, clock_);
  EXPECT_EQ(none.error().message, "the kubeconfig /a has no context \"other\"; it has main");
}

TEST_F(ConfigTest, RefusesWithASentence) {
  const std::vector<std::pair<std::string, std::string>> users{
      {"auth-provider: {name: gcp}", "exec plugin"},
      {"client-certificate: a.pem", "come together"},
      {"client-certificate-data: '!!', client-key-data: 'QQ=='", "client-certificate-data is no base64"},
      {"exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x}", "unknown apiVersion"},
      {"exec: {apiVersion: client.authentication.k8s.io/v1}", "command is missing"},
      {"exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Always}",
       "terminal"}};
  for (const auto& [user, sentence] : users) {
    const auto config = Load(user);
    ASSERT_FALSE(config) << user;
    EXPECT_EQ(config.error().code, Code::kInvalid);
    EXPECT_THAT(config.error().message, HasSubstr(sentence));
  }
  EXPECT_EQ(LoadKubeconfig({.home = "/nowhere"}, files_, clock_).error().code, Code::kNotFound);
  EXPECT_EQ(LoadKubeconfig({.home = "/nowhere"}, files_, clock_).error().message,
            "no kubeconfig was found at /nowhere/.kube/config");
  EXPECT_EQ(LoadKubeconfig({.kubeconfig_env = "/nope:/nada"}, files_, clock_).error().message,
            "no kubeconfig was found at /nope and at /nada");
  EXPECT_THAT(LoadKubeconfig({}, files_, clock_).error().message, HasSubstr("nor $HOME is set"));
  EXPECT_EQ(LoadKubeconfig({.kubeconfig_flag = "/nowhere"}, files_, clock_).error().code, Code::kNotFound);
}

TEST_F(ConfigTest, TakesNullForAFieldThatIsNotThere) {
  const auto config = Load("token: t, exec: null, auth-provider: ~");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(Authorization(*config), "Bearer t");
  EXPECT_THAT(Load("token: t, exec: 5").error().message, HasSubstr("unknown apiVersion"));
}

TEST_F(ConfigTest, SaysThatTheRootIsNoFile) {
  for (const char* root : {"/", "//"}) {
    const auto config = LoadKubeconfig({.kubeconfig_flag = root}, files_, clock_);
    ASSERT_FALSE(config) << root;
    EXPECT_THAT(config.error().message, HasSubstr("read the kubeconfig /"));
  }
  EXPECT_FALSE(Load("token: t", ", certificate-authority: /"));
}

TEST_F(ConfigTest, SurvivesFilesThatAreNoConfigAndQuotesNothingOfThem) {
  for (const char* text :
       {"", "null", "[]", "text", "users: 5", "users: [5]", "users:\n- name: u\n  user: s3cret\n",
        "token: s3cret: : {", "\x01\x02", "current-context: [a]", "{s3cret"}) {
    files_.Write("a", text);
    const auto config = LoadKubeconfig({.kubeconfig_flag = "/a"}, files_, clock_);
    ASSERT_FALSE(config) << text;
    EXPECT_THAT(config.error().message, Not(HasSubstr("s3cret")));
  }
  files_.Write("a",
               "current-context: m\ncontexts: [{name: m, context: {cluster: c, user: u}}]\n"
               "clusters: [{name: c, cluster: {server: 'https://a'}}]\nusers: [{name: u, user: s3cret}]\n");
  const auto odd = LoadKubeconfig({.kubeconfig_flag = "/a"}, files_, clock_);
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().message, "the kubeconfig's user \"u\" is not a mapping");
}

TEST_F(ConfigTest, SaysOfWhatIsNoKubeconfigWhatItIsAndNotToNameAContext) {
  for (const char* text : {"Ask Ada for the file.\n", "- a\n- b\n", "kind: Job\nmetadata: {name: s3cret}\n",
                           "token: s3cret\n"}) {
    files_.Write("a", text);
    EXPECT_EQ(LoadKubeconfig({.kubeconfig_flag = "/a"}, files_, clock_).error().message,
              "/a is no kubeconfig: it names no cluster, context or user; take the file that `kubectl` uses")
        << text;
  }
  for (const char* text : {"<!DOCTYPE html>\n<html><body>Log in: please</body></html>\n", "\n <html>\n"}) {
    files_.Write("a", text);
    EXPECT_THAT(LoadKubeconfig({.kubeconfig_flag = "/a"}, files_, clock_).error().message,
                testing::StartsWith("/a is a web page and no kubeconfig: "))
        << text;
  }
  files_.Write("a", "Note: this: is prose\n");
  EXPECT_EQ(LoadKubeconfig({.kubeconfig_flag = "/a"}, files_, clock_).error().message,
            "/a is no kubeconfig: it is no YAML, line 1");
  // Empty ones stand where `kubectl config` has not written yet.
  files_.Write("a", "");
  EXPECT_EQ(LoadKubeconfig({.kubeconfig_flag = "/a"}, files_, clock_).error().message,
            "the kubeconfig /a has no contexts; take the file that `kubectl` uses");
  files_.Write("c", "apiVersion: v1\nkind: Config\n");
  files_.Write("b", File("token: t"));
  EXPECT_TRUE(LoadKubeconfig({.kubeconfig_env = "/a:/c:/b"}, files_, clock_));
}

TEST_F(ConfigTest, ReadsATokenFileOnceAMinute) {
  files_.Write("run/token", "one\n");
  const auto config = Load("tokenFile: /run/token");
  ASSERT_TRUE(config);
  EXPECT_EQ(Authorization(*config), "Bearer one");
  files_.Write("run/token", "two\n");
  clock_.Advance(seconds(59));
  EXPECT_EQ(Authorization(*config), "Bearer one");
  clock_.Advance(seconds(2));
  EXPECT_EQ(Authorization(*config), "Bearer two");
}

TEST_F(ConfigTest, DropsATokenThatWasRejected) {
  files_.Write("run/token", "one");
  const auto config = Load("tokenFile: /run/token");
  EXPECT_EQ(Authorization(*config), "Bearer one");
  files_.Write("run/token", "two");
  config->authenticator->Rejected();
  EXPECT_EQ(Authorization(*config), "Bearer two");
}

TEST_F(ConfigTest, KeepsItsTokenWhileTheFileIsBeingReplaced) {
  files_.Write("run/token", "one");
  const auto config = Load("tokenFile: /run/token");
  EXPECT_EQ(Authorization(*config), "Bearer one");
  files_.Remove("run/token");
  clock_.Advance(seconds(120));
  EXPECT_EQ(Authorization(*config), "Bearer one");
  config->authenticator->Rejected();
  EXPECT_EQ(config->authenticator->Headers().error().code, Code::kUnauthorized);
  files_.Write("run/token", "  \n");
  EXPECT_THAT(config->authenticator->Headers().error().message, HasSubstr("/run/token is empty"));
  files_.Write("run/token", "a\r\nX-Injected: yes");
  EXPECT_FALSE(config->authenticator->Headers());
}

TEST_F(ConfigTest, ReadsAServiceAccount) {
  const std::string account = "var/run/secrets/kubernetes.io/serviceaccount/";
  files_.Write(account + "token", "pod-token");
  files_.Write(account + "ca.crt", "CA");
  files_.Write(account + "namespace", "heddle-system");
  const auto config = LoadConfig({.service_host = "fd00::1", .service_port = "443"}, files_, clock_);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->server, "https://[fd00::1]:443");
  EXPECT_EQ(config->ns, "heddle-system");
  EXPECT_EQ(Authorization(*config), "Bearer pod-token");
  EXPECT_EQ(*config->tls.authority(), "CA");
}

TEST_F(ConfigTest, PrefersAKubeconfigThatWasNamedOverTheServiceAccount) {
  files_.Write("a", File("token: t"));
  const auto config =
      LoadConfig({.kubeconfig_env = "/a", .service_host = "10.0.0.1", .service_port = "443"}, files_, clock_);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->ns, "train");
  EXPECT_EQ(LoadConfig({.service_host = "10.0.0.1", .service_port = "443"}, files_, clock_).error().code,
            Code::kNotFound);
}

class InAPod : public ConfigTest {
 protected:
  InAPod() {
    files_.Write(account_ + "token", "pod-token");
    files_.Write(account_ + "ca.crt", "CA");
    files_.Write(account_ + "namespace", "pod-namespace");
  }
  static ConfigSources Person() {
    return {.home = "/home/me", .service_host = "10.0.0.1", .service_port = "443", .like_kubectl = true};
  }
  // Whom is asked, or why nobody.
  std::string Asked(const ConfigSources& sources) {
    const auto config = LoadConfig(sources, files_, clock_);
    return config ? config->ns : config.error().message;
  }

  const std::string account_ = "var/run/secrets/kubernetes.io/serviceaccount/";
};

TEST_F(InAPod, APersonsCommandAsksTheClusterThatKubectlAsks) {
  EXPECT_EQ(Asked(Person()), "pod-namespace");
  files_.Write("home/me/.kube/config", File("token: t"));
  EXPECT_EQ(Asked(Person()), "train");
  ConfigSources daemon = Person();
  daemon.like_kubectl = false;
  EXPECT_EQ(Asked(daemon), "pod-namespace");
}

TEST_F(InAPod, AKubeconfigThatChoosesNothingLeavesThePodsOwnCluster) {
  for (const char* text : {"", "apiVersion: v1\nkind: Config\n",
                           "kind: Config\ncontexts: [{name: main, context: {cluster: c}}]\n"}) {
    files_.Write("home/me/.kube/config", text);
    EXPECT_EQ(Asked(Person()), "pod-namespace") << text;
  }
  ConfigSources absent = Person();
  absent.kubeconfig_env = "/nope";
  EXPECT_EQ(Asked(absent), "pod-namespace");
}

TEST_F(InAPod, AKubeconfigThatChoosesBadlyIsNotPassedOver) {
  files_.Write("home/me/.kube/config", "<html>");
  EXPECT_THAT(Asked(Person()), HasSubstr("is a web page"));
  files_.Write("home/me/.kube/config",
               "current-context: gone\ncontexts: [{name: main, context: {cluster: c}}]\n");
  EXPECT_THAT(Asked(Person()), HasSubstr("has no context \"gone\""));
  files_.Write("home/me/.kube/config", File("token: t", ", certificate-authority: /absent"));
  EXPECT_THAT(Asked(Person()), HasSubstr("read the certificate authority")) << "a file in it that is absent";
  ConfigSources given = Person();
  given.kubeconfig_flag = "/nope";
  EXPECT_THAT(Asked(given), HasSubstr("/nope"));
}

TEST_F(InAPod, AContextIsAlwaysOneOfAKubeconfig) {
  for (const bool person : {true, false}) {
    ConfigSources sources = Person();
    sources.like_kubectl = person;
    sources.context = "main";
    files_.Remove("home/me/.kube/config");
    EXPECT_EQ(Asked(sources), "the context \"main\": no kubeconfig was found at /home/me/.kube/config");
    files_.Write("home/me/.kube/config", File("token: t"));
    EXPECT_EQ(Asked(sources), "train");
    sources.context = "other";
    EXPECT_THAT(Asked(sources), HasSubstr("has no context \"other\"; it has main"));
  }
}

TEST_F(InAPod, BothAccountsCanAskAsAnother) {
  ConfigSources sources = Person();
  sources.as = "ada";
  sources.as_groups = {"dev", "ops"};
  auto config = LoadConfig(sources, files_, clock_);
  ASSERT_TRUE(config) << config.error().message;
  auto headers = *config->authenticator->Headers();
  EXPECT_EQ(HeaderNamed(headers, "Impersonate-User"), "ada");
  EXPECT_EQ(HeaderNamed(headers, "Impersonate-Group"), "dev,ops");
  EXPECT_EQ(HeaderNamed(headers, "Authorization"), "Bearer pod-token");
  // Field by field over what the kubeconfig says.
  files_.Write("home/me/.kube/config", File("token: t, as: bob, as-groups: [g1]"));
  sources.as_groups.clear();
  config = LoadConfig(sources, files_, clock_);
  ASSERT_TRUE(config) << config.error().message;
  headers = *config->authenticator->Headers();
  EXPECT_EQ(HeaderNamed(headers, "Impersonate-User"), "ada");
  EXPECT_EQ(HeaderNamed(headers, "Impersonate-Group"), "g1");
  // And where the context has no user.
  files_.Write("home/me/.kube/config",
               "current-context: m\ncontexts: [{name: m, context: {cluster: c}}]\n"
               "clusters: [{name: c, cluster: {server: 'https://a'}}]\n");
  config = LoadConfig(sources, files_, clock_);
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_NE(config->authenticator, nullptr);
  EXPECT_EQ(HeaderNamed(*config->authenticator->Headers(), "Impersonate-User"), "ada");
}

TEST_F(InAPod, TheAccountGoesPastTheEnvironmentsProxy) {
  for (const bool person : {true, false}) {
    ConfigSources sources = Person();
    sources.like_kubectl = person;
    sources.environment = {"HTTPS_PROXY=proxy.test:3128"};
    const auto config = LoadConfig(sources, files_, clock_);
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->proxy_url, "");
  }
}

TEST_F(ConfigTest, TakesTheEnvironmentsProxyWhereTheClusterNamesNone) {
  const std::vector<std::string> environment{"HTTPS_PROXY=http://env.test:3128"};
  files_.Write("a", File("token: t"));
  const auto from_environment =
      LoadKubeconfig({.kubeconfig_flag = "/a", .environment = environment}, files_, clock_);
  ASSERT_TRUE(from_environment);
  EXPECT_EQ(from_environment->proxy_url, "http://env.test:3128");
  EXPECT_EQ(from_environment->proxy_from, "HTTPS_PROXY");
  files_.Write("a", File("token: t", ", proxy-url: 'http://own.test:1'"));
  const auto own = LoadKubeconfig({.kubeconfig_flag = "/a", .environment = environment}, files_, clock_);
  ASSERT_TRUE(own);
  EXPECT_EQ(own->proxy_url, "http://own.test:1");
  EXPECT_EQ(own->proxy_from, "proxy-url");
}

TEST(ConfigSources, ComeFromAnEnvironment) {
  const char* environment[] = {"KUBECONFIG=/a:/b",
                               "HOME=/home/me",
                               "PWD=/work",
                               "KUBERNETES_SERVICE_HOST=10.0.0.1",
                               "KUBERNETES_SERVICE_PORT=443",
                               "ODD",
                               nullptr};
  const ConfigSources sources = SourcesFromEnvironment(environment);
  EXPECT_EQ(sources.kubeconfig_env, "/a:/b");
  EXPECT_EQ(sources.home, "/home/me");
  EXPECT_EQ(sources.working_directory, std::filesystem::current_path().string())
      << "where the process is, whatever its starter's $PWD says";
  EXPECT_EQ(sources.service_host + ":" + sources.service_port, "10.0.0.1:443");
  EXPECT_EQ(sources.environment.size(), 6u);
}

// A credential plugin is a real process, so its script stands in a real folder.
class ExecTest : public ConfigTest {
 protected:
  ExecTest()
      : folder_(std::filesystem::temp_directory_path() / ("heddle-exec-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~ExecTest() override { std::filesystem::remove_all(folder_); }

  base::Result<ClientConfig> LoadPlugin(const std::string& script, const std::string& more = "") {
    const std::string path = (folder_ / "plugin").string();
    std::ofstream(path) << "#!/bin/sh\necho run >> \"$0.log\"\n" << script;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    files_.Write("home/me/.kube/config",
                 File("exec: {apiVersion: client.authentication.k8s.io/v1, command: " + path + more + "}"));
    return LoadKubeconfig({.home = "/home/me", .environment = {"PATH=/usr/bin:/bin", "INHERITED=yes"}},
                          files_, clock_);
  }
  int Runs() {
    std::ifstream log((folder_ / "plugin.log").string());
    return int(std::count(std::istreambuf_iterator<char>(log), {}, '\n'));
  }
  static std::string Print(const std::string& status) {
    return "cat "
           "<<X\n{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/"
           "v1\",\"status\":{" +
           status + "}}\nX\n";
  }

  const std::filesystem::path folder_;
};

TEST_F(ExecTest, GetsATokenAndKeepsItUntilItExpires) {
  const std::string expires = base::FormatTime(clock_.WallNow() + std::chrono::minutes(10));
  const auto config = LoadPlugin(Print(R"("token":"fresh","expirationTimestamp":")" + expires + "\""));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(Authorization(*config), "Bearer fresh");
  clock_.Advance(std::chrono::minutes(9));
  EXPECT_EQ(Authorization(*config), "Bearer fresh");
  EXPECT_EQ(Runs(), 1);
  clock_.Advance(std::chrono::minutes(2));
  EXPECT_EQ(Authorization(*config), "Bearer fresh");
  EXPECT_EQ(Runs(), 2);
  config->authenticator->Rejected();
  EXPECT_EQ(Authorization(*config), "Bearer fresh");
  EXPECT_EQ(Runs(), 3);
}

TEST_F(ExecTest, HandsOverArgumentsEnvironmentAndClusterInfo) {
  const auto config = LoadPlugin(
      "case \"$KUBERNETES_EXEC_INFO\" in *'\"server\":\"https://10.0.0.1:6443\"'*) C=cluster;; esac\n" +
          Print(R"("token":"$1-$INHERITED-$EXTRA-$C")"),
      ", args: [one], env: [{name: EXTRA, value: two}], provideClusterInfo: true");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(Authorization(*config), "Bearer one-yes-two-cluster");
}

// A shell takes the last of two values anyway, so the plugin is no script: it prints every value that it was handed.
TEST_F(ExecTest, APluginsOwnVariableStandsInPlaceOfAnInheritedOne) {
  const auto credential = [](const std::string& token) {
    return R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":")" +
           token + "\"}}";
  };
  files_.Write("home/me/.kube/config",
               File("exec: {apiVersion: client.authentication.k8s.io/v1, command: printenv, args: [PROFILE], "
                    "env: [{name: PROFILE, value: '" +
                    credential("own") + "'}]}"));
  const auto config = LoadKubeconfig(
      {.home = "/home/me", .environment = {"PROFILE=" + credential("inherited"), "PROFILES=other"}}, files_,
      clock_);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(Authorization(*config), "Bearer own");
}

TEST_F(ExecTest, GetsACertificate) {
  const auto config = LoadPlugin(Print(R"("clientCertificateData":"C","clientKeyData":"K")"));
  const auto pair = config->authenticator->Certificate();
  ASSERT_TRUE(pair) << pair.error().message;
  EXPECT_EQ(pair->certificate + pair->key, "CK");
  EXPECT_EQ(Authorization(*config), "");
}

TEST_F(ExecTest, SaysWhatIsWrongWithoutQuotingItsOutput) {
  const std::vector<std::pair<std::string, std::string>> scripts{
      {"echo s3cret; exit 3", "exit code 3"},
      {"echo s3cret", "printed no ExecCredential"},
      {Print(""), "neither token nor certificate"},
      {Print(R"("clientCertificateData":"C")"), "without a key"},
      {Print(R"("token":"s3cret","expirationTimestamp":"soon")"), "no time"},
      {"echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"v0\"}'", "it speaks v0"},
      {"kill -9 $$", "exit code 137"}};
  for (const auto& [script, sentence] : scripts) {
    const auto config = LoadPlugin(script, ", installHint: Install it");
    ASSERT_TRUE(config);
    const auto headers = config->authenticator->Headers();
    ASSERT_FALSE(headers) << script;
    EXPECT_EQ(headers.error().code, Code::kUnauthorized);
    EXPECT_THAT(headers.error().message, HasSubstr(sentence));
    EXPECT_THAT(headers.error().message, Not(HasSubstr("s3cret")));
  }
}

TEST_F(ExecTest, APluginThatClosesItsOutputAndLivesOnHasNoMoreThanItsMinute) {
  const auto config =
      LoadPlugin(Print(R"("token":"t")") + "exec >&-\necho closed >> \"$0.log\"\nexec sleep 20\n");
  ASSERT_TRUE(config) << config.error().message;
  const std::jthread minute([this](const std::stop_token& stop) {
    while (Runs() < 2 && !stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    clock_.Advance(seconds(61));
  });
  EXPECT_THAT(Authorization(*config), HasSubstr("not done within 60 s"));
}

TEST_F(ExecTest, SaysThatThePluginIsMissing) {
  files_.Write("home/me/.kube/config", File("exec: {apiVersion: client.authentication.k8s.io/v1, command: "
                                            "/no/such/plugin, installHint: Install it with apt}"));
  const auto config = LoadKubeconfig({.home = "/home/me"}, files_, clock_);
  ASSERT_TRUE(config);
  EXPECT_THAT(config->authenticator->Headers().error().message, HasSubstr("Install it with apt"));
}

}  // namespace
}  // namespace heddle::kube
