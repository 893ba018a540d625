#include "kube/api_transport.h"

#include <utility>

#include "kube/beast_transport.h"

namespace heddle::kube {

// cpprestsdk's client hands a body on in small copies, each a hop through its threads (docs/decisions/0019).
std::unique_ptr<HttpTransport> MakeApiTransport(ClientConfig config, base::Clock& clock) {
  return std::make_unique<BeastTransport>(std::move(config), clock);
}

}  // namespace heddle::kube
