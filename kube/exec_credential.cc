#include "kube/exec_credential.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "base/null_terminated.h"
#include "kube/object.h"

namespace heddle::kube {
namespace {

using base::Code;
using base::Fail;
using base::Result;

constexpr std::chrono::seconds kLongestRun{60};
constexpr std::size_t kMaxOutputBytes = 1u << 20;

Json ExecInfo(const ExecSettings& settings) {
  Json info{
      {"apiVersion", settings.api_version}, {"kind", "ExecCredential"}, {"spec", {{"interactive", false}}}};
  if (!settings.cluster_json.empty())
    info["spec"]["cluster"] = Json::parse(settings.cluster_json, nullptr, false);
  return info;
}

// Of a variable that is there twice most programs see the first value; the last is the one that was meant, as Go's
// os/exec takes it for kubectl.
std::vector<std::string> LastOfEach(std::vector<std::string> environment) {
  std::vector<std::string> last;
  std::set<std::string> named;
  for (auto variable = environment.rbegin(); variable != environment.rend(); ++variable) {
    if (named.insert(variable->substr(0, variable->find('='))).second) last.push_back(std::move(*variable));
  }
  return last;
}

struct Child {
  pid_t pid = -1;
  int output = -1;
};

Result<Child> Start(const ExecSettings& settings) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return Fail(Code::kInternal, std::strerror(errno));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
  std::vector<std::string> arguments{settings.command};
  arguments.insert(arguments.end(), settings.arguments.begin(), settings.arguments.end());
  std::vector<std::string> environment = settings.environment;
  environment.push_back("KUBERNETES_EXEC_INFO=" + ExecInfo(settings).dump());
  environment = LastOfEach(std::move(environment));
  Child child{-1, pipe[0]};
  const int failure =
      ::posix_spawnp(&child.pid, settings.command.c_str(), &actions, nullptr,
                     base::NullTerminated(arguments).data(), base::NullTerminated(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(pipe[1]);
  if (failure == 0) return child;
  ::close(pipe[0]);
  return Fail(Code::kUnauthorized,
              fmt::format("credential plugin {}: {}{}{}", settings.command, std::strerror(failure),
                          settings.install_hint.empty() ? "" : ". ", settings.install_hint));
}

// Everything it prints until it closes its output; nothing if that is too much or too late.
std::optional<std::string> ReadAll(int output, base::MonotonicTime deadline, base::Clock& clock) {
  std::string text;
  std::array<char, 4096> buffer;
  while (text.size() <= kMaxOutputBytes) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock.Now());
    pollfd ready{output, POLLIN, 0};
    const int polled = left.count() <= 0 ? 0 : ::poll(&ready, 1, int(left.count()));
    if (polled < 0 && errno == EINTR) continue;
    if (polled <= 0) return std::nullopt;
    const ssize_t count = ::read(output, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer.data(), std::size_t(count));
  }
  return std::nullopt;
}

// Its status; nothing where it is still there at the deadline, as one may be that has closed its output.
std::optional<int> AwaitExit(pid_t pid, base::MonotonicTime deadline, base::Clock& clock) {
  constexpr int kLongestPauseMs = 50;
  for (int pause_ms = 1;; pause_ms = std::min(2 * pause_ms, kLongestPauseMs)) {
    int status = 0;
    if (::waitpid(pid, &status, WNOHANG) != 0) return status;
    if (clock.Now() >= deadline) return std::nullopt;
    (void)::poll(nullptr, 0, pause_ms);
  }
}

}  // namespace

Result<ExecCredential> RunCredentialPlugin(const ExecSettings& settings, base::Clock& clock) {
  const base::MonotonicTime deadline = clock.Now() + kLongestRun;
  ASSIGN_OR_RETURN(const Child child, Start(settings));
  const auto output = ReadAll(child.output, deadline, clock);
  ::close(child.output);
  const std::optional<int> status = output ? AwaitExit(child.pid, deadline, clock) : std::nullopt;
  if (!status) {
    ::kill(child.pid, SIGKILL);
    while (::waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return Fail(Code::kUnauthorized,
                fmt::format("credential plugin {}: not done within {} s, or over {} bytes", settings.command,
                            kLongestRun.count(), kMaxOutputBytes));
  }
  if (!WIFEXITED(*status) || WEXITSTATUS(*status) != 0) {
    const int code = WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status);
    return Fail(Code::kUnauthorized,
                fmt::format("credential plugin {}: exit code {}{}{}", settings.command, code,
                            settings.install_hint.empty() ? "" : ". ", settings.install_hint));
  }
  auto credential = ParseExecCredential(*output, settings.api_version);
  if (!credential) return Fail(credential.error().In("credential plugin " + settings.command));
  return credential;
}

Result<ExecCredential> ParseExecCredential(const std::string& output, const std::string& api_version) {
  const Json json = Json::parse(output, nullptr, false);
  if (!json.is_object() || StringAt(json, {"kind"}) != "ExecCredential") {
    return Fail(Code::kUnauthorized, "it printed no ExecCredential");
  }
  if (StringAt(json, {"apiVersion"}) != api_version) {
    return Fail(Code::kUnauthorized, fmt::format("it speaks {}, the kubeconfig asks for {}",
                                                 StringAt(json, {"apiVersion"}).substr(0, 80), api_version));
  }
  ExecCredential credential;
  credential.token = StringAt(json, {"status", "token"});
  credential.certificate.certificate = StringAt(json, {"status", "clientCertificateData"});
  credential.certificate.key = StringAt(json, {"status", "clientKeyData"});
  if (credential.token.empty() && credential.certificate.certificate.empty()) {
    return Fail(Code::kUnauthorized, "it gave neither token nor certificate");
  }
  if (credential.certificate.certificate.empty() != credential.certificate.key.empty()) {
    return Fail(Code::kUnauthorized, "it gave a certificate without a key, or a key without a certificate");
  }
  const std::string expires = StringAt(json, {"status", "expirationTimestamp"});
  credential.expires = base::ParseTime(expires);
  if (!expires.empty() && !credential.expires) {
    return Fail(Code::kUnauthorized, "its expirationTimestamp is no time");
  }
  return credential;
}

}  // namespace heddle::kube
