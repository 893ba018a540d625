#!/usr/bin/python3
"""Memory of each daemon at 5,000 nodes on a real control plane: bench/daemons.py [--nodes N] [--bin DIR].

The NodeTopologies are written as one agent published them, with other names; only one agent runs."""

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "cluster"), str(ROOT / "tests" / "support")]

from bed import ControlPlane, Heddle, Nodes, h100  # noqa: E402: the path above comes first
from published import publish  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--bin", default=str(ROOT / "build" / "release" / "bin"))
    arguments = parser.parse_args()
    cluster = h100(units=(arguments.nodes + 15) // 16)
    with ControlPlane("bench") as plane:
        started = time.monotonic()
        Nodes(plane).add(cluster, timeout=300)
        print(f"{len(cluster.nodes)} nodes Ready in {time.monotonic() - started:.0f} s", flush=True)
        heddle = Heddle(plane, arguments.bin)
        heddle.install()
        started = time.monotonic()
        publish(plane, heddle, cluster)
        print(f"{len(cluster.nodes)} NodeTopologies published and assembled in {time.monotonic() - started:.0f} s")
        for name, resident in sorted(heddle.resident_bytes().items()):
            print(f"{name:<16} {resident / 1e6:8.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
