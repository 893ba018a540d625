#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file_tree.h"
#include "base/random.h"
#include "crds/condition.h"
#include "crds/node_devices.h"
#include "crds/node_lossless.h"
#include "kube/store.h"
#include "nodeagent/assembly/assemble.h"
#include "nodeagent/devices/device_files.h"
#include "nodeagent/devices/nccl_folder.h"
#include "nodeagent/devices/offer.h"
#include "nodeagent/devices/plugins.h"
#include "nodeagent/devices/preference.h"
#include "nodeagent/grants/grants.h"

namespace heddle::nodeagent {

struct NodeDevicesOptions {
  PluginsOptions plugins;                      // its prefer is set here
  std::string state = "/var/lib/heddle";       // Heddle's own folder, of the same name on the host and here
  std::string infiniband = "/dev/infiniband";  // where uverbs* lie on the host
  bool nccl_over_etc = false;                  // for NCCL before 2.23, which reads /etc/nccl.conf only
  GrantSource* kubelet = nullptr;  // asked when a container is about to get devices; null = nobody
  // The pods of this node; empty = they are not watched, and plans are not followed.
  std::function<std::vector<kube::ObjectPtr>()> pods;
  // The same, as new as can be had in a second or two; empty = `pods`.
  std::function<std::vector<kube::ObjectPtr>()> pods_now;
  // Hears of each choice of devices that several pods may be meant by, as a sentence that names them; must not block.
  std::function<void(const std::string& note)> on_doubt;
};

// What there is to publish.
struct DeviceNews {
  std::vector<crds::DeviceReport> reports;  // one for each wish; none for heddle.dev/fabric
  // NcclFilesWritten, and of pods that are watched DevicesAsPlanned and RdmaPodsComplete.
  std::vector<crds::Condition> conditions;
  // What the ids of our own that pods hold stand for, with those that are offered no more (GrantReadings::own).
  decltype(GrantReadings::own) own;
  friend bool operator==(const DeviceNews&, const DeviceNews&) = default;
};

inline constexpr std::string_view kNcclFilesWritten = "NcclFilesWritten";
// The reason of the event that says what on_doubt hears.
inline constexpr std::string_view kDevicesAmbiguous = "DevicesAmbiguous";
// Whether pods that have RDMA devices have what no device plugin brings (crds/rdma_pod.h).
inline constexpr std::string_view kRdmaPodsComplete = "RdmaPodsComplete";

// The devices of this node from end to end: from what was seen of it and what its spec wants, to what the kubelet is
// offered and the NCCL files beside it, and back to what is published of them.
// Thread rule: Run on a thread of its own; the rest from any. on_news comes on any of these threads, one at a time.
class NodeDevices {
 public:
  // `files`: rooted at "/", or at a recorded machine. What is passed must outlive it.
  NodeDevices(const base::FileTree& files, base::Clock& clock, base::Random random,
              NodeDevicesOptions options, std::function<void(const DeviceNews&)> on_news);

  // What an agent before this one published. In the same run of the machine its word holds until the kubelet has been
  // heard: an agent that starts again is no news of what the kubelet has. Comes before the first Wish, if at all.
  void Restore(std::vector<crds::DeviceReport> reports, std::string boot_id);
  void Look(const Observation& seen);
  void Wish(std::vector<crds::DeviceWish> devices, std::vector<crds::LosslessWish> lossless);
  // What the ports were read back as: only then NCCL is told how data is marked.
  void Read(std::vector<crds::LosslessReport> reports);
  // Learns what the kubelet can give and who holds what, and names what ids of our own stand for (GrantReadings::own).
  // Before the first look and the first wish that is not known, and DeviceNews::own says it once it is.
  void Hear(GrantReadings& readings);
  void PodsChanged();

  // No more of a port's devices are given out until Restore; containers keep those that they have. `port`: "mlx5_0:1";
  // `reason`: a sentence. Both may be called again.
  void Withdraw(const std::string& port, const std::string& reason);
  void Restore(const std::string& port);
  bool Withdrawn(const std::string& port) const;
  // Why a port that is withdrawn may still be given to a pod, as a part of a sentence; empty = it is not.
  std::string Leak() const;
  // Pods whose containers the kubelet gave the port's NIC, "namespace/pod", sorted, as heard last.
  std::vector<std::string> Holders(const std::string& port) const;

  void Run(std::stop_token stop) { plugins_.Run(std::move(stop)); }

 private:
  // A device of ours that a container holds: what it was when that was heard first. Of an id that another policy gives
  // another meaning, or none, the container has what it got.
  struct Held {
    std::string holder;              // "namespace/pod/container"
    std::vector<std::string> names;  // as in GrantReadings::own
  };

  void Offer();     // under the lock
  void NameHeld();  // under the lock: held_ and grants_, of what was heard last and is offered now
  void Compare(
      const GrantReadings& readings);  // under the lock: what is offered with what the kubelet can give
  void WriteNccl();                    // under the lock
  // Whether the NCCL files were written by an agent before this one, and in this run of the machine: after a reboot
  // drivers are back at their defaults, and what was proved of the ports is of before.
  bool NcclKept() const;
  void Publish();  // under the lock
  // Under the lock: the published report of an offer that is still to be heard of; null = there is none.
  const crds::DeviceReport* Before(const nodeagent::Offer& offer) const;
  crds::DeviceReport ReportOfElsewhere(const nodeagent::Offer& offer) const;  // under the lock
  crds::DeviceReport ReportOfOwn(const nodeagent::Offer& offer) const;        // under the lock
  crds::Condition NcclCondition() const;                                      // under the lock
  void JudgePods(std::vector<crds::Condition>& conditions) const;             // under the lock
  std::vector<std::string> Prefer(const nodeagent::Offer& offer, const PreferenceQuestion& question);

  const base::FileTree& files_;
  base::Clock& clock_;
  const NodeDevicesOptions options_;
  const NcclFolder folder_;
  const std::string boot_line_;  // of nccl.conf: in which run of the machine it was written; empty = not told
  const std::function<void(const DeviceNews&)> on_news_;

  std::mutex asking_;  // guards the kubelet, which is asked by one at a time

  mutable std::mutex mutex_;  // guards what follows
  std::optional<Observation> seen_;
  DeviceFiles device_files_;
  std::optional<base::MonotonicTime> read_at_;
  std::vector<crds::DeviceWish> wishes_;
  std::optional<std::vector<crds::LosslessWish>> lossless_;  // nothing: the spec is not known yet
  std::optional<std::vector<crds::LosslessReport>> read_;
  DeviceFacts facts_;
  std::optional<NcclFiles> nccl_written_;
  std::vector<std::string> nccl_notes_;
  std::string nccl_problem_;
  std::vector<nodeagent::Offer> offers_;
  std::map<std::string, Standing> standings_;
  std::map<std::string, std::string> foreign_;  // resource → a device of it that is not ours, as heard last
  std::set<std::string> missing_;  // resources that the kubelet took and cannot give, as heard last
  std::map<std::string, std::string> elsewhere_;              // the same, heard twice in a row
  GrantReadings last_;                                        // that were read; until then without containers
  std::map<std::pair<std::string, std::string>, Held> held_;  // by resource and id
  std::vector<crds::Grant> grants_;
  bool heard_ = false;  // the kubelet has said once what it can give
  // By resource, until the kubelet was asked for it.
  std::map<std::string, crds::DeviceReport> before_;
  std::string before_boot_;
  std::optional<DeviceNews> news_;

  Plugins plugins_;  // last: its callbacks use the rest
};

}  // namespace heddle::nodeagent
