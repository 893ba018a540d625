#include "operator/switch_endpoint.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "gnmi/trust.h"
#include "operator/secret_keys.h"

namespace heddle::operators {

using base::Code;

namespace {

// A key that is missing is the Secret's fault, and not that of what the switch answers.
base::Result<std::string> Key(const kube::Json& secret, const std::string& name, const char* key) {
  auto value = KeyOf(secret, name, key);
  if (!value) return base::Fail(Code::kNotFound, std::move(value).error().message);
  return value;
}

base::Status ReadCredentials(const kube::Json& secret, const std::string& name, gnmi::Endpoint& endpoint) {
  const bool login = HasKey(secret, "username") || HasKey(secret, "password");
  const bool certificate = HasKey(secret, "tls.crt") || HasKey(secret, "tls.key");
  if (!login && !certificate)
    return base::Fail(
        Code::kNotFound,
        fmt::format("Secret {} has neither username and password nor tls.crt and tls.key", name));
  if (login) {
    ASSIGN_OR_RETURN(endpoint.username, Key(secret, name, "username"));
    ASSIGN_OR_RETURN(endpoint.password, Key(secret, name, "password"));
  }
  if (!certificate) return {};
  ASSIGN_OR_RETURN(endpoint.certificate_pem, Key(secret, name, "tls.crt"));
  ASSIGN_OR_RETURN(endpoint.key_pem, Key(secret, name, "tls.key"));
  // Two keys that are there and empty are no certificate, and meant to be one.
  if (endpoint.certificate_pem.empty() && endpoint.key_pem.empty())
    return base::Fail(Code::kNotFound, fmt::format("Secret {}: tls.crt and tls.key are empty", name));
  if (auto usable = gnmi::CheckIdentity(endpoint.certificate_pem, endpoint.key_pem); !usable)
    return base::Fail(Code::kNotFound, fmt::format("Secret {}: {}", name, usable.error().message));
  return {};
}

}  // namespace

base::Result<gnmi::Endpoint> ReadEndpoint(kube::Client& client, const std::string& ns,
                                          const crds::FabricSwitch& fabric_switch,
                                          const std::stop_token& stop) {
  const crds::FabricSwitchSpec& spec = fabric_switch.spec;
  gnmi::Endpoint endpoint{.address = spec.address, .server_name = spec.tls.server_name};
  if (!spec.tls.ca_secret.empty()) {
    ASSIGN_OR_RETURN(const kube::Json secret, ReadSecret(client, ns, spec.tls.ca_secret, stop));
    ASSIGN_OR_RETURN(endpoint.ca_pem, Key(secret, spec.tls.ca_secret, "ca.crt"));
  }
  if (!spec.credentials_secret.empty()) {
    ASSIGN_OR_RETURN(const kube::Json secret, ReadSecret(client, ns, spec.credentials_secret, stop));
    TRY(ReadCredentials(secret, spec.credentials_secret, endpoint));
  }
  return endpoint;
}

SwitchTrouble TroubleOf(const base::Error& error) {
  const auto is = [&](std::string_view reason, std::string_view next) {
    return SwitchTrouble{std::string(reason), fmt::format("{}; {}", error.message, next)};
  };
  switch (error.code) {
    case Code::kUnauthorized:
      return is("PasswordRefused", "see user name and password, or the certificate, in credentialsSecret");
    case Code::kForbidden:
      return is("NotAllowed", "give the user that is named the right to read");
    case Code::kUnimplemented:
      return is("NoGnmi", "see address and dialect");
    case Code::kTimeout:
    case Code::kThrottled:
      return is("TooSlow", "it is asked again; if it stays so, look at the switch's gnmi service");
    case Code::kInvalid:
    case Code::kTooLarge:
    case Code::kInternal:
      return is("Unreadable", "nothing of it is used; look at the switch's gnmi service");
    case Code::kNotFound:
      return is("NotFound", "make or correct it, or correct the FabricSwitch");
    default:
      break;
  }
  // gRPC has one code for whatever keeps a connection from standing, and does not say why a switch hangs up. One that
  // wants a client's certificate does so in the handshake with TLS 1.2, and right behind it with 1.3.
  for (const std::string_view hung_up : {"fails the TLS handshake", "ended the connection"}) {
    if (error.message.find(hung_up) != std::string::npos)
      return is(
          "Unreachable",
          "see address, and whether the switch's gnmi service runs; a switch that wants a client certificate "
          "hangs up, too, unless credentialsSecret has one that it trusts (tls.crt and tls.key)");
  }
  if (error.message.find("certificate") != std::string::npos)
    return is("CertificateRefused", "see tls.serverName and tls.caSecret");
  return is("Unreachable", "see address, and whether the switch's gnmi service runs");
}

}  // namespace heddle::operators
