"""A small gang beside very many pods that wait at the gate, because the cluster cannot hold their gangs."""

import time
from concurrent.futures import ThreadPoolExecutor

from bed import path
from bed.testing import indexed_job

from .fleet import TEAM, cpu_seconds, scenario

SMALL = 4  # pods


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
