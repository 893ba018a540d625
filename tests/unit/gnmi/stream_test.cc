#include <atomic>
#include <thread>

#include "base/random.h"
#include "tests/support/seeds.h"
#include "tests/unit/gnmi/gnmi_bed.h"

namespace heddle::gnmi {
namespace {

using base::Code;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::StartsWith;

class StreamTest : public GnmiBed {};

TEST_F(StreamTest, TellsWhatComesInItsOrder) {
  Server server(ServerOptions());
  const auto client = DialTo(server.address());
  StreamLog log;
  const auto stream = client->Subscribe(Following("CONFIG_DB:/PORT"), log.events());
  const auto session = server.NextSession();
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(session->list().prefix().target(), "CONFIG_DB");
  EXPECT_EQ(session->list().subscription(0).mode(), ::gnmi::ON_CHANGE);
  for (int i = 0; i < 50; ++i)
    session->SendJson("CONFIG_DB", {"PORT", "Ethernet" + std::to_string(i)}, std::to_string(i));
  session->SendSync();
  ASSERT_TRUE(log.WaitForSync());
  const auto notices = log.notices();
  ASSERT_EQ(notices.size(), 50u) << "the sync comes behind all of them";
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(FormatPath(notices[i].updates.at(0).path), "CONFIG_DB:/PORT/Ethernet" + std::to_string(i));
    EXPECT_EQ(*notices[i].updates.at(0).json, std::to_string(i));
  }
  session->SendJson("CONFIG_DB", {"PORT"}, "\"later\"");
  EXPECT_TRUE(log.WaitForNotices(51));
  EXPECT_EQ(log.ends(), 0u);
}

TEST_F(StreamTest, NamesTheTargetThatTheSwitchLeavesOut) {
  Server server(ServerOptions());
  const auto client = DialTo(server.address());
  StreamLog log;
  const auto stream = client->Subscribe(Following("CONFIG_DB:/PORT"), log.events());
  const auto session = server.NextSession();
  ASSERT_NE(session, nullptr);
  session->SendJson("", {"PORT"}, "1");
  ASSERT_TRUE(log.WaitForNotices(1));
  EXPECT_EQ(log.notices()[0].updates.at(0).path.target, "CONFIG_DB");
}

TEST_F(StreamTest, OfOneRoundEndsWellWhenAllIsSaidWhateverTheSwitchDoesThen) {
  for (const bool ends : {true, false}) {
    Server server(ServerOptions());
    const auto client = DialTo(server.address());
    StreamLog log;
    SubscribeRequest request = Following("CONFIG_DB:/PORT");
    request.mode = SubscribeRequest::Mode::kOnce;
    const auto stream = client->Subscribe(request, log.events());
    const auto session = server.NextSession();
    ASSERT_NE(session, nullptr);
    EXPECT_EQ(session->list().mode(), ::gnmi::SubscriptionList::ONCE);
    session->SendJson("CONFIG_DB", {"PORT"}, "1");
    session->SendSync();
    if (ends) session->End({grpc::StatusCode::INVALID_ARGUMENT, "%!s(<nil>)"});  // as sonic-gnmi does
    EXPECT_TRUE(log.WaitForEnd()) << log.WaitForEnd().error().message;
    EXPECT_EQ(log.notices().size(), 1u);
    EXPECT_TRUE(session->WaitForEnd());
  }
}

TEST_F(StreamTest, OfOneRoundFailsWhereItEndsBefore) {
  Server server(ServerOptions());
  const auto client = DialTo(server.address());
  StreamLog log;
  SubscribeRequest request = Following("CONFIG_DB:/PORT");
  request.mode = SubscribeRequest::Mode::kOnce;
  const auto stream = client->Subscribe(request, log.events());
  const auto session = server.NextSession();
  ASSERT_NE(session, nullptr);
  session->SendJson("CONFIG_DB", {"PORT"}, "1");
  session->End(grpc::Status::OK);
  const base::Status end = log.WaitForEnd();
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, Code::kUnavailable);
  EXPECT_EQ(end.error().message, server.address() + " ended the stream before it had said all");
}

