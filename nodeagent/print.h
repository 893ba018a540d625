#pragma once

#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/file_tree.h"
#include "base/result.h"
#include "nodeagent/discovery/machine.h"
#include "nodeagent/flags.h"
#include "nodeagent/grants/grants.h"
#include "nodeagent/monitor/monitor.h"

namespace heddle::nodeagent {

// Says on stderr why not, to the person who asked and not as a line of a log; returns `code`.
int Refuse(const std::string& why, int code);

// To standard output, at once. Errors: as base/write_all.h.
[[nodiscard]] base::Status Say(const std::string& text);

// --print: the NodeTopology of one look, to standard output, as text for people (ticket.h) or as the object. `files`
// are the machine's; `kubelet` may be null. The exit code: 130, as a shell says of Ctrl-C, where `stop` ended it.
int PrintNode(const base::FileTree& files, Machine& machine, GrantSource* kubelet, const Flags& flags,
              base::Clock& clock, const std::stop_token& stop);

// --print --follow: the same, then a line for each change, until stop or until nobody can be told. The exit code.
int FollowNode(Monitor& monitor, const std::string& node, const Flags& flags, base::Clock& clock,
               const std::stop_token& stop);

}  // namespace heddle::nodeagent
