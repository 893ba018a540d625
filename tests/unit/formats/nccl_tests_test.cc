#include "formats/nccl_tests.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "nccl_text.h"

namespace heddle::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

std::string ErrorOf(const std::string& text) {
  const auto read = ParseNcclTests(text);
  EXPECT_FALSE(read) << text;
  return read ? "" : read.error().message;
}

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

TEST(NcclTests, ReadsBothWaysOfEverySize) {
  const auto read = ParseNcclTests(test::kAllReducePerf);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_THAT(read->tables, SizeIs(1));
  const NcclTestTable& table = read->tables[0];
  EXPECT_EQ(table.program, "all_reduce_perf");
  EXPECT_THAT(table.hosts, ElementsAre("nccl-worker-0", "nccl-worker-0", "nccl-worker-1", "nccl-worker-1"));
  ASSERT_THAT(table.rows, SizeIs(3));
  EXPECT_EQ(table.rows[0], (NcclTestRow{.line = 14,
                                        .bytes = 67108864,
                                        .out_of_place = NcclTestTime{812.45, 123.90, 0},
                                        .in_place = NcclTestTime{809.11, 124.41, 0}}));
  EXPECT_EQ(table.rows[2].out_of_place->micros, 3100);
  EXPECT_EQ(table.out_of_bounds, 0);
  EXPECT_FALSE(read->sockets || read->rdma || read->gdr);
}

TEST(NcclTests, ReadsWhatMpirunTagged) {
  const auto read = ParseNcclTests(test::kTaggedAllToAll);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_THAT(read->tables, SizeIs(1));
  const NcclTestTable& table = read->tables[0];
  EXPECT_EQ(table.program, "");
  EXPECT_THAT(table.hosts, ElementsAre("gpu-01", "gpu-02"));
  ASSERT_THAT(table.rows, SizeIs(2));
  EXPECT_EQ(table.rows[1].out_of_place->wrong, 16);
  EXPECT_EQ(table.rows[1].in_place->wrong, std::nullopt) << "N/A is no zero";
  EXPECT_EQ(table.out_of_bounds, 1);
  EXPECT_TRUE(read->rdma && read->gdr);
  EXPECT_FALSE(read->sockets);
}

TEST(NcclTests, ReadsOldTablesWithoutOpAndRoot) {
  const auto read = ParseNcclTests(test::kOldAllGather);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_THAT(read->tables[0].rows, SizeIs(1));
  EXPECT_EQ(read->tables[0].rows[0].out_of_place, (NcclTestTime{29122, 129.05, std::nullopt}))
      << "the largest error is no count";
  EXPECT_EQ(read->tables[0].out_of_bounds, 2);
}

// Versions before 2020 had redop in the header of alltoall_perf and nothing below it.
TEST(NcclTests, ReadsRowsThatLackAColumnOfTheHeader) {
  const auto read = ParseNcclTests(
      "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  "
      "error\n"
      "        1024            32   float            28.52    0.04    0.03  0e+00    27.43    0.04    0.03  "
      "1e+00\n");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->tables[0].rows[0].out_of_place->micros, 28.52);
  EXPECT_EQ(read->tables[0].rows[0].in_place->micros, 27.43);
  EXPECT_EQ(read->tables[0].out_of_bounds, std::nullopt);
}

// -M, --report_timestamps and --per_iter put more columns there.
TEST(NcclTests, PassesOverColumnsThatItDoesNotKnow) {
  const auto read = ParseNcclTests(
      "#  size count type redop root cputime algbw busbw #wrong i_min i_max i_p99 i_cv% cputime algbw busbw "
      "#wrong "
      "i_min i_max i_p99 i_cv%           timestamp\n"
      "  1024 256 float sum 0 10.0 0.10 0.15 0 9 11 11 5 12.0 0.08 0.12 0 10 14 14 6  2026-11-25 03:00:00\n");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->tables[0].rows[0].out_of_place->micros, 10);
  EXPECT_EQ(read->tables[0].rows[0].in_place->micros, 12);
}

TEST(NcclTests, TellsRunsApart) {
  const auto read = ParseNcclTests(test::kAllReducePerf + test::kTaggedAllToAll + test::kOldAllGather);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_THAT(read->tables, SizeIs(3));
  EXPECT_THAT(read->tables[0].rows, SizeIs(3));
  EXPECT_THAT(read->tables[1].rows, SizeIs(2));
  EXPECT_THAT(read->tables[2].rows, SizeIs(1));
  EXPECT_THAT(read->tables[1].hosts, SizeIs(2));
}

TEST(NcclTests, PassesOverWhatKubectlPutsBeforeALine) {
  std::string marked;
  for (std::size_t at = 0; at < test::kAllReducePerf.size();) {
    const std::size_t end = test::kAllReducePerf.find('\n', at);
    marked += "[pod/nccl-launcher-x7k2p/mpirun] 2026-11-25T03:27:40.123456789Z " +
              test::kAllReducePerf.substr(at, end - at) + "\r\n";
    at = end + 1;
  }
  const auto read = ParseNcclTests(marked), plain = ParseNcclTests(test::kAllReducePerf);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->tables, plain->tables);
}

TEST(NcclTests, SeesSockets) {
  const auto read = ParseNcclTests("gpu-1:7:7 [0] NCCL INFO Using network Socket\n" + test::kAllReducePerf);
  EXPECT_TRUE(read && read->sockets && !read->rdma);
}

TEST(NcclTests, RefusesWhatIsNoTableInASentence) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("there is no table of nccl-tests in it"));
  EXPECT_THAT(ErrorOf("hello\n1 2 3\n"), HasSubstr("there is no table of nccl-tests in it"));
  const std::string header = test::kAllReducePerf.substr(0, test::kAllReducePerf.find("    67108864 "));
  EXPECT_THAT(ErrorOf(header + "nccl-worker-0: Test NCCL failure common.cu:1279 'unhandled system error'\n"),
              HasSubstr("the run ended before its first result"));
}

TEST(NcclTests, NamesTheLineThatIsWrong) {
  EXPECT_THAT(ErrorOf(test::kAllReducePerf.substr(0, test::kAllReducePerf.find("1533.02"))),
              HasSubstr("line 15: it has fewer columns"));
  EXPECT_THAT(ErrorOf(Replaced(test::kAllReducePerf, "1533.02", "   fast")),
              HasSubstr("line 15: `fast` is no result"));
  EXPECT_THAT(ErrorOf(Replaced(test::kAllReducePerf, "1533.02", "    nan")), HasSubstr("line 15"));
  EXPECT_THAT(ErrorOf(Replaced(test::kAllReducePerf, "1533.02", "  -1533")), HasSubstr("line 15"));
}

TEST(NcclTests, EndsSomewhere) {
  std::string text = test::kOldAllGather.substr(0, test::kOldAllGather.find("  4294967296"));
  for (std::size_t row = 0; row <= kMaxNcclTestRows; ++row) text += "8 2 float 1 1 1 0e+00 1 1 1 0e+00\n";
  EXPECT_THAT(ErrorOf(text), HasSubstr("more than 4096 rows"));
  std::string many;
  for (std::size_t table = 0; table < kMaxNcclTestTables + 2; ++table) many += test::kOldAllGather;
  EXPECT_THAT(ErrorOf(many), HasSubstr("more than 64 tables"));
}

}  // namespace
}  // namespace heddle::formats
