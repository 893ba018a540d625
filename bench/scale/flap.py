"""One node whose agent says something else every second: what it costs, and whether others are repaired as fast."""

import random
import threading
import time

from bed import path

from .fleet import TEAM, Watch, cpu_seconds, extender_writes, percentile, scenario


class Flapping(threading.Thread):
    """Publishes the NodeTopology of one node every second with its first GPU broken, and then sound again."""

    def __init__(self, fleet, node):
        super().__init__(daemon=True)
        self._rest, self._where = fleet.plane.rest, path("nodetopologies", name=node, sub="status")
        status = self._rest.get(path("nodetopologies", name=node))["status"]
        broken = [gpu | {"health": "Unhealthy", "reason": "it flaps"} if index == 0 else gpu for index, gpu in enumerate(status["gpus"])]
        self._says = [status["gpus"], broken]
        self._over = threading.Event()
        self.times = 0
        self.failed = None

    def run(self):
        while not self._over.is_set():
            started = time.monotonic()
            self.times += 1
            try:
                self._rest.patch(self._where, {"status": {"gpus": self._says[self.times % 2], "hash": f"{self.times:016x}"}})
            except Exception as problem:  # a bench that does not disturb measures nothing
                self.failed = problem
                return
            self._over.wait(max(0.0, 1 - (time.monotonic() - started)))

    def stop(self):
        self._over.set()
        self.join()
        assert not self.failed, self.failed


class Seen:
    """When each pod was made and when it was bound, as a watch sees both."""

    def __init__(self, plane):
        self.made, self.bound = {}, {}
        self._watch = Watch(plane, path("pods", TEAM), self._see)

    def _see(self, event, now):
        if event["type"] == "DELETED":
            return
        uid = event["object"]["metadata"]["uid"]
        self.made.setdefault(uid, now)
        if event["object"]["spec"].get("nodeName"):
            self.bound.setdefault(uid, now)

    def close(self):
        self._watch.close()


def _repair(fleet, chance, spare, seen):
    """Milliseconds from a remade pod to its bind, where the node of the one before is cordoned."""
    pod = chance.choice([pod for pod in fleet.plane.pods(TEAM) if pod["spec"].get("nodeName") not in (None, spare)
                         and not pod["metadata"].get("deletionTimestamp")])
    job, node, name = pod["metadata"]["labels"]["batch.kubernetes.io/job-name"], pod["spec"]["nodeName"], pod["metadata"]["name"]
    before = {one["metadata"]["uid"] for one in scenario.pods_of(fleet.plane, TEAM, job)}
    fleet.plane.rest.patch(path("nodes", name=node), {"spec": {"unschedulable": True}})
    fleet.plane.rest.delete(path("pods", TEAM, name), gracePeriodSeconds=0)

    def again():
        return [one["metadata"]["uid"] for one in scenario.pods_of(fleet.plane, TEAM, job)
                if one["metadata"]["uid"] not in before and one["metadata"]["uid"] in seen.bound]
    uid = fleet.heddle.wait_for(again, f"the pod of {job} to be placed again", 120)[0]
    fleet.plane.rest.patch(path("nodes", name=node), {"spec": {"unschedulable": False}})
    return (seen.bound[uid] - seen.made[uid]) * 1e3


def _minute(fleet, chance, node, seconds, repairs):
    """CPU and writes of so many seconds in which nothing else happens, and then the times of some repairs."""
    fleet.settle()
    before, busy, since = extender_writes(fleet), cpu_seconds(fleet.extender.pid), time.monotonic()
    flapping = Flapping(fleet, node) if node else None
    if flapping:
        flapping.start()
    time.sleep(seconds)
    share = (cpu_seconds(fleet.extender.pid) - busy) / (time.monotonic() - since)
    writes = [now - then for now, then in zip(extender_writes(fleet), before)]
    seen = Seen(fleet.plane)
    times = [_repair(fleet, chance, node, seen) for _ in range(repairs)]
    seen.close()
    if flapping:
        flapping.stop()
    return share, writes, times


def measure(fleet, gangs, repairs, seconds=60, seed=20261125):
    """`gangs` of 16 nodes run, and one of them stands on the node that flaps."""
    chance = random.Random(seed)
    fleet.start_extender()
    fleet.start_scheduler(with_extender=True)
    for index in range(gangs):
        job = scenario.TrainingJob(f"run-{index:03}", 16, 8, "tp=8,pp=4,dp=4")
        fleet.plane.rest.create(path("jobs", TEAM), job.manifest(backoff_limit=1000))
    fleet.heddle.wait_for(lambda: sum(1 for pod in fleet.plane.pods(TEAM) if pod["spec"].get("nodeName")) == 16 * gangs,
                          f"{gangs} gangs to run", 600)
    print(f"\n{gangs} gangs of 16 nodes on {len(fleet.cluster.nodes)} nodes; {seconds} s each, then {repairs} pods lose their "
          "node\n\n| a NodeTopology that changes every second | extender, of a core | writes of Gangs | of pods | events | "
          "made anew to bound, p50 | worst |\n|---|---|---|---|---|---|---|")
    for words in ("none", "of a node that nobody uses", "of a node of a gang that runs"):
        used = {pod["spec"]["nodeName"] for pod in fleet.plane.pods(TEAM)}  # now: repairs have moved some
        among = {"none": [None], "of a node that nobody uses": {node.name for node in fleet.cluster.nodes} - used}
        node = min(among.get(words, used))
        share, writes, times = _minute(fleet, chance, node, seconds, repairs)
        print(f"| {words} | {share:.1%} | " + " | ".join(str(number) for number in writes)
              + f" | {percentile(times, 0.5):.0f} ms | {max(times):.0f} ms |", flush=True)
    fleet.stop_scheduler()
    fleet.empty()
