#include "kube/tls_context.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace heddle::kube {
namespace {

template <auto Free>
struct Freer {
  template <class T>
  void operator()(T* value) const {
    Free(value);
  }
};
using Bio = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freer<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using DiagnosisSlot = std::shared_ptr<TlsDiagnosis>;

Bio Reader(const std::string& pem) {
  return Bio(BIO_new_mem_buf(pem.data(), int(pem.size())));
}

void FreeSlot(void*, void* slot, CRYPTO_EX_DATA*, int, long, void*) {
  delete static_cast<DiagnosisSlot*>(slot);
}

// The context may outlive the transport, so it owns its share of the diagnosis.
int SlotIndex() {
  static const int kIndex = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, FreeSlot);
  return kIndex;
}

void NoteAlert(const SSL* ssl, int where, int value) {
  if ((where & SSL_CB_ALERT) == 0) return;
  auto* slot = static_cast<DiagnosisSlot*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), SlotIndex()));
  // close_notify is how every connection ends.
  if (slot == nullptr || SSL_alert_type_string(value)[0] != 'F') return;
  const long verified = SSL_get_verify_result(ssl);
  if (verified != X509_V_OK) {
    (*slot)->Note(
        fmt::format("the server's certificate is refused: {}", X509_verify_cert_error_string(verified)));
  } else {
    (*slot)->Note(fmt::format("the {} raised the alert \"{}\"",
                              (where & SSL_CB_READ) != 0 ? "server" : "client",
                              SSL_alert_desc_string_long(value)));
  }
}

// Returns how many certificates it added.
int AddAuthorities(X509_STORE* store, const std::string& pem) {
  const Bio reader = Reader(pem);
  int count = 0;
  for (;;) {
    const Certificate certificate(PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr));
    if (certificate == nullptr) break;
    count += X509_STORE_add_cert(store, certificate.get());
  }
  ERR_clear_error();
  return count;
}

// Null, or why it could not be used.
const char* UseCertificate(SSL_CTX* context, const ClientCertificate& pair) {
  const Bio certificates = Reader(pair.certificate);
  const Certificate own(PEM_read_bio_X509(certificates.get(), nullptr, nullptr, nullptr));
  if (own == nullptr || SSL_CTX_use_certificate(context, own.get()) != 1)
    return "the client certificate is no PEM";
  for (;;) {
    Certificate link(PEM_read_bio_X509(certificates.get(), nullptr, nullptr, nullptr));
    if (link == nullptr) break;
    if (SSL_CTX_add1_chain_cert(context, link.get()) != 1)
      return "the client certificate's chain is unusable";
  }
  const Bio keys = Reader(pair.key);
  const Key key(PEM_read_bio_PrivateKey(keys.get(), nullptr, nullptr, nullptr));
  if (key == nullptr || SSL_CTX_use_PrivateKey(context, key.get()) != 1) return "the client key is unusable";
  return SSL_CTX_check_private_key(context) == 1 ? nullptr
                                                 : "the client key does not belong to its certificate";
}

// False where no certificate can carry the name: an empty one OpenSSL would take for "any".
bool SetExpectedName(SSL_CTX* context, const std::string& name) {
  if (name.empty() || name.find('\0') != std::string::npos) return false;
  X509_VERIFY_PARAM* rules = SSL_CTX_get0_param(context);
  return X509_VERIFY_PARAM_set1_ip_asc(rules, name.c_str()) == 1 ||
         X509_VERIFY_PARAM_set1_host(rules, name.data(), name.size()) == 1;
}

}  // namespace

void TlsDiagnosis::Note(std::string reason) {
  const std::lock_guard lock(mutex_);
  reason_ = std::move(reason);
}

std::string TlsDiagnosis::Take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(reason_, {});
}

void StartTls() {
  OPENSSL_init_ssl(0, nullptr);
}

void PrepareTls(SSL_CTX* context, const TlsSettings& settings, Authenticator* authenticator,
                const std::string& host, const std::shared_ptr<TlsDiagnosis>& diagnosis) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_ex_data(context, SlotIndex(), new DiagnosisSlot(diagnosis));
  SSL_CTX_set_info_callback(context, NoteAlert);
  if (!settings.insecure_skip_verify &&
      !SetExpectedName(context, settings.server_name.empty() ? host : settings.server_name)) {
    SSL_CTX_set_cert_store(context, X509_STORE_new());
    return diagnosis->Note("no certificate can carry the name that is expected");
  }
  if (settings.authority) {
    // Whoever made the context may have loaded the system's roots; a cluster's CA replaces them.
    X509_STORE* store = X509_STORE_new();
    const auto pem = settings.authority();
    if (!pem) {
      diagnosis->Note(pem.error().message);
    } else if (AddAuthorities(store, *pem) == 0) {
      diagnosis->Note("the certificate authority holds no certificate");
    }
    SSL_CTX_set_cert_store(context, store);
    // A cluster's CA may stand below another one that its file does not name. Go trusts whatever is in the file;
    // OpenSSL alone would look on for one that has signed itself.
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), X509_V_FLAG_PARTIAL_CHAIN);
  }
  if (authenticator == nullptr) return;
  const auto pair = authenticator->Certificate();
  if (!pair) return diagnosis->Note(pair.error().message);
  if (pair->certificate.empty()) return;
  const char* problem = UseCertificate(context, *pair);
  if (problem != nullptr) diagnosis->Note(problem);
  ERR_clear_error();
}

}  // namespace heddle::kube
