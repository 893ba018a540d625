"""A small gang beside very many pods that wait at the gate: because the cluster cannot hold their gangs, which costs least,
or because others hold the room."""

import time
from concurrent.futures import ThreadPoolExecutor

from bed import path
from bed.testing import indexed_job

from . import room
from .fleet import TEAM, cpu_seconds, extender_writes, scenario

SMALL = 4  # pods
AHEAD = "ahead"  # the PriorityClass of a small gang: whoever waits longer would keep the free nodes from it


def _crowd(fleet, jobs, pods):
    words = {"heddle.dev/parallelism": f"tp=8,dp={pods}"}

    def submit(index):
        fleet.plane.rest.create(path("jobs", TEAM), indexed_job(f"crowd-{index}", pods, 8, annotations=words))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(submit, range(jobs)))

    def refused():
        gangs = [gang for gang in fleet.plane.rest.list(path("gangs", TEAM))
                 if (gang.get("status") or {}).get("progress", {}).get("seen") == pods and gang["status"].get("reason")]
        if len(gangs) != jobs:
            raise AssertionError(f"{len(gangs)} of {jobs} gangs are seen whole and refused")
        return True
    fleet.heddle.wait_for(refused, "every gang to be told that it does not fit", 3600)


def measure(fleet, pods, rounds):
    """Gangs of a few more pods than there are nodes."""
    fleet.start_extender()
    size = len(fleet.cluster.nodes) + 4
    jobs = -(-pods // size)
    extender = fleet.extender
    empty, started, before = extender.resident_bytes(), time.monotonic(), cpu_seconds(extender.pid)
    _crowd(fleet, jobs, size)
    print(f"{jobs * size} pods in {jobs} gangs wait after {time.monotonic() - started:.0f} s, which cost the extender "
          f"{cpu_seconds(extender.pid) - before:.1f} s of CPU and {(extender.resident_bytes() - empty) / 1e6:.0f} MB", flush=True)
    fleet.settle()
    before = cpu_seconds(extender.pid)
    time.sleep(30)
    print(f"at rest: {(cpu_seconds(extender.pid) - before) / 30:.1%} of a core", flush=True)
    fleet.start_scheduler(True)
    fleet.settle()
    for turn in range(rounds):
        small, before = scenario.TrainingJob(f"small-{turn}", SMALL, 8, f"tp=8,dp={SMALL}"), cpu_seconds(extender.pid)
        started = scenario.submit(fleet.plane, TEAM, small)
        scenario.wait_bound(fleet.plane, TEAM, small.pods, small.name, 600)
        print(f"a gang of {SMALL} beside them: all bound {time.monotonic() - started:.2f} s after its submission, "
              f"{cpu_seconds(extender.pid) - before:.2f} s of the extender's CPU", flush=True)
    print(f"{extender.resident_bytes() / 1e6:.0f} MB at the end", flush=True)


def _minute(fleet, what, act):
    """What the extender does in a minute or more of `act`, by the minute."""
    busy, before, since = cpu_seconds(fleet.extender.pid), extender_writes(fleet), time.monotonic()
    act()
    minutes = (time.monotonic() - since) / 60
    gangs, pods, events = ((now - then) / minutes for now, then in zip(extender_writes(fleet), before))
    print(f"{what}: {(cpu_seconds(fleet.extender.pid) - busy) / (60 * minutes):.1%} of a core; writes a minute: {gangs:.0f} of "
          f"Gangs, {pods:.0f} of pods, {events:.0f} events", flush=True)


def _small(fleet, name):
    """Seconds until a gang that fits into the free room is bound; then it ends, which is news for all that wait."""
    words = {"heddle.dev/parallelism": f"tp=8,dp={SMALL}"}
    started = time.monotonic()
    fleet.plane.rest.create(path("jobs", TEAM), indexed_job(name, SMALL, 8, annotations=words, priorityClassName=AHEAD))
    scenario.wait_bound(fleet.plane, TEAM, SMALL, name, 600)
    took = time.monotonic() - started
    scenario.remove(fleet.plane, TEAM, name, 120)
    fleet.settle()
    return took


def measure_waiting(fleet, gangs, rounds):
    """`gangs` that fit the cluster and not its free room."""
    fleet.start_extender()
    fleet.plane.create_all("/apis/scheduling.k8s.io/v1/priorityclasses", [
        {"metadata": {"name": AHEAD}, "value": 1000, "preemptionPolicy": "Never"}])
    room.fill(fleet)
    fleet.start_scheduler(True)
    alone = [_small(fleet, f"alone-{turn}") for turn in range(rounds)]
    extender = fleet.extender
    empty, started, before = extender.resident_bytes(), time.monotonic(), cpu_seconds(extender.pid)
    room.wait_in_line(fleet, gangs)
    print(f"\n{gangs} gangs of {room.PODS} nodes lack room on {len(fleet.cluster.nodes)}, of which {room.FREE} are free: all are told "
          f"after {time.monotonic() - started:.0f} s, which cost the extender {cpu_seconds(extender.pid) - before:.1f} s of CPU and "
          f"{(extender.resident_bytes() - empty) / 1e6:.0f} MB", flush=True)
    fleet.settle()
    _minute(fleet, "at rest", lambda: time.sleep(60))
    beside = []

    def come_and_go():
        until = time.monotonic() + 60
        while len(beside) < rounds or time.monotonic() < until:
            beside.append(_small(fleet, f"small-{len(beside)}"))
    _minute(fleet, f"while gangs of {SMALL} come and go", come_and_go)
    shown = {words: sorted(times)[len(times) // 2] for words, times in (("alone", alone), ("beside them", beside))}
    print(f"a gang of {SMALL}, from its submission to its last bound pod: p50 {shown['alone']:.2f} s in the full cluster without them, "
          f"{shown['beside them']:.2f} s beside them, worst {max(beside):.2f} s of {len(beside)}; "
          f"{extender.resident_bytes() / 1e6:.0f} MB at the end", flush=True)
    fleet.stop_scheduler()
    fleet.empty()
    room.empty(fleet)
