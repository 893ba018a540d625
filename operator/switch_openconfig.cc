#include <memory>
#include <utility>

#include "operator/switch_session.h"
#include "operator/switch_watch.h"
#include "switches/neighbours.h"
#include "switches/openconfig_ports.h"

// SwitchWatch's reading of how a switch of OpenConfig is cabled, and of what its lines run with.

namespace heddle::operators {

using gnmi::Notice;

void SwitchWatch::AskLldp(Session& session) {
  session.client->Get(
      RequestOf("", {{"lldp"}}), options_.call_timeout, [this, post = Post(session)](auto said) {
        auto kept = std::make_shared<const base::Result<std::vector<Notice>>>(std::move(said));
        post([this, kept](Session& to) { TookLldp(to, *kept); });
      });
}

// It need not have LLDP: one that does not tell contradicts nobody; but one that told stands by it until it says
// otherwise, and garbage says nothing.
void SwitchWatch::TookLldp(Session& session, const base::Result<std::vector<Notice>>& said) {
  session.asking_config = false;
  session.config_at = clock_.Now() + Jittered(std::chrono::seconds(session.object.spec.poll_seconds));
  if (!Answered(said)) return;
  std::vector<std::pair<switches::Steps, gnmi::Json>> trees;
  bool any = false;
  if (said) {
    for (const Notice& notice : *said) {
      for (const gnmi::Update& update : notice.updates) {
        any = true;
        if (!update.json) continue;
        auto tree = gnmi::TreeOf(*update.json);
        if (!tree) return;
        if (!tree->is_structured()) continue;  // neither says who is at a port
        switches::Steps steps;
        for (const gnmi::Elem& elem : update.path.elems) steps.push_back(elem.name);
        trees.emplace_back(std::move(steps), *std::move(tree));
      }
    }
  }
  if (any && trees.empty()) return;
  switches::OpenConfigLldp lldp = switches::ReadOpenConfigLldp(trees);
  if (!lldp.system_name.empty()) session.system_name = std::move(lldp.system_name);
  KnowNeighbours(session, std::move(lldp.neighbours));
}

// What is new counts when it was read twice, as with SONiC: a link that comes up may say another speed on the way.
void SwitchWatch::TookLines(Session& session, std::vector<formats::SonicPort> ports) {
  if (ports.empty() && session.answer.config == nullptr) return;
  switches::SonicAnswer read;
  read.config.hostname = session.system_name;
  read.config.bare = std::move(ports);
  const auto said_so = [&read](const auto& before) {
    return before != nullptr && before->config == read.config;
  };
  if (said_so(session.answer.config)) {
    session.doubtful.reset();
  } else if (said_so(session.doubtful)) {
    session.answer.config = std::move(session.doubtful);
  } else {
    session.doubtful = std::make_shared<const switches::SonicAnswer>(std::move(read));
  }
}

}  // namespace heddle::operators
