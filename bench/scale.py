#!/usr/bin/python3
"""Heddle on thousands of nodes: bench/scale.py WHAT... [--nodes N] ...

Several run one after the other on the same cluster; `memory` and `crowd` start the extender and come first or alone.

  throughput   pods a second through kube-scheduler with the extender and without: of gangs, other GPU pods, the rest
  gang         one gang of 5,000 pods from its Job to its last bound pod, and the requests it takes
  repair       from a lost node to the new plan of the gang that ran on it
  memory       the extender's memory with a full cluster, and its restart
  crowd        a small gang beside 100,000 pods of gangs that are too large; with --waiting beside gangs that lack room
  flap         a NodeTopology that changes every second: CPU, writes, and repairs of others beside it
  mix          jobs come and go by published marginals until the cluster is fragmented

etcd, kube-apiserver, controller-manager, kube-scheduler and KWOK are real, and run on this machine with all else."""

import argparse
import sys
from pathlib import Path

sys.dont_write_bytecode = True

from scale import fleet, crowd, flap, gang, memory, mix, repair, throughput  # noqa: E402, I001: no bytecode; fleet makes `bed` found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+", choices=["throughput", "gang", "repair", "memory", "crowd", "flap", "mix"])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, help="throughput: 1000; gang: as many as nodes; memory: twice as many; crowd: 100000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--gangs", type=int, default=60, help="of repair and flap")
    parser.add_argument("--failures", type=int, default=100, help="of repair; flap: a tenth of it")
    parser.add_argument("--waiting", type=int, default=0,
                        help="of crowd: so many gangs of 16 nodes that would fit the cluster and lack room, such as 200, in place "
                             "of those that are too large for it; of repair: all of it again in a full cluster beside so many of them")
    parser.add_argument("--minutes", type=float, default=10, help="of mix, once the cluster is fragmented, which takes 10 to 30 more")
    parser.add_argument("--load", type=float, default=0.8, help="of mix: GPUs asked for, as a share of all")
    parser.add_argument("--faster", type=float, default=10,
                        help="of mix: real seconds in one of the bench; two cores bind 12 to 25 pods a second, so 10 at 1,000 nodes, 2 at "
                             "5,000, 1 at 10,000")
    parser.add_argument("--seed", type=int, default=20261123)
    parser.add_argument("--bin", default=str(Path(__file__).resolve().parents[1] / "build" / "release" / "bin"))
    arguments = parser.parse_args()
    with fleet.Fleet(arguments.nodes, arguments.bin) as cluster:
        for what in arguments.what:
            measure(what, cluster, arguments)
    return 0


def measure(what, cluster, arguments):
    nodes = len(cluster.cluster.nodes)
    if what == "throughput":
        throughput.measure(cluster, arguments.pods or 1000, arguments.rounds)
    elif what == "gang":
        gang.measure(cluster, arguments.pods or nodes // 16 * 16, arguments.rounds)
    elif what == "repair":
        repair.measure(cluster, arguments.gangs, arguments.failures, arguments.waiting, arguments.seed)
    elif what == "memory":
        memory.measure(cluster, arguments.pods or 2 * nodes)
    elif what == "crowd":
        if arguments.waiting:
            crowd.measure_waiting(cluster, arguments.waiting, arguments.rounds)
        else:
            crowd.measure(cluster, arguments.pods or 100_000, arguments.rounds)
    elif what == "flap":
        flap.measure(cluster, min(arguments.gangs, nodes // 32), max(1, arguments.failures // 10))
    else:
        mix.measure(cluster, arguments.minutes, arguments.load, arguments.faster, arguments.seed)


if __name__ == "__main__":
    sys.exit(main())
