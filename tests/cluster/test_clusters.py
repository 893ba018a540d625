"""The descriptions of clusters, and that recorded machines can be made from them. Needs no control plane."""

import tempfile
import unittest
from collections import Counter
from pathlib import Path

import machines

from bed.clusters import h100, nvl72


class ClustersTest(unittest.TestCase):

    def test_the_demo_s_cluster(self):
        cluster = h100()
        self.assertEqual((len(cluster.nodes), cluster.gpus, cluster.rails, cluster.gbps), (32, 256, 8, 400))
        self.assertEqual((len(cluster.leaves()), len(cluster.spines())), (16, 2))
        self.assertEqual(Counter(node.unit for node in cluster.nodes), {"su-0": 16, "su-1": 16})
        for leaf in cluster.leaves():
            ports = [node.leaf_port for node in cluster.nodes if leaf.name in node.leaves]
            self.assertEqual(sorted(ports), list(range(1, 17)))

    def test_two_racks(self):
        cluster = nvl72()
        self.assertEqual((len(cluster.nodes), cluster.gpus, len(cluster.leaves())), (36, 144, 4))
        domains = Counter()
        for node in cluster.nodes:
            domains[node.nvlink_domain] += node.gpus
        self.assertEqual(domains, {"rack-0": 72, "rack-1": 72})
        uuids = {machine["cluster_uuid"] for machine in cluster.machines()["nodes"]}
        self.assertEqual(len(uuids), 2)

    def test_names_are_unique_and_those_of_kubernetes(self):
        for cluster in (h100(), nvl72()):
            names = [node.name for node in cluster.nodes]
            self.assertEqual(len(set(names)), len(names))
            for name in names:
                self.assertRegex(name, r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")

    def test_every_node_gets_a_recorded_machine(self):
        for cluster in (h100(units=1, nodes_per_unit=2), nvl72(racks=1, trays=2)):
            with self.subTest(cluster=cluster.name), tempfile.TemporaryDirectory() as folder:
                written = machines.write(cluster.machines({cluster.nodes[0].name: {"down": [0]}}), folder)
                self.assertEqual(set(written), {node.name for node in cluster.nodes})
                for place in written.values():
                    self.assertTrue((Path(place) / "machine.yaml").is_file())
