#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/output.h"
#include "kube/client.h"

namespace heddle::cli {

// After Heddle is gone: pods that its admission gated or sent to its scheduler would wait for ever where they are not
// bound, as nobody takes the gate off and no scheduler answers to their schedulerName, which cannot be changed; and
// what a preemption suspended would never be resumed.
struct ReleaseOptions {
  bool all = false;  // required: it means every namespace, or that of `ns`
  std::string ns;    // empty = all
  bool dry_run = false;
};

// How one held thing is handed back.
enum class HandBack : std::uint8_t {
  kSuspendAndResume,  // its owner makes new pods and counts no failure
  kReplacePod,        // its controller makes another in its place
  kResume,            // was suspended to make room for another gang
  kLeave,             // `why`: what a person has to do
};

struct Held {
  HandBack how = HandBack::kLeave;
  kube::Json object;              // the owner to switch, or the pod
  std::vector<std::string> pods;  // "ns/name" of its pods that wait for Heddle, for counting and waiting
  std::string why;                // kLeave: with what to do
  std::string Title() const;      // "Job train/llama"
};

// Whether --all was said: what can be told before a cluster is asked.
[[nodiscard]] base::Status CheckWords(const ReleaseOptions& options);

// Reads, says what is held, and unless `dry_run` hands it back. Refused (exit 3) while Heddle's admission is in force,
// because everything would be gated again, and where something has to be left to a person.
Output RunRelease(kube::Client& client, base::Clock& clock, const ReleaseOptions& options,
                  const OutputOptions& look, const std::stop_token& stop);

}  // namespace heddle::cli
