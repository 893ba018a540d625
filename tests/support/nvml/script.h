#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace heddle::test::nvml {

// What the test library answers: a recorded machine's nvml.yaml, and under `fake:` how the driver misbehaves:
//   fake:
//     init: 9                                         # what nvmlInit answers
//     fails: {nvmlDeviceGetTotalEccErrors: 3}         # what a call answers
//     hangs: {nvmlDeviceGetName: 3}                   # a call that never comes back, of GPU 3 (-1: of any or none)
//     crashes: nvmlDeviceGetUUID
//     prints: noise                                   # on stdout, as it starts
//     gpu_fails: {2: 999}                             # what nvmlDeviceGetHandleByIndex answers for GPU 2
//     unknown_event: 999                              # what nvmlDeviceRegisterEvents answers for events it does not know
//     lost: {2: 0, 5: 30}                             # GPU 2 is gone; GPU 5 after 30 more calls of it
//     fabric_version: 2                               # the newest nvmlGpuFabricInfoV that it knows; 1: only the call
//                                                     # before that, without a version; 0: none
//     link_fails: {"3.7": 999}                        # what nvmlDeviceGetNvLinkState answers of link 7 of GPU 3
//     link_states: true                               # field 165, as from Hopper on
//     speeds: common                                  # only field 90, as before Hopper; none: no speed at all
struct Link {
  unsigned number = 0;
  bool active = false;
  unsigned end = 0xff;
  std::string remote_pci;
  unsigned speed_mbps = 0;
  std::optional<unsigned long long> crc, replays, recoveries, receive_errors, malformed, overruns, integrity,
      failed_recoveries;
};

struct Gpu {
  std::string uuid, name, pci;
  std::optional<unsigned long long> memory_mib, uncorrected;
  std::optional<bool> mig, remap_pending, remap_failure;
  std::optional<unsigned>
      recovery_action;  // where it is not said: a driver that knows neither it nor its event
  int generation = 0;
  std::vector<Link> links;
  bool has_fabric = false;
  unsigned char fabric_state = 0;
  unsigned char cluster[16] = {};
  unsigned clique = 0, health_mask = 0;
  int fabric_error = 0, health_summary = 0, xid = 0;

  const Link* FindLink(unsigned number) const;
};

struct Script {
  std::string driver;
  std::vector<Gpu> gpus;  // by index
  int init = 0, fabric_version = 3, unknown_event = 3;
  bool link_states = false;
  std::string speeds = "all", crashes, prints;
  std::map<std::string, int> fails, hangs, link_fails;
  std::map<unsigned, int> lost, gpu_fails;
};

// Reads the file; a file that is none ends the program, since a test wrote it.
Script ReadScript(const char* path);

}  // namespace heddle::test::nvml
