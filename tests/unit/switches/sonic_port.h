#pragma once

#include <gtest/gtest.h>

#include <string>

#include "formats/sonic_config.h"
#include "lossless/policy.h"
#include "lossless/port_settings.h"
#include "lossless/render.h"

namespace heddle::test {

// A host's port as the default policy wants it: DSCP 26 lossless in priority 3, CNPs with 48 in 6.
inline lossless::PortSettings LosslessHost() {
  const auto resolved = lossless::Resolve({});
  EXPECT_TRUE(resolved);
  lossless::PortSettings settings =
      *lossless::Render(*resolved, {.transport = topology::Transport::kRoce}).settings;
  settings.watchdog_ms = 100;
  return settings;
}

// A switch's port that goes with it.
inline formats::SonicPort LosslessPort(const std::string& name, const std::string& alias) {
  formats::SonicPort port{.name = name, .alias = alias, .speed_mbps = 400'000, .fec = "rs"};
  lossless::PortSettings& settings = port.settings;
  settings.trust = lossless::Trust::kDscp;
  settings.dscp_to_priority = lossless::AllDscps(0);
  (*settings.dscp_to_priority)[26] = 3;
  (*settings.dscp_to_priority)[48] = 6;
  settings.priority_to_group = settings.priority_to_queue = settings.pause_to_queue = lossless::Identity();
  settings.pfc = settings.ecn = settings.watched = lossless::PrioritySet{3};
  settings.watchdog_ms = 200;
  settings.mtu = 9216;
  settings.marking = lossless::EcnMarkings{{3, {1'048'576, 2'097'152, 5}}};
  settings.buffer_bytes.emplace().fill(lossless::kNotSaid);
  (*settings.buffer_bytes)[3] = 165'888;
  settings.lossy_queues = lossless::PrioritySet{0, 1, 2, 4, 5, 6, 7};
  settings.lossless_queues = lossless::PrioritySet{3};
  return port;
}

}  // namespace heddle::test
