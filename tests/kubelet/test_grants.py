"""What a real kubelet grants is what the agent publishes: pod, container, GPUs by UUID and index, NICs."""

import json
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from bed import Heddle
from bed.process import Process, run
from bed.rest import path
from bed.testing import options
from real_node import NodeTestCase

NODE = NodeTestCase.NODE


class DevicePlugin:
    """Offers devices of one resource to the kubelet of `node`."""

    def __init__(self, node, resource, devices):
        name = "plugin-" + resource.replace("/", "-")
        self._resource = resource
        self._node = node
        self._log = node.plane.logs / f"{name}.log"
        self._process = Process(name, [options.binaries / "device_plugin", node.device_plugins, resource, *devices],
                                self._log)
        node.plane.before_stop(self._process.kill9)

    def start(self):
        self._process.start()
        self.wait_offered()
        return self

    def stop(self):
        self._process.kill9()

    def wait_offered(self):
        """Until the Node has them."""
        count = len(self._process.arguments) - 3
        self._node.wait_for(
            lambda: self._node.plane.rest.get(path("nodes", name=self._node.name))["status"].get(
                "allocatable", {}).get(self._resource) == str(count),
            f"{count} {self._resource} to be allocatable")

    def lines(self, word):
        return [line.split()[1:] for line in self._log.read_text().splitlines() if line.split()[:1] == [word]]


