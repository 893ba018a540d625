#include "nodeagent/grants/pod_resources.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

#include "nodeagent/grants/pod_resources.grpc.pb.h"
#include "tests/support/memory_file_tree.h"

namespace heddle::nodeagent {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// What a kubelet answers, as a test wants it.
class Kubelet final : public v1::PodResourcesLister::Service {
 public:
  grpc::Status List(grpc::ServerContext* context, const v1::ListPodResourcesRequest*,
                    v1::ListPodResourcesResponse* answer) override {
    std::unique_lock lock(mutex_);
    ++lists_;
    asked_.notify_all();
    while (hangs_ && !context->IsCancelled()) asked_.wait_for(lock, milliseconds(20));
    *answer = answer_;
    return status_;
  }
  grpc::Status GetAllocatableResources(grpc::ServerContext*, const v1::AllocatableResourcesRequest*,
                                       v1::AllocatableResourcesResponse* answer) override {
    if (old_) return {grpc::StatusCode::UNIMPLEMENTED, "unknown method GetAllocatableResources"};
    v1::ContainerDevices* devices = answer->add_devices();
    devices->set_resource_name("nvidia.com/gpu");
    devices->add_device_ids("GPU-b");
    devices->add_device_ids("GPU-a");
    return grpc::Status::OK;
  }

  void Fail(grpc::StatusCode code, const std::string& message) { status_ = {code, message}; }
  void Hang() { hangs_ = true; }
  void BeOld() { old_ = true; }
  void WaitUntilAsked() {
    std::unique_lock lock(mutex_);
    asked_.wait(lock, [this] { return lists_ > 0; });
  }
  v1::ContainerResources* AddContainer(const std::string& pod, const std::string& container) {
    v1::PodResources* to = answer_.add_pod_resources();
    to->set_namespace_("train");
    to->set_name(pod);
    v1::ContainerResources* resources = to->add_containers();
    resources->set_name(container);
    return resources;
  }
  void Give(const std::string& pod, const std::string& resource, const std::vector<std::string>& ids) {
    v1::ContainerDevices* devices = AddContainer(pod, "worker")->add_devices();
    devices->set_resource_name(resource);
    for (const std::string& id : ids) devices->add_device_ids(id);
  }

 private:
  std::mutex mutex_;
  std::condition_variable asked_;
  v1::ListPodResourcesResponse answer_;
  grpc::Status status_;
  bool hangs_ = false, old_ = false;
  int lists_ = 0;
};

class PodResourcesTest : public testing::Test {
 protected:
  PodResourcesTest() {
    std::string name = (std::filesystem::temp_directory_path() / "heddle-kubelet-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    options_.socket = (folder_ / "kubelet.sock").string();
    options_.deadline = milliseconds(60'000);  // of a busy machine; tests that wait for it set their own
  }
  ~PodResourcesTest() override {
    Stop();
    std::filesystem::remove_all(folder_);
  }

  void Serve(grpc::Service* service) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + options_.socket, grpc::InsecureServerCredentials());
    builder.SetMaxSendMessageSize(-1);
    builder.RegisterService(service);
    server_ = builder.BuildAndStart();
    ASSERT_TRUE(server_);
  }
  void Stop() {
    if (server_) server_->Shutdown();
    server_.reset();
  }
  GrantReadings Read(const std::stop_token& stop = {}) { return PodResources(files_, options_).Read(stop); }

  // A socket that is no kubelet's: `serve` gets the one connection.
  std::jthread Listen(const std::function<void(int)>& serve) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, options_.socket.data(), options_.socket.size());
    const int listening = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::bind(listening, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listening, 1), 0);
    return std::jthread([listening, serve] {
      const int connection = ::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
      serve(connection);
      ::close(connection);
      ::close(listening);
    });
  }

  std::filesystem::path folder_;
  PodResourcesOptions options_;
  test::MemoryFileTree files_;
  Kubelet kubelet_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(PodResourcesTest, ListsWhatContainersHold) {
  kubelet_.Give("b", "nvidia.com/gpu", {"GPU-2", "GPU-1"});
  kubelet_.Give("a", "rdma/hca", {"7"});
  v1::ClaimResource* claim =
      kubelet_.AddContainer("c", "main")->add_dynamic_resources()->add_claim_resources();
  claim->set_driver_name("gpu.nvidia.com");
  claim->set_pool_name("node-1");
  claim->set_device_name("gpu-3");
  (void)kubelet_.AddContainer("without", "devices");
  Serve(&kubelet_);
  const GrantReadings readings = Read();
  EXPECT_EQ(readings.state, GrantsState::kRead) << readings.problem;
  EXPECT_THAT(
      readings.containers,
      ElementsAre(ContainerDevices{"train", "a", "worker", {{"rdma/hca", false, {"7"}}}},
                  ContainerDevices{"train", "b", "worker", {{"nvidia.com/gpu", false, {"GPU-1", "GPU-2"}}}},
                  ContainerDevices{"train", "c", "main", {{"gpu.nvidia.com", true, {"gpu-3"}}}}));
  ASSERT_TRUE(readings.allocatable);
  EXPECT_THAT(*readings.allocatable, ElementsAre(DeviceSet{"nvidia.com/gpu", false, {"GPU-a", "GPU-b"}}));
}

