#include "operator/page/journal.h"

#include <gmock/gmock.h>

#include "kube/object.h"

namespace heddle::operators::page {
namespace {

using kube::Json;

Pieces TwoNodes() {
  return {.sources = "[]", .fabrics = "[]", .nodes = {{"a", R"(["a",1])"}, {"b", R"(["b",1])"}}, .gangs = {}};
}

class JournalTest : public testing::Test {
 protected:
  Json Since(const std::string& revision) const {
    const auto text = journal.Since(revision);
    return text ? Json::parse(*text) : Json();
  }
  Journal journal{"abc"};
};

TEST_F(JournalTest, TellsEverythingToWhoKnowsNothing) {
  EXPECT_EQ(Since(""), Json()) << "before the first view there is nothing to tell";
  EXPECT_TRUE(journal.Update(TwoNodes()));
  const Json all = Since("");
  EXPECT_EQ(all["full"], true);
  EXPECT_EQ(all["revision"], "abc-1");
  EXPECT_EQ(all["nodes"], Json::parse(R"([["a",1],["b",1]])"));
}

TEST_F(JournalTest, TellsOnlyWhatIsNewer) {
  journal.Update(TwoNodes());
  Pieces pieces = TwoNodes();
  pieces.nodes["b"] = R"(["b",2])";
  pieces.gangs["x/y"] = R"({"key":"x/y"})";
  EXPECT_TRUE(journal.Update(pieces));
  const Json news = Since("abc-1");
  EXPECT_EQ(news["full"], false);
  EXPECT_EQ(news["nodes"], Json::parse(R"([["b",2]])"));
  EXPECT_EQ(news["gangs"], Json::parse(R"([{"key":"x/y"}])"));
  EXPECT_FALSE(news.contains("fabrics"));
  EXPECT_EQ(Since("abc-2"), Json());
}

TEST_F(JournalTest, TellsHowManyGangsAreLeftOutWhereThatIsNew) {
  journal.Update(TwoNodes());
  EXPECT_EQ(Since("")["gangsLeftOut"], 0);
  Pieces pieces = TwoNodes();
  pieces.gangs_left_out = 7;
  EXPECT_TRUE(journal.Update(pieces));
  EXPECT_EQ(Since("abc-1")["gangsLeftOut"], 7);
  pieces.nodes["b"] = R"(["b",2])";
  EXPECT_TRUE(journal.Update(pieces));
  EXPECT_FALSE(Since("abc-2").contains("gangsLeftOut"));
}

TEST_F(JournalTest, NothingNewIsNoRevision) {
  EXPECT_TRUE(journal.Update(TwoNodes()));
  EXPECT_FALSE(journal.Update(TwoNodes()));
  EXPECT_EQ(journal.revision(), "abc-1");
}

TEST_F(JournalTest, SaysWhatIsGoneAndForgetsItWhenItComesBack) {
  journal.Update(TwoNodes());
  Pieces without = TwoNodes();
  without.nodes.erase("a");
  journal.Update(without);
  EXPECT_EQ(Since("abc-1")["goneNodes"], Json({"a"}));
  EXPECT_FALSE(Since("").contains("goneNodes"));
  journal.Update(TwoNodes());
  EXPECT_FALSE(Since("abc-1").contains("goneNodes"));
  EXPECT_EQ(Since("abc-2")["nodes"], Json::parse(R"([["a",1]])"));
}

TEST_F(JournalTest, WhatIsNoRevisionOfThisProcessGetsEverything) {
  journal.Update(TwoNodes());
  for (const char* since :
       {"abd-1", "abc-2", "abc-", "abc", "abc-1x", "abc-99999999999999999999", "-1", "ab", "\xff"})
    EXPECT_EQ(Since(since)["full"], true) << since;
}

TEST_F(JournalTest, ForgetsWhatWentLongAgoAndThenTellsEverything) {
  for (int i = 0; i < 5000; ++i) {
    Pieces pieces = TwoNodes();
    pieces.nodes["node-" + std::to_string(i)] = "[]";
    journal.Update(pieces);
  }
  EXPECT_EQ(Since("abc-1")["full"], true);
  EXPECT_EQ(Since("abc-4999")["full"], false);
  EXPECT_EQ(Since("abc-4999")["goneNodes"], Json({"node-4998"}));
}

}  // namespace
}  // namespace heddle::operators::page
