#include "gnmi/trust.h"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <utility>
#include <vector>

#include "base/printable.h"

namespace heddle::gnmi {
namespace {

constexpr std::size_t kMaxNames = 5;  // of a certificate, in a sentence
// SHA-1 and RSA under 2048 bits are refused: what Debian sets for every TLS connection (openssl.cnf, SECLEVEL=2).
constexpr int kSecurityLevel = 2;
// A server's chain has two or three.
constexpr std::size_t kMaxChain = 16;

template <auto Free>
struct Freer {
  template <class T>
  void operator()(T* value) const {
    Free(value);
  }
};
using Bio = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freer<X509_free>>;
using Context = std::unique_ptr<X509_STORE_CTX, Freer<X509_STORE_CTX_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Freer<GENERAL_NAMES_free>>;
using Stack = std::unique_ptr<STACK_OF(X509), decltype([](STACK_OF(X509) * stack) { sk_X509_free(stack); })>;

std::vector<Certificate> Read(std::string_view pem, std::size_t most) {
  std::vector<Certificate> found;
  if (pem.size() > (1u << 24)) return found;
  const Bio bio(BIO_new_mem_buf(pem.data(), int(pem.size())));
  while (found.size() < most) {
    Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    if (certificate == nullptr) break;
    found.push_back(std::move(certificate));
  }
  ERR_clear_error();  // the end is one
  return found;
}

std::shared_ptr<X509_STORE> NewStore() {
  return {X509_STORE_new(), X509_STORE_free};
}

std::shared_ptr<X509_STORE> OfThisMachine() {
  // Shared: a file of 140 authorities is 1 MB of memory and 40 ms.
  static const std::shared_ptr<X509_STORE> kStore = [] {
    auto store = NewStore();
    X509_STORE_load_file(store.get(), X509_get_default_cert_file());
    X509_STORE_load_path(store.get(), X509_get_default_cert_dir());
    ERR_clear_error();
    return store;
  }();
  return kStore;
}

std::string TextOf(const X509_NAME* name) {
  const Bio bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return base::Printable({text, std::size_t(std::max(size, 0L))}, 120);
}

std::string TextOf(const ASN1_TIME* time) {
  std::tm utc{};
  if (ASN1_TIME_to_tm(time, &utc) != 1) return "an unreadable time";
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                     utc.tm_hour, utc.tm_min, utc.tm_sec);
}

std::string TextOf(const GENERAL_NAME* name) {
  int type = 0;
  const void* value = GENERAL_NAME_get0_value(name, &type);
  const auto* bytes = static_cast<const ASN1_STRING*>(value);
  if (type == GEN_DNS)
    return base::Printable({reinterpret_cast<const char*>(ASN1_STRING_get0_data(bytes)),
                            std::size_t(ASN1_STRING_length(bytes))});
  if (type != GEN_IPADD) return {};
  // OpenSSL has no function for the text of an address but the one that prints a whole extension's name.
  const Bio bio(BIO_new(BIO_s_mem()));
  GENERAL_NAME_print(bio.get(), const_cast<GENERAL_NAME*>(name));
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  std::string_view printed(text, std::size_t(std::max(size, 0L)));
  printed.remove_prefix(std::min(printed.size(), printed.find(':') + 1));  // "IP Address:10.0.0.1"
  return base::Printable(printed);
}

// "leaf-3.example, 10.0.0.3", or the subject of a certificate that has no such names.
std::string WhomFor(X509* certificate) {
  const Names names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::string text;
  std::size_t count = 0;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const std::string name = TextOf(sk_GENERAL_NAME_value(names.get(), i));
    if (name.empty()) continue;
    if (++count > kMaxNames) return text + ", …";
    text += (text.empty() ? "" : ", ") + name;
  }
  return text.empty() ? TextOf(X509_get_subject_name(certificate)) : text;
}

// What X509_verify_cert found, as the end of a sentence.
std::string Reason(X509_STORE_CTX* context, X509* own, const std::string& name, bool given) {
  X509* at = X509_STORE_CTX_get_current_cert(context);
  if (at == nullptr) at = own;
  const int error = X509_STORE_CTX_get_error(context);
  const std::string whose =
      at == own ? "has a certificate"
                : fmt::format("has a certificate whose authority {}", TextOf(X509_get_subject_name(at)));
  switch (error) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return fmt::format(
          "has a certificate for {}, not for {}: name it as its certificate does (server name), or "
          "give it one with this name",
          WhomFor(own), name);
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return fmt::format("{} {} on {}", whose, at == own ? "that expired" : "expired",
                         TextOf(X509_get0_notAfter(at)));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return fmt::format("{} {} only from {} on: is the clock right here, and was it there?", whose,
                         at == own ? "that is good" : "is good", TextOf(X509_get0_notBefore(at)));
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return fmt::format("has a certificate from {}, {}", TextOf(X509_get_issuer_name(at)),
                         given ? "which is not the authority that was given for it"
                               : "which this machine does not know: give its authority (ca.crt)");
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return fmt::format("has a certificate that {} has not signed with the key that was given for it",
                         TextOf(X509_get_issuer_name(at)));
    default:
      return fmt::format("has a certificate that is refused: {}", X509_verify_cert_error_string(error));
  }
}

