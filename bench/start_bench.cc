// How long the extender takes from its start until it leads, what that costs and what it then holds, on a cluster of so
// many nodes with two pods each, in the shapes and sizes that an API server sends (managedFields too). No sockets: the
// answers are cut from files, so that what is measured is the extender's own share of the start.
// build/release/bin/start_bench 10000
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/process.h"
#include "bench/published_topology.h"
#include "extender/daemon.h"

namespace heddle::extender {
namespace {

constexpr int kPodsOfNode = 2;
constexpr int kVariables = 20;  // of a pod
constexpr std::string_view kTime = "2026-11-26T09:35:09Z";

std::string NodeName(int node) {
  return fmt::format("node-{:05}", node);
}

// One writer's fields, as the API server notes them: about as long as the object itself.
kube::Json ManagedFields(const kube::Json& fields) {
  kube::Json noted = kube::Json::object();
  for (const auto& [key, value] : fields.items()) {
    noted["f:" + key] = value.is_object() ? ManagedFields(value) : kube::Json::object();
    if (!value.is_array()) continue;
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (value[i].is_object())
        noted["f:" + key][fmt::format("k:{{\"name\":\"{}\"}}", i)] = ManagedFields(value[i]);
    }
  }
  return noted;
}

void Finish(kube::Json& object, int version, std::initializer_list<const char*> managed) {
  kube::Json& metadata = object["metadata"];
  const std::string name = metadata["name"];
  metadata["uid"] = fmt::format("2dd070e0-01f6-4a20-80e3-{:012}", version);
  metadata["resourceVersion"] = std::to_string(version);
  metadata["creationTimestamp"] = kTime;
  for (const char* field : managed) {
    metadata["managedFields"].push_back({{"manager", "kubelet"},
                                         {"operation", "Update"},
                                         {"apiVersion", object["apiVersion"]},
                                         {"time", kTime},
                                         {"fieldsType", "FieldsV1"},
                                         {"fieldsV1", {{field, ManagedFields(object[field])}}}});
  }
}

kube::Json Condition(const char* type, const char* status) {
  return {{"type", type},
          {"status", status},
          {"lastHeartbeatTime", kTime},
          {"lastTransitionTime", kTime},
          {"reason", fmt::format("KubeletSays{}", type)},
          {"message", fmt::format("kubelet says that {} is {}", type, status)}};
}

kube::Json Pod(int node, int index) {
  kube::Json pod = kube::NewObject(kube::kPods, {"team", fmt::format("job-{:05}-{:02}", node, index)});
  pod["metadata"]["labels"] = {{"batch.kubernetes.io/job-name", fmt::format("job-{:05}", node)}};
  const kube::Json resources = {{"cpu", "1"}, {"nvidia.com/gpu", "4"}};
  kube::Json variables = kube::Json::array();
  for (int i = 0; i < kVariables; ++i)
    variables.push_back({{"name", fmt::format("SETTING_{}", i)}, {"value", std::string(40, 'x')}});
  pod["spec"] = {
      {"schedulerName", "default-scheduler"},
      {"nodeName", NodeName(node)},
      {"restartPolicy", "Always"},
      {"terminationGracePeriodSeconds", 30},
      {"dnsPolicy", "ClusterFirst"},
      {"serviceAccountName", "default"},
      {"priority", 0},
      {"preemptionPolicy", "PreemptLowerPriority"},
      {"volumes",
       kube::Json::array(
           {{{"name", "kube-api-access-xt7gh"},
             {"projected",
              {{"sources", kube::Json::array(
                               {{{"serviceAccountToken", {{"expirationSeconds", 3607}, {"path", "token"}}}},
                                {{"configMap", {{"name", "kube-root-ca.crt"}}}}})}}}}})},
      {"containers", kube::Json::array({{{"name", "worker"},
                                         {"image", "train"},
                                         {"env", variables},
                                         {"resources", {{"limits", resources}, {"requests", resources}}},
                                         {"terminationMessagePath", "/dev/termination-log"},
                                         {"imagePullPolicy", "Always"}}})},
      {"tolerations", kube::Json::array({{{"key", "node.kubernetes.io/not-ready"},
                                          {"operator", "Exists"},
                                          {"effect", "NoExecute"},
                                          {"tolerationSeconds", 300}}})}};
  pod["status"] = {
      {"phase", "Running"},
      {"hostIP", "10.0.0.1"},
      {"podIP", "10.244.0.1"},
      {"startTime", kTime},
      {"conditions", kube::Json::array({Condition("Initialized", "True"), Condition("Ready", "True"),
                                        Condition("ContainersReady", "True")})}};
  Finish(pod, 100'000 + node * kPodsOfNode + index, {"spec", "status"});
  return pod;
}

kube::Json Node(int index) {
  const std::string name = NodeName(index);
  kube::Json node = kube::NewObject(kube::kNodes, {"", name});
  node["metadata"]["labels"] = {{"kubernetes.io/hostname", name},
                                {"kubernetes.io/arch", "amd64"},
                                {"kubernetes.io/os", "linux"},
                                {"nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"}};
  const kube::Json room = {{"cpu", "192"},          {"memory", "2Ti"},
                           {"pods", "110"},         {"ephemeral-storage", "1Ti"},
                           {"nvidia.com/gpu", "8"}, {"heddle.dev/fabric", "110"}};
  node["spec"] = kube::Json::object();
  node["status"] = {{"capacity", room}, {"allocatable", room}};
  for (const char* type : {"MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"})
    node["status"]["conditions"].push_back(Condition(type, "False"));
  node["status"]["conditions"].push_back(Condition("Ready", "True"));
  Finish(node, 1 + index, {"status"});
  return node;
}

// The objects of one resource as text, in a file of its own that is mapped: its pages are not the extender's memory.
class Collection {
 public:
  void Add(const kube::Json& object) {
    whole_.push_back(Append(object.dump()));
    metadata_.push_back(Append(kube::Json{{"metadata", object["metadata"]}}.dump()));
  }
  void Close() {
    char name[] = "/tmp/heddle-start-XXXXXX";
    const int file = mkstemp(name);
    unlink(name);
    if (file < 0 || ftruncate(file, off_t(text_.size())) != 0 ||
        pwrite(file, text_.data(), text_.size(), 0) != ssize_t(text_.size())) {
      std::perror("start_bench: a file of the objects in /tmp");
      std::exit(1);
    }
    bytes_ = static_cast<const char*>(mmap(nullptr, text_.size(), PROT_READ, MAP_SHARED, file, 0));
    close(file);
    std::string().swap(text_);
  }
  // As the API server answers a list of so many from there on.
  std::string Page(std::size_t from, std::size_t limit, bool metadata_only) const {
    const std::vector<Span>& spans = metadata_only ? metadata_ : whole_;
    const std::size_t end = std::min(spans.size(), from + limit);
    std::string page = R"({"kind":"List","metadata":{"resourceVersion":"999999")";
    if (end < spans.size()) page += fmt::format(R"(,"continue":"{}")", end);
    page += R"(},"items":[)";
    for (std::size_t i = from; i < end; ++i) {
      if (i > from) page += ',';
      page.append(bytes_ + spans[i].at, spans[i].size);
    }
    return page + "]}";
  }
  double megabytes() const {
    std::size_t bytes = 0;
    for (const Span& span : whole_) bytes += span.size;
    return double(bytes) / 1e6;
  }

 private:
  struct Span {
    std::size_t at = 0, size = 0;
  };
  Span Append(const std::string& object) {
    const Span span{text_.size(), object.size()};
    text_ += object;
    return span;
  }
  std::string text_;
  const char* bytes_ = nullptr;
  std::vector<Span> whole_, metadata_;
};

// The number behind "name=" in a query; 0 where there is none.
std::size_t NumberIn(std::string_view target, std::string_view name) {
  std::size_t number = 0;
  if (const auto at = target.find(name); at != std::string_view::npos) {
    const std::string_view text = target.substr(at + name.size());
    std::from_chars(text.data(), text.data() + text.size(), number);
  }
  return number;
}

// Lists, watches in which nothing happens, and one Lease.
class PreparedServer final : public kube::HttpTransport {
 public:
  explicit PreparedServer(int nodes) {
    const std::vector<topology::Node> machines = bench::Machines(nodes);
    for (int i = 0; i < nodes; ++i) {
      kube::Json topology = crds::ToJson(bench::PublishedTopology(NodeName(i), machines[std::size_t(i)]));
      Finish(topology, 50'000 + i, {"status"});
      collections_["/nodetopologies"].Add(topology);
      collections_["/nodes"].Add(Node(i));
      for (int pod = 0; pod < kPodsOfNode; ++pod) collections_["/pods"].Add(Pod(i, pod));
    }
    for (auto& [_, collection] : collections_) collection.Close();
  }

  base::Result<kube::HttpResponse> Do(const kube::HttpRequest& request, std::stop_token) override {
    kube::HttpResponse answer;
    answer.status = 200;
    if (const Collection* collection = Of(request)) {
      const bool metadata_only =
          std::any_of(request.headers.begin(), request.headers.end(), [](const kube::HttpHeader& header) {
            return header.value.find("PartialObjectMetadata") != std::string::npos;
          });
      const std::size_t limit = NumberIn(request.target, "limit=");
      answer.body = collection->Page(NumberIn(request.target, "continue="),
                                     limit == 0 ? std::size_t(-1) / 2 : limit, metadata_only);
    } else if (request.method != "GET") {
      answer.status = request.method == "POST" ? 201 : 200;
      answer.body = request.body;
    } else if (request.target.find("/leases/") != std::string::npos) {
      answer.status = 404;
      answer.body = R"({"kind":"Status","code":404,"reason":"NotFound"})";
    } else {
      answer.body = R"({"metadata":{"resourceVersion":"7"},"items":[]})";
    }
    return answer;
  }

  base::Result<kube::HttpResponse> Stream(const kube::HttpRequest& request, const kube::ChunkReader& on_chunk,
                                          std::stop_token stop) override {
    on_chunk({});
    if (request.target.find("sendInitialEvents") != std::string::npos && Of(request) == nullptr) {
      on_chunk(R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"999999","annotations":)"
               R"({"k8s.io/initial-events-end":"true"}}}})"
               "\n");
    }
    base::SystemClock().SleepFor(std::chrono::hours(1), stop);
    return base::Fail(base::Code::kCancelled, "stopped");
  }

  double megabytes(const std::string& path) const { return collections_.at(path).megabytes(); }

 private:
  const Collection* Of(const kube::HttpRequest& request) const {
    for (const auto& [path, collection] : collections_) {
      if (request.target.find(path + "?") != std::string::npos) return &collection;
    }
    return nullptr;
  }
  std::map<std::string, Collection> collections_;
};

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) { return double(time.tv_sec) + double(time.tv_usec) / 1e6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double AnonymousMegabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stod(line.substr(8)) / 1024;
  }
  return 0;
}

