"""The extender's memory with a full cluster, and how long it takes to be of use after kill -9."""

import random
import time

from bed import path

from .fleet import TEAM, cpu_seconds


def _bound_pod(node, index, owner):
    """A pod as the extender meets it after the scheduler: no scheduler has to place 20,000 of them first."""
    resources = {"cpu": "1", "nvidia.com/gpu": "4"}
    return {"metadata": {"name": f"{owner}-{index:02}", "labels": {"batch.kubernetes.io/job-name": owner}},
            "spec": {"nodeName": node, "containers": [
                {"name": "worker", "image": "train",
                 "env": [{"name": f"SETTING_{n}", "value": "x" * 40} for n in range(20)],
                 "resources": {"limits": resources, "requests": resources}}]}}


def _rest(fleet):
    """Until it does nothing more, and its next half-minute, in which it returns what is free."""
    fleet.settle()
    time.sleep(31)
    fleet.settle()


def _start(fleet, what, start):
    """`start` gives the seconds until the extender was ready."""
    server = fleet.plane.process("apiserver").pid
    before = cpu_seconds(server)
    ready = start()
    own, servers = cpu_seconds(fleet.extender.pid), cpu_seconds(server) - before
    _rest(fleet)
    print(f"{what}: ready after {ready:.1f} s with {own:.1f} s of CPU and {servers:.1f} s of the API server's; at rest "
          f"{fleet.extender.resident_bytes() / 1e6:.0f} MB, {cpu_seconds(fleet.extender.pid):.1f} s of CPU", flush=True)


def measure(fleet, pods):
    cluster = fleet.cluster
    per_node = -(-pods // len(cluster.nodes))
    bodies = [_bound_pod(node.name, index, f"job-{node.index // 8:05}-{node.index % 8}")
              for node in cluster.nodes for index in range(per_node)][:pods]
    # KWOK would take minutes of the API server to bring 20,000 pods to life; what is measured here is who reads them.
    fleet.plane.kill9("kwok")
    started = time.monotonic()
    fleet.plane.create_all(path("pods", TEAM), bodies)
    print(f"{len(bodies)} bound pods made in {time.monotonic() - started:.0f} s", flush=True)
    fleet.settle()  # the controller-manager has work with new pods
    _start(fleet, "first start", fleet.start_extender)
    fleet.heddle.kill9("extender")

    def again():
        started = time.monotonic()
        fleet.extender.start()
        return fleet.wait_extender_ready(started)
    _start(fleet, "after kill -9", again)
    watched, churn = cpu_seconds(fleet.extender.pid), random.Random(1)
    started = time.monotonic()
    for _ in range(200):
        pod = churn.choice(bodies)["metadata"]["name"]
        touched = {"metadata": {"annotations": {"touched": str(time.monotonic())}}}
        fleet.plane.rest.patch(path("pods", TEAM, pod), touched)
    fleet.settle(1)
    print(f"200 changes of pods in {time.monotonic() - started:.1f} s cost it "
          f"{cpu_seconds(fleet.extender.pid) - watched:.2f} s of CPU; afterwards {fleet.extender.resident_bytes() / 1e6:.0f} MB", flush=True)
    fleet.plane.start_component("kwok")
    fleet.empty()
