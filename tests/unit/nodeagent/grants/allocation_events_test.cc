#include "nodeagent/grants/allocation_events.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "tests/support/fake_clock.h"

namespace heddle::nodeagent {
namespace {

namespace fs = std::filesystem;

class AllocationEventsTest : public testing::Test {
 protected:
  AllocationEventsTest() {
    std::string name = (fs::temp_directory_path() / "heddle-plugins-XXXXXX").string();
    top_ = ::mkdtemp(name.data());
    folder_ = top_ / "device-plugins";
  }
  ~AllocationEventsTest() override {
    thread_ = {};
    fs::remove_all(top_);
  }

  void Start() {
    thread_ = std::jthread([this](std::stop_token stop) {
      AllocationEvents(folder_.string(), clock_)
          .Run(
              [this] {
                const std::lock_guard lock(mutex_);
                ++events_;
                heard_.notify_all();
              },
              std::move(stop));
    });
  }
  // As the kubelet does it: beside, and then by a rename.
  void WriteCheckpoint() {
    std::ofstream(folder_ / ".checkpoint.tmp") << "{}";
    fs::rename(folder_ / ".checkpoint.tmp", folder_ / "kubelet_internal_checkpoint");
  }
  // Writes until one is heard: when the watch begins, nobody says.
  bool HearsWrites() {
    std::unique_lock lock(mutex_);
    const int before = events_;
    for (int i = 0; i < 1'000 && events_ == before; ++i) {
      WriteCheckpoint();
      heard_.wait_for(lock, std::chrono::milliseconds(20), [&] { return events_ > before; });
    }
    return events_ > before;
  }

  fs::path top_, folder_;
  test::FakeClock clock_;
  std::mutex mutex_;
  std::condition_variable heard_;
  int events_ = 0;
  std::jthread thread_;
};

TEST_F(AllocationEventsTest, HearsThatTheKubeletWroteItsCheckpoint) {
  fs::create_directory(folder_);
  Start();
  EXPECT_TRUE(HearsWrites());
}

TEST_F(AllocationEventsTest, WaitsForAFolderThatIsNotThereYet) {
  Start();
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  fs::create_directory(folder_);
  clock_.Advance(std::chrono::minutes(1));
  EXPECT_TRUE(HearsWrites());
}

TEST_F(AllocationEventsTest, WatchesAgainAfterTheFolderWasMadeAnew) {
  fs::create_directory(folder_);
  Start();
  ASSERT_TRUE(HearsWrites());
  fs::remove_all(folder_);
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  fs::create_directory(folder_);
  clock_.Advance(std::chrono::minutes(1));
  EXPECT_TRUE(HearsWrites());
}

TEST_F(AllocationEventsTest, EndsWhenAskedWhateverItWaitsFor) {
  Start();
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  thread_ = {};
  fs::create_directory(folder_);
  Start();
  ASSERT_TRUE(HearsWrites());
  thread_ = {};
  EXPECT_FALSE(thread_.joinable());
}

}  // namespace
}  // namespace heddle::nodeagent
