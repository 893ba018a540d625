"""What becomes of running gangs when nodes, NVLink domains, GPUs and rails fail, and of the nodes kept for that."""

import itertools

import scenario
from bed import path
from bed.clusters import h100, nvl72
from bed.testing import bound_to, indexed_job
from scenario import TEAM
from test_main_job import HeddleTestCase

TRAYS = 6  # of a rack
INDEX = "batch.kubernetes.io/job-completion-index"


class BreakingTestCase(HeddleTestCase):
    """Breaks what a running gang stands on, and mends it after each test."""

    numbers = itertools.count(1)

    def setUp(self):
        self.name = f"train-{next(self.numbers)}"
        self.addCleanup(self.mend)
        self.cordoned, self.lost, self.broken, self.gone = [], [], [], []

    def mend(self):
        for node in self.cordoned:
            self.set_cordoned(node, None)
        for node in self.lost:
            self.nodes.find_again(node)
        for node in self.broken:
            self.break_node(node)
            self.heddle.wait_for(lambda: self.is_whole(node), f"{node} to be published without faults")
        for node in self.gone:
            # Its NodeTopology goes with the Node that it belonged to, some time after; the next Node gets another.
            self.heddle.wait_for(lambda: not self.plane.rest.find(path("nodetopologies", name=node)), f"{node} to be forgotten")
            self.nodes.add_nodes([self.cluster.node(node)])
            # The agent's token was bound to the Node that is gone.
            self.heddle.stop_daemon(f"agent:{node}")
            self.heddle.start_agent(node)
            self.heddle.wait_published([node])

    def start_gang(self, pods, name=None, within="nvlink", parallelism=None):
        """A gang of whole trays, running."""
        name = name or self.name
        annotations = {"heddle.dev/parallelism": parallelism or f"tp=4,dp={pods}", "heddle.dev/require": f"gang={within}"}
        self.submit(indexed_job(name, pods, 4, annotations=annotations, backoff_limit=50))
        scenario.wait_bound(self.plane, TEAM, pods, name)
        self.wait_gang(name, "Running")
        return self.by_rank(name)

    def by_rank(self, name=None):
        pods = scenario.pods_of(self.plane, TEAM, name or self.name)
        return {int(pod["metadata"]["labels"][INDEX]): pod for pod in pods
                if "deletionTimestamp" not in pod["metadata"] and pod["status"].get("phase") != "Failed"}

    @staticmethod
    def places(pods):
        return {rank: (pod["metadata"]["uid"], bound_to(pod)) for rank, pod in pods.items()}

    def racks(self, pods):
        return {self.cluster.node(bound_to(pod)).nvlink_domain for pod in pods.values()}

    def set_cordoned(self, node, on):
        self.plane.rest.patch(path("nodes", name=node), {"spec": {"unschedulable": on}})

    def vanish(self, pod):
        """What PodGC and the Job controller do to a pod whose node is out of service: it is gone, finalizer and all."""
        where = path("pods", TEAM, pod["metadata"]["name"])
        self.plane.rest.patch(where, {"metadata": {"finalizers": None}})
        self.plane.rest.delete(where, gracePeriodSeconds=0)

    def break_node(self, node, **faults):
        """Has its agent look at the node's machine with these faults or none."""
        self.heddle.write_machine(self.cluster, node, **faults)
        self.heddle.restart(f"agent:{node}")

    def is_whole(self, node):
        return self.heddle.is_whole(node)

    def wait_moved(self, ranks, before, timeout=120.0):
        """Until these ranks have new pods on nodes; returns all pods."""
        def moved():
            pods = self.by_rank()
            new = {rank for rank, pod in pods.items()
                   if bound_to(pod) and pod["metadata"]["uid"] != before[rank]["metadata"]["uid"]}
            if len(pods) != len(before) or not set(ranks) <= new:
                raise AssertionError(((self.gang(self.name) or {}).get("status") or {}).get("message") or f"{new} moved")
            return pods
        return self.heddle.wait_for(moved, f"ranks {sorted(ranks)} of {self.name} to have new places", timeout)

    def assert_only_moved(self, rank, before, after):
        """To a node that nobody of the gang was on, of the same rack where there are racks."""
        self.assertNotIn(bound_to(after[rank]), {bound_to(pod) for pod in before.values()})
        self.assertEqual(self.racks(after), self.racks(before))
        self.assertEqual({r: p for r, p in self.places(after).items() if r != rank},
                         {r: p for r, p in self.places(before).items() if r != rank}, "others were moved, too")

    def wait_says(self, reason, *words, timeout=60.0):
        def says():
            status = self.gang(self.name)["status"]
            if status.get("reason", "") != reason or any(word not in status.get("message", "") for word in words):
                raise AssertionError((status.get("reason"), status.get("message")))
            return status
        return self.heddle.wait_for(says, f"the Gang of {self.name} to say {reason or 'nothing'}", timeout)


