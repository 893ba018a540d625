#include "kube/config.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "kube/credentials.h"
#include "kube/kubeconfig.h"

namespace heddle::kube {

using base::Code;
using base::Fail;
using base::Result;

namespace {

constexpr std::string_view kAccount = "var/run/secrets/kubernetes.io/serviceaccount";

}  // namespace

ConfigSources SourcesFromEnvironment(const char* const* environment) {
  ConfigSources sources;
  // Not $PWD: who starts a program in another folder (make -C, Python's subprocess, a container) leaves that as it was,
  // or unset.
  std::error_code gone;
  sources.working_directory = std::filesystem::current_path(gone).string();
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view variable = *environment;
    sources.environment.emplace_back(variable);
    const std::string_view name = variable.substr(0, variable.find('='));
    const std::string value(variable.substr(std::min(name.size() + 1, variable.size())));
    if (name == "KUBECONFIG") sources.kubeconfig_env = value;
    if (name == "HOME") sources.home = value;
    if (name == "KUBERNETES_SERVICE_HOST") sources.service_host = value;
    if (name == "KUBERNETES_SERVICE_PORT") sources.service_port = value;
  }
  return sources;
}

Result<ClientConfig> LoadConfig(const ConfigSources& sources, const base::FileTree& root,
                                base::Clock& clock) {
  const bool named = !sources.kubeconfig_flag.empty() || !sources.context.empty();
  if (named || sources.service_host.empty()) return LoadKubeconfig(sources, root, clock);
  if (!sources.like_kubectl && sources.kubeconfig_env.empty()) return InClusterConfig(sources, root, clock);
  KubeconfigReading reading = ReadKubeconfig(sources, root, clock);
  if (!sources.like_kubectl || reading.chooses) return std::move(reading.config);
  auto in_cluster = InClusterConfig(sources, root, clock);
  if (in_cluster) return in_cluster;
  return Fail(in_cluster.error().code, fmt::format("{}, and in this pod: {}", reading.config.error().message,
                                                   in_cluster.error().message));
}

Result<ClientConfig> InClusterConfig(const ConfigSources& sources, const base::FileTree& root,
                                     base::Clock& clock) {
  if (sources.service_host.empty() || sources.service_port.empty()) {
    return Fail(Code::kInvalid,
                "not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set");
  }
  const bool ipv6 = sources.service_host.find(':') != std::string::npos;
  ClientConfig config;
  config.server = fmt::format("https://{}{}{}:{}", ipv6 ? "[" : "", sources.service_host, ipv6 ? "]" : "",
                              sources.service_port);
  const std::string authority = fmt::format("{}/ca.crt", kAccount);
  TRY(root.Read(authority), "read the service account's CA");
  config.tls.authority = [authority, &root] { return root.Read(authority); };
  config.ns = base::ReadTrimmed(root, fmt::format("{}/namespace", kAccount)).value_or("default");
  Credentials credentials;
  credentials.token.path = fmt::format("/{}/token", kAccount);
  TRY(credentials.token.Read(root), "read the service account's token");
  AddImpersonation({sources.as, "", sources.as_groups, {}}, credentials.fixed_headers);
  config.authenticator = std::make_shared<CredentialAuthenticator>(std::move(credentials), root, clock);
  // No proxy of the environment, unlike client-go: the Service is reached from within, and our NetworkPolicies let
  // nobody out to a proxy.
  return config;
}

}  // namespace heddle::kube
