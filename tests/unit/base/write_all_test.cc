#include "base/write_all.h"

#include <gmock/gmock.h>

#include <memory>

namespace heddle::base {
namespace {

using testing::HasSubstr;

struct CloseWritten {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using Written = std::unique_ptr<std::FILE, CloseWritten>;

// A short text stands in the stream's buffer until it is flushed, a long one does not.
TEST(WriteAll, SaysThatTheDiskIsFull) {
  for (const std::size_t length : {std::size_t{1}, std::size_t{1} << 20}) {
    const Written full(std::fopen("/dev/full", "wb"));
    if (full == nullptr) GTEST_SKIP() << "no /dev/full here";
    const Status written = WriteAll(std::string(length, 'x'), full.get());
    ASSERT_FALSE(written) << length;
    EXPECT_THAT(written.error().message, HasSubstr("standard output cannot be written: No space left"));
  }
}

TEST(WriteAll, WritesWhatHasZerosInIt) {
  const Written file(std::tmpfile());
  ASSERT_TRUE(file != nullptr);
  const std::string text("a\0b\n", 4);
  ASSERT_TRUE(WriteAll(text, file.get()));
  std::rewind(file.get());
  std::string read(8, ' ');
  read.resize(std::fread(read.data(), 1, read.size(), file.get()));
  EXPECT_EQ(read, text);
}

}  // namespace
}  // namespace heddle::base
