"""What `helm uninstall` does by itself: the hook that hands back what waits, with the rights that it has then.

KWOK runs nothing, so the test does what the hook's container would, under the hook's own account, and tells KWOK how the
pod ended. tests/e2e has it on a real kubelet."""

import subprocess

from bed import Heddle, path
from bed.heddle import CHART, NAMESPACE, TRAINING_NAMESPACE
from bed.testing import BedTestCase, deployment, indexed_job, is_running, options

ACCOUNT = "heddle-uninstall"
CLUSTER_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles/" + ACCOUNT
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/" + ACCOUNT


def is_gated(pod):
    return [gate["name"] for gate in pod["spec"].get("schedulingGates", [])] == ["heddle.dev/gang"]


class UninstallHookTest(BedTestCase):

    @classmethod
    def set_up_bed(cls):
        cls.nodes.add_plain("node-a", "node-b")
        cls.heddle = Heddle(cls.plane, options.binaries)

    def install(self):
        """With what stands for daemons, and waits as a person would, for every kind that the chart has."""
        self.heddle.install(components={"run": True})
        subprocess.run([self.plane.binaries / "helm", "upgrade", "heddle", CHART, "--namespace", NAMESPACE, "--reuse-values",
                        "--wait", "--timeout", "2m"], check=True, capture_output=True, env=self.plane.tool_environment())

    def setUp(self):
        self.install()
        job = indexed_job("waits", 2, 8, annotations={"heddle.dev/parallelism": "tp=8,dp=2"})
        self.plane.rest.create(path("jobs", TRAINING_NAMESPACE), job)
        self.plane.wait_for(lambda: [is_gated(pod) for pod in self.pods_of_job()] == [True, True], "two pods at the gate")

    def tearDown(self):
        self.plane.rest.delete(path("jobs", TRAINING_NAMESPACE, "waits"), propagationPolicy="Background")
        self.plane.wait_for(lambda: not self.pods_of_job(), "its pods to be gone")

    def schedulers_of_lone_pods(self):
        return [pod["spec"]["schedulerName"] for pod in self.plane.pods(TRAINING_NAMESPACE, "app=serve")]

    def pods_of_job(self):
        return self.plane.pods(TRAINING_NAMESPACE, "batch.kubernetes.io/job-name=waits")

    def start_uninstall(self):
        helm = subprocess.Popen(
            [self.plane.binaries / "helm", "uninstall", "heddle", "--namespace", NAMESPACE, "--wait", "--timeout", "3m"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.plane.tool_environment())
        self.addCleanup(helm.kill)

        def runs():
            pods = [pod for pod in self.plane.pods(NAMESPACE, "app.kubernetes.io/component=uninstall") if is_running(pod)]
            return pods[0] if pods else None
        return helm, self.plane.wait_for(runs, "the hook's pod to run", 120)

    def as_the_container(self, pod):
        """What its command does with the account that it has."""
        self.assertEqual(pod["spec"]["serviceAccountName"], ACCOUNT)
        program, *arguments = pod["spec"]["containers"][0]["command"]
        config = self.plane.account_kubeconfig(NAMESPACE, ACCOUNT)
        return subprocess.run([self.heddle.binaries / program, *arguments], capture_output=True, text=True, check=False,
                              timeout=120, env={"KUBECONFIG": str(config), "HOME": str(self.plane.folder)})

    def left(self):
        """What of the hook is still there."""
        objects = {"account": path("serviceaccounts", NAMESPACE, ACCOUNT), "role": CLUSTER_ROLES, "binding": BINDINGS,
                   "job": path("jobs", NAMESPACE, ACCOUNT)}
        return {name for name, where in objects.items() if self.plane.rest.find(where)}

    def test_an_uninstall_hands_back_what_waits_and_leaves_nothing(self):
        self.assertEqual(self.left(), set(), "before an uninstall nobody has these rights")
        self.plane.rest.create(path("deployments", TRAINING_NAMESPACE), deployment("serve", 8))
        self.addCleanup(self.plane.rest.delete, path("deployments", TRAINING_NAMESPACE, "serve"),
                        propagationPolicy="Background")
        self.plane.wait_for(lambda: self.schedulers_of_lone_pods() == ["heddle"], "a lone pod for Heddle's scheduler")
        helm, pod = self.start_uninstall()
        self.assertEqual(self.plane.rest.list(path("mutatingadmissionpolicies")), [])
        self.assertEqual([pod["metadata"]["name"] for pod in self.plane.pods(NAMESPACE, "app.kubernetes.io/component in "
                          "(operator,scheduler,nodeagent)")], [])
        done = self.as_the_container(pod)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("suspended and resumed", done.stdout)
        self.assertIn("deleted; its controller makes another", done.stdout)
        self.plane.finish_pod(NAMESPACE, pod["metadata"]["name"])
        said, _ = helm.communicate(timeout=120)
        self.assertEqual(helm.returncode, 0, said)
        self.assertIn('release "heddle" uninstalled', said)
        self.assertEqual(self.left(), set())
        self.plane.wait_for(lambda: not self.plane.pods(NAMESPACE), "the hook's pod to be gone")
        self.plane.wait_for(lambda: [pod["spec"]["schedulerName"] for pod in self.pods_of_job()] == ["default-scheduler"] * 2,
                            "pods for the cluster's own scheduler")
        self.plane.wait_for(lambda: self.schedulers_of_lone_pods() == ["default-scheduler"], "the lone one, too")
        forbidden = self.plane.audit(user=f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}", code=403)
        self.assertEqual([(event["verb"], event["uri"]) for event in forbidden], [])

    def test_what_is_left_to_a_person_stays_with_its_log(self):
        alone = {"metadata": {"name": "alone", "annotations": {"heddle.dev/parallelism": "tp=8"}},
                 "spec": {"containers": [{"name": "a", "image": "a", "resources": {"limits": {"nvidia.com/gpu": "8"}}}]}}
        self.plane.rest.create(path("pods", TRAINING_NAMESPACE), alone)
        helm, pod = self.start_uninstall()
        done = self.as_the_container(pod)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("nobody makes it again", done.stdout)
        name = pod["metadata"]["name"]
        self.plane.rest.patch(path("pods", NAMESPACE, name, "status"), {"status": {"phase": "Failed", "containerStatuses": [
            {"name": "uninstall", "image": "heddle", "imageID": "", "ready": False, "restartCount": 0,
             "state": {"terminated": {"exitCode": 3, "reason": "Error"}}}]}})
        said, _ = helm.communicate(timeout=120)
        self.assertNotEqual(helm.returncode, 0, said)
        self.assertIn(ACCOUNT, said)
        self.assertEqual(self.left(), {"job"}, "no rights stay")
        conditions = self.plane.rest.get(path("jobs", NAMESPACE, ACCOUNT))["status"]["conditions"]
        self.assertIn("PodFailurePolicy", [condition["reason"] for condition in conditions], "it is not tried again")
        self.assertEqual([pod["metadata"]["name"] for pod in self.plane.pods(NAMESPACE)], [name])

        # The next one takes the failed Job's place.
        self.plane.rest.delete(path("pods", TRAINING_NAMESPACE, "alone"), gracePeriodSeconds=0)
        self.install()
        helm, pod = self.start_uninstall()
        self.assertNotEqual(pod["metadata"]["name"], name)
        self.plane.finish_pod(NAMESPACE, pod["metadata"]["name"])
        said, _ = helm.communicate(timeout=120)
        self.assertEqual((helm.returncode, self.left()), (0, set()), said)
