#pragma once

#include <stop_token>
#include <string>

#include "base/result.h"
#include "crds/fabric_switch.h"
#include "gnmi/client.h"
#include "kube/client.h"
#include "operator/switch_verdicts.h"

namespace heddle::operators {

// Where a switch is and how it is spoken to: user name and password, a client's certificate with its key, or both, from
// its credentialsSecret (username, password, tls.crt, tls.key), and its authority from tls.caSecret, Secrets of `ns`
// alone. They are read at each call, so one that was rotated counts from the next connection on.
// Errors: as ReadSecret, and kNotFound with the Secret and the key that it lacks or that is of no use
// (gnmi::CheckIdentity), and never with what is in it.
[[nodiscard]] base::Result<gnmi::Endpoint> ReadEndpoint(kube::Client& client, const std::string& ns,
                                                        const crds::FabricSwitch& fabric_switch,
                                                        const std::stop_token& stop);

// What a person is told of a switch that could not be asked, with what to do.
SwitchTrouble TroubleOf(const base::Error& error);

}  // namespace heddle::operators
