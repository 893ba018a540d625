#pragma once

#include <memory>

#include "extender/gang_members.h"

namespace heddle::test {

// What was read of a pod, as this member's own, to be changed.
inline extender::PodFacts& OwnFacts(extender::Member& member) {
  auto own = std::make_shared<extender::PodFacts>(*member.facts);
  extender::PodFacts& facts = *own;
  member.facts = std::move(own);
  return facts;
}

}  // namespace heddle::test
