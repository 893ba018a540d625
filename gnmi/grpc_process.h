#pragma once

#include <string_view>

namespace heddle::gnmi {

// What gRPC does in the whole process, and how a main.cc has it otherwise, before the first dialer.

// gRPC writes a line to stderr for each handshake that fails, in a form of its own, and who asks hundreds of switches
// has such ones. This takes them instead, those of errors with `error`: `log` is called on any thread until the process
// ends.
using GrpcLog = void (*)(bool error, std::string_view line);
void TakeGrpcLog(GrpcLog log);

// Debian builds abseil for debugging: each lock of gRPC's is looked up in a graph of all others, to abort where
// two are taken in two orders. This leaves that to whoever debugs gRPC.
void TrustGrpcLocks();

}  // namespace heddle::gnmi
