"""A cluster that is full but for some nodes, and gangs that would fit it and lack room: each look at the queue plans for
them again, where one that never fits is refused by its size."""

from bed import path
from bed.testing import indexed_job

from .fleet import TEAM

HOLDERS = "holders"  # the namespace of the pods that hold the room
FREE = 8             # nodes that stay free
PODS = 16            # of a gang that waits, each with a node of its own: more than are free
LACK_ROOM = ("NotEnoughFree", "Requirement")


def _holder(node):
    resources = {"cpu": "1", "nvidia.com/gpu": "8"}
    return {"metadata": {"name": f"holds-{node}"}, "spec": {"nodeName": node, "containers": [
        {"name": "worker", "image": "train", "resources": {"limits": resources, "requests": resources}}]}}


def fill(fleet, free=FREE):
    """Pods of no gang on all nodes but so many."""
    nodes = fleet.cluster.nodes
    if len(nodes) < free + PODS:
        raise SystemExit(f"{len(nodes)} nodes are too few: {free} stay free, and a gang that waits has {PODS}; give more --nodes")
    if not fleet.plane.rest.find(path("namespaces", name=HOLDERS)):
        fleet.plane.create_namespace(HOLDERS)
    fleet.plane.create_all(path("pods", HOLDERS), [_holder(node.name) for node in nodes[free:]])
    fleet.settle()


def empty(fleet):
    fleet.plane.kubectl("-n", HOLDERS, "delete", "pods", "--all", "--grace-period=0", "--force", "--wait=false")
    fleet.heddle.wait_for(lambda: not fleet.plane.pods(HOLDERS), "the room to be free", 600)


def wait_in_line(fleet, gangs):
    """So many gangs, until each has been told that others hold the room."""
    words = {"heddle.dev/parallelism": f"tp=8,dp={PODS}"}
    fleet.plane.create_all(path("jobs", TEAM), [indexed_job(f"waits-{index:05}", PODS, 8, annotations=words)
                                                for index in range(gangs)])

    def told():
        waiting = [gang for gang in fleet.plane.rest.list(path("gangs", TEAM))
                   if gang["spec"]["owner"]["name"].startswith("waits-")
                   and (gang.get("status") or {}).get("reason") in LACK_ROOM]
        if len(waiting) != gangs:
            raise AssertionError(f"{len(waiting)} of {gangs} gangs are told that they lack room")
        return True
    fleet.heddle.wait_for(told, f"{gangs} gangs to be told that they lack room", 3600)
