// What the extender does before each decision on a cluster of so many nodes, half of them with gangs of 16 nodes and half
// with two pods of no gang each: gather what its caches have (Inputs), and make one picture of it. One pod changes between
// two rounds, as one does on a busy cluster: without a new claim on GPUs (SameClaims) or with one (AnotherClaim); or a
// node is cordoned, or no more (ANodeCordoned). No sockets: lists and watches are fed from prepared bytes.
// build/release/bin/look_bench
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "bench/published_topology.h"
#include "crds/gang.h"
#include "crds/keys.h"
#include "extender/cluster_cache.h"
#include "extender/snapshot_keeper.h"
#include "kube/client.h"

namespace heddle::extender {
namespace {

constexpr int kGangNodes = 16;

std::string Event(const kube::Json& object) {
  return R"({"type":"ADDED","object":)" + object.dump() + "}\n";
}

std::string NodeName(int node) {
  return fmt::format("node-{:05}", node);
}

kube::Json Pod(const std::string& name, int node, int gpus) {
  kube::Json pod = kube::NewObject(kube::kPods, {"team", name});
  pod["metadata"]["uid"] = "uid-" + name;
  pod["metadata"]["resourceVersion"] = "7";
  pod["spec"] = {{"schedulerName", "heddle"},
                 {"nodeName", NodeName(node)},
                 {"containers", kube::Json::array({{{"name", "main"},
                                                    {"resources",
                                                     {{"limits", {{"nvidia.com/gpu", std::to_string(gpus)}}},
                                                      {"requests", {{"cpu", "4"}, {"memory", "1Gi"}}}}}}})}};
  pod["status"] = {{"phase", "Running"}};
  return pod;
}

kube::Json GangPod(int gang, int rank) {
  kube::Json pod = Pod(fmt::format("gang-{}-{}", gang, rank), gang * kGangNodes + rank, 8);
  pod["metadata"]["labels"] = {{"batch.kubernetes.io/job-completion-index", std::to_string(rank)}};
  pod["metadata"]["annotations"] = {{"heddle.dev/parallelism", "tp=8,pp=4,dp=4"},
                                    {"heddle.dev/rank", std::to_string(rank)},
                                    {"heddle.dev/node", NodeName(gang * kGangNodes + rank)},
                                    {"heddle.dev/gpus", "0,1,2,3,4,5,6,7"},
                                    {"heddle.dev/gang-uid", fmt::format("gang-uid-{}", gang)},
                                    {"heddle.dev/epoch", "1"}};
  pod["metadata"]["ownerReferences"] = kube::Json::array({{{"apiVersion", "batch/v1"},
                                                           {"kind", "Job"},
                                                           {"name", fmt::format("gang-{}", gang)},
                                                           {"uid", fmt::format("job-uid-{}", gang)},
                                                           {"controller", true}}});
  return pod;
}

kube::Json GangObject(int gang) {
  crds::Gang object;
  object.ns = "team";
  object.spec.owner = {"batch/v1", "Job", fmt::format("gang-{}", gang), fmt::format("job-uid-{}", gang)};
  object.spec.pods = kGangNodes;
  object.spec.gpus_per_pod = 8;
  object.spec.gpu_resource = "nvidia.com/gpu";
  object.name = crds::GangName(object.spec);
  object.uid = fmt::format("gang-uid-{}", gang);
  object.resource_version = "7";
  std::vector<crds::PlacedPod> rows;
  for (int rank = 0; rank < kGangNodes; ++rank) rows.push_back({NodeName(gang * kGangNodes + rank), 0, {}});
  object.status.placement = crds::ToColumns(rows, 1);
  object.status.planned_at = base::WallTime{};
  return crds::ToJson(object);
}

// One server's watches, and single changes of pods when asked.
class PreparedServer final : public kube::HttpTransport {
 public:
  explicit PreparedServer(int nodes) {
    const std::vector<topology::Node> machines = bench::Machines(nodes);
    for (int i = 0; i < nodes; ++i) {
      crds::NodeTopology object = bench::PublishedTopology(NodeName(i), machines[std::size_t(i)]);
      object.uid = fmt::format("uid-{}", i);
      object.resource_version = std::to_string(i + 1);
      Add(topologies_, crds::ToJson(object));
      Add(nodes_, Node(object.name));
    }
    const int gangs = nodes / 2 / kGangNodes;
    for (int gang = 0; gang < gangs; ++gang) {
      gangs_ += Event(GangObject(gang));
      for (int rank = 0; rank < kGangNodes; ++rank) Add(pods_, GangPod(gang, rank));
    }
    for (int node = gangs * kGangNodes; node < nodes; ++node) {
      for (int i = 0; i < 2; ++i) Add(pods_, Pod(fmt::format("lone-{}-{}", node, i), node, 4));
    }
  }

  // Of what there are thousands, the first state is a list.
  base::Result<kube::HttpResponse> Do(const kube::HttpRequest& request, std::stop_token) override {
    for (const auto& [path, items] :
         {std::pair("/pods?", &pods_), {"/nodetopologies?", &topologies_}, {"/nodes?", &nodes_}}) {
      if (request.target.find(path) == std::string::npos) continue;
      kube::HttpResponse answer;
      answer.status = 200;
      answer.body = R"({"metadata":{"resourceVersion":"99999"},"items":[)" + *items + "]}";
      return answer;
    }
    return base::Fail(base::Code::kNotFound, "no such list here");
  }

