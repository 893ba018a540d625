"""A cluster of thousands of nodes whose NodeTopologies are one agent's, with other names."""

import copy
from concurrent.futures import ThreadPoolExecutor

from bed import h100, path


def renamed(status, node):
    """Another node's status: the same machine on the same leaf names of its own unit."""
    text = copy.deepcopy(status)
    for nic in text["nics"]:
        for port in nic["ports"]:
            if "leaf" in port:
                port["leaf"] = port["leaf"].replace("su-0", node.unit)
    text["nvlinkDomain"]["id"] = node.name
    return text


def publish(plane, heddle, cluster, timeout=300):
    """Starts operator, extender and one agent; returns once the Fabric of all nodes is assembled."""
    first = cluster.nodes[0]
    heddle.write_machines(h100(units=1, nodes_per_unit=1))
    heddle.start_operator()
    heddle.start_agents([first.name])
    heddle.start_extender()
    heddle.wait_published([first.name])
    status = plane.rest.get(path("nodetopologies", name=first.name))["status"]

    def publish_one(node):
        def there():
            return plane.rest.find(path("nodetopologies", name=node.name))
        plane.wait_for(there, f"the NodeTopology {node.name}", timeout)
        plane.rest.patch(path("nodetopologies", name=node.name, sub="status"), {"status": renamed(status, node)})
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(publish_one, cluster.nodes[1:]))
    heddle.wait_published([node.name for node in cluster.nodes], timeout)

    def assembled():
        fabric = plane.rest.find(path("fabrics", name="infiniband"))
        return fabric and fabric.get("status", {}).get("counts", {}).get("nodes") == len(cluster.nodes)
    heddle.wait_for(assembled, "the Fabric of all nodes", timeout)
