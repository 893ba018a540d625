"""Nodes that KWOK keeps Ready, as a cluster's description has them."""

from .control_plane import KWOK_ANNOTATION
from .rest import path

# As many as a kubelet has pods: the resource only says that a pod wants its node's files, it is never scarce.
FABRIC_SLOTS = 110


class Nodes:
    """The Node objects of one bed."""

    def __init__(self, control_plane):
        self._plane = control_plane
        self.names = []

    def add(self, cluster, timeout=60.0):
        """Makes a Node for each of the cluster's and waits until all are Ready."""
        return self.add_nodes(cluster.nodes, timeout)

    def add_nodes(self, nodes, timeout=60.0):
        bodies = [self.body(node.name, gpus=node.gpus, cpus=node.cpus, memory=node.memory, labels=node.labels)
                  for node in nodes]
        return self._create(bodies, timeout)

    def add_plain(self, *names, timeout=60.0, **keywords):
        """Nodes without a description: `gpus`, `cpus`, `memory`, `labels` as in body()."""
        return self._create([self.body(name, **keywords) for name in names], timeout)

    @staticmethod
    def body(name, gpus=8, cpus=192, memory="2Ti", labels=None, taints=None):
        resources = {"cpu": str(cpus), "memory": memory, "pods": "110", "ephemeral-storage": "1Ti"}
        if gpus:
            resources |= {"nvidia.com/gpu": str(gpus), "heddle.dev/fabric": str(FABRIC_SLOTS)}
        return {
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": name, "annotations": {KWOK_ANNOTATION: "fake"},
                "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
                           "kubernetes.io/arch": "amd64", "type": "kwok"} | dict(labels or {})},
            "spec": {"taints": taints} if taints else {},
            "status": {"capacity": resources, "allocatable": resources}}

    def _create(self, bodies, timeout=60.0):
        self._plane.create_all(path("nodes"), bodies)
        names = [body["metadata"]["name"] for body in bodies]
        self.names += names
        self.wait_ready(names, timeout)
        return names

    def wait_ready(self, names, timeout=60.0):
        wanted = set(names)

        def all_ready():
            ready = {node["metadata"]["name"] for node in self._plane.rest.list(path("nodes")) if self._ready(node)}
            # The not-ready taint outlives the condition by a moment, and keeps pods away as long.
            missing = wanted - ready
            if missing:
                raise AssertionError(f"not Ready: {sorted(missing)[:5]} and {max(0, len(missing) - 5)} more")
            return True
        self._plane.wait_for(all_ready, f"{len(wanted)} nodes to be Ready and without taint", timeout)

    @staticmethod
    def _ready(node):
        conditions = node["status"].get("conditions") or []
        taints = node["spec"].get("taints") or []
        return (any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
                and not any(taint["key"].startswith("node.kubernetes.io/") for taint in taints))

    def remove(self, name):
        self._plane.rest.delete(path("nodes", name=name))
        self.names.remove(name)

    def lose(self, name):
        """As when a kubelet falls silent: KWOK lets go of the node and it turns NotReady at once."""
        self._plane.rest.patch(path("nodes", name=name), {"metadata": {"annotations": {KWOK_ANNOTATION: None}}})
        self._plane.rest.patch(
            path("nodes", name=name, sub="status"),
            {"status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
                                        "message": "the bed lost this node"}]}}, "strategic")

    def fall_silent(self, name):
        """As when a machine loses power: nothing is said to anybody, its Lease goes stale, and the node controller finds
        out for itself.
        """
        self._plane.rest.patch(path("nodes", name=name), {"metadata": {"annotations": {KWOK_ANNOTATION: None}}})
        # KWOK goes on renewing the Lease of a node that it once had, unless another holds it.
        self._plane.rest.patch(path("leases", "kube-node-lease", name),
                               {"spec": {"holderIdentity": "nobody", "leaseDurationSeconds": 86400}})

    def find_again(self, name):
        """Undoes lose() and fall_silent()."""
        lease = self._plane.rest.find(path("leases", "kube-node-lease", name))
        if lease and lease["spec"].get("holderIdentity") == "nobody":
            self._plane.rest.delete(path("leases", "kube-node-lease", name))
        self._plane.rest.patch(path("nodes", name=name), {"metadata": {"annotations": {KWOK_ANNOTATION: "fake"}}})
        # What lose() said is taken back, as a kubelet does that starts; KWOK says it where it takes the node for new only.
        self._plane.rest.patch(
            path("nodes", name=name, sub="status"),
            {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady",
                                        "message": "the bed found this node again"}]}}, "strategic")
        self.wait_ready([name])

    def set_allocatable(self, name, **resources):
        """As when a device plugin's answer changes: set_allocatable("node-00", **{"nvidia.com/gpu": "7"})."""
        self._plane.rest.patch(path("nodes", name=name, sub="status"),
                               {"status": {"allocatable": resources, "capacity": resources}})
