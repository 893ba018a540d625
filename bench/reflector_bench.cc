// How fast a reflector takes 5,000 NodeTopologies in, from prepared bytes: the JSON of a WatchList, in chunks
// as a TLS connection brings them, and of a LIST. No sockets, so that the client alone is measured.
// build/release/bin/reflector_bench
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <string>

#include "base/clock.h"
#include "crds/keys.h"
#include "crds/node_topology.h"
#include "kube/client.h"
#include "kube/reflector.h"
#include "topology/synthetic.h"

namespace heddle::kube {
namespace {

constexpr std::size_t kChunk = 16 << 10;  // a TLS record

std::vector<std::string> Topologies(int count) {
  const std::string line =
      fmt::format("su:{} node:16 gpu:8 nic:8 rail:8 rate:400 transport:ib machine:h100", (count + 15) / 16);
  auto synthetic = topology::ParseSynthetic(line);
  std::vector<std::string> bodies;
  if (!synthetic) return bodies;
  for (int i = 0; i < count; ++i) {
    crds::NodeTopology object;
    object.name = fmt::format("node-{:05}", i);
    object.uid = fmt::format("uid-{}", i);
    object.resource_version = std::to_string(i + 1);
    object.status.node = synthetic->nodes[std::size_t(i)];
    object.status.node.name = object.name;
    object.status.hash = topology::ContentHash(object.status.node);
    bodies.push_back(crds::ToJson(object).dump());
  }
  return bodies;
}

// Answers the first watch with the prepared stream; the next one stops the reflector.
class PreparedTransport final : public HttpTransport {
 public:
  PreparedTransport(const std::string& stream, std::stop_source& stop) : stream_(stream), stop_(stop) {}
  base::Result<HttpResponse> Do(const HttpRequest&, std::stop_token) override {
    return base::Fail(base::Code::kUnavailable, "only watches here");
  }
  base::Result<HttpResponse> Stream(const HttpRequest&, const ChunkReader& on_chunk,
                                    std::stop_token) override {
    HttpResponse head;
    head.status = 200;
    for (std::size_t at = 0; at < stream_.size() && !done_; at += kChunk) {
      on_chunk(std::string_view(stream_).substr(at, kChunk));
    }
    done_ = true;
    stop_.request_stop();
    return head;
  }

 private:
  const std::string& stream_;
  std::stop_source& stop_;
  bool done_ = false;
};

void WatchList(benchmark::State& bench) {
  const int count = int(bench.range(0));
  std::string stream;
  for (const std::string& body : Topologies(count)) stream += R"({"type":"ADDED","object":)" + body + "}\n";
  stream +=
      R"({"type":"BOOKMARK","object":{"apiVersion":"heddle.dev/v1alpha1","kind":"NodeTopology","metadata":)"
      R"({"resourceVersion":"99999","annotations":{"k8s.io/initial-events-end":"true"}}}})"
      "\n";
  const Resource resource = CustomResource("heddle.dev", "v1alpha1", "nodetopologies", "NodeTopology", false);
  base::SystemClock clock;
  std::size_t seen = 0;
  for (auto round : bench) {
    (void)round;
    std::stop_source stop;
    PreparedTransport transport(stream, stop);
    Client client(transport, clock);
    Reflector reflector(client, clock, base::Random(1), resource, {});
    reflector.Run(stop.get_token());
    seen = reflector.store().size();
  }
  if (seen != std::size_t(count)) return bench.SkipWithError("not all objects arrived");
  bench.SetItemsProcessed(std::int64_t(bench.iterations()) * count);
  bench.SetBytesProcessed(std::int64_t(bench.iterations()) * std::int64_t(stream.size()));
}
BENCHMARK(WatchList)->Arg(500)->Arg(5000)->Unit(benchmark::kMillisecond);

void Decode(benchmark::State& bench) {
  const auto bodies = Topologies(500);
  std::vector<Json> parsed;
  parsed.reserve(bodies.size());
  for (const std::string& body : bodies) parsed.push_back(Json::parse(body));
  for (auto round : bench) {
    (void)round;
    for (const Json& json : parsed) benchmark::DoNotOptimize(crds::NodeTopologyFromJson(json));
  }
  bench.SetItemsProcessed(std::int64_t(bench.iterations()) * std::int64_t(parsed.size()));
}
BENCHMARK(Decode)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace heddle::kube