TEST_F(PodResourcesTest, LooksUpVirtualFunctions) {
  files_.Link("sys/bus/pci/devices/0000:21:02.1/physfn", "../0000:21:00.0");
  kubelet_.Give("a", "openshift.io/vfs", {"0000:21:02.1"});
  Serve(&kubelet_);
  EXPECT_THAT(Read().functions,
              ElementsAre(std::pair(std::pair<std::string, std::string>("openshift.io/vfs", "0000:21:02.1"),
                                    "0000:21:00.0")));
}

TEST_F(PodResourcesTest, ReadsAnOlderKubeletThatDoesNotSayWhatItCanGive) {
  kubelet_.BeOld();
  kubelet_.Give("a", "nvidia.com/gpu", {"GPU-1"});
  Serve(&kubelet_);
  const GrantReadings readings = Read();
  EXPECT_EQ(readings.state, GrantsState::kRead) << readings.problem;
  EXPECT_THAT(readings.containers, SizeIs(1));
  EXPECT_FALSE(readings.allocatable);
}

TEST_F(PodResourcesTest, SaysThatAKubeletIsTooOld) {
  v1::PodResourcesLister::Service nothing;  // every method is unknown
  Serve(&nothing);
  const GrantReadings readings = Read();
  EXPECT_EQ(readings.state, GrantsState::kTooOld);
  EXPECT_THAT(readings.problem, HasSubstr("Kubernetes 1.20"));
}

TEST_F(PodResourcesTest, SaysWhyThereIsNoSocket) {
  EXPECT_EQ(Read().state, GrantsState::kNoSocket);
  EXPECT_THAT(Read().problem, HasSubstr(options_.socket + ": no such socket"));
  Serve(&kubelet_);
  EXPECT_EQ(Read().state, GrantsState::kRead);
  Stop();
  options_.socket = std::string(200, 'x');
  EXPECT_EQ(Read().state, GrantsState::kNoSocket);
  EXPECT_THAT(Read().problem, HasSubstr("107 bytes"));
}

TEST_F(PodResourcesTest, SaysThatNobodyListens) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, options_.socket.data(), options_.socket.size());
  const int bound = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::bind(bound, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ::close(bound);
  const GrantReadings readings = Read();
  EXPECT_EQ(readings.state, GrantsState::kNoSocket);
  EXPECT_THAT(readings.problem, HasSubstr("no kubelet listens"));
}

TEST_F(PodResourcesTest, GivesUpOnAKubeletThatHangs) {
  kubelet_.Hang();
  Serve(&kubelet_);
  options_.deadline = milliseconds(200);
  const GrantReadings readings = Read();
  EXPECT_EQ(readings.state, GrantsState::kNoAnswer);
  EXPECT_THAT(readings.problem, HasSubstr("within 0.2 s"));
}

TEST_F(PodResourcesTest, GivesUpOnASocketThatIsSilent) {
  options_.deadline = milliseconds(200);
  std::promise<void> asked;
  const std::jthread silent = Listen([&](int) { asked.get_future().wait(); });
  EXPECT_EQ(Read().state, GrantsState::kNoAnswer);
  asked.set_value();
}

TEST_F(PodResourcesTest, StopsAtOnceWhenAsked) {
  kubelet_.Hang();
  Serve(&kubelet_);
  std::stop_source stop;
  const std::jthread stopper([&] {
    kubelet_.WaitUntilAsked();
    stop.request_stop();
  });
  EXPECT_EQ(Read(stop.get_token()).state, GrantsState::kNoAnswer);
}

