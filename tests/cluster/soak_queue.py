"""QueueRule of tests/sim/queue_rule.h, as far as it can be judged from outside: what the leader keeps is asked of its filter
some times a second (soak_verbs.py), and the Gangs say who waits and who got a plan. Two sentences are held:

  a first plan never uses a node that is kept for a gang of higher priority. Only where that node was kept before the plan
  was made, and stays so without a gap for HOLD seconds more, for a gang that waits all the while; for whom is not
  published, so nobody of that priority may have got a plan lately;

  of two gangs that ask for the same, with equal priority, the one that came first goes first. Only where it was refused for
  lack of room before the other's plan was made, has all of its pods, and is still refused HOLD seconds later.

What kept those who judge from looking (a restart of the API server, another leader) leaves a plan without a verdict.
Times are seconds of the wall clock, which the daemons of the soak share."""

import collections
import datetime
import json
import threading
from dataclasses import dataclass, field

from soak_promises import domain_of, is_gated

HOLD = 10.0           # an order that is only not seen yet is seen by then
LONGEST_WALK = 60.0   # through the queue; what is published is what the last one came to
MOST_BETWEEN = 2.0    # two looks, so that nothing was given up and taken again between them
CALM = 30.0           # so long before a plan nothing stood in the way of the one ahead: a write that the API server lost
STEADY = 5.0          # so long before a plan the one ahead had all its pods
LACKS_ROOM = ("NotEnoughFree", "Requirement")


def seconds(time):
    return datetime.datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()


@dataclass(frozen=True)
class Look:
    """What filter said once."""
    asked: float
    answered: float
    leader: str
    kept: dict       # node: the priority of the gang for which it is kept


@dataclass
class Standing:
    """How a Gang stands."""
    name: str
    owner: str
    priority: int
    pods: int
    wish: str                     # equal where two ask for the same
    created: float
    waits: float = 0.0            # since when it says why; 0 = it does not
    lacks_room: float = 0.0       # the same, for lack of room
    epoch: int = 0                # of its plan; 0 = none
    stands: bool = True           # it has not ended and gives way to nobody


@dataclass(frozen=True)
class Plan:
    """The first one of an owner."""
    uid: str
    planned: float    # in whole seconds, at that time or up to one later
    seen: float
    nodes: frozenset


@dataclass
class Members:
    there: set = field(default_factory=set)   # UIDs of an owner's pods that wait at a gate
    changed: float = 0.0                      # when one of its pods came, went or was let go
    domain: bool = False                      # they ask for a ComputeDomain


