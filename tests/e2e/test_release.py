"""A release of the chart on a real kubelet, from its installation to its end: what a platform team does, and what
becomes of the training that runs meanwhile. The bed is that of release_bed.py."""

import json
import os
import subprocess
from datetime import UTC, datetime

import pod_network
from bed import REPOSITORY, path
from bed.heddle import CHART
from bed.process import run
from bed.testing import bound_to, is_running, options
from chart_text import FIXTURES
from release_bed import CLUSTER, GPU_TAINT, NEXT, RDMA, REAL, SYSTEM, TEAM, ReleaseBed
from scenario import condition, gang_of
from test_device_plugin import BUSYBOX, LOOK

ACCOUNTS = [f"system:serviceaccount:{SYSTEM}:heddle-{name}"
            for name in ("nodeagent", "operator", "extender", "scheduler")]


def training_job(name, pods, parallelism):
    """The README's annotations on a Job whose pods take whole servers."""
    limits = {"nvidia.com/gpu": "8", RDMA: "1", "cpu": "100m", "memory": "64Mi"}
    return {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {
            "completions": pods, "parallelism": pods, "completionMode": "Indexed", "backoffLimit": 0,
            "template": {
                "metadata": {"annotations": {
                    "heddle.dev/parallelism": parallelism,
                    "heddle.dev/model": "params=70e9,layers=80,hidden=8192,seq=8192,microbatch=1"}},
                "spec": {
                    "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
                    "tolerations": [{"key": GPU_TAINT["key"], "operator": "Exists"}],
                    "containers": [{"name": "worker", "image": BUSYBOX, "imagePullPolicy": "IfNotPresent",
                                    "args": ["sh", "-c", LOOK], "resources": {"limits": limits}}]}}}}


