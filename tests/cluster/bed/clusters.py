"""Descriptions of the clusters that tests and the demo make. Values only: no I/O."""

import uuid
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Switch:
    name: str
    tier: str                # "leaf" or "spine"
    unit: str = ""           # the scalable unit whose hosts it serves; of a leaf only
    rail: int | None = None  # of a leaf only


@dataclass(frozen=True)
class Node:
    name: str
    shape: str                   # the kind of server, in the words of tests/support/machines.py
    gpus: int
    unit: str                    # scalable unit: the hosts that share one set of leaves
    index: int                   # within the cluster
    index_in_unit: int
    leaves: tuple[str, ...]      # the leaf of each rail, by rail
    leaf_port: int               # the same number on each of its leaves
    nvlink_domain: str = ""      # of a domain that spans nodes (its rack); empty where NVLink ends at the chassis
    index_in_domain: int = 0
    cpus: int = 192
    memory: str = "2Ti"
    labels: dict = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Cluster:
    name: str
    nodes: tuple[Node, ...]
    switches: tuple[Switch, ...]
    rails: int
    gbps: int                    # of one NIC
    transport: str               # "InfiniBand" or "RoCEv2"
    uplinks: int = 0             # from each leaf to each spine

    @property
    def gpus(self):
        return sum(node.gpus for node in self.nodes)

    def node(self, name):
        return next(node for node in self.nodes if node.name == name)

    def machines(self, faults=None):
        """The recorded machines of its nodes, as machines.write takes them.

        `faults` adds options of machines.Host by node: {"node-03": {"down": [5]}}.
        """
        def machine(node):
            options = {"name": node.name, "shape": node.shape,
                       "leaves": {rail: f"{leaf}/{node.leaf_port}" for rail, leaf in enumerate(node.leaves)}}
            if node.nvlink_domain:
                # What NVML answers on all trays of a rack alike.
                options |= {"cluster_uuid": str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{node.nvlink_domain}.{self.name}")),
                            "clique": 1}
            return options | (faults or {}).get(node.name, {})
        return {"nodes": [machine(node) for node in self.nodes]}

    def leaves(self):
        return tuple(switch for switch in self.switches if switch.tier == "leaf")

    def spines(self):
        return tuple(switch for switch in self.switches if switch.tier == "spine")


def _leaf(unit, rail):
    return f"{unit}-leaf-{rail}"


def _switches(units, rails, spines):
    leaves = tuple(Switch(_leaf(unit, rail), "leaf", unit, rail) for unit in units for rail in range(rails))
    return leaves + tuple(Switch(f"spine-{index}", "spine") for index in range(spines))


def h100(units=2, nodes_per_unit=16, spines=2, name="h100"):
    """Rail-optimised InfiniBand: each server's eight 400 Gb/s NICs go to the eight leaves of its scalable unit.

    The default is the demo's: 2 x 16 servers of 8 GPUs, 256 in all. Uplinks equal downlinks.
    """
    rails = 8
    unit_names = tuple(f"su-{unit}" for unit in range(units))
    nodes = tuple(
        Node(name=f"node-{index:02d}", shape="hgx-h100", gpus=8, unit=unit, index=index,
             index_in_unit=index % nodes_per_unit, leaves=tuple(_leaf(unit, rail) for rail in range(rails)),
             leaf_port=index % nodes_per_unit + 1, labels={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"})
        for index, unit in enumerate(unit for unit in unit_names for _ in range(nodes_per_unit)))
    return Cluster(name, nodes, _switches(unit_names, rails, spines), rails, 400, "InfiniBand",
                   uplinks=max(1, nodes_per_unit // spines))


def nvl72(racks=2, trays=18, spines=2, name="nvl72"):
    """GB200 NVL72: 18 trays of 4 GPUs make one NVLink domain a rack; 4 rails whose leaves all racks share."""
    rails = 4
    unit = "su-0"
    nodes = tuple(
        Node(name=f"rack-{rack}-tray-{tray:02d}", shape="gb200-tray", gpus=4, unit=unit,
             index=rack * trays + tray, index_in_unit=rack * trays + tray,
             leaves=tuple(_leaf(unit, rail) for rail in range(rails)), leaf_port=rack * trays + tray + 1,
             nvlink_domain=f"rack-{rack}", index_in_domain=tray, cpus=144, memory="960Gi",
             labels={"nvidia.com/gpu.product": "NVIDIA-GB200"})
        for rack in range(racks) for tray in range(trays))
    return Cluster(name, nodes, _switches((unit,), rails, spines), rails, 400, "InfiniBand",
                   uplinks=max(1, racks * trays // spines))