TEST_F(StreamTest, SaysWhyItEnded) {
  struct Case {
    grpc::Status from;
    Code to;
    std::string words;
  };
  const std::vector<Case> cases = {
      {grpc::Status::OK, Code::kUnavailable, " ended the stream"},
      {{grpc::StatusCode::UNAUTHENTICATED, "no"}, Code::kUnauthorized, "does not accept this login: no"},
      {{grpc::StatusCode::NOT_FOUND, "PORTS"}, Code::kNotFound, "has nothing there: PORTS"},
      {{grpc::StatusCode::UNIMPLEMENTED, "on change"}, Code::kUnimplemented, "on change"},
  };
  for (const Case& one : cases) {
    Server server(ServerOptions());
    const auto client = DialTo(server.address());
    StreamLog log;
    const auto stream = client->Subscribe(Following("/a"), log.events());
    const auto session = server.NextSession();
    ASSERT_NE(session, nullptr);
    session->SendJson("", {"a"}, "1");
    session->End(one.from);
    const base::Status end = log.WaitForEnd();
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().code, one.to);
    EXPECT_THAT(end.error().message, HasSubstr(one.words));
    EXPECT_EQ(log.notices().size(), 1u) << "what came before is told";
    EXPECT_EQ(log.ends(), 1u);
  }
}

TEST_F(StreamTest, EndsWhereNobodyListens) {
  const auto client = DialTo("127.0.0.1:1");
  StreamLog log;
  const auto stream = client->Subscribe(Following("/a"), log.events());
  const base::Status end = log.WaitForEnd();
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, Code::kUnavailable);
  EXPECT_THAT(end.error().message, HasSubstr("nobody listens there"));
}

TEST_F(StreamTest, EndsWhenTheSwitchFallsSilentAndNoOtherDoes) {
  Server server(ServerOptions());
  const auto client = DialTo(server.address());
  StreamLog log, patient_log;
  SubscribeRequest request = Following("/a");
  request.silence = milliseconds(0);
  request.patience = milliseconds(2000);
  const auto patient = client->Subscribe(request, patient_log.events());
  const auto patient_session = server.NextSession();
  ASSERT_NE(patient_session, nullptr);
  patient_session->SendSync();
  ASSERT_TRUE(patient_log.WaitForSync());
  request.silence = milliseconds(3000);
  const auto stream = client->Subscribe(request, log.events());
  const auto session = server.NextSession();
  ASSERT_NE(session, nullptr);
  session->SendSync();
  const base::Status end = log.WaitForEnd();
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, Code::kUnavailable);
  EXPECT_EQ(end.error().message, server.address() + " has said nothing for 3 s");
  EXPECT_TRUE(session->WaitForEnd()) << "the switch is told";
  EXPECT_EQ(patient_log.ends(), 0u) << "patience is for the first message only";
  patient_session->SendJson("", {"a"}, "1");
  EXPECT_TRUE(patient_log.WaitForNotices(1));
}

TEST_F(StreamTest, GoesOnAsLongAsSomethingIsSaid) {
  Server server(ServerOptions());
  const auto client = DialTo(server.address());
  StreamLog log;
  SubscribeRequest request = Following("/a");
  request.silence = milliseconds(1500);
  const auto stream = client->Subscribe(request, log.events());
  const auto session = server.NextSession();
  ASSERT_NE(session, nullptr);
  // Each message when the one before it has come: without a pause, and far longer than the limit.
  const auto until = std::chrono::steady_clock::now() + milliseconds(3500);
  std::size_t count = 0;
  while (std::chrono::steady_clock::now() < until) {
    session->SendJson("", {"a"}, "1");
    ASSERT_TRUE(log.WaitForNotices(++count));
  }
  EXPECT_EQ(log.ends(), 0u);
  const base::Status end = log.WaitForEnd();
  ASSERT_FALSE(end);
  EXPECT_THAT(end.error().message, HasSubstr("has said nothing for 1.5 s"));
}

