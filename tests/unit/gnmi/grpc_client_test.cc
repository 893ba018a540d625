#include "gnmi/grpc_client.h"

#include <atomic>
#include <filesystem>
#include <thread>

#include "tests/unit/gnmi/gnmi_bed.h"

namespace heddle::gnmi {
namespace {

using base::Code;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class GrpcClientTest : public GnmiBed {};

test::GnmiServer::Scripts Capable() {
  test::GnmiServer::Scripts scripts;
  scripts.capabilities = [](const test::SentMetadata&, const auto&, ::gnmi::CapabilityResponse& answer) {
    answer.set_gnmi_version("0.7.0");
    answer.add_supported_encodings(::gnmi::JSON_IETF);
    answer.add_supported_models()->set_name("sonic-db");
    return grpc::Status::OK;
  };
  return scripts;
}

// Each call gets this status.
test::GnmiServer::Scripts Refusing(grpc::Status status) {
  test::GnmiServer::Scripts scripts;
  scripts.capabilities = [status](const auto&, const auto&, auto&) { return status; };
  return scripts;
}

test::GnmiServer::Scripts Silent() {
  test::GnmiServer::Scripts scripts;
  scripts.capabilities = [](const auto&, const auto&, auto&) { return std::optional<grpc::Status>(); };
  return scripts;
}

test::GnmiServer::Scripts Telling(const std::string& json) {
  test::GnmiServer::Scripts scripts;
  scripts.get = [json](const auto&, const ::gnmi::GetRequest& request, ::gnmi::GetResponse& answer) {
    for (const ::gnmi::Path& path : request.path()) {  // as sonic-gnmi does: a notification for each path
      ::gnmi::Notification& notification = *answer.add_notification();
      notification.set_timestamp(1'700'000'000'000'000'000);
      *notification.mutable_prefix() = request.prefix();
      *notification.add_update()->mutable_path() = path;
      notification.mutable_update(0)->mutable_val()->set_json_ietf_val(json);
    }
    return grpc::Status::OK;
  };
  return scripts;
}

TEST_F(GrpcClientTest, AsksWhatASwitchOffers) {
  Server server(ServerOptions(), Capable());
  const auto client = DialTo(server.address());
  Answered<ServerCapabilities> answered;
  client->Capabilities(kLong, answered.callback());
  const auto answer = answered.Wait();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->gnmi_version, "0.7.0");
  EXPECT_THAT(answer->models, ElementsAre(Model{"sonic-db", "", ""}));
  EXPECT_THAT(answer->encodings, ElementsAre(Encoding::kJsonIetf));
}

TEST_F(GrpcClientTest, GetsTablesAsSonicAnswersThem) {
  Server server(ServerOptions(), Telling(R"({"Ethernet0":{"mtu":"9100"}})"));
  const auto client = DialTo(server.address());
  GetRequest request = Asking("CONFIG_DB:/PORT");
  request.paths.push_back(*ParsePath("CONFIG_DB:/QUEUE"));
  Answered<std::vector<Notice>> answered;
  client->Get(request, kLong, answered.callback());
  const auto answer = answered.Wait();
  ASSERT_TRUE(answer) << answer.error().message;
  ASSERT_EQ(answer->size(), 2u);
  EXPECT_EQ(answer->at(0).timestamp_ns, 1'700'000'000'000'000'000);
  ASSERT_EQ(answer->at(1).updates.size(), 1u);
  EXPECT_EQ(FormatPath(answer->at(0).updates[0].path), "CONFIG_DB:/PORT");
  EXPECT_EQ(FormatPath(answer->at(1).updates[0].path), "CONFIG_DB:/QUEUE");
  EXPECT_EQ(TreeOf(*answer->at(0).updates[0].json)->at("Ethernet0").at("mtu"), "9100");
  EXPECT_EQ(answered.count(), 1u);
}

TEST_F(GrpcClientTest, SignsInWithEveryCall) {
  Server server(ServerOptions(), Capable());
  Endpoint endpoint = EndpointAt(server.address());
  endpoint.username = "heddle";
  endpoint.password = "p ss:word";
  auto client = DialTo(endpoint);
  EXPECT_EQ(ErrorOfCapabilities(*client).message, "it has answered");
  EXPECT_EQ(server.metadata().find("username")->second, "heddle");
  EXPECT_EQ(server.metadata().find("password")->second, "p ss:word");
  StreamLog log;
  const auto stream = client->Subscribe(Following("/a"), log.events());
  ASSERT_NE(server.NextSession(), nullptr);
  EXPECT_EQ(server.metadata().find("password")->second, "p ss:word");
  client = DialTo(server.address());
  EXPECT_EQ(ErrorOfCapabilities(*client).message, "it has answered");
  EXPECT_EQ(server.metadata().count("username") + server.metadata().count("password"), 0u);
}

TEST_F(GrpcClientTest, TellsWhatTheSwitchRefuses) {
  struct Case {
    grpc::StatusCode from;
    Code to;
    std::string words;
  };
  const std::vector<Case> cases = {
      {grpc::StatusCode::UNAUTHENTICATED, Code::kUnauthorized, "does not accept this login: because"},
      {grpc::StatusCode::PERMISSION_DENIED, Code::kForbidden, "does not allow this to this user: because"},
      {grpc::StatusCode::UNIMPLEMENTED, Code::kUnimplemented, "does not offer this by gNMI: because"},
      {grpc::StatusCode::NOT_FOUND, Code::kNotFound, "has nothing there: because"},
      {grpc::StatusCode::INVALID_ARGUMENT, Code::kInvalid, "does not understand the request: because"},
      {grpc::StatusCode::RESOURCE_EXHAUSTED, Code::kThrottled, "has no room for this now: because"},
      {grpc::StatusCode::INTERNAL, Code::kInternal, "failed: because"},
      {grpc::StatusCode::UNKNOWN, Code::kInternal, "failed: because"},
      {grpc::StatusCode::UNAVAILABLE, Code::kUnavailable, "because"},
      {grpc::StatusCode::CANCELLED, Code::kUnavailable, "because"},
  };
  for (const Case& one : cases) {
    Server server(ServerOptions(), Refusing({one.from, "because\n\x01"}));
    const base::Error error = ErrorOfCapabilities(*DialTo(server.address()));
    EXPECT_EQ(error.code, one.to) << error.message;
    EXPECT_THAT(error.message, HasSubstr(one.words));
    EXPECT_THAT(error.message, StartsWith(server.address() + " "));
  }
}

TEST_F(GrpcClientTest, NeverQuotesThePassword) {
  Server server(ServerOptions(), Refusing({grpc::StatusCode::UNAUTHENTICATED, "s3cret is wrong, s3cret!"}));
  Endpoint endpoint = EndpointAt(server.address());
  endpoint.username = "heddle";
  endpoint.password = "s3cret";
  const base::Error error = ErrorOfCapabilities(*DialTo(endpoint));
  EXPECT_THAT(error.message, HasSubstr("*** is wrong, ***!"));
}

TEST_F(GrpcClientTest, SaysThatNobodyListens) {
  std::string address;
  {
    Server server(ServerOptions(), Capable());
    address = server.address();
  }
  const base::Error error = ErrorOfCapabilities(*DialTo(address));
  EXPECT_EQ(error.code, Code::kUnavailable);
  EXPECT_THAT(error.message, StartsWith(address + " refuses the connection: nobody listens there"));
}

TEST_F(GrpcClientTest, SaysThatANameHasNoAddress) {
  const base::Error error = ErrorOfCapabilities(*DialTo("leaf-3.invalid:8080"));
  EXPECT_EQ(error.code, Code::kUnavailable) << error.message;
  EXPECT_THAT(error.message, StartsWith("leaf-3.invalid:8080 has a name that has no address"));
}

TEST_F(GrpcClientTest, ConnectsToAnIpv6AddressAsItIsWritten) {
  const base::Error error = ErrorOfCapabilities(*DialTo("[::1]:1"));
  EXPECT_EQ(error.code, Code::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("[::1]:1 "));
  EXPECT_THAT(error.message, Not(HasSubstr("no address"))) << "the address was understood";
}

TEST_F(GrpcClientTest, SaysThatTheSwitchHasNoGnmi) {
  Server::Options options = ServerOptions();
  options.no_gnmi = true;
  Server server(options);
  const base::Error error = ErrorOfCapabilities(*DialTo(server.address()));
  EXPECT_EQ(error.code, Code::kUnimplemented) << error.message;
  EXPECT_THAT(error.message, HasSubstr("does not offer this by gNMI"));
}

TEST_F(GrpcClientTest, ReadsNoAnswerThatIsTooLarge) {
  DialerOptions options;
  options.max_message_bytes = 1 << 20;
  Redial(options);
  Server server(ServerOptions(), Telling("\"" + std::string(2u << 20, 'x') + "\""));
  Answered<std::vector<Notice>> answered;
  const auto client = DialTo(server.address());
  client->Get(Asking("CONFIG_DB:/PORT"), kLong, answered.callback());
  const auto answer = answered.Wait();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kTooLarge) << answer.error().message;
}

