#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "crds/fabric.h"
#include "kube/client.h"
#include "kube/config.h"
#include "kube/http.h"
#include "operator/switch_verdicts.h"
#include "switches/ufm.h"

namespace heddle::operators {

// Where a UFM is and how it is spoken to.
struct UfmEndpoint {
  std::string address;        // host:port
  std::string server_name;    // that its certificate is for; empty = the host
  std::string ca_pem;         // whom its certificate has to be from
  std::string authorization;  // the header's value: secret, so in no error and no log
  // "/ufmRest" with user name and password, "/ufmRestV3" with a token (UFM Enterprise User Manual, REST API
  // authentication).
  std::string base_path = "/ufmRest";
};

// From the Secrets of spec.ufm, of `ns` alone. They are read at each call. Errors: kNotFound or kForbidden with the
// Secret and the key that it lacks, and never what is in it.
[[nodiscard]] base::Result<UfmEndpoint> ReadUfmEndpoint(kube::Client& client, const std::string& ns,
                                                        const crds::FabricUfm& ufm,
                                                        const std::stop_token& stop);
// What an HTTP client needs for it: TLS, with that authority alone, and no redirects.
kube::ClientConfig ConfigOf(const UfmEndpoint& endpoint);

// The largest answer that is taken: counters of 50,000 ports.
inline constexpr std::size_t kMaxUfmAnswer = 64u << 20;
// Pages of ports that are asked for; a UFM that says for ever that there is more has no more.
inline constexpr int kMaxUfmPages = int(switches::kMaxUfmPorts / 1000) + 1;

// Asks a UFM. Only GET is sent. Errors: kUnauthorized, kForbidden, kNotFound, kThrottled by its answer's status,
// kInvalid and kTooLarge of what cannot be read, else kUnavailable and kTimeout.
// Thread rule: one thread.
class UfmClient {
 public:
  UfmClient(std::unique_ptr<kube::HttpTransport> transport, std::string base_path,
            std::chrono::milliseconds timeout)
      : transport_(std::move(transport)), base_path_(std::move(base_path)), timeout_(timeout) {}

  // Of all switches, by page. Each page has the time of one call.
  [[nodiscard]] base::Result<std::vector<switches::UfmPort>> Ports(const std::stop_token& stop);
  [[nodiscard]] base::Result<switches::UfmCounters> Counters(const std::stop_token& stop);

 private:
  base::Result<std::string> Get(std::string_view target, const std::stop_token& stop);

  std::unique_ptr<kube::HttpTransport> transport_;
  std::string base_path_;
  std::chrono::milliseconds timeout_;
};

// What a person is told of a UFM that could not be asked, with what to do.
SwitchTrouble UfmTroubleOf(const base::Error& error);

}  // namespace heddle::operators
