"""What agents and operator say together of where cables end: labels of clouds, declared leaves, swapped ends."""

import sys
from pathlib import Path

from bed import REPOSITORY, Heddle, path
from bed.clusters import h100
from bed.testing import BedTestCase, options

LAYER = "topology.k8s.aws/network-node-layer-3"


class PlaceLabelTest(BedTestCase):
    """An EFA host, of whose network only its Node's labels tell, and agents that may not read Nodes."""

    @classmethod
    def set_up_bed(cls):
        cls.nodes.add_plain("efa-1", labels={LAYER: "nn-0a", "team": "blue"})
        cls.heddle = Heddle(cls.plane, options.binaries)
        cls.heddle.install()
        sys.path.insert(0, str(REPOSITORY / "tests" / "support"))
        import machines  # The generator of the C++ tests' fixtures; not part of this package.
        written = machines.write({"nodes": [{"name": "efa-1", "shape": "p5-48xlarge"}]}, str(cls.plane.folder / "m"))
        # Only a recording has its labels in a file; this one is to be told by the operator.
        folder = Path(written["efa-1"])
        (folder / "labels.txt").unlink(missing_ok=True)
        cls.heddle.machines["efa-1"] = folder
        cls.heddle.start_operator()
        cls.heddle.start_agents(None, "--publish-jitter=0", "--interval=86400")

    def topology(self):
        return self.plane.rest.get(path("nodetopologies", name="efa-1"))

    def leaves(self):
        return {port.get("leaf", port.get("leafMissing")) for nic in self.topology().get("status", {}).get("nics", [])
                if nic["transport"] == "EFA" for port in nic["ports"]}

    def condition(self, name):
        return next(c for c in self.topology()["status"]["conditions"] if c["type"] == name)

    def test_the_leaf_follows_the_labels_of_the_node(self):
        rest, node = self.plane.rest, path("nodes", name="efa-1")
        self.heddle.wait_for(lambda: self.leaves() == {"nn-0a"}, "the leaf that the label names")
        self.assertEqual(self.topology()["spec"]["labels"], {LAYER: "nn-0a"})
        self.assertEqual(self.condition("LeavesKnown")["status"], "True")
        # No new look at the machine is needed: this agent takes one a day.
        rest.patch(node, {"metadata": {"labels": {LAYER: "nn-0b"}}})
        self.heddle.wait_for(lambda: self.leaves() == {"nn-0b"}, "the leaf of the changed label")
        rest.patch(node, {"metadata": {"labels": {LAYER: None}}})
        self.heddle.wait_for(lambda: self.leaves() == {"Unknown"}, "no leaf without a label")
        self.assertEqual(self.condition("LeavesKnown")["status"], "False")
        rest.patch(node, {"metadata": {"labels": {LAYER: "nn-0a"}}})
        self.heddle.wait_for(lambda: self.leaves() == {"nn-0a"}, "the leaf again")
        agent = f"system:serviceaccount:heddle-system:heddle-nodeagent"
        self.assertEqual(self.plane.audit(user=agent, resource="nodes"), [])


class SwappedCableTest(BedTestCase):
    """Two hosts, of which one has the cables of two rails swapped."""

    @classmethod
    def set_up_bed(cls):
        cls.cluster = h100(units=1, nodes_per_unit=2)
        cls.nodes.add(cls.cluster)
        cls.heddle = Heddle(cls.plane, options.binaries)
        cls.heddle.install()
        first = cls.cluster.nodes[0]
        swapped = list(first.leaves)
        swapped[3], swapped[4] = swapped[4], swapped[3]
        leaves = {rail: f"{leaf}/{first.leaf_port}" for rail, leaf in enumerate(swapped)}
        cls.heddle.write_machines(cls.cluster, {first.name: {"leaves": leaves}})
        cls.heddle.start_operator()
        cls.heddle.start_agents(None, "--publish-jitter=0")
        cls.heddle.wait_published(cls.heddle.machines)

    def cabled(self):
        fabric = self.plane.rest.find(path("fabrics", name="infiniband")) or {}
        found = [c for c in fabric.get("status", {}).get("conditions", []) if c["type"] == "Cabled"]
        return (found[0]["status"], found[0]["reason"]) if found else None

    def test_people_learn_which_host_is_wrong_once_they_say_how_leaves_are_called(self):
        name = self.cluster.nodes[0].name
        self.heddle.wait_for(lambda: self.cabled() == ("Unknown", "Ambiguous"), "two hosts to be no majority", 60)
        unit, rail = self.cluster.nodes[0].unit, self.cluster.nodes[0].leaves[3]
        self.assertIn(unit, rail)
        pattern = self.cluster.nodes[0].leaves[3].replace(unit, "{unit}")[:-1] + "{rail}"
        self.plane.rest.patch(path("fabrics", name="infiniband"), {"spec": {"leafNames": [pattern]}})
        self.heddle.wait_for(lambda: self.cabled() == ("False", "CablingFaults"), "the declaration to decide", 60)
        for what in (("fabric", "infiniband"), ("node", name)):
            def told():
                said = self.plane.kubectl("describe", *what)
                return "CablingFault" in said and f"{name} mlx5_3 is cabled to" in said and said
            with self.subTest(what=what):
                said = self.heddle.wait_for(told, f"kubectl describe {what[0]} to name both ends")
                self.assertIn("as declared: swapped with", said)
        columns = self.plane.kubectl("get", "fabrics")
        self.assertRegex(columns, r"infiniband +True +2 ")