TEST_F(StreamTest, EndsWhenTheFirstMessageDoesNotCome) {
  Server server(ServerOptions());
  test::Relay relay(server.port());
  const auto client = DialTo(relay.address());
  SubscribeRequest request = Following("/a");
  request.patience = milliseconds(2000);
  StreamLog log;
  const auto stream = client->Subscribe(request, log.events());
  ASSERT_NE(server.NextSession(), nullptr);
  const base::Status end = log.WaitForEnd();
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, Code::kTimeout);
  EXPECT_EQ(end.error().message, relay.address() + " gives no answer within 2 s");
  relay.Freeze();
  const auto other = DialTo(relay.address());
  StreamLog unconnected;
  const auto waiting = other->Subscribe(request, unconnected.events());
  EXPECT_EQ(unconnected.WaitForEnd().error().message, relay.address() + " cannot be connected to within 2 s");
}

TEST_F(StreamTest, EndsByKeepaliveWhereTheConnectionIsDead) {
  DialerOptions options;
  options.keepalive = milliseconds(500);
  options.keepalive_answer = milliseconds(500);
  Redial(options);
  Server server(ServerOptions());
  test::Relay relay(server.port());
  const auto client = DialTo(relay.address());
  StreamLog log;
  const auto stream = client->Subscribe(Following("/a"), log.events());
  const auto session = server.NextSession();
  ASSERT_NE(session, nullptr);
  session->SendSync();
  ASSERT_TRUE(log.WaitForSync());
  relay.Freeze();
  const base::Status end = log.WaitForEnd();
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, Code::kUnavailable);
  EXPECT_THAT(end.error().message, HasSubstr("answers no ping any more"));
}

TEST_F(StreamTest, EndsWhenTheConnectionIsCutAndAnotherCanFollow) {
  DialerOptions options;
  options.reconnect_max = milliseconds(100);
  Redial(options);
  test::GnmiServer::Scripts scripts;
  scripts.subscribed = [](test::GnmiSession& session) { session.SendSync(); };
  Server server(ServerOptions(), scripts);
  test::Relay relay(server.port());
  const auto client = DialTo(relay.address());
  const auto until = std::chrono::steady_clock::now() + kLong;
  int synced = 0;
  while (synced < 3 && std::chrono::steady_clock::now() < until) {
    StreamLog log;
    const auto stream = client->Subscribe(Following("/a"), log.events());
    if (log.WaitForSyncOrEnd()) {
      ++synced;
      relay.Cut();
    }  // else it was begun before gRPC had seen the cut
    const base::Status end = log.WaitForEnd();
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().code, Code::kUnavailable) << end.error().message;
  }
  EXPECT_EQ(synced, 3);
  EXPECT_EQ(relay.connections(), 3);
}

TEST_F(StreamTest, GoesOnOverAValueThatCannotBeRead) {
  Server server(ServerOptions());
  const auto client = DialTo(server.address());
  StreamLog log;
  const auto stream = client->Subscribe(Following("/a"), log.events());
  const auto session = server.NextSession();
  ASSERT_NE(session, nullptr);
  session->SendJson("", {"a"}, "{");
  session->SendJson("", {"b"}, "1");
  session->Send({});  // neither update nor sync
  ::gnmi::SubscribeResponse empty;
  empty.mutable_update();
  session->Send(empty);
  session->SendSync();
  ASSERT_TRUE(log.WaitForSync());
  ASSERT_EQ(log.notices().size(), 3u);
  EXPECT_EQ(TreeOf(*log.notices()[0].updates.at(0).json).error().message, "no JSON");
  EXPECT_EQ(*log.notices()[1].updates.at(0).json, "1");
  EXPECT_TRUE(log.notices()[2].updates.empty());
}

