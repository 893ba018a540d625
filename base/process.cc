#include "base/process.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <thread>

namespace heddle::base {
namespace {

sigset_t Stopping() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

StopSignals::StopSignals() {
  const sigset_t signals = Stopping();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

std::stop_token StopSignals::Wait(std::function<void(int signal)> on_signal) {
  // Detached, since nothing wakes sigwait but a signal; it owns all that it touches.
  std::thread([stop = stop_, on_signal = std::move(on_signal)]() mutable {
    const sigset_t signals = Stopping();
    int received = 0;
    sigwait(&signals, &received);
    on_signal(received);
    stop.request_stop();
    sigwait(&signals, &received);
    _exit(128 + received);
  }).detach();
  return stop_.get_token();
}

void ShareMemoryArenas() {
  mallopt(M_ARENA_MAX, 2);
}

void MapLargeBuffers() {
  mallopt(M_MMAP_THRESHOLD, 64 << 10);
}

void ReturnFreeMemory() {
  malloc_trim(0);
}

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string ReplicaIdentity(Random& random) {
  const std::string host = HostName();
  return fmt::format("{}_{:08x}", host.empty() ? "unknown" : host, random.Below(1ULL << 32));
}

}  // namespace heddle::base
