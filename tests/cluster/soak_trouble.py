"""What goes wrong in the soak for a while and is mended again: nodes that are lost and come back, GPUs that break, Jobs that
somebody suspends, pods with GPUs that are of no gang."""

import collections
import time

from bed import ApiError, path
from bed.testing import bound_to, indexed_job
from scenario import OTHERS, TEAM
from soak_queue import seconds

MOST_LOST, MOST_BROKEN, MOST_LONE = 3, 4, 6
# Seconds that it lasts. A lost node's pods are evicted after 300.
LOST, BROKEN, SUSPENDED, LONE = (5, 90), (10, 120), (2, 40), (5, 60)


def unless_gone(call, *arguments, **keywords):
    """Somebody else may have been faster."""
    try:
        return call(*arguments, **keywords)
    except ApiError as problem:
        if problem.status != 404:
            raise
        return None


class Trouble:
    """By `chance`, so that a seed brings the same again. Each kind keeps when what it has broken is to be mended."""

    def __init__(self, plane, heddle, nodes, cluster, chance):
        self._plane, self._heddle, self._nodes, self._cluster, self._chance = plane, heddle, nodes, cluster, chance
        self.lost, self.broken, self.suspended, self.lone = {}, {}, {}, {}
        self.count = collections.Counter()

    def _until(self, span):
        return time.monotonic() + self._chance.uniform(*span)

    def _any_node(self, but):
        return self._chance.choice([node.name for node in self._cluster.nodes if node.name not in but])

    # A node

    def lose_a_node(self, cordoned):
        """Not one that is cordoned: nobody would see it come back."""
        if len(self.lost) < MOST_LOST:
            node = self._any_node(self.lost.keys() | cordoned)
            self._nodes.lose(node)
            self.lost[node] = self._until(LOST)
            self.count["nodes lost"] += 1

    def find(self, node):
        del self.lost[node]
        # Not find_again(), which waits: all the while nobody would look at what must hold.
        self._nodes.take_back(node)
        self.count["nodes found again"] += 1

    def finish_overdue(self, pods):
        """What a kubelet does at the latest when the grace of a deleted pod is over, on each node that has one. KWOK does it
        as soon as it hears of the deletion; where it was started meanwhile, it hears of pods before its own cache shows that
        it holds their node's Lease, and then leaves them.
        """
        now = time.time()
        self._nodes.finish_deleted([pod for pod in pods if bound_to(pod) and bound_to(pod) not in self.lost
                                    and "deletionTimestamp" in pod["metadata"] and seconds(pod["metadata"]["deletionTimestamp"]) < now])

    # A GPU

    def _boot(self, node, **faults):
        agent = f"agent:{node}"
        self._heddle.kill9(agent)
        self._heddle.write_machine(self._cluster, node, **faults)
        self._heddle.start_daemon(agent)

    def break_a_gpu(self):
        if len(self.broken) < MOST_BROKEN:
            node = self._any_node(self.broken.keys())
            self._boot(node, bad_gpus=[self._chance.randrange(self._cluster.node(node).gpus)])
            self.broken[node] = self._until(BROKEN)
            self.count["GPUs broken"] += 1

    def heal(self, node):
        del self.broken[node]
        self._boot(node)
        self.count["GPUs healed"] += 1

    # A Job

    def suspend(self, jobs):
        """One of these. One that Heddle has suspended is Heddle's to resume."""
        running = sorted(jobs - self.suspended.keys())
        if not running:
            return
        name = self._chance.choice(running)
        job = unless_gone(self._plane.rest.get, path("jobs", TEAM, name))
        if job and not job["spec"].get("suspend"):
            self._plane.rest.patch(path("jobs", TEAM, name), {"spec": {"suspend": True}})
            self.suspended[name] = self._until(SUSPENDED)
            self.count["Jobs suspended"] += 1

    def resume(self, name):
        del self.suspended[name]
        self._plane.rest.patch(path("jobs", TEAM, name), {"spec": {"suspend": False}})
        self.count["Jobs resumed"] += 1

    def forget(self, name):
        """Of a Job that is deleted."""
        self.suspended.pop(name, None)

    # A pod of no gang

    def make_lone_pod(self, priority):
        """Scheduled by Heddle's kube-scheduler: two of them that do not know of each other would give one GPU twice."""
        if len(self.lone) < MOST_LONE:
            gpus = self._chance.randint(1, self._cluster.nodes[0].gpus)
            name = f"lone-{self.count['lone pods']}"
            more = {"schedulerName": "heddle"} | ({"priorityClassName": priority} if priority else {})
            spec = indexed_job("", 1, gpus, **more)["spec"]["template"]["spec"]
            self._plane.rest.create(path("pods", OTHERS), {"metadata": {"name": name}, "spec": spec})
            self.lone[name] = self._until(LONE)
            self.count["lone pods"] += 1

    def end_lone_pod(self, name):
        """It may have been stopped for somebody else."""
        del self.lone[name]
        unless_gone(self._plane.rest.delete, path("pods", OTHERS, name), gracePeriodSeconds=0)

    # All of it

    def _kinds(self):
        return (self.lost, self.find), (self.broken, self.heal), (self.suspended, self.resume), (self.lone, self.end_lone_pod)

    def mend_what_is_due(self):
        now = time.monotonic()
        for known, mend in self._kinds():
            for name in [name for name, due in known.items() if due <= now]:
                mend(name)

    def mend_all(self):
        for known, mend in self._kinds():
            for name in sorted(known):
                mend(name)

        def whole():
            broken = [node.name for node in self._cluster.nodes if not self._heddle.is_whole(node.name)]
            if broken:
                raise AssertionError(f"still published with faults: {', '.join(broken[:5])}")
            return True
        self._heddle.wait_for(whole, "every machine to be published without faults", 120)

    def told(self):
        kinds = ("nodes lost", "nodes found again", "GPUs broken", "GPUs healed", "Jobs suspended", "Jobs resumed", "lone pods")
        return ", ".join(f"{self.count[kind]} {kind}" for kind in kinds)
