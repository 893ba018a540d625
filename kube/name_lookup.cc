#include "kube/name_lookup.h"

#include <fmt/format.h>
#include <netdb.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace heddle::kube {
namespace {

using base::Code;
using base::Fail;
using base::Result;

struct Found {
  std::string trouble;  // why there are no addresses
  std::vector<SocketAddress> addresses;
};

// Waits as long as the resolver does, unless `flags` say that the host is an address.
Found Ask(const std::string& host, const std::string& port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  Found found;
  const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
  if (error != 0) {
    found.trouble = error == EAI_SYSTEM ? std::generic_category().message(errno) : ::gai_strerror(error);
    return found;
  }
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    SocketAddress address;
    if (one->ai_addrlen > sizeof(address.bytes)) continue;
    std::memcpy(&address.bytes, one->ai_addr, one->ai_addrlen);
    address.size = one->ai_addrlen;
    found.addresses.push_back(address);
  }
  ::freeaddrinfo(list);
  if (found.addresses.empty()) found.trouble = "it has no address";
  return found;
}

// What the thread that asks, and the one that waits for it, share.
struct Question {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::optional<Found> found;
};

}  // namespace

std::string SocketAddress::ToString() const {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&bytes), size, host.data(), host.size(), port.data(),
                    port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "an address that cannot be written";
  }
  return bytes.ss_family == AF_INET6 ? fmt::format("[{}]:{}", host.data(), port.data())
                                     : fmt::format("{}:{}", host.data(), port.data());
}

Result<std::vector<SocketAddress>> LookUp(const std::string& host, const std::string& port,
                                          base::MonotonicTime deadline, const std::stop_token& stop) {
  Found literal = Ask(host, port, AI_NUMERICHOST);
  if (!literal.addresses.empty()) return std::move(literal.addresses);
  const auto question = std::make_shared<Question>();
  try {
    std::thread([question, host, port] {
      Found found = Ask(host, port, AI_ADDRCONFIG);
      const std::lock_guard lock(question->mutex);
      question->found = std::move(found);
      question->changed.notify_all();
    }).detach();
  } catch (const std::system_error& error) {
    return Fail(Code::kUnavailable, fmt::format("cannot look up {}: {}", host, error.what()));
  }
  std::unique_lock lock(question->mutex);
  question->changed.wait_until(lock, stop, deadline, [&] { return question->found.has_value(); });
  if (stop.stop_requested()) return Fail(Code::kCancelled, "stopped");
  if (!question->found) return Fail(Code::kTimeout, "");
  if (question->found->addresses.empty()) {
    return Fail(Code::kUnavailable, fmt::format("cannot look up {}: {}", host, question->found->trouble));
  }
  return std::move(question->found->addresses);
}

}  // namespace heddle::kube
