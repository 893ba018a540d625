#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "base/check.h"
#include "tests/support/gnmi/gnmi_server.h"

namespace heddle::test {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(std::uint16_t(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

Relay::Relay(int to_port) : to_port_(to_port) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0);
  CHECK(::listen(listener_, 256) == 0);
  CHECK(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  CHECK(::pipe2(wake_, O_CLOEXEC) == 0);
  thread_ = std::thread([this] { Run(); });
}

Relay::~Relay() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  CHECK(::write(wake_[1], "x", 1) == 1);
  thread_.join();
  for (const int descriptor : {listener_, wake_[0], wake_[1]}) ::close(descriptor);
}

void Relay::Freeze() {
  const std::lock_guard lock(mutex_);
  frozen_ = true;
  CHECK(::write(wake_[1], "x", 1) == 1);
}

void Relay::Cut() {
  const std::lock_guard lock(mutex_);
  cut_ = true;
  CHECK(::write(wake_[1], "x", 1) == 1);
}

int Relay::connections() {
  const std::lock_guard lock(mutex_);
  return accepted_;
}

bool Relay::Pass(int from, int to) {
  std::array<char, 65536> bytes;
  const ssize_t count = ::recv(from, bytes.data(), bytes.size(), 0);
  return count > 0 && ::send(to, bytes.data(), std::size_t(count), MSG_NOSIGNAL) == count;
}

void Relay::Run() {
  for (;;) {
    bool frozen = false;
    {
      const std::lock_guard lock(mutex_);
      frozen = frozen_;
      if (stopping_ || cut_) {
        for (const Pair& pair : pairs_) ::close(pair.client), ::close(pair.server);
        pairs_.clear();
        cut_ = false;
      }
      if (stopping_) return;
    }
    std::vector<pollfd> waiting{{wake_[0], POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const Pair& pair : pairs_) {
      waiting.push_back({frozen ? -1 : pair.client, POLLIN, 0});
      waiting.push_back({frozen ? -1 : pair.server, POLLIN, 0});
    }
    ::poll(waiting.data(), waiting.size(), -1);
    for (std::size_t i = pairs_.size(); i-- > 0;) {
      const Pair pair = pairs_[i];
      const bool alive = (waiting[2 + 2 * i].revents == 0 || Pass(pair.client, pair.server)) &&
                         (waiting[3 + 2 * i].revents == 0 || Pass(pair.server, pair.client));
      if (alive) continue;
      ::close(pair.client);
      ::close(pair.server);
      pairs_.erase(pairs_.begin() + std::ptrdiff_t(i));
    }
    char byte = 0;
    if (waiting[0].revents != 0) CHECK(::read(wake_[0], &byte, 1) == 1);
    if (waiting[1].revents == 0) continue;
    Pair pair{::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC),
              ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    const sockaddr_in address = Loopback(to_port_);
    CHECK(::connect(pair.server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    pairs_.push_back(pair);
    const std::lock_guard lock(mutex_);
    ++accepted_;
  }
}

}  // namespace heddle::test
