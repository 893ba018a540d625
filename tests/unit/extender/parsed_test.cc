#include "extender/parsed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace heddle::extender {
namespace {

using ::testing::ElementsAre;

kube::ObjectPtr Object(const std::string& name) {
  return std::make_shared<const kube::Json>(
      kube::Json{{"metadata", {{"namespace", "train"}, {"name", name}}}});
}

// Reads names, and notes which; "bad" cannot be read.
class ParsedNames : public ::testing::Test {
 protected:
  std::vector<std::string> Words(const base::SharedList<std::shared_ptr<const std::string>>& values) {
    std::vector<std::string> words;
    for (const auto& value : values) words.push_back(value == nullptr ? "-" : *value);
    return words;
  }

  std::vector<std::string> read_;
  Parsed<std::string> names_{[this](const kube::Json& object) {
    read_.push_back(kube::Name(object));
    return read_.back() == "bad" ? nullptr : std::make_shared<const std::string>(read_.back());
  }};
  const kube::ObjectPtr a_ = Object("a"), bad_ = Object("bad"), c_ = Object("c"), d_ = Object("d"),
                        e_ = Object("e");
};

TEST_F(ParsedNames, AreReadOnceWhileTheirObjectsStand) {
  EXPECT_THAT(Words(names_.All({a_, bad_, c_})), ElementsAre("a", "c"));
  EXPECT_THAT(read_, ElementsAre("a", "bad", "c"));
  EXPECT_THAT(Words(names_.All({a_, bad_, Object("c"), d_})), ElementsAre("a", "c", "d"));
  EXPECT_THAT(read_, ElementsAre("a", "bad", "c", "c", "d"))
      << "another object of the same name, and a new one";
}

TEST_F(ParsedNames, AreTheVeryListOfTheLastTimeForTheSameListOfObjects) {
  const kube::SortedObjects objects{a_, bad_};
  const auto values = names_.All(objects);
  EXPECT_TRUE(values.SharesWith(names_.All(objects)));
  EXPECT_THAT(Words(names_.All({a_, c_})), ElementsAre("a", "c"));
  EXPECT_THAT(Words(names_.All(objects)), ElementsAre("a"));
  EXPECT_THAT(Words(values), ElementsAre("a")) << "who has a list keeps it";
}

TEST_F(ParsedNames, AreGivenOfSomeObjectsWithoutReadingThemAgain) {
  names_.All({a_, bad_, c_, d_, e_});
  read_.clear();
  EXPECT_THAT(Words(names_.Some({a_, bad_, c_})), ElementsAre("a", "-", "c"));
  EXPECT_THAT(Words(names_.Some({bad_, e_})), ElementsAre("-", "e")) << "others stand between them";
  EXPECT_THAT(Words(names_.Some({e_})), ElementsAre("e"));
  EXPECT_THAT(Words(names_.Some({})), ElementsAre());
  EXPECT_THAT(read_, ElementsAre());
}

TEST_F(ParsedNames, AreReadAnewOfWhatChangedOrCame) {
  names_.All({a_, c_, e_});
  read_.clear();
  const kube::ObjectPtr changed = Object("c");
  EXPECT_THAT(Words(names_.Some({a_, changed, d_, e_, Object("f")})), ElementsAre("a", "c", "d", "e", "f"));
  EXPECT_THAT(read_, ElementsAre("c", "d", "f"));
  read_.clear();
  names_.All({a_, c_, e_});
  EXPECT_THAT(read_, ElementsAre()) << "what was asked between is not what is kept";
}

}  // namespace
}  // namespace heddle::extender
