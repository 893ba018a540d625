#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "kube/config.h"

struct ssl_ctx_st;

namespace heddle::kube {

// Why the last handshake failed; OpenSSL's caller hears only that one did.
// Thread rule: every member may be called from any thread.
class TlsDiagnosis {
 public:
  void Note(std::string reason);
  std::string Take();

 private:
  std::mutex mutex_;
  std::string reason_;
};

// Starts OpenSSL now. Whoever makes threads that use it must have called this before: at exit, OpenSSL then
// outlives them and their state in it is freed.
void StartTls();

// Prepares OpenSSL's context of one new connection: TLS 1.2 or newer, the configured authorities alone, the
// client's certificate, and the name that the server's certificate must carry. What cannot be read leaves a
// context that trusts nobody, and a reason in the diagnosis.
void PrepareTls(ssl_ctx_st* context, const TlsSettings& settings, Authenticator* authenticator,
                const std::string& host, const std::shared_ptr<TlsDiagnosis>& diagnosis);

}  // namespace heddle::kube