TEST_F(GrpcClientTest, InflatesNothing) {
  Server::Options options = ServerOptions();
  options.compress = true;  // although the client says that it takes none
  // 64 MiB in some 64 KiB.
  Server server(options, Telling("\"" + std::string(64u << 20, 'x') + "\""));
  Answered<std::vector<Notice>> answered;
  const auto client = DialTo(server.address());
  client->Get(Asking("CONFIG_DB:/PORT"), kLong, answered.callback());
  const auto answer = answered.Wait();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kUnimplemented);
  EXPECT_THAT(answer.error().message, HasSubstr("'gzip' is disabled"));
}

TEST_F(GrpcClientTest, TellsOfAnswersThatAreNone) {
  for (const std::string& raw :
       {std::string("\xff\xff\xff\xff"), std::string("\x0a\x7f garbage"), std::string(3000, '\x0a')}) {
    Server::Options options = ServerOptions();
    options.raw = raw;
    Server server(options);
    const auto client = DialTo(server.address());
    const base::Error error = ErrorOfCapabilities(*client);
    EXPECT_EQ(error.code, Code::kInvalid);
    EXPECT_EQ(error.message, server.address() + " answers what is no message of gNMI");
    StreamLog log;
    const auto stream = client->Subscribe(Following("/a"), log.events());
    const base::Status end = log.WaitForEnd();
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().message, server.address() + " sends what is no message of gNMI");
  }
}

