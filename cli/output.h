#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/table.h"
#include "crds/object_meta.h"

namespace heddle::cli {

enum class Format : std::uint8_t { kText, kJson, kYaml };

// What a command leaves behind. Exit codes: 0 it worked, 1 it failed, 2 it was called wrongly, 3 the answer
// is a refusal (a gang that has no place).
struct Output {
  static constexpr int kOk = 0, kFailed = 1, kUsage = 2, kRefused = 3;

  int exit_code = kOk;
  std::string out;
  std::string err;  // sentences for people; also what a script need not parse
};

struct OutputOptions {
  Format format = Format::kText;
  Style style;
};

// For scripts. Requires: kJson or kYaml. What came from a cluster need not be good UTF-8; what is printed is.
std::string Printed(const crds::Json& json, Format format);

// "Note: …", a line for each, for standard error.
std::string NoteLines(const std::vector<std::string>& notes);

// What to do about an error, in a sentence; empty where its message says all.
std::string NextStep(const base::Error& error);

// The error and what to do about it, as the last words of a command.
Output Failure(const base::Error& error);
// The same where no cluster was asked, and so whatever went wrong is in what was given.
Output FailureOfInput(const base::Error& error);

}  // namespace heddle::cli