class QueueRule:
    """Thread rule: saw_… on the threads of watches, all else on one."""

    def __init__(self):
        self.gangs, self.members = {}, collections.defaultdict(Members)
        self.pods = {}                    # UID: its owner's, of pods that wait
        self.planned = set()              # owners that had a plan
        self.latest = {}                  # priority: when the last plan of anybody was seen
        self.plans, self.looks = [], collections.deque(maxlen=2000)
        self.disturbed = 0.0              # when writes were lost last
        self.broken = []
        self.judged = self.held_back = self.ordered = self.still_ahead = 0
        self.lock = threading.Lock()

    # What happens

    def saw_gang(self, kind, gang, exact, now):
        with self.lock:
            uid, spec, status = gang["metadata"]["uid"], gang["spec"], gang.get("status") or {}
            if kind == "DELETED":
                self.gangs.pop(uid, None)
                return
            was = self.gangs.get(uid)
            placement, reason = status.get("placement"), status.get("reason", "")
            ended = any(one["type"] == "Ended" and one["status"] == "True" for one in status.get("conditions", []))
            waits = bool(reason) and not placement and not ended
            owner = spec["owner"]["uid"]
            wish = [spec["owner"]["kind"], spec["pods"], spec["gpusPerPod"]] + [
                spec.get(name) for name in ("parallelism", "require", "prefer", "model")]
            self.gangs[uid] = is_now = Standing(
                gang["metadata"]["name"], owner, spec.get("priority", 0), spec["pods"], json.dumps(wish, sort_keys=True),
                seconds(gang["metadata"]["creationTimestamp"]),
                waits=((was and was.waits) or now) if waits else 0.0,
                lacks_room=((was and was.lacks_room) or now) if waits and reason in LACKS_ROOM else 0.0,
                epoch=placement["epoch"] if placement else 0, stands=not ended and not status.get("preemptedBy"))
            if not placement or (was and was.epoch == is_now.epoch):
                return
            self.latest[is_now.priority] = now
            if exact and is_now.epoch == 1 and owner not in self.planned and status.get("plannedAt"):
                nodes = frozenset(placement["nodeNames"][node] for node in placement["nodes"])
                self.plans.append((Plan(uid, seconds(status["plannedAt"]), now, nodes), is_now))
            self.planned.add(owner)

    def saw_pod(self, kind, pod, _exact, now):
        owner = next((one["uid"] for one in pod["metadata"].get("ownerReferences", []) if one.get("controller")), "")
        if not owner:
            return
        with self.lock:
            uid, of = pod["metadata"]["uid"], self.members[owner]
            waits = kind != "DELETED" and is_gated(pod) and not pod["metadata"].get("deletionTimestamp")
            if waits != (uid in of.there):
                of.changed = now
                of.there.symmetric_difference_update({uid})
            of.domain = of.domain or bool(domain_of(pod))

    def saw_kept(self, look):
        with self.lock:
            self.looks.append(look)

    def was_disturbed(self, now):
        """The API server was away, or whoever leads died: a plan of one ahead may have been lost on its way."""
        with self.lock:
            self.disturbed = now

    # What has to hold

    def answer(self, now):
        """Judges the plans that are old enough; returns all that is broken so far."""
        with self.lock:
            due = [(plan, gang) for plan, gang in self.plans if now - plan.seen >= HOLD]
            self.plans = [(plan, gang) for plan, gang in self.plans if now - plan.seen < HOLD]
            for plan, gang in due:
                still = self.gangs.get(plan.uid)
                if still and still.stands and still.epoch == 1:
                    self.judge_kept(plan, gang, now)
                    self.judge_order(plan, gang)
            return self.broken

    def waited(self, gang, since):
        """All of its pods waited for it, from `since` until now."""
        of = self.members.get(gang.owner)
        return gang.stands and of is not None and len(of.there) == gang.pods and of.changed <= since - STEADY

    def judge_kept(self, plan, gang, now):
        looks = list(self.looks)
        first = next((at for at in reversed(range(len(looks))) if looks[at].answered <= plan.planned), None)
        if first is None:
            return
        span = looks[first:]
        gaps = [after.asked - before.answered for before, after in zip(span, span[1:])] + [now - span[-1].answered]
        if max(gaps) > MOST_BETWEEN or len({look.leader for look in span}) != 1 or not span[0].leader:
            return
        self.judged += 1
        for node in sorted(plan.nodes & span[0].kept.keys()):
            keeper = span[0].kept[node]
            if keeper <= gang.priority:
                continue
            self.held_back += 1
            if any(look.kept.get(node) != keeper for look in span):
                continue
            if self.latest.get(keeper, 0.0) > plan.planned - LONGEST_WALK:
                continue  # it may have been kept for that one
            ahead = [one for one in self.gangs.values() if one.priority == keeper and 0 < one.waits <= span[0].asked
                     and self.waited(one, span[0].asked)]
            if ahead:
                self.broken.append(f"QueueRule: Gang {gang.name} of priority {gang.priority} was planned onto {node}, which is "
                                   f"kept for one of priority {keeper}; {ahead[0].name} waits")
                return

    def judge_order(self, plan, gang):
        if self.disturbed > plan.planned - CALM:
            return
        self.ordered += 1
        domain = self.members[gang.owner].domain
        for one in self.gangs.values():
            if one.wish != gang.wish or one.priority != gang.priority or one.created > gang.created - 1:
                continue
            if self.members[one.owner].domain != domain or not one.lacks_room:
                continue
            self.still_ahead += 1
            if one.lacks_room <= plan.planned - 1 and self.waited(one, plan.planned):
                self.broken.append(f"QueueRule: Gang {gang.name} has got a plan, and {one.name}, which asks for the same and came "
                                   f"first, still waits")
                return

    def told(self):
        return (f"{self.judged} first plans held against what was kept for others, {self.held_back} of their nodes were; "
                f"{self.ordered} against who asks for the same and came first, {self.still_ahead} of whom still waited")
