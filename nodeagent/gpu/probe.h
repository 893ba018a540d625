#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_tree.h"
#include "base/result.h"
#include "topology/node.h"

namespace heddle::nodeagent {

enum class LinkEnd : std::uint8_t { kUnknown, kGpu, kSwitch };

// What a link has counted since the driver was loaded; nothing where this driver or GPU does not count it.
struct NvlinkErrors {
  std::optional<std::uint64_t> crc;         // broken flits
  std::optional<std::uint64_t> replays;     // of what was lost
  std::optional<std::uint64_t> recoveries;  // retrainings
  // From Blackwell on.
  std::optional<std::uint64_t> receive;            // broken packets
  std::optional<std::uint64_t> malformed;          // packets
  std::optional<std::uint64_t> overruns;           // packets that found the buffer full
  std::optional<std::uint64_t> integrity;          // times that the link's own errors exceeded a threshold
  std::optional<std::uint64_t> failed_recoveries;  // the link was declared down
  friend bool operator==(const NvlinkErrors&, const NvlinkErrors&) = default;
};

// Whether the driver said if the link is up. kKept: it failed this time, and the rest is what it last said. kUntold: it
// failed and never said anything, so the link counts neither as up nor as down.
enum class LinkWord : std::uint8_t { kSaid, kKept, kUntold };

struct NvlinkReading {
  int link = 0;
  bool active = false;
  LinkEnd end = LinkEnd::kUnknown;  // not said: Assemble takes it from the PCI bus where that shows a switch
  std::string remote_pci;           // empty where NVML does not tell
  int speed_mbps = 0;               // MB/s on the wire in one direction, line coding included; 0 = not said
  NvlinkErrors errors;
  LinkWord word = LinkWord::kSaid;
  friend bool operator==(const NvlinkReading&, const NvlinkReading&) = default;
};

enum class FabricState : std::uint8_t { kUnknown, kNotSupported, kNotStarted, kInProgress, kCompleted };

struct FabricReading {
  FabricState state = FabricState::kUnknown;
  std::string cluster_uuid;  // empty = in no fabric beyond the host: NVML says all zeros there
  std::uint32_t clique = 0;
  std::uint32_t health_mask = 0;  // NVML_GPU_FABRIC_HEALTH_MASK_*; 0 = nothing of it is supported
  int health_summary = 0;         // 0 not said, 1 healthy, 2 unhealthy, 3 limited capacity
  int error = 0;                  // nvmlReturn_t of a registration that is through; 0 = it succeeded
  // nvmlReturn_t of a question that failed, and the rest is what the driver last said; 0 = it was answered.
  int unread = 0;
  friend bool operator==(const FabricReading&, const FabricReading&) = default;
};

// Whether the driver speaks for a GPU. kSilent: it hangs; kFails: it answers with an error. The rest of the reading is
// what it last said then.
enum class GpuState : std::uint8_t { kAnswers, kLost, kResetRequired, kSilent, kFails };

// What one GPU said. What it did not say is empty, never zero-with-a-meaning.
struct GpuReading {
  int index = 0;
  std::string uuid;
  std::string name;
  std::string pci;
  GpuState state = GpuState::kAnswers;
  std::string failure;  // with kFails: which error, in words
  int memory_mib = 0;
  bool xgmi = false;  // AMD's: its links below are xGMI, their speeds are of data, and there is no generation
  std::optional<bool> mig;
  int nvlink_generation = 0;
  std::vector<NvlinkReading> nvlinks;
  FabricReading fabric;
  std::optional<std::int64_t> uncorrected_ecc;  // since the driver was loaded
  std::optional<bool> row_remap_pending;
  std::optional<bool> row_remap_failure;
  std::optional<int> recovery_action;  // what the driver asks for: NVML_GPU_RECOVERY_ACTION_*; 0 = nothing
  int last_xid = 0;  // 0 = none seen; one that ends the use of the GPU is not replaced by one that does not
  friend bool operator==(const GpuReading&, const GpuReading&) = default;
};

struct GpuReadings {
  std::string driver;
  std::vector<GpuReading> gpus;       // sorted by index
  std::string absent;                 // why nothing could be asked; empty when something was
  std::vector<std::string> problems;  // sentences
};

// Whoever knows the GPUs: NVML, or what NVML answered when a machine was recorded.
// Thread rule: one thread, but for news.
class GpuSource {
 public:
  GpuSource() = default;
  GpuSource(const GpuSource&) = delete;
  GpuSource& operator=(const GpuSource&) = delete;
  virtual ~GpuSource() = default;
  virtual GpuReadings Read() = 0;
  // An eventfd that is written to when the GPUs have something to say before they are asked (an XID); whoever waits for
  // it reads it, too. The same as long as this lives. -1: they never have. Any thread.
  virtual int news() const { return -1; }
};

// Total: one GPU that is written wrong does not hide the others; text that is no YAML is one problem.
GpuReadings ParseNvmlYaml(std::string_view yaml);
// The recording: ParseNvmlYaml(FormatNvmlYaml(x)) is x, of its problems the first 64.
std::string FormatNvmlYaml(const GpuReadings& readings);

// ParseNvmlYaml of one text after the other. From look to look a driver with nothing to tell says the same, and
// reading that costs as much as all PCI devices do: a text that was read last is not read again.
// Thread rule: one thread.
class NvmlYaml {
 public:
  // Stays until the next Read.
  const GpuReadings& Read(std::string text);

