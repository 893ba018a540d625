#pragma once

#include <cstddef>
#include <string>

namespace heddle::nodeagent {

inline constexpr std::size_t kMaxSocketPath = 107;  // sun_path of unix(7), without its last byte

// A connected descriptor, or -1 and errno. ENAMETOOLONG: the path is longer than a socket's may be.
int ConnectUnix(const std::string& path);

}  // namespace heddle::nodeagent
