#include "kube/client.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "kube/consistent_read.h"
#include "tests/support/fake_api_server.h"
#include "tests/support/fake_clock.h"

namespace heddle::kube {
namespace {

using base::Code;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

// Answers from a list and keeps the requests as they were.
class CannedTransport final : public HttpTransport {
 public:
  std::vector<base::Result<HttpResponse>> answers;
  std::vector<std::string> chunks;
  std::vector<HttpRequest> requests;

  base::Result<HttpResponse> Do(const HttpRequest& request, std::stop_token) override {
    requests.push_back(request);
    if (answers.empty()) return HttpResponse{200, {}, "{}"};
    auto answer = answers.front();
    if (answers.size() > 1) answers.erase(answers.begin());
    return answer;
  }
  base::Result<HttpResponse> Stream(const HttpRequest& request, const ChunkReader& on_chunk,
                                    std::stop_token) override {
    requests.push_back(request);
    if (!answers.empty()) return answers.front();
    if (!on_chunk("")) return HttpResponse{200, {}, ""};
    for (const std::string& chunk : chunks) {
      if (!on_chunk(chunk)) break;
    }
    return HttpResponse{200, {}, ""};
  }

  std::string Asked() const { return requests.back().method + " " + requests.back().target; }
  std::string ContentType() const {
    for (const HttpHeader& header : requests.back().headers) {
      if (header.name == "Content-Type") return header.value;
    }
    return "";
  }
};

const Resource kGangs = CustomResource("heddle.dev", "v1alpha1", "gangs", "Gang", true);
const Resource kFabrics = CustomResource("heddle.dev", "v1alpha1", "fabrics", "Fabric", false);

class ClientTest : public testing::Test {
 protected:
  ClientTest() { clock_.set_auto_advance(true); }
  static HttpResponse Refusal(int status, const std::string& reason, const std::string& message) {
    return HttpResponse{
        status,
        {},
        Json{{"kind", "Status"}, {"reason", reason}, {"message", message}, {"code", status}}.dump()};
  }
  Json Gang() { return NewObject(kGangs, {"train", "g-1"}); }