TEST_F(StreamTest, EndsOverANoticeThatCannotBeRead) {
  DialerOptions options;
  options.max_message_bytes = 1 << 20;
  options.answers.updates = 100;
  Redial(options);
  Server server(ServerOptions());
  const auto client = DialTo(server.address());
  const auto end_of = [&](const ::gnmi::SubscribeResponse& bad) {
    StreamLog log;
    const auto stream = client->Subscribe(Following("/a"), log.events());
    const auto session = server.NextSession();
    EXPECT_NE(session, nullptr);
    session->Send(bad);
    session->SendJson("", {"b"}, "1");
    const base::Status end = log.WaitForEnd();
    EXPECT_FALSE(end);
    EXPECT_TRUE(log.notices().empty()) << "nothing comes behind it";
    EXPECT_TRUE(session->WaitForEnd()) << "the switch is told";
    return end ? base::Error() : end.error();
  };
  ::gnmi::SubscribeResponse unnamed, deep, many, large;
  unnamed.mutable_update()->add_delete_()->add_elem();
  EXPECT_THAT(end_of(unnamed).message,
              HasSubstr("sends what cannot be read: a path with an element that has no name"));
  for (std::size_t i = 0; i <= kMaxElems; ++i)
    deep.mutable_update()->mutable_prefix()->add_elem()->set_name("a");
  deep.mutable_update()->add_delete_();
  EXPECT_EQ(end_of(deep).code, Code::kTooLarge);
  for (int i = 0; i < 101; ++i) many.mutable_update()->add_update();
  EXPECT_EQ(end_of(many).code, Code::kTooLarge);
  large.mutable_update()->add_update()->mutable_val()->set_string_val(std::string(2u << 20, 'x'));
  EXPECT_EQ(end_of(large).code, Code::kTooLarge);
}

TEST_F(StreamTest, OfWhatCannotBeAskedEnds) {
  Server server(ServerOptions());
  const auto client = DialTo(server.address());
  StreamLog log;
  const auto stream = client->Subscribe({}, log.events());
  const base::Status end = log.WaitForEnd();
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, Code::kInvalid);
  EXPECT_THAT(end.error().message, StartsWith(server.address() + " is not asked: "));
}

TEST_F(StreamTest, IsSilentOnceItIsDestroyed) {
  Server server(ServerOptions());
  const auto client = DialTo(server.address());
  StreamLog log;
  auto stream = client->Subscribe(Following("/a"), log.events());
  const auto session = server.NextSession();
  ASSERT_NE(session, nullptr);
  session->SendSync();
  ASSERT_TRUE(log.WaitForSync());
  stream.reset();
  session->SendJson("", {"a"}, "1");
  EXPECT_TRUE(session->WaitForEnd());
  EXPECT_TRUE(session->cancelled());
  EXPECT_EQ(log.ends() + log.notices().size(), 0u);
}

TEST_F(StreamTest, MayBeDestroyedInEachOfItsCallbacks) {
  Server server(ServerOptions());
  auto client = DialTo(server.address());
  for (const bool whole_client : {false, true}) {
    for (const std::string at : {"notice", "synced", "ended"}) {
      SCOPED_TRACE(at);
      if (client == nullptr) client = DialTo(server.address());
      Signal subscribed, destroyed;
      std::atomic<int> behind = 0;
      std::unique_ptr<Stream> stream;
      const auto destroy = [&](std::string_view here) {
        if (destroyed.Wait(milliseconds(0))) return void(++behind);
        if (here != at) return;
        ASSERT_TRUE(subscribed.Wait());
        if (whole_client) client.reset();
        stream.reset();
        destroyed.Set();
      };
      StreamEvents events;
      events.notice = [&](Notice&&) { destroy("notice"); };
      events.synced = [&] { destroy("synced"); };
      events.ended = [&](base::Status) { destroy("ended"); };
      stream = client->Subscribe(Following("/a"), std::move(events));
      subscribed.Set();
      const auto session = server.NextSession();
      ASSERT_NE(session, nullptr);
      session->SendJson("", {"a"}, "1");
      session->SendSync();
      session->SendJson("", {"a"}, "2");
      session->End(grpc::Status::OK);
      EXPECT_TRUE(destroyed.Wait());
      EXPECT_TRUE(session->WaitForEnd());
      if (whole_client) {
        dialer_ = std::make_unique<GrpcDialer>();  // the old one waits for all that there was
        EXPECT_EQ(behind, 0);
      } else {
        client.reset();  // so does this, of callbacks
        EXPECT_EQ(behind, 0);
      }
    }
  }
}

