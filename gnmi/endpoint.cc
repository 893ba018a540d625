#include "gnmi/endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/printable.h"

namespace heddle::gnmi {
namespace {

using base::Code;

constexpr std::size_t kMaxHost = 253;     // a DNS name
constexpr std::size_t kMaxSecret = 1024;  // gRPC servers take 8 KiB of headers

bool IsIn(std::string_view text, std::string_view others) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           others.find(c) != std::string_view::npos;
  });
}

bool IsHost(std::string_view text) {
  return !text.empty() && text.size() <= kMaxHost && IsIn(text, ".-_");
}

bool IsHexAddress(std::string_view text) {
  return text.find(':') != std::string_view::npos && text.size() <= kMaxHost && IsIn(text, ":.");
}

base::Status CheckHeader(std::string_view name, std::string_view text) {
  if (text.size() > kMaxSecret)
    return base::Fail(Code::kInvalid, fmt::format("{}: {} bytes; {} at most", name, text.size(), kMaxSecret));
  const auto bad = std::find_if(text.begin(), text.end(), [](char c) { return c < 0x20 || c > 0x7e; });
  if (bad != text.end())
    return base::Fail(
        Code::kInvalid,
        fmt::format("{}: character {} of {} is {}, and gNMI carries printable ASCII only", name,
                    bad - text.begin() + 1, text.size(), *bad == '\n' ? "a line break" : "something else"));
  // HTTP/2 strips them on the way, and the switch would see another word.
  if (!text.empty() && (text.front() == ' ' || text.back() == ' '))
    return base::Fail(Code::kInvalid, fmt::format("{}: it begins or ends with a blank", name));
  return {};
}

}  // namespace

base::Result<HostPort> ParseAddress(std::string_view address) {
  const auto refuse = [&] {
    return base::Fail(Code::kInvalid,
                      fmt::format("address \"{}\": write host:port, as leaf-3.example:8080, 10.0.0.3:8080 or "
                                  "[fd00::3]:8080",
                                  base::Printable(address)));
  };
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return refuse();
  std::string_view host = address.substr(0, colon);
  const std::string_view digits = address.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    if (!IsHexAddress(host)) return refuse();
  } else if (!IsHost(host)) {
    return refuse();
  }
  HostPort parts{std::string(host), 0};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), parts.port);
  if (error != std::errc() || end != digits.data() + digits.size() || parts.port < 1 || parts.port > 65535)
    return refuse();
  return parts;
}

base::Status CheckEndpoint(const Endpoint& endpoint) {
  TRY(ParseAddress(endpoint.address));
  if (!endpoint.server_name.empty() && !IsHost(endpoint.server_name) && !IsHexAddress(endpoint.server_name))
    return base::Fail(Code::kInvalid, fmt::format("server name \"{}\": write the name or the IP address that "
                                                  "stands in its certificate",
                                                  base::Printable(endpoint.server_name)));
  TRY(CheckHeader("user name", endpoint.username));
  TRY(CheckHeader("password", endpoint.password));
  if (endpoint.username.empty() && !endpoint.password.empty())
    return base::Fail(Code::kInvalid, "a password without a user name");
  return {};
}

}  // namespace heddle::gnmi
