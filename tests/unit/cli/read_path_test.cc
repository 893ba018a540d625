#include "cli/read_path.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace heddle::cli {
namespace {

using testing::HasSubstr;

// An unset variable of a script makes an empty word.
TEST(ReadPath, SaysWhatIsNoFile) {
  EXPECT_EQ(ReadPath("").error().message, "\"\" names no file");
  EXPECT_THAT(ReadPath("/nowhere/x").error().message, HasSubstr("/nowhere/x cannot be read: No such file"));
  EXPECT_THAT(ReadPath(HEDDLE_SOURCE_DIR).error().message, HasSubstr("Is a directory; name the files in it"));
}

TEST(ReadPath, LeavesOutTheByteOrderMarkOfWindowsEditors) {
  const std::string path = testing::TempDir() + "heddle-read-path-" + std::to_string(getpid());
  const auto read = [&path](const std::string& text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
    return ReadPath(path).value_or("unread");
  };
  EXPECT_EQ(read("\xEF\xBB\xBF"
                 "SwitchName=a Nodes=n1\n"),
            "SwitchName=a Nodes=n1\n");
  EXPECT_EQ(read("\xEF\xBB\xBF"), "");
  EXPECT_EQ(read("\xEF\xBB"), "\xEF\xBB");
  EXPECT_EQ(read("a\xEF\xBB\xBF"), "a\xEF\xBB\xBF") << "further down it is text";
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace heddle::cli
