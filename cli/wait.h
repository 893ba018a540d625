#pragma once

namespace heddle::cli {

// Sleeps until SIGTERM or SIGINT: what the pod of `cli.enabled` does, in an image without a shell, until somebody execs
// the program into it. Call it before any thread is started.
void WaitForSignal();

}  // namespace heddle::cli
