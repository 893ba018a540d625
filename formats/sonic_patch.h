#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lossless/switch_render.h"

namespace heddle::formats {

// What has to change in a SONiC switch's configuration so that ports have what was rendered for them: the least, each
// line with why and who says so. Heddle writes to no switch: a person does, in the steps of sonic_steps.h.

// What one port should have.
struct SonicWish {
  std::string port;  // "Ethernet0"
  lossless::SwitchRendering rendering;
};

// One operation of a JSON Patch (RFC 6902).
struct PatchLine {
  std::string op;      // "add", "replace", "remove"
  std::string path;    // JSON pointer: "/PORT_QOS_MAP/Ethernet0/pfc_enable"
  std::string value;   // JSON text; empty with "remove"
  std::string where;   // for people: "PORT_QOS_MAP|Ethernet0 pfc_enable"
  std::string before;  // what stands there now, empty where nothing does
  std::string why;     // what it is for
  std::string source;  // who says so
  friend bool operator==(const PatchLine&, const PatchLine&) = default;
};

struct SonicPatch {
  std::vector<PatchLine>
      lines;  // nothing to change = none; what is referred to stands before what refers to it
  std::vector<std::string> notes;  // what could not be rendered, or is left to the switch, as sentences
  friend bool operator==(const SonicPatch&, const SonicPatch&) = default;
};

// Against the live configuration. Maps and profiles get names of our own, from the policy's: those of others, as AZURE,
// are never edited, and neither is one of ours that a port outside of `wishes` uses. Ranges of queues are taken apart
// where their queues are to differ. All other ports, queues and tables stay as they are. Buffer pools are nobody's port
// and are never changed; a headroom that is larger than what is wanted stays.
// Errors: kInvalid or kTooLarge as ParseSonicConfig, kNotFound for a port that is not in PORT, kInvalid for a VOQ
// chassis, whose queues have another form.
[[nodiscard]] base::Result<SonicPatch> PatchSonic(std::string_view live, std::string_view policy,
                                                  const std::vector<SonicWish>& wishes);

// The JSON Patch document, "[]" where nothing changes. Of all lines, which no one command of SONiC's need take.
std::string PatchJson(const SonicPatch& patch);

// What the configuration becomes. Errors: kInvalid where the patch does not fit it.
[[nodiscard]] base::Result<std::string> Patched(std::string_view live, const SonicPatch& patch);

}  // namespace heddle::formats
