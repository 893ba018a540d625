#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"

namespace grpc {
class Status;
}

namespace heddle::gnmi {

// A call as a person would tell of it.
struct Asked {
  std::string_view address;  // of the switch
  std::string_view secret;   // that no sentence may have, should the switch say it back; empty = none
  std::chrono::milliseconds timeout{0};
  bool connected = true;  // when it ended
};

// What a call that failed comes to (see client.h). gRPC tells failed connections apart by text alone: what is looked
// for is what 1.51 writes (tests/unit/gnmi brings each about), and another text is quoted.
base::Error ErrorOf(const grpc::Status& status, const Asked& asked);

// What a refused certificate's status begins with, so that it is found again in the text that gRPC makes of it.
inline constexpr std::string_view kRefusedCertificate = "heddle refuses a certificate: the switch ";

}  // namespace heddle::gnmi
