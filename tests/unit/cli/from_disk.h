#pragma once

#include <fstream>
#include <sstream>
#include <string>

#include "base/result.h"

namespace heddle::cli {

// As main reads the files that are named to it.
inline base::Result<std::string> FromDisk(const std::string& path) {
  std::ifstream file(path);
  if (!file) return base::Fail(base::Code::kNotFound, path + " cannot be read: No such file or directory");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace heddle::cli
