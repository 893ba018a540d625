#include "extender/daemon.h"

#include <gtest/gtest.h>

#include "tests/support/fake_api_server.h"
#include "tests/support/fake_clock.h"

namespace heddle::extender {
namespace {

// Its port is not on loopback: the kubelet and Prometheus ask there.
TEST(Daemon, AnswersNoVerbsWhereItOnlyObserves) {
  test::FakeClock clock;
  test::FakeApiServer server(clock);
  for (const Mode mode : {Mode::kPlace, Mode::kObserve}) {
    DaemonOptions options;
    options.mode = mode;
    Daemon daemon(server, clock, base::Random(1), options);
    const int verbs = mode == Mode::kPlace ? 200 : 404;
    const kube::ServedRequest filter{"POST", "/filter", R"({"Pod":{},"NodeNames":["n1"]})"};
    const kube::ServedRequest prioritize{"POST", "/prioritize", R"({"Pod":{},"NodeNames":["n1"]})"};
    const kube::ServedRequest preempt{"POST", "/preempt", R"({"Pod":{},"NodeNameToMetaVictims":{}})"};
    EXPECT_EQ(daemon.Answer(filter).status, verbs);
    EXPECT_EQ(daemon.Answer(prioritize).status, verbs);
    EXPECT_EQ(daemon.Answer(preempt).status, verbs);
    EXPECT_EQ(daemon.Answer({"GET", "/healthz", ""}).status, 200);
    EXPECT_EQ(daemon.Answer({"GET", "/metrics", ""}).status, 200);
    EXPECT_EQ(daemon.Answer({"GET", "/readyz", ""}).status, 503) << "nothing has been read";
  }
}

}  // namespace
}  // namespace heddle::extender
