#include "operator/switch_endpoint.h"

#include <fmt/format.h>

#include <string_view>

#include "operator/secret_keys.h"

namespace heddle::operators {

using base::Code;

base::Result<gnmi::Endpoint> ReadEndpoint(kube::Client& client, const std::string& ns,
                                          const crds::FabricSwitch& fabric_switch,
                                          const std::stop_token& stop) {
  const crds::FabricSwitchSpec& spec = fabric_switch.spec;
  gnmi::Endpoint endpoint{.address = spec.address, .server_name = spec.tls.server_name};
  if (!spec.tls.ca_secret.empty()) {
    ASSIGN_OR_RETURN(const kube::Json secret, ReadSecret(client, ns, spec.tls.ca_secret, stop));
    ASSIGN_OR_RETURN(endpoint.ca_pem, KeyOf(secret, spec.tls.ca_secret, "ca.crt"));
  }
  if (!spec.credentials_secret.empty()) {
    ASSIGN_OR_RETURN(const kube::Json secret, ReadSecret(client, ns, spec.credentials_secret, stop));
    ASSIGN_OR_RETURN(endpoint.username, KeyOf(secret, spec.credentials_secret, "username"));
    ASSIGN_OR_RETURN(endpoint.password, KeyOf(secret, spec.credentials_secret, "password"));
  }
  return endpoint;
}

SwitchTrouble TroubleOf(const base::Error& error) {
  const auto is = [&](std::string_view reason, std::string_view next) {
    return SwitchTrouble{std::string(reason), fmt::format("{}; {}", error.message, next)};
  };
  switch (error.code) {
    case Code::kUnauthorized:
      return is("PasswordRefused", "see the user name and password in credentialsSecret");
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
      return is("NotFound", "make it, or correct the FabricSwitch");
    default:
      break;
  }
  // gRPC has one code for whatever keeps a connection from standing.
  if (error.message.find("certificate") != std::string::npos)
    return is("CertificateRefused", "see tls.serverName and tls.caSecret");
  return is("Unreachable", "see address, and whether the switch's gnmi service runs");
}

}  // namespace heddle::operators
