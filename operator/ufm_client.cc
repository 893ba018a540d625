#include "operator/ufm_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kube/base64.h"
#include "operator/secret_keys.h"

namespace heddle::operators {
namespace {

using base::Code;
using base::Fail;

// One header, whatever UFM wants.
class FixedHeader final : public kube::Authenticator {
 public:
  explicit FixedHeader(std::string value) : value_(std::move(value)) {}
  base::Result<std::vector<kube::HttpHeader>> Headers() override {
    return std::vector<kube::HttpHeader>{{"Authorization", value_}};
  }
  base::Result<kube::ClientCertificate> Certificate() override { return kube::ClientCertificate{}; }
  void Rejected() override {}

 private:
  const std::string value_;
};

// A key that is missing is the Secret's fault, and not that of what UFM answers.
base::Result<std::string> Key(const kube::Json& secret, const std::string& name, const char* key) {
  auto value = KeyOf(secret, name, key);
  if (!value) return Fail(Code::kNotFound, value.error().message);
  return value;
}

bool IsPlain(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 127; });
}

// What a status other than 200 means.
base::Error ErrorOf(int status, std::string_view target) {
  const auto is = [&](Code code, std::string_view what) {
    return base::Error{code, fmt::format("GET {}: {} ({})", target, what, status), std::nullopt};
  };
  if (status == 401) return is(Code::kUnauthorized, "UFM does not take this login");
  if (status == 403) return is(Code::kForbidden, "this login may not read");
  if (status == 404) return is(Code::kUnimplemented, "UFM does not know it");
  if (status == 429) return is(Code::kThrottled, "UFM is asked too often");
  if (status >= 300 && status < 400) return is(Code::kInvalid, "UFM sends us elsewhere, where we do not go");
  if (status >= 500) return is(Code::kUnavailable, "UFM says that it is in trouble");
  return is(Code::kInvalid, "UFM answers with a status that it should not have");
}

}  // namespace

base::Result<UfmEndpoint> ReadUfmEndpoint(kube::Client& client, const std::string& ns,
                                          const crds::FabricUfm& ufm, const std::stop_token& stop) {
  UfmEndpoint endpoint{.address = ufm.address, .server_name = ufm.server_name};
  ASSIGN_OR_RETURN(const kube::Json authority, ReadSecret(client, ns, ufm.ca_secret, stop));
  ASSIGN_OR_RETURN(endpoint.ca_pem, Key(authority, ufm.ca_secret, "ca.crt"));
  ASSIGN_OR_RETURN(const kube::Json login, ReadSecret(client, ns, ufm.credentials_secret, stop));
  if (HasKey(login, "token")) {
    ASSIGN_OR_RETURN(const std::string token, Key(login, ufm.credentials_secret, "token"));
    if (!IsPlain(token))
      return Fail(Code::kNotFound,
                  fmt::format("key token of Secret {} is no token: it is empty, or has spaces or line ends",
                              ufm.credentials_secret));
    endpoint.authorization = "Basic " + token;
    endpoint.base_path = "/ufmRestV3";
    return endpoint;
  }
  ASSIGN_OR_RETURN(const std::string username, Key(login, ufm.credentials_secret, "username"));
  ASSIGN_OR_RETURN(const std::string password, Key(login, ufm.credentials_secret, "password"));
  endpoint.authorization = "Basic " + kube::EncodeBase64(username + ":" + password);
  return endpoint;
}

kube::ClientConfig ConfigOf(const UfmEndpoint& endpoint) {
  kube::ClientConfig config;
  config.server = "https://" + endpoint.address;
  config.tls.authority = [pem = endpoint.ca_pem]() -> base::Result<std::string> { return pem; };
  config.tls.server_name = endpoint.server_name;
  config.authenticator = std::make_shared<FixedHeader>(endpoint.authorization);
  return config;
}

base::Result<std::string> UfmClient::Get(std::string_view target, const std::stop_token& stop) {
  kube::HttpRequest request{.method = "GET", .target = base_path_ + std::string(target)};
  request.headers.push_back({"Accept", "application/json"});
  request.timeout = timeout_;
  ASSIGN_OR_RETURN(kube::HttpResponse answer, transport_->Do(request, stop));
  if (answer.status != 200) return Fail(ErrorOf(answer.status, request.target));
  return std::move(answer.body);
}

base::Result<std::vector<switches::UfmPort>> UfmClient::Ports(const std::stop_token& stop) {
  std::vector<switches::UfmPort> ports;
  for (int page = 1; page <= kMaxUfmPages; ++page) {
    ASSIGN_OR_RETURN(const std::string body, Get(switches::UfmPortsTarget(page), stop));
    ASSIGN_OR_RETURN(switches::UfmPortPage read, switches::ReadUfmPorts(body, page));
    for (switches::UfmPort& port : read.ports) {
      if (ports.size() < switches::kMaxUfmPorts) ports.push_back(std::move(port));
    }
    if (!read.more) break;
  }
  return ports;
}

base::Result<switches::UfmCounters> UfmClient::Counters(const std::stop_token& stop) {
  ASSIGN_OR_RETURN(const std::string body, Get(switches::kUfmCounters, stop));
  return switches::ReadUfmCounters(body);
}

SwitchTrouble UfmTroubleOf(const base::Error& error) {
  const auto is = [&](std::string_view reason, std::string_view next) {
    return SwitchTrouble{std::string(reason), fmt::format("{}; {}", error.message, next)};
  };
  switch (error.code) {
    case Code::kUnauthorized:
      return is("PasswordRefused", "see the user name and password, or the token, in credentialsSecret");
    case Code::kForbidden:
      return is("NotAllowed", "give the user that is named the right to read");
    case Code::kUnimplemented:
      return is("NoUfm", "see address, and whether its version has this");
    case Code::kTimeout:
    case Code::kThrottled:
      return is("TooSlow", "it is asked again; if it stays so, look at UFM's own health");
    case Code::kInvalid:
    case Code::kTooLarge:
    case Code::kInternal:
      return is("Unreadable", "nothing of it is used; look at what UFM answers");
    case Code::kNotFound:
      return is("NotFound", "make it, or correct spec.ufm");
    default:
      break;
  }
  if (error.message.find("certificate") != std::string::npos)
    return is("CertificateRefused", "see tls.serverName and tls.caSecret");
  return is("Unreachable", "see address, and whether UFM runs");
}

}  // namespace heddle::operators
