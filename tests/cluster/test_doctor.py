"""`kubectl heddle doctor`, `status` and `cables` on a real control plane: a whole installation is called whole, and each
thing that breaks is named."""

import csv
import io
import json
import re
import subprocess

from bed import Heddle, h100, path
from bed.testing import BedTestCase, options

NAMESPACE = "heddle-system"
LONG_AGO = "2020-01-01T00:00:00.000000Z"


class AskingTestCase(BedTestCase):

    def ask(self, *words, kubeconfig=None):
        return subprocess.run(
            [self.heddle.binaries / "kubectl-heddle", *words], capture_output=True, text=True, check=False, timeout=120,
            env={"KUBECONFIG": str(kubeconfig or self.plane.kubeconfig), "HOME": str(self.plane.folder)})


class RightsTest(AskingTestCase):

    @classmethod
    def set_up_bed(cls):
        cls.heddle = Heddle(cls.plane, options.binaries)

    def rights(self):
        report = json.loads(self.ask("doctor", "-o", "json").stdout)
        return [(item["verdict"], item["what"]) for item in report["items"] if item["check"] == "rights"]

    def test_the_accounts_have_what_doctor_takes_them_to_need_whatever_the_values_are(self):
        """No daemon runs, and what doctor sees of the values is what the chart made of them."""
        more = {"computeDomains": {"enabled": True}, "agent": {"devices": {"followPlans": True}},
                "otherPlugins": {"rdmaShared": {"image": "a/b:1"}}}
        default = self.held({}, run=True)
        self.held({"mode": "observe"}, run=True)
        self.held({"mode": "observe"}, run=False)
        # Seven kinds that are suspended, two of which are read for that alone, and evictions.
        self.assertEqual(self.held({"extender": {"preemption": {"enabled": False}}}, run=False), default - 10)
        # Three of ComputeDomains. Flags of daemons that run elsewhere are not seen.
        self.assertEqual(self.held(more, run=False), default + 3)
        # Four each of the plugins' ConfigMaps and DaemonSets, and one of the pods that agents follow.
        self.assertEqual(self.held(more, run=True), default + 12)

    def held(self, values, run):
        """How many rights doctor asked for, once all of them are held."""
        self.heddle.install(components={"run": run}, **values)

        def number():
            said = self.rights()
            if [verdict for verdict, _ in said] != ["ok"]:
                raise AssertionError(said)
            return int(re.search(r"\d+", said[0][1])[0])
        return self.plane.wait_for(number, f"the accounts to have their rights with {values}")