class RepairTest(BreakingTestCase):
    """Two racks of six trays, of which new gangs leave one free."""

    cluster = nvl72(racks=2, trays=TRAYS)

    @classmethod
    def set_up_bed(cls):
        super().set_up_bed()
        cls.heddle.stop_daemon("extender")
        cls.heddle.start_extender("--spares=1")

    def test_a_gang_that_would_take_the_spares_is_told_of_them(self):
        annotations = {"heddle.dev/parallelism": f"tp=4,dp={TRAYS}", "heddle.dev/require": "gang=nvlink"}
        self.submit(indexed_job(self.name, TRAYS, 4, annotations=annotations))

        def told():
            message = ((self.gang(self.name) or {}).get("status") or {}).get("message", "")
            if "kept as spares" not in message:
                raise AssertionError(message or "no message")
            return True
        self.heddle.wait_for(told, "the refusal to name the spares", 60)
        smaller = f"{self.name}-smaller"
        self.assertEqual(len(self.racks(self.start_gang(TRAYS - 1, smaller))), 1)
        self.assertTrue(any("spare" in line for line in self.gang(smaller)["status"]["explanation"]))

    def test_a_cordon_moves_nobody_and_a_drain_moves_one_rank_to_the_spare_of_its_rack(self):
        before = self.start_gang(TRAYS - 1)
        node = bound_to(before[2])
        self.cordoned.append(node)
        self.set_cordoned(node, True)
        # Whoever comes after has been planned by somebody who has seen the cordon, or will be told by the drain.
        self.start_gang(1, f"{self.name}-next")
        self.assertEqual(self.places(self.by_rank()), self.places(before))
        self.assertEqual(self.gang(self.name)["status"]["placement"]["epoch"], 1)
        where = path("pods", TEAM, before[2]["metadata"]["name"])
        self.plane.rest.create(f"{where}/eviction", {"apiVersion": "policy/v1", "kind": "Eviction",
                                                     "metadata": {"name": before[2]["metadata"]["name"], "namespace": TEAM}})
        after = self.wait_moved([2], before)
        self.assert_only_moved(2, before, after)
        self.wait_gang(self.name, "Running")
        self.assert_no_gpu_twice()

    def refuse(self, pod):
        """What a kubelet writes of a pod that it does not admit. No stage of KWOK's takes on a pod that failed."""
        self.plane.rest.patch(path("pods", TEAM, pod["metadata"]["name"], "status"), {"status": {
            "phase": "Failed", "reason": "UnexpectedAdmissionError",
            "message": "Pod was rejected: Allocate failed due to no healthy devices present"}})

    def test_a_rank_whose_pods_a_kubelet_refuses_twice_goes_to_the_spare_of_its_rack(self):
        before = self.start_gang(TRAYS - 1)
        node = bound_to(before[2])
        self.refuse(before[2])
        second = self.wait_moved([2], before)
        self.assertEqual(bound_to(second[2]), node, "one refusal may be a race")
        self.refuse(second[2])
        after = self.wait_moved([2], second)
        self.assert_only_moved(2, before, after)
        self.wait_gang(self.name, "Running")
        said = [event["message"] for event in self.plane.rest.list(path("events", TEAM)) if event["reason"] == "Repairing"]
        self.assertTrue(any(f"the kubelet of {node} refused 2 pods of it" in text for text in said), said)

    def test_a_deleted_node_costs_one_rank_its_place(self):
        before = self.start_gang(TRAYS - 1)
        node = bound_to(before[0])
        self.gone.append(node)
        self.nodes.remove(node)
        self.vanish(before[0])
        after = self.wait_moved([0], before)
        self.assert_only_moved(0, before, after)
        self.assert_no_gpu_twice()

    def test_a_gang_that_loses_its_whole_rack_comes_back_in_another(self):
        before = self.start_gang(TRAYS - 1)
        rack = next(iter(self.racks(before)))
        for node in self.cluster.nodes:
            if node.nvlink_domain == rack:
                self.lost.append(node.name)
                self.nodes.lose(node.name)
        for pod in before.values():
            self.vanish(pod)
        after = self.wait_moved(before, before, timeout=180)
        self.assertEqual(len(self.racks(after)), 1)
        self.assertNotEqual(self.racks(after), {rack})
        self.wait_gang(self.name, "Running")
        self.assert_no_gpu_twice()

    def test_a_running_gang_says_that_its_rail_is_degraded_and_a_new_one_avoids_the_node(self):
        before = self.start_gang(8, within="su")  # more than a rack has: it needs its rails
        node = bound_to(before[1])
        self.broken.append(node)
        self.break_node(node, down=[2])
        self.wait_says("RailDegraded", node, "rank 1")
        self.assertEqual(self.places(self.by_rank()), self.places(before))
        scenario.remove(self.plane, TEAM, self.name)
        # Experts on all trays: each sends to each, so that every rail counts. Rings cross between the racks at two trays
        # only, and to them a rail that is broken elsewhere is as good as whole.
        second = self.start_gang(8, f"{self.name}-second", within="su", parallelism="tp=4,dp=8,ep=8")
        self.assertNotIn(node, {bound_to(pod) for pod in second.values()})

    def test_a_running_gang_says_that_its_gpu_is_not_healthy_and_its_next_pod_goes_elsewhere(self):
        before = self.start_gang(4)
        node = bound_to(before[3])
        self.broken.append(node)
        self.break_node(node, bad_gpus=[1])
        self.wait_says("GpuUnhealthy", f"GPU 1 of {node} (rank 3) is not healthy")
        self.assertEqual(self.places(self.by_rank()), self.places(before))
        self.plane.rest.delete(path("pods", TEAM, before[3]["metadata"]["name"]), gracePeriodSeconds=0)
        after = self.wait_moved([3], before)
        self.assert_only_moved(3, before, after)
        self.wait_says("")