TEST_F(GrpcClientTest, TellsOfAnswersOverItsLimits) {
  DialerOptions options;
  options.answers.values = 10;
  Redial(options);
  Server server(ServerOptions(), Telling("[1,2,3,4,5,6,7,8,9,10,11]"));
  const auto client = DialTo(server.address());
  Answered<std::vector<Notice>> answered;
  client->Get(Asking("CONFIG_DB:/PORT"), kLong, answered.callback());
  const auto answer = answered.Wait();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kTooLarge);
  EXPECT_THAT(answer.error().message, HasSubstr("answers what cannot be read: "));
}

TEST_F(GrpcClientTest, AsksNothingThatCannotBe) {
  Server server(ServerOptions(), Telling("1"));
  const auto client = DialTo(server.address());
  Answered<std::vector<Notice>> answered;
  client->Get({}, kLong, answered.callback());
  const auto answer = answered.Wait();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kInvalid);
  EXPECT_THAT(answer.error().message, HasSubstr("is not asked: a request without a path"));
  EXPECT_TRUE(server.metadata().empty());
}

TEST_F(GrpcClientTest, GivesUpOnASwitchThatDoesNotAnswer) {
  test::GnmiServer::Scripts scripts = Silent();
  scripts.get = Telling("1").get;
  Server server(ServerOptions(), scripts);
  const auto client = DialTo(server.address());
  Answered<std::vector<Notice>> connected;
  client->Get(Asking("/a"), kLong, connected.callback());
  ASSERT_TRUE(connected.Wait());
  const base::Error error = ErrorOfCapabilities(*client, milliseconds(500));
  EXPECT_EQ(error.code, Code::kTimeout);
  EXPECT_EQ(error.message, server.address() + " gives no answer within 0.5 s");
  EXPECT_TRUE(server.WaitForHanging(0)) << "the switch is told";
}

