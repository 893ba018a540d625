#include "gnmi/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gnmi/gnmi.pb.h"

namespace heddle::gnmi {
namespace {

using base::Code;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

Path PathNamed(const std::string& text) {
  return *ParsePath(text);
}

void Add(::gnmi::Path& path, const std::vector<std::string>& names) {
  for (const std::string& name : names) path.add_elem()->set_name(name);
}

TEST(Wire, SendsTheTargetInThePrefix) {
  GetRequest request;
  request.paths = {PathNamed("CONFIG_DB:/PORT"), PathNamed("CONFIG_DB:/QUEUE/Ethernet0|3")};
  request.type = DataType::kConfig;
  const auto wire = ToWire(request);
  ASSERT_TRUE(wire);
  EXPECT_EQ(wire->prefix().target(), "CONFIG_DB");
  EXPECT_EQ(wire->prefix().elem_size(), 0);
  ASSERT_EQ(wire->path_size(), 2);
  EXPECT_EQ(wire->path(0).target(), "");
  EXPECT_EQ(wire->path(1).elem(1).name(), "Ethernet0|3");
  EXPECT_EQ(wire->encoding(), ::gnmi::JSON_IETF);
  EXPECT_EQ(wire->type(), ::gnmi::GetRequest::CONFIG);
}

TEST(Wire, SendsSubscriptionsWithTheirModes) {
  SubscribeRequest request;
  request.mode = SubscribeRequest::Mode::kStream;
  Subscription sample{PathNamed("openconfig:/a[k=v]")};
  sample.interval = seconds(10);
  sample.suppress_redundant = true;
  Subscription change{PathNamed("openconfig:/b"), Subscription::Mode::kOnChange};
  change.interval = seconds(5);  // says nothing in this mode
  change.heartbeat = seconds(60);
  request.subscriptions = {sample, change, {PathNamed("openconfig:/c"), Subscription::Mode::kTargetDefined}};
  request.encoding = Encoding::kJson;
  request.updates_only = true;
  const auto wire = ToWire(request);
  ASSERT_TRUE(wire);
  const ::gnmi::SubscriptionList& list = wire->subscribe();
  EXPECT_EQ(list.mode(), ::gnmi::SubscriptionList::STREAM);
  EXPECT_EQ(list.encoding(), ::gnmi::JSON);
  EXPECT_TRUE(list.updates_only());
  ASSERT_EQ(list.subscription_size(), 3);
  EXPECT_EQ(list.subscription(0).mode(), ::gnmi::SAMPLE);
  EXPECT_EQ(list.subscription(0).sample_interval(), 10'000'000'000u);
  EXPECT_TRUE(list.subscription(0).suppress_redundant());
  EXPECT_EQ(list.subscription(0).path().origin(), "openconfig");
  EXPECT_EQ(list.subscription(0).path().elem(0).key().at("k"), "v");
  EXPECT_EQ(list.subscription(1).mode(), ::gnmi::ON_CHANGE);
  EXPECT_EQ(list.subscription(1).sample_interval(), 0u);
  EXPECT_EQ(list.subscription(1).heartbeat_interval(), 60'000'000'000u);
  EXPECT_EQ(list.subscription(2).mode(), ::gnmi::TARGET_DEFINED);
}

TEST(Wire, RefusesRequestsThatCannotBe) {
  EXPECT_EQ(ToWire(GetRequest()).error().code, Code::kInvalid);
  EXPECT_EQ(ToWire(SubscribeRequest()).error().code, Code::kInvalid);
  GetRequest two;
  two.paths = {PathNamed("CONFIG_DB:/PORT"), PathNamed("APPL_DB:/PORT_TABLE")};
  EXPECT_THAT(ToWire(two).error().message, HasSubstr("two targets, CONFIG_DB and APPL_DB"));
  GetRequest unnamed;
  unnamed.paths = {{"", "", {{"", {}}}}};
  EXPECT_THAT(ToWire(unnamed).error().message, HasSubstr("no name"));
  GetRequest bytes;
  bytes.paths = {{"", "", {{"\xff", {}}}}};
  EXPECT_THAT(ToWire(bytes).error().message, HasSubstr("UTF-8"));
}

TEST(Wire, JoinsPrefixAndPath) {
  ::gnmi::Path prefix, path;
  prefix.set_target("COUNTERS_DB");
  prefix.set_origin("sonic-db");
  Add(prefix, {"COUNTERS"});
  Add(path, {"Ethernet0"});
  (*path.add_elem()->mutable_key())["k"] = "v";
  path.mutable_elem(1)->set_name("x");
  EXPECT_EQ(FormatPath(*PathOf(prefix, path)), "COUNTERS_DB:sonic-db:/COUNTERS/Ethernet0/x[k=v]");
  path.set_origin("other");
  EXPECT_EQ(PathOf(prefix, path)->origin, "other");
}

TEST(Wire, ReadsThePathsOfOldAgents) {
  ::gnmi::Path path;
  path.add_element("a");
  path.add_element("b");
  EXPECT_EQ(FormatPath(*PathOf({}, path)), "/a/b");
}

TEST(Wire, RefusesPathsOverTheBounds) {
  ::gnmi::Path prefix, path;
  for (std::size_t i = 0; i < kMaxElems; ++i) prefix.add_elem()->set_name("a");
  EXPECT_TRUE(PathOf(prefix, {}));
  Add(path, {"a"});
  EXPECT_EQ(PathOf(prefix, path).error().code, Code::kTooLarge);
  ::gnmi::Path large, unnamed;
  large.add_elem()->set_name(std::string(kMaxPathBytes + 1, 'a'));
  EXPECT_EQ(PathOf({}, large).error().code, Code::kTooLarge);
  unnamed.add_elem();
  EXPECT_EQ(PathOf({}, unnamed).error().code, Code::kInvalid);
}

TEST(Wire, ReadsANoticeAndTellsOfEachValueThatItCannotRead) {
  ::gnmi::Notification from;
  from.set_timestamp(-5);
  Add(*from.mutable_prefix(), {"PORT"});
  Add(*from.add_delete_(), {"Ethernet8"});
  ::gnmi::Update& good = *from.add_update();
  Add(*good.mutable_path(), {"Ethernet0"});
  good.mutable_val()->set_json_ietf_val(R"({"mtu":"9100"})");
  Add(*from.add_update()->mutable_path(), {"Ethernet4"});
  ::gnmi::Update& bad = *from.add_update();
  bad.mutable_val()->set_json_ietf_val("{");
  const auto notice = NoticeOf(from, "CONFIG_DB", {});
  ASSERT_TRUE(notice) << notice.error().message;
  EXPECT_EQ(notice->timestamp_ns, -5);
  EXPECT_THAT(notice->deletes, ElementsAre(PathNamed("CONFIG_DB:/PORT/Ethernet8")));
  ASSERT_EQ(notice->updates.size(), 3u);
  EXPECT_EQ(FormatPath(notice->updates[0].path), "CONFIG_DB:/PORT/Ethernet0");
  EXPECT_EQ(*notice->updates[0].json, R"({"mtu":"9100"})");
  EXPECT_EQ(notice->updates[1].json.error().message, "no value");
  EXPECT_EQ(TreeOf(*notice->updates[2].json).error().message, "no JSON");
}

TEST(Wire, BoundsAnswers) {
  ::gnmi::GetResponse answer;
  for (int i = 0; i < 3; ++i) {
    ::gnmi::Notification& notification = *answer.add_notification();
    notification.add_update()->mutable_val()->set_json_val("[1,2]");
    notification.add_delete_();
  }
  EXPECT_EQ(NoticesOf(answer, "", {})->size(), 3u);
  EXPECT_TRUE(NoticesOf(answer, "", {.updates = 6, .values = 9}));
  const auto updates = NoticesOf(answer, "", {.updates = 5, .values = 9});
  ASSERT_FALSE(updates);
  EXPECT_EQ(updates.error().code, Code::kTooLarge);
  const auto values = NoticesOf(answer, "", {.updates = 6, .values = 8});
  ASSERT_FALSE(values);
  EXPECT_EQ(values.error().code, Code::kTooLarge);
  EXPECT_EQ(NoticesOf(answer, "", {.updates = 2, .values = 9}).error().code, Code::kTooLarge);
}

TEST(Wire, ReadsCapabilitiesAndPassesOverWhatItDoesNotKnow) {
  ::gnmi::CapabilityResponse answer;
  answer.set_gnmi_version("0.7.0\n");
  ::gnmi::ModelData& model = *answer.add_supported_models();
  model.set_name("sonic-db");
  model.set_organization("SONiC");
  model.set_version("0.1.0");
  answer.add_supported_encodings(::gnmi::JSON_IETF);
  answer.add_supported_encodings(::gnmi::Encoding(77));
  const ServerCapabilities capabilities = CapabilitiesOf(answer);
  EXPECT_EQ(capabilities.gnmi_version, "0.7.0");
  EXPECT_THAT(capabilities.models, ElementsAre(Model{"sonic-db", "SONiC", "0.1.0"}));
  EXPECT_THAT(capabilities.encodings, ElementsAre(Encoding::kJsonIetf));
}

TEST(SilenceLimit, IsThriceWhatBringsAMessageInAnyCase) {
  const auto limit = [](const Subscription& a, const Subscription& b) { return SilenceLimit({a, b}); };
  Subscription ten, fast, suppressed, change, beating;
  ten.interval = seconds(10);
  fast.interval = milliseconds(1500);
  suppressed.interval = seconds(1);
  suppressed.suppress_redundant = true;
  change.mode = Subscription::Mode::kOnChange;
  change.interval = seconds(1);
  beating.mode = Subscription::Mode::kOnChange;
  beating.heartbeat = seconds(30);
  EXPECT_EQ(limit(ten, ten), seconds(31));
  EXPECT_EQ(limit(ten, fast), milliseconds(5500));
  EXPECT_EQ(limit(ten, suppressed), seconds(31));
  EXPECT_EQ(limit(change, suppressed), seconds(0)) << "both may be silent for ever";
  EXPECT_EQ(limit(change, beating), seconds(91));
  beating.heartbeat = std::chrono::nanoseconds::max();
  EXPECT_EQ(limit(change, beating), std::chrono::hours(72) + seconds(1));
  EXPECT_EQ(SilenceLimit({}), seconds(0));
}

}  // namespace
}  // namespace heddle::gnmi
