#pragma once

#include <string>

#include "extender/snapshot.h"

namespace heddle::extender {

// Who stands on the GPUs, one owner left out: "2 gangs hold 48 GPUs (train/a, train/b); 3 pods of no gang
// hold 5". Empty when nobody does.
std::string Holders(const Snapshot& snapshot, const GangKey& except);

}  // namespace heddle::extender
