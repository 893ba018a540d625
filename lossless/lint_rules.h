#pragma once

#include <vector>

#include "lossless/lint.h"

// Between the linter's own files, and included by nobody else.
namespace heddle::lossless::rules {

// Takes what rules find; knows where they look.
class Report {
 public:
  Report(std::vector<Finding>& findings, const Subject& where, const Subject* with = nullptr)
      : findings_(findings), where_(where), with_(with) {}
  // `remedy` "" = the one that the rule says of itself.
  void Find(std::string_view rule, std::string fact, std::string contrary, std::string remedy = "");
  // Of a rule about two ends: also the setting, and what either end has of it.
  void FindBetween(std::string_view rule, Setting setting, std::string here, std::string there,
                   std::string fact, std::string contrary);

 private:
  std::vector<Finding>& findings_;
  const Subject& where_;
  const Subject* with_;
};

using SubjectRule = void (*)(const Subject&, Report&);
using PairRule = void (*)(const Subject& sender, const Subject& leaf, Report&);
std::span<const SubjectRule> OfOne();
std::span<const PairRule> OfTwoEnds();

// The largest RDMA payload that fits `mtu`, bytes: 256 to 4096, 0 where none does.
int RdmaMtu(int mtu);

}  // namespace heddle::lossless::rules
