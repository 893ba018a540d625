#include "operator/secret_keys.h"

#include <fmt/format.h>

#include "kube/base64.h"

namespace heddle::operators {
namespace {

using base::Code;

const kube::Resource kSecrets{"", "v1", "secrets", "Secret", true};

}  // namespace

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

base::Result<std::string> KeyOf(const kube::Json& secret, const std::string& name, const char* key) {
  const auto data = kube::StringMapAt(secret, {"data"});
  const auto found = data.find(key);
  if (found == data.end())
    return base::Fail(Code::kInvalid, fmt::format("Secret {} has no key {}", name, key));
  auto value = kube::DecodeBase64(found->second);
  if (!value) return base::Fail(Code::kInvalid, fmt::format("key {} of Secret {} cannot be read", key, name));
  return *std::move(value);
}

bool HasKey(const kube::Json& secret, const char* key) {
  return kube::StringMapAt(secret, {"data"}).contains(key);
}

}  // namespace heddle::operators
