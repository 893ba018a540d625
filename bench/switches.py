#!/usr/bin/python3
"""What one operator spends on the switches that it asks: bench/switches.py [--switches N] [--ports N] [--bin DIR].

N switches of tests/switches, one port of this machine and one gNMI server each, all in one process, whose counters move;
a real etcd and kube-apiserver; one operator that asks them all over TLS with a password. Hosts hang on them, eight RoCE
NICs each, whose statuses are written here as their agents would. Once every switch is counted:

  CPU and memory   of the operator, from /proc, over --seconds
  a fault          a port flaps, and the time until the Fabric's status has the suspect, --faults times
  drops            a lossless queue of a port drops packets, which the port counts as discards, too, and the same, --drops
                   times
  storms           the watchdog finds a storm on a port that is paused for a twelfth of the time, --storms times

The switches count by a subscription every ten seconds, so a fault is told after ten seconds and what the operator takes;
`--poll` is for their settings. Queues are counted once in 120 ms for each switch that is asked, 500 of them once a minute,
and at once those of a port that moves as by these faults: without that a drop or a storm is told within a minute. The
time of each counts from when its counter moved. With other programs on the machine only CPU and memory
mean anything, and on two cores the switches are such a program: their CPU is printed too.

  tools/build release heddle-operator kubectl-heddle heddle-extender heddle-nodeagent
  bench/switches.py                                 500 switches of 64 ports: about five minutes
  bench/switches.py --switches 50 --seconds 30      a short one
  bench/switches.py --hosts 1984                    15,872 cables, on 496 of the switches
  bench/switches.py --rest                          nothing counts: what asking alone costs
"""

import argparse
import base64
import random
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agent_fleet import cpu_seconds

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "cluster"), str(ROOT / "tests" / "switches")]

from bed import ControlPlane, Heddle, Nodes, path  # noqa: E402: the path above comes first
from bed.heddle import NAMESPACE  # noqa: E402
from switches import Switches, leaf  # noqa: E402

RAILS, HOSTS = 8, 32  # of a scalable unit: its leaves, and the hosts on each of them
# Of a busy port: two of what the rules look at, and the packets that pause is held against.
BUSY = {"SAI_PORT_STAT_IF_IN_UCAST_PKTS": 900_000, "SAI_PORT_STAT_IF_OUT_UCAST_PKTS": 900_000,
        "SAI_PORT_STAT_PFC_3_RX_PKTS": 40, "SAI_PORT_STAT_PFC_3_TX_PKTS": 40}
STORM = 1_000  # pause frames a second; 11,921 stop a port of 400 Gb/s for good, and half of that is a fault by itself


def leaf_name(index):
    return f"leaf-{index:03}"


def node_status(host):
    """Eight NICs; the one of each rail on its leaf of the host's unit."""
    nics = []
    for rail in range(RAILS):
        port = {"number": 1, "state": "Active", "rateGbps": 400, "usableGbps": 400,
                "leaf": leaf_name(host // HOSTS * RAILS + rail), "leafPort": f"Ethernet{host % HOSTS * 8}"}
        nics.append({"name": f"mlx5_{rail}", "netdev": f"eth{rail}", "transport": "RoCE", "role": "compute", "rail": rail,
                     "mtu": 9000, "ports": [port]})
    return {"observedAt": "2026-01-31T12:00:00Z", "hash": "0123456789abcdef", "nvlinkDomainMissing": "NotApplicable",
            "nics": nics}


def for_all(things, act):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(act, things))


def secret(plane, name, **data):
    plane.rest.create(path("secrets", NAMESPACE), {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}})


def fabric_switch(name, there, poll):
    return {"apiVersion": "heddle.dev/v1alpha1", "kind": "FabricSwitch", "metadata": {"name": name},
            "spec": {"address": there.address, "role": "Leaf", "name": name, "pollSeconds": poll,
                     "tls": {"serverName": there.server_name, "caSecret": {"name": "leaf-ca"}},
                     "credentialsSecret": {"name": "leaf-login"}}}