  test::FakeClock clock_;
  CannedTransport transport_;
  Client client_{transport_, clock_, {.user_agent = "heddle-test/1", .field_manager = "tester"}};
};

TEST_F(ClientTest, WritesThePathsThatTheServerServes) {
  ASSERT_TRUE(client_.Get(kPods, {"train", "w-0"}, {}));
  EXPECT_EQ(transport_.Asked(), "GET /api/v1/namespaces/train/pods/w-0");
  ASSERT_TRUE(client_.Get(kNodes, {"", "a1"}, {}));
  EXPECT_EQ(transport_.Asked(), "GET /api/v1/nodes/a1");
  ASSERT_TRUE(client_.Get(kFabrics, {"", "ib"}, {}));
  EXPECT_EQ(transport_.Asked(), "GET /apis/heddle.dev/v1alpha1/fabrics/ib");
  ASSERT_TRUE(client_.List(kJobs, {}, {}));
  EXPECT_EQ(transport_.Asked(), "GET /apis/batch/v1/jobs");
  ASSERT_TRUE(client_.GetRaw("/version", {}));
  EXPECT_EQ(transport_.Asked(), "GET /version");
}

TEST_F(ClientTest, WritesEveryListParameterEncoded) {
  const ListOptions options{"train", "a=b,c in (d,e)", "spec.nodeName=n1", "12", "Exact", 50, "tok/en="};
  ASSERT_TRUE(client_.List(kPods, options, {}));
  EXPECT_EQ(
      transport_.Asked(),
      "GET /api/v1/namespaces/train/pods?continue=tok%2Fen%3D&fieldSelector=spec.nodeName%3Dn1"
      "&labelSelector=a%3Db%2Cc%20in%20%28d%2Ce%29&limit=50&resourceVersion=12&resourceVersionMatch=Exact");
}

TEST_F(ClientTest, WritesEachWriteAsTheServerWantsIt) {
  ASSERT_TRUE(client_.Create(kGangs, Gang(), {}));
  EXPECT_EQ(transport_.Asked(), "POST /apis/heddle.dev/v1alpha1/namespaces/train/gangs?fieldManager=tester");
  EXPECT_EQ(transport_.ContentType(), "application/json");
  ASSERT_TRUE(client_.Update(kGangs, Gang(), {}));
  EXPECT_EQ(transport_.Asked(),
            "PUT /apis/heddle.dev/v1alpha1/namespaces/train/gangs/g-1?fieldManager=tester");
  ASSERT_TRUE(client_.UpdateStatus(kGangs, Gang(), {}));
  EXPECT_EQ(transport_.Asked(),
            "PUT /apis/heddle.dev/v1alpha1/namespaces/train/gangs/g-1/status?fieldManager=tester");
  ASSERT_TRUE(
      client_.Patch(kGangs, {"train", "g-1"}, PatchType::kMerge, {{"a", 1}}, {.subresource = "status"}, {}));
  EXPECT_EQ(transport_.Asked(),
            "PATCH /apis/heddle.dev/v1alpha1/namespaces/train/gangs/g-1/status?fieldManager=tester");
  EXPECT_EQ(transport_.ContentType(), "application/merge-patch+json");
  EXPECT_EQ(transport_.requests.back().body, R"({"a":1})");
  ASSERT_TRUE(client_.Patch(kPods, {"train", "w-0"}, PatchType::kJson, Json::array(), {}, {}));
  EXPECT_EQ(transport_.ContentType(), "application/json-patch+json");
  ASSERT_TRUE(client_.Patch(kPods, {"train", "w-0"}, PatchType::kStrategic, Json::object(), {}, {}));
  EXPECT_EQ(transport_.ContentType(), "application/strategic-merge-patch+json");
  ASSERT_TRUE(client_.Apply(kGangs, Gang(),
                            {.field_manager = "heddle operator", .force = true, .subresource = ""}, {}));
  EXPECT_EQ(
      transport_.Asked(),
      "PATCH /apis/heddle.dev/v1alpha1/namespaces/train/gangs/g-1?fieldManager=heddle%20operator&force=true");
  EXPECT_EQ(transport_.ContentType(), "application/apply-patch+yaml");
  ASSERT_TRUE(client_.CreateSubresource(kPods, {"train", "w-0"}, "eviction", Json::object(), {}));
  EXPECT_EQ(transport_.Asked(), "POST /api/v1/namespaces/train/pods/w-0/eviction?fieldManager=tester");
}

TEST_F(ClientTest, DeletesWithPreconditionsAndPropagation) {
  const DeleteOptions options{"u-1", "77", Propagation::kBackground, 0};
  ASSERT_TRUE(client_.Delete(kPods, {"train", "w-0"}, options, {}));
  EXPECT_EQ(transport_.Asked(), "DELETE /api/v1/namespaces/train/pods/w-0");
  EXPECT_EQ(Json::parse(transport_.requests.back().body),
            Json::parse(R"({"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":0,
                            "preconditions":{"uid":"u-1","resourceVersion":"77"},"propagationPolicy":"Background"})"));
}

TEST_F(ClientTest, RefusesANameThatWouldHitTheWholeCollection) {
  for (const char* name : {"", ".", ".."}) {
    EXPECT_EQ(client_.Delete(kPods, {"train", name}, {}, {}).error().code, Code::kInvalid);
    EXPECT_EQ(client_.Get(kNodes, {"", name}, {}).error().code, Code::kInvalid);
  }
  EXPECT_EQ(client_.Get(kPods, {"", "w-0"}, {}).error().code, Code::kInvalid);
  EXPECT_EQ(client_.Create(kPods, NewObject(kPods, {"", "w-0"}), {}).error().code, Code::kInvalid);
  EXPECT_TRUE(transport_.requests.empty());
}

TEST_F(ClientTest, MapsEveryStatusToItsCode) {
  const std::vector<std::pair<HttpResponse, Code>> table{
      {Refusal(400, "BadRequest", "m"), Code::kInvalid},
      {Refusal(401, "Unauthorized", "m"), Code::kUnauthorized},
      {Refusal(403, "Forbidden", "m"), Code::kForbidden},
      {Refusal(404, "NotFound", "m"), Code::kNotFound},
      {Refusal(405, "MethodNotAllowed", "m"), Code::kUnimplemented},
      {Refusal(409, "Conflict", "m"), Code::kConflict},
      {Refusal(409, "AlreadyExists", "m"), Code::kAlreadyExists},
      {Refusal(410, "Gone", "m"), Code::kExpired},
      {Refusal(413, "RequestEntityTooLarge", "m"), Code::kTooLarge},
      {Refusal(415, "UnsupportedMediaType", "m"), Code::kUnimplemented},
      {Refusal(422, "Invalid", "m"), Code::kInvalid},
      {Refusal(429, "TooManyRequests", "m"), Code::kThrottled},
      {Refusal(500, "InternalError", "m"), Code::kInternal},
      {Refusal(503, "ServiceUnavailable", "m"), Code::kUnavailable},
      {Refusal(408, "Timeout", "m"), Code::kUnavailable},
      {Refusal(504, "Timeout", "m"), Code::kUnavailable},
      {Refusal(504, "Timeout", "Too large resource version: 9, current: 3"), Code::kExpired},
      {HttpResponse{502, {}, "<html>bad gateway</html>"}, Code::kUnavailable},
  };
  for (const auto& [response, code] : table) {
    transport_.answers = {response};
    EXPECT_EQ(client_.Get(kPods, {"train", "w-0"}, {}).error().code, code)
        << response.status << response.body;
  }
}

TEST_F(ClientTest, SaysVerbResourceNameAndTheServersWords) {
  transport_.answers = {Refusal(422, "Invalid", "Pod \"w-3\" is invalid: spec.x: Required value")};
  EXPECT_EQ(client_.Patch(kPods, {"train", "w-3"}, PatchType::kMerge, {}, {}, {}).error().message,
            "patch pods train/w-3: Pod \"w-3\" is invalid: spec.x: Required value");
  EXPECT_EQ(client_.UpdateStatus(kGangs, Gang(), {}).error().message,
            "update gangs.heddle.dev/status train/g-1: Pod \"w-3\" is invalid: spec.x: Required value");
  transport_.answers = {HttpResponse{500, {}, std::string(100'000, 'x')}};
  EXPECT_LT(client_.List(kPods, {}, {}).error().message.size(), 300u);
}

TEST_F(ClientTest, SurvivesAnswersThatAreNotWhatTheyShouldBe) {
  for (const char* body : {"", "null", "[]", "{\"a\":", "\xff\xfe", "42"}) {
    transport_.answers = {HttpResponse{200, {}, body}};
    EXPECT_EQ(client_.Get(kPods, {"train", "w-0"}, {}).error().code, Code::kInternal) << body;
  }
  for (const char* body : {R"({"items":{}})", R"({"items":[1]})"}) {
    transport_.answers = {HttpResponse{200, {}, body}};
    EXPECT_EQ(client_.List(kPods, {}, {}).error().code, Code::kInternal) << body;
  }
  transport_.answers = {HttpResponse{200, {}, R"({"items":null,"metadata":{"resourceVersion":"5"}})"}};
  EXPECT_EQ(client_.List(kPods, {}, {})->resource_version, "5");
}

TEST_F(ClientTest, SendsBytesThatAreNoUtf8AsReplacementsInsteadOfThrowing) {
  Json gang = Gang();
  gang["spec"]["note"] = "\xff";
  ASSERT_TRUE(client_.Create(kGangs, gang, {}));
  EXPECT_THAT(transport_.requests.back().body, HasSubstr("\xEF\xBF\xBD"));
}

TEST_F(ClientTest, FillsInWhatListsLeaveOut) {
  transport_.answers = {HttpResponse{200, {}, R"({"items":[{"metadata":{"name":"a"}}]})"}};
  const auto list = client_.List(kJobs, {}, {});
  ASSERT_TRUE(list);
  EXPECT_EQ(list->items[0]["kind"], "Job");
  EXPECT_EQ(list->items[0]["apiVersion"], "batch/v1");
}

TEST_F(ClientTest, RepeatsOnlyWithRetryAfter) {
  HttpResponse throttled = Refusal(429, "TooManyRequests", "slow down");
  transport_.answers = {throttled};
  EXPECT_EQ(client_.Get(kNodes, {"", "a1"}, {}).error().code, Code::kThrottled);
  EXPECT_EQ(transport_.requests.size(), 1u);

  throttled.headers = {{"Retry-After", "2"}};
  transport_.requests.clear();
  transport_.answers = {throttled, throttled, HttpResponse{200, {}, "{}"}};
  const auto before = clock_.Now();
  EXPECT_TRUE(client_.Get(kNodes, {"", "a1"}, {}));
  EXPECT_EQ(transport_.requests.size(), 3u);
  EXPECT_EQ(clock_.Now() - before, seconds(4));
}

TEST_F(ClientTest, RepeatsTenTimesAndThenGivesUp) {
  HttpResponse starting = Refusal(503, "ServiceUnavailable", "starting");
  starting.headers = {{"Retry-After", "1"}};
  transport_.answers = {starting};
  const auto failed = client_.Get(kNodes, {"", "a1"}, {});
  EXPECT_EQ(failed.error().code, Code::kUnavailable);
  EXPECT_EQ(failed.error().retry_after, seconds(1));
  EXPECT_EQ(transport_.requests.size(), 11u);
}

TEST_F(ClientTest, RepeatsForNoLongerThanOneRequestMayTake) {
  HttpResponse throttled = Refusal(429, "TooManyRequests", "slow down");
  throttled.headers = {{"Retry-After", "20"}};
  transport_.answers = {throttled};
  const auto before = clock_.Now();
  const auto failed = client_.Get(kNodes, {"", "a1"}, {});
  EXPECT_EQ(failed.error().code, Code::kThrottled);
  EXPECT_EQ(failed.error().retry_after, seconds(20));
  EXPECT_EQ(transport_.requests.size(), 2u) << "a third would begin after 40 s, and 30 are allowed";
  EXPECT_EQ(clock_.Now() - before, seconds(20));
  transport_.requests.clear();
  EXPECT_FALSE(client_.WithRequestTimeout(seconds(5)).Get(kNodes, {"", "a1"}, {}));
  EXPECT_EQ(transport_.requests.size(), 1u);
}

TEST_F(ClientTest, TakesAMinuteForTheLongestWaitThatAServerMayAskFor) {
  HttpResponse closed = Refusal(503, "ServiceUnavailable", "back tomorrow");
  closed.headers = {{"Retry-After", "86400"}};
  transport_.answers = {closed};
  EXPECT_EQ(client_.Get(kNodes, {"", "a1"}, {}).error().retry_after, seconds(60));
  EXPECT_EQ(transport_.requests.size(), 1u);
  const auto status = Json::parse(R"({"code":429,"details":{"retryAfterSeconds":9223372036854775807}})");
  EXPECT_EQ(ErrorFromStatus(status).retry_after, seconds(60));
}

TEST_F(ClientTest, LeavesTheWaitToTheCallerWhereAServerAsksForNone) {
  HttpResponse closed = Refusal(503, "ServiceUnavailable", "shutting down");
  closed.headers = {{"Retry-After", "0"}};
  transport_.answers = {closed};
  EXPECT_FALSE(client_.Get(kNodes, {"", "a1"}, {}).error().retry_after) << "none is no wait to keep";
  EXPECT_EQ(transport_.requests.size(), 1u) << "and eleven at once help nobody";
}

TEST_F(ClientTest, DoesNotRepeatALostConnection) {
  transport_.answers = {base::Fail(Code::kUnavailable, "reset")};
  EXPECT_EQ(client_.Create(kGangs, Gang(), {}).error().message, "create gangs.heddle.dev train/g-1: reset");
  EXPECT_EQ(transport_.requests.size(), 1u);
}

TEST_F(ClientTest, StopsWhileItWaitsToRepeat) {
  HttpResponse throttled = Refusal(429, "TooManyRequests", "slow down");
  throttled.headers = {{"Retry-After", "30"}};
  transport_.answers = {throttled};
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(client_.Get(kNodes, {"", "a1"}, stop.get_token()).error().code, Code::kCancelled);
}

TEST_F(ClientTest, PutsEventsTogetherAcrossChunkBorders) {
  const std::string text =
      "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n"
      "\n{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"b\"}}}\r\n"
      "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"9\"}}}\n";
  for (std::size_t size = 1; size < text.size(); ++size) {
    transport_.chunks.clear();
    for (std::size_t at = 0; at < text.size(); at += size) transport_.chunks.push_back(text.substr(at, size));
    std::vector<std::string> seen;
    int opened = 0;
    WatchOptions options;
    options.on_open = [&] { ++opened; };
    const auto ended = client_.Watch(kPods, options,
                                     [&](WatchEvent&& event) {
                                       seen.push_back(std::to_string(int(event.type)) + Name(event.object));
                                       return true;
                                     },
                                     {});
    ASSERT_TRUE(ended);
    ASSERT_THAT(seen, ElementsAre("0a", "2b", "3"));
    ASSERT_EQ(opened, 1);
  }
}

TEST_F(ClientTest, AsksForAWatchAsTheServerWantsIt) {
  ASSERT_TRUE(client_.Watch(kPods, {.ns = "train", .resource_version = "8", .timeout = seconds(301)},
                            [](WatchEvent&&) { return true; }, {}));
  EXPECT_EQ(transport_.Asked(),
            "GET "
            "/api/v1/namespaces/train/"
            "pods?allowWatchBookmarks=true&resourceVersion=8&timeoutSeconds=301&watch=true");
  ASSERT_TRUE(client_.Watch(kNodes, {.field_selector = "metadata.name=a1", .send_initial_events = true},
                            [](WatchEvent&&) { return true; }, {}));
  EXPECT_EQ(transport_.Asked(),
            "GET /api/v1/nodes?allowWatchBookmarks=true&fieldSelector=metadata.name%3Da1"
            "&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=300&watch=true");
}

TEST_F(ClientTest, TurnsAnErrorEventIntoAnError) {
  transport_.chunks = {
      R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}})"
      "\n"};
  const auto ended = client_.Watch(kPods, {}, [](WatchEvent&&) { return true; }, {});
  EXPECT_EQ(ended.error().code, Code::kExpired);
  EXPECT_EQ(ended.error().message, "watch pods: too old");
}

TEST_F(ClientTest, RefusesALineThatIsNoEventOrTooLong) {
  for (const char* line :
       {"garbage\n", "{}\n", "{\"type\":\"ADDED\"}\n", "{\"type\":\"ODD\",\"object\":{}}\n", "[1]\n"}) {
    transport_.chunks = {line};
    EXPECT_EQ(client_.Watch(kPods, {}, [](WatchEvent&&) { return true; }, {}).error().code, Code::kInternal)
        << line;
  }
  transport_.chunks.assign(20, std::string(1 << 20, 'x'));
  EXPECT_EQ(client_.Watch(kPods, {}, [](WatchEvent&&) { return true; }, {}).error().code, Code::kTooLarge);
}

class ClientAgainstServerTest : public testing::Test {
 protected:
  test::FakeClock clock_;
  test::FakeApiServer server_{clock_};
  Client client_{server_, clock_, {.user_agent = "t", .field_manager = "tester"}};

