"""The CRDs on a real apiserver: every sample gets the verdict that its folder says, and kubectl's tables read well."""

import json
import re
import unittest

from bed import REPOSITORY, ApiError, path
from bed.control_plane import ControlPlane

SAMPLES = REPOSITORY / "tests" / "cluster" / "samples"
PLURALS = ("nodetopologies", "fabrics", "gangs", "losslesspolicies", "rdmadevicepolicies", "fabricswitches")
PLURAL_OF = {"NodeTopology": "nodetopologies", "Fabric": "fabrics", "Gang": "gangs",
             "LosslessPolicy": "losslesspolicies", "RdmaDevicePolicy": "rdmadevicepolicies",
             "FabricSwitch": "fabricswitches"}


def documents(file):
    """A sample is one or more YAML documents, written one after the other; the last one gets the verdict."""
    return [part for part in re.split(r"^---$", file.read_text(), flags=re.MULTILINE) if part.strip()]


def agents_apply(name, pods=8):
    """What an agent applies for a full DGX H100 with long names: 8 GPUs, 10 NICs, a grant per GPU."""
    gpus = [{"index": i, "uuid": f"GPU-5a7d2f0{i}-1c1b-6a32-8f56-73ab0c1e2d3f", "model": "NVIDIA H100 80GB HBM3",
             "pci": f"0000:{27 + i * 8:02x}:00.0", "numa": i // 4, "health": "Healthy", "memoryGib": 80}
            for i in range(8)]
    nics = [{"name": f"mlx5_{i}", "netdev": f"ibp{24 + i * 8}s0", "pci": f"0000:{24 + i * 8:02x}:00.0",
             "guid": f"0x506b4b0300c3b4{i:02x}", "transport": "InfiniBand", "numa": i // 4, "mtu": 4096,
             "role": "compute" if i < 8 else "storage",
             **({"rail": i} if i < 8 else {"railMissing": "NotApplicable"}),
             "ports": [{"number": 1, "state": "Active", "rateGbps": 400, "usableGbps": 400,
                        "leaf": f"leaf-su03-rail{i}-ib-switch", "leafPort": "P17"}]} for i in range(10)]
    grants = [{"namespace": "training", "pod": f"llama-70b-worker-{i}-abcde", "container": "worker",
               "uid": "1f1c1a2b-3333-4444-5555-666677778888", "gpus": [{"index": i, "uuid": gpus[i]["uuid"]}],
               "nics": [f"mlx5_{i}"]} for i in range(pods)]
    conditions = [{"type": kind, "status": "True", "reason": "Observed", "message": "8 of 8 rails are up",
                   "lastTransitionTime": "2026-01-31T12:00:00Z", "observedGeneration": 1}
                  for kind in ("Ready", "Cabled", "Granted")]
    return {
        "apiVersion": "heddle.dev/v1alpha1", "kind": "NodeTopology", "metadata": {"name": name}, "status": {
            "observedGeneration": 1, "observedAt": "2026-01-31T12:00:00Z", "hash": "0123456789abcdef",
            "agentVersion": "v0.1.0", "machine": "NVIDIA DGX H100", "numaNodes": 2, "gpus": gpus, "nics": nics,
            "nvSwitches": [f"0000:0{i}:00.0" for i in range(4)],
            "nvlink": {"generation": 4, "linksPerGpu": 18, "gbpsPerGpu": 3600},
            "nvlinkDomain": {"id": name, "scope": "Node"}, "grants": grants, "conditions": conditions,
            "summary": {"machine": "NVIDIA DGX H100", "gpus": "8", "nvlinkDomain": "node", "rails": "8/8",
                        "leaf": "leaf-su03-rail0-ib-switch…rail7-ib-switch", "transport": "InfiniBand"},
            "paths": [{"gpu": gpu, "nic": f"mlx5_{nic}", "distance": "PIX" if gpu == nic else "NODE"}
                      for gpu in range(8) for nic in range(8) if gpu // 4 == nic // 4]}}


class CrdsTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        # The schemas need no scheduler: an apiserver answers alone.
        cls.plane = ControlPlane("CrdsTest", components=("etcd", "apiserver"))
        cls.addClassCleanup(cls.plane.stop)
        cls.plane.start()
        for plural in PLURALS:
            cls.plane.kubectl("apply", "-f", str(REPOSITORY / "crds" / f"{plural}.yaml"))
        cls.plane.kubectl("wait", "--for=condition=Established", "crd", *(f"{p}.heddle.dev" for p in PLURALS))
        cls.rest = cls.plane.rest

    def parse(self, text):
        """YAML as kubectl reads it: what people will use."""
        return json.loads(self.plane.kubectl("create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-",
                                             stdin=text))

    def write(self, body, with_status):
        """Creates or updates; then its status by PUT, as the extender commits a plan."""
        plural = PLURAL_OF[body["kind"]]
        namespace, name = body["metadata"].get("namespace"), body["metadata"]["name"]
        found = self.rest.find(path(plural, namespace, name))
        if found:
            body["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"]
            written = self.rest.replace(path(plural, namespace, name), body, fieldValidation="Strict")
        else:
            written = self.rest.create(path(plural, namespace), body, fieldValidation="Strict")
        if with_status:
            body["metadata"]["resourceVersion"] = written["metadata"]["resourceVersion"]
            self.rest.replace(path(plural, namespace, name, "status"), body, fieldValidation="Strict")

    def run_sample(self, file):
        """Writes all documents; what the last one met is returned, None if nothing."""
        with_status = file.name.startswith("status-")
        bodies = [self.parse(text) for text in documents(file)]
        try:
            for body in bodies[:-1]:
                self.write(body, with_status)
            try:
                self.write(bodies[-1], with_status)
            except ApiError as refusal:
                return refusal.message
            return None
        finally:
            body = bodies[0]
            where = path(PLURAL_OF[body["kind"]], body["metadata"].get("namespace"), body["metadata"]["name"])
            if self.rest.find(where):
                self.rest.delete(where)

    def test_good_samples_are_accepted(self):
        files = sorted((SAMPLES / "good").glob("*.yaml"))
        self.assertGreater(len(files), 10)
        for file in files:
            with self.subTest(file.name):
                self.assertIsNone(self.run_sample(file))

    def test_bad_samples_are_refused_with_the_sentence_they_name(self):
        files = sorted((SAMPLES / "bad").glob("*.yaml"))
        self.assertGreater(len(files), 25)
        for file in files:
            with self.subTest(file.name):
                expected = file.read_text().splitlines()[0].removeprefix("# refused: ")
                refusal = self.run_sample(file)
                self.assertIsNotNone(refusal, "was accepted")
                self.assertIn(expected, refusal)

    def test_the_tables_give_the_answer(self):
        for name in ("status-nt-dgx-h100", "status-nt-nvl72-tray", "status-nt-plain-host", "status-fabric",
                     "status-gang"):
            for text in documents(SAMPLES / "good" / f"{name}.yaml"):
                body = self.parse(text)
                self.write(body, with_status=True)
                self.addCleanup(self.rest.delete, path(
                    PLURAL_OF[body["kind"]], body["metadata"].get("namespace"), body["metadata"]["name"]))
        self.assertEqual(self.table("nt"), [
            ["NAME", "READY", "RAILS", "GPUS", "DOMAIN", "LEAF", "TRANSPORT", "MACHINE", "AGE"],
            ["gpu-001", "False", "7/8", "7/8", "node", "su0-r0…r7", "InfiniBand", "NVIDIA DGX H100", "now"],
            ["plain-1", "", "-", "0", "-", "-", "-", "?", "now"],
            ["rack-0-tray-00", "", "4/4", "4", "3f2a91c0.1", "rack-0-r0…r3", "RoCE", "GB200 NVL72", "now"]])
        self.assertEqual(self.table("fabrics"), [
            ["NAME", "READY", "FAULTS", "TRANSPORT", "SHAPE", "NODES", "GPUS", "RAILS", "UNITS", "LEAVES", "SPINES",
             "AGE"],
            ["infiniband", "True", "1", "InfiniBand", "RailOptimised", "32", "256", "8", "2", "16", "2", "now"]])
        self.assertEqual(self.table("gangs"), [
            ["NAME", "STATUS", "OWNER", "PODS", "GPUS", "STEP-MS", "AGE"],
            ["llama-2f0e6a3c-0", "Running 4/4", "llama", "4", "16", "12.3", "now"]])
        wide = self.table("gangs", "-o", "wide")
        self.assertEqual(wide[1][6:9], ["Drifted", "one pod has other GPUs than planned", "Job"])

    def table(self, what, *arguments):
        """kubectl's table as cells; an age of seconds reads "now"."""
        lines = self.plane.kubectl("get", what, *arguments).splitlines()
        starts = [match.start() for match in re.finditer(r"\S+(?: \S+)*", lines[0])]
        rows = [[line[start:end].strip() for start, end in zip(starts, starts[1:] + [None])] for line in lines]
        return [["now" if re.fullmatch(r"\d+s", cell) else cell for cell in row] for row in rows]

    def test_a_full_node_is_small_with_its_managed_fields(self):
        name = "dgx-h100-su03-node-0017.cluster.example.com"
        where = path("nodetopologies", name=name)
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": "0c3ad2a4-90a6-4b0e-8a5e-6dfb1d6d3f22"}
        self.rest.patch(where, {"apiVersion": "heddle.dev/v1alpha1", "kind": "NodeTopology",
                                "metadata": {"name": name, "ownerReferences": [owner]}, "spec": {}},
                        kind="apply", fieldManager="heddle-operator")
        self.addCleanup(self.rest.delete, where)
        body = agents_apply(name)
        self.rest.patch(where + "/status", body, kind="apply", fieldManager="heddle-nodeagent")
        stored = self.rest.get(where)
        self.assertEqual(stored["status"]["nics"], body["status"]["nics"])
        managed = len(json.dumps(stored["metadata"]["managedFields"], separators=(",", ":")))
        whole = len(json.dumps(stored, separators=(",", ":"), ensure_ascii=False).encode())
        self.assertEqual(len(stored["metadata"]["managedFields"]), 2)
        self.assertLessEqual(whole, 16 * 1024, f"{managed} bytes of it are managedFields")

    def test_the_switches_of_ten_thousand_nodes_are_declared_in_one_fabric(self):
        units, rails, spines = 313, 8, 128
        tops = [f"spine-{i:04}" for i in range(spines)]
        leaves = [{"name": f"su{unit:04}-r{rail}", "rail": rail, "uplinks": tops[rail::rails], "uplinkGbps": 12800}
                  for unit in range(units) for rail in range(rails)]
        fabric = {"apiVersion": "heddle.dev/v1alpha1", "kind": "Fabric", "metadata": {"name": "large"},
                  "spec": {"switches": leaves + [{"name": name} for name in tops]}}
        self.rest.create(path("fabrics"), fabric)
        self.addCleanup(self.rest.delete, path("fabrics", name="large"))
        self.assertEqual(len(self.rest.get(path("fabrics", name="large"))["spec"]["switches"]), units * rails + spines)

    def test_a_gang_of_16384_pods_is_committed_by_put(self):
        pods = 16384
        names = [f"{'n' * 57}-{i:05}" for i in range(pods)]
        spec = {"owner": {"apiVersion": "batch/v1", "kind": "Job", "name": "large", "uid": "2f0e6a3c"}, "attempt": 0,
                "pods": pods, "gpusPerPod": 8, "gpus": pods * 8,
                "parallelism": {"tp": 8, "cp": 1, "dp": pods, "pp": 1, "ep": 1, "order": "tp-cp-dp-pp"}}
        gang = self.rest.create(path("gangs", "default"), {
            "apiVersion": "heddle.dev/v1alpha1", "kind": "Gang", "metadata": {"name": "large"}, "spec": spec})
        gang["status"] = {"placement": {
            "epoch": 1, "nodeNames": names, "nodes": list(range(pods)), "gpus": [255] * pods,
            "substituteSets": [list(range(i, i + 7)) for i in range(0, pods, 32)],
            "substitutes": [i // 32 for i in range(pods)]}}
        where = path("gangs", "default", "large")
        self.addCleanup(self.rest.delete, where)
        self.rest.replace(where + "/status", gang)
        self.assertEqual(self.rest.get(where)["status"]["placement"]["nodes"][-1], pods - 1)
        # The transition rules run now too.
        again = self.rest.get(where)
        again["status"]["placement"]["epoch"] = 2
        self.rest.replace(where + "/status", again)
        with self.assertRaises(ApiError) as conflict:
            self.rest.replace(where + "/status", again)
        self.assertEqual(conflict.exception.status, 409)


if __name__ == "__main__":
    unittest.main()
