#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "operator/page/fabric_view.h"

namespace heddle::operators::page {

// The pieces with the revision at which each last changed, so that who has seen one revision is told what is newer and
// nothing else. Thread rule: one owner.
class Journal {
 public:
  // instance: unlike that of any other process; a revision of another one is no revision of this.
  explicit Journal(std::string instance) : instance_(std::move(instance)) {}

  bool Update(const Pieces& pieces);  // whether anything is new
  bool empty() const { return revision_ == 0; }
  std::string revision() const { return instance_ + "-" + std::to_string(revision_); }

  // One document: of all where `since` is too old or not ours, else of what changed; nothing where nothing did.
  std::optional<std::string> Since(std::string_view since) const;

 private:
  struct Entry {
    std::string json;
    std::uint64_t revision = 0;
  };
  struct Part {
    std::map<std::string, Entry> entries;
    std::map<std::string, std::uint64_t> gone;  // when
  };
  bool Replace(Entry& entry, const std::string& json) const;
  bool Merge(Part& part, const std::map<std::string, std::string>& fresh) const;
  std::uint64_t Known(std::string_view since) const;  // 0 = nothing

  const std::string instance_;
  std::uint64_t revision_ = 0;
  std::uint64_t oldest_ = 0;  // what went before this is forgotten
  Entry sources_, fabrics_, gangs_left_out_;
  Part nodes_, gangs_;
};

}  // namespace heddle::operators::page