  void MakeMaps(int count) {
    for (int i = 0; i < count; ++i) {
      server_.Put(kConfigMaps, NewObject(kConfigMaps, {"a", "m" + std::to_string(100 + i)}));
    }
  }
};

// Who wrote what is asked of lists, as by doctor; watches come without it.
TEST_F(ClientAgainstServerTest, ListsWholeObjectsUnlessTold) {
  Json map = NewObject(kConfigMaps, {"a", "m"});
  map["metadata"]["managedFields"] = Json::array({{{"manager", "m"}}});
  map["data"]["k"] = "v";
  server_.Put(kConfigMaps, map);
  const auto whole = client_.List(kConfigMaps, {}, {});
  ASSERT_TRUE(whole);
  EXPECT_EQ((*whole).items[0]["metadata"]["managedFields"][0]["manager"], "m");
  const auto pruned = client_.List(kConfigMaps, {.pruning = Pruning({"data", "metadata.managedFields"})}, {});
  ASSERT_TRUE(pruned);
  EXPECT_FALSE((*pruned).items[0].contains("data"));
  EXPECT_FALSE((*pruned).items[0]["metadata"].contains("managedFields"));
  EXPECT_EQ((*pruned).items[0]["kind"], "ConfigMap");
}

TEST_F(ClientAgainstServerTest, ReadsAllPages) {
  MakeMaps(25);
  const auto all = client_.ListAll(kConfigMaps, {.limit = 10}, {});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->items.size(), 25u);
  EXPECT_EQ(server_.requests().size(), 3u);
  EXPECT_EQ(all->resource_version, server_.resource_version());
}

// Also of the list that takes the place of pages: each object once, and nothing of the pages before it.
TEST_F(ClientAgainstServerTest, KeepsOfEachObjectWhatTheTransformLeaves) {
  MakeMaps(25);
  const auto name_only = [](Json map) { return Json{{"metadata", {{"name", map["metadata"]["name"]}}}}; };
  const auto names = [](const ObjectList& list) {
    std::set<std::string> found;
    for (const Json& item : list.items) {
      EXPECT_EQ(item.size(), 1u) << item.dump();
      found.insert(Name(item));
    }
    return found;
  };
  const auto paged = client_.ListAll(kConfigMaps, {.limit = 10, .transform = name_only}, {});
  ASSERT_TRUE(paged);
  EXPECT_EQ(paged->items.size(), 25u);
  EXPECT_EQ(names(*paged).size(), 25u);
  server_.Intercept([this](const test::ApiRequest& request) -> std::optional<HttpResponse> {
    if (request.query.contains("continue")) server_.ExpireHistory();
    return std::nullopt;
  });
  const auto in_full = client_.ListAll(kConfigMaps, {.limit = 10, .transform = name_only}, {});
  ASSERT_TRUE(in_full);
  EXPECT_EQ(in_full->items.size(), 25u);
  EXPECT_EQ(names(*in_full).size(), 25u);
}

TEST_F(ClientAgainstServerTest, ReadsConsistentlyByOneStreamAndLeavesIt) {
  MakeMaps(1200);
  const auto name_only = [](Json map) { return Json{{"metadata", {{"name", map["metadata"]["name"]}}}}; };
  const auto all = ReadConsistently(client_, kConfigMaps, {.ns = "a", .transform = name_only}, {});
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->items.size(), 1200u);
  EXPECT_EQ(all->items.front().dump(), R"({"metadata":{"name":"m100"}})");
  EXPECT_EQ(all->resource_version, server_.resource_version());
  const auto requests = server_.requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_FALSE(requests[0].query.contains("resourceVersion"));  // or it would be as old as a cache may be
  EXPECT_EQ(server_.open_streams(), 0u);
}

