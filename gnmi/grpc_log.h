#pragma once

#include <string_view>

namespace heddle::gnmi {

// gRPC writes a line to stderr for each handshake that fails, in a form of its own, and who asks hundreds of switches
// has such ones. This takes them instead, those of errors with `error`. For a main.cc, before the first dialer: `log`
// is called on any thread until the process ends.
using GrpcLog = void (*)(bool error, std::string_view line);
void TakeGrpcLog(GrpcLog log);

}  // namespace heddle::gnmi