class DoctorTest(AskingTestCase):
    """Three hosts, of which one has the cables of two rails swapped: two are a majority."""

    @classmethod
    def set_up_bed(cls):
        cls.cluster = h100(units=1, nodes_per_unit=3)
        cls.nodes.add(cls.cluster)
        cls.heddle = Heddle(cls.plane, options.binaries)
        cls.heddle.install()
        cls.swapped = cls.cluster.nodes[0]
        leaves = list(cls.swapped.leaves)
        leaves[3], leaves[4] = leaves[4], leaves[3]
        cls.heddle.start(cls.cluster, faults={cls.swapped.name: {
            "leaves": {rail: f"{leaf}/{cls.swapped.leaf_port}" for rail, leaf in enumerate(leaves)}}})

    def not_ok(self):
        """What doctor finds, as (verdict, what), without what is ok."""
        done = self.ask("doctor", "-o", "json")
        self.assertIn(done.returncode, (0, 3), done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual(done.returncode, 3 if report["problems"] else 0)
        return [(item["verdict"], item["what"]) for item in report["items"] if item["verdict"] != "ok"]

    def wait_whole(self):
        """What a test of this class took away is back, as the API server sees it."""
        def whole():
            found = self.not_ok()
            if found:
                raise AssertionError(found)
            return True
        self.heddle.wait_for(whole, "the installation to be whole")

    def wait_named(self, verdict, words):
        def named():
            found = [what for said, what in self.not_ok() if said == verdict]
            return next((what for what in found if words in what), None)
        return self.heddle.wait_for(named, f"doctor to say as a {verdict}: {words}")

    def take_away(self, kind, name):
        """Deletes an object that the chart made; it is back when the test ends."""
        made = json.loads(self.plane.kubectl("get", kind, name, "-o", "json"))
        for field in ("resourceVersion", "uid", "creationTimestamp", "managedFields", "generation"):
            made["metadata"].pop(field, None)
        self.plane.kubectl("delete", kind, name)
        self.addCleanup(self.plane.kubectl, "create", "-f", "-", stdin=json.dumps(made))

    def test_a_healthy_installation_is_called_whole(self):
        self.wait_whole()
        done = self.ask("doctor")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("Heddle is whole", done.stdout)
        for words in ("Kubernetes v1.", "6 CustomResourceDefinitions are established", "gated and routed by heddle-gang",
                      "heddle-scheduler is held by", "all 3 agents report", self.heddle.namespace):
            self.assertIn(words, done.stdout)

    def test_a_policy_without_a_binding_is_named(self):
        self.take_away("mutatingadmissionpolicybinding", "heddle-gang")
        self.wait_named("problem", "MutatingAdmissionPolicyBinding heddle-gang is not there")
        self.take_away("validatingadmissionpolicybinding", "heddle-plan")
        self.wait_named("problem", "ValidatingAdmissionPolicy heddle-plan has no binding")

    def test_an_installer_who_wants_no_gating_policy_is_told_what_that_means(self):
        self.addCleanup(self.heddle.install)
        self.heddle.install(wait=False, mutatingPolicies="never")
        self.wait_whole()
        done = self.ask("doctor")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("mutatingPolicies=never: only what `kubectl heddle prepare` prepared is gated", done.stdout)

    def test_a_right_that_somebody_took_is_named(self):
        role = json.loads(self.plane.kubectl("get", "clusterrole", "heddle-operator", "-o", "json"))
        self.addCleanup(self.plane.kubectl, "patch", "clusterrole", "heddle-operator", "--type=merge", "-p",
                        json.dumps({"rules": role["rules"]}))
        less = [rule for rule in role["rules"] if "nodes" not in rule["resources"]]
        self.assertNotEqual(less, role["rules"])
        self.plane.kubectl("patch", "clusterrole", "heddle-operator", "--type=merge", "-p", json.dumps({"rules": less}))
        what = self.wait_named("problem", "the account heddle-operator may not")
        self.assertIn("list nodes", what)

    def test_an_agent_that_fell_silent_is_named_by_doctor_and_status(self):
        node = self.cluster.nodes[2].name
        self.heddle.kill9(f"agent:{node}")
        self.addCleanup(self.heddle.start_daemon, f"agent:{node}")
        # Four minutes later, without waiting for them.
        self.plane.rest.patch(path("leases", NAMESPACE, f"heddle-node-{node}"), {"spec": {"renewTime": LONG_AGO}})
        self.assertIn(node, self.wait_named("warning", "the agent has fallen silent"))
        done = self.ask("status", "-o", "json")
        silent = [item for item in json.loads(done.stdout)["items"] if item["reason"] == "AgentSilent"]
        self.assertEqual([item["names"] for item in silent], [[node]])
        self.assertEqual(silent[0]["since"], "2020-01-01T00:00:00Z")

    def test_pods_that_go_past_heddle_are_named(self):
        node = self.cluster.nodes[1].name
        containers = [{"name": "main", "image": "train", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]
        for name, spec in (("by-hand", {"nodeName": node}), ("elsewhere", {"schedulerName": "volcano"})):
            self.plane.rest.create(path("pods", self.heddle.namespace), {
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers} | spec})
            self.addCleanup(self.plane.kubectl, "-n", self.heddle.namespace, "delete", "pod", name, "--grace-period=0",
                            "--force")
        # One that a scheduler binds, by the binding that leaves no owner of spec.nodeName.
        self.plane.rest.create(path("pods", self.heddle.namespace), {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ours"}, "spec": {"containers": containers}})
        self.addCleanup(self.plane.kubectl, "-n", self.heddle.namespace, "delete", "pod", "ours", "--grace-period=0", "--force")
        self.heddle.wait_for(
            lambda: self.plane.rest.get(path("pods", self.heddle.namespace, "ours"))["spec"].get("nodeName"), "a bound pod")
        self.assertIn(f"{self.heddle.namespace}/by-hand", self.wait_named("warning", "by hand (spec.nodeName)"))
        self.assertIn(f"{self.heddle.namespace}/elsewhere", self.wait_named("warning", "went to volcano"))
        self.assertFalse([what for _, what in self.not_ok() if "/ours" in what])

    def test_who_may_read_nothing_learns_which_rights_are_missing(self):
        account = self.plane.account_kubeconfig(self.heddle.namespace, "default")
        done = self.ask("doctor", kubeconfig=account)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for right in ("customresourcedefinitions", "nodetopologies", "deployments", "leases", "pods"):
            self.assertRegex(done.stdout, rf'unknown .*cannot list resource "{right}"')
        refused = self.ask("status", kubeconfig=account)
        self.assertEqual(refused.returncode, 1, refused.stdout + refused.stderr)
        self.assertIn("cannot list resource", refused.stderr)

    def test_a_swapped_cable_is_named_at_both_ends(self):
        name = self.swapped.name

        def told():
            done = self.ask("status")
            return "cabled wrongly" in done.stdout and done
        done = self.heddle.wait_for(told, "status to name the swap", 60)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn(f"{name} mlx5_3", done.stdout)
        self.assertRegex(done.stdout, r"3 nodes, 24 GPUs")
        shown = self.ask("cables", "--csv", "--problems")
        self.assertEqual(shown.returncode, 3, shown.stderr)
        rows = list(csv.DictReader(io.StringIO(shown.stdout)))
        self.assertEqual([(row["verdict"], row["node"], row["nic"]) for row in rows],
                         [("swapped", name, "mlx5_3"), ("swapped", name, "mlx5_4")])
        self.assertTrue(rows[0]["swapped_with"].startswith(f"{name} mlx5_4 on {rows[1]['leaf']}"), rows[0])
        self.assertEqual(rows[0]["expected_leaf"], rows[1]["leaf"])
        # The Fabric's status follows within seconds: what it said of two hosts may stand a moment longer.
        said = [row["message"] for row in rows]
        self.heddle.wait_for(lambda: [fault["sentence"] for fault in self.plane.rest.get(
            path("fabrics", name="infiniband"))["status"]["faults"]] == said, f"the Fabric to say {said}")
        self.assertIn("22 ok", self.ask("cables").stdout)