TEST_F(ClientAgainstServerTest, TakesChangesInThatComeBeforeTheMark) {
  const auto line = [](const char* type, const char* name, const char* version, const char* more = "") {
    return fmt::format(
               R"({{"type":"{}","object":{{"metadata":{{"namespace":"a","name":"{}","resourceVersion":"{}"{}}}}}}})",
               type, name, version, more) +
           "\n";
  };
  CannedTransport transport;
  Client client(transport, clock_, {.user_agent = "t", .field_manager = "tester"});
  transport.chunks = {line("ADDED", "stays", "3"),
                      line("ADDED", "goes", "4"),
                      line("ADDED", "changes", "5"),
                      line("DELETED", "goes", "11"),
                      line("MODIFIED", "changes", "12"),
                      line("BOOKMARK", "", "12"),
                      line("BOOKMARK", "", "14", R"(,"annotations":{"k8s.io/initial-events-end":"true"})"),
                      line("ADDED", "later", "15")};
  const auto all = ReadConsistently(client, kConfigMaps, {}, {});
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->resource_version, "14");
  ASSERT_EQ(all->items.size(), 2u);
  EXPECT_EQ(ResourceVersion(all->items[0]), "12");
  EXPECT_EQ(Name(all->items[1]), "stays");
}

TEST_F(ClientAgainstServerTest, ListsWhereTheServerHasNoWatchListOrTheStreamBreaks) {
  MakeMaps(25);
  server_.set_watch_list(false);
  const auto listed = ReadConsistently(client_, kConfigMaps, {.limit = 10}, {});
  ASSERT_TRUE(listed) << listed.error().message;
  EXPECT_EQ(listed->items.size(), 25u);
  EXPECT_EQ(server_.requests().size(), 4u);  // the refused stream and three pages
  server_.set_watch_list(true);
  server_.FailNext({.method = "GET", .path_contains = "configmaps", .status = 500});
  const auto again = ReadConsistently(client_, kConfigMaps, {}, {});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->items.size(), 25u);
}

