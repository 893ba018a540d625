#!/usr/bin/python3
"""What kube-scheduler's percentageOfNodesToScore, or the extender's weight, does to GPU pods of no gang:
bench/score_percentage.py [--nodes N] [--pods N] [--weights W...] [--profile shipped|stock] [--bin DIR].

With fewer nodes scored a pod is decided sooner, and fewer of the servers that are broken already are seen. The same pods,
of 1, 2 and 4 GPUs by a seed, are placed on the same empty cluster under each value.

With --weights under each weight of the extender, and the percentage as shipped. The servers are then not alike to the other
plugins: each holds CPU and memory for others, has half of the images, and stands in one of four rows; the pods come of eight
applications, each with an image and a row that it prefers, and half of these want their pods apart, all by the seed."""

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
APPLICATIONS, ROWS = 8, 4
ROW = "example.com/row"
# ImageLocality counts an image by its size times the share of nodes that have it, and 1 GB is its best: half of them do.
IMAGE_BYTES = 10 * 10**9
HOLDERS = "holders"


def pod(name, gpus):
    return {"metadata": {"name": name}, "spec": indexed_job(name, 1, gpus)["spec"]["template"]["spec"]}


def gpus_of(one):
    return int(one["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"])


# What other plugins see

def image(application):
    return f"registry.example.com/application-{application}:1"


def give_wishes(body, chance):
    """Of ImageLocality, NodeAffinity and PodTopologySpread, which are all in the chart's profile."""
    application = chance.randrange(APPLICATIONS)
    label = {"application": str(application)}
    body["metadata"]["labels"] = label
    spec = body["spec"]
    spec["containers"][0]["image"] = image(application)
    spec["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": {
        "matchExpressions": [{"key": ROW, "operator": "In", "values": [str(application % ROWS)]}]}}]}}
    if application < APPLICATIONS // 2:
        spec["topologySpreadConstraints"] = [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
                                              "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": label}}]


def make_servers_unlike(plane, cluster, chance):
    """What a server holds beside GPUs is for NodeResourcesFit and NodeResourcesBalancedAllocation of the stock profile; the
    chart's looks at GPUs alone."""
    plane.create_namespace(HOLDERS)
    drawn = [(node.name, chance.randrange(ROWS), chance.sample(range(APPLICATIONS), APPLICATIONS // 2),
              {"cpu": str(chance.randrange(0, 161, 8)), "memory": f"{chance.randrange(0, 1601, 64)}Gi"}) for node in cluster.nodes]

    def change(row):
        name, row, images, load = row
        plane.rest.patch(path("nodes", name=name), {"metadata": {"labels": {ROW: str(row)}}})
        plane.rest.patch(path("nodes", name=name, sub="status"), {"status": {"images": [
            {"names": [image(application)], "sizeBytes": IMAGE_BYTES} for application in images]}})
        plane.rest.create(path("pods", HOLDERS), {"metadata": {"name": f"holds-{name}"}, "spec": {
            "nodeName": name, "containers": [{"name": "other", "image": "other", "resources": {"requests": load}}]}})
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(change, drawn))


# What is measured

def restart_scheduler(heddle, change):
    """With the configuration that it has and `change` made to it."""
    file = heddle.plane.folder / "heddle-scheduler.json"
    config = json.loads(file.read_text())
    change(config)
    file.write_text(json.dumps(config))
    heddle.kill9("scheduler")
    heddle.forget_lease()
    heddle.start_daemon("scheduler")


def place(plane, heddle, bodies):
    """Seconds until the last is bound, and GPUs in use by node; then they are gone."""
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
        used[bound_to(one)] = used.get(bound_to(one), 0) + gpus_of(one)
    plane.rest.request("DELETE", where, {"gracePeriodSeconds": 0})
    heddle.wait_for(lambda: not plane.pods(heddle.namespace), "the pods to be gone", 120)
    return seconds, used


def partial(used):
    return sum(1 for gpus in used.values() if gpus < 8)


def measure_percentages(plane, heddle, bodies, percentages):
    print("| percentageOfNodesToScore | pods/s | nodes in use | of them not full |\n|---|---|---|---|", flush=True)
    for percentage in percentages:
        restart_scheduler(heddle, lambda config, now=percentage: config.update(percentageOfNodesToScore=now))
        seconds, used = place(plane, heddle, bodies)
        print(f"| {percentage} | {len(bodies) / seconds:.0f} | {len(used)} | {partial(used)} |", flush=True)


def measure_weights(plane, heddle, bodies, weights, profile):
    nodes = len(plane.rest.list(path("nodes")))
    print(f"profile: {profile}\n\n| weight | seconds | servers broken | whole servers free |\n|---|---|---|---|", flush=True)
    for weight in weights:
        def change(config, now=weight):
            config["extenders"][0]["weight"] = now
            if profile == "stock":
                # NodeResourcesFit for the least allocated of CPU and memory, and NodeResourcesBalancedAllocation.
                config["profiles"][0].pop("pluginConfig", None)
                config["profiles"][0]["plugins"].pop("score", None)
        restart_scheduler(heddle, change)
        seconds, used = place(plane, heddle, bodies)
        print(f"| {weight} | {seconds:.1f} | {partial(used)} | {nodes - len(used)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--percentages", type=int, nargs="+", default=[0, 5, 50, 100])
    parser.add_argument("--weights", type=int, nargs="+", help="of the extender, in place of percentages; the chart has 150")
    parser.add_argument("--profile", choices=["shipped", "stock"], default="shipped",
                        help="with --weights: the chart's profile, or all score plugins as Kubernetes has them")
    parser.add_argument("--bin", default=str(ROOT / "build" / "release" / "bin"))
    arguments = parser.parse_args()
    cluster, chance = h100(units=(arguments.nodes + 15) // 16), random.Random(SEED)
    bodies = [pod(f"lone-{index}", chance.choice([1, 2, 4])) for index in range(arguments.pods)]
    least = -(-sum(map(gpus_of, bodies)) // 8)
    with ControlPlane("bench") as plane:
        Nodes(plane).add(cluster, timeout=300)
        if arguments.weights:
            make_servers_unlike(plane, cluster, chance)
            for body in bodies:
                give_wishes(body, chance)
        heddle = Heddle(plane, arguments.bin)
        heddle.install()
        publish(plane, heddle, cluster)
        heddle.start_scheduler()
        print(f"{len(cluster.nodes)} nodes, {len(bodies)} pods; the fewest nodes that hold them: {least}\n")
        if arguments.weights:
            measure_weights(plane, heddle, bodies, arguments.weights, arguments.profile)
        else:
            measure_percentages(plane, heddle, bodies, arguments.percentages)
    return 0


if __name__ == "__main__":
    sys.exit(main())
