#pragma once

#include <array>
#include <string_view>

#include "base/check.h"
#include "base/result.h"

namespace heddle::fuzz {

// Whatever the bytes are, a target neither crashes nor hangs nor takes memory without end, and stops the
// process where the parser breaks a promise of its header.
struct Target {
  std::string_view name;
  void (*run)(std::string_view bytes);
};

// Whether it was read; an error has a sentence for people.
template <class T>
bool Read(const base::Result<T>& result) {
  if (!result) CHECK(!result.error().message.empty());
  return result.has_value();
}

void Hostlist(std::string_view bytes);
void SlurmConf(std::string_view bytes);
void SlurmYaml(std::string_view bytes);
void TopoMatrix(std::string_view bytes);
void NcclTests(std::string_view bytes);
void Ibnetdiscover(std::string_view bytes);
void IbNeighbours(std::string_view bytes);
void Lldp(std::string_view bytes);
void NcclXml(std::string_view bytes);
void SonicConfig(std::string_view bytes);
void MlnxQos(std::string_view bytes);
void Dcb(std::string_view bytes);
void Synthetic(std::string_view bytes);
void SwitchCounters(std::string_view bytes);
void Annotations(std::string_view bytes);
void ClusterFile(std::string_view bytes);
void Import(std::string_view bytes);
void Lint(std::string_view bytes);
void NvmlYaml(std::string_view bytes);
void MachineYaml(std::string_view bytes);
void Sysfs(std::string_view bytes);
void VerbsYaml(std::string_view bytes);
void EthtoolText(std::string_view bytes);
void Uevent(std::string_view bytes);
void Rtnetlink(std::string_view bytes);
void PodResources(std::string_view bytes);
void NcclSource(std::string_view bytes);
void Dcbnl(std::string_view bytes);
void RdmaNetlink(std::string_view bytes);
void QosYaml(std::string_view bytes);
void QosJournal(std::string_view bytes);
void Smp(std::string_view bytes);
void Pma(std::string_view bytes);
void LeafCounters(std::string_view bytes);
void Kfd(std::string_view bytes);
void Ufm(std::string_view bytes);
void GnmiPath(std::string_view bytes);
void GnmiAnswer(std::string_view bytes);
void GnmiJson(std::string_view bytes);

// Each has a folder of its name in tests/fuzz/corpus and an executable fuzz_<name>.
inline constexpr std::array<Target, 39> kTargets{{
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
    {"sysfs", Sysfs},
    {"verbs_yaml", VerbsYaml},
    {"ethtool_text", EthtoolText},
    {"uevent", Uevent},
    {"rtnetlink", Rtnetlink},
    {"pod_resources", PodResources},
    {"nccl_source", NcclSource},
    {"dcbnl", Dcbnl},
    {"rdma_netlink", RdmaNetlink},
    {"qos_yaml", QosYaml},
    {"qos_journal", QosJournal},
    {"smp", Smp},
    {"pma", Pma},
    {"leaf_counters", LeafCounters},
    {"kfd", Kfd},
    {"gnmi_path", GnmiPath},
    {"gnmi_answer", GnmiAnswer},
    {"gnmi_json", GnmiJson},
}};

}  // namespace heddle::fuzz