class ReadChangesTest : public ClientAgainstServerTest {
 protected:
  // What is known of each object: its version.
  std::map<std::string, std::string> Versions() {
    std::map<std::string, std::string> versions;
    const auto all = client_.ListAll(kConfigMaps, {}, {});
    for (const Json& map : all->items) versions[Name(map)] = ResourceVersion(map);
    return versions;
  }
  base::Result<ObjectChanges> Read(const std::map<std::string, std::string>& known,
                                   ListOptions options = {}) {
    server_.ClearRequests();
    const auto knows = [&known](const Json& head) {
      const auto found = known.find(Name(head));
      return found != known.end() && found->second == ResourceVersion(head);
    };
    return ReadChanges(client_, kConfigMaps, options, knows, {});
  }
  static std::vector<std::string> NamesOf(const std::vector<Json>& objects) {
    std::vector<std::string> names;
    for (const Json& object : objects) names.push_back(Name(object));
    return names;
  }
};

TEST_F(ReadChangesTest, ReadsTheContentOfNewsAlone) {
  MakeMaps(5);
  auto known = Versions();
  Json changed = *client_.Get(kConfigMaps, {"a", "m101"}, {});
  changed["data"]["k"] = "news";
  ASSERT_TRUE(client_.Update(kConfigMaps, changed, {}));
  known.erase("m103");
  const auto keep_data = [](Json map) { return Json{{"metadata", map["metadata"]}, {"data", map["data"]}}; };
  const auto read = Read(known, {.ns = "a", .transform = keep_data});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(NamesOf(read->objects), ElementsAre("m101", "m103"));
  EXPECT_EQ(read->objects[0]["data"]["k"], "news");
  EXPECT_FALSE(read->objects[0].contains("kind"));
  EXPECT_EQ(read->unchanged.size(), 3u);
  EXPECT_EQ(read->resource_version, server_.resource_version());
  EXPECT_THAT(server_.lines(),
              ElementsAre("LIST configmaps a", "GET configmaps a/m101", "GET configmaps a/m103"));
  EXPECT_TRUE(server_.requests()[0].metadata_only);
  EXPECT_FALSE(
      server_.requests()[0].query.contains("resourceVersion"));  // or it would be as old as a cache may be
}

