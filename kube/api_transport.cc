#include "kube/api_transport.h"

#include <utility>

#include "kube/beast_transport.h"
#include "kube/cpprest_transport.h"

namespace heddle::kube {
namespace {

enum class Over { kBeast, kCpprest };
// cpprestsdk's client hands a body on in small copies, each a hop through its threads (docs/decisions/0019).
constexpr Over kOver = Over::kBeast;

}  // namespace

std::unique_ptr<HttpTransport> MakeApiTransport(ClientConfig config, base::Clock& clock) {
  if constexpr (kOver == Over::kBeast) return std::make_unique<BeastTransport>(std::move(config), clock);
  PassOverSystemAuthorities(config);
  return std::make_unique<CpprestTransport>(std::move(config), clock);
}

}  // namespace heddle::kube
