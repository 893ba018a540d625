#include "extender/gang_key.h"

#include <charconv>

#include "extender/owner_kinds.h"

namespace heddle::extender {
namespace {

std::optional<std::int64_t> ParseCount(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

}  // namespace

std::string GangKey::ToString() const {
  return ns + "/" + owner_uid + "/" + std::to_string(attempt);
}

std::optional<GangKey> GangKey::Parse(std::string_view text) {
  const std::size_t first = text.find('/'), last = text.rfind('/');
  if (first == std::string_view::npos || first == last) return std::nullopt;
  const auto attempt = ParseCount(text.substr(last + 1));
  if (!attempt) return std::nullopt;
  return GangKey{std::string(text.substr(0, first)), std::string(text.substr(first + 1, last - first - 1)),
                 *attempt};
}

std::optional<std::int64_t> NumberMark(const kube::Json& object, std::string_view key) {
  auto text = kube::Label(object, key);
  if (!text) text = kube::Annotation(object, key);
  return text ? ParseCount(*text) : std::nullopt;
}

Membership MembershipOf(const kube::Json& pod) {
  const std::string ns = kube::Namespace(pod);
  if (const auto uid = kube::Label(pod, jobset::kUid); uid && !uid->empty()) {
    return {{ns, *uid, NumberMark(pod, jobset::kAttempt).value_or(0)},
            {std::string(jobset::kApiVersion), "JobSet", kube::Label(pod, jobset::kName).value_or(""), *uid}};
  }
  if (const auto owner = kube::ControllerOwner(pod)) {
    return {{ns, owner->uid, 0}, {owner->api_version, owner->kind, owner->name, owner->uid}};
  }
  return {{ns, kube::Uid(pod), 0}, {"v1", "Pod", kube::Name(pod), kube::Uid(pod)}};
}

std::optional<GangKey> GangOfOwner(const kube::Json& owner) {
  const std::string kind = kube::StringAt(owner, {"kind"});
  if (kind == "JobSet") {
    return GangKey{kube::Namespace(owner), kube::Uid(owner),
                   kube::IntAt(owner, {"status", "restarts"}).value_or(0)};
  }
  if (OwnerKindOf(kube::StringAt(owner, {"apiVersion"}), kind) == nullptr) return std::nullopt;
  const auto outer = kube::ControllerOwner(owner);
  if (outer && OwnerKindOf(outer->api_version, outer->kind) != nullptr) return std::nullopt;
  return GangKey{kube::Namespace(owner), kube::Uid(owner), 0};
}

GangKey KeyOfGang(const crds::Gang& gang) {
  return {gang.ns, gang.spec.owner.uid, gang.spec.attempt};
}

}  // namespace heddle::extender
