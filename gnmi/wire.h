#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "gnmi/client.h"

namespace gnmi {
class CapabilityResponse;
class GetRequest;
class GetResponse;
class Notification;
class Path;
class SubscribeRequest;
}  // namespace gnmi

namespace heddle::gnmi {

// Between our words and those of gnmi/gnmi.proto. Pure.

// Of one answer, or of one message of a stream. A CONFIG_DB of 512 ports has some 100,000 values, the counters of all
// its ports and queues three times as many.
struct AnswerLimits {
  std::size_t updates = 65'536;  // with deletes
  std::size_t values = 500'000;
};

// kInvalid, kTooLarge: what CheckPath finds in the paths, no path at all, or two targets.
[[nodiscard]] base::Result<::gnmi::GetRequest> ToWire(const GetRequest& request);
[[nodiscard]] base::Result<::gnmi::SubscribeRequest> ToWire(const SubscribeRequest& request);
std::string TargetOf(const GetRequest& request);
std::string TargetOf(const SubscribeRequest& request);

// Both in one: target and origin from whichever has them, elements behind each other.
[[nodiscard]] base::Result<Path> PathOf(const ::gnmi::Path& prefix, const ::gnmi::Path& path);
ServerCapabilities CapabilitiesOf(const ::gnmi::CapabilityResponse& answer);
// `target`: what stands in paths that name none. kTooLarge, kInvalid: a limit or a path; single values that cannot be
// read are told in their update.
[[nodiscard]] base::Result<Notice> NoticeOf(const ::gnmi::Notification& notification,
                                            const std::string& target, const AnswerLimits& limits);
[[nodiscard]] base::Result<std::vector<Notice>> NoticesOf(const ::gnmi::GetResponse& answer,
                                                          const std::string& target,
                                                          const AnswerLimits& limits);

}  // namespace heddle::gnmi
