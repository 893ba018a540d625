#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <atomic>

#include "base/check.h"
#include "tests/support/scripted_http_server.h"

namespace heddle::test {
namespace {

std::string PemOf(const std::function<int(BIO*)>& write) {
  BIO* bio = BIO_new(BIO_s_mem());
  CHECK(write(bio) == 1);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  std::string pem(text, std::size_t(size));
  BIO_free(bio);
  return pem;
}

void Extend(X509* certificate, X509* issuer, int extension, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* made = X509V3_EXT_conf_nid(nullptr, &context, extension, value.c_str());
  CHECK(made != nullptr);
  X509_add_ext(certificate, made, -1);
  X509_EXTENSION_free(made);
}

X509* Blank(const std::string& common_name, EVP_PKEY* key) {
  static std::atomic<long> serial{1};
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
  // The tests' own clock does not reach OpenSSL, so the certificate is good for a day around now.
  X509_gmtime_adj(X509_getm_notBefore(certificate), -86400);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1, 0);
  X509_set_pubkey(certificate, key);
  return certificate;
}

TestCertificate Finish(X509* certificate, EVP_PKEY* key, EVP_PKEY* signer) {
  CHECK(X509_sign(certificate, signer, EVP_sha256()) > 0);
  TestCertificate pair;
  pair.certificate = PemOf([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
  pair.key = PemOf(
      [&](BIO* bio) { return PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr); });
  X509_free(certificate);
  EVP_PKEY_free(key);
  return pair;
}

// Who signs, from PEM.
struct Signer {
  explicit Signer(const TestCertificate& pair) {
    BIO* certificate_reader = BIO_new_mem_buf(pair.certificate.data(), -1);
    BIO* key_reader = BIO_new_mem_buf(pair.key.data(), -1);
    certificate = PEM_read_bio_X509(certificate_reader, nullptr, nullptr, nullptr);
    key = PEM_read_bio_PrivateKey(key_reader, nullptr, nullptr, nullptr);
    BIO_free(certificate_reader);
    BIO_free(key_reader);
  }
  ~Signer() {
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
  Signer(const Signer&) = delete;
  Signer& operator=(const Signer&) = delete;

  X509* certificate = nullptr;
  EVP_PKEY* key = nullptr;
};

void MakeAuthority(X509* certificate) {
  Extend(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE");
  Extend(certificate, certificate, NID_key_usage, "critical,keyCertSign,cRLSign");
}

}  // namespace

TestAuthority::TestAuthority(const std::string& name) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = Blank(name, key);
  X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
  MakeAuthority(certificate);
  self_ = Finish(certificate, key, key);
}

TestAuthority::TestAuthority(const std::string& name, const TestAuthority& above) {
  const Signer signer(above.self_);
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = Blank(name, key);
  X509_set_issuer_name(certificate, X509_get_subject_name(signer.certificate));
  MakeAuthority(certificate);
  self_ = Finish(certificate, key, signer.key);
}

TestCertificate TestAuthority::Issue(const std::string& common_name, const std::string& subject_alt_names,
                                     std::chrono::seconds from, std::chrono::seconds until) const {
  const Signer signer(self_);
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = Blank(common_name, key);
  X509_set_issuer_name(certificate, X509_get_subject_name(signer.certificate));
  X509_gmtime_adj(X509_getm_notBefore(certificate), from.count());
  X509_gmtime_adj(X509_getm_notAfter(certificate), until.count());
  if (!subject_alt_names.empty())
    Extend(certificate, signer.certificate, NID_subject_alt_name, subject_alt_names);
  return Finish(certificate, key, signer.key);
}

TestCertificate SelfSigned(const std::string& common_name, const std::string& subject_alt_names) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = Blank(common_name, key);
  X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
  Extend(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE");
  Extend(certificate, certificate, NID_subject_alt_name, subject_alt_names);
  return Finish(certificate, key, key);
}

}  // namespace heddle::test
