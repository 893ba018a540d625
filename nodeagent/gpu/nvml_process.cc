#include "nodeagent/gpu/nvml_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/null_terminated.h"
#include "base/poll.h"
#include "base/process.h"
#include "formats/printable.h"
#include "formats/scanner.h"
#include "nodeagent/gpu/nvml_gpus.h"

namespace heddle::nodeagent {
namespace {

// The child's descriptors. Questions and answers have one of their own, since a driver may print on the others.
constexpr int kSocket = 3;
constexpr int kPage = 4;
constexpr int kNews = 5;
constexpr int kSpare = 10;  // ours are from here on, so that none is overwritten before it is copied
constexpr std::size_t kPageSize = 256;
// An answer is its length in decimal, a newline, and an nvml.yaml. 64 GPUs with 36 links make 300 KB, and
// with all counters at their largest 1 MB.
constexpr std::size_t kMaxAnswer = 1 << 21;
constexpr int kListenMs =
    1000;  // between two times that the driver is asked for events; some microseconds each
constexpr const char* kEnding = "the NVIDIA driver was not waited for: the agent ends";

std::string Failed(const char* what) {
  return fmt::format("the driver cannot be asked: {} failed ({})", what,
                     std::error_code(errno, std::generic_category()).message());
}

// A descriptor above those that the child's own will overwrite; the old one is closed.
int MoveUp(int descriptor) {
  if (descriptor < 0) return descriptor;
  const int moved = ::fcntl(descriptor, F_DUPFD_CLOEXEC, kSpare);
  ::close(descriptor);
  return moved;
}

void Close(int& descriptor) {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

bool WriteAll(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::send(descriptor, text.data(), text.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(std::size_t(count));
  }
  return true;
}

}  // namespace

NvmlProcess::NvmlProcess(NvmlProcessOptions options)
    : options_(std::move(options)), news_(MoveUp(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))) {}

NvmlProcess::~NvmlProcess() {
  if (child_ >= 0) (void)End();
  CloseAll();
  Close(news_);
}

void NvmlProcess::CloseAll() {
  Close(socket_);
  Close(timer_);
  Close(gone_);
  if (page_ != nullptr) ::munmap(page_, kPageSize);
  page_ = nullptr;
  asked_ = answered_ = false;
  received_.clear();
}

std::string NvmlProcess::Spawn(int socket_end, int page) {
  std::vector<std::string> arguments{"heddle-nodeagent", "nvml-probe", options_.library};
  std::vector<std::string> environment = options_.environment;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, 2, 1);  // our own output is no place for a driver's
  posix_spawn_file_actions_adddup2(&files, socket_end, kSocket);
  posix_spawn_file_actions_adddup2(&files, page, kPage);
  if (news_ >= 0) posix_spawn_file_actions_adddup2(&files, news_, kNews);
  posix_spawn_file_actions_addclosefrom_np(&files, (news_ >= 0 ? kNews : kPage) + 1);
  errno = ::posix_spawn(&child_, options_.program.c_str(), &files, nullptr,
                        base::NullTerminated(arguments).data(), base::NullTerminated(environment).data());
  posix_spawn_file_actions_destroy(&files);
  if (errno == 0) return {};
  child_ = -1;
  return Failed("starting a process for it");
}

std::string NvmlProcess::Start() {
  if (child_ >= 0) return {};
  CloseAll();
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return Failed("socketpair");
  socket_ = ends[0];
  int theirs = MoveUp(ends[1]);
  int page = MoveUp(::memfd_create("heddle-nvml", MFD_CLOEXEC));
  timer_ = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  void* mapped = page >= 0 && ::ftruncate(page, kPageSize) == 0
                     ? ::mmap(nullptr, kPageSize, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0)
                     : MAP_FAILED;
  page_ = mapped == MAP_FAILED ? nullptr : static_cast<char*>(mapped);
  const bool ready = theirs >= 0 && timer_ >= 0 && page_ != nullptr;
  std::string why = ready ? Spawn(theirs, page) : Failed("memfd_create, mmap or timerfd_create");
  Close(theirs);
  Close(page);
  // Where a kernel or a container's filter refuses it, an ended child is waited for `grace` long.
  if (why.empty()) gone_ = base::OpenProcess(child_);
  if (!why.empty()) CloseAll();
  return why;
}

bool NvmlProcess::Ask() {
  if (asked_) return true;
  const std::chrono::milliseconds limit = answered_ ? options_.answer : options_.start;
  (void)base::Arm(timer_, limit);
  asked_ = WriteAll(socket_, "\n");
  return asked_;
}

bool NvmlProcess::ReadSome(std::string& why) {
  std::array<char, 16384> buffer;
  const ssize_t count = ::recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count > 0) {
    received_.append(buffer.data(), std::size_t(count));
    return true;
  }
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  why = "the NVIDIA driver ended the process that asked it";
  return false;
}

