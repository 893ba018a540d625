#include "crds/cable_evidence.h"

#include <gtest/gtest.h>

namespace heddle::crds {
namespace {

constexpr const char* kHere = "at least 255 link downs in 10 min, since 2027-01-15T08:00:20Z";
constexpr const char* kThere = "500 symbol errors in 1 h, since 2027-01-15T08:00:30Z";

TEST(CableEvidence, IsTakenApartAsItWasPutTogether) {
  // Names of switches as InfiniBand's node descriptions have them.
  for (const char* leaf : {"su1-r3 port 18", "MF0;sw-1:MQM8700/U1 port 1", "here: port 9 port 2", ""}) {
    const std::string there = SaidByLeaf(leaf, kThere);
    EXPECT_EQ(ReadCableEvidence(there), (CableEvidence{"", kThere, true})) << leaf;
    EXPECT_EQ(ReadCableEvidence(BothEnds(there, kHere)), (CableEvidence{kHere, kThere, true})) << leaf;
    EXPECT_EQ(ReadCableEvidence(BothEnds(kHere, there)), (CableEvidence{kHere, kThere, false})) << leaf;
  }
}

TEST(CableEvidence, OfThePortAloneIsWhole) {
  for (const char* text : {kHere, "", "at", "at a time: nothing", "at su1-r3 port x: 3 link downs",
                           "3 link downs in 10 min, and here: nobody"}) {
    EXPECT_EQ(ReadCableEvidence(text), (CableEvidence{text, "", false})) << text;
  }
}

TEST(CableEvidence, ReadsAsASentence) {
  EXPECT_EQ(BothEnds("2 link downs in 10 min", SaidByLeaf("su1-r3 port 18", "3 link downs in 10 min")),
            "2 link downs in 10 min, and at su1-r3 port 18: 3 link downs in 10 min");
  EXPECT_EQ(BothEnds(SaidByLeaf("su1-r3 port 18", "3 link downs in 10 min"), "500 symbol errors in 1 h"),
            "at su1-r3 port 18: 3 link downs in 10 min, and here: 500 symbol errors in 1 h");
}

}  // namespace
}  // namespace heddle::crds
