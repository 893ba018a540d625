#pragma once

#include <string>

#include "nodeagent/recording/scrub.h"

namespace heddle::nodeagent {

// The recording as a tar archive (POSIX ustar; paths and links that are too long for it by pax records), so that it
// can leave a pod by standard output. What WriteRecording leaves out is left out here: links that lead out, and links
// in the place of something else. Equal recordings make equal archives: no times, no owners. Pure.
std::string ToTar(const RecordedFiles& recorded);

}  // namespace heddle::nodeagent
