#!/usr/bin/python3
"""What a LosslessPolicy costs a cluster: bench/lossless_fleet.py [--nodes N] [--apply] [--bin DIR].

The time from a change of the policy to the last node's spec, the requests that the API server served for each node, and
CPU and memory of the operator. etcd, kube-apiserver and the operator run alone; the status of each node, eight RoCE
NICs, is written here as its agent would. What the agents do with their specs is bench/agent_fleet.py's.

The policy is in mode Observe, where every node is told at once. With --apply it is in mode Apply with the canaries of the
default: these are told first, the others once all of their ports are compliant. Each node says so as soon as it is told,
in one write, as its agent would in the end: an agent takes its time for a port, which is tests/cluster/run
LosslessRollout's. One watch here stands for all of theirs."""

import argparse
import http.client
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agent_fleet import Sample, cpu_seconds

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "cluster")]

from bed import ApiError, ControlPlane, Heddle, Nodes, path  # noqa: E402: the path above comes first

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


class Agents:
    """Of all nodes, as far as a policy in mode Apply is concerned: what a node is told, it has. Each writes as an agent
    does, its whole status over the version that it has seen."""

    def __init__(self, plane):
        self.rest = plane.rest
        self.told = {}  # by generation of the policy: when each node's spec was seen here, by name
        self._latest = {}  # by name, what the watch showed and nobody has looked at
        self._lock = threading.Lock()
        self._failure = None
        self._ended = False
        self._pool = ThreadPoolExecutor(8)
        version = self.rest.get(path("nodetopologies"), limit=1)["metadata"]["resourceVersion"]
        threading.Thread(target=self._watch, args=(version,), name="watch", daemon=True).start()

    def stop(self):
        self._ended = True
        self._pool.shutdown(cancel_futures=True)

    def check(self):
        if self._failure:
            raise self._failure

    def _watch(self, version):
        """From that version on, until stop(). A stream that ends is taken up where it ended."""
        while not self._ended:
            try:
                for event in self.rest.stream(path("nodetopologies"), watch="true", resourceVersion=version,
                                              allowWatchBookmarks="true"):
                    if event["type"] == "ERROR":
                        raise RuntimeError(f"the watch of NodeTopologies: {event['object'].get('message')}")
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] in ("ADDED", "MODIFIED"):
                        self._saw(event["object"])
            except (OSError, http.client.HTTPException):
                time.sleep(0.1)
            except Exception as problem:  # Whatever it is, check() says it.
                self._failure = self._failure or problem
                return

    def _saw(self, topology):
        name = topology["metadata"]["name"]
        for wish in topology.get("spec", {}).get("lossless", []):
            self.told.setdefault(wish["generation"], {}).setdefault(name, time.monotonic())
        with self._lock:
            waits = name in self._latest
            self._latest[name] = topology
        if not waits and not self._ended:
            self._pool.submit(self._answer, name)

    def _answer(self, name):
        with self._lock:
            topology = self._latest.pop(name)
        try:
            reports = reports_of(topology)
            if reports and reports != topology["status"].get("lossless"):
                self.rest.replace(path("nodetopologies", name=name, sub="status"), with_reports(topology, reports),
                                  fieldManager="heddle-nodeagent")
        except Exception as problem:  # As above.
            # Somebody else wrote in between: the watch is about to show it.
            if not (isinstance(problem, ApiError) and problem.status == 409):
                self._failure = self._failure or problem


def reports_of(topology):
    """That all ports read back as they were told: ports which were told the same read back the same."""
    return [{"ports": wish["ports"], "policy": wish["policies"][0], "generation": wish["generation"],
             **{key: wish[key] for key in ("policyUid",) if key in wish}, "state": "Compliant",
             "have": wish["settings"]} for wish in topology.get("spec", {}).get("lossless", [])]


def with_reports(topology, reports):
    """The object as an agent writes it: its own condition and the summary beside the reports."""
    meta, status = topology["metadata"], topology["status"]
    ports = sum(len(report["ports"]) for report in reports)
    condition = {"type": "Lossless", "status": "True", "reason": "Compliant", "observedGeneration": meta["generation"],
                 "message": "every port is as its LosslessPolicy says", "lastTransitionTime": status["observedAt"]}
    return {"apiVersion": topology["apiVersion"], "kind": topology["kind"],
            "metadata": {key: meta[key] for key in ("name", "uid", "resourceVersion")}, "spec": topology.get("spec", {}),
            "status": status | {"observedGeneration": meta["generation"], "lossless": reports, "conditions": [condition],
                                "summary": status.get("summary", {}) | {"lossless": f"{ports}/{ports}"}}}


