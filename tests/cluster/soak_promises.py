"""Promises of tests/sim/checks.h, held against a real control plane by what its watches and its audit log say."""

import collections
import datetime
import http.client
import itertools
import json
import threading
import time
from dataclasses import dataclass, field

from bed import ApiError

PREFIX = "heddle.dev/"
GPU = "nvidia.com/gpu"
DOMAIN_CLAIM = "heddle-compute-domain"  # what admission calls the claim of a pod that asks for a ComputeDomain
WHOLE = (1 << 32) - 1
NO_NODE = "-"  # the name under which a plan has the ranks without a slot
GRACE = 15.0  # seconds: what one watch shows some time before another


def mask(indexes):
    """GPU indexes as bits; none = the whole node."""
    return sum(1 << int(index) for index in indexes.split(",")) if indexes else WHOLE


def rows_of(placement):
    """(node, GPUs as bits) of each rank; 0 = the whole node, as a Gang says it. A rank without a slot has no node."""
    gpus = placement.get("gpus") or [0] * len(placement["nodes"])
    names = ["" if name == NO_NODE else name for name in placement["nodeNames"]]
    return [(names[node], gpus[rank]) for rank, node in enumerate(placement["nodes"])]


def gpus_of(pod):
    """How many GPUs it asks for."""
    return sum(int(container.get("resources", {}).get("limits", {}).get(GPU, 0)) for container in pod["spec"].get("containers", []))


def room_of(nodes):
    """GPUs that each node has, by its name."""
    return {node["metadata"]["name"]: int(node["status"]["allocatable"].get(GPU, 0)) for node in nodes}


def version_of(thing):
    return int(thing["metadata"]["resourceVersion"])


def is_gated(pod):
    """Behind our gate or anybody else's."""
    return bool(pod["spec"].get("schedulingGates"))


def settled_spec(pod):
    """What nobody may change once the last gate is gone: all but the node."""
    return {name: value for name, value in pod["spec"].items() if name not in ("nodeName", "schedulingGates")}


def domain_of(pod):
    """namespace/name of the ComputeDomain that it has a claim of; "" without one. The claim's template has its name."""
    name = next((claim.get("resourceClaimTemplateName", "") for claim in pod["spec"].get("resourceClaims", [])
                 if claim["name"] == DOMAIN_CLAIM), "")
    return f"{pod['metadata'].get('namespace', '')}/{name}" if name else ""


@dataclass
class Claim:
    """What a pod was told and has."""
    name: str
    owner: str
    version: int            # of the pod as it was seen: it was told then or before
    told: bool = False
    live: bool = True
    bound: str = ""         # while it is not finished
    count: int = 0          # of GPUs that it asks for
    node: str = ""
    gpus: int = 0
    rank: int = -1
    gang: str = ""          # the UID of the Gang whose plan it was told
    epoch: int = 0

    def stands(self):
        """A pod that was bound elsewhere has given its planned place up."""
        return self.bound in ("", self.node)

    def runs_at(self, node):
        return self.told and self.live and self.bound != "" and self.bound == node


def claim_of(pod):
    meta, spec, phase = pod["metadata"], pod["spec"], pod.get("status", {}).get("phase")
    marks = meta.get("annotations", {})
    owner = next((one["uid"] for one in meta.get("ownerReferences", []) if one.get("controller")), "")
    finished = phase in ("Succeeded", "Failed")
    claim = Claim(meta["name"], owner, version_of(pod), live=not finished and not meta.get("deletionTimestamp"),
                  bound="" if finished else spec.get("nodeName", ""), count=gpus_of(pod))
    gated = any(gate["name"] == PREFIX + "gang" for gate in spec.get("schedulingGates", []))
    if not gated and PREFIX + "node" in marks:
        claim.told, claim.node, claim.gpus = True, marks[PREFIX + "node"], mask(marks.get(PREFIX + "gpus", ""))
        claim.rank, claim.gang = int(marks[PREFIX + "rank"]), marks[PREFIX + "gang-uid"]
        claim.epoch = int(marks[PREFIX + "epoch"])
    return claim


def crowded(claims, node, room):
    """NoGpuTwice by count: more GPUs in use on the node than it has; "" where all is well. A node that nobody knows has none."""
    used, there = sum(claim.count for claim in claims if claim.bound == node), room.get(node, 0)
    return f"NoGpuTwice: {used} GPUs are in use on {node}, which has {there}" if used > there else ""


def twice(pods, room):
    """NoGpuTwice among the pods of one list, by count and by their plans."""
    claims = [claim for claim in map(claim_of, pods) if claim.bound]
    broken = [crowded(claims, node, room) for node in sorted({claim.bound for claim in claims})]
    at_their_place = [claim for claim in claims if claim.told and claim.bound == claim.node]
    for one, other in itertools.combinations(at_their_place, 2):
        if one.bound == other.bound and one.gpus & other.gpus:
            broken.append(f"NoGpuTwice: {one.name} and {other.name} share a GPU of {one.bound}")
    return [sentence for sentence in broken if sentence]


