#!/usr/bin/python3
"""make demo: the main job on a real control plane, told to a person who watches.

Two clusters, one after the other: 32 servers of 8 H100 on a rail-optimised fabric, where one training Job is placed by
the stock scheduler and then by Heddle; then two NVL72 racks. On a terminal the first cluster stays for looking around.
"""

import argparse
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import scenario
from bed import ControlPlane, Heddle, Nodes, h100, nvl72

HELD_SERVERS = 6


class Screen:
    """Progress and tables. Colour and a running clock only on a terminal."""

    def __init__(self, out=sys.stdout):
        self.out = out
        self.terminal = out.isatty()

    def say(self, text=""):
        print(text, file=self.out, flush=True)

    def title(self, text):
        self.say(f"\n\033[1m{text}\033[0m" if self.terminal else f"\n{text}")

    @contextmanager
    def step(self, what):
        started = time.monotonic()
        done = threading.Event()

        def tick():
            while not done.wait(0.2):
                print(f"\r  {what} … {time.monotonic() - started:4.1f} s", end="", file=self.out, flush=True)
        ticker = threading.Thread(target=tick, daemon=True)
        if self.terminal:
            ticker.start()
        try:
            yield
        finally:
            done.set()
            if self.terminal:
                ticker.join()
        start_of_line = "\r" if self.terminal else ""
        self.say(f"{start_of_line}  {what:<66}{time.monotonic() - started:6.1f} s")

    def table(self, rows):
        widths = [max(len(str(row[column])) for row in rows) for column in range(len(rows[0]))]
        for number, row in enumerate(rows):
            cells = [str(row[0]).ljust(widths[0])] + [str(cell).rjust(width) for cell, width in zip(row[1:], widths[1:])]
            self.say("  " + "   ".join(cells))
            if number == 0:
                self.say("  " + "   ".join("-" * width for width in widths))


class Bed:
    """One control plane with one cluster's nodes and all of Heddle."""

    def __init__(self, screen, binaries, cluster):
        self.screen, self.binaries, self.cluster = screen, binaries, cluster
        self.plane = ControlPlane(cluster.name)
        self.heddle = Heddle(self.plane, binaries)

    def start(self):
        plane, cluster, step = self.plane, self.cluster, self.screen.step
        with step("etcd, kube-apiserver, kube-controller-manager, kube-scheduler"):
            plane.start()
        with step(f"{len(cluster.nodes)} nodes with {cluster.gpus} GPUs (KWOK)"):
            Nodes(plane).add(cluster)
        with step("helm install charts/heddle"):
            self.heddle.install()
            scenario.make_namespaces(plane)
        with step(f"operator, extender, scheduler and {len(cluster.nodes)} node agents"):
            self.heddle.start(cluster)
        with step("the operator assembles the fabric"):
            scenario.declare_fabric(plane, cluster)
            scenario.wait_fabric(self.heddle, cluster)


def comparison(job, stock, heddle):
    def row(label, value):
        return label, value(stock), value(heddle)

    def crossings(axis):
        return lambda e: e["leafCrossings"].get(axis, 0)
    return [
        (f"{job.name}: {job.total} GPUs, {job.pods} pods x {job.gpus}, {job.parallelism}", "default", "heddle"),
        row("TP groups inside one NVLink domain", lambda e: f"{e['tpGroupsInDomain']}/{e['tpGroups']}"),
        row("leaf crossings of data-parallel rings", crossings("dp")),
        row("leaf crossings of the pipeline", crossings("pp")),
        row("rail-misaligned pairs", lambda e: e["railMisaligned"]),
        row("predicted communication per step, ms", lambda e: f"{e['stepMicros'] / 1000:.0f}"),
        row("time until all pods are bound, s", lambda e: f"{e['seconds']:.1f}"),
    ]


