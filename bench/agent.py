#!/usr/bin/python3
"""CPU and memory of one agent: bench/agent.py [--seconds S] [--machine SHAPE] [--bin DIR].

Twice on a real API server: on a recorded machine, and on this one with the test driver of an HGX H100 in the agent's
child process, as on a GPU node. The first minute (start and publication) does not count."""

import argparse
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "cluster"), str(ROOT / "tests" / "support")]

import machines  # noqa: E402: the path above comes first
from bed import ControlPlane, Heddle, Nodes, path  # noqa: E402
from bed.process import Process  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")


def processes(pid):
    """The agent and its children."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (task / "children").read_text().split()]
    return found


def cpu_ms(pid):
    """By the scheduler's nanoseconds: ticks of 10 ms are too coarse for what an agent uses in minutes."""
    return sum(int((task / "schedstat").read_text().split()[0])
               for task in Path(f"/proc/{pid}/task").iterdir()) / 1e6


def memory_mb(pid):
    fields = {line.split(":")[0]: line.split()[1] for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]}
    return int(fields["Rss"]) / 1e3, (int(fields["Private_Dirty"]) + int(fields["Private_Clean"])) / 1e3


def measure(name, daemon, seconds):
    before = {pid: cpu_ms(pid) for pid in processes(daemon.pid)}
    started = time.monotonic()
    time.sleep(seconds)
    passed = time.monotonic() - started
    for number, pid in enumerate(processes(daemon.pid)):
        used = cpu_ms(pid) - before.get(pid, 0)
        resident, private = memory_mb(pid)
        print(f"| {name}, {'the child' if number else 'the agent'} | {used / passed * 60:.0f} ms a minute "
              f"| {used / passed / 10:.3f} % | {resident:.1f} MB | {private:.1f} MB |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=180)
    parser.add_argument("--machine", default="dgx-a100", help="a shape of tests/support/machines.py")
    parser.add_argument("--bin", default=str(ROOT / "build" / "release" / "bin"))
    parser.add_argument("--nvml", default=str(ROOT / "build" / "dev" / "nvml" / "libnvidia-ml.so.1"),
                        help="the test driver, which the release preset does not build")
    arguments = parser.parse_args()
    binaries = Path(arguments.bin)
    with ControlPlane("agent", components=("etcd", "apiserver")) as plane:
        heddle = Heddle(plane, binaries)
        # Made here: install() would wait for the default account, which no controller-manager makes.
        plane.rest.create(path("namespaces"), {"metadata": {"name": heddle.namespace}})
        heddle.install(wait=False)
        for name in ("recorded", "live"):
            plane.create_all(path("nodes"), [Nodes.body(name)])
            plane.create_all(path("nodetopologies"), [
                {"apiVersion": "heddle.dev/v1alpha1", "kind": "NodeTopology", "metadata": {"name": name}, "spec": {}}])
        machine = machines.write({"nodes": [{"name": "recorded", "shape": arguments.machine},
                                            {"name": "live", "shape": "hgx-h100"}]}, str(plane.folder / "machines"))
        account = {name: plane.account_kubeconfig("heddle-system", "heddle-nodeagent", name) for name in machine}
        agents = {
            f"recorded {arguments.machine}": Process(
                "recorded", [binaries / "heddle-nodeagent", "--kubeconfig", account["recorded"], "--node", "recorded",
                             "--machine", machine["recorded"]], plane.logs / "recorded.log"),
            "this host with an HGX H100's driver": Process(
                "live", [binaries / "heddle-nodeagent", "--kubeconfig", account["live"], "--node", "live", "--nvml",
                         arguments.nvml], plane.logs / "live.log",
                {"HEDDLE_TEST_NVML": f"{machine['live']}/nvml.yaml"})}
        print("| at rest | CPU | of a core | resident | of it private |\n|---|---|---|---|---|")
        for name, daemon in agents.items():
            daemon.start()
            heddle.wait_published([daemon.name])
            time.sleep(60)
            measure(name, daemon, arguments.seconds)
            daemon.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
