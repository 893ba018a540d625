#!/usr/bin/python3
"""What a LosslessPolicy costs a cluster: bench/lossless_fleet.py [--nodes N] [--bin DIR].

The time from a change of the policy to the last node's spec, the requests that the API server served for each node, and
CPU and memory of the operator. etcd, kube-apiserver and the operator run alone; the status of each node, eight RoCE
NICs, is written here as its agent would. What the agents do with their specs is bench/agent_fleet.py's."""

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agent_fleet import Sample, cpu_seconds

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "cluster")]

from bed import ControlPlane, Heddle, Nodes, path  # noqa: E402: the path above comes first

SPEC_WRITES = ("PATCH", "nodetopologies", "200")
STATUS_WRITES = ("APPLY", "losslesspolicies/status", "200")


def status():
    port = {"number": 1, "state": "Active", "rateGbps": 400, "usableGbps": 400, "leafMissing": "Unknown"}
    nics = [{"name": f"mlx5_{rail}", "netdev": f"eth{rail}", "transport": "RoCE", "role": "compute", "rail": rail,
             "mtu": 9000, "ports": [port]} for rail in range(8)]
    return {"observedAt": "2026-01-31T12:00:00Z", "hash": "0123456789abcdef", "nvlinkDomainMissing": "NotApplicable",
            "nics": nics}


def for_all(names, act):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(act, names))


class Run:

    def __init__(self, plane, heddle, names):
        self.plane, self.heddle, self.names = plane, heddle, names
        self.operator = heddle.daemon("operator")

    def measure(self, what, act, writes, settle=0.0):
        """Does it, waits until so many specs were written, and says what it took."""
        before, cpu, started = Sample(self.plane), cpu_seconds(self.operator.pid), time.monotonic()
        act()

        def written():
            return Sample(self.plane).requests[SPEC_WRITES] - before.requests[SPEC_WRITES] >= writes
        self.heddle.wait_for(written, f"{writes} specs to be written", 600)
        took = time.monotonic() - started
        time.sleep(settle)
        after = Sample(self.plane)
        asked = after.requests - before.requests
        specs = sum(count for (verb, name, _), count in asked.items() if name == "nodetopologies" and verb != "WATCH")
        print(f"{what}: {took:.1f} s, {specs / len(self.names):.2f} requests a node for its spec, "
              f"{sum(count for (verb, name, _), count in asked.items() if name == STATUS_WRITES[1]):.0f} for the policy's "
              f"status; API server {after.cpu['apiserver'] - before.cpu['apiserver']:.1f} s of CPU, operator {cpu_seconds(self.operator.pid) - cpu:.2f} s of CPU, "
              f"{self.operator.resident_bytes() / 1e6:.0f} MB resident", flush=True)

    def report(self, state):
        """As all agents would, for the generation that they were told."""
        told = self.plane.rest.get(path("nodetopologies", name=self.names[0]))["spec"]["lossless"][0]
        entry = {"ports": [f"mlx5_{rail}:1" for rail in range(8)], "policy": "roce",
                 "generation": told["generation"], "state": state}
        for_all(self.names, lambda name: self.plane.rest.patch(
            path("nodetopologies", name=name, sub="status"), {"status": {"lossless": [entry]}}))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--bin", default=str(ROOT / "build" / "release" / "bin"))
    arguments = parser.parse_args()
    names = [f"node-{index:05}" for index in range(arguments.nodes)]
    with ControlPlane("lossless-fleet", components=("etcd", "apiserver")) as plane:
        heddle = Heddle(plane, arguments.bin)
        # Made here: install() would wait for the default account, which no controller-manager makes.
        plane.rest.create(path("namespaces"), {"metadata": {"name": heddle.namespace}})
        heddle.install(wait=False)
        plane.create_all(path("nodes"), [Nodes.body(name) for name in names])
        heddle.start_operator()
        heddle.wait_for(lambda: len(plane.rest.list(path("nodetopologies"))) == len(names), "all NodeTopologies", 600)
        for_all(names, lambda name: plane.rest.patch(
            path("nodetopologies", name=name, sub="status"), {"status": status()}))
        run = Run(plane, heddle, names)
        time.sleep(5)  # until the Fabric is assembled and the labels are written

        def change(**spec):
            plane.rest.patch(path("losslesspolicies", name="roce"), {"spec": spec})

        print(f"{len(names)} nodes with 8 RoCE ports each, binaries of {arguments.bin}", flush=True)
        run.measure("a new policy", lambda: plane.rest.create(path("losslesspolicies"), {
            "apiVersion": "heddle.dev/v1alpha1", "kind": "LosslessPolicy", "metadata": {"name": "roce"}, "spec": {}}), len(names))
        run.measure("a changed policy", lambda: change(mtu=8900), len(names))
        run.measure("a policy that changes nothing", lambda: change(rdma={"dscp": 26}), 0, settle=15)
        run.measure("all nodes report", lambda: run.report("Compliant"), 0, settle=15)
        lossless = plane.kubectl("get", "losslesspolicies")
        print(lossless, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
