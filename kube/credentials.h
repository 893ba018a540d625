#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file_tree.h"
#include "kube/config.h"
#include "kube/exec_credential.h"

namespace heddle::kube {

// A text that stands in a file, or inline where there is no path.
struct FileOrText {
  std::string path;  // absolute
  std::string text;

  bool empty() const { return path.empty() && text.empty(); }
  [[nodiscard]] base::Result<std::string> Read(const base::FileTree& root) const;
};

// What a kubeconfig's user, or a pod's service account, says.
struct Credentials {
  std::vector<HttpHeader> fixed_headers;  // basic auth and impersonation
  FileOrText token;
  FileOrText certificate;
  FileOrText key;
  std::optional<ExecSettings> exec;
};

// Whom a request is made as, in place of who makes it.
struct Impersonation {
  std::string user;  // "" = nobody
  std::string uid;
  std::vector<std::string> groups;
  std::vector<HttpHeader> extra;  // key, as it is, and value
};

void AddImpersonation(const Impersonation& as, std::vector<HttpHeader>& headers);

// Keeps a token from a file for a minute and drops it on a 401, as client-go does; keeps what a credential
// plugin said until it expires or a 401.
class CredentialAuthenticator final : public Authenticator {
 public:
  CredentialAuthenticator(Credentials credentials, const base::FileTree& root, base::Clock& clock);

  [[nodiscard]] base::Result<std::vector<HttpHeader>> Headers() override;
  [[nodiscard]] base::Result<ClientCertificate> Certificate() override;
  void Rejected() override;

 private:
  [[nodiscard]] base::Result<std::string> Token();
  [[nodiscard]] base::Result<ExecCredential> FromPlugin();

  const Credentials credentials_;
  const base::FileTree& root_;
  base::Clock& clock_;
  std::mutex mutex_;  // also keeps two plugins from running at once
  std::optional<std::string> token_;
  base::MonotonicTime token_read_{};
  std::optional<ExecCredential> exec_;
};

}  // namespace heddle::kube
