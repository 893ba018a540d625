#include "kube/watch_decoder.h"

#include <fmt/format.h>

namespace heddle::kube {

using base::Code;
using base::Fail;
using base::Result;

Result<bool> WatchDecoder::Feed(std::string_view chunk, const Handler& handler) {
  while (!chunk.empty()) {
    const auto end = chunk.find('\n');
    if (partial_.size() + std::min(end, chunk.size()) > max_line_bytes_) {
      return Fail(Code::kTooLarge, fmt::format("a watch event is over {} bytes", max_line_bytes_));
    }
    if (end == std::string_view::npos) {
      partial_.append(chunk);
      return true;
    }
    Result<bool> more = true;
    if (partial_.empty()) {
      more = Decode(chunk.substr(0, end), handler);
    } else {
      partial_.append(chunk.substr(0, end));
      more = Decode(partial_, handler);
      partial_.clear();
    }
    if (!more || !*more) return more;
    chunk.remove_prefix(end + 1);
  }
  return true;
}

Result<bool> WatchDecoder::Decode(std::string_view line, const Handler& handler) {
  if (line.find_first_not_of(" \r\t") == std::string_view::npos) return true;
  Json event = reader_.ReadEvent(line, pruning_);
  if (!event.is_object() || !event.contains("object") || !event["object"].is_object()) {
    return Fail(Code::kInternal, fmt::format("a line of {} bytes is no watch event", line.size()));
  }
  const std::string type = StringAt(event, {"type"});
  WatchEvent decoded{EventType::kAdded, DropManagedFields(std::move(event["object"]))};
  if (type == "ERROR") return Fail(ErrorFromStatus(decoded.object));
  if (type == "MODIFIED") {
    decoded.type = EventType::kModified;
  } else if (type == "DELETED") {
    decoded.type = EventType::kDeleted;
  } else if (type == "BOOKMARK") {
    decoded.type = EventType::kBookmark;
  } else if (type != "ADDED") {
    return Fail(Code::kInternal, fmt::format("unknown watch event type \"{}\"", type.substr(0, 40)));
  }
  return handler(std::move(decoded));
}

}  // namespace heddle::kube
