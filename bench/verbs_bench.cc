// Round trips of the extender's verbs over loopback, at 1, 500, 5,000 and 16,384 node names, each beside an echo: the
// same server takes the same body and answers with as many bytes, ready-made. Verb and echo take turns, so that a noisy
// machine meets both. One connection that is kept, one request at a time, as kube-scheduler does.
// build/release/bin/verbs_bench [--rounds N]
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "extender/verbs.h"
#include "kube/http_server.h"
#include "topology/synthetic.h"

namespace heddle::extender {
namespace {

constexpr int kWarmUp = 50;

// A client that costs next to nothing, so that what is measured is the server.
class Connection {
 public:
  explicit Connection(const std::string& address) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    const std::size_t colon = address.rfind(':');
    to.sin_port = htons(std::uint16_t(std::atoi(address.c_str() + colon + 1)));
    inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr);
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }
  ~Connection() { close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The size of the answer's body; 0 = the server left.
  std::size_t Post(const std::string& path, const std::string& body) {
    if (!connected_) return 0;
    std::string request = fmt::format(
        "POST {} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", path,
        body.size());
    request += body;
    for (std::size_t sent = 0; sent < request.size();) {
      const ssize_t count = send(fd_, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return 0;
      sent += std::size_t(count);
    }
    return Receive();
  }

 private:
  std::size_t Receive() {
    std::string answer;
    std::size_t head = std::string::npos, length = 0;
    std::vector<char> buffer(256 << 10);
    for (;;) {
      const ssize_t count = recv(fd_, buffer.data(), buffer.size(), 0);
      if (count <= 0) return 0;
      answer.append(buffer.data(), std::size_t(count));
      if (head == std::string::npos && (head = answer.find("\r\n\r\n")) != std::string::npos) {
        const std::size_t at = answer.find("Content-Length: ");
        if (at == std::string::npos || at > head) return 0;
        length = std::strtoul(answer.c_str() + at + 16, nullptr, 10);
      }
      if (head != std::string::npos && answer.size() >= head + 4 + length) return length;
    }
  }

  int fd_;
  bool connected_ = false;
};

std::string NodeName(std::size_t index) {
  return fmt::format("gpu-{:05}.cluster.example", index);
}

// In no order, as the scheduler's are: it looks at its nodes on many threads, and from another one each time.
std::vector<int> InNoOrder(int names) {
  std::vector<int> order(static_cast<std::size_t>(names));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(20261127));
  return order;
}

std::string Args(int names) {
  std::string pod = R"({"metadata":{"name":"lone","namespace":"team","uid":"u","annotations":{"note":")";
  pod += std::string(3000, 'x');  // a real pod is 3 to 15 KB (kubernetes-facts 1.5)
  pod +=
      R"("}},"spec":{"schedulerName":"heddle","containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"4"},)"
      R"("requests":{"nvidia.com/gpu":"4"}}}]}})";
  std::string list;
  for (const int i : InNoOrder(names))
    list += fmt::format("{}\"{}\"", list.empty() ? "" : ",", NodeName(std::size_t(i)));
  return fmt::format(R"({{"Pod":{},"Nodes":null,"NodeNames":[{}]}})", pod, list);
}

// Candidates of a preemption with two victims each; the scheduler dry-runs at least 100 nodes, or 10 % of them.
std::string Victims(int nodes) {
  std::string list;
  for (int i = 0; i < nodes; ++i) {
    list += fmt::format(R"({}"{}":{{"Pods":[{{"UID":"{}-1"}},{{"UID":"{}-2"}}],"NumPDBViolations":0}})",
                        i == 0 ? "" : ",", NodeName(std::size_t(i)), i, i);
  }
  return fmt::format(R"({{"Pod":{{"metadata":{{"name":"lone"}}}},"NodeNameToMetaVictims":{{{}}}}})", list);
}

