"""One large gang from its Job to its last bound pod; and how many requests it took."""

import time

from bed import path

from .fleet import TEAM, Binds, cpu_seconds, scenario


def _requests(fleet):
    """Requests of the extender's account so far, by verb and resource. Watches are streams, and none is one gang's."""
    counts = {}
    for event in fleet.plane.audit(user="system:serviceaccount:heddle-system:heddle-extender"):
        if event["verb"] != "watch":
            key = (event["verb"], event["resource"])
            counts[key] = counts.get(key, 0) + 1
    return counts


def _shown(asked):
    return ", ".join(f"{count} {verb} {resource}" for (verb, resource), count in sorted(asked.items())) or "none"


def _run(fleet, pods, with_extender):
    name = "large"
    job = scenario.TrainingJob(name, pods, 8, f"tp=8,dp={pods}", scenario.MODEL)
    before = _requests(fleet)
    busy = cpu_seconds(fleet.extender.pid)
    binds = Binds(fleet.plane, TEAM)
    fleet.start_scheduler(with_extender)
    fleet.settle(1)
    started = time.monotonic()
    fleet.plane.rest.create(path("jobs", TEAM), job.manifest())
    binds.wait(pods)
    answer = {"first released": min(binds.ungated.values()) - started,
              "last released": max(binds.ungated.values()) - started,
              "last bound": max(binds.bound.values()) - started,
              "release to last bound": max(binds.bound.values()) - min(binds.ungated.values()),
              "extender CPU": cpu_seconds(fleet.extender.pid) - busy}
    binds.close()
    fleet.settle()
    after = _requests(fleet)
    fleet.stop_scheduler()
    fleet.empty()
    fleet.settle()
    asked = {key: count - before.get(key, 0) for key, count in after.items() if count > before.get(key, 0)}
    return answer, asked


def measure(fleet, pods, rounds):
    fleet.start_extender()
    print(f"\none gang of {pods} pods on {len(fleet.cluster.nodes)} nodes; seconds from the Job's creation\n")
    print("| scheduler | first pod let go | last let go | last bound | first let go to last bound | extender's CPU | "
          "its requests beside a patch a pod | its LISTs |\n|---|---|---|---|---|---|---|---|")
    for turn in range(rounds):
        for with_extender in ((True, False), (False, True))[turn % 2]:
            answer, asked = _run(fleet, pods, with_extender)
            who = "with the extender" if with_extender else "the same without"
            lists = {key: count for key, count in asked.items() if key[0] == "list"}
            others = {key: count for key, count in asked.items() if key[0] != "list"}
            print(f"| {who} | " + " | ".join(f"{seconds:.1f}" for seconds in answer.values())
                  + f" | {sum(others.values()) - pods} | {sum(lists.values())} |", flush=True)
    print(f"\nrequests of the extender for the last one: {_shown(others)}; LISTs: {_shown(lists)}", flush=True)
