#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "kube/client.h"

namespace heddle::operators {

// A Secret of Heddle's own namespace. Errors: kNotFound, or kForbidden with the chart's value that would allow it.
[[nodiscard]] base::Result<kube::Json> ReadSecret(kube::Client& client, const std::string& ns,
                                                  const std::string& name, const std::stop_token& stop);

// What is under a key of it. Errors: kInvalid with the Secret and the key, and never what is in it.
[[nodiscard]] base::Result<std::string> KeyOf(const kube::Json& secret, const std::string& name,
                                              const char* key);
bool HasKey(const kube::Json& secret, const char* key);

}  // namespace heddle::operators
