#include <memory>
#include <string>
#include <utility>

#include "operator/switch_session.h"
#include "operator/switch_watch.h"
#include "switches/chassis.h"
#include "switches/neighbours.h"

// SwitchWatch's reading of a switch's own LLDP: whom it sees, and by which chassis id others see it.

namespace heddle::operators {

using gnmi::Notice;

void SwitchWatch::AskNeighbours(Session& session) {
  session.client->Get(RequestOf(switches::kApplicationDatabase, {{switches::kNeighbourTable}}),
                      options_.call_timeout, [this, post = Post(session)](auto said) {
                        auto kept =
                            std::make_shared<const base::Result<std::vector<Notice>>>(std::move(said));
                        post([this, kept](Session& to) { TookNeighbours(to, *kept); });
                      });
}

// A switch that does not tell contradicts nobody; but one that told stands by it until it says otherwise, and garbage
// says nothing.
void SwitchWatch::TookNeighbours(Session& session, const base::Result<std::vector<Notice>>& said) {
  switches::Neighbours neighbours;
  if (!Answered(said)) return;
  bool any = !said;  // it has no such table
  if (said) {
    for (const Notice& notice : *said) {
      for (const gnmi::Update& update : notice.updates) {
        if (update.path.elems.size() != 1) continue;
        if (!update.json) return;
        const auto table = gnmi::TreeOf(*update.json);
        if (!table || !table->is_object()) return;
        neighbours.merge(switches::ReadNeighbours(*table));
        any = true;
      }
    }
  }
  if (any) KnowNeighbours(session, std::move(neighbours));
}

void SwitchWatch::KnowNeighbours(Session& session, switches::Neighbours neighbours) {
  auto& known = session.answer.neighbours;
  auto& saw_at = session.answer.saw_at;
  auto& ahead = session.answer.saw_ahead;
  const std::chrono::nanoseconds ahead_now = WallAhead(clock_);
  const bool again = saw_at && clock_.WallNow() > StaleAt(session.object, AsOf(*saw_at, ahead, ahead_now));
  saw_at = clock_.WallNow();
  ahead = ahead_now;
  const bool same = neighbours.empty() ? known == nullptr : known != nullptr && *known == neighbours;
  if (same && known == nullptr) return;
  if (!same)
    known =
        neighbours.empty() ? nullptr : std::make_shared<const switches::Neighbours>(std::move(neighbours));
  Publish(session);
  if (same && again) ways_.on_answers();  // it proves anew what it did not any longer
}

void SwitchWatch::AskChassis(Session& session) {
  session.client->Get(
      RequestOf(switches::kApplicationDatabase, {{switches::kOwnLldpTable, switches::kOwnChassisField}}),
      options_.call_timeout, [this, post = Post(session)](auto said) {
        if (!said || said->empty() || said->front().updates.empty()) return;
        const auto& json = said->front().updates.front().json;
        if (!json) return;
        const auto value = gnmi::TreeOf(*json);
        std::string chassis_id = value ? switches::ChassisIdIn(*value) : std::string();
        if (chassis_id.empty()) return;
        post([this, chassis_id = std::move(chassis_id)](Session& to) { KnowChassis(to, chassis_id); });
      });
}

// It stands by it until it says another: its row is deleted and written again when any of it changes.
void SwitchWatch::KnowChassis(Session& session, const std::string& chassis_id) {
  if (session.answer.chassis_id == chassis_id) return;
  session.answer.chassis_id = chassis_id;
  if (session.answer.read_at) Publish(session);
}

}  // namespace heddle::operators
