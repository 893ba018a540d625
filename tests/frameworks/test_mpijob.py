"""MPIJobs as mpi-operator makes them, with its CRD; it has no webhooks."""

from bed import path
from framework_case import FrameworkTestCase, example
from scenario import TEAM

KUBEFLOW = "training.kubeflow.org/"
JOBS = f"/apis/kubeflow.org/v2beta1/namespaces/{TEAM}/mpijobs"


class MpiOperator(FrameworkTestCase):
    frameworks = ("mpi-operator",)
    kinds = ("mpijob",)

    def hosts(self, name):
        """The pods in the order of mpirun's processes: the host file that the operator wrote."""
        made = self.plane.rest.get(path("configmaps", TEAM, f"{name}-config"))
        return [line.split(".")[0] for line in made["data"]["hostfile"].splitlines()]

    def host_of(self, pod):
        return pod["spec"].get("hostname") or pod["metadata"]["name"]

    def assert_heddles_host_file(self, name, pods):
        """Its own one, in the same order: each pod as others reach it, and its GPUs."""
        made = self.plane.rest.get(path("configmaps", TEAM, f"{name}-heddle-ranks"))
        addresses = [".".join(filter(None, (self.host_of(pod), pod["spec"].get("subdomain")))) for pod in self.by_rank(pods)]
        self.assertEqual(made["data"]["hostfile"].splitlines(), [f"{address} slots=8" for address in addresses])
        self.assert_in_the_file(name, pods)

    def succeeded(self, name):
        conditions = self.plane.rest.get(f"{JOBS}/{name}").get("status", {}).get("conditions", [])
        return any(one["type"] == "Succeeded" and one["status"] == "True" for one in conditions)

    def test_the_workers_of_the_example_are_the_gang_in_the_order_of_the_host_file(self):
        self.assert_example_is_sound("mpijob")
        self.apply(*example("mpijob"))
        pods = self.placed(9, f"{KUBEFLOW}job-name=nccl")
        workers = [pod for pod in pods if pod["metadata"]["labels"][f"{KUBEFLOW}job-role"] == "worker"]
        launcher, = [pod for pod in pods if pod not in workers]
        self.assertNotIn("heddle.dev/rank", launcher["metadata"].get("annotations", {}))
        gang = self.wait_gang("nccl", "Running")
        self.assertEqual((gang["spec"]["owner"]["kind"], gang["spec"]["pods"]), ("MPIJob", 8))
        self.assert_as_planned(gang, workers)
        self.assertEqual([self.host_of(pod) for pod in self.by_rank(workers)], self.hosts("nccl"))
        self.assert_heddles_host_file("nccl", workers)
        self.assertEqual(self.explain("mpijob/nccl")["tpGroups"], 8)
        self.finish([launcher])
        self.wait_for(lambda: self.succeeded("nccl"), "the MPIJob to have succeeded")
        self.plane.wait_for(self.all_ended, "the Gang to end", 60)

    def test_a_launcher_that_works_is_rank_0_and_the_workers_follow(self):
        self.assert_example_is_sound("mpijob-launcher-works")
        self.apply(*example("mpijob-launcher-works"))
        pods = self.placed(8, f"{KUBEFLOW}job-name=nccl-eight")
        gang = self.wait_gang("nccl-eight", "Running")
        self.assertEqual(gang["spec"]["pods"], 8)
        self.assert_as_planned(gang, pods)
        self.assertEqual([self.host_of(pod) for pod in self.by_rank(pods)], self.hosts("nccl-eight"))
        self.assert_heddles_host_file("nccl-eight", pods)