class Grants(NodeTestCase):
    BED = "grants"

    @classmethod
    def prepare(cls):
        cls.machine = cls._record()
        cls.gpus = DevicePlugin(cls.node, "nvidia.com/gpu",
                                [f"{gpu['uuid']}@{gpu['numa']}" for gpu in cls.machine["gpus"]]).start()
        cls.nics = DevicePlugin(cls.node, "vpc.amazonaws.com/efa", [nic["name"] for nic in cls.compute_nics()]).start()
        cls.shared = DevicePlugin(cls.node, "rdma/shared", [str(slot) for slot in range(100)]).start()
        cls.slices = DevicePlugin(cls.node, "nvidia.com/gpu.shared",
                                  [f"{cls.machine['gpus'][7]['uuid']}::{share}" for share in range(4)]).start()
        cls.heddle = Heddle(cls.plane, options.binaries)
        cls.heddle.install()
        cls.heddle.machines[NODE] = cls.recording
        # The operator's to make on a cluster.
        cls.plane.rest.create(path("nodetopologies"), {
            "apiVersion": "heddle.dev/v1alpha1", "kind": "NodeTopology", "metadata": {"name": NODE}, "spec": {}})
        cls.heddle.start_agent(NODE, "--pod-resources", cls.node.pod_resources, "--interval", "1",
                               "--publish-jitter", "0.1")
        cls.heddle.wait_published([NODE])

    @classmethod
    def _record(cls):
        """A recorded DGX whose GPUs and NICs the plugins offer; what the agent says of it without a kubelet."""
        import machines  # The generator of the C++ tests' fixtures.
        written = machines.write({"nodes": [{"name": NODE, "shape": "hgx-h100"}]}, str(cls.plane.folder / "machines"))
        cls.recording = Path(written[NODE])
        printed = run([options.binaries / "heddle-nodeagent", "--machine", cls.recording, "--print", "-o", "json"])
        return json.loads(printed.stdout)["status"]

    @classmethod
    def compute_nics(cls):
        return [nic for nic in cls.machine["nics"] if nic["role"] == "compute"]

    # Looking

    def status(self):
        return self.plane.rest.get(path("nodetopologies", name=NODE))["status"]

    def grants(self):
        return {grant["pod"]: grant for grant in self.status().get("grants", [])}

    def condition(self):
        return next((c for c in self.status()["conditions"] if c["type"] == "GrantsKnown"), {})

    def wait_for(self, predicate, what, timeout=90.0):
        return self.heddle.wait_for(lambda: predicate() if not self.node.died() else self.fail(self.node.died()),
                                    what, timeout)

    def start_pod(self, name, **limits):
        body = self.node.pod(name, **{key: str(value) for key, value in limits.items()})
        self.plane.rest.create(path("pods", "default"), body)
        self.addCleanup(self.delete_pod, name)
        self.wait_for(lambda: self.plane.rest.get(path("pods", "default", name))["status"].get("phase") == "Running",
                      f"the pod {name} to run")

    def delete_pod(self, name):
        if self.plane.rest.find(path("pods", "default", name)):
            self.plane.rest.delete(path("pods", "default", name))
        self.wait_for(lambda: not self.plane.rest.find(path("pods", "default", name)), f"the pod {name} to be gone")

    # Tests

    def test_publishes_what_the_kubelet_granted_and_takes_it_back(self):
        self.start_pod("two", **{"nvidia.com/gpu": 2, "vpc.amazonaws.com/efa": 1, "rdma/shared": 1})
        grant = self.wait_for(lambda: self.grants().get("two"), "the grant of the pod")
        # The plugin's own word for it, and the machine's.
        given = set(self.gpus.lines("allocated")[-1])
        by_uuid = {gpu["uuid"]: gpu["index"] for gpu in self.machine["gpus"]}
        self.assertEqual({gpu["uuid"] for gpu in grant["gpus"]}, given)
        self.assertEqual([gpu["index"] for gpu in grant["gpus"]], sorted(by_uuid[uuid] for uuid in given))
        self.assertEqual(len(given), 2)
        self.assertEqual(grant["nics"], self.nics.lines("allocated")[-1])
        self.assertEqual(grant["unmatched"], [{"resource": "rdma/shared", "id": self.shared.lines("allocated")[-1][0]}])
        self.assertEqual(grant["resources"], ["nvidia.com/gpu", "rdma/shared", "vpc.amazonaws.com/efa"])
        self.assertEqual((grant["namespace"], grant["container"], grant["uid"]), ("default", "worker", ""))
        self.assertEqual(self.condition()["status"], "True")
        self.assertIn("1 containers hold 2 of 8 GPUs; the kubelet can give 8 GPUs", self.condition()["message"])
        self.delete_pod("two")
        self.wait_for(lambda: "two" not in self.grants(), "the grant to go with its pod")

    def test_takes_shares_of_a_gpu_for_that_gpu(self):
        self.start_pod("share-a", **{"nvidia.com/gpu.shared": 2})
        self.start_pod("share-b", **{"nvidia.com/gpu.shared": 1})
        seventh = {"index": 7, "uuid": self.machine["gpus"][7]["uuid"]}
        for pod in ("share-a", "share-b"):
            grant = self.wait_for(lambda: self.grants().get(pod), f"the grant of {pod}")
            self.assertEqual((grant["gpus"], grant["resources"]), ([seventh], ["nvidia.com/gpu.shared"]))
        self.assertEqual(self.condition()["reason"], "Read")

    def test_shows_as_many_containers_as_a_node_has(self):
        names = [f"many-{index}" for index in range(20)]
        for name in names:
            body = self.node.pod(name, **{"rdma/shared": "1"})
            body["spec"]["containers"] += [body["spec"]["containers"][0] | {"name": f"c{i}"} for i in range(3)]
            self.plane.rest.create(path("pods", "default"), body)
            self.addCleanup(self.plane.rest.delete, path("pods", "default", name))
        self.wait_for(lambda: len(self.status().get("grants", [])) == 80, "the grants of 80 containers")
        slots = [grant["unmatched"][0]["id"] for grant in self.status()["grants"]]
        self.assertEqual(len(set(slots)), 80)

    def test_leaves_out_a_pod_that_has_ended(self):
        self.start_pod("ends", **{"nvidia.com/gpu": 1})
        self.wait_for(lambda: "ends" in self.grants(), "the grant of the pod")
        self.plane.rest.patch(path("pods", "default", "ends"), {"spec": {"activeDeadlineSeconds": 1}})
        self.wait_for(lambda: self.plane.rest.get(path("pods", "default", "ends"))["status"]["phase"] == "Failed",
                      "the pod to end")
        self.wait_for(lambda: "ends" not in self.grants(), "the grant to go with its pod's end")

    def test_prints_them_without_a_cluster(self):
        self.start_pod("one", **{"nvidia.com/gpu": 1})
        printed = run([options.binaries / "heddle-nodeagent", "--machine", self.recording, "--print", "-o", "json",
                       "--pod-resources", self.node.pod_resources])
        grants = json.loads(printed.stdout)["status"]["grants"]
        self.assertEqual([(grant["pod"], len(grant["gpus"])) for grant in grants], [("one", 1)])

    def test_keeps_grants_over_a_restart_of_the_kubelet(self):
        self.start_pod("stays", **{"nvidia.com/gpu": 4})
        before = self.wait_for(lambda: self.grants().get("stays"), "the grant of the pod")
        self.node.kill_kubelet()
        # The socket is there still, and nobody listens on it.
        self.wait_for(lambda: self.condition()["reason"] == "NoSocket", "the agent to miss the kubelet")
        self.assertEqual(self.grants().get("stays"), before)
        self.node.start_kubelet()
        for plugin in (self.gpus, self.nics, self.shared, self.slices):
            plugin.wait_offered()
        self.wait_for(lambda: self.condition()["status"] == "True", "the agent to find the kubelet again")
        # One that has just started lists no pods until it has heard of them from the apiserver.
        self.assertEqual(self.grants().get("stays"), before)
        self.delete_pod("stays")
        self.wait_for(lambda: "stays" not in self.grants(), "the grant to go with its pod")

    def test_says_when_it_may_not_open_the_socket(self):
        folder = Path(tempfile.mkdtemp(prefix="heddle-agent-"))
        self.addCleanup(shutil.rmtree, folder)
        shutil.copytree(self.recording, folder / "machine", symlinks=True)
        program = folder / "heddle-nodeagent"
        shutil.copy(options.binaries / "heddle-nodeagent", program)
        run(["chmod", "-R", "a+rX", folder])
        printed = subprocess.run(
            ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--bounding-set=-all", program,
             "--machine", folder / "machine", "--print", "-o", "json", "--pod-resources", self.node.pod_resources],
            capture_output=True, text=True, timeout=120, check=True)
        condition = next(c for c in json.loads(printed.stdout)["status"]["conditions"] if c["type"] == "GrantsKnown")
        self.assertEqual((condition["status"], condition["reason"]), ("False", "Forbidden"))


if __name__ == "__main__":
    unittest.main()
