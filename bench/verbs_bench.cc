// Round trips of the extender's verbs over loopback, at 1, 500 and 5,000 node names, beside an echo of the
// same server. One connection that is kept, one request at a time, as kube-scheduler does.
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

std::string Args(int names) {
  std::string pod = R"({"metadata":{"name":"lone","namespace":"team","uid":"u","annotations":{"note":")";
  pod += std::string(3000, 'x');  // a real pod is 3 to 15 KB (kubernetes-facts 1.5)
  pod +=
      R"("}},"spec":{"schedulerName":"heddle","containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"4"},)"
      R"("requests":{"nvidia.com/gpu":"4"}}}]}})";
  std::string list;
  for (int i = 0; i < names; ++i) list += fmt::format("{}\"node-{:04}\"", i == 0 ? "" : ",", i);
  return fmt::format(R"({{"Pod":{},"Nodes":null,"NodeNames":[{}]}})", pod, list);
}

std::shared_ptr<const Snapshot> SnapshotOf5000() {
  auto synthetic = topology::ParseSynthetic(
      "su:313 node:16 gpu:8 nic:8 rail:8 spine:8 rate:400 transport:ib machine:h100");
  if (!synthetic) return nullptr;
  for (std::size_t i = 0; i < synthetic->nodes.size(); ++i)
    synthetic->nodes[i].name = fmt::format("node-{:04}", i);
  auto fabric = std::make_shared<const topology::Fabric>(
      topology::BuildFabric(std::move(synthetic->nodes), synthetic->declaration));
  std::vector<placement::NodeState> states(fabric->nodes.size());
  for (auto& state : states)
    state = {.free_gpus = 0xff, .free_milli_cpu = 192'000, .free_memory_bytes = 1LL << 40, .free_pods = 110};
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->fabrics.push_back({fabric, states, placement::ClusterState(fabric, states)});
  return snapshot;
}

void Measure(const std::string& address, const std::string& path, int names, int rounds) {
  using Clock = std::chrono::steady_clock;
  Connection connection(address);
  const std::string body = Args(names);
  std::vector<double> micros;
  std::size_t answer = 0;
  for (int i = 0; i < rounds + kWarmUp; ++i) {
    const auto start = Clock::now();
    answer = connection.Post(path, body);
    if (answer == 0) return fmt::print("{} failed\n", path);
    if (i >= kWarmUp)
      micros.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  std::sort(micros.begin(), micros.end());
  fmt::print("{:<12} {:>6} {:>10} {:>10} {:>9.0f} {:>9.0f} {:>9.0f}\n", path.substr(1), names, body.size(),
             answer, micros[micros.size() / 2], micros[micros.size() * 99 / 100], micros.back());
}

int Run(int rounds) {
  const auto snapshot = SnapshotOf5000();
  const Endpoints endpoints{[snapshot] { return snapshot; },
                            {[] { return std::string(); }, [] { return std::string(); }}};
  auto server = kube::HttpServer::Start("127.0.0.1:0", kMaxBody, [&](const kube::ServedRequest& request) {
    if (request.path == "/echo") return kube::ServedAnswer{.body = request.body};
    return Answer(request, endpoints);
  });
  if (!server) return fmt::print(stderr, "{}\n", server.error().message), 1;
  fmt::print("{:<12} {:>6} {:>10} {:>10} {:>9} {:>9} {:>9}\n", "verb", "names", "bytes in", "bytes out",
             "p50 us", "p99 us", "max us");
  for (const int names : {1, 500, 5000}) {
    for (const char* path : {"/echo", "/filter", "/prioritize", "/preempt"})
      Measure((*server)->address(), path, names, rounds);
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
