"""Pods a second through the real kube-scheduler, with our extender and without, in turns."""

import json

from bed import path

from .fleet import TEAM, Binds, cpu_seconds, scenario

KINDS = ("pods of a gang, released", "GPU pods of no gang", "pods without GPUs")


def _pod(name, gpus):
    resources = {"cpu": "1"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    return {"metadata": {"name": name}, "spec": {"schedulerName": "heddle", "containers": [
        {"name": "one", "image": "one", "resources": {"limits": resources, "requests": resources}}]}}


def _gang(fleet, name, pods):
    """A Job over whole nodes, planned and let go by the extender while no scheduler runs."""
    job = scenario.TrainingJob(name, pods, 8, f"tp=8,dp={pods}")
    fleet.plane.rest.create(path("jobs", TEAM), job.manifest())

    def released():
        gang = scenario.gang_of(fleet.plane, TEAM, name)
        return gang and gang["status"].get("progress", {}).get("released") == pods
    fleet.heddle.wait_for(released, f"{pods} pods to be let go", 600)


def _fill(fleet, kind, count):
    if kind == KINDS[0]:
        _gang(fleet, "flood", count)
        return
    gpus = 1 if kind == KINDS[1] else 0
    fleet.plane.create_all(path("pods", TEAM), [_pod(f"flood-{index:05}", gpus) for index in range(count)])


def _calls(fleet):
    import urllib.request
    with urllib.request.urlopen(f"http://127.0.0.1:{fleet.heddle.extender_port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    verbs = ('verb="filter"', 'verb="prioritize"')
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines
               if line.startswith("heddle_extender_requests_total") and any(verb in line for verb in verbs))


def _run(fleet, kind, count, with_extender):
    _fill(fleet, kind, count)
    fleet.settle()
    binds = Binds(fleet.plane, TEAM)
    # Fake kubelets would take turns with the scheduler on these cores.
    fleet.plane.process("kwok").pause()
    calls, busy = _calls(fleet), cpu_seconds(fleet.extender.pid)
    try:
        fleet.start_scheduler(with_extender)
        binds.wait(count)
        scheduler = cpu_seconds(fleet.heddle.daemon("scheduler").pid)
    finally:
        fleet.plane.process("kwok").resume()
        binds.close()
    fleet.stop_scheduler()
    answer = {"rate": binds.rate(), "calls": (_calls(fleet) - calls) / count, "scheduler": scheduler,
              "extender": cpu_seconds(fleet.extender.pid) - busy}
    fleet.empty()
    fleet.settle()
    return answer


def measure(fleet, count, rounds):
    """Prints a row for each kind; `rounds` pairs of runs, the order turned each time."""
    fleet.start_extender()
    print(f"\n{count} pods, {rounds} rounds, {len(fleet.cluster.nodes)} nodes; medians\n")
    print(f"| pods | with the extender | without | ratio | calls a pod | extender's CPU |\n|---|---|---|---|---|---|")
    for kind in KINDS:
        runs = {True: [], False: []}
        for turn in range(rounds):
            for with_extender in ((True, False), (False, True))[turn % 2]:
                runs[with_extender].append(_run(fleet, kind, count, with_extender))
        middle = {which: sorted(run["rate"] for run in some)[len(some) // 2] for which, some in runs.items()}
        last = runs[True][-1]
        print(f"| {kind} | {middle[True]:.0f} pods/s | {middle[False]:.0f} pods/s | "
              f"{middle[True] / middle[False]:.2f} | {last['calls']:.1f} | {last['extender']:.1f} s |", flush=True)
        print(json.dumps({kind: {("with" if which else "without"): [round(run["rate"], 1) for run in some]
                                 for which, some in runs.items()}}), flush=True)
