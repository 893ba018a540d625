#!/usr/bin/python3
"""What `kubectl get nt,gangs -A -o json` prints of a large cluster: bench/cluster_file.py --nodes N [--gangs N] > FILE.

Every node is the recorded HGX H100 (tests/golden/nodeagent/hgx-h100.json) under another name, 32 to a scalable unit;
19,200 of them are 300 MB. Each gang holds 16 nodes, every second 16 of them, from the front. Always the same bytes."""

import argparse
import copy
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NODES_PER_UNIT = 32
NODES_PER_GANG = 16


def node_topology(recorded, number):
    name = f"gpu-{number:06d}.cluster.example.com"
    unit = number // NODES_PER_UNIT
    node = copy.deepcopy(recorded)
    node["metadata"] = {
        "creationTimestamp": "2026-11-01T08:00:00Z",
        "generation": 1,
        "labels": {"app.kubernetes.io/managed-by": "heddle-operator"},
        "name": name,
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": f"{number:08x}-0000-4000-8000-000000000000"}],
        "resourceVersion": str(1000000 + number),
        "uid": f"{number:08x}-0000-4000-8000-000000000001",
    }
    status = node["status"]
    status["nvlinkDomain"]["id"] = name
    for gpu in status["gpus"]:
        gpu["uuid"] = f"GPU-{number:08x}-0000-4000-8000-{gpu['index']:012x}"
    for nic in status["nics"]:
        nic["guid"] = f"0x506b4b{number:08x}{len(nic['name']):02x}"
        for port in nic["ports"]:
            port["leaf"] = f"su{unit}-{port['leaf']}"
            port["leafPort"] = str(1 + number % NODES_PER_UNIT)
    return node


def gang(number):
    first = 2 * NODES_PER_GANG * number
    names = [f"gpu-{first + i:06d}.cluster.example.com" for i in range(NODES_PER_GANG)]
    uid = f"{number:08x}-0000-4000-8000-000000000002"
    return {
        "apiVersion": "heddle.dev/v1alpha1",
        "kind": "Gang",
        "metadata": {"name": f"train-{number}", "namespace": "train", "uid": uid},
        "spec": {
            "attempt": 0,
            "gpuResource": "nvidia.com/gpu",
            "gpus": 8 * NODES_PER_GANG,
            "gpusPerPod": 8,
            "model": {"params": 70_000_000_000, "layers": 80, "hidden": 8192, "seq": 8192, "microbatch": 1},
            "owner": {"apiVersion": "batch/v1", "kind": "Job", "name": f"train-{number}", "uid": uid},
            "parallelism": {"tp": 8, "cp": 1, "dp": 8, "pp": 2, "ep": 1, "order": "tp-cp-dp-pp"},
            "pods": NODES_PER_GANG,
        },
        "status": {"placement": {"epoch": 1, "nodeNames": names, "nodes": list(range(NODES_PER_GANG))}},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--gangs", type=int, default=0)
    options = parser.parse_args()
    if 2 * NODES_PER_GANG * options.gangs > options.nodes:
        sys.exit(f"{options.gangs} gangs need {2 * NODES_PER_GANG * options.gangs} nodes")
    recorded = json.loads((ROOT / "tests/golden/nodeagent/hgx-h100.json").read_text())
    # As kubectl lays it out, one item at a time: the list is larger than it is worth holding.
    sys.stdout.write('{\n    "apiVersion": "v1",\n    "items": [\n')
    count = options.nodes + options.gangs
    for number in range(count):
        item = node_topology(recorded, number) if number < options.nodes else gang(number - options.nodes)
        text = json.dumps(item, indent=4, sort_keys=True, ensure_ascii=False)
        sys.stdout.write("        " + text.replace("\n", "\n        ") + (",\n" if number + 1 < count else "\n"))
    sys.stdout.write('    ],\n    "kind": "List",\n    "metadata": {\n        "resourceVersion": ""\n    }\n}\n')


if __name__ == "__main__":
    main()
