#include "kube/server_url.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>

namespace heddle::kube {
namespace {

using base::Code;
using base::Fail;
using base::Result;

bool IsVisible(char c) {
  return c > ' ' && c < 0x7f;  // a char beyond ASCII is negative, or above on ARM
}

// Nothing where a percent sign has no two digits behind it.
std::optional<std::string> PercentDecode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    std::uint8_t byte = 0;
    if (i + 2 >= text.size()) return std::nullopt;
    const char* end = text.data() + i + 3;
    if (std::from_chars(text.data() + i + 1, end, byte, 16).ptr != end) return std::nullopt;
    decoded += char(byte);
    i += 2;
  }
  return decoded;
}

bool IsScheme(std::string_view text, std::string_view scheme) {
  return std::equal(text.begin(), text.end(), scheme.begin(), scheme.end(),
                    [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
}

// "host", "host:1", "[::1]", "[::1]:1".
base::Status ReadAuthority(std::string_view authority, ServerUrl& url) {
  std::string_view port;
  const std::size_t bracket = authority.starts_with('[') ? authority.find(']') : std::string_view::npos;
  if (authority.starts_with('[')) {
    if (bracket == std::string_view::npos) return Fail(Code::kInvalid, "the address's ] is missing");
    url.host = authority.substr(1, bracket - 1);
    port = authority.substr(bracket + 1);
  } else {
    const std::size_t colon = std::min(authority.find(':'), authority.size());
    url.host = authority.substr(0, colon);
    port = authority.substr(colon);
  }
  // An empty name would be one that every certificate carries.
  if (url.host.empty()) return Fail(Code::kInvalid, "it has no host");
  url.authority = authority;
  url.port = url.tls ? "443" : "80";
  if (port.empty()) return {};
  int number = 0;
  const char* end = port.data() + port.size();
  const auto [read, error] = std::from_chars(port.data() + 1, end, number);
  if (port.front() != ':' || read != end || error != std::errc{} || number < 1 || number > 65535) {
    return Fail(Code::kInvalid, "its port is no number from 1 to 65535");
  }
  url.port = std::to_string(number);
  return {};
}

}  // namespace

std::string ServerUrl::HostAndPort() const {
  return host.find(':') != std::string::npos ? fmt::format("[{}]:{}", host, port)
                                             : fmt::format("{}:{}", host, port);
}

Result<ServerUrl> ParseServerUrl(std::string_view url) {
  ServerUrl parsed;
  const std::size_t mark = url.find("://");
  const std::string_view scheme = url.substr(0, mark == std::string_view::npos ? 0 : mark);
  parsed.tls = IsScheme(scheme, "https");
  if (!parsed.tls && !IsScheme(scheme, "http")) {
    return Fail(Code::kInvalid, "it begins neither with https:// nor with http://");
  }
  if (!std::all_of(url.begin(), url.end(), IsVisible)) {
    return Fail(Code::kInvalid, "it has a character in it that no URL may have");
  }
  std::string_view rest = url.substr(mark + 3);
  if (rest.find_first_of("?#") != std::string_view::npos) {
    return Fail(Code::kInvalid, "it has a query or a fragment");
  }
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view authority = rest.substr(0, slash);
  std::string_view prefix = rest.substr(slash);
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  parsed.prefix = prefix;
  if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
    auto login = PercentDecode(authority.substr(0, at));
    if (!login) return Fail(Code::kInvalid, "its login is not encoded well");
    parsed.login = *std::move(login);
    authority.remove_prefix(at + 1);
  }
  TRY(ReadAuthority(authority, parsed));
  return parsed;
}

}  // namespace heddle::kube
