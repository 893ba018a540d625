#!/usr/bin/python3
"""What agents cost a real API server: bench/agent_fleet.py [--agents N] [--kwok] [--rest S] [--jitter S] [--bin DIR].

N agents start at once, each with its own token, connections, watch, publication and Lease, in one process
(agents_bench fleet). Then they rest. etcd and kube-apiserver run alone: kubelets, controllers and Heddle's operator
would add their own load, which is not the agents'. With --kwok KWOK keeps the Nodes Ready, as kubelets would, beside the
controller-manager; their heartbeats are put off, and what they write at the start is over before the agents begin. The
NodeTopologies are made beforehand, as the operator has them
when a DaemonSet is updated or a site gets its power back."""

import argparse
import os
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "cluster"), str(ROOT / "tests" / "support")]

import machines  # noqa: E402: the path above comes first
from bed import ControlPlane, Heddle, Nodes, path  # noqa: E402
from bed.heddle import NAMESPACE  # noqa: E402
from scale.fleet import QUIET_NODES  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")


class Sample:
    """What the API server has done so far."""

    def __init__(self, plane):
        self.time = time.monotonic()
        self.requests = Counter()
        for line in plane.rest.request("GET", "/metrics").splitlines():
            if found := re.match(r"apiserver_request_total\{(.*)\} (\S+)", line):
                labels = dict(re.findall(r'(\w+)="([^"]*)"', found[1]))
                name = labels["resource"] + ("/" + labels["subresource"] if labels["subresource"] else "")
                self.requests[(labels["verb"], name, labels["code"])] += float(found[2])
        self.cpu = {name: cpu_seconds(plane.process(name).pid) for name in ("apiserver", "etcd")}
        self.resident = {name: plane.process(name).resident_bytes() for name in ("apiserver", "etcd")}

    def since(self, before, agents):
        seconds = self.time - before.time
        print(f"  in {seconds:.1f} s: " + ", ".join(
            f"{name} {self.cpu[name] - before.cpu[name]:.1f} s of CPU, {self.resident[name] / 1e6:.0f} MB resident"
            for name in self.cpu))
        for (verb, what, code), count in sorted((self.requests - before.requests).items()):
            if count >= agents / 20:
                print(f"  {verb:<6} {what:<26} {code}  {count:7.0f}  {count / seconds:8.1f}/s")
        sys.stdout.flush()


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def prepare(plane, names, kwok):
    """A Node, its NodeTopology, and a kubeconfig of its agent, for each name; the folder of the latter."""
    if kwok:
        # KWOK takes minutes for thousands on few cores.
        Nodes(plane).add_plain(*names, timeout=60 + len(names) // 5)
    else:
        plane.create_all(path("nodes"), [Nodes.body(name) for name in names])
    uids = {node["metadata"]["name"]: node["metadata"]["uid"] for node in plane.rest.list(path("nodes"))}
    owner = {"apiVersion": "v1", "kind": "Node", "controller": True, "blockOwnerDeletion": False}
    plane.create_all(path("nodetopologies"), [
        {"apiVersion": "heddle.dev/v1alpha1", "kind": "NodeTopology",
         "metadata": {"name": name, "ownerReferences": [owner | {"name": name, "uid": uids[name]}]}, "spec": {}}
        for name in names])
    folder = plane.folder / "agents"
    folder.mkdir()
    with ThreadPoolExecutor(8) as pool:
        tokens = list(pool.map(lambda name: plane.account_token(NAMESPACE, "heddle-nodeagent", name), names))
    for name, token in zip(names, tokens):
        plane.write_kubeconfig(name, token, folder)
    return folder


def small_stacks():
    """Three threads an agent: 8 MB of address space for each stack would be 120 GB."""
    resource.setrlimit(resource.RLIMIT_STACK, (512 << 10, resource.getrlimit(resource.RLIMIT_STACK)[1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=500)
    parser.add_argument("--kwok", action="store_true", help="keep the Nodes Ready by KWOK; without, they are bare objects")
    parser.add_argument("--rest", type=int, default=60, help="seconds to watch them at rest")
    parser.add_argument("--jitter", type=int, default=10, help="the agent's --publish-jitter")
    parser.add_argument("--machine", default="hgx-h100", help="a shape of tests/support/machines.py")
    parser.add_argument("--bin", default=str(ROOT / "build" / "release" / "bin"))
    arguments = parser.parse_args()
    names = [f"node-{index:05}" for index in range(arguments.agents)]
    components = ("etcd", "apiserver") + (("controller-manager", "kwok") if arguments.kwok else ())
    with ControlPlane("fleet", components=components, arguments=QUIET_NODES if arguments.kwok else None) as plane:
        heddle = Heddle(plane, arguments.bin)
        if not arguments.kwok:
            # Made here: install() would wait for the default account, which no controller-manager makes.
            plane.rest.create(path("namespaces"), {"metadata": {"name": heddle.namespace}})
        heddle.install(wait=arguments.kwok)
        started = time.monotonic()
        kubeconfigs = prepare(plane, names, arguments.kwok)
        machine = machines.write({"nodes": [{"name": "node-00000", "shape": arguments.machine}]},
                                 str(plane.folder / "machines"))["node-00000"]
        print(f"{len(names)} nodes with their objects and tokens made in {time.monotonic() - started:.0f} s", flush=True)
        before = Sample(plane)
        fleet = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", f"{arguments.bin}/agents_bench", "fleet", str(machine), "--kubeconfigs",
             str(kubeconfigs), "--rest", str(arguments.rest), "--jitter", str(arguments.jitter)],
            stdout=subprocess.PIPE, text=True, preexec_fn=small_stacks,
            # cpprestsdk reads the system's 140 authorities for every new connection and never asks them: 45 ms of CPU,
            # which each node pays for itself and this machine cannot pay for all of them.
            env=os.environ | {"SSL_CERT_FILE": "/dev/null"})
        print(fleet.stdout.readline(), end="", flush=True)
        published = Sample(plane)
        published.since(before, len(names))
        clients = f"/proc/{fleet.pid}"
        lines = [line for line in Path(f"{clients}/status").read_text().splitlines() if line.startswith(("VmRSS", "Threads"))]
        print(f"  the agents' process: {cpu_seconds(fleet.pid):.1f} s of CPU, {', '.join(' '.join(l.split()) for l in lines)}")
        # The last tenth is the end of the fleet.
        time.sleep(arguments.rest * 0.9)
        print("at rest:")
        Sample(plane).since(published, len(names))
        print(fleet.communicate()[0], end="")
        return fleet.returncode


if __name__ == "__main__":
    sys.exit(main())