std::string NvmlProcess::Await(std::string& why) {
  // A child that starts anew after a failure may take its time, and the rest of the machine is looked at
  // meanwhile: its answer is fetched by a later look.
  const base::StopEvent stopped(options_.stop);
  const int patience = unanswered_ > 0 && !answered_ ? int(options_.answer.count()) : -1;
  for (;;) {
    const std::size_t newline = received_.find('\n');
    if (newline != std::string::npos) {
      const auto length = formats::Number<std::size_t>(std::string_view(received_).substr(0, newline));
      if (!length || *length > kMaxAnswer) break;
      if (received_.size() - newline - 1 >= *length) {
        std::string text = received_.substr(newline + 1, *length);
        received_.clear();  // one question is open at a time, so nothing follows
        asked_ = false;
        answered_ = true;
        return text;
      }
    } else if (received_.size() > 20) {
      break;
    }
    std::array<pollfd, 3> ready{{{socket_, POLLIN, 0}, {timer_, POLLIN, 0}, {stopped.get(), POLLIN, 0}}};
    const int count = ::poll(ready.data(), ready.size(), patience);
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) {
      why = fmt::format("the NVIDIA driver is still starting ({})", Where());
      return {};
    }
    if (ready[2].revents != 0) {
      why = kEnding;
      return {};
    }
    if (ready[0].revents == 0) {
      why = fmt::format("the NVIDIA driver hangs in {}",
                        Where().empty() ? "a process that did not start" : Where());
      (void)End();
      return {};
    }
    if (!ReadSome(why)) {
      why += fmt::format(" ({})", Where());
      (void)End();
      return {};
    }
  }
  why = "the process that asks the NVIDIA driver answers nonsense";
  (void)End();
  return {};
}

std::string NvmlProcess::Where() const {
  if (page_ == nullptr) return {};
  return formats::Printable(std::string_view(page_, ::strnlen(page_, kPageSize)), 100);
}

bool NvmlProcess::End() {
  ended_ = true;
  ::kill(child_, options_.end_signal);
  pollfd gone{gone_, POLLIN, 0};
  (void)::poll(&gone, 1, int(options_.grace.count()));
  return Reap();
}

bool NvmlProcess::Reap() {
  const pid_t done = ::waitpid(child_, nullptr, WNOHANG);
  if (done == 0 || (done < 0 && errno == EINTR)) return false;
  child_ = -1;
  ended_ = false;
  return true;
}

// A new child has heard of no XIDs yet and of nothing that the driver now fails to tell, and the GPUs are the same:
// they are not healthy by that. Another driver counts anew.
void NvmlProcess::Keep(GpuReadings& readings) const {
  const bool reloaded = !readings.driver.empty() && !told_.driver.empty() && readings.driver != told_.driver;
  for (GpuReading& gpu : readings.gpus) {
    for (const GpuReading& before : told_.gpus) {
      if (gpu.uuid.empty() || before.uuid != gpu.uuid) continue;
      if (IsFatalXid(before.last_xid) && !IsFatalXid(gpu.last_xid)) gpu.last_xid = before.last_xid;
      if (!reloaded) KeepTold(before, gpu);
    }
  }
}

GpuReadings NvmlProcess::Unanswered(std::string why) {
  ++unanswered_;
  GpuReadings readings = last_;
  readings.problems = {why};
  if (readings.gpus.empty()) {
    readings.absent = std::move(why);
  } else if (unanswered_ > options_.tolerated) {
    for (GpuReading& gpu : readings.gpus) {
      if (gpu.state == GpuState::kAnswers) gpu.state = GpuState::kSilent;
    }
  }
  return readings;
}

GpuReadings NvmlProcess::Read() {
  if (options_.stop.stop_requested()) return Unanswered(kEnding);
  // Killed before, and perhaps gone by now.
  if (child_ >= 0 && ended_ && !Reap()) {
    return Unanswered(
        fmt::format("the NVIDIA driver hangs in {}, and the process that called it (pid {}) cannot be ended: "
                    "reboot the node",
                    Where(), child_));
  }
  std::string why = Start();
  if (!why.empty()) return Unanswered(std::move(why));
  std::string text;
  if (Ask()) {
    text = Await(why);
  } else {
    why = fmt::format("the process that asks the NVIDIA driver is gone ({})", Where());
    (void)End();
  }
  if (!why.empty()) return Unanswered(std::move(why));
  GpuReadings readings = yaml_.Read(std::move(text));
  Keep(readings);
  unanswered_ = 0;
  last_ = readings;
  if (!readings.gpus.empty()) told_ = readings;
  // Without a driver there is nothing to keep a process for; it may come, so the next look starts another.
  if (!readings.absent.empty()) (void)End();
  return readings;
}

int ServeNvml(const std::string& library) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  void* mapped = ::mmap(nullptr, kPageSize, PROT_READ | PROT_WRITE, MAP_SHARED, kPage, 0);
  if (mapped == MAP_FAILED) return 2;
  char* page = static_cast<char*>(mapped);
  NvmlGpus gpus(library, [page](std::string_view call, int gpu) {
    // Terminated by the page's last byte, which nobody writes.
    const auto end = gpu < 0 ? fmt::format_to_n(page, kPageSize - 2, "{}", call)
                             : fmt::format_to_n(page, kPageSize - 2, "{} of GPU {}", call, gpu);
    *end.out = '\0';
  });
  bool starting = true;
  for (;;) {
    pollfd asked{kSocket, POLLIN, 0};
    const int count = ::poll(&asked, 1, gpus.listens() ? kListenMs : -1);
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) {
      constexpr std::uint64_t kOne = 1;
      if (gpus.Listen()) (void)!::write(kNews, &kOne, sizeof kOne);
      continue;
    }
    char question = 0;
    if (count < 0 || ::read(kSocket, &question, 1) != 1) break;
    const std::string text = FormatNvmlYaml(gpus.Read());
    if (!WriteAll(kSocket, fmt::format("{}\n{}", text.size(), text))) break;
    // What the driver's start took and left free is not needed again.
    if (std::exchange(starting, false)) base::ReturnFreeMemory();
  }
  return 0;
}

}  // namespace heddle::nodeagent