class SlowRailTest(BreakingTestCase):
    """Five servers below one set of leaves: rings of four go over every NIC, and one server is free."""

    cluster = h100(units=1, nodes_per_unit=5)

    def test_a_pod_that_is_made_again_leaves_a_degraded_rail_and_nobody_else_moves(self):
        self.submit(indexed_job(self.name, 4, 8, annotations={"heddle.dev/parallelism": "tp=8,dp=4"}, backoff_limit=50))
        scenario.wait_bound(self.plane, TEAM, 4, self.name)
        self.wait_gang(self.name, "Running")
        before = self.by_rank()
        node = bound_to(before[1])
        self.broken.append(node)
        self.break_node(node, down=[2])
        self.wait_says("RailDegraded", node, "rank 1")
        self.assertEqual(self.places(self.by_rank()), self.places(before), "a pod that runs was moved")
        self.plane.rest.delete(path("pods", TEAM, before[1]["metadata"]["name"]), gracePeriodSeconds=0)
        after = self.wait_moved([1], before)
        self.assert_only_moved(1, before, after)
        self.wait_says("")
        said = [event["message"] for event in self.plane.rest.list(path("events", TEAM)) if event["reason"] == "Repairing"]
        self.assertTrue(any("1 rank made again gets another slot" in text and node in text and "ms less" in text
                            for text in said), said)
        self.assert_no_gpu_twice()