@dataclass
class Promises:
    """PlanBeforePod, NoOverlap, NoGpuTwice, SpecStays and DomainBeforePod over every change of pods, Gangs and
    ComputeDomains. A watch for each tells of them, none of which waits for another, so what needs two is asked GRACE
    seconds later; the order of things is that of their resourceVersions. Called from several threads."""

    plans: dict = field(default_factory=lambda: collections.defaultdict(list))  # (uid, epoch): [(version or None, rows)]
    latest: dict = field(default_factory=dict)      # Gang UID: the rows that hold now
    gone: dict = field(default_factory=dict)        # UIDs of deleted Gangs: the version, None where nobody saw it
    claims: dict = field(default_factory=dict)      # by pod UID
    room: dict = field(default_factory=dict)        # as room_of() says it
    specs: dict = field(default_factory=dict)       # by UID: of a Gang, and of a pod past all gates
    committed: dict = field(default_factory=dict)   # Gang UID: (epoch, rows) of the plan that holds now
    domains: dict = field(default_factory=dict)     # namespace/name: the version at which it was made, None where nobody saw it
    with_domain: int = 0                            # pods past the gate that claim a ComputeDomain
    moves: int = 0                                  # ranks that a later plan has on another node
    # (since, a function, a sentence): it answers "" = all is well, what is not, or None = not yet; the sentence is for
    # what stays without an answer.
    questions: list = field(default_factory=list)
    broken: list = field(default_factory=list)
    changes: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)

    # What happens

    def saw_gang(self, kind, gang, exact, now):
        with self.lock:
            uid = gang["metadata"]["uid"]
            if kind == "DELETED":
                self.gone[uid] = version_of(gang) if exact else None
                for known in (self.latest, self.committed, self.specs):
                    known.pop(uid, None)
                return
            self.keep_spec(uid, f"Gang {gang['metadata']['name']}", gang.get("spec"))
            placement = (gang.get("status") or {}).get("placement")
            self.latest[uid] = rows_of(placement) if placement else None
            self.keep_plan(uid, gang["metadata"]["name"], placement, exact, now)
            if placement:
                self.learn(uid, placement, version_of(gang) if exact else None)

    def keep_spec(self, uid, title, spec):
        """SpecStays. `spec` is None while it may still change."""
        before = self.specs.get(uid)
        if before is not None and spec is not None and spec != before:
            names = sorted(name for name in before.keys() | spec.keys() if before.get(name) != spec.get(name))
            self.broken.append(f"SpecStays: of {title} {', '.join(names)} changed")
        self.specs[uid] = spec

    def keep_plan(self, uid, name, placement, exact, now):
        """SpecStays of plans: the rows of an epoch are what they were, epochs grow, and a later plan leaves those where
        they are who run there: only a lost rank is repaired. A plan that was given up whole before a pod was let go is
        followed by another first one; after a gap nobody knows whether it was."""
        if not placement:
            self.committed.pop(uid, None)
            return
        is_now = (placement["epoch"], rows_of(placement))
        was = self.committed.get(uid)
        self.committed[uid] = is_now
        if was is None or was == is_now or not exact:
            return
        if is_now[0] < was[0]:
            self.broken.append(f"SpecStays: Gang {name} has gone back from epoch {was[0]} to {is_now[0]}")
        elif is_now[0] == was[0]:
            self.broken.append(f"SpecStays: the plan of Gang {name} has changed within epoch {was[0]}")
        moved = {rank for rank, (old, new) in enumerate(zip(was[1], is_now[1])) if old[0] and old[0] != new[0]}
        self.moves += len(moved)
        for pod_uid, claim in self.claims.items():
            if claim.gang == uid and claim.rank in moved and claim.runs_at(was[1][claim.rank][0]):
                self.questions.append((now, lambda one=pod_uid: self.left_alone(one), (
                    f"SpecStays: epoch {is_now[0]} of Gang {name} has rank {claim.rank} on {is_now[1][claim.rank][0] or 'no node'}, "
                    f"and {claim.name} runs on {claim.bound}")))

    def saw_domain(self, kind, domain, exact, _now):
        with self.lock:
            meta = domain["metadata"]
            version = version_of(domain) if exact and kind == "ADDED" else None
            self.domains.setdefault(f"{meta['namespace']}/{meta['name']}", version)

    def learn(self, uid, placement, version):
        """A plan that was committed; `version` where it is known."""
        with self.lock:
            known = self.plans[(uid, placement["epoch"])]
            rows = rows_of(placement)
            if (version, rows) not in known and (version is None or all(rows != old for at, old in known if at is not None)):
                known.append((version, rows))

    def saw_pod(self, kind, pod, exact, now):
        with self.lock:
            self.changes += 1
            uid = pod["metadata"]["uid"]
            if kind == "DELETED":
                self.claims.pop(uid, None)
                self.specs.pop(uid, None)
                return
            self.keep_spec(uid, f"pod {pod['metadata']['name']}, which is past its gates,",
                           None if is_gated(pod) else settled_spec(pod))
            before, claim = self.claims.get(uid), claim_of(pod)
            self.claims[uid] = claim
            fresh = before is None or not before.told
            told_now = claim.told and (fresh or (before.node, before.gpus) != (claim.node, claim.gpus))
            bound_now = claim.bound and (before is None or before.bound != claim.bound)
            if told_now:
                self.questions.append((now, lambda: self.plan_before(claim), (
                    f"PlanBeforePod: {claim.name} was told rank {claim.rank} on {claim.node} by epoch {claim.epoch} of Gang "
                    f"{claim.gang}, which says no such thing")))
            if told_now and (domain := domain_of(pod)):
                self.with_domain += fresh
                self.questions.append((now, lambda: self.domain_before(domain, claim), (
                    f"DomainBeforePod: {claim.name} is past the gate, and its ComputeDomain {domain} was never made")))
            if bound_now and (sentence := crowded(self.claims.values(), claim.bound, self.room)):
                if exact:
                    self.broken.append(sentence)
                else:  # those that went meanwhile may not have been told yet
                    self.questions.append((now, lambda: None if self.is_crowded(claim.bound) else "", sentence))
            if claim.told and (told_now or bound_now):
                for other_uid, other in self.claims.items():
                    if other_uid != uid and other.told and claim.gpus & other.gpus:
                        self.compare(claim, other, told_now, bound_now, now)

    def compare(self, mine, other, told_now, bound_now, now):
        if bound_now and mine.bound == other.bound and mine.bound == mine.node and other.bound == other.node:
            self.broken.append(f"NoGpuTwice: {mine.name} and {other.name} share a GPU of {mine.bound}")
        overlap = (told_now and mine.live and other.live and mine.owner != other.owner and mine.node == other.node
                   and mine.stands() and other.stands())
        if overlap:
            self.questions.append((now, lambda: self.overlapped(mine, other),
                                   f"NoOverlap: {mine.name} and {other.name} were both told a GPU of {mine.node}"))

    # What has to hold

    def is_crowded(self, node):
        return bool(crowded(self.claims.values(), node, self.room))

    def plan_before(self, claim):
        for version, rows in self.plans.get((claim.gang, claim.epoch), ()):
            if claim.rank >= len(rows) or rows[claim.rank][0] != claim.node:
                continue
            if rows[claim.rank][1] not in (0, claim.gpus):
                continue
            if version is not None and version > claim.version:
                return (f"PlanBeforePod: {claim.name} was told rank {claim.rank} on {claim.node} at version {claim.version}, "
                        f"and its Gang said so at {version}")
            return ""
        return None

    def domain_before(self, domain, claim):
        if domain not in self.domains:
            return None
        version = self.domains[domain]
        if version is not None and version > claim.version:
            return (f"DomainBeforePod: {claim.name} was past the gate at version {claim.version}, and its ComputeDomain "
                    f"{domain} was made at {version}")
        return ""

    def left_alone(self, uid):
        """A pod whose rank went elsewhere was leaving, as the other watch tells some time later, or has it back."""
        claim = self.claims.get(uid)
        rows = self.latest.get(claim.gang) if claim else None
        if rows is None or not claim.runs_at(claim.bound):
            return ""
        return "" if claim.rank < len(rows) and rows[claim.rank][0] == claim.bound else None

    def excuse(self, seconds):
        """For so long nobody could be told anything: the API server was away."""
        with self.lock:
            self.questions = [(since + seconds, question, otherwise) for since, question, otherwise in self.questions]

    def overlapped(self, mine, other):
        """A write that was under way when somebody deleted its Gang may land as late as it likes."""
        if mine.gang not in self.gone:
            return None
        at = self.gone[mine.gang]
        return "" if at is None or at < mine.version else None

    def answer(self, now):
        """Goes through what was to be asked; what nobody could answer in time is broken."""
        with self.lock:
            waiting = []
            for since, question, otherwise in self.questions:
                said = question()
                if said is None and now - since < GRACE:
                    waiting.append((since, question, otherwise))
                elif said != "":
                    self.broken.append(said or otherwise)
            self.questions = waiting
            return self.broken

    def misplaced(self):
        """Bound pods that are not where the plan that holds now has their rank."""
        with self.lock:
            wrong = []
            for claim in self.claims.values():
                rows = self.latest.get(claim.gang) if claim.told and claim.bound and claim.live else None
                if rows is not None and (claim.rank >= len(rows) or rows[claim.rank][0] != claim.bound):
                    wrong.append(f"{claim.name} runs on {claim.bound}, and rank {claim.rank} of its Gang is elsewhere")
            return wrong


