#include "crds/endpoint_codec.h"

#include <fmt/format.h>

#include <charconv>

namespace heddle::crds::codec {
namespace {

constexpr std::size_t kMaxName = 253;

// "leaf-3:8080", "10.0.0.3:8080", "[fd00::3]:8080".
bool IsAddress(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  int number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || end != port.data() + port.size() || port.size() > 5 || number < 1 ||
      number > 65'535)
    return false;
  if (!host.starts_with('[')) return host.find_first_of(" :") == std::string_view::npos;
  return host.ends_with(']') && host.size() > 2 &&
         host.substr(1, host.size() - 2).find_first_not_of("0123456789abcdefABCDEF:.") ==
             std::string_view::npos;
}

// As Secrets are named.
std::string ReadObjectName(const Field& field) {
  std::string name = field.Name(kMaxName);
  constexpr std::string_view kInner = "abcdefghijklmnopqrstuvwxyz0123456789-.";
  const bool good = !name.empty() && name.find_first_not_of(kInner) == std::string::npos &&
                    name.front() != '-' && name.front() != '.';
  if (field.present() && !good) field.Refuse("is no name of an object: lower case letters, digits, - and .");
  return name;
}

}  // namespace

std::string ReadAddress(const Field& field, std::string_view example) {
  std::string address = field.Required().Name(259);
  if (field.present() && !IsAddress(address))
    field.Refuse(fmt::format("must be host:port with a port from 1 to 65535, as {}", example));
  return address;
}

std::string ReadSecretName(const Field& field) {
  if (!field.present()) return "";
  field.CheckObject();
  const Field name = field("name");
  return ReadObjectName(name.Required());
}

Json WriteSecretName(const std::string& name) {
  return {{"name", Clean(name, kMaxName)}};
}

}  // namespace heddle::crds::codec