TEST_F(GrpcClientTest, SaysThatAHandshakeDoesNotEnd) {
  Server server(ServerOptions(), Capable());
  test::Relay relay(server.port());
  relay.Freeze();
  const auto client = DialTo(relay.address());
  const base::Error error = ErrorOfCapabilities(*client, milliseconds(300));
  EXPECT_EQ(error.code, Code::kTimeout);
  EXPECT_EQ(error.message, relay.address() + " cannot be connected to within 0.3 s");
  DialerOptions options;
  options.connect_timeout = milliseconds(300);
  GrpcDialer quick(options);
  const auto other = *quick.Dial(EndpointAt(relay.address()));
  const base::Error sooner = ErrorOfCapabilities(*other);
  EXPECT_EQ(sooner.code, Code::kUnavailable) << sooner.message;
}

TEST_F(GrpcClientTest, SaysThatAConnectionWasCut) {
  Server server(ServerOptions(), Silent());
  test::Relay relay(server.port());
  const auto client = DialTo(relay.address());
  Answered<ServerCapabilities> answered;
  client->Capabilities(kLong, answered.callback());
  ASSERT_TRUE(server.WaitForHanging(1));
  relay.Cut();
  const auto answer = answered.Wait();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kUnavailable);
}

TEST_F(GrpcClientTest, ConnectsAgainToASwitchThatHasRestarted) {
  DialerOptions options;
  options.reconnect_max = milliseconds(100);
  Redial(options);
  auto server = std::make_unique<Server>(ServerOptions(), Capable());
  Server::Options again = ServerOptions();
  again.port = server->port();
  const auto client = DialTo(server->address());
  ASSERT_EQ(ErrorOfCapabilities(*client).message, "it has answered");
  server.reset();
  EXPECT_EQ(ErrorOfCapabilities(*client).code, Code::kUnavailable);
  server = std::make_unique<Server>(again, Capable());
  // Until the back-off is over, calls fail at once.
  const auto until = std::chrono::steady_clock::now() + kLong;
  base::Error error;
  do {
    error = ErrorOfCapabilities(*client);
  } while (error.message != "it has answered" && std::chrono::steady_clock::now() < until);
  EXPECT_EQ(error.message, "it has answered");
}

TEST_F(GrpcClientTest, IsSilentOnceItIsDestroyed) {
  Server server(ServerOptions(), Silent());
  auto client = DialTo(server.address());
  Answered<ServerCapabilities> answered;
  for (int i = 0; i < 5; ++i) client->Capabilities(kLong, answered.callback());
  ASSERT_TRUE(server.WaitForHanging(5));
  client.reset();
  EXPECT_TRUE(server.WaitForHanging(0)) << "the switch is told";
  dialer_.reset();  // has waited for all that there was
  EXPECT_EQ(answered.count(), 0u);
}