class Follow:
    """Every change of a resource, whatever happens to the API server: see(kind, thing, exact), on a thread of its own.
    `exact`: the thing's version is that of the very change; after a gap it is only known how things stand."""

    def __init__(self, plane, where, see):
        self._rest, self._where, self._see = plane.rest, where, see
        self._closed, self._known = False, {}
        self.gaps = -1
        self.failed = None
        threading.Thread(target=self._run, daemon=True).start()

    def close(self):
        self._closed = True

    def _run(self):
        version = None
        while not self._closed:
            try:
                version = self._listed() if version is None else self._streamed(version)
            except ApiError as problem:
                version = None if problem.status == 410 else version
                time.sleep(0.2)
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.2)  # the API server is away
            except Exception as problem:  # whatever it is, the checks above are blind now
                self.failed = problem
                return

    def _listed(self):
        listing = self._rest.get(self._where)
        there = {thing["metadata"]["uid"]: thing for thing in listing["items"]}
        for uid in self._known.keys() - there.keys():
            self._see("DELETED", self._known[uid], False)
        for uid, thing in there.items():
            if uid not in self._known or version_of(self._known[uid]) != version_of(thing):
                self._see("MODIFIED" if uid in self._known else "ADDED", thing, False)
        self._known = there
        self.gaps += 1
        return listing["metadata"]["resourceVersion"]

    def _streamed(self, version):
        try:
            for event in self._rest.stream(self._where, watch="true", allowWatchBookmarks="true", resourceVersion=version):
                if self._closed:
                    return version
                thing = event["object"]
                if event["type"] == "ERROR":
                    return None
                version = thing["metadata"]["resourceVersion"]
                if event["type"] == "BOOKMARK":
                    continue
                if event["type"] == "DELETED":
                    self._known.pop(thing["metadata"]["uid"], None)
                else:
                    self._known[thing["metadata"]["uid"]] = thing
                self._see(event["type"], thing, True)
        except (OSError, http.client.HTTPException, ValueError):
            time.sleep(0.2)  # it goes on from where it was, if the server still knows that version
        return version


