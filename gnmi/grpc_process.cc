#include "gnmi/grpc_process.h"

#include <absl/synchronization/mutex.h>
#include <grpc/support/log.h>

#include <atomic>

namespace heddle::gnmi {
namespace {

std::atomic<GrpcLog> taker = nullptr;

}  // namespace

void TakeGrpcLog(GrpcLog log) {
  taker = log;
  gpr_set_log_function([](gpr_log_func_args* line) {
    if (const GrpcLog to = taker) to(line->severity == GPR_LOG_SEVERITY_ERROR, line->message);
  });
}

void TrustGrpcLocks() {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

}  // namespace heddle::gnmi
