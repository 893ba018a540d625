#!/usr/bin/python3
"""What kube-scheduler's percentageOfNodesToScore does to GPU pods of no gang: bench/score_percentage.py [--nodes N]
[--pods N] [--bin DIR].

With fewer nodes scored a pod is decided sooner, and fewer of the servers that are broken already are seen. The same pods,
of 1, 2 and 4 GPUs by a seed, are placed on the same empty cluster under each value."""

import argparse
import json
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "cluster"), str(ROOT / "tests" / "support")]

from bed import ControlPlane, Heddle, Nodes, h100, path  # noqa: E402: the path above comes first
from bed.testing import bound_to, indexed_job  # noqa: E402
from published import publish  # noqa: E402

SEED = 20261123


def pod(name, gpus):
    return {"metadata": {"name": name}, "spec": indexed_job(name, 1, gpus)["spec"]["template"]["spec"]}


def restart_scheduler(heddle, percentage):
    """With the chart's configuration and another percentage."""
    file = heddle.plane.folder / "heddle-scheduler.json"
    config = json.loads(file.read_text())
    config["percentageOfNodesToScore"] = percentage
    file.write_text(json.dumps(config))
    heddle.kill9("scheduler")
    heddle.forget_lease()
    heddle.start_daemon("scheduler")


def place(plane, heddle, bodies):
    """Seconds until the last is bound, and GPUs in use by node."""
    where = path("pods", heddle.namespace)
    # All are there before the first is decided, so that making them is not what is measured.
    heddle.daemon("scheduler").pause()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda body: plane.rest.create(where, body), bodies))
    heddle.daemon("scheduler").resume()
    started = time.monotonic()

    def all_bound():
        waiting = plane.rest.get(where, fieldSelector="spec.nodeName=", limit=1)["items"]
        return not waiting
    heddle.wait_for(all_bound, "all pods to be bound", 600)
    seconds = time.monotonic() - started
    used = {}
    for one in plane.pods(heddle.namespace):
        gpus = int(one["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"])
        used[bound_to(one)] = used.get(bound_to(one), 0) + gpus
    return seconds, used


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--percentages", type=int, nargs="+", default=[0, 5, 50, 100])
    parser.add_argument("--bin", default=str(ROOT / "build" / "release" / "bin"))
    arguments = parser.parse_args()
    cluster, chance = h100(units=(arguments.nodes + 15) // 16), random.Random(SEED)
    bodies = [pod(f"lone-{index}", chance.choice([1, 2, 4])) for index in range(arguments.pods)]
    least = -(-sum(int(body["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"]) for body in bodies) // 8)
    with ControlPlane("bench") as plane:
        Nodes(plane).add(cluster, timeout=300)
        heddle = Heddle(plane, arguments.bin)
        heddle.install()
        publish(plane, heddle, cluster)
        heddle.start_scheduler()
        print(f"{len(cluster.nodes)} nodes, {len(bodies)} pods; the fewest nodes that hold them: {least}\n")
        print("| percentageOfNodesToScore | pods/s | nodes in use | of them not full |\n|---|---|---|---|", flush=True)
        for percentage in arguments.percentages:
            restart_scheduler(heddle, percentage)
            seconds, used = place(plane, heddle, bodies)
            partial = sum(1 for gpus in used.values() if gpus < 8)
            print(f"| {percentage} | {len(bodies) / seconds:.0f} | {len(used)} | {partial} |", flush=True)
            plane.rest.request("DELETE", path("pods", heddle.namespace), {"gracePeriodSeconds": 0})
            heddle.wait_for(lambda: not plane.pods(heddle.namespace), "the pods to be gone", 120)
    return 0


if __name__ == "__main__":
    sys.exit(main())
