"""The main job, as the demo shows it and test_main_job.py asserts it: other people's jobs hold part of the cluster, one
training Job is placed by the stock scheduler and then by Heddle, and both placements are priced by the same command."""

import json
import random
import subprocess
import time
from dataclasses import dataclass, field

from bed import path
from bed.testing import bound_to, indexed_job

OTHERS, STOCK, TEAM = "others", "stock", "team"
SEED = 20261121


@dataclass(frozen=True)
class TrainingJob:
    name: str
    pods: int
    gpus: int                # of one pod
    parallelism: str
    annotations: dict = field(default_factory=dict, hash=False)

    @property
    def total(self):
        return self.pods * self.gpus

    def manifest(self, annotated=True, backoff_limit=0):
        annotations = {"heddle.dev/parallelism": self.parallelism} | self.annotations if annotated else {}
        return indexed_job(self.name, self.pods, self.gpus, annotations=annotations, backoff_limit=backoff_limit)


# 70e9 parameters in bfloat16: what makes the predicted milliseconds those of a real model.
MODEL = {"heddle.dev/model": "params=70e9,layers=80,hidden=8192,seq=8192,microbatch=1"}
MAIN_JOB = TrainingJob("train-70b", 32, 4, "tp=8,pp=2,dp=8", MODEL)
RACK_JOB = TrainingJob("train-moe", 32, 4, "tp=16,dp=8", MODEL)
SMALL_JOB = TrainingJob("finetune", 4, 2, "tp=2,dp=4")
IMPOSSIBLE_JOB = TrainingJob("too-wide", 32, 4, "tp=128")


def make_namespaces(plane):
    plane.create_namespace(OTHERS)
    plane.create_namespace(STOCK)
    plane.create_namespace(TEAM, {"heddle.dev/scope": "enabled"})


def start_heddle(heddle, nodes, cluster):
    """Everything on a running control plane, until the Fabric of the whole cluster is assembled."""
    nodes.add(cluster)
    heddle.install()
    make_namespaces(heddle.plane)
    heddle.start(cluster)
    declare_fabric(heddle.plane, cluster)
    wait_fabric(heddle, cluster)


def hold_gpus(plane, cluster, unit, nodes, seed=SEED):
    """Other people's jobs on some servers of one unit: 2, 4 or 8 GPUs each. Returns GPUs held, by node."""
    chance = random.Random(seed)
    servers = [node for node in cluster.nodes if node.unit == unit]
    held = {node.name: chance.choice([2, 4, 8]) for node in sorted(chance.sample(servers, nodes), key=lambda n: n.name)}
    for name, gpus in held.items():
        job = indexed_job(f"other-{name}", 1, gpus, nodeSelector={"kubernetes.io/hostname": name})
        plane.rest.create(path("jobs", OTHERS), job)
    wait_bound(plane, OTHERS, len(held))
    return held


def submit(plane, namespace, job, annotated=True, backoff_limit=0):
    """By kubectl, as a person would. Returns the monotonic time of the submission."""
    started = time.monotonic()
    plane.kubectl("-n", namespace, "apply", "-f", "-", stdin=json.dumps(job.manifest(annotated, backoff_limit)))
    return started


def pods_of(plane, namespace, name=None):
    return plane.pods(namespace, f"batch.kubernetes.io/job-name={name}" if name else None)


def wait_bound(plane, namespace, count, name=None, timeout=120.0):
    def all_bound():
        pods = pods_of(plane, namespace, name)
        bound = sum(1 for pod in pods if bound_to(pod))
        if len(pods) == count and bound == count:
            return pods
        raise AssertionError(f"{bound} of {count} pods bound, {len(pods)} exist")
    return plane.wait_for(all_bound, f"all {count} pods of {name or namespace} to be bound", timeout)


def remove(plane, namespace, name, timeout=60.0):
    plane.kubectl("-n", namespace, "delete", "job", name, "--wait=false")
    plane.wait_for(lambda: not pods_of(plane, namespace, name), f"the pods of {name} to be gone", timeout)


def explain(plane, binaries, namespace, job, kubeconfig=None):
    """What `kubectl heddle explain` says of a placement, whoever made it."""
    command = [str(binaries / "kubectl-heddle"), "explain", f"job/{job.name}", "-n", namespace, "-o", "json",
               "--parallelism", job.parallelism]
    if "heddle.dev/model" in job.annotations:
        command += ["--model", job.annotations["heddle.dev/model"]]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60,
                          env={"KUBECONFIG": str(kubeconfig or plane.kubeconfig), "HOME": str(plane.folder)})
    if done.returncode != 0:
        raise AssertionError(f"`{' '.join(command)}` ended with {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def place(plane, binaries, namespace, job, annotated=True, timeout=120.0):
    """Submits, waits until every pod is bound, and prices the result. Adds `seconds` to what explain says."""
    started = submit(plane, namespace, job, annotated)
    wait_bound(plane, namespace, job.pods, job.name, timeout)
    seconds = time.monotonic() - started
    return explain(plane, binaries, namespace, job) | {"seconds": seconds}


def gang_of(plane, namespace, name):
    """The Gang whose owner is that Job; None where there is none yet."""
    for gang in plane.rest.list(path("gangs", namespace)):
        if gang["spec"].get("owner", {}).get("name") == name:
            return gang
    return None


def condition(thing, kind):
    return next((c for c in thing.get("status", {}).get("conditions", []) if c["type"] == kind), None)


def declare_fabric(plane, cluster, name="infiniband"):
    """What no agent can see from its host: what stands above the leaves. A person writes this once per fabric."""
    spines = [switch.name for switch in cluster.spines()]
    nodes = {leaf.name: sum(1 for node in cluster.nodes if leaf.name in node.leaves) for leaf in cluster.leaves()}
    switches = [{"name": leaf.name, "uplinks": spines, "uplinkGbps": nodes[leaf.name] * cluster.gbps}
                for leaf in cluster.leaves()] + [{"name": spine} for spine in spines]
    manifest = {"apiVersion": "heddle.dev/v1alpha1", "kind": "Fabric", "metadata": {"name": name},
                "spec": {"shape": "RailOptimised", "rails": cluster.rails, "switches": switches}}
    plane.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(manifest))


def wait_fabric(heddle, cluster, name="infiniband", timeout=60.0):
    """Until the operator has assembled all of it, and labelled the nodes."""
    def assembled():
        counts = (heddle.plane.rest.get(path("fabrics", name=name)).get("status") or {}).get("counts", {})
        seen = (counts.get("nodes", 0), counts.get("leaves", 0), counts.get("spines", 0))
        if seen != (len(cluster.nodes), len(cluster.leaves()), len(cluster.spines())):
            raise AssertionError(f"(nodes, leaves, spines) = {seen}")
        return True
    heddle.wait_for(assembled, f"the Fabric of {len(cluster.nodes)} nodes", timeout)
