#include "lossless/unproved.h"

namespace heddle::lossless {
namespace {

bool NeedsProof(Setting setting) {
  return setting == Setting::kEcn || setting == Setting::kCnpDscp || setting == Setting::kCnpPriority ||
         setting == Setting::kTos;
}

}  // namespace

std::vector<Gap> Unproved(const std::vector<Gap>& gaps) {
  std::vector<Gap> unproved;
  for (const Gap& gap : gaps) {
    if (NeedsProof(gap.setting)) unproved.push_back(gap);
  }
  return unproved;
}

std::string UnprovedText(const std::vector<Gap>& unproved) {
  std::string text;
  for (std::size_t i = 0; i < unproved.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::string(SettingName(unproved[i].setting));
    // One reason for all that have it.
    const bool same = i + 1 < unproved.size() && unproved[i + 1].reason == unproved[i].reason;
    if (!same) text += " (" + unproved[i].reason + ")";
  }
  return text;
}

}  // namespace heddle::lossless
