"""The bed itself: what every other cluster test stands on."""

import http.server
import os
import signal
import subprocess
import sys
import threading
import unittest
from pathlib import Path

from bed import ApiError, TimedOut, path, wait_for
from bed.control_plane import ControlPlane
from bed.nearby import bypassing
from bed.testing import BedTestCase, bound_to, indexed_job, is_running


class BehindAProxyTest(unittest.TestCase):
    """Where the environment names a proxy, `make demo` would wait for a healthy etcd until its timeout."""

    def test_what_runs_on_this_machine_is_asked_without_it(self):
        quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
        server = http.server.HTTPServer(("127.0.0.1", 0), quiet)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        asks = f"import bed, urllib.request as u; print(u.urlopen(u.Request('http://127.0.0.1:{server.server_port}/', method='HEAD')).status)"
        done = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, check=False, timeout=30,
                              cwd=Path(__file__).parent, env={**os.environ, "http_proxy": "http://127.0.0.1:9", "no_proxy": ""})
        self.assertEqual(done.stdout, "200\n", done.stderr)

    def test_what_went_past_it_before_still_does(self):
        self.assertEqual(bypassing(""), "127.0.0.1,localhost,::1")
        self.assertEqual(bypassing("corp.example, localhost"), "corp.example,localhost,127.0.0.1,::1")
        self.assertEqual(bypassing("*"), "*")


