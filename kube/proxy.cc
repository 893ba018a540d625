#include "kube/proxy.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "base/lower_case.h"
#include "base/trimmed.h"

namespace heddle::kube {
namespace {

// IPv4 as ::ffff:a.b.c.d, so that one comparison serves both.
using Address = std::array<std::uint8_t, 16>;
constexpr std::size_t kMappedBytes = 12;

std::optional<Address> ParseAddress(std::string_view text) {
  const std::string host(text);
  Address address{};
  if (::inet_pton(AF_INET, host.c_str(), address.data() + kMappedBytes) == 1) {
    address[10] = address[11] = 0xff;
    return address;
  }
  if (::inet_pton(AF_INET6, host.c_str(), address.data()) == 1) return address;
  return std::nullopt;
}

bool SamePrefix(const Address& a, const Address& b, int bits) {
  const auto whole = std::size_t(bits / 8);
  if (!std::equal(a.begin(), a.begin() + std::ptrdiff_t(whole), b.begin())) return false;
  const int rest = bits % 8;
  return rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0;
}

bool IsIpv4(const Address& address) {
  const Address mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return SamePrefix(address, mapped, 8 * int(kMappedBytes));
}

bool IsLoopback(const Address& address) {
  Address six{};
  six.back() = 1;
  return address == six || (IsIpv4(address) && address[kMappedBytes] == 127);
}

struct Network {
  Address address;
  int bits;  // of 128
};

std::optional<Network> ParseNetwork(std::string_view item) {
  const std::size_t slash = item.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto address = ParseAddress(item.substr(0, slash));
  const std::string_view digits = item.substr(slash + 1);
  int bits = 0;
  const char* end = digits.data() + digits.size();
  const auto [read, error] = std::from_chars(digits.data(), end, bits);
  const bool four = item.find(':') == std::string_view::npos;
  if (!address || read != end || error != std::errc{} || bits < 0 || bits > (four ? 32 : 128))
    return std::nullopt;
  return Network{*address, four ? bits + 8 * int(kMappedBytes) : bits};
}

// ::/0 holds no IPv4 address, as in Go.
bool Holds(const Network& network, const Address& address) {
  return IsIpv4(network.address) == IsIpv4(address) && SamePrefix(network.address, address, network.bits);
}

// "host:port" and "[::1]:port" taken apart; all of it is the host where there is no port.
std::pair<std::string_view, std::string_view> SplitPort(std::string_view item) {
  const std::size_t colon = item.rfind(':');
  if (colon == std::string_view::npos) return {item, ""};
  std::string_view host = item.substr(0, colon);
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.find_first_of(bracketed ? "[]" : "[]:") != std::string_view::npos) return {item, ""};
  return {host, item.substr(colon + 1)};
}

struct Target {
  std::string host, port;  // in lower case, and decimal
  std::optional<Address> address;
};

bool Lists(std::string_view item, const Target& target) {
  if (item.empty()) return false;
  if (item == "*") return true;
  if (const auto network = ParseNetwork(item)) return target.address && Holds(*network, *target.address);
  auto [host, port] = SplitPort(item);
  if (host.empty() || (!port.empty() && port != target.port)) return false;
  if (const auto address = ParseAddress(host)) return target.address == address;
  if (target.address) return false;
  if (host.starts_with("*.")) host.remove_prefix(1);
  if (host.starts_with('.')) return target.host.ends_with(host);
  return target.host == host || target.host.ends_with("." + std::string(host));
}

bool GoesDirectly(const Target& target, std::string_view unproxied) {
  if (target.host == "localhost" || (target.address && IsLoopback(*target.address))) return true;
  for (;;) {
    const std::size_t comma = unproxied.find(',');
    if (Lists(base::LowerCase(std::string(base::Trimmed(unproxied.substr(0, comma)))), target)) return true;
    if (comma == std::string_view::npos) return false;
    unproxied.remove_prefix(comma + 1);
  }
}

struct Variable {
  std::string name, value;
};

// The first of `names` that is not empty.
Variable FirstOf(const std::vector<std::string>& environment, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    for (const std::string& entry : environment) {
      if (entry.size() > name.size() + 1 && entry.starts_with(name) && entry[name.size()] == '=')
        return {std::string(name), entry.substr(name.size() + 1)};
    }
  }
  return {};
}

}  // namespace

std::optional<EnvironmentProxy> ProxyFromEnvironment(const std::vector<std::string>& environment,
                                                     const ServerUrl& server) {
  Variable proxy = server.tls ? FirstOf(environment, {"HTTPS_PROXY", "https_proxy"})
                              : FirstOf(environment, {"HTTP_PROXY", "http_proxy"});
  if (proxy.value.empty()) return std::nullopt;
  const Target target{base::LowerCase(server.host), server.port, ParseAddress(server.host)};
  if (GoesDirectly(target, FirstOf(environment, {"NO_PROXY", "no_proxy"}).value)) return std::nullopt;
  const bool whole = proxy.value.find("://") != std::string::npos;
  return EnvironmentProxy{whole ? std::move(proxy.value) : "http://" + proxy.value, std::move(proxy.name)};
}

void TakeProxyFromEnvironment(const std::vector<std::string>& environment, ClientConfig& config) {
  if (!config.proxy_url.empty()) return;
  const auto server = ParseServerUrl(config.server);
  if (!server) return;  // the transport says what is wrong with it
  if (auto proxy = ProxyFromEnvironment(environment, *server)) {
    config.proxy_url = std::move(proxy->url);
    config.proxy_from = std::move(proxy->variable);
  }
}

std::string WayTo(const ClientConfig& config) {
  const auto proxy = ParseServerUrl(config.proxy_url);
  if (!proxy) return config.server;
  return fmt::format("{} through proxy http{}://{}", config.server, proxy->tls ? "s" : "",
                     proxy->HostAndPort());
}

}  // namespace heddle::kube
