#include "kube/kubeconfig.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <map>

#include "kube/base64.h"
#include "kube/credentials.h"
#include "kube/object.h"
#include "kube/proxy.h"

namespace heddle::kube {
namespace {

using base::Code;
using base::Fail;
using base::Result;

// A named cluster, user or context, and the folder of the file that it came from: paths in it are relative to
// that.
struct Entry {
  YAML::Node node;
  std::string folder;
};
struct Merged {
  std::map<std::string, Entry> clusters, users, contexts;
  std::string current_context;
  std::vector<std::string> files;  // that were read

  // "the kubeconfig /a", for whoever has several.
  std::string Title() const { return fmt::format("the kubeconfig {}", fmt::join(files, " and ")); }
};

std::string Scalar(const YAML::Node& node, const char* name) {
  const YAML::Node value = node.IsMap() ? node[name] : YAML::Node(YAML::NodeType::Undefined);
  return value && value.IsScalar() ? value.Scalar() : std::string();
}

bool Flag(const YAML::Node& node, const char* name) {
  return Scalar(node, name) == "true";
}

// A default Node is null, and null is defined.
YAML::Node Child(const YAML::Node& node, const char* name) {
  return node.IsMap() ? node[name] : YAML::Node(YAML::NodeType::Undefined);
}

// Null is what some tools write in place of leaving a field out, and kubectl takes it for that.
bool HasValue(const YAML::Node& node, const char* name) {
  const YAML::Node value = Child(node, name);
  return value && !value.IsNull();
}

std::string Absolute(const std::string& folder, const std::string& path) {
  if (path.empty()) return path;
  return (std::filesystem::path(folder) / path).lexically_normal().string();
}

void MergeNamed(const YAML::Node& file, const char* list, const char* field, const std::string& folder,
                std::map<std::string, Entry>& into) {
  const YAML::Node entries = Child(file, list);
  if (!entries || !entries.IsSequence()) return;
  for (const YAML::Node& entry : entries) {
    const YAML::Node node = Child(entry, field);
    // The first file to name something wins, as a whole.
    into.try_emplace(Scalar(entry, "name"), Entry{node ? node : YAML::Node(YAML::NodeType::Map), folder});
  }
}

// What is read in a kubeconfig's place: a page that wants a login, a note, a manifest. Of an empty one kubectl says
// nothing either. Only what it is, never what it says: the text may hold tokens.
base::Status IsKubeconfig(const std::string& path, const YAML::Node& file) {
  if (file.IsNull()) return {};
  for (const char* part : {"current-context", "contexts", "clusters", "users"}) {
    if (Child(file, part)) return {};
  }
  if (Scalar(file, "kind") == "Config") return {};
  return Fail(Code::kInvalid,
              fmt::format("{} is no kubeconfig: it names no cluster, context or user; take the file "
                          "that `kubectl` uses",
                          path));
}

bool IsWebPage(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  return start != std::string_view::npos && text[start] == '<';
}

Result<Merged> MergeFiles(const std::vector<std::string>& paths, bool must_exist,
                          const base::FileTree& root) {
  Merged merged;
  for (const std::string& path : paths) {
    auto text = FileOrText{path, ""}.Read(root);
    if (!text && text.error().code == Code::kNotFound && !must_exist) continue;
    if (!text) return Fail(text.error().In("read the kubeconfig " + path));
    merged.files.push_back(path);
    if (IsWebPage(*text)) {
      return Fail(Code::kInvalid,
                  fmt::format("{} is a web page and no kubeconfig: what it was fetched from wanted a "
                              "login, perhaps; fetch the file anew",
                              path));
    }
    try {
      const YAML::Node file = YAML::Load(*text);
      TRY(IsKubeconfig(path, file));
      const std::string folder = std::filesystem::path(path).parent_path().string();
      MergeNamed(file, "clusters", "cluster", folder, merged.clusters);
      MergeNamed(file, "users", "user", folder, merged.users);
      MergeNamed(file, "contexts", "context", folder, merged.contexts);
      if (merged.current_context.empty()) merged.current_context = Scalar(file, "current-context");
    } catch (const YAML::Exception& failure) {
      // Only where, never what: the text holds tokens.
      return Fail(Code::kInvalid,
                  fmt::format("{} is no kubeconfig: it is no YAML, line {}", path, failure.mark.line + 1));
    }
  }
  if (!merged.files.empty()) return merged;
  if (paths.empty())
    return Fail(Code::kNotFound, "no kubeconfig was found: neither $KUBECONFIG nor $HOME is set");
  return Fail(Code::kNotFound, fmt::format("no kubeconfig was found at {}", fmt::join(paths, " and at ")));
}

// field, or field-data in base64, which wins.
Result<FileOrText> FileOrData(const Entry& entry, const char* field) {
  const std::string data = Scalar(entry.node, fmt::format("{}-data", field).c_str());
  if (data.empty()) return FileOrText{Absolute(entry.folder, Scalar(entry.node, field)), ""};
  auto text = DecodeBase64(data);
  if (!text) return Fail(Code::kInvalid, fmt::format("{}-data is no base64", field));
  return FileOrText{"", *std::move(text)};
}

// What was asked for by flags wins field by field, as kubectl merges its own (getAuthInfo in client-go's
// tools/clientcmd/client_config.go).
Impersonation ImpersonationOf(const YAML::Node& user, const ConfigSources& sources) {
  Impersonation as{sources.as, Scalar(user, "as-uid"), sources.as_groups, {}};
  if (as.user.empty()) as.user = Scalar(user, "as");
  if (as.user.empty()) return as;
  if (as.groups.empty()) {
    for (const YAML::Node& group : Child(user, "as-groups")) {
      if (group.IsScalar()) as.groups.push_back(group.Scalar());
    }
  }
  for (const auto& extra : Child(user, "as-user-extra")) {
    for (const YAML::Node& value : extra.second) {
      if (value.IsScalar()) as.extra.push_back({extra.first.Scalar(), value.Scalar()});
    }
  }
  return as;
}

Result<ExecSettings> ExecFrom(const Entry& user, const ClientConfig& config, const std::string& authority,
                              const std::vector<std::string>& environment) {
  const YAML::Node exec = user.node["exec"];
  ExecSettings settings;
  settings.api_version = Scalar(exec, "apiVersion");
  settings.command = Scalar(exec, "command");
  settings.install_hint = Scalar(exec, "installHint");
  settings.environment = environment;
  if (settings.api_version != "client.authentication.k8s.io/v1" &&
      settings.api_version != "client.authentication.k8s.io/v1beta1") {
    return Fail(Code::kInvalid, fmt::format("exec: unknown apiVersion \"{}\"", settings.api_version));
  }
  if (settings.command.empty()) return Fail(Code::kInvalid, "exec: the command is missing");
  if (Scalar(exec, "interactiveMode") == "Always") {
    return Fail(Code::kInvalid,
                fmt::format("exec: {} wants a terminal, which is not offered", settings.command));
  }
  // A name without a slash is looked up in PATH.
  if (settings.command.find('/') != std::string::npos)
    settings.command = Absolute(user.folder, settings.command);
  for (const YAML::Node& argument : Child(exec, "args")) {
    if (argument.IsScalar()) settings.arguments.push_back(argument.Scalar());
  }
  for (const YAML::Node& variable : Child(exec, "env")) {
    settings.environment.push_back(Scalar(variable, "name") + "=" + Scalar(variable, "value"));
  }
  if (Flag(exec, "provideClusterInfo")) {
    Json cluster{{"server", config.server}, {"insecure-skip-tls-verify", config.tls.insecure_skip_verify}};
    if (!config.tls.server_name.empty()) cluster["tls-server-name"] = config.tls.server_name;
    if (!config.proxy_url.empty()) cluster["proxy-url"] = config.proxy_url;
    if (!authority.empty()) cluster["certificate-authority-data"] = EncodeBase64(authority);
    settings.cluster_json = cluster.dump();
  }
  return settings;
}

Result<Credentials> CredentialsOf(const Entry& user, const ClientConfig& config, const std::string& authority,
                                  const ConfigSources& sources) {
  Credentials credentials;
  if (HasValue(user.node, "auth-provider")) {
    return Fail(Code::kInvalid, "auth-provider was removed from Kubernetes in 1.26; use an exec plugin");
  }
  ASSIGN_OR_RETURN(credentials.certificate, FileOrData(user, "client-certificate"));
  ASSIGN_OR_RETURN(credentials.key, FileOrData(user, "client-key"));
  if (credentials.certificate.empty() != credentials.key.empty()) {
    return Fail(Code::kInvalid, "client-certificate and client-key come together");
  }
  credentials.token = {Absolute(user.folder, Scalar(user.node, "tokenFile")), Scalar(user.node, "token")};
  const std::string name = Scalar(user.node, "username");
  if (!name.empty()) {
    credentials.fixed_headers.push_back(
        {"Authorization", "Basic " + EncodeBase64(name + ":" + Scalar(user.node, "password"))});
    credentials.token = {};
  }
  AddImpersonation(ImpersonationOf(user.node, sources), credentials.fixed_headers);
  if (HasValue(user.node, "exec")) {
    ASSIGN_OR_RETURN(credentials.exec, ExecFrom(user, config, authority, sources.environment));
  }
  return credentials;
}

std::vector<std::string> PathsOf(const ConfigSources& sources) {
  if (!sources.kubeconfig_flag.empty()) return {Absolute(sources.working_directory, sources.kubeconfig_flag)};
  std::vector<std::string> paths;
  std::string_view rest = sources.kubeconfig_env;
  while (!rest.empty()) {
    const std::string_view path = rest.substr(0, rest.find(':'));
    if (!path.empty()) paths.push_back(Absolute(sources.working_directory, std::string(path)));
    rest.remove_prefix(std::min(path.size() + 1, rest.size()));
  }
  if (paths.empty() && !sources.home.empty()) paths.push_back(Absolute(sources.home, ".kube/config"));
  return paths;
}

Result<const Entry*> Named(const Merged& merged, const std::map<std::string, Entry>& entries,
                           const std::string& name, std::string_view what) {
  const auto found = entries.find(name);
  if (found == entries.end())
    return Fail(Code::kInvalid, fmt::format("{} has no {} \"{}\"", merged.Title(), what, name));
  if (!found->second.node.IsMap() && !found->second.node.IsNull()) {
    return Fail(Code::kInvalid, fmt::format("the kubeconfig's {} \"{}\" is not a mapping", what, name));
  }
  return &found->second;
}

// "; it has a and b", for whoever mistyped one.
std::string ContextsText(const Merged& merged) {
  constexpr std::size_t kNamed = 6;
  std::vector<std::string> names;
  for (const auto& [name, entry] : merged.contexts) {
    if (names.size() <= kNamed) names.push_back(names.size() == kNamed ? "…" : name);
  }
  return names.empty() ? "" : fmt::format("; it has {}", fmt::join(names, ", "));
}

Result<ClientConfig> Assemble(const Merged& merged, const ConfigSources& sources, const base::FileTree& root,
                              base::Clock& clock) {
  const std::string name = sources.context.empty() ? merged.current_context : sources.context;
  if (merged.contexts.empty())
    return Fail(Code::kInvalid, merged.Title() + " has no contexts; take the file that `kubectl` uses");
  if (name.empty())
    return Fail(Code::kInvalid, merged.Title() + " names no current-context; give --context NAME");
  if (!merged.contexts.contains(name))
    return Fail(Code::kInvalid,
                fmt::format("{} has no context \"{}\"{}", merged.Title(), name, ContextsText(merged)));
  ASSIGN_OR_RETURN(const Entry* context, Named(merged, merged.contexts, name, "context"));
  ASSIGN_OR_RETURN(const Entry* cluster,
                   Named(merged, merged.clusters, Scalar(context->node, "cluster"), "cluster"));
  ClientConfig config;
  config.server = Scalar(cluster->node, "server");
  if (!config.server.starts_with("https://") && !config.server.starts_with("http://")) {
    return Fail(Code::kInvalid, fmt::format("the server \"{}\" is no http(s) URL", config.server));
  }
  config.ns = Scalar(context->node, "namespace");
  if (config.ns.empty()) config.ns = "default";
  config.proxy_url = Scalar(cluster->node, "proxy-url");
  config.tls.server_name = Scalar(cluster->node, "tls-server-name");
  config.tls.insecure_skip_verify = Flag(cluster->node, "insecure-skip-tls-verify");
  ASSIGN_OR_RETURN(const FileOrText authority, FileOrData(*cluster, "certificate-authority"));
  std::string authority_pem;
  if (!authority.empty()) {
    ASSIGN_OR_RETURN(authority_pem, authority.Read(root), "read the certificate authority");
    config.tls.authority = [authority, &root] { return authority.Read(root); };
  }
  const std::string user_name = Scalar(context->node, "user");
  if (user_name.empty() && sources.as.empty()) return config;
  const Entry anonymous{YAML::Node(YAML::NodeType::Map), ""};
  const Entry* user = &anonymous;
  if (!user_name.empty()) {
    ASSIGN_OR_RETURN(user, Named(merged, merged.users, user_name, "user"));
  }
  ASSIGN_OR_RETURN(Credentials credentials, CredentialsOf(*user, config, authority_pem, sources),
                   fmt::format("user \"{}\"", user_name));
  config.authenticator = std::make_shared<CredentialAuthenticator>(std::move(credentials), root, clock);
  return config;
}

}  // namespace

KubeconfigReading ReadKubeconfig(const ConfigSources& sources, const base::FileTree& root,
                                 base::Clock& clock) {
  auto merged = MergeFiles(PathsOf(sources), !sources.kubeconfig_flag.empty(), root);
  if (!merged) {
    const bool none = merged.error().code == Code::kNotFound;
    if (none && !sources.context.empty())
      return {Fail(merged.error().In(fmt::format("the context \"{}\"", sources.context))), true};
    return {Fail(merged.error()), !none};
  }
  const bool chooses = !sources.context.empty() || !merged->current_context.empty();
  auto config = Assemble(*merged, sources, root, clock);
  // Last, since a credential plugin is told of the kubeconfig's own proxy alone.
  if (config) TakeProxyFromEnvironment(sources.environment, *config);
  return {std::move(config), chooses};
}

Result<ClientConfig> LoadKubeconfig(const ConfigSources& sources, const base::FileTree& root,
                                    base::Clock& clock) {
  return ReadKubeconfig(sources, root, clock).config;
}

}  // namespace heddle::kube
