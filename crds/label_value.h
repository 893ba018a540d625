#pragma once

#include <string>
#include <string_view>

namespace heddle::crds {

// Kubernetes takes label values of at most 63 of [A-Za-z0-9._-], beginning and ending with a letter or digit;
// other characters become dashes. Empty when nothing is left.

// Whether a label can have this value; none can be empty here. The same bounds the last part of a key.
bool IsLabelValue(std::string_view text);
// Whether it is a label's key: IsQualifiedName of k8s.io/apimachinery, pkg/util/validation, without a look at each part
// between the dots of its prefix.
bool IsLabelKey(std::string_view key);

// For people to read ("DGX H100" is "DGX-H100"): different texts may become equal.
std::string ReadableLabel(std::string_view text);

// For programs to compare: whatever had to be changed or cut gets a hash of the text behind it, so that
// values are equal only where the texts are.
std::string IdentityLabel(std::string_view text);

// The same as one lower-case label of a DNS name, for object names.
std::string DnsName(std::string_view text);

}  // namespace heddle::crds