class Release(ReleaseBed):
    BED = "e2e"

    # Looking

    def heddle_pods(self, component):
        return self.plane.pods(SYSTEM, f"app.kubernetes.io/component={component}")

    def wait_rolled_out(self, tag):
        """All of ours run with the images of that tag and are Ready; what was before is gone."""
        def done():
            for component, count in (("operator", 2), ("scheduler", 2), ("nodeagent", len(CLUSTER.nodes))):
                pods = self.heddle_pods(component)
                ready = [pod for pod in pods if condition(pod, "Ready") and condition(pod, "Ready")["status"] == "True"]
                images = {c["image"] for pod in pods for c in pod["spec"]["containers"] if c["name"] != "scheduler"}
                if (len(pods), len(ready), images) != (count, count, {f"heddle:{tag}"}):
                    states = [(pod["metadata"]["name"], container.get("ready"), container.get("state"))
                              for pod in pods for container in pod["status"].get("containerStatuses", [])]
                    raise AssertionError(f"{component}: {len(ready)} of {len(pods)} ready, {images}, {states}")
            return True
        self.wait(done, f"all pods of Heddle to be Ready with heddle:{tag}", 240)

    def pods_of(self, job):
        return sorted(self.plane.pods(TEAM, f"batch.kubernetes.io/job-name={job}"),
                      key=lambda pod: int(pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]))

    def submit(self, job):
        # By kubectl, as a person would.
        self.plane.kubectl("-n", TEAM, "apply", "-f", "-", stdin=json.dumps(job))
        return job["metadata"]["name"]

    def wait_running(self, job, count):
        def running():
            pods = self.pods_of(job)
            if len(pods) == count and all(is_running(pod) for pod in pods):
                return pods
            raise AssertionError([(pod["metadata"]["name"], bound_to(pod), pod["spec"].get("schedulingGates"),
                                   pod["status"]) for pod in pods])
        return self.wait(running, f"the {count} pods of {job} to run", 120)

    def seen(self, pod):
        """What the container of a pod on the real node says that it sees."""
        def lines():
            text = self.node.log_of(pod, "worker")
            return text if "end" in text else None
        return self.wait(lines, "the container to say what it sees", 60)

    def lease(self, name):
        return self.plane.rest.get(path("leases", SYSTEM, name))["spec"]

    # The story

    def test_from_install_to_uninstall(self):
        early = self.install_an_older_chart()
        self.upgrade_to_this_chart(early)
        self.offer_nics()
        self.ask_helm_whether_it_works()
        running = self.place_a_job()
        self.look_into_the_real_pod(running)
        self.look_at_the_leases()
        self.ask_through_the_pods()
        self.upgrade(running)
        self.roll_back(running)
        self.nothing_was_forbidden()  # a daemon that ends after its rights did is told so
        self.uninstall(running)

    def install_an_older_chart(self):
        """The newest that is recorded, with today's images, as those of then are not kept; returns a pod of a gang on it."""
        self.tag = run(["sed", "-n", "s/^appVersion: *//p", CHART / "Chart.yaml"]).stdout.strip()
        older = max(FIXTURES.glob("heddle-*.tgz"))
        run(["tar", "--extract", "--file", older, "--directory", self.plane.folder])
        agent = self.plane.folder / "heddle/templates/nodeagent.yaml"
        # The image of those days had no user but root, so its chart asked for none.
        text = agent.read_text()
        self.assertNotIn("runAsUser: 0", text, "this chart asks for its user: what is put in here may go")
        agent.write_text(text.replace("      securityContext:\n        seccomp", "      securityContext:\n        runAsUser: 0\n        seccomp"))
        self.helm("install", "heddle", agent.parents[1], "--create-namespace", "--values", "-", "--wait", "--timeout", "5m",
                  stdin=json.dumps(self.values() | {"image": {"tag": NEXT}}))
        self.wait_rolled_out(NEXT)
        self.start_fake_agents()
        self.heddle.wait_published([node.name for node in CLUSTER.nodes])
        self.plane.create_namespace(TEAM, {"heddle.dev/scope": "enabled"})
        other = training_job("other", 1, "tp=8")
        other["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": CLUSTER.nodes[3].name}
        pod, = self.wait_running(self.submit(other), 1)
        self.say(f"installed {older.name}: every pod of it is Ready, and a gang runs")
        return pod

    def upgrade_to_this_chart(self, running):
        gang = gang_of(self.plane, TEAM, "other")["metadata"]["uid"]
        said = self.helm("upgrade", "heddle", CHART, "--reset-then-reuse-values", "--set",
                         f"image.tag={self.tag},cli.enabled=true", "--wait", "--timeout", "5m")
        self.assertIn("kubectl label namespace", said)
        self.wait_rolled_out(self.tag)
        # From here on the daemons have the rights that they ask for, which the older chart did not know of.
        self.upgraded = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        self.assert_untouched(running)
        self.assertEqual(gang_of(self.plane, TEAM, "other")["metadata"]["uid"], gang)
        self.say("upgraded to this chart: every pod of it is Ready, and the gang from before goes on")
        for pod in self.heddle_pods("operator") + self.heddle_pods("scheduler"):
            self.assertEqual(bound_to(pod), REAL)
        self.assertIn(pod_network.ClusterDns.NAME, self.dns.asked, "kube-scheduler found the API server by its name")

    def offer_nics(self):
        # As a person would have the NICs in the pods.
        self.plane.rest.create(path("rdmadevicepolicies"), {
            "apiVersion": "heddle.dev/v1alpha1", "kind": "RdmaDevicePolicy", "metadata": {"name": "whole-nodes"},
            "spec": {"mode": "WholeNode", "resources": [{"name": RDMA}]}})

        def offered():
            there = self.plane.rest.get(path("nodes", name=REAL))["status"]["allocatable"]
            return {name: there.get(name) for name in ("nvidia.com/gpu", "heddle.dev/fabric", RDMA)} == {
                "nvidia.com/gpu": "8", "heddle.dev/fabric": "250", RDMA: "1"} or self.fail(there)
        self.wait(offered, "the real node to offer GPUs, NICs and the fabric", 120)
        self.say("the agent on the real node offers the fabric and its NICs")

    def ask_helm_whether_it_works(self):
        """The chart's own test: a pod with reading rights sees the fabric that the agents have published."""
        said = self.helm("test", "heddle", "--logs", "--timeout", "2m")
        self.assertIn("POD LOGS: heddle-test", said)
        self.assertIn(f"{len(CLUSTER.nodes)} nodes", said)
        self.wait(lambda: not self.hook_leftovers("test"), "nothing of the test to be left")
        self.say("helm test sees the fabric")

    def hook_leftovers(self, word):
        name = f"heddle-{word}"
        where = [path("serviceaccounts", SYSTEM, name), path("jobs", SYSTEM, name), path("pods", SYSTEM, name)]
        where += [f"/apis/rbac.authorization.k8s.io/v1/{kind}/{name}" for kind in ("clusterroles", "clusterrolebindings")]
        return [one for one in where if self.plane.rest.find(one)] + [
            pod["metadata"]["name"] for pod in self.heddle_pods(word)]

    def place_a_job(self):
        """With node-03 taken since before the upgrade, node-00 and node-01 are the only two whole servers on one set of
        leaves."""
        pods = self.wait_running(self.submit(training_job("train", 2, "tp=8,dp=2")), 2)
        self.assertEqual({bound_to(pod) for pod in pods}, {node.name for node in CLUSTER.nodes[:2]})
        self.assertEqual([pod["metadata"]["annotations"]["heddle.dev/rank"] for pod in pods], ["0", "1"])
        self.wait(lambda: (condition(gang_of(self.plane, TEAM, "train"), "Running") or {}).get("status") == "True",
                  "the Gang to say that it runs")
        self.say("a gang of two servers is bound and runs, one of them the real one")
        return next(pod for pod in pods if bound_to(pod) == REAL)

    def look_into_the_real_pod(self, pod):
        seen = self.seen(pod)
        self.assertIn("conf=/etc/heddle/nccl/nccl.conf", seen)
        hcas = ",".join(f"{nic['name']}:1:{nic['rail']}" for nic in self.nics)
        self.assertIn(f"nccl: NCCL_IB_HCA=={hcas}", seen)
        self.assertNotIn("folder is writable", seen)
        opened = {line.removeprefix("opens=/dev/infiniband/") for line in seen if line.startswith("opens=")}
        self.assertEqual(opened, {self.verbs[nic["name"]] for nic in self.nics})
        name = pod["metadata"]["name"]

        def granted():
            grants = self.plane.rest.get(path("nodetopologies", name=REAL))["status"].get("grants", [])
            return next((grant for grant in grants if grant["pod"] == name and len(grant.get("gpus", [])) == 8), None)
        self.wait(granted, "the agent to publish what the kubelet gave")
        said = run([options.binaries / "kubectl-heddle", "explain", "job/train", "-n", TEAM],
                   environment=self.plane.tool_environment()).stdout
        self.assertIn("TP groups inside one NVLink domain", said)
        self.say("the container on the real kubelet has the node's NCCL file and its eight NICs")

    def ask_through_the_pods(self):
        """What needs `kubectl exec`: a record by the agent's pod, and the program where it does not run itself."""
        environment = self.plane.tool_environment() | {"PATH": f"{self.plane.binaries}:{os.environ['PATH']}"}  # for kubectl
        shim = ["sh", REPOSITORY / "tools/kubectl-heddle.sh"]
        program = [options.binaries / "kubectl-heddle"]
        for words in (["fabric"], ["explain", "job/train", "-n", TEAM]):
            there, here = (run(way + words, environment=environment).stdout for way in (shim, program))
            self.assertEqual(there, here)
            self.assertTrue(here)
        job = json.dumps(training_job("checked", 2, "tp=8,dp=3"))  # 2 x 8 GPUs are not 24
        asked = [run([*way, "check", "-", "-n", TEAM], environment=environment, check=False, stdin=job) for way in (shim, program)]
        self.assertEqual(*[(one.returncode, one.stdout) for one in asked])
        self.assertEqual(asked[0].returncode, 3, asked[0])
        for name, way, more, called in (("program", program, [], REAL), ("shim", shim, ["--scrub"], "host-1")):
            archive, folder = self.plane.folder / f"{name}.tar", self.plane.folder / f"recorded-by-{name}"
            with archive.open("wb") as out:
                said = subprocess.run([*map(str, way), "record", REAL, *more], stdout=out, stderr=subprocess.PIPE,
                                      stdin=subprocess.DEVNULL, check=False, timeout=120, env=os.environ | environment)
            self.assertEqual(said.returncode, 0, said.stderr.decode())
            folder.mkdir()
            run(["tar", "-xf", archive, "-C", folder])
            # The agent was told of a recorded machine; who records looks at the host itself, which is this one.
            replayed = json.loads(run([options.binaries / "heddle-nodeagent", "--machine", folder, "--print", "-o", "json"]).stdout)
            self.assertEqual(replayed["metadata"]["name"], called)
            self.assertFalse(replayed["status"].get("gpus"))
        self.say("a machine was recorded through its agent's pod, and the program answered from its own")

    def look_at_the_leases(self):
        # Who ends gives its Lease back, and who comes takes it a moment later.
        for component in ("scheduler", "operator"):
            def held():
                lease, pods = self.lease(f"heddle-{component}"), self.heddle_pods(component)
                held_by_one = any(lease["holderIdentity"].startswith(pod["metadata"]["name"]) for pod in pods)
                return held_by_one or self.fail(lease)
            self.wait(held, f"a pod of {component} to hold its Lease", 60)
        self.assertEqual(self.lease(f"heddle-node-{REAL}")["holderIdentity"], REAL)
        self.renewed = self.lease(f"heddle-node-{REAL}")["renewTime"]

    def assert_untouched(self, pod):
        meta = pod["metadata"]
        now = self.plane.rest.get(path("pods", TEAM, meta["name"]))
        self.assertEqual(now["metadata"]["uid"], meta["uid"])
        self.assertEqual([state["restartCount"] for state in now["status"]["containerStatuses"]], [0])
        self.assertTrue(is_running(now), now["status"])

    def upgrade(self, running):
        gang = gang_of(self.plane, TEAM, "train")["metadata"]["uid"]
        self.helm("upgrade", "heddle", CHART, "--reset-then-reuse-values", "--set", f"image.tag={NEXT}", "--wait", "--timeout",
                  "5m")
        self.wait_rolled_out(NEXT)
        self.assert_untouched(running)
        self.assertEqual(gang_of(self.plane, TEAM, "train")["metadata"]["uid"], gang)
        self.say(f"upgraded to heddle:{NEXT}; the training went on")
        # Who came after plans, too.
        self.wait_running(self.submit(training_job("later", 1, "tp=8")), 1)
        self.say("a new gang was placed by who came after")

    def roll_back(self, running):
        self.helm("rollback", "heddle", "2", "--wait", "--timeout", "5m")
        self.wait_rolled_out(self.tag)
        self.assert_untouched(running)
        # Those that came after know which Lease is theirs.
        self.wait(lambda: self.lease(f"heddle-node-{REAL}")["renewTime"] > self.renewed, "the agent's Lease to be renewed")
        self.look_at_the_leases()
        self.say(f"rolled back to heddle:{self.tag}; who leads now holds the Leases")

    def uninstall(self, running):
        """What runs goes on, and what waits is handed back by the hook: docs/installing.md."""
        self.submit(training_job("waits", 2, "tp=8,dp=2"))
        self.wait(lambda: len(self.pods_of("waits")) == 2 and (gang_of(self.plane, TEAM, "waits") or {}).get("status"),
                  "a gang that waits for room")
        self.assertEqual([[gate["name"] for gate in pod["spec"]["schedulingGates"]] for pod in self.pods_of("waits")],
                         [["heddle.dev/gang"]] * 2)
        said = self.helm("uninstall", "heddle", "--wait", "--timeout", "5m")
        self.assertRegex(said, rf"Job {TEAM}/waits +2 +suspended and resumed")
        self.wait(lambda: not self.hook_leftovers("uninstall"), "nothing of the hook to be left")
        for component in ("operator", "scheduler", "nodeagent"):
            self.wait(lambda: not self.heddle_pods(component), f"the pods of {component} to be gone")
        self.assert_untouched(running)
        self.assertTrue(gang_of(self.plane, TEAM, "train"), "what was decided stays readable")
        self.wait(lambda: self.free_pods(), "the policy to be gone")
        self.wait(lambda: len(self.pods_of("waits")) == 2, "pods of the stock scheduler")
        for pod in self.pods_of("waits"):
            self.assertEqual(pod["spec"]["schedulerName"], "default-scheduler")
            self.assertNotIn("schedulingGates", pod["spec"])
        self.assertNotIn("Failed", [c["type"] for c in self.plane.rest.get(path("jobs", TEAM, "waits"))["status"].get(
            "conditions", [])])
        forbidden = self.plane.audit(user=f"system:serviceaccount:{SYSTEM}:heddle-uninstall", code=403)
        self.assertEqual([(event["verb"], event["uri"]) for event in forbidden], [])
        self.say("uninstalled; the training goes on, and nothing waits at a gate")

    def free_pods(self):
        made = self.plane.rest.create(path("pods", TEAM), training_job("x", 1, "tp=8")["spec"]["template"] | {
            "metadata": {"generateName": "probe-", "annotations": {"heddle.dev/parallelism": "tp=8"}}}, dryRun="All")
        return not made["spec"].get("schedulingGates")

    def nothing_was_forbidden(self):
        for account in ACCOUNTS:
            forbidden = [event for event in self.plane.audit(user=account, code=403) if event["time"] > self.upgraded]
            self.assertEqual([(event["verb"], event["uri"]) for event in forbidden], [])
