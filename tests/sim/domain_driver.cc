#include "tests/sim/domain_driver.h"

#include "extender/compute_domain.h"

namespace heddle::sim {

using kube::Json;

namespace {

constexpr const char* kFinalizer = "resource.nvidia.com/computeDomain";

}  // namespace

DomainDriver::DomainDriver(Simulation& simulation, test::FakeApiServer& server)
    : simulation_(simulation),
      server_(server),
      pace_(simulation, std::chrono::seconds(2), [this] { Look(); }) {}

void DomainDriver::Look() {
  for (const Json& domain : server_.All(extender::kComputeDomains)) {
    const kube::ObjectKey key = kube::KeyOf(domain);
    if (kube::DeletionTimestamp(domain)) {
      simulation_.Say("the driver lets go of ComputeDomain " + key.name);
      server_.Remove(extender::kComputeDomains, key);
    } else if (kube::ArrayAt(domain, {"metadata", "finalizers"}).empty()) {
      server_.Edit(extender::kComputeDomains, key,
                   [](Json& edited) { edited["metadata"]["finalizers"] = Json::array({kFinalizer}); });
    }
  }
}

}  // namespace heddle::sim
