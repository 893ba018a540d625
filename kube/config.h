#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/file_tree.h"
#include "base/result.h"
#include "kube/http.h"

namespace heddle::kube {

// PEM texts; both empty where the user has no certificate.
struct ClientCertificate {
  std::string certificate;
  std::string key;
};

// Who we are, for every request and every new connection. What it returns never reaches an error text.
// Thread rule: every member may be called from any thread.
class Authenticator {
 public:
  Authenticator() = default;
  Authenticator(const Authenticator&) = delete;
  Authenticator& operator=(const Authenticator&) = delete;
  virtual ~Authenticator() = default;

  // Headers to add to a request. May read files or run a credential plugin, bounded in time.
  [[nodiscard]] virtual base::Result<std::vector<HttpHeader>> Headers() = 0;
  [[nodiscard]] virtual base::Result<ClientCertificate> Certificate() = 0;
  // The server answered 401: forget cached credentials.
  virtual void Rejected() = 0;
};

struct TlsSettings {
  // PEM of the certificates to trust, read for each new connection; empty = the system's roots.
  std::function<base::Result<std::string>()> authority;
  std::string server_name;  // verified and sent as SNI in place of the URL's host
  bool insecure_skip_verify = false;
};

struct ClientConfig {
  std::string server;                    // "https://10.0.0.1:6443", a path prefix is kept
  std::string ns;                        // the context's namespace, "default" where it names none
  std::string proxy_url;                 // "" = none; may hold a login
  std::string proxy_from = "proxy-url";  // where that was written: of the kubeconfig, or "HTTPS_PROXY"
  TlsSettings tls;
  std::shared_ptr<Authenticator> authenticator;  // null: anonymous
};

// What a main.cc read from flags and environment. All paths are looked up in a FileTree rooted at "/".
struct ConfigSources {
  std::string kubeconfig_flag;  // one file; wins over everything
  std::string kubeconfig_env;   // $KUBECONFIG: colon-separated, merged; the first to name a thing wins
  std::string home;             // $HOME, for ~/.kube/config
  std::string working_directory;
  std::string context;  // "" = current-context; else a kubeconfig is asked for it, never the service account
  std::string as;       // whom to ask as; "" = whom the kubeconfig says, or nobody else
  std::vector<std::string> as_groups;  // of `as`; none = those of the kubeconfig
  std::string service_host;            // $KUBERNETES_SERVICE_HOST
  std::string service_port;            // $KUBERNETES_SERVICE_PORT
  // For what a person types, which is to ask the cluster that kubectl asks: ~/.kube/config comes before the service
  // account. A daemon in a pod takes its own account first.
  bool like_kubectl = false;
  // NAME=value. May name a proxy for a kubeconfig's cluster (kube/proxy.h); credential plugins get it plus their own
  // `env` and KUBERNETES_EXEC_INFO.
  std::vector<std::string> environment;
};
// Splits a process environment (the third argument of main, or environ), and asks where the process is.
ConfigSources SourcesFromEnvironment(const char* const* environment);

// A daemon's choice, as of controller-runtime (pkg/client/config, loadConfigWithContext): --kubeconfig, then
// $KUBECONFIG, then the pod's service account, then ~/.kube/config. With like_kubectl as kubectl chooses, which is
// client-go's DeferredLoadingClientConfig (tools/clientcmd/merged_client_builder.go): --kubeconfig, $KUBECONFIG,
// ~/.kube/config, and the service account only where these files are not there or name no current-context. Unlike
// there, a file given by --kubeconfig is never passed over. A context that was named is looked up in a kubeconfig in
// either case. `root` and `clock` must outlive the config.
[[nodiscard]] base::Result<ClientConfig> LoadConfig(const ConfigSources& sources, const base::FileTree& root,
                                                    base::Clock& clock);

// kubeconfig v1 only: files and inline data, token, tokenFile, username/password, client certificate, exec,
// impersonation. auth-provider is refused by name. kNotFound names every place that was looked at.
[[nodiscard]] base::Result<ClientConfig> LoadKubeconfig(const ConfigSources& sources,
                                                        const base::FileTree& root, base::Clock& clock);

// Token and CA of the service account mount. The token is re-read every minute and after a 401, as client-go
// does (transport/token_source.go), since the kubelet replaces it in place.
[[nodiscard]] base::Result<ClientConfig> InClusterConfig(const ConfigSources& sources,
                                                         const base::FileTree& root, base::Clock& clock);

}  // namespace heddle::kube
