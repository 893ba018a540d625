#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace heddle::nodeagent {

struct CommandOptions {
  std::vector<std::string> arguments;             // the first is the program, looked for in PATH
  std::chrono::milliseconds deadline{5'000};      // for all of it, from start to end
  std::size_t max_output = std::size_t{4} << 20;  // bytes; more ends the program
  std::stop_token stop;                           // ends it, too
};

// A program that may hang, talk without end or not be there. It gets no input, a fixed environment (PATH and
// LC_ALL=C) and a process group of its own, which is killed at the deadline.
// Thread rule: one thread.
class Command {
 public:
  explicit Command(CommandOptions options) : options_(std::move(options)) {}
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  ~Command();

  // What it wrote to its standard output. kNotFound: there is no such program; kForbidden: we may not start it;
  // kTimeout: it was killed at the deadline; kTooLarge; kInternal: it failed, with what it said on its standard
  // error; kUnavailable: it could not be started, or the last one killed is not gone yet; kCancelled: stop was asked.
  [[nodiscard]] base::Result<std::string> Run();
  const std::string& program() const { return options_.arguments.front(); }

 private:
  [[nodiscard]] base::Status Start(int output, int complaints);
  [[nodiscard]] base::Result<std::string> Collect(int output, int complaints, int timer, int stopped);
  // Whether the child is gone; `status` is then how it ended.
  bool Reap(int& status);
  void Kill();
  base::Result<std::string> Cancel();
  base::Error Stopped() const;

  CommandOptions options_;
  pid_t child_ = -1;
};

}  // namespace heddle::nodeagent
