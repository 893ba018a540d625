#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "nodeagent/gpu/probe.h"

namespace heddle::nodeagent {

struct NvmlProcessOptions {
  // What is started as `program nvml-probe library`; it must come to ServeNvml.
  std::string program = "/proc/self/exe";
  std::string library = "libnvidia-ml.so.1";
  std::vector<std::string> environment;  // of the child, as NAME=value: the loader's paths are in it
  // For the first answer: without persistence mode the driver starts every GPU, some seconds each.
  std::chrono::milliseconds start{60'000};
  // For each further answer, which takes some ten milliseconds of a driver in order.
  std::chrono::milliseconds answer{10'000};
  // For a killed child to go.
  std::chrono::milliseconds grace{500};
  // So many looks without an answer in a row are taken for a slow driver; then the GPUs count as unusable.
  int tolerated = 1;
  std::stop_token stop;      // ends a wait for the driver, and starts no other
  int end_signal = SIGKILL;  // what ends a child; tests send one that a stuck child does not hear
};

// NVML in a child process behind a deadline. A call into the driver may never come back, and a thread in it can
// neither be joined nor ended: this process must not be the one that makes it. The child lives from look to
// look, so that NVML starts once and its events (XIDs) are heard in between.
//
// A child that does not answer in time is killed, and the next look starts another. One that does not even go
// when it is killed (it sleeps uninterruptibly in the driver) is left alone: there is never a second one beside
// it, and every look says where it is stuck until it is gone. While the driver is silent the GPUs are those of
// its last answer: for `tolerated` looks as they were, and then as GPUs that do not answer (GpuState::kSilent).
//
// Between two looks the child listens for XIDs and writes to news() when there is one, a second after it came at most.
//
// Thread rule: one thread but for news, and the child ends with the thread that started it. Read never takes
// longer than `start`, and after a first failure than `answer`, plus `grace`.
class NvmlProcess final : public GpuSource {
 public:
  explicit NvmlProcess(NvmlProcessOptions options);
  ~NvmlProcess() override;
  GpuReadings Read() override;
  int news() const override { return news_; }

  pid_t child() const { return child_; }  // -1 = none

 private:
  // Empty when a child is there to be asked, else why not.
  std::string Start();
  std::string Spawn(int socket_end, int page);
  // Asks, unless a question is open. False where the child is gone.
  bool Ask();
  // The text of an answer, or empty and why there is none.
  std::string Await(std::string& why);
  bool ReadSome(std::string& why);
  // Ends the child. True when it is gone.
  bool End();
  bool Reap();
  void CloseAll();
  void Keep(GpuReadings& readings) const;
  std::string Where() const;
  GpuReadings Unanswered(std::string why);

  const NvmlProcessOptions options_;
  int news_ = -1;
  pid_t child_ = -1;
  int socket_ = -1, timer_ = -1, gone_ = -1;  // gone_: a pidfd
  char* page_ = nullptr;                   // where the child is, written by it: "nvmlDeviceGetName of GPU 3"
  bool asked_ = false, answered_ = false;  // answered_: this child, once
  bool ended_ = false;                     // it was sent the signal, and is not gone yet
  std::string received_;
  NvmlYaml yaml_;
  int unanswered_ = 0;  // looks in a row
  GpuReadings last_;
  GpuReadings told_;  // the last with GPUs
};

// The child: answers on the descriptors that NvmlProcess gave it until that is gone. Its exit status.
int ServeNvml(const std::string& library);

}  // namespace heddle::nodeagent
