#!/usr/bin/python3
"""Memory of each daemon at 5,000 nodes on a real control plane: bench/daemons.py [--nodes N] [--bin DIR].

The NodeTopologies are written as one agent published them, with other names; only one agent runs."""

import argparse
import copy
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "cluster"), str(ROOT / "tests" / "support")]

from bed import ControlPlane, Heddle, Nodes, h100, path  # noqa: E402: the path above comes first


def renamed(status, node):
    """Another node's status: the same machine on the same leaf names of its own unit."""
    text = copy.deepcopy(status)
    for nic in text["nics"]:
        for port in nic["ports"]:
            if "leaf" in port:
                port["leaf"] = port["leaf"].replace("su-0", node.unit)
    text["nvlinkDomain"]["id"] = node.name
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--bin", default=str(ROOT / "build" / "release" / "bin"))
    arguments = parser.parse_args()
    cluster = h100(units=(arguments.nodes + 15) // 16)
    first = cluster.nodes[0]
    with ControlPlane("bench") as plane:
        started = time.monotonic()
        Nodes(plane).add(cluster, timeout=300)
        print(f"{len(cluster.nodes)} nodes Ready in {time.monotonic() - started:.0f} s", flush=True)
        heddle = Heddle(plane, arguments.bin)
        heddle.install()
        heddle.write_machines(h100(units=1, nodes_per_unit=1))
        heddle.start_operator()
        heddle.start_agents([first.name])
        heddle.start_extender()
        heddle.wait_published([first.name])
        status = plane.rest.get(path("nodetopologies", name=first.name))["status"]
        started = time.monotonic()

        def publish(node):
            def there():
                return plane.rest.find(path("nodetopologies", name=node.name))
            plane.wait_for(there, f"the NodeTopology {node.name}", 300)
            plane.rest.patch(path("nodetopologies", name=node.name, sub="status"), {"status": renamed(status, node)})
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(publish, cluster.nodes[1:]))
        heddle.wait_published([node.name for node in cluster.nodes], 300)

        def assembled():
            fabric = plane.rest.find(path("fabrics", name="infiniband"))
            return fabric and fabric.get("status", {}).get("counts", {}).get("nodes") == len(cluster.nodes)
        heddle.wait_for(assembled, "the Fabric of all nodes", 300)
        print(f"{len(cluster.nodes)} NodeTopologies published and assembled in {time.monotonic() - started:.0f} s")
        for name, resident in sorted(heddle.resident_bytes().items()):
            print(f"{name:<16} {resident / 1e6:8.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