TEST_F(PodResourcesTest, PassesOnWhatAKubeletRefusesWith) {
  Serve(&kubelet_);
  kubelet_.Fail(grpc::StatusCode::PERMISSION_DENIED, "not for you");
  EXPECT_EQ(Read().state, GrantsState::kForbidden);
  kubelet_.Fail(grpc::StatusCode::RESOURCE_EXHAUSTED, "rejected by\x01 rate limit");
  EXPECT_EQ(Read().state, GrantsState::kNoAnswer);
  EXPECT_THAT(Read().problem, HasSubstr("rejected by? rate limit"));
}

TEST_F(PodResourcesTest, RefusesAnAnswerThatIsTooLong) {
  for (int i = 0; i < 100; ++i) kubelet_.Give("p", "nvidia.com/gpu", {std::string(1000, 'x')});
  Serve(&kubelet_);
  EXPECT_EQ(Read().state, GrantsState::kRead);
  options_.max_message = 50'000;
  EXPECT_EQ(Read().state, GrantsState::kNoAnswer);
  EXPECT_THAT(Read().problem, HasSubstr("50000"));
}

TEST_F(PodResourcesTest, RefusesMoreDevicesThanANodeCanHave) {
  std::vector<std::string> ids;
  for (int i = 0; i < 70'000; ++i) ids.push_back(std::to_string(i));
  kubelet_.Give("p", "rdma/x", ids);
  Serve(&kubelet_);
  const GrantReadings readings = Read();
  EXPECT_EQ(readings.state, GrantsState::kNoAnswer);
  EXPECT_THAT(readings.problem, HasSubstr("65536 devices"));
  EXPECT_THAT(readings.containers, IsEmpty());
}

TEST_F(PodResourcesTest, SurvivesNonsense) {
  for (const std::string& nonsense :
       {std::string("HTTP/1.1 400 Bad Request\r\n\r\n"), std::string(64, '\0'), std::string(100'000, '\xff'),
        std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), std::string()}) {
    std::filesystem::remove(options_.socket);
    const std::jthread liar = Listen(
        [&](int connection) { (void)!::send(connection, nonsense.data(), nonsense.size(), MSG_NOSIGNAL); });
    options_.deadline = milliseconds(2'000);
    const GrantReadings readings = Read();
    EXPECT_EQ(readings.state, GrantsState::kNoAnswer);
    EXPECT_THAT(readings.problem, Not(IsEmpty()));
  }
}

TEST_F(PodResourcesTest, TakesBytesThatAreNoTextForWhatTheyAre) {
  kubelet_.Give("p\n\"", "nvidia.com/gpu", {"GPU-\x01"});
  Serve(&kubelet_);
  const GrantReadings readings = Read();
  ASSERT_THAT(readings.containers, SizeIs(1));
  EXPECT_EQ(readings.containers[0].pod, "p?\"");
  EXPECT_THAT(readings.containers[0].devices[0].ids, ElementsAre("GPU-?"));
}

TEST_F(PodResourcesTest, FindsAKubeletThatWasRestartedAtOnce) {
  auto kubelet = PodResources(files_, options_);
  for (int restart = 0; restart < 3; ++restart) {
    Serve(&kubelet_);
    EXPECT_EQ(kubelet.Read({}).state, GrantsState::kRead);
    Stop();
    EXPECT_EQ(kubelet.Read({}).state, GrantsState::kNoSocket);
  }
}

TEST_F(PodResourcesTest, PrintsNothingOfAKubeletThatNobodyNamedAndThatIsNotThere) {
  EXPECT_EQ(OpenKubelet(files_, ""), nullptr);
  EXPECT_EQ(ReadOnce(nullptr, true, {}).state, GrantsState::kNotAsked);
  const auto kubelet = OpenKubelet(files_, options_.socket);
  EXPECT_EQ(ReadOnce(kubelet.get(), false, {}).state, GrantsState::kNotAsked);
  EXPECT_EQ(ReadOnce(kubelet.get(), true, {}).state, GrantsState::kNoSocket);
  Serve(&kubelet_);
  EXPECT_EQ(ReadOnce(kubelet.get(), false, {}).state, GrantsState::kRead);
}

}  // namespace
}  // namespace heddle::nodeagent
