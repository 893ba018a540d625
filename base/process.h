#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "base/random.h"

namespace heddle::base {

// SIGTERM and SIGINT as a stop token. Make it in main before any thread starts: threads inherit the blocked
// signals, so that only the one inside takes them. A second signal ends the process at once, for somebody in
// a hurry.
class StopSignals {
 public:
  StopSignals();
  // Starts to wait; on_signal runs on the waiting thread before the token is stopped.
  std::stop_token Wait(std::function<void(int signal)> on_signal);

 private:
  std::stop_source stop_;
};

// Two arenas for all threads. Each watch has a thread, and so has gRPC: glibc would keep what each of them frees apart,
// at 10,000 nodes a third of the extender's memory. Call it in main before any thread starts.
void ShareMemoryArenas();
// Memory of 64 KiB and more, which is gRPC's buffer of a connection (tcp_posix.cc, maybe_make_read_slices), is the
// system's own pages from then on: what is not written of it is not resident, and it goes back as soon as it is freed,
// where glibc would raise that bound with each larger piece. Call it in main before any thread starts.
void MapLargeBuffers();
// Gives the system what stands free in the heap, which glibc does only at its end: after many answers at once it is a
// tenth of what is held. Takes milliseconds at hundreds of megabytes.
void ReturnFreeMemory();

// "" where the machine has none.
std::string HostName();

// Unique among the replicas of a daemon, and readable in a Lease: "<host>_1f3a0c77".
std::string ReplicaIdentity(Random& random);

}  // namespace heddle::base