Key ReadKey(const std::string& pem) {
  const Bio bio(BIO_new_mem_buf(pem.data(), int(pem.size())));
  // With no passphrase given OpenSSL would ask for one at a terminal.
  return Key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, const_cast<char*>("")));
}

// What is wrong with the two of them, or nothing. No text is too large.
std::string WhyNotShown(const std::string& certificate_pem, const std::string& key_pem) {
  const std::vector<Certificate> chain = Read(certificate_pem, 1);
  if (chain.empty()) return "tls.crt holds no certificate in PEM";
  X509* own = chain[0].get();
  const Key key = ReadKey(key_pem);
  if (key == nullptr) {
    return key_pem.find("ENCRYPTED") == std::string::npos
               ? "tls.key holds no private key in PEM"
               : "tls.key has a passphrase, and nobody can be asked for it: give the key without one";
  }
  if (X509_check_private_key(own, key.get()) != 1)
    return fmt::format("tls.key is not the key of the certificate in tls.crt ({})",
                       TextOf(X509_get_subject_name(own)));
  if (X509_cmp_current_time(X509_get0_notAfter(own)) < 0)
    return fmt::format("tls.crt has a certificate that expired on {}", TextOf(X509_get0_notAfter(own)));
  if (X509_cmp_current_time(X509_get0_notBefore(own)) > 0)
    return fmt::format("tls.crt has a certificate that is good only from {} on: is the clock right here?",
                       TextOf(X509_get0_notBefore(own)));
  // As gRPC will: with the strength that this machine wants of every TLS connection.
  const std::unique_ptr<SSL_CTX, Freer<SSL_CTX_free>> context(SSL_CTX_new(TLS_client_method()));
  if (context == nullptr || SSL_CTX_use_certificate(context.get(), own) != 1 ||
      SSL_CTX_use_PrivateKey(context.get(), key.get()) != 1)
    return "tls.crt or tls.key is too weak for TLS here: take EC P-256, or RSA of 2048 bits or more, and "
           "SHA-256";
  return {};
}

}  // namespace

Trust::Trust(std::shared_ptr<x509_store_st> store, std::string name, bool given)
    : store_(std::move(store)), name_(std::move(name)), given_(given) {}

base::Result<std::shared_ptr<const Trust>> Trust::Of(const std::string& ca_pem, std::string name) {
  if (ca_pem.empty()) return std::shared_ptr<const Trust>(new Trust(OfThisMachine(), std::move(name), false));
  auto store = NewStore();
  const std::vector<Certificate> authorities = Read(ca_pem, 1000);
  if (authorities.empty())
    return base::Fail(base::Code::kInvalid,
                      "the authority that was given (ca.crt) holds no certificate in PEM");
  for (const Certificate& authority : authorities) X509_STORE_add_cert(store.get(), authority.get());
  ERR_clear_error();
  return std::shared_ptr<const Trust>(new Trust(std::move(store), std::move(name), true));
}

std::string Trust::WhyNot(std::string_view chain_pem) const {
  const std::vector<Certificate> chain = Read(chain_pem, kMaxChain);
  if (chain.empty()) return "presents no certificate";
  const Stack others(sk_X509_new_null());
  for (std::size_t i = 1; i < chain.size(); ++i) sk_X509_push(others.get(), chain[i].get());
  const Context context(X509_STORE_CTX_new());
  if (X509_STORE_CTX_init(context.get(), store_.get(), chain[0].get(), others.get()) != 1 ||
      X509_STORE_CTX_set_default(context.get(), "ssl_server") != 1)
    return "has a certificate that cannot be looked at";
  X509_VERIFY_PARAM* rules = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_auth_level(rules, kSecurityLevel);
  X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (X509_VERIFY_PARAM_set1_ip_asc(rules, name_.c_str()) != 1 &&
      X509_VERIFY_PARAM_set1_host(rules, name_.data(), name_.size()) != 1)
    return fmt::format("cannot be looked for as {}: no certificate has such a name", base::Printable(name_));
  const bool good = X509_verify_cert(context.get()) == 1;
  std::string why = good ? "" : Reason(context.get(), chain[0].get(), name_, given_);
  ERR_clear_error();
  return why;
}

base::Status CheckIdentity(const std::string& certificate_pem, const std::string& key_pem) {
  const auto refuse = [](std::string why) { return base::Fail(base::Code::kInvalid, std::move(why)); };
  if (certificate_pem.empty() && key_pem.empty()) return {};
  if (key_pem.empty()) return refuse("tls.crt without tls.key: a client shows both, or none");
  if (certificate_pem.empty()) return refuse("tls.key without tls.crt: a client shows both, or none");
  for (const auto& [name, size] :
       {std::pair{"tls.crt", certificate_pem.size()}, std::pair{"tls.key", key_pem.size()}}) {
    if (size > kMaxIdentityPem)
      return refuse(fmt::format("{}: {} bytes; {} at most", name, size, kMaxIdentityPem));
  }
  std::string why = WhyNotShown(certificate_pem, key_pem);
  ERR_clear_error();
  if (!why.empty()) return refuse(std::move(why));
  return {};
}

}  // namespace heddle::gnmi
