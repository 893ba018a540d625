"""RayClusters, and the RayJobs and RayServices that make them, as KubeRay's operator makes their pods, with its CRDs. It has
no webhooks by default. Ray itself does not run in the pods, so a RayJob stays before its submission and a RayService gets no
answer from its head: what their clusters are like is asked, and not how they end by themselves."""

import copy

from bed.testing import bound_to
from framework_case import FrameworkTestCase, example
from scenario import TEAM

RAY = f"/apis/ray.io/v1/namespaces/{TEAM}"


class KubeRay(FrameworkTestCase):
    frameworks = ("kuberay",)
    kinds = ("rayjob", "rayservice", "raycluster")

    def workers(self, cluster, count, but=()):
        return self.placed(count, f"ray.io/cluster={cluster},ray.io/node-type=worker", but)

    def cluster_of(self, kind, name):
        """The RayCluster that KubeRay made for it."""
        def made():
            return next((one["metadata"]["name"] for one in self.plane.rest.list(f"{RAY}/rayclusters")
                         if any((owner["kind"], owner["name"]) == (kind, name)
                                for owner in one["metadata"].get("ownerReferences", []))), None)
        return self.wait_for(made, f"the RayCluster of {kind} {name}")

    def test_the_workers_of_the_example_are_a_gang_whose_ranks_are_in_a_file(self):
        self.assert_example_is_sound("raycluster")
        self.apply(*example("raycluster"))
        pods = self.workers("lab", 8)
        gang = self.wait_gang("lab", "Running")
        self.assertEqual((gang["spec"]["owner"]["kind"], gang["spec"]["pods"]), ("RayCluster", 8))
        self.assert_as_planned(gang, pods)
        self.assert_in_the_file("lab", pods)
        head, = self.placed(1, "ray.io/cluster=lab,ray.io/node-type=head")
        self.assertNotIn("heddle.dev/rank", head["metadata"].get("annotations", {}))
        self.assertEqual(self.explain("raycluster/lab")["tpGroups"], 8)

        victim = self.by_rank(pods)[3]
        self.plane.kubectl("-n", TEAM, "delete", "pod", victim["metadata"]["name"], "--wait=false")
        again = self.workers("lab", 8, but={victim["metadata"]["uid"]})
        self.assertEqual(bound_to(self.by_rank(again)[3]), bound_to(victim))
        self.wait_for(lambda: not self.assert_in_the_file("lab", again), "the new worker to be in the file")

    def test_a_rayjobs_cluster_is_a_gang_whose_ranks_have_the_jobs_name(self):
        self.assert_example_is_sound("rayjob")
        self.apply(*example("rayjob"))
        cluster = self.cluster_of("RayJob", "llama")
        pods = self.workers(cluster, 8)
        self.assert_as_planned(self.wait_gang(cluster, "Running"), pods)
        self.assert_in_the_file("llama", pods)
        self.assertEqual(self.explain("rayjob/llama")["tpGroups"], 8)

    def test_a_rayservices_cluster_is_a_gang(self):
        self.assert_example_is_sound("rayservice")
        self.apply(*example("rayservice"))
        cluster = self.cluster_of("RayService", "chat")
        pods = self.workers(cluster, 4)
        self.assert_as_planned(self.wait_gang(cluster, "Running"), pods)
        self.assertEqual(self.explain(f"raycluster/{cluster}")["tpGroups"], 4)

    def test_an_upgrade_of_a_rayservice_is_a_second_gang_beside_the_first_with_ranks_of_its_own(self):
        self.apply(*example("rayservice"))
        first = self.cluster_of("RayService", "chat")
        before = self.workers(first, 4)
        # What the controller writes when the service has answered, which it cannot here.
        self.plane.rest.patch(f"{RAY}/rayservices/chat/status", {"status": {
            "activeServiceStatus": {"rayClusterName": first}, "pendingServiceStatus": {"rayClusterName": ""}}})
        self.plane.rest.patch(f"{RAY}/rayservices/chat", [
            {"op": "replace", "path": "/spec/rayClusterConfig/rayVersion", "value": "2.50.0"}], "json")

        def pending():
            return next((one["metadata"]["name"] for one in self.plane.rest.list(f"{RAY}/rayclusters")
                         if one["metadata"]["name"] != first), None)
        second = self.wait_for(pending, "the RayCluster of the new version")
        after = self.workers(second, 4)
        self.assert_in_the_file(first, before)
        self.assert_in_the_file(second, after)

    def test_a_cluster_that_is_told_to_grow_by_its_autoscaler_is_planned_at_its_new_size(self):
        made, = copy.deepcopy(example("raycluster"))
        made["metadata"]["name"] = "rubber"
        made["spec"]["enableInTreeAutoscaling"] = True
        group = made["spec"]["workerGroupSpecs"][0]
        group |= {"replicas": 4, "minReplicas": 2, "maxReplicas": 8}
        group["template"]["metadata"]["annotations"]["heddle.dev/parallelism"] = "tp=8,dp=4"
        self.apply(made)
        before = {pod["metadata"]["name"]: bound_to(pod) for pod in self.workers("rubber", 4)}
        self.plane.rest.patch(f"{RAY}/rayclusters/rubber", [
            {"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 6}], "json")
        after = {pod["metadata"]["name"]: bound_to(pod) for pod in self.workers("rubber", 6)}
        self.assertEqual({name: after.get(name) for name in before}, before, "nobody that ran was moved")


class KubeRayNumbersHosts(FrameworkTestCase):
    """With the gate that is on by default from v1.6: replicas of several hosts have numbers, and so have their hosts."""

    frameworks = ("kuberay",)
    arguments = {"kuberay": ("--feature-gates=RayMultiHostIndexing=true",)}
    kinds = ("raycluster",)

    def test_the_hosts_of_a_replica_have_ranks_next_to_each_other(self):
        made, = copy.deepcopy(example("raycluster"))
        made["metadata"]["name"] = "slices"
        made["spec"]["workerGroupSpecs"][0] |= {"replicas": 4, "minReplicas": 4, "maxReplicas": 4, "numOfHosts": 2}
        self.apply(made)
        selector = "ray.io/cluster=slices,ray.io/node-type=worker"
        pods = self.placed(8, selector)
        self.assert_numbered(pods)
        self.assert_as_planned(self.wait_gang("slices", "Running"), pods)

        # One host less, and KubeRay makes its whole replica again, with the number that the old one had.
        victim = self.by_rank(pods)[3]
        twin = self.by_rank(pods)[2]
        self.plane.kubectl("-n", TEAM, "delete", "pod", victim["metadata"]["name"], "--wait=false")
        again = self.placed(8, selector, but={victim["metadata"]["uid"], twin["metadata"]["uid"]})
        self.assert_numbered(again)
        self.assertEqual([bound_to(pod) for pod in self.by_rank(again)], [bound_to(pod) for pod in self.by_rank(pods)])

    def assert_numbered(self, pods):
        labels = [pod["metadata"]["labels"] for pod in self.by_rank(pods)]
        self.assertEqual([(int(one["ray.io/worker-group-replica-index"]), int(one["ray.io/replica-host-index"]))
                          for one in labels], [(rank // 2, rank % 2) for rank in range(len(pods))])