int Measure(int nodes) {
  PreparedServer server(nodes);
  std::printf("%d nodes: %.0f MB of nodes, %.0f MB of NodeTopologies, %.0f MB of pods\n", nodes,
              server.megabytes("/nodes"), server.megabytes("/nodetopologies"), server.megabytes("/pods"));
  base::ReturnFreeMemory();
  const double before = CpuSeconds(), held = AnonymousMegabytes();
  base::SystemClock clock;
  const auto start = clock.Now();
  const auto say = [&](const char* what) {
    std::printf("%-12s %6.2f s  %6.2f s of CPU  %5.0f MB\n", what,
                std::chrono::duration<double>(clock.Now() - start).count(), CpuSeconds() - before,
                AnonymousMegabytes() - held);
    std::fflush(stdout);
  };
  std::atomic<bool> leads{false};
  DaemonOptions options;
  options.identity = options.leadership.identity = "start_bench";
  options.leadership.own_lease = true;
  options.leadership.ns = "heddle-system";
  options.log = [&leads](std::string_view line) {
    if (line.starts_with("Started to lead")) leads = true;
  };
  Daemon daemon(server, clock, base::Random(1), options);
  std::jthread running([&daemon](const std::stop_token& stop) { daemon.Run(stop); });
  const auto wait = [](const auto& done) {
    while (!done()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  wait([&] { return daemon.AnswerStatus({.method = "GET", .path = "/readyz"}).status == 200; });
  say("ready");
  wait([&] { return leads.load(); });
  say("leads");
  for (double last = -1; CpuSeconds() - last > 0.02;) {
    last = CpuSeconds();
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  base::ReturnFreeMemory();  // as the daemon does every half minute
  say("at rest");
  std::_Exit(0);  // its threads wait for what will not come
}

}  // namespace
}  // namespace heddle::extender

int main(int argc, char** argv) {
  heddle::base::ShareMemoryArenas();
  int nodes = 10'000;
  if (argc > 1) {
    const std::string_view text = argv[1];
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), nodes);
    if (error != std::errc{} || end != text.data() + text.size() || nodes < 1 || nodes > 99'999) {
      std::fprintf(stderr, "usage: start_bench [NODES], 1 to 99999 (10000)\n");
      return 2;
    }
  }
  return heddle::extender::Measure(nodes);
}