class AuditTail:
    """The audit log as it grows: plans for Promises, and how often each account asks."""

    def __init__(self, log, promises):
        self._log, self._promises, self._offset = log, promises, 0
        self.minutes = collections.defaultdict(collections.Counter)  # minute: requests by account
        self.changed = collections.Counter()                         # minute: writes of pods and Jobs, by anybody

    def read(self):
        with open(self._log, "rb") as lines:
            lines.seek(self._offset)
            for line in lines:
                if not line.endswith(b"\n"):
                    break  # it is being written right now
                self._offset += len(line)
                try:
                    self._count(json.loads(line))
                except ValueError:
                    continue  # cut off by kill -9
        return self

    def _count(self, event):
        about, user = event.get("objectRef") or {}, event["user"]["username"].rpartition(":")[2]
        received = datetime.datetime.fromisoformat(event["requestReceivedTimestamp"].replace("Z", "+00:00"))
        minute = int(received.timestamp()) // 60
        self.minutes[minute][user] += 1
        ok = (event.get("responseStatus") or {}).get("code") in (200, 201)
        if ok and event["verb"] != "get" and about.get("resource") in ("pods", "jobs", "nodes"):
            self.changed[minute] += 1
        body = event.get("requestObject") or {}
        placement = (body.get("status") or {}).get("placement") if isinstance(body, dict) else None
        if ok and about.get("resource") == "gangs" and placement and body.get("metadata", {}).get("uid"):
            self._promises.learn(body["metadata"]["uid"], placement, None)

    def busiest(self, user):
        """(requests, writes of pods and Jobs in the same minute) of its busiest minute."""
        return max(((counts[user], self.changed[minute]) for minute, counts in self.minutes.items()), default=(0, 0))


def hot(tail, most, each):
    """NoHotLoop: accounts that ask more often in a minute than what changed in it is a reason for."""
    return [f"NoHotLoop: {user} has sent {counts[user]} requests within a minute in which {tail.changed[minute]} pods, Jobs "
            f"and Nodes were written" for minute, counts in tail.minutes.items() for user in most
            if counts[user] > most[user] + each * tail.changed[minute]]


def follow(plane, where, *see):
    """A watch of a resource in all namespaces, one for all of them: the order of its events is then that of what happened.
    It tells each of `see` (kind, thing, exact, now)."""
    def tell(kind, thing, exact):
        now = time.monotonic()
        for one in see:
            one(kind, thing, exact, now)
    return Follow(plane, where, tell)