 private:
  std::optional<std::string> text_;
  GpuReadings readings_;
};

// nvml.yaml at the root of a recorded machine.
class RecordedGpus final : public GpuSource {
 public:
  explicit RecordedGpus(const base::FileTree& files) : files_(files) {}
  GpuReadings Read() override;

 private:
  const base::FileTree& files_;
  NvmlYaml yaml_;
};

// What the driver told `before` of the same GPU and does not tell now stays, since a fault that cannot be read is not
// over: ECC, row remapping, MIG, the recovery action, of links their generation, speed and where they end, and of the
// fabric and of links whose query failed what was last said.
void KeepTold(const GpuReading& before, GpuReading& gpu);

// Why this GPU must not be used; empty when there is no evidence against it. A missing answer is none.
std::string FaultOf(const GpuReading& gpu);
// The one reason that is somebody's wish and no fault.
inline constexpr std::string_view kMigIsOn = "MIG is on, and a gang needs whole GPUs: nvidia-smi -mig 0";

// XIDs that end the use of a GPU until somebody resets or replaces it.
bool IsFatalXid(int xid);

// "the driver reports XID 79, which ends the use of the GPU".
std::string SayXid(int xid);

// Links that are up, by what was last told of them, and links of which the driver never said whether they are.
int ActiveLinks(const GpuReading& gpu);
int UntoldLinks(const GpuReading& gpu);

// What NVML says of the NVLink fabric beyond its state: a sentence for each GPU with something wrong.
std::vector<std::string> FabricFaults(const std::vector<GpuReading>& gpus);

// Bandwidth of one link in one direction in Gb/s of data, from the speed that it trained to. Where the driver
// does not say, what that generation has; 0 for a generation that we do not know.
int NvlinkGbps(const NvlinkReading& link, int generation);

// What the links that are up trained to.
struct NvlinkSpeeds {
  int usual_gbps = 0;    // of one link in one direction: what most have, of two the greater; 0 = unknown
  bool assumed = false;  // the driver says no speed of some link that is up
  std::vector<std::string> slow;  // a sentence for each GPU with links that are slower
};
NvlinkSpeeds SpeedsOf(const std::vector<GpuReading>& gpus);

// NVLink as counts, what links that trained to less take from their GPU included, and the domain of a machine with
// that name. Problems found on the way are appended.
topology::NvLink NvlinkOf(const std::vector<GpuReading>& gpus);
topology::Fact<topology::NvlinkMembership> DomainOf(const std::vector<GpuReading>& gpus,
                                                    std::string_view node_name,
                                                    std::vector<std::string>& problems);

}  // namespace heddle::nodeagent
