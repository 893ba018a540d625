#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace heddle::cli {

// How a kubectl that was started ended.
struct KubectlEnd {
  int exit_code = 0;  // 128 + the signal, where one ended it
  std::string said;   // the end of what it wrote to standard error
};

// main.cc starts the real one.
using RunKubectl = std::function<base::Result<KubectlEnd>(const std::vector<std::string>& arguments)>;

// kubectl from PATH with our standard output and no input, until it ends. Errors: kNotFound where there is none.
// `environment`: the whole, NAME=value.
[[nodiscard]] base::Result<KubectlEnd> KubectlToStdout(const std::vector<std::string>& arguments,
                                                       const std::vector<std::string>& environment);

}  // namespace heddle::cli
