"""From the event that a rank of a running gang has to go elsewhere to the written plan that says where."""

import random
import threading
import time
from datetime import datetime

from bed import path

from . import room
from .fleet import TEAM, Watch, percentile, scenario


def _milliseconds(begin, end):
    return (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds() * 1e3


def _by_the_servers_clock(fleet, since):
    """Of each pod remade after `since`: until the extender's write of the new plan arrives, and what that write takes."""
    reaction, write = [], []
    plans = fleet.plane.audit(user="system:serviceaccount:heddle-system:heddle-extender", resource="gangs/status", code=200)
    for made in fleet.plane.audit(verb="create", resource="pods", code=201):
        if made["time"] < since:
            continue
        job = made["body"]["metadata"]["labels"]["batch.kubernetes.io/job-name"]
        later = [plan for plan in plans if plan["name"].startswith(f"{job}-") and plan["time"] > made["ended"]]
        if later:
            reaction.append(_milliseconds(made["ended"], later[0]["time"]))
            write.append(_milliseconds(later[0]["time"], later[0]["ended"]))
    return reaction, write


class _Seen:
    """When pods were made and plans written, as a watch sees both: by Job and UID, by Job and epoch."""

    def __init__(self, plane):
        self.made, self.planned, self.lock = {}, {}, threading.Lock()
        self._watches = [Watch(plane, path("pods", TEAM), self._pod), Watch(plane, path("gangs", TEAM), self._gang)]

    def _pod(self, event, now):
        meta = event["object"]["metadata"]
        if event["type"] == "ADDED":
            with self.lock:
                self.made[(meta["labels"]["batch.kubernetes.io/job-name"], meta["uid"])] = now

    def _gang(self, event, now):
        placement = (event["object"].get("status") or {}).get("placement")
        if placement:
            with self.lock:
                self.planned.setdefault((event["object"]["spec"]["owner"]["name"], placement["epoch"]), now)

    def close(self):
        for watch in self._watches:
            watch.close()


def _fail(fleet, chance, seen, comes_back):
    """A node of a gang fails. Milliseconds from the watch event of the remade pod to that of its new plan."""
    pod = chance.choice([pod for pod in fleet.plane.pods(TEAM) if pod["spec"].get("nodeName")
                         and not pod["metadata"].get("deletionTimestamp")])
    job, node = pod["metadata"]["labels"]["batch.kubernetes.io/job-name"], pod["spec"]["nodeName"]
    with seen.lock:
        before = set(seen.made)
        epoch = max(key[1] for key in seen.planned if key[0] == job)
    # The node is gone and its pod with it, as after the eviction that a real cluster waits 5 minutes for.
    fleet.plane.rest.patch(path("nodes", name=node), {"spec": {"unschedulable": True}})
    fleet.plane.rest.delete(path("pods", TEAM, pod["metadata"]["name"]), gracePeriodSeconds=0)

    def done():
        with seen.lock:
            new = [at for key, at in seen.made.items() if key not in before and key[0] == job]
            plan = [at for key, at in seen.planned.items() if key[0] == job and key[1] > epoch]
        return bool(new and plan) and (plan[0] - new[0],)
    took = fleet.heddle.wait_for(done, f"a new plan for {job}", 300)[0]
    if comes_back:
        fleet.plane.rest.patch(path("nodes", name=node), {"spec": {"unschedulable": False}})
    time.sleep(0.5)
    return took * 1e3


def _failures(fleet, failures, chance, what, comes_back):
    seen = _Seen(fleet.plane)
    time.sleep(3)
    since = fleet.plane.audit(verb="create", resource="pods")[-1]["ended"]
    times = [_fail(fleet, chance, seen, comes_back) for _ in range(failures)]
    seen.close()
    print(f"\n{failures} failures {what}: from the watch event of the remade pod to that of its new plan "
          f"p50 {percentile(times, 0.5):.0f} ms, p99 {percentile(times, 0.99):.0f} ms, worst {max(times):.0f} ms; "
          f"{sum(took > 100 for took in times)} over 100 ms", flush=True)
    reaction, write = _by_the_servers_clock(fleet, since)
    print(f"by the API server's clock, {len(reaction)} of them: from the pod's creation to the write of its plan "
          f"p50 {percentile(reaction, 0.5):.0f} ms, p99 {percentile(reaction, 0.99):.0f} ms; the write itself "
          f"p50 {percentile(write, 0.5):.0f} ms, p99 {percentile(write, 0.99):.0f} ms", flush=True)


def measure(fleet, gangs, failures, waiting=0, seed=20261123):
    """`gangs` of 16 nodes each run; then nodes fail one after the other, and their pods are evicted at once. With `waiting`
    the rest of the cluster is full but for room.FREE nodes, each node comes back, and all of it is done again beside so
    many gangs that wait for room."""
    chance = random.Random(seed)
    fleet.start_extender()
    fleet.start_scheduler(with_extender=True)
    if waiting:
        room.fill(fleet, 16 * gangs + room.FREE)
    jobs = [scenario.TrainingJob(f"run-{index:03}", 16, 8, "tp=8,pp=4,dp=4") for index in range(gangs)]
    for job in jobs:
        fleet.plane.rest.create(path("jobs", TEAM), job.manifest(backoff_limit=1000))

    def running():
        bound = sum(1 for pod in fleet.plane.pods(TEAM) if pod["spec"].get("nodeName"))
        return bound == 16 * gangs
    fleet.heddle.wait_for(running, f"{gangs} gangs to run", 600)
    fleet.settle()
    among = f"among {gangs} gangs of 16 nodes on {len(fleet.cluster.nodes)} nodes, seed {seed}"
    _failures(fleet, failures, chance, among + (", nobody waits" if waiting else ""), waiting > 0)
    if waiting:
        room.wait_in_line(fleet, waiting)
        fleet.settle()
        _failures(fleet, failures, chance, f"{among}, {waiting} gangs wait for room", True)
    fleet.stop_scheduler()
    fleet.empty()
    if waiting:
        room.empty(fleet)
