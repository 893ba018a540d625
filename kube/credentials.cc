#include "kube/credentials.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::kube {
namespace {

using base::Code;
using base::Fail;
using base::Result;

constexpr std::chrono::minutes kTokenLife{1};  // client-go transport/token_source.go
// A credential that expires on its way is of no use.
constexpr std::chrono::seconds kExpiryMargin{10};

}  // namespace

void AddImpersonation(const Impersonation& as, std::vector<HttpHeader>& headers) {
  if (as.user.empty()) return;
  headers.push_back({"Impersonate-User", as.user});
  if (!as.uid.empty()) headers.push_back({"Impersonate-Uid", as.uid});
  for (const std::string& group : as.groups) headers.push_back({"Impersonate-Group", group});
  for (const HttpHeader& extra : as.extra)
    headers.push_back({"Impersonate-Extra-" + PercentEncode(extra.name), extra.value});
}

Result<std::string> FileOrText::Read(const base::FileTree& root) const {
  if (path.empty()) return text;
  // "/" alone is the root itself, of which the tree says that it is no file.
  return root.Read(path.substr(std::min(path.find_first_not_of('/'), path.size())));
}

CredentialAuthenticator::CredentialAuthenticator(Credentials credentials, const base::FileTree& root,
                                                 base::Clock& clock)
    : credentials_(std::move(credentials)), root_(root), clock_(clock) {}

Result<std::vector<HttpHeader>> CredentialAuthenticator::Headers() {
  std::vector<HttpHeader> headers = credentials_.fixed_headers;
  ASSIGN_OR_RETURN(const std::string token, Token());
  if (!token.empty()) headers.push_back({"Authorization", "Bearer " + token});
  return headers;
}

Result<std::string> CredentialAuthenticator::Token() {
  if (credentials_.exec) {
    ASSIGN_OR_RETURN(const ExecCredential credential, FromPlugin());
    return credential.token;
  }
  const base::MonotonicTime now = clock_.Now();
  const std::lock_guard lock(mutex_);
  if (token_ && (credentials_.token.path.empty() || now - token_read_ < kTokenLife)) return *token_;
  auto fresh = credentials_.token.Read(root_);
  if (!fresh) {
    // A token file that is being replaced must not stop us while we hold one that may still work.
    if (token_) return *token_;
    return Fail(Code::kUnauthorized, fmt::format("the token cannot be read: {}", fresh.error().message));
  }
  while (!fresh->empty() && std::isspace(static_cast<unsigned char>(fresh->back())) != 0) fresh->pop_back();
  if (fresh->empty() && !credentials_.token.path.empty()) {
    return Fail(Code::kUnauthorized, fmt::format("the token file {} is empty", credentials_.token.path));
  }
  if (fresh->find_first_of("\r\n") != std::string::npos) {
    return Fail(Code::kUnauthorized, "the token has a line break in it");
  }
  token_ = *std::move(fresh);
  token_read_ = now;
  return *token_;
}

Result<ClientCertificate> CredentialAuthenticator::Certificate() {
  if (credentials_.exec) {
    ASSIGN_OR_RETURN(const ExecCredential credential, FromPlugin());
    return credential.certificate;
  }
  if (credentials_.certificate.empty()) return ClientCertificate{};
  ASSIGN_OR_RETURN(std::string certificate, credentials_.certificate.Read(root_),
                   "read the client certificate");
  ASSIGN_OR_RETURN(std::string key, credentials_.key.Read(root_), "read the client key");
  return ClientCertificate{std::move(certificate), std::move(key)};
}

void CredentialAuthenticator::Rejected() {
  const std::lock_guard lock(mutex_);
  token_.reset();
  exec_.reset();
}

Result<ExecCredential> CredentialAuthenticator::FromPlugin() {
  const std::lock_guard lock(mutex_);
  const bool usable = exec_ && (!exec_->expires || clock_.WallNow() + kExpiryMargin < *exec_->expires);
  if (!usable) {
    exec_.reset();
    ASSIGN_OR_RETURN(exec_, RunCredentialPlugin(*credentials_.exec, clock_));
  }
  return *exec_;
}

}  // namespace heddle::kube
