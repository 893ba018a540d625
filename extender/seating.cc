#include "extender/seating.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "extender/rank_file.h"

namespace heddle::extender {
namespace {

using Trouble = std::optional<InputRefusal>;

// By rank: which of the live pods sits there.
constexpr std::size_t kFree = std::size_t(-1);
using Seats = std::vector<std::size_t>;

// Each pod at its own number; what is wrong with the first that has none of its own.
Trouble SeatByNumber(const OwnerLayout& layout, const std::vector<Member>& live, Seats& seats) {
  Trouble trouble;
  const auto blame = [&trouble](const char* reason, const std::string& sentence) {
    if (!trouble) trouble = InputRefusal{reason, sentence};
  };
  for (std::size_t i = 0; i < live.size(); ++i) {
    const std::string& name = live[i].facts->key.name;
    const auto rank = layout.RankOf(*live[i].kept);
    if (!rank) {
      blame("RankMissing", "pod " + name + " carries no rank: it needs the label " +
                               std::string(layout.index_mark) + ", which its controller sets");
    } else if (*rank < 0 || std::size_t(*rank) >= seats.size()) {
      blame("RankOutOfRange", "pod " + name + " stands outside the ranks 0 to " +
                                  std::to_string(seats.size() - 1) + " of its gang");
    } else if (std::size_t& seat = seats[std::size_t(*rank)]; seat != kFree) {
      blame("RankDoubled", "pods " + live[seat].facts->key.name + " and " + name + " both have rank " +
                               std::to_string(*rank) + "; one of them has to go");
    } else {
      seat = i;
    }
  }
  return trouble;
}

// Hands out free seats from the lowest, each segment's to its own pods.
class FreeSeats {
 public:
  FreeSeats(const OwnerLayout& layout, const std::vector<bool>& done, const Seats& seats)
      : layout_(layout), done_(done), seats_(seats) {}

  // The next one for such a pod; kFree where there is none.
  std::size_t Next(const kube::Json& pod) {
    const RankSegment* segment = layout_.SegmentOf(pod);
    if (segment == nullptr) return kFree;
    std::size_t& next = next_.try_emplace(segment, std::size_t(segment->first)).first->second;
    const auto end = std::size_t(segment->first + segment->jobs * segment->pods_per_job);
    while (next < end && next < seats_.size() && (seats_[next] != kFree || done_[next])) ++next;
    return next < end && next < seats_.size() ? next++ : kFree;
  }

 private:
  const OwnerLayout& layout_;
  const std::vector<bool>& done_;
  const Seats& seats_;
  std::map<const RankSegment*, std::size_t> next_;
};

// Pods of one unit stand together, and in it in the order of their numbers where they have one.
std::tuple<std::string, std::int64_t, std::string> OrderByName(const OwnerLayout& layout,
                                                               const Member& member) {
  if (layout.unit_mark.empty()) return {"", 0, member.facts->key.name};
  return {kube::Label(*member.kept, layout.unit_mark).value_or(""),
          NumberMark(*member.kept, layout.index_mark).value_or(0), member.facts->key.name};
}

// Where groups before it have grown, the rank that a pod was told may be one of theirs.
bool IsOfItsSegment(const OwnerLayout& layout, const kube::Json& pod, int rank) {
  const RankSegment* segment = layout.SegmentOf(pod);
  return segment == nullptr ||
         (rank >= segment->first && rank < segment->first + segment->jobs * segment->pods_per_job);
}

// Who was let go keeps the rank that was told, the others follow by name. Returns those that find no seat.
std::vector<std::size_t> SeatByName(const OwnerLayout& layout, const std::vector<Member>& live,
                                    const std::vector<bool>& done, Seats& seats) {
  std::vector<std::size_t> waiting, standing;
  for (std::size_t i = 0; i < live.size(); ++i) {
    const PodFacts& facts = *live[i].facts;
    const int told = !facts.gated && facts.plan ? facts.plan->rank : -1;
    if (told >= 0 && std::size_t(told) < seats.size() && seats[std::size_t(told)] == kFree &&
        IsOfItsSegment(layout, *live[i].kept, told)) {
      seats[std::size_t(told)] = i;
    } else {
      waiting.push_back(i);
    }
  }
  std::sort(waiting.begin(), waiting.end(), [&](std::size_t a, std::size_t b) {
    return OrderByName(layout, live[a]) < OrderByName(layout, live[b]);
  });
  FreeSeats free(layout, done, seats);
  for (const std::size_t i : waiting) {
    const std::size_t seat = free.Next(*live[i].kept);
    if (seat == kFree) {
      standing.push_back(i);
    } else {
      seats[seat] = i;
    }
  }
  return standing;
}

void Sit(GangMembers& members, std::vector<Member> live, const Seats& seats) {
  std::vector<bool> seated(live.size());
  for (std::size_t rank = 0; rank < seats.size(); ++rank) {
    if (seats[rank] == kFree) continue;
    seated[seats[rank]] = true;
    members.ranks[rank] = std::move(live[seats[rank]]);
  }
  for (std::size_t i = 0; i < live.size(); ++i) {
    if (!seated[i]) members.unranked.push_back(std::move(live[i]));
  }
}

std::string Unordered(const Trouble& trouble, const std::string& rank_file) {
  const std::string why = trouble ? trouble->sentence + ", so the ranks are not in order"
                                  : "nothing numbers the pods of this gang";
  return why + ": Heddle gave them out by the pods' names, and the ConfigMap " + rank_file +
         " says who has which";
}

}  // namespace

void Seat(GangMembers& members, const OwnerLayout& layout, std::vector<Member> live) {
  Seats numbered(members.ranks.size(), kFree), named = numbered;
  Trouble trouble;
  if (layout.numbered) {
    trouble = SeatByNumber(layout, live, numbered);
    if (!trouble) return Sit(members, std::move(live), numbered);
  }
  const auto standing = SeatByName(layout, live, members.done, named);
  if (standing.empty()) {
    members.rank_file = RankFileName(layout.rank_file_for);
    if (!live.empty()) members.notes.push_back(Unordered(trouble, members.rank_file));
    return Sit(members, std::move(live), named);
  }
  // More pods than ranks: somebody has to say which of them are meant.
  if (!trouble) {
    const std::string& one = live[standing.front()].facts->key.name;
    trouble = InputRefusal{"ExtraPods", std::to_string(live.size()) + " pods are there for " +
                                            std::to_string(members.ranks.size()) + " ranks, such as pod " +
                                            one + "; wait until its controller removes one, or delete it"};
  }
  if (!members.refusal) members.refusal = trouble;
  Sit(members, std::move(live), layout.numbered ? numbered : named);
}

}  // namespace heddle::extender
