#include "cli/kubectl.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/null_terminated.h"

namespace heddle::cli {
namespace {

using base::Code;
using base::Fail;

constexpr std::size_t kMostSaid = 16'384;

// The end of what comes, however much it is.
std::string ReadEnd(int input) {
  std::string text;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t count = ::read(input, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer.data(), std::size_t(count));
    if (text.size() > kMostSaid) text.erase(0, text.size() - kMostSaid);
  }
}

}  // namespace

base::Result<KubectlEnd> KubectlToStdout(const std::vector<std::string>& arguments,
                                         const std::vector<std::string>& environment) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return Fail(Code::kInternal, std::strerror(errno));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, pipe[1], STDERR_FILENO);
  std::vector<std::string> words{"kubectl"}, own = environment;
  words.insert(words.end(), arguments.begin(), arguments.end());
  pid_t child = -1;
  const int failure = ::posix_spawnp(&child, "kubectl", &actions, nullptr, base::NullTerminated(words).data(),
                                     base::NullTerminated(own).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(pipe[1]);
  if (failure != 0) {
    ::close(pipe[0]);
    return Fail(
        Code::kNotFound,
        fmt::format("kubectl cannot be started ({}): it must be in PATH, since it carries what is recorded",
                    std::strerror(failure)));
  }
  KubectlEnd end{.said = ReadEnd(pipe[0])};
  ::close(pipe[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return end;
}

}  // namespace heddle::cli