TEST_F(StreamTest, WaitsForTheCallbackThatRunsWhenItIsDestroyed) {
  Server server(ServerOptions());
  const auto client = DialTo(server.address());
  Signal begun, go_on;
  std::atomic<bool> over = false;
  StreamEvents events;
  auto held = std::make_shared<int>(1);
  events.notice = [&, held](Notice&&) {
    begun.Set();
    EXPECT_TRUE(go_on.Wait());
    over = true;
  };
  auto stream = client->Subscribe(Following("/a"), std::move(events));
  const auto session = server.NextSession();
  ASSERT_NE(session, nullptr);
  session->SendJson("", {"a"}, "1");
  ASSERT_TRUE(begun.Wait());
  std::thread destroying([&] {
    stream.reset();
    EXPECT_TRUE(over);
    EXPECT_EQ(held.use_count(), 1) << "what callbacks hold is let go";
  });
  go_on.Set();
  destroying.join();
}

TEST_F(StreamTest, MayOutliveItsClient) {
  Server server(ServerOptions());
  auto client = DialTo(server.address());
  StreamLog log;
  const auto stream = client->Subscribe(Following("/a"), log.events());
  const auto session = server.NextSession();
  ASSERT_NE(session, nullptr);
  client.reset();
  EXPECT_TRUE(session->WaitForEnd());
  EXPECT_EQ(log.ends(), 0u);
}

// Calls and streams that begin, are answered, cut and destroyed at any moment: nothing is told twice or too late.
TEST_F(StreamTest, StandsWhateverIsDestroyedWhen) {
  DialerOptions options;
  options.reconnect_max = milliseconds(50);
  test::GnmiServer::Scripts scripts;
  scripts.capabilities = [](const auto&, const auto&, auto&) { return grpc::Status::OK; };
  scripts.subscribed = [](test::GnmiSession& session) {
    session.SendJson("", {"a"}, "1");
    session.SendSync();
    session.SendJson("", {"b"}, "2");
    if (session.list().subscription(0).path().elem(0).name() == "ending") session.End(grpc::Status::OK);
  };
  Server server(ServerOptions(), scripts);
  test::Relay relay(server.port());
  for (const std::uint64_t seed : test::Seeds(60)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    Redial(options);
    auto client = DialTo(relay.address());
    Answered<ServerCapabilities> answered;
    std::vector<StreamLog> logs(4);
    std::vector<std::unique_ptr<Stream>> streams;
    for (StreamLog& log : logs) {
      if (random.Below(2) == 0) client->Capabilities(milliseconds(random.Below(50)), answered.callback());
      SubscribeRequest request = Following(random.Below(2) == 0 ? "/ending" : "/a");
      request.silence = milliseconds(random.Below(20));
      request.patience = milliseconds(1 + random.Below(200));
      streams.push_back(client->Subscribe(request, log.events()));
      // A stream that came to nothing says so.
      if (random.Below(3) == 0) (void)log.WaitForNoticeOrEnd();
      if (random.Below(4) == 0) streams[random.Below(streams.size())].reset();
      if (random.Below(8) == 0) relay.Cut();
    }
    if (random.Below(2) == 0) streams.clear();
    client.reset();
    std::size_t told = 0;
    for (StreamLog& log : logs) told += log.ends() + log.notices().size();
    dialer_.reset();
    for (StreamLog& log : logs) {
      EXPECT_LE(log.ends(), 1u);
      told -= log.ends() + log.notices().size();
    }
    EXPECT_EQ(told, 0u) << "something came when the client was gone";
  }
}

}  // namespace
}  // namespace heddle::gnmi