// 16,384 nodes with room for the pod, as the scheduler asks about: three in five are free, the others used in part.
std::shared_ptr<const Snapshot> SnapshotOfAll() {
  auto synthetic = topology::ParseSynthetic(
      "su:1024 node:16 gpu:8 nic:8 rail:8 spine:8 rate:400 transport:ib machine:h100");
  if (!synthetic) return nullptr;
  for (std::size_t i = 0; i < synthetic->nodes.size(); ++i) synthetic->nodes[i].name = NodeName(i);
  auto fabric = std::make_shared<const topology::Fabric>(
      topology::BuildFabric(std::move(synthetic->nodes), synthetic->declaration));
  std::vector<placement::NodeState> states(fabric->nodes.size());
  std::mt19937 chance(20261129);
  for (auto& state : states) {
    const bool used = chance() % 5 < 2;
    state = {.free_gpus = used ? (1u << (4 + chance() % 4)) - 1 : 0xff,
             .free_milli_cpu = 192'000,
             .free_memory_bytes = 1LL << 40,
             .free_pods = 110};
  }
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->fabrics.push_back(
      {fabric, placement::ClusterState(fabric, states), {}, std::make_shared<const NodeIndex>(*fabric)});
  return snapshot;
}

struct Row {
  double p50 = 0, p99 = 0, max = 0;
};

Row RowOf(std::vector<double> micros) {
  std::sort(micros.begin(), micros.end());
  return {micros[micros.size() / 2], micros[micros.size() * 99 / 100], micros.back()};
}

// `ready`: what /echo answers with.
void Measure(const std::string& address, const std::string& path, int names, int rounds, std::string& ready) {
  using Clock = std::chrono::steady_clock;
  Connection connection(address);
  const std::string body = path == "/preempt" ? Victims(names) : Args(names);
  const std::size_t size = connection.Post(path, body);
  if (size == 0) return fmt::print("{} failed\n", path);
  ready.assign(size, 'x');
  std::vector<double> verb, echo;
  for (int i = 0; i < rounds + kWarmUp; ++i) {
    for (const auto& [what, micros] : {std::pair{path, &verb}, std::pair{std::string("/echo"), &echo}}) {
      const auto start = Clock::now();
      if (connection.Post(what, body) != size) return fmt::print("{} failed\n", what);
      const double took = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
      if (i >= kWarmUp) micros->push_back(took);
    }
  }
  const Row one = RowOf(verb), other = RowOf(echo);
  fmt::print("{:<12} {:>6} {:>9} {:>9} {:>8.0f} {:>8.0f} {:>8.0f} {:>8.0f} {:>8.0f} {:>6.2f}\n",
             path.substr(1), names, body.size(), size, one.p50, one.p99, one.max, other.p50, other.p99,
             one.p50 / other.p50);
}

int Run(int rounds) {
  const auto snapshot = SnapshotOfAll();
  const auto kept = std::make_shared<const KeptNodes>();
  const Endpoints endpoints{.snapshot = [snapshot] { return snapshot; },
                            .kept_nodes = [kept] { return kept; },
                            .is_gang_pod = [](const std::string&) { return false; },
                            .status = {[] { return std::string(); }, [] { return std::string(); }}};
  std::string ready;  // changes only between requests
  auto server = kube::HttpServer::Start("127.0.0.1:0", kMaxBody, [&](const kube::ServedRequest& request) {
    if (request.path == "/echo") return kube::ServedAnswer{.body = ready};
    return Answer(request, endpoints);
  });
  if (!server) return fmt::print(stderr, "{}\n", server.error().message), 1;
  fmt::print("{:<12} {:>6} {:>9} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>6}\n", "verb", "names", "bytes in",
             "bytes out", "p50 us", "p99 us", "max us", "echo p50", "echo p99", "times");
  for (const int names : {1, 500, 5000, 16384}) {
    for (const char* path : {"/filter", "/prioritize", "/preempt"}) {
      if (names > 500 && path == std::string("/preempt")) continue;
      Measure((*server)->address(), path, names, names > 5000 ? rounds / 4 : rounds, ready);
    }
  }
  return 0;
}

}  // namespace
}  // namespace heddle::extender

int main(int argc, char** argv) {
  int rounds = 1000;
  if (argc == 3 && std::string(argv[1]) == "--rounds") rounds = std::max(1, std::atoi(argv[2]));
  return heddle::extender::Run(rounds);
}
