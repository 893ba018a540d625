#include "nodeagent/qos/journal.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "qos_bed.h"

namespace heddle::nodeagent {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class QosJournal : public testing::Test {
 protected:
  QosJournal() : folder_(fs::path(testing::TempDir()) / ("qos-journal-" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
  }
  ~QosJournal() override { fs::remove_all(folder_); }

  static PortRecord Full(const std::string& port = "mlx5_0:1") {
    PortRecord record;
    record.port = port;
    record.edition = {"roce", 7, "2f0e6a3c"};
    record.subject = "0123456789abcdef";
    record.applied = record.pause_off = true;
    record.conflict = "lldpad \"again\"";
    record.boot = "4f0c";
    record.repairs = {base::WallTime{std::chrono::seconds(1'800'000'000)}};
    record.unsupported[lossless::Setting::kWatchdogMs] = "the driver has none";
    record.crashes = 1;
    UnsettledWrite write;
    write.port = PortOf(port);
    write.want = AsWanted();
    write.before = Fresh();
    write.settings = {lossless::Setting::kTrust, lossless::Setting::kPfc};
    write.roce1 = true;
    write.link = {true, 3, {{"rx_crc_errors_phy", 9}}};
    write.noise = {{"rx_crc_errors_phy", 2}};
    write.noise_seconds = 15;
    write.starts = 2;
    write.undone = 1;
    write.back = true;
    write.why = "no carrier";
    write.about = AboutOf(record);
    record.unsettled = write;
    return record;
  }
  void Put(const std::string& name, const std::string& text) const {
    fs::create_directories(folder_);
    std::ofstream(folder_ / name) << text;
  }

  const fs::path folder_;
};

TEST_F(QosJournal, KeepsARecordAcrossAgents) {
  ASSERT_TRUE(OpenJournal(folder_)->Put(Full()));
  ASSERT_TRUE(OpenJournal(folder_)->Put(Full("mlx5_1/../x:1")));
  const auto loaded = OpenJournal(folder_)->Load();
  EXPECT_THAT(loaded.problems, IsEmpty());
  EXPECT_THAT(loaded.records, ElementsAre(Full(), Full("mlx5_1/../x:1")));
  ASSERT_TRUE(OpenJournal(folder_)->Remove("mlx5_1/../x:1"));
  ASSERT_TRUE(OpenJournal(folder_)->Remove("mlx5_1/../x:1"));
  EXPECT_THAT(OpenJournal(folder_)->Load().records, SizeIs(1));
  EXPECT_THAT(std::vector<fs::directory_entry>(fs::directory_iterator(folder_), {}), SizeIs(1));
}

TEST_F(QosJournal, IsEmptyWhereThereIsNoFolderYet) {
  const auto loaded = OpenJournal(folder_ / "none")->Load();
  EXPECT_THAT(loaded.records, IsEmpty());
  EXPECT_THAT(loaded.problems, IsEmpty());
}

TEST_F(QosJournal, NamesFilesThatMakeNoSenseAndReadsTheOthers) {
  ASSERT_TRUE(OpenJournal(folder_)->Put(Full()));
  Put("mlx5_1:1.json", "{\"version\": 1, \"port\": 3");
  Put("mlx5_2:1.json", *RecordText(Full("mlx5_7:1")));
  Put("mlx5_3:1.json.new", "half of a write");
  const auto loaded = OpenJournal(folder_)->Load();
  EXPECT_THAT(loaded.records, SizeIs(1));
  EXPECT_THAT(loaded.problems, ElementsAre(HasSubstr("mlx5_1:1.json.bad cannot be read"),
                                           HasSubstr("it is the record of mlx5_7:1")));
}

TEST_F(QosJournal, KeepsAFileThatMakesNoSenseBesideTheNextRecordOfItsPort) {
  const std::string name = "mlx5_0:1.json";
  Put(name, "half of a record");
  const auto journal = OpenJournal(folder_);
  EXPECT_THAT(journal->Load().problems, ElementsAre(HasSubstr(name + ".bad cannot be read")));
  ASSERT_TRUE(journal->Put(Full()));
  std::string kept;
  std::getline(std::ifstream(folder_ / (name + ".bad")), kept);
  EXPECT_EQ(kept, "half of a record");
  const auto again = OpenJournal(folder_)->Load();
  EXPECT_THAT(again.records, ElementsAre(Full()));
  EXPECT_THAT(again.problems, ElementsAre(HasSubstr(name + ".bad cannot be read")));
  fs::remove(folder_ / (name + ".bad"));
  EXPECT_THAT(OpenJournal(folder_)->Load().problems, IsEmpty());
}

TEST_F(QosJournal, ReadsAWriteOfAnAgentThatKeptLessOfIt) {
  std::string text = *RecordText(Full());
  const std::string line = "\"roce1\": true,";
  ASSERT_NE(text.find(line), std::string::npos);
  text.erase(text.find(line), line.size());
  const std::string seconds = "\"noiseSeconds\": 15,";
  ASSERT_NE(text.find(seconds), std::string::npos);
  text.erase(text.find(seconds), seconds.size());
  const std::string uid = "\"policyUid\": \"2f0e6a3c\",";
  ASSERT_NE(text.find(uid), std::string::npos);
  text.erase(text.find(uid), uid.size());
  const std::string undone = "\"undone\": 1,";
  ASSERT_NE(text.find(undone), std::string::npos);
  text.erase(text.find(undone), undone.size());
  const auto record = ParseRecord(text);
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->edition.uid, "");
  EXPECT_FALSE(record->unsettled->roce1);
  EXPECT_EQ(record->unsettled->noise_seconds, 0);
  EXPECT_EQ(record->unsettled->undone, 0);
}

TEST_F(QosJournal, RefusesWhatItCouldNotReadBack) {
  PortRecord record = Full();
  record.unsettled->before.cable_metres = 4000;  // out of range
  EXPECT_FALSE(RecordText(record));
  record = Full();
  record.failed = "\xff";
  EXPECT_FALSE(RecordText(record));
  EXPECT_THAT(OpenJournal("/proc/heddle")->Put(Full()).error().message, HasSubstr("/proc/heddle"));
}

TEST_F(QosJournal, RefusesACountThatIsNone) {
  std::string text = *RecordText(Full());
  const std::string undone = "\"undone\": 1";
  ASSERT_NE(text.find(undone), std::string::npos);
  text.replace(text.find(undone), undone.size(), "\"undone\": -1");
  EXPECT_THAT(ParseRecord(text).error().message, HasSubstr("undone"));
}

// The library cuts such a number off: 4294967297 would be 1.
TEST_F(QosJournal, RefusesANumberBeyondItsBounds) {
  const std::string text = *RecordText(Full());
  for (const char* number : {"4294967297", "-1", "1.5", "18446744073709551615"}) {
    std::string damaged = text;
    const std::size_t at = damaged.find("\"crashes\": 1");
    ASSERT_NE(at, std::string::npos);
    damaged.replace(at, std::string_view("\"crashes\": 1").size(), std::string("\"crashes\": ") + number);
    const auto record = ParseRecord(damaged);
    ASSERT_FALSE(record) << number;
    EXPECT_THAT(record.error().message, HasSubstr("crashes"));
  }
}

TEST_F(QosJournal, AnyDamagedByteIsRefusedOrRead) {
  const std::string text = *RecordText(Full());
  int refused = 0;
  for (std::size_t cut = 0; cut < text.size(); ++cut) refused += ParseRecord(text.substr(0, cut)) ? 0 : 1;
  EXPECT_GE(refused, int(text.size()) - 2);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = '7';
    const auto record = ParseRecord(damaged);
    EXPECT_TRUE(record || !record.error().message.empty());
  }
}

}  // namespace
}  // namespace heddle::nodeagent