class ApplyRun:

    # Requests that change something, as the API server's metrics call them.
    WRITES = ("POST", "PUT", "PATCH", "APPLY", "DELETE")
    PATIENCE = 1800

    def __init__(self, plane, heddle, names, agents):
        self.plane, self.heddle, self.names, self.agents = plane, heddle, names, agents
        self.operator = heddle.daemon("operator")

    def compliant(self, generation):
        self.agents.check()
        status = self.plane.rest.get(path("losslesspolicies", name="roce")).get("status", {})
        ready = next((one for one in status.get("conditions", []) if one["type"] == "Ready"), {})
        if status.get("observedGeneration") != generation or ready.get("reason") != "Compliant":
            told = len(self.agents.told.get(generation, {}))
            raise TimeoutError(f"{told} of {len(self.names)} are told; the policy: {status.get('counts')}, {ready}")
        return True

    def measure(self, what, act, changes=True, settle=0.0):
        """Does it, which answers with the policy; waits until that says that all are compliant; says what it took."""
        before, own = Sample(self.plane), time.process_time()
        cpu, started = cpu_seconds(self.operator.pid), time.monotonic()
        policy = act()
        generation = policy["metadata"]["generation"]
        self.heddle.wait_for(lambda: self.compliant(generation), f"all to be compliant with generation {generation}",
                             self.PATIENCE)
        took = time.monotonic() - started
        time.sleep(settle)
        after, used = Sample(self.plane), cpu_seconds(self.operator.pid) - cpu
        when = self.when(policy, started) if changes else ""
        asked = after.requests - before.requests

        def writes(*kinds):
            return sum(count for (verb, name, _), count in asked.items() if verb in self.WRITES and name in kinds)
        specs, statuses = writes("nodetopologies"), writes("nodetopologies/status")
        of_policy = writes("losslesspolicies/status")
        ours = writes("losslesspolicies")  # the change itself
        everything = writes(*{name for _, name, _ in asked})
        refused = sum(count for (verb, _, code), count in asked.items() if verb in self.WRITES and code >= "400")
        print(f"{what}: {when}the policy says compliant after {took:.1f} s; {(specs + statuses) / len(self.names):.2f} "
              f"requests a node ({specs:.0f} specs, {statuses:.0f} statuses), {of_policy:.0f} for the policy's status, "
              f"{everything - specs - statuses - of_policy - ours:.0f} other writes, {refused:.0f} refused; "
              f"API server {after.cpu['apiserver'] - before.cpu['apiserver']:.1f} s of CPU, operator {used:.2f} s of CPU, "
              f"{self.operator.resident_bytes() / 1e6:.0f} MB resident; what plays the agents "
              f"{time.process_time() - own:.1f} s of CPU", flush=True)

    def when(self, policy, started):
        """When the canaries were told, and when all were; the others not before the last of these."""
        told, count = self.agents.told.get(policy["metadata"]["generation"], {}), policy["spec"]["canary"]
        missing = [name for name in self.names if name not in told]
        if missing:
            raise AssertionError(f"{len(missing)} nodes were told nothing, the first of them {missing[0]}")
        canaries = max(told[name] for name in self.names[:count])  # all have one kind of NIC, so the first by name
        if early := [name for name in self.names[count:] if told[name] <= canaries]:
            raise AssertionError(f"{len(early)} nodes were told before the canaries, the first of them {early[0]}")
        return (f"{count} canaries are told after {canaries - started:.1f} s, all after "
                f"{max(told.values()) - started:.1f} s, ")


def changed(plane, **spec):
    """The policy after that change."""
    return plane.rest.patch(path("losslesspolicies", name="roce"), {"spec": spec})


def created(plane, **spec):
    return plane.rest.create(path("losslesspolicies"), {
        "apiVersion": "heddle.dev/v1alpha1", "kind": "LosslessPolicy", "metadata": {"name": "roce"}, "spec": spec})


def observe(plane, heddle, names):
    run = Run(plane, heddle, names)
    run.measure("a new policy", lambda: created(plane), len(names))
    run.measure("a changed policy", lambda: changed(plane, mtu=8900), len(names))
    run.measure("a policy that changes nothing", lambda: changed(plane, rdma={"dscp": 26}), 0, settle=15)
    run.measure("all nodes report", lambda: run.report("Compliant"), 0, settle=15)


def apply(plane, heddle, names):
    agents = Agents(plane)
    try:
        run = ApplyRun(plane, heddle, names, agents)
        run.measure("a new policy", lambda: created(plane, mode="Apply"))
        run.measure("a changed policy", lambda: changed(plane, mtu=8900))
        run.measure("a policy that changes nothing", lambda: changed(plane, rdma={"dscp": 26}), changes=False, settle=15)
    finally:
        agents.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--apply", action="store_true", help="mode Apply: canaries first, until all are compliant")
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
        time.sleep(5)  # until the Fabric is assembled and the labels are written
        mode = ", mode Apply" if arguments.apply else ""
        print(f"{len(names)} nodes with 8 RoCE ports each{mode}, binaries of {arguments.bin}", flush=True)
        (apply if arguments.apply else observe)(plane, heddle, names)
        lossless = plane.kubectl("get", "losslesspolicies")
        print(lossless, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
