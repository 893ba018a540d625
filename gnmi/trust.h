#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct x509_store_st;

namespace heddle::gnmi {

// Whom a switch's certificate has to be from, and for whom: OpenSSL's verification of a chain, done by us, since gRPC
// 1.51 tells "certificate verify failed" and not which of its reasons.
// Thread rule: every member may be called from any thread.
class Trust {
 public:
  // `name`: a host's name or an IP address. `ca_pem` empty: the authorities of this machine, where OpenSSL has them,
  // whatever SSL_CERT_FILE says (kube points it elsewhere). kInvalid: no certificate can be read in ca_pem.
  [[nodiscard]] static base::Result<std::shared_ptr<const Trust>> Of(const std::string& ca_pem,
                                                                     std::string name);

  // Empty where a server that presents this chain (PEM, its own certificate first) is who it has to be. Else why not,
  // as the end of a sentence: "has a certificate for …".
  std::string WhyNot(std::string_view chain_pem) const;

 private:
  Trust(std::shared_ptr<x509_store_st> store, std::string name, bool given);

  const std::shared_ptr<x509_store_st> store_;
  const std::string name_;
  const bool given_;  // by ca_pem
};

// Of a client's certificate with its chain, and of its key: three certificates of RSA 4096 are 6 KiB.
inline constexpr std::size_t kMaxIdentityPem = std::size_t(64) << 10;

// Whether a client can show this certificate. Two empty texts are none, which is right, too. kInvalid: one without the
// other, too large, no PEM, a key with a passphrase or of another certificate, one that OpenSSL finds too weak for TLS,
// or one that is over or not yet good. The sentence names tls.crt and tls.key, as Secrets call them, and never says
// what is in them. gRPC, which gets them, says of none of it more than that it has failed.
[[nodiscard]] base::Status CheckIdentity(const std::string& certificate_pem, const std::string& key_pem);

}  // namespace heddle::gnmi
