#pragma once

#include <array>
#include <string_view>

#include "base/check.h"
#include "base/result.h"

namespace heddle::fuzz {

// Whatever the bytes are, a target neither crashes nor hangs nor takes memory without end, and stops the
// process where the parser breaks a promise of its header. True: the bytes are what the parser is for, and something was
// read of them. A corpus of which nothing is shows a fuzzer the first refusal and no more.
struct Target {
  std::string_view name;
  bool (*run)(std::string_view bytes);
};

// Whether it was read; an error has a sentence for people.
template <class T>
bool Read(const base::Result<T>& result) {
  if (!result) CHECK(!result.error().message.empty());
  return result.has_value();
}

bool Hostlist(std::string_view bytes);
bool SlurmConf(std::string_view bytes);
bool SlurmYaml(std::string_view bytes);
bool TopoMatrix(std::string_view bytes);
bool NcclTests(std::string_view bytes);
bool Ibnetdiscover(std::string_view bytes);
bool IbNeighbours(std::string_view bytes);
bool Lldp(std::string_view bytes);
bool NcclXml(std::string_view bytes);
bool SonicConfig(std::string_view bytes);
bool MlnxQos(std::string_view bytes);
bool Dcb(std::string_view bytes);
bool Synthetic(std::string_view bytes);
bool SwitchCounters(std::string_view bytes);
bool Annotations(std::string_view bytes);
bool ClusterFile(std::string_view bytes);
bool Import(std::string_view bytes);
bool Lint(std::string_view bytes);
bool NvmlYaml(std::string_view bytes);
bool MachineYaml(std::string_view bytes);
bool Scrub(std::string_view bytes);
bool Sysfs(std::string_view bytes);
bool VerbsYaml(std::string_view bytes);
bool EthtoolText(std::string_view bytes);
bool EthtoolAnswers(std::string_view bytes);
bool Uevent(std::string_view bytes);
bool Rtnetlink(std::string_view bytes);
bool PodResources(std::string_view bytes);
bool NcclSource(std::string_view bytes);
bool Dcbnl(std::string_view bytes);
bool RdmaNetlink(std::string_view bytes);
bool QosYaml(std::string_view bytes);
bool QosJournal(std::string_view bytes);
bool QosFiles(std::string_view bytes);
bool BnxtFiles(std::string_view bytes);
bool PodCgroup(std::string_view bytes);
bool DevicePatterns(std::string_view bytes);
bool PublishedHealth(std::string_view bytes);
bool Smp(std::string_view bytes);
bool Pma(std::string_view bytes);
bool LeafCounters(std::string_view bytes);
bool Kfd(std::string_view bytes);
bool NvidiaProc(std::string_view bytes);
bool Ufm(std::string_view bytes);
bool GnmiPath(std::string_view bytes);
bool GnmiAnswer(std::string_view bytes);
bool GnmiJson(std::string_view bytes);

// Each has a folder of its name in tests/fuzz/corpus and an executable fuzz_<name>.
inline constexpr std::array<Target, 47> kTargets{{
    {"hostlist", Hostlist},
    {"slurm_conf", SlurmConf},
    {"slurm_yaml", SlurmYaml},
    {"topo_matrix", TopoMatrix},
    {"nccl_tests", NcclTests},
    {"ibnetdiscover", Ibnetdiscover},
    {"ib_neighbours", IbNeighbours},
    {"lldp", Lldp},
    {"nccl_xml", NcclXml},
    {"sonic_config", SonicConfig},
    {"mlnx_qos", MlnxQos},
    {"dcb", Dcb},
    {"synthetic", Synthetic},
    {"switch_counters", SwitchCounters},
    {"ufm", Ufm},
    {"annotations", Annotations},
    {"cluster_file", ClusterFile},
    {"import", Import},
    {"lint", Lint},
    {"nvml_yaml", NvmlYaml},
    {"machine_yaml", MachineYaml},
    {"scrub", Scrub},
    {"sysfs", Sysfs},
    {"verbs_yaml", VerbsYaml},
    {"ethtool_text", EthtoolText},
    {"ethtool_answers", EthtoolAnswers},
    {"uevent", Uevent},
    {"rtnetlink", Rtnetlink},
    {"pod_resources", PodResources},
    {"nccl_source", NcclSource},
    {"dcbnl", Dcbnl},
    {"rdma_netlink", RdmaNetlink},
    {"qos_yaml", QosYaml},
    {"qos_journal", QosJournal},
    {"qos_files", QosFiles},
    {"bnxt_files", BnxtFiles},
    {"pod_cgroup", PodCgroup},
    {"device_patterns", DevicePatterns},
    {"published_health", PublishedHealth},
    {"smp", Smp},
    {"pma", Pma},
    {"leaf_counters", LeafCounters},
    {"kfd", Kfd},
    {"nvidia_proc", NvidiaProc},
    {"gnmi_path", GnmiPath},
    {"gnmi_answer", GnmiAnswer},
    {"gnmi_json", GnmiJson},
}};

}  // namespace heddle::fuzz