TEST_F(ReadChangesTest, PassesOverWhatWentMeanwhile) {
  MakeMaps(3);
  server_.Intercept([this](const test::ApiRequest& request) -> std::optional<HttpResponse> {
    if (request.key.name == "m101") server_.Remove(kConfigMaps, {"a", "m101"});
    return std::nullopt;
  });
  const auto read = Read({});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(NamesOf(read->objects), ElementsAre("m100", "m102"));
  EXPECT_TRUE(read->unchanged.empty());
}

TEST_F(ReadChangesTest, ReadsAllAtOnceWhereMuchIsNews) {
  MakeMaps(150);
  const auto read = Read({});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->objects.size(), 150u);
  EXPECT_THAT(server_.lines(), ElementsAre("LIST configmaps", "WATCH configmaps"));
}

TEST_F(ReadChangesTest, FailsWhereAnObjectCannotBeRead) {
  MakeMaps(3);
  server_.FailNext({.method = "GET", .path_contains = "m101", .status = 403});
  const auto read = Read({});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::kForbidden);
}

TEST_F(ClientAgainstServerTest, TellsAStaleWriteAndAnotherManagersField) {
  MakeMaps(1);
  Json map = *client_.Get(kConfigMaps, {"a", "m100"}, {});
  map["data"]["k"] = "1";
  ASSERT_TRUE(client_.Update(kConfigMaps, map, {}));
  EXPECT_EQ(client_.Update(kConfigMaps, map, {}).error().code, Code::kConflict);
  Json mine = NewObject(kConfigMaps, {"a", "m100"});
  mine["data"]["k"] = "2";
  EXPECT_EQ(client_.Apply(kConfigMaps, mine, {.field_manager = "x"}, {}).error().code, Code::kConflict);
  EXPECT_TRUE(client_.Apply(kConfigMaps, mine, {.field_manager = "x", .force = true}, {}));
  EXPECT_EQ(server_.Find(kConfigMaps, {"a", "m100"})->at("data").at("k"), "2");
  mine.erase("data");
  ASSERT_TRUE(client_.Apply(kConfigMaps, mine, {.field_manager = "x"}, {}));
  EXPECT_FALSE(server_.Find(kConfigMaps, {"a", "m100"})->contains("data")) << "what is given up goes";
}

}  // namespace
}  // namespace heddle::kube