  base::Result<kube::HttpResponse> Stream(const kube::HttpRequest& request, const kube::ChunkReader& on_chunk,
                                          std::stop_token stop) override {
    const auto about = [&request](const char* resource) {
      return request.target.find(resource) != std::string::npos;
    };
    const bool pods = about("/pods"), nodes = about("/nodes");
    on_chunk(about("/gangs") ? gangs_ : "");
    on_chunk(
        R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"99999","annotations":{"k8s.io/initial-events-end":"true"}}}})"
        "\n");
    int told = 0, cordons = 0;
    while (!stop.stop_requested()) {
      if (nodes && cordons < cordons_) {
        kube::Json node = Node(NodeName(0));
        node["metadata"]["resourceVersion"] = std::to_string(200000 + ++cordons);
        node["spec"]["unschedulable"] = cordons % 2 == 1;
        on_chunk(R"({"type":"MODIFIED","object":)" + node.dump() + "}\n");
      }
      if (pods && told < changes_) {
        kube::Json pod = GangPod(0, 0);
        pod["metadata"]["resourceVersion"] = std::to_string(100000 + ++told);
        if (claims_) pod["metadata"]["annotations"]["heddle.dev/epoch"] = std::to_string(told);
        on_chunk(R"({"type":"MODIFIED","object":)" + pod.dump() + "}\n");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return base::Fail(base::Code::kCancelled, "stopped");
  }

  // `claims`: what it says of its plan, too; else only its version.
  void ChangeAPod(bool claims) {
    claims_ = claims;
    ++changes_;
  }
  void CordonANode() { ++cordons_; }

 private:
  static void Add(std::string& items, const kube::Json& object) {
    if (!items.empty()) items += ',';
    items += object.dump();
  }
  static kube::Json Node(const std::string& name) {
    kube::Json node = kube::NewObject(kube::kNodes, {"", name});
    node["metadata"]["uid"] = "uid-" + name;
    node["metadata"]["resourceVersion"] = "3";
    node["metadata"]["labels"] = {{"kubernetes.io/hostname", name}, {"nvidia.com/gpu.product", "H100"}};
    node["status"] = {{"allocatable",
                       {{"cpu", "192"},
                        {"memory", "2Ti"},
                        {"pods", "110"},
                        {"nvidia.com/gpu", "8"},
                        {"heddle.dev/fabric", "110"}}},
                      {"conditions", kube::Json::array({{{"type", "Ready"}, {"status", "True"}}})}};
    return node;
  }

  std::string nodes_, topologies_, pods_, gangs_;
  std::atomic<bool> claims_{false};
  std::atomic<int> changes_{0}, cordons_{0};
};

enum class What : std::uint8_t { kInputs, kUnchanged, kChanged, kCordoned };

void Look(benchmark::State& bench, What what) {
  PreparedServer server{int(bench.range(0))};
  base::SystemClock clock;
  kube::Client client(server, clock);
  std::atomic<int> changed{0};
  ClusterCache cache(client, clock, base::Random(1),
                     {.gang_changed = [&changed](const GangKey&) { ++changed; },
                      .capacity_changed = [&changed] { ++changed; }});
  std::jthread thread([&cache](const std::stop_token& stop) { cache.Run(stop); });
  while (!cache.synced()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  SnapshotKeeper snapshots;
  benchmark::DoNotOptimize(snapshots.Of(cache.Inputs(std::nullopt)));
  for (auto round : bench) {
    (void)round;
    bench.PauseTiming();
    const int before = changed;
    if (what == What::kCordoned) {
      server.CordonANode();
    } else {
      server.ChangeAPod(what == What::kChanged);
    }
    while (changed == before) std::this_thread::sleep_for(std::chrono::microseconds(200));
    bench.ResumeTiming();
    SnapshotInputs inputs = cache.Inputs(std::nullopt);
    if (what != What::kInputs) benchmark::DoNotOptimize(snapshots.Of(std::move(inputs)));
  }
  bench.counters["pods"] = double(cache.Inputs(std::nullopt).pods.size());
}
void Inputs(benchmark::State& bench) {
  Look(bench, What::kInputs);
}
void SameClaims(benchmark::State& bench) {
  Look(bench, What::kUnchanged);
}
void AnotherClaim(benchmark::State& bench) {
  Look(bench, What::kChanged);
}
void ANodeCordoned(benchmark::State& bench) {
  Look(bench, What::kCordoned);
}
BENCHMARK(Inputs)->Arg(1000)->Arg(5000)->Arg(10000)->Unit(benchmark::kMillisecond);
BENCHMARK(SameClaims)->Arg(1000)->Arg(5000)->Arg(10000)->Unit(benchmark::kMillisecond);
BENCHMARK(AnotherClaim)->Arg(1000)->Arg(5000)->Arg(10000)->Unit(benchmark::kMillisecond);
BENCHMARK(ANodeCordoned)->Arg(1000)->Arg(5000)->Arg(10000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace heddle::extender
