#include "operator/switch_endpoint.h"

#include <fmt/format.h>

#include <string_view>

#include "kube/base64.h"

namespace heddle::operators {
namespace {

using base::Code;

const kube::Resource kSecrets{"", "v1", "secrets", "Secret", true};

base::Result<std::string> KeyOf(const kube::Json& secret, const std::string& name, const char* key) {
  const auto data = kube::StringMapAt(secret, {"data"});
  const auto found = data.find(key);
  if (found == data.end())
    return base::Fail(Code::kInvalid, fmt::format("Secret {} has no key {}", name, key));
  auto value = kube::DecodeBase64(found->second);
  if (!value) return base::Fail(Code::kInvalid, fmt::format("key {} of Secret {} cannot be read", key, name));
  return *std::move(value);
}

base::Result<kube::Json> ReadSecret(kube::Client& client, const std::string& ns, const std::string& name,
                                    const std::stop_token& stop) {
  auto secret = client.Get(kSecrets, {ns, name}, stop);
  if (secret) return secret;
  if (secret.error().code == Code::kNotFound)
    return base::Fail(Code::kNotFound, fmt::format("there is no Secret {} in namespace {}", name, ns));
  if (secret.error().code == Code::kForbidden) {
    return base::Fail(
        Code::kForbidden,
        fmt::format("the operator may not read Secret {} in namespace {}: name it in the chart's value "
                    "operator.switches.secrets",
                    name, ns));
  }
  return base::Fail(secret.error().In(fmt::format("read Secret {} in namespace {}", name, ns)));
}

}  // namespace

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