class ControlPlaneTest(BedTestCase):

    @classmethod
    def set_up_bed(cls):
        cls.nodes.add_plain("plain-0", "plain-1")

    def make_job(self, name, **keywords):
        self.plane.rest.create(path("jobs", "default"), indexed_job(name, **keywords))
        return f"batch.kubernetes.io/job-name={name}"

    def wait_running(self, selector, count, timeout=30):
        def running():
            pods = self.plane.pods("default", selector)
            seen = [(pod["metadata"]["name"], pod["status"].get("phase"), bound_to(pod)) for pod in pods]
            if len([pod for pod in pods if is_running(pod)]) != count:
                raise AssertionError(seen)
            return pods
        return self.plane.wait_for(running, f"{count} running pods of {selector}", timeout)

    def test_a_job_is_bound_by_the_stock_scheduler_runs_and_ends(self):
        selector = self.make_job("train", pods=2, gpus=8)
        pods = self.wait_running(selector, 2)
        # Eight GPUs each: one pod a node, or the fake nodes' allocatable is not what we gave them.
        self.assertEqual({bound_to(pod) for pod in pods}, {"plain-0", "plain-1"})
        self.assertEqual({pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] for pod in pods},
                         {"0", "1"})
        for pod in pods:
            self.plane.finish_pod("default", pod["metadata"]["name"])
        self.plane.wait_for(
            lambda: self.plane.rest.get(path("jobs", "default", "train"))["status"].get("succeeded") == 2,
            "the Job to have succeeded twice")

    def test_a_failed_pod_fails_a_job_without_retries(self):
        pods = self.wait_running(self.make_job("fragile", pods=1), 1)
        self.plane.finish_pod("default", pods[0]["metadata"]["name"], "failed")
        self.plane.wait_for(
            lambda: [c for c in self.plane.rest.get(path("jobs", "default", "fragile"))["status"].get("conditions", [])
                     if c["type"] == "Failed"], "the Job to have failed")

    def test_everything_goes_on_after_the_apiserver_was_killed(self):
        self.plane.kill9("apiserver")
        with self.assertRaises(OSError):
            self.plane.rest.get("/readyz")
        self.plane.start_component("apiserver")
        self.wait_running(self.make_job("after-kill", pods=2), 2)

    def test_everything_goes_on_after_the_apiserver_restarts_under_its_clients(self):
        self.plane.restart("apiserver", renew_clients=False)
        # As long as client-go's back-off may take where an earlier restart was less than two minutes ago.
        self.wait_running(self.make_job("after-restart", pods=2), 2, timeout=90)

    def test_the_audit_log_names_the_writer(self):
        selector = self.make_job("audited", pods=1)
        pod = self.wait_running(selector, 1)[0]["metadata"]["name"]

        def writers():
            bound = self.plane.audit(verb="create", resource="pods/binding", name=pod)
            made = [event for event in self.plane.audit(verb="create", resource="pods")
                    if event["body"]["metadata"].get("generateName") == "audited-0-"]
            return bound and made and (made[0]["user"], bound[0]["user"])
        self.assertEqual(self.plane.wait_for(writers, "both writes in the audit log"),
                         ("system:serviceaccount:kube-system:job-controller", "system:kube-scheduler"))

    def test_an_account_token_carries_its_node(self):
        self.plane.rest.create(path("serviceaccounts", "default"), {"metadata": {"name": "agent"}})
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        agent = self.plane.account_rest("default", "agent", node="plain-0")
        # Reviewing oneself is for every authenticated user.
        user = agent.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", review)["status"]["userInfo"]
        self.assertEqual(user["username"], "system:serviceaccount:default:agent")
        self.assertEqual(user["extra"]["authentication.kubernetes.io/node-name"], ["plain-0"])
        with self.assertRaises(ApiError) as refused:
            agent.list(path("nodes"))
        self.assertEqual(refused.exception.status, 403)

    def test_a_forgotten_history_answers_410(self):
        old = self.plane.rest.get(path("configmaps", "default"))["metadata"]["resourceVersion"]
        self.plane.rest.create(path("configmaps", "default"), {"metadata": {"name": "something-newer"}})
        self.plane.forget_history()
        # A stream of one event: the refusal.
        event = self.plane.rest.get(path("configmaps", "default"), watch=1, resourceVersion=old, timeoutSeconds=5)
        self.assertEqual((event["type"], event["object"]["code"], event["object"]["reason"]), ("ERROR", 410, "Expired"))

    def test_a_lost_node_turns_not_ready_and_comes_back(self):
        self.nodes.add_plain("fickle")
        self.nodes.lose("fickle")

        def tainted():
            node = self.plane.rest.get(path("nodes", name="fickle"))
            return [taint for taint in node["spec"].get("taints", [])
                    if taint["key"].startswith("node.kubernetes.io/unreachable")]
        self.plane.wait_for(tainted, "the node to be tainted unreachable")
        self.nodes.find_again("fickle")
        self.nodes.remove("fickle")

    def test_pods_of_a_lost_node_stay_until_it_is_found_also_by_another_kwok(self):
        def make_pod(name):
            self.plane.rest.create(path("pods", "default"), {"metadata": {"name": name}, "spec": {
                "nodeName": "silent", "containers": [{"name": "one", "image": "one"}]}})

        def find_pod(name):
            return self.plane.rest.find(path("pods", "default", name))

        def wait_pod_runs(name):
            self.plane.wait_for(lambda: is_running(find_pod(name)), f"{name} to run")
        self.nodes.add_plain("silent")
        self.addCleanup(self.nodes.remove, "silent")
        make_pod("held")
        make_pod("other")
        wait_pod_runs("held")
        wait_pod_runs("other")
        self.nodes.lose("silent")

        def evicting():
            taints = self.plane.rest.get(path("nodes", name="silent"))["spec"].get("taints", [])
            return [taint for taint in taints if taint["effect"] == "NoExecute"]
        self.plane.wait_for(evicting, "the node's pods to be about to be evicted")
        self.plane.rest.patch(path("pods", "default", "held"), {"metadata": {"annotations": {"bed.heddle.dev/end": "never"}}})
        for name in ("held", "other"):
            self.plane.rest.delete(path("pods", "default", name))
        self.plane.kill9("kwok")
        self.plane.start_component("kwok")
        self.nodes.add_plain("heard")  # Ready, so the new KWOK has looked at all nodes and at their pods
        self.addCleanup(self.nodes.remove, "heard")
        for name in ("held", "other"):
            self.assertIn("deletionTimestamp", find_pod(name)["metadata"])
        self.nodes.find_again("silent")
        self.plane.wait_for(lambda: not find_pod("other"), "the deleted pod to end")
        self.assertTrue(find_pod("held"), "which says that it does not end")
        make_pod("next")
        wait_pod_runs("next")
        for name in ("held", "next"):
            self.plane.rest.delete(path("pods", "default", name), gracePeriodSeconds=0)

    def test_waiting_says_what_for_and_what_was_seen(self):
        with self.assertRaisesRegex(TimedOut, r"timed out after 0\.\d s waiting for pigs to fly; last seen: \[\]"):
            wait_for(lambda: [], "pigs to fly", timeout=0.1)

    def test_nothing_outlives_a_killed_parent(self):
        """kill -9 of the process that owns a bed takes its daemons with it, and the next bed removes its folder."""
        program = ("import sys; sys.path.insert(0, sys.argv[1])\n"
                   "from bed.control_plane import ControlPlane\n"
                   "import threading, time\n"
                   "plane = ControlPlane('doomed', components=['etcd'])\n"
                   # From a thread that ends: what starts a child must not be what keeps it alive.
                   "starter = threading.Thread(target=plane.start); starter.start(); starter.join()\n"
                   "print(plane.folder, plane.process('etcd').pid, flush=True)\n"
                   "time.sleep(60)\n")
        with subprocess.Popen([sys.executable, "-c", program, str(Path(__file__).parent)], stdout=subprocess.PIPE,
                              text=True) as owner:
            folder, etcd = owner.stdout.readline().split()
            os.kill(int(etcd), 0)
            owner.send_signal(signal.SIGKILL)
        wait_for(lambda: not Path(f"/proc/{etcd}").exists(), "etcd to be gone", 5)
        self.assertTrue(Path(folder).exists())
        ControlPlane("next", binaries=self.plane.binaries).stop()
        self.assertFalse(Path(folder).exists())