def holds(item, kind):
    return any(one["type"] == kind and one["status"] == "True" for one in (item.get("status") or {}).get("conditions") or [])


class Run:

    def __init__(self, plane, heddle, switches, arguments):
        self.plane, self.heddle, self.switches, self.arguments = plane, heddle, switches, arguments
        self.operator = heddle.daemon("operator")

    def wait_counted(self):
        """Until all are, at most for --patience: where the switches themselves want more than the machine has, one or
        another is always late."""
        began, wanted = time.monotonic(), self.arguments.switches
        while True:
            time.sleep(3)  # a list of 500 costs the API server as much as all that the operator asks of it in a second
            there = sum(holds(one, "Counted") for one in self.plane.rest.list(path("fabricswitches")))
            took = time.monotonic() - began
            if there == wanted or took > self.arguments.patience:
                break
        print(f"{there} of {wanted} are counted {took:.0f} s after they were named", flush=True)

    def steady(self):
        """CPU and memory over the time, and what the API server was asked by the operator."""
        before, peers, began = cpu_seconds(self.operator.pid), cpu_seconds(self.switches.process.pid), time.monotonic()
        most = 0
        while time.monotonic() - began < self.arguments.seconds:
            time.sleep(1)
            most = max(most, self.operator.resident_bytes())
        took = time.monotonic() - began
        core = (cpu_seconds(self.operator.pid) - before) / took
        print(f"operator: {core:.1%} of a core, {most / 1e6:.0f} MB resident at most, over {took:.0f} s; the switches: "
              f"{(cpu_seconds(self.switches.process.pid) - peers) / took:.0%} of a core", flush=True)
        return core, most

    def suspected(self, name, port):
        return any(f"{name} port {port}" in one["name"]
                   for fabric in self.plane.rest.list(path("fabrics"))
                   for one in (fabric.get("status") or {}).get("suspects") or [])

    def faults(self):
        """How long the slowest took, after what is printed of flaps, drops and storms."""
        # Each on another leaf that a host hangs on.
        counts = self.arguments.faults, self.arguments.drops, self.arguments.storms
        chosen = random.Random(9).sample(range(min(self.arguments.switches, self.leaves())), sum(counts))
        leaves = [[chosen.pop() for _ in range(count)] for count in counts]
        seconds = self.told("a flap", leaves[0], lambda there, port: there.flap(port, 5))
        # PFC protects queue 3 of every port (BUSY).
        seconds += self.told("a drop in a lossless queue", leaves[1], lambda there, port: there.counters(
            {port: {"SAI_PORT_STAT_IF_OUT_DISCARDS": 100}, f"{port}:3": {"SAI_QUEUE_STAT_DROPPED_PACKETS": 100}}))
        seconds += self.told("a storm", leaves[2], lambda there, port: there.counters(
            {f"{port}:3": {"PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED": 1}}),
            before=lambda there, port: there.rates({port: BUSY | {"SAI_PORT_STAT_PFC_3_RX_PKTS": STORM}}))
        return max(seconds, default=0)

    def told(self, what, leaves, do, before=None):
        """Seconds until the Fabric's status had each; a moment at random, since counters are read by the clock. `before`:
        what the port does some seconds earlier."""
        seconds = []
        for index in leaves:
            name, port = leaf_name(index), f"Ethernet{8 * (index % HOSTS if self.arguments.hosts >= HOSTS else 0)}"
            if before:
                before(self.switches[name], port)
            time.sleep(random.Random(index).uniform(0, 10))
            began = time.monotonic()
            do(self.switches[name], port)
            while not self.suspected(name, port):
                if time.monotonic() - began > 180:
                    raise AssertionError(f"nobody suspects {name} port {port} 180 s after {what}")
                time.sleep(0.1)
            seconds.append(time.monotonic() - began)
        if seconds:
            print(f"{what} was in the Fabric's status after {statistics.median(seconds):.1f} s (median of {len(seconds)}), "
                  f"{max(seconds):.1f} s at most", flush=True)
        return seconds

    def leaves(self):
        return (self.arguments.hosts + HOSTS - 1) // HOSTS * RAILS


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--switches", type=int, default=500)
    parser.add_argument("--ports", type=int, default=64, help="of each")
    parser.add_argument("--hosts", "--nodes", type=int, help="of eight NICs, 32 on each eight switches; default 256, or as many "
                        "as there is room for")
    parser.add_argument("--poll", type=int, default=60, help="pollSeconds of the switches, for their settings; 10 at least")
    parser.add_argument("--seconds", type=int, default=120, help="that CPU and memory are measured over")
    parser.add_argument("--patience", type=int, default=240, help="seconds in which all are to be counted")
    parser.add_argument("--faults", type=int, default=5, help="ports that flap, one after the other; 0 for none")
    parser.add_argument("--drops", type=int, default=2, help="ports that drop in a lossless queue; 0, as with --rest, for none")
    parser.add_argument("--storms", type=int, default=1, help="likewise ports whose watchdog finds a storm")
    parser.add_argument("--rest", action="store_true", help="no counter moves")
    parser.add_argument("--hold", action="store_true", help="exit code 1 where CPU, memory or time is over what is promised")
    parser.add_argument("--bin", default=str(ROOT / "build" / "release" / "bin"))
    arguments = parser.parse_args()
    room = arguments.switches // RAILS * HOSTS
    if arguments.hosts is None:
        arguments.hosts = min(256, room)
    if arguments.hosts > room:
        parser.error(f"{arguments.switches} switches have room for {room} hosts")
    if arguments.rest:
        arguments.drops = arguments.storms = 0  # a queue that was never paused is not known to be lossless
    if arguments.ports < HOSTS:
        parser.error(f"a leaf has {HOSTS} hosts: --ports {HOSTS} at least")
    hosts = [f"gpu-{index:05}" for index in range(arguments.hosts)]
    made = [leaf(leaf_name(index), arguments.ports, username="heddle", password="loom") for index in range(arguments.switches)]
    # Counters of a real switch are written once a second; here five seconds, as one process plays all of them.
    with ControlPlane("switches", components=("etcd", "apiserver")) as plane, Switches(made, tick_ms=5000) as switches:
        heddle = Heddle(plane, arguments.bin)
        # Made here: install() would wait for the default account, which no controller-manager makes.
        plane.rest.create(path("namespaces"), {"metadata": {"name": heddle.namespace}})
        heddle.install(wait=False, operator={"switches": {"secrets": ["leaf-login", "leaf-ca"]}})
        secret(plane, "leaf-login", username="heddle", password="loom")
        secret(plane, "leaf-ca", **{"ca.crt": switches.authority.certificate.read_text()})
        plane.create_all(path("nodes"), [Nodes.body(name) for name in hosts])
        heddle.start_operator()
        heddle.wait_for(lambda: len(plane.rest.list(path("nodetopologies"))) == len(hosts), "all NodeTopologies", 600)
        for_all(range(len(hosts)), lambda host: plane.rest.patch(
            path("nodetopologies", name=hosts[host], sub="status"), {"status": node_status(host)}))
        if not arguments.rest:
            busy = {f"Ethernet{8 * index}": BUSY for index in range(arguments.ports)}
            for_all(switches, lambda there: there.rates(busy))
        print(f"{arguments.switches} switches of {arguments.ports} ports, settings every {arguments.poll} s, {len(hosts)} hosts, "
              f"binaries of {arguments.bin}", flush=True)
        run = Run(plane, heddle, switches, arguments)
        plane.create_all(path("fabricswitches"), [fabric_switch(there.name, there, arguments.poll) for there in switches])
        run.wait_counted()
        time.sleep(30)  # connections stand, every sample has a predecessor
        core, memory = run.steady()
        slowest = run.faults()
    kept = core <= 0.25 and memory <= 300e6 and slowest <= 15
    print("within" if kept else "not within", "25 % of a core, 300 MB and 15 s")
    return 1 if arguments.hold and not kept else 0


if __name__ == "__main__":
    sys.exit(main())
