#include "nodeagent/leaf/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include "base/null_terminated.h"
#include "base/poll.h"
#include "formats/printable.h"

namespace heddle::nodeagent {
namespace {

constexpr std::size_t kMaxComplaints = 1'024;  // of its standard error; the rest is read and dropped
constexpr int kGraceMs = 1'000;                // from SIGKILL to gone; longer only where the kernel holds it

class Descriptor {
 public:
  explicit Descriptor(int descriptor = -1) : descriptor_(descriptor) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { Reset(); }
  int get() const { return descriptor_; }
  void Reset(int descriptor = -1) {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = descriptor;
  }

 private:
  int descriptor_;
};

std::string Say(int error) {
  return std::error_code(error, std::generic_category()).message();
}

bool Pipe(Descriptor& read, Descriptor& write) {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  read.Reset(ends[0]);
  write.Reset(ends[1]);
  return true;
}

// Appends what is there. False at the end of the stream.
bool ReadSome(int descriptor, std::string& into) {
  std::array<char, 16'384> buffer;
  const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  into.append(buffer.data(), std::size_t(count));
  return count > 0;
}

}  // namespace

Command::~Command() {
  Kill();
}

bool Command::Reap(int& status) {
  const pid_t done = ::waitpid(child_, &status, WNOHANG);
  if (done == 0 || (done < 0 && errno == EINTR)) return false;
  child_ = -1;
  return true;
}

void Command::Kill() {
  if (child_ < 0) return;
  ::kill(-child_, SIGKILL);
  const Descriptor gone(base::OpenProcess(child_));
  pollfd one{gone.get(), POLLIN, 0};
  if (gone.get() >= 0) (void)::poll(&one, 1, kGraceMs);
  int status = 0;
  (void)Reap(status);
}

base::Status Command::Start(int output, int complaints) {
  std::vector<std::string> arguments = options_.arguments;
  std::vector<std::string> environment{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                                       "LC_ALL=C"};
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output, 1);
  posix_spawn_file_actions_adddup2(&files, complaints, 2);
  posix_spawn_file_actions_addclosefrom_np(&files, 3);
  // The agent blocks SIGTERM and SIGINT for one thread to take them; the child takes them as they come.
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  const int error =
      ::posix_spawnp(&child_, arguments.front().c_str(), &files, &attributes,
                     base::NullTerminated(arguments).data(), base::NullTerminated(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error == 0) return {};
  child_ = -1;
  if (error == ENOENT)
    return base::Fail(base::Code::kNotFound, fmt::format("{} is not installed", program()));
  return base::Fail(error == EACCES ? base::Code::kForbidden : base::Code::kUnavailable,
                    fmt::format("{} cannot be started: {}", program(), Say(error)));
}

base::Result<std::string> Command::Collect(int output, int complaints, int timer, int stopped) {
  std::string said;
  std::string complained;
  bool output_open = true, complaints_open = true;
  while (output_open || complaints_open) {
    std::array<pollfd, 4> ready{{{output_open ? output : -1, POLLIN, 0},
                                 {complaints_open ? complaints : -1, POLLIN, 0},
                                 {timer, POLLIN, 0},
                                 {stopped, POLLIN, 0}}};
    if (::poll(ready.data(), ready.size(), -1) < 0) continue;  // EINTR; the timer still ends it
    if (ready[3].revents != 0) return Cancel();
    if (ready[2].revents != 0) {
      Kill();
      return base::Fail(base::Code::kTimeout, fmt::format("{} did not finish within {} ms and was ended",
                                                          program(), options_.deadline.count()));
    }
    if (ready[0].revents != 0) output_open = ReadSome(output, said);
    if (ready[1].revents != 0) {
      complaints_open = ReadSome(complaints, complained);
      if (complained.size() > kMaxComplaints) complained.resize(kMaxComplaints);
    }
    if (said.size() > options_.max_output) {
      Kill();
      return base::Fail(base::Code::kTooLarge, fmt::format("{} wrote more than {} bytes and was ended",
                                                           program(), options_.max_output));
    }
  }
  const Descriptor gone(base::OpenProcess(child_));
  std::array<pollfd, 3> ready{{{gone.get(), POLLIN, 0}, {timer, POLLIN, 0}, {stopped, POLLIN, 0}}};
  while (gone.get() >= 0 && ::poll(ready.data(), ready.size(), -1) < 0) {
  }
  if (ready[0].revents == 0 && ready[2].revents != 0) return Cancel();
  int status = 0;
  if (!Reap(status)) {
    Kill();
    return base::Fail(base::Code::kTimeout, fmt::format("{} closed its output and did not end within {} ms",
                                                        program(), options_.deadline.count()));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return said;
  const std::string how = WIFSIGNALED(status) ? fmt::format("was ended by signal {}", WTERMSIG(status))
                                              : fmt::format("failed with status {}", WEXITSTATUS(status));
  const std::string words = formats::Printable(complained, 300);
  return base::Fail(base::Code::kInternal,
                    fmt::format("{} {}{}{}", program(), how, words.empty() ? "" : ": ", words));
}

base::Error Command::Stopped() const {
  return {base::Code::kCancelled, fmt::format("{} was not waited for: the agent ends", program()),
          std::nullopt};
}

base::Result<std::string> Command::Cancel() {
  Kill();
  return base::Fail(Stopped());
}

base::Result<std::string> Command::Run() {
  if (options_.stop.stop_requested()) return base::Fail(Stopped());
  int status = 0;
  if (child_ >= 0 && !Reap(status)) {
    return base::Fail(base::Code::kUnavailable,
                      fmt::format("the last {} (pid {}) was killed and is not gone yet", program(), child_));
  }
  Descriptor output, output_end, complaints, complaints_end;
  const base::StopEvent stopped(options_.stop);
  const Descriptor timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
  if (timer.get() < 0 || !base::Arm(timer.get(), options_.deadline) || !Pipe(output, output_end) ||
      !Pipe(complaints, complaints_end)) {
    return base::Fail(base::Code::kUnavailable,
                      fmt::format("{} cannot be started: {}", program(), Say(errno)));
  }
  TRY(Start(output_end.get(), complaints_end.get()));
  output_end.Reset();
  complaints_end.Reset();
  return Collect(output.get(), complaints.get(), timer.get(), stopped.get());
}

}  // namespace heddle::nodeagent
