"""Nodes that KWOK keeps Ready, as a cluster's description has them."""

from .control_plane import KWOK_LABEL, KWOK_VALUE
from .rest import ApiError, path

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
                "name": name,
                "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
                           "kubernetes.io/arch": "amd64", KWOK_LABEL: KWOK_VALUE} | dict(labels or {})},
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
        """As fall_silent(), and the node turns NotReady at once."""
        self.fall_silent(name)
        self._plane.rest.patch(
            path("nodes", name=name, sub="status"),
            {"status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
                                        "message": "the bed lost this node"}]}}, "strategic")

    def fall_silent(self, name):
        """As when a machine loses power: nothing is said to anybody, its Lease goes stale, and the node controller finds
        out for itself. Its pods stay as they are, and those that are deleted stay, too.
        """
        self._set_kwok(name, None)

    def take_back(self, name):
        """Undoes lose() and fall_silent() without waiting: to KWOK the node is a new one, so it says Ready, renews the Lease
        and goes through the pods that are bound there.
        """
        self._set_kwok(name, KWOK_VALUE)

    def find_again(self, name, timeout=60.0):
        """take_back(), and waits until the node is Ready and the pods that were deleted meanwhile have ended."""
        self.take_back(name)
        # It is KWOK that says Ready, so what is deleted from here on ends by KWOK. That is also why the pods come second: while
        # the taint is there the node controller may still evict one.
        self.wait_ready([name], timeout)
        self._plane.wait_for(lambda: not self.finish_deleted(
            self._plane.rest.list(path("pods"), fieldSelector=f"spec.nodeName={name}")),
            f"the pods that were deleted on {name} to end", timeout)

    def finish_deleted(self, pods):
        """What a kubelet does once the containers of a deleted pod have stopped. Returns how many of these it was done to; one
        that stays for a finalizer is not done again, and one with bed.heddle.dev/end: never not at all.
        """
        done = 0
        for pod in pods:
            meta = pod["metadata"]
            if ("deletionTimestamp" not in meta or meta.get("deletionGracePeriodSeconds") == 0
                    or meta.get("annotations", {}).get("bed.heddle.dev/end") == "never"):
                continue
            done += 1
            try:
                # By its UID: the next pod of a StatefulSet has the same name.
                self._plane.rest.delete(path("pods", meta["namespace"], meta["name"]), gracePeriodSeconds=0,
                                        preconditions={"uid": meta["uid"]})
            except ApiError as problem:
                if problem.status not in (404, 409):
                    raise
        return done

    def _set_kwok(self, name, value):
        self._plane.rest.patch(path("nodes", name=name), {"metadata": {"labels": {KWOK_LABEL: value}}})

    def set_allocatable(self, name, **resources):
        """As when a device plugin's answer changes: set_allocatable("node-00", **{"nvidia.com/gpu": "7"})."""
        self._plane.rest.patch(path("nodes", name=name, sub="status"),
                               {"status": {"allocatable": resources, "capacity": resources}})
