"""LosslessPolicies on a real API server: what the operator makes of them for each node, under its own account."""

from bed import Heddle, path
from bed.rest import ApiError
from bed.testing import BedTestCase, options

NODES = ("gpu-001", "gpu-002", "gpu-003")


def status_of_a_roce_node():
    nic = {"transport": "RoCE", "role": "compute", "ports": [{"number": 1, "state": "Active", "leafMissing": "Unknown"}]}
    return {"observedAt": "2026-01-31T12:00:00Z", "hash": "0123456789abcdef", "nvlinkDomainMissing": "NotApplicable",
            "nics": [{"name": f"mlx5_{i}", "rail": i, **nic} for i in range(2)]}


class LosslessTest(BedTestCase):

    @classmethod
    def set_up_bed(cls):
        cls.nodes.add_plain(*NODES, labels={"pool": "gpu"})
        cls.heddle = Heddle(cls.plane, options.binaries)
        cls.heddle.install()
        cls.rest = cls.plane.rest
        cls.heddle.start_operator()
        for name in NODES:
            cls.heddle.wait_for(lambda n=name: cls.rest.find(path("nodetopologies", name=n)), f"NodeTopology {name}")
            cls.rest.patch(path("nodetopologies", name=name, sub="status"), {"status": status_of_a_roce_node()})

    def tearDown(self):
        for policy in self.rest.list(path("losslesspolicies")):
            self.rest.delete(path("losslesspolicies", name=policy["metadata"]["name"]))
        self.heddle.wait_for(lambda: not any(self.wishes(name) for name in NODES), "specs without policies to be empty")

    def make(self, name, spec):
        return self.rest.create(path("losslesspolicies"), {
            "apiVersion": "heddle.dev/v1alpha1", "kind": "LosslessPolicy", "metadata": {"name": name}, "spec": spec})

    def wishes(self, node):
        return self.rest.get(path("nodetopologies", name=node)).get("spec", {}).get("lossless", [])

    def ready(self, name):
        conditions = self.rest.get(path("losslesspolicies", name=name)).get("status", {}).get("conditions", [])
        return next((c["reason"] for c in conditions if c["type"] == "Ready"), None)

    def report(self, node, state):
        wish = self.wishes(node)[0]
        entry = {"ports": wish["ports"], "policy": wish["policies"][0], "generation": wish["generation"],
                 "policyUid": wish["policyUid"], "state": state, "reason": "as the test says"}
        self.rest.patch(path("nodetopologies", name=node, sub="status"), {"status": {"lossless": [entry]}})

    def test_each_node_is_told_and_nothing_is_written_twice(self):
        self.make("roce", {"nodeSelector": {"pool": "gpu"}, "mtu": 8900})
        self.heddle.wait_for(lambda: all(self.wishes(name) for name in NODES), "all nodes to be told")
        wish = self.wishes("gpu-001")[0]
        self.assertEqual(wish["ports"], ["mlx5_0:1", "mlx5_1:1"])
        self.assertEqual((wish["settings"]["mtu"], wish["settings"]["pfc"], wish["settings"]["tos"]), (8900, [3], 106))
        self.heddle.wait_for(lambda: self.ready("roce") == "Waiting", "the policy to wait for reports")
        for name in NODES:
            self.report(name, "Compliant")
        self.heddle.wait_for(lambda: self.ready("roce") == "Compliant", "the policy to be compliant", 60)
        self.assertRegex(self.plane.kubectl("get", "losslesspolicies"), r"roce +True +6/6 +0 +3 +generic/v1 +Observe ")
        before = [self.rest.get(path("nodetopologies", name=name))["metadata"]["resourceVersion"] for name in NODES]
        # A new generation that tells no port anything new: 26 is what the profile has.
        self.rest.patch(path("losslesspolicies", name="roce"), {"spec": {"rdma": {"dscp": 26}}})
        self.heddle.wait_for(
            lambda: self.rest.get(path("losslesspolicies", name="roce"))["status"]["observedGeneration"] == 2,
            "the new generation to be seen", 60)
        self.rest.patch(path("nodes", name="gpu-001"), {"metadata": {"labels": {"other": "label"}}})
        self.heddle.wait_for(lambda: self.ready("roce") == "Compliant", "the policy to stay compliant")
        after = [self.rest.get(path("nodetopologies", name=name))["metadata"]["resourceVersion"] for name in NODES]
        self.assertEqual(before, after)

    def test_two_policies_on_one_port_are_both_named_and_none_applies(self):
        self.make("roce", {})
        self.make("rail-1", {"rails": [1]})
        self.heddle.wait_for(lambda: self.ready("roce") == self.ready("rail-1") == "Conflict", "both to say Conflict")
        first, second = self.wishes("gpu-002")
        self.assertEqual((first["ports"], first["policies"]), (["mlx5_0:1"], ["roce"]))
        self.assertEqual((second["ports"], second["policies"]), (["mlx5_1:1"], ["rail-1", "roce"]))
        self.assertNotIn("settings", second)
        for line in self.plane.kubectl("get", "losslesspolicies", "-o", "wide", "--no-headers").splitlines():
            self.assertRegex(line, "; gpu-001 mlx5_1:1: several policies select this port: narrow .* rail-1, roce")

    def test_nodes_that_may_not_be_told_are_said_and_told_once_they_may(self):
        role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/heddle-operator"
        rules = self.rest.get(role)["rules"]
        narrow = [rule | {"verbs": [verb for verb in rule["verbs"] if verb != "patch"]}
                  if "nodetopologies" in rule["resources"] else rule for rule in rules]
        operator = self.rest.as_user("system:serviceaccount:heddle-system:heddle-operator")

        def may_not():
            try:
                operator.patch(path("nodetopologies", name=NODES[0]), {}, dryRun="All")
            except ApiError as error:
                return error.status == 403
            return False
        try:
            self.rest.patch(role, {"rules": narrow})
            self.heddle.wait_for(may_not, "the right to be gone")
            self.make("roce", {})
            self.heddle.wait_for(lambda: self.ready("roce") == "NotTold", "the policy to say so", 60)
            self.assertRegex(self.plane.kubectl("get", "losslesspolicies", "-o", "wide"),
                             "3 nodes are not told .*write spec.lossless of NodeTopology gpu-001: .*forbidden.*doctor")
            self.assertEqual([self.wishes(name) for name in NODES], [[], [], []])
        finally:
            self.rest.patch(role, {"rules": rules})
        self.heddle.wait_for(lambda: all(self.wishes(name) for name in NODES), "all nodes to be told", 120)
        # What it says then is up to the reports that are there.
        self.heddle.wait_for(lambda: self.ready("roce") not in (None, "NotTold"), "the policy to take it back", 60)

    def test_canaries_go_first(self):
        self.make("roce", {"mode": "Apply", "canary": 1})
        self.heddle.wait_for(lambda: self.wishes("gpu-001") and self.ready("roce") == "Canary", "one node to be told")
        self.assertEqual([self.wishes(name) for name in NODES[1:]], [[], []])
        self.report("gpu-001", "Failed")
        self.heddle.wait_for(
            lambda: self.rest.get(path("losslesspolicies", name="roce"))["status"]["counts"]["failed"] == 2,
            "the failure to be counted", 60)
        self.assertEqual([self.wishes(name) for name in NODES[1:]], [[], []])
        self.report("gpu-001", "Compliant")
        self.heddle.wait_for(lambda: all(self.wishes(name) for name in NODES), "the others to follow", 60)

    def test_a_policy_that_contradicts_itself_goes_nowhere(self):
        # CEL does not look into lists of DSCPs; the linter does.
        self.make("roce", {"classes": [{"name": "nvme", "use": "Storage", "dscps": "26", "priority": 1}]})
        self.heddle.wait_for(lambda: self.ready("roce") == "Refused", "the policy to be refused")
        self.assertEqual([self.wishes(name) for name in NODES], [[], [], []])
        self.assertIn("class-lossless", self.rest.get(path("losslesspolicies", name="roce"))["status"]["findings"][0])