TEST_F(GrpcClientTest, MayBeDestroyedBeforeItIsConnected) {
  Server server(ServerOptions(), Capable());
  test::Relay relay(server.port());
  relay.Freeze();
  Answered<ServerCapabilities> answered;
  auto client = DialTo(relay.address());
  client->Capabilities(kLong, answered.callback());
  client.reset();
  dialer_.reset();
  EXPECT_EQ(answered.count(), 0u);
}

TEST_F(GrpcClientTest, MayBeDestroyedInItsOwnCallback) {
  Server server(ServerOptions(), Capable());
  auto client = DialTo(server.address());
  Signal destroyed;
  client->Capabilities(kLong, [&](base::Result<ServerCapabilities> answer) {
    EXPECT_TRUE(answer);
    client.reset();
    destroyed.Set();
  });
  EXPECT_TRUE(destroyed.Wait());
}

TEST_F(GrpcClientTest, WaitsForTheCallbackThatRunsWhenItIsDestroyed) {
  Server server(ServerOptions(), Capable());
  auto client = DialTo(server.address());
  Signal begun, go_on;
  std::atomic<bool> over = false, destroyed = false, over_first = false;
  client->Capabilities(kLong, [&](base::Result<ServerCapabilities>) {
    begun.Set();
    EXPECT_TRUE(go_on.Wait());
    EXPECT_FALSE(destroyed);
    over = true;
  });
  ASSERT_TRUE(begun.Wait());
  std::thread destroying([&] {
    client.reset();
    destroyed = true;
    over_first = over.load();
  });
  go_on.Set();
  destroying.join();
  EXPECT_TRUE(over_first);
}

TEST_F(GrpcClientTest, LetsGoOfWhatItsCallbacksHold) {
  Server server(ServerOptions(), Silent());
  auto client = DialTo(server.address());
  auto held = std::make_shared<int>(1);
  client->Capabilities(kLong, [held](base::Result<ServerCapabilities>) {});
  client.reset();
  EXPECT_EQ(held.use_count(), 1);
}

int Threads() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) ++count;
  return count;
}

TEST_F(GrpcClientTest, AsksAHundredSwitchesOnFewThreads) {
  constexpr int kSwitches = 100;
  test::GnmiServer::Scripts scripts = Capable();
  scripts.subscribed = [](test::GnmiSession& session) {
    session.SendJson("COUNTERS_DB", {"COUNTERS", "Ethernet0"}, R"({"SAI_PORT_STAT_IF_IN_OCTETS":"1"})");
    session.SendSync();
  };
  Server server(ServerOptions(), scripts);
  const auto one = DialTo(server.address());  // gRPC has its threads, client's and server's
  ASSERT_EQ(ErrorOfCapabilities(*one).message, "it has answered");
  const int before = Threads();
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<Answered<ServerCapabilities>> answers(kSwitches);
  std::vector<StreamLog> logs(kSwitches);
  for (int i = 0; i < kSwitches; ++i) {
    clients.push_back(DialTo(server.address()));
    clients.back()->Capabilities(kLong, answers[std::size_t(i)].callback());
    streams.push_back(
        clients.back()->Subscribe(Following("COUNTERS_DB:/COUNTERS"), logs[std::size_t(i)].events()));
  }
  int most = Threads();
  for (int i = 0; i < kSwitches; ++i) {
    EXPECT_TRUE(answers[std::size_t(i)].Wait());
    EXPECT_TRUE(logs[std::size_t(i)].WaitForSync());
    most = std::max(most, Threads());
  }
  // gRPC's executor has up to twice as many as there are processors, whatever the number of clients.
  EXPECT_LE(most - before, 8 + 2 * int(std::thread::hardware_concurrency()));
  EXPECT_LT(most, kSwitches);
}

using GrpcDialerDeathTest = GrpcClientTest;

TEST_F(GrpcDialerDeathTest, OutlivesItsClients) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        const auto client = DialTo("127.0.0.1:1");
        dialer_.reset();
      },
      "CHECK failed: underway_->clients == 0");
}

}  // namespace
}  // namespace heddle::gnmi
