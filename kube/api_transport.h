#pragma once

#include <memory>

#include "base/clock.h"
#include "kube/config.h"
#include "kube/http.h"

namespace heddle::kube {

// What every program asks its API server over: chosen here alone. `clock` must outlive it.
std::unique_ptr<HttpTransport> MakeApiTransport(ClientConfig config, base::Clock& clock);

}  // namespace heddle::kube