def main_job(screen, bed):
    job, plane, step = scenario.MAIN_JOB, bed.plane, screen.step
    with step("other people's jobs take a part of su-0"):
        held = scenario.hold_gpus(plane, bed.cluster, "su-0", HELD_SERVERS)
    with step(f"{job.name} by the stock scheduler"):
        stock = scenario.place(plane, bed.binaries, scenario.STOCK, job, annotated=False)
        scenario.remove(plane, scenario.STOCK, job.name)
    with step(f"{job.name} by Heddle"):
        placed = scenario.place(plane, bed.binaries, scenario.TEAM, job)
    screen.say(f"\n  {sum(held.values())} of {bed.cluster.gpus} GPUs were taken before, on {len(held)} servers (seed {scenario.SEED}).\n")
    screen.table(comparison(job, stock, placed))
    screen.say()
    for name, result in (("heddle", placed), ("default", stock)):
        screen.say(f"{name}: tp-in-domain {result['tpGroupsInDomain']}/{result['tpGroups']} "
                   f"leaf-crossings {result['leafCrossings'].get('dp', 0)}")
    return placed


def more_jobs(screen, bed):
    """NVLink domains over nodes, a Job smaller than a node, and one that cannot be."""
    plane, step = bed.plane, screen.step
    rows = [("Job", "GPUs", "pods", "TP in a domain", "ms per step", "bound in")]
    for job in (scenario.RACK_JOB, scenario.SMALL_JOB):
        with step(f"{job.name} ({job.parallelism}) by Heddle"):
            result = scenario.place(plane, bed.binaries, scenario.TEAM, job)
        rows.append((f"{job.name}: {job.parallelism}", job.total, job.pods,
                     f"{result['tpGroupsInDomain']}/{result['tpGroups']}", f"{result['stepMicros'] / 1000:.0f}",
                     f"{result['seconds']:.1f} s"))
    job = scenario.IMPOSSIBLE_JOB
    with step(f"{job.name} ({job.parallelism}), which cannot fit"):
        scenario.submit(plane, scenario.TEAM, job)
        gang = bed.heddle.wait_for(lambda: refused(plane, job), f"the reason why {job.name} waits")
    rows.append((f"{job.name}: {job.parallelism}", job.total, job.pods, "-", "-", "waits"))
    screen.say()
    screen.table(rows)
    screen.say(f"\n  {job.name} waits, and says why ({gang['status']['reason']}):\n    {gang['status']['message']}")


def refused(plane, job):
    gang = scenario.gang_of(plane, scenario.TEAM, job.name)
    return gang if gang and (gang.get("status") or {}).get("reason") else None


def look_around(screen, bed):
    screen.title("Look around")
    kubeconfig = bed.plane.kubeconfig
    screen.say(f"""  export KUBECONFIG="{kubeconfig}" PATH="{bed.plane.binaries}:{bed.binaries}:$PATH"
  kubectl get nt,fabrics                       # what the agents saw, and the fabric it makes
  kubectl -n team get gangs                    # what was planned, and why something waits
  kubectl -n team get pods -o wide             # where the ranks are
  kubectl heddle explain job/{scenario.MAIN_JOB.name} -n team
  kubectl heddle topology {bed.cluster.nodes[0].name}""")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", default="build/release/bin", help="the folder with Heddle's binaries")
    parser.add_argument("--no-wait", action="store_true", help="end at once, also on a terminal")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    binaries = Path(arguments.bin).resolve()
    if not (binaries / "heddle-extender").exists():
        print(f"demo: {binaries} has no heddle-extender; build it with `make release`", file=sys.stderr)
        return 2
    screen = Screen()
    screen.title("32 servers of 8 H100: 8 rails, 2 scalable units of 16, 400 Gb/s per NIC")
    first = Bed(screen, binaries, h100())
    try:
        first.start()
        main_job(screen, first)
        screen.title("2 NVL72 racks: 18 trays of 4 GPUs, one NVLink domain a rack")
        second = Bed(screen, binaries, nvl72())
        try:
            second.start()
            more_jobs(screen, second)
        finally:
            second.plane.stop()
        if screen.terminal and not arguments.no_wait:
            look_around(screen, first)
            screen.say("\n  Everything stays up until Ctrl-C.")
            threading.Event().wait()
    except KeyboardInterrupt:
        screen.say("\n  stopping")
    finally:
        first.plane.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
