#include "cli/read_path.h"

#include <gmock/gmock.h>

namespace heddle::cli {
namespace {

using testing::HasSubstr;

// An unset variable of a script makes an empty word.
TEST(ReadPath, SaysWhatIsNoFile) {
  EXPECT_EQ(ReadPath("").error().message, "\"\" names no file");
  EXPECT_THAT(ReadPath("/nowhere/x").error().message, HasSubstr("/nowhere/x cannot be read: No such file"));
  EXPECT_THAT(ReadPath(HEDDLE_SOURCE_DIR).error().message, HasSubstr("Is a directory; name the files in it"));
}

}  // namespace
}  // namespace heddle::cli
