#pragma once

#include <stop_token>

#include "base/result.h"
#include "kube/client.h"

namespace heddle::kube {

// Whether a watch's bookmark ends the state that a WatchList (KEP-3157) begins with.
bool EndsInitialEvents(const Json& bookmark);

// All objects as they are at some moment after the call, whatever any cache has: what ListAll with no resource
// version says, read as a WatchList, because a server sends that and we decode it object by object and at once, which
// takes a quarter of the time. Lists where the server has no WatchList or the stream breaks off.
// `options`: ns, selectors and transform are used. Thread-safe; errors are those of Client::ListAll.
base::Result<ObjectList> ReadConsistently(Client& client, const Resource& resource,
                                          const ListOptions& options, const std::stop_token& stop);

}  // namespace heddle::kube
