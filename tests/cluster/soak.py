#!/usr/bin/python3
"""Minutes of a busy cluster in which things go wrong: tests/cluster/soak.py [--minutes N] [--seed N] [--cluster NAME] [--bin DIR]

Jobs and StatefulSets of all sizes and priorities come and go, and single pods with GPUs; pods are deleted, Jobs suspended,
nodes cordoned or lost for a while, GPUs break and heal (soak_trouble.py), every daemon gets its kill -9 (both extenders and
both kube-schedulers, so the leader changes), the API server restarts, also with etcd compacted so that every watch has to
begin anew: all by a seed. Each third one is of two racks, where gangs ask for ComputeDomains. All the while watches and
the audit log are held to promises of the simulation: what a pod was told stood in its Gang before, under that epoch, and its
ComputeDomain was made; past its gates nothing of a pod changes but its node, of a Gang nothing in spec, and a plan leaves
alone who runs; no two gangs were let go with one GPU, no GPU is used twice, by plan or by count; nobody asks the API server
without a reason (soak_promises.py); nobody goes past who is ahead in the queue (soak_queue.py); kube-scheduler would take
every answer (soak_verbs.py); and no Job has failed. At the end every gang is bound whole where its plan says, or says why
not, nothing is written while nothing happens, whoever waited runs once others have ended, no Gang outlives its owner, a Job
over every GPU of the cluster is bound whole, so nothing was leaked, and the daemons have not grown.
"""

import argparse
import collections
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

import scenario  # noqa: E402: the path above comes first
from bed import ControlPlane, Heddle, Nodes, h100, nvl72, path  # noqa: E402
from bed.testing import bound_to, indexed_job  # noqa: E402
from scenario import TEAM, TrainingJob  # noqa: E402
from soak_promises import GRACE, AuditTail, Promises, follow, gpus_of, hot, room_of, twice  # noqa: E402
from soak_queue import QueueRule  # noqa: E402
from soak_trouble import Trouble, unless_gone  # noqa: E402
from soak_verbs import Verbs  # noqa: E402
from test_compute_domain import GROUP, ComputeDomainTest, PlayedDriver  # noqa: E402

# (pods, GPUs of each, parallelism); the last one is over all GPUs of the cluster.
SHAPES = {
    "h100": ((1, 8, "tp=8"), (2, 8, "tp=8,dp=2"), (4, 8, "tp=8,pp=2,dp=2"), (8, 4, "tp=8,dp=4"), (8, 8, "tp=8,dp=8"),
             (16, 8, "tp=8,pp=4,dp=4"), (4, 2, "tp=2,dp=4"), (2, 1, "tp=1,dp=2"), (32, 8, "tp=8,pp=4,dp=8")),
    "nvl72": ((1, 4, "tp=4"), (2, 4, "tp=4,dp=2"), (4, 4, "tp=8,dp=2"), (8, 4, "tp=8,dp=4"), (12, 4, "tp=4,dp=12"),
              (16, 4, "tp=16,dp=4"), (4, 2, "tp=2,dp=4"), (2, 1, "tp=1,dp=2"), (32, 4, "tp=16,dp=8")),
}
CLUSTERS = {"h100": h100, "nvl72": lambda: nvl72(racks=2, trays=16)}
DOMAINS = f"/apis/{GROUP}/v1beta1/computedomains"
STATEFUL = f"/apis/apps/v1/namespaces/{TEAM}/statefulsets"
MOST_SETS, LARGEST_SET = 2, 4
NAME = "example.com/work"  # the label that pods of Jobs and StatefulSets share: the name of theirs
GROWTH_BYTES = 64 << 20
PRIORITIES = {"soak-low": 100, "soak-high": 1000}
EXTENDER = "system:serviceaccount:heddle-system:heddle-extender"
QUIET_SECONDS = 15
HOSTS = ("host-a", "host-b")  # of a kube-scheduler with an extender beside it, each
# Requests a minute of an account without a reason, and more for each pod, Job or Node that was written: the two extenders
# share one account and ask on their own twice in four seconds for a Lease; after a kill they read everything anew.
MOST_REQUESTS = {"heddle-extender": 400, "heddle-operator": 400}
REQUESTS_PER_CHANGE = 1
KNOWN_FOR = 60.0  # seconds after which both extenders know that a bound pod is of a gang


@dataclass(frozen=True)
class Work:
    """What somebody has submitted."""
    name: str
    pods: int
    where: str  # the collection of its kind


class Soak:
    def __init__(self, plane, binaries, seed, cluster):
        self.plane, self.chance, self.cluster = plane, random.Random(seed), CLUSTERS[cluster]()
        self.shapes = SHAPES[cluster]
        self.driver = PlayedDriver(plane) if cluster == "nvl72" else None
        self.heddle, self.nodes = Heddle(plane, binaries), Nodes(plane)
        self.jobs, self.cordoned, self.count, self.kills, self.restarts, self.revived = {}, set(), 0, 0, 0, 0
        self.sets, self.cordons, self.deleted, self.leader, self.bound_since = 0, 0, 0, "", {}
        self.promises, self.queue, self.watches = Promises(), QueueRule(), []
        self.tail = AuditTail(plane.audit_log, self.promises)
        self.trouble = Trouble(plane, self.heddle, self.nodes, self.cluster, self.chance)
        self.verbs = Verbs(self.heddle, HOSTS, [node.name for node in self.cluster.nodes])

    def start(self):
        heddle = self.heddle
        self.nodes.add(self.cluster)
        if self.driver:
            self.driver.install([node.name for node in self.cluster.nodes])
        heddle.install(computeDomains={"enabled": self.driver is not None})
        scenario.make_namespaces(self.plane)
        for name, value in PRIORITIES.items():
            self.plane.rest.create("/apis/scheduling.k8s.io/v1/priorityclasses", {
                "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
                "value": value})
        self.promises.room = room_of(self.plane.rest.list(path("nodes")))
        self.watch()
        heddle.write_machines(self.cluster)
        heddle.start_operator()
        heddle.start_agents()
        for host in HOSTS:
            heddle.start_extender(host=host)
            heddle.start_scheduler(host=host)
        heddle.wait_published(heddle.machines)
        scenario.declare_fabric(self.plane, self.cluster)
        scenario.wait_fabric(heddle, self.cluster)
        heddle.wait_for(heddle.lease_holder, "one of the schedulers to lead", 60)
        if self.driver:
            self.start_driver()

    def watch(self):
        queue = self.queue

        def tell_gang(kind, gang, exact, _now):
            queue.saw_gang(kind, gang, exact, time.time())

        def tell_pod(kind, pod, exact, _now):
            queue.saw_pod(kind, pod, exact, time.time())
        self.watches = [follow(self.plane, path("pods"), self.promises.saw_pod, tell_pod),
                        follow(self.plane, path("gangs"), self.promises.saw_gang, tell_gang)]
        if self.driver:
            self.watches.append(follow(self.plane, DOMAINS, self.promises.saw_domain))

    def start_driver(self):
        """Of ComputeDomains, and waits until pods get claims of theirs."""
        self.driver.start()
        probe = ComputeDomainTest.pod("probe", {}, [{"apiVersion": "batch/v1", "kind": "Job", "name": "probe", "uid": "1" * 8,
                                                     "controller": True}])
        self.plane.wait_for(lambda: ComputeDomainTest.claims_of(self.plane.rest.create(path("pods", TEAM) + "?dryRun=All", probe)),
                            "the policy heddle-compute-domain to be in force")

    # What happens

    def submit(self):
        pods, gpus, parallelism = self.chance.choice(self.shapes[:-1])
        priority = self.any_priority(6, 2, 1)
        domain = self.driver and gpus == 4 and self.chance.random() < 0.4  # a node has one channel
        serving = sum(1 for job in self.jobs.values() if job.where == STATEFUL)
        as_set = pods <= LARGEST_SET and serving < MOST_SETS and self.chance.random() < 0.5
        name = f"{'serve' if as_set else 'job'}-{self.count}"
        self.count += 1
        annotations = {"heddle.dev/parallelism": parallelism} | ({"heddle.dev/compute-domain": "true"} if domain else {})
        body = indexed_job(name, pods, gpus, annotations=annotations, backoff_limit=100,
                           **({"priorityClassName": priority} if priority else {}))
        template = body["spec"]["template"]
        template["metadata"]["labels"] = {NAME: name}
        if as_set:
            template["spec"].pop("restartPolicy")
            body = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name}, "spec": {
                "replicas": pods, "serviceName": name, "podManagementPolicy": "Parallel",
                "selector": {"matchLabels": {NAME: name}}, "template": template}}
            self.sets += 1
        self.jobs[name] = Work(name, pods, STATEFUL if as_set else path("jobs", TEAM))
        self.plane.rest.create(self.jobs[name].where, body)

    def any_priority(self, *weights):
        return self.chance.choices([None, *PRIORITIES], weights)[0]

    def end(self):
        self.end_job(self.chance.choice(sorted(self.jobs)))

    def end_job(self, name):
        self.trouble.forget(name)
        self.plane.rest.delete(f"{self.jobs.pop(name).where}/{name}", propagationPolicy="Background")

    def delete_a_pod(self):
        pods = sorted(pod["metadata"]["name"] for pod in self.plane.pods(TEAM))
        if pods:
            unless_gone(self.plane.rest.delete, path("pods", TEAM, self.chance.choice(pods)), gracePeriodSeconds=0)
            self.deleted += 1

    def suspend(self):
        self.trouble.suspend({name for name, job in self.jobs.items() if job.where != STATEFUL})

    def cordon(self):
        node = self.chance.choice([node.name for node in self.cluster.nodes if node.name not in self.trouble.lost])
        self.plane.rest.patch(path("nodes", name=node), {"spec": {"unschedulable": node not in self.cordoned}})
        self.cordons += node not in self.cordoned
        self.cordoned ^= {node}

    def kill(self):
        agent = f"agent:{self.chance.choice(self.cluster.nodes).name}"
        host = self.chance.choice(HOSTS)
        pair = [f"extender@{host}", f"scheduler@{host}"]
        killed = self.chance.choice([pair[:1], pair[:1], pair[1:], pair, ["operator"], [agent]])
        self.queue.was_disturbed(time.time())
        for name in killed:
            self.heddle.kill9(name)
            self.kills += 1
        time.sleep(self.chance.uniform(0, 1))
        for name in self.chance.sample(killed, len(killed)):
            self.heddle.start_daemon(name)
        self.queue.was_disturbed(time.time())

    def revive(self):
        """As a kubelet: a kube-scheduler that could not renew its Lease in time ends, and is started again."""
        for name in [f"scheduler@{host}" for host in HOSTS]:
            if not self.heddle.daemon(name).running():
                self.heddle.start_daemon(name)
                self.revived += 1

    def restart_api_server(self):
        started = time.monotonic()
        self.queue.was_disturbed(time.time())
        if self.chance.random() < 0.5:
            self.plane.forget_history()
        else:
            self.plane.kill9("apiserver")
            self.plane.start_component("apiserver")
        self.restarts += 1
        self.promises.excuse(time.monotonic() - started)
        self.queue.was_disturbed(time.time())

    def step(self):
        self.trouble.mend_what_is_due()
        actions = [(self.submit, 6 if len(self.jobs) < 12 else 1), (self.delete_a_pod, 2), (self.cordon, 1),
                   (self.kill, 1), (self.restart_api_server, 0.15), (self.suspend, 0.7), (self.trouble.break_a_gpu, 0.4),
                   (lambda: self.trouble.lose_a_node(self.cordoned), 0.5),
                   (lambda: self.trouble.make_lone_pod(self.any_priority(3, 1, 1)), 1)]
        if self.jobs:
            actions.append((self.end, 2 if len(self.jobs) < 12 else 6))
        self.chance.choices([a for a, _ in actions], [w for _, w in actions])[0]()
        time.sleep(self.chance.uniform(0, 0.5))

    def tend(self):
        """What kubelets do, wherever this soak waits. Returns all pods there are, in one answer, so that it is one moment."""
        self.revive()
        there = self.plane.rest.list(path("pods"))
        self.trouble.finish_overdue(there)
        return there

    # What must hold

    def check(self):
        there = self.tend()
        pods = [pod for pod in there if bound_to(pod) and pod["status"].get("phase") not in ("Succeeded", "Failed")]
        for pod in pods:
            if pod["metadata"]["namespace"] == TEAM:
                self.check_told(pod)
        for job in self.plane.rest.list(path("jobs", TEAM)):
            failed = scenario.condition(job, "Failed")
            assert not failed, f"{job['metadata']['name']} has failed: {failed}"
        broken = twice(pods, self.promises.room) + self.promises.answer(time.monotonic())
        broken += hot(self.tail.read(), MOST_REQUESTS, REQUESTS_PER_CHANGE)
        broken += self.ask_verbs(pods) + self.queue.answer(time.time())
        assert not broken, "\n".join(broken)
        for watch in self.watches:
            assert not watch.failed, f"nobody watches any more: {watch.failed!r}"
        died = self.heddle.died() or self.plane.died()
        assert not died, died
        return sum(gpus_of(pod) for pod in pods)

    def ask_verbs(self, pods):
        """Of the verbs, and what the one that leads keeps."""
        now, leader = time.monotonic(), self.heddle.lease_holder()
        if leader != self.leader:
            self.leader = leader
            self.queue.was_disturbed(time.time())
        uids = {pod["metadata"]["uid"] for pod in pods if pod["metadata"]["namespace"] == TEAM}
        self.bound_since = {uid: self.bound_since.get(uid, now) for uid in uids}
        known = sorted(uid for uid, since in self.bound_since.items() if now - since > KNOWN_FOR)
        broken, look = self.verbs.look(leader, [self.chance.choice(known)] if known else [], lambda uid: any(
            pod["metadata"]["uid"] == uid for pod in self.plane.rest.list(path("pods"))))
        if look:
            self.queue.saw_kept(look)
        return broken

    def check_told(self, pod):
        """A pod past our gate was told a place, and it is the one it got; that its Gang says so, too, is for the watches."""
        told = pod["metadata"].get("annotations", {}).get("heddle.dev/node")
        assert told == bound_to(pod), f"{pod['metadata']['name']} was told {told} and runs on {bound_to(pod)}"

    def check_quiet(self):
        """Nothing is written where nothing happens."""
        def writes():
            return [event for event in self.plane.audit(user=EXTENDER)
                    if event["verb"] in ("create", "update", "patch", "delete")
                    and event["resource"] not in ("leases", "events")]

        def quiet():
            before = len(writes())
            time.sleep(QUIET_SECONDS)
            new = writes()[before:]
            if new:
                raise AssertionError(f"{len(new)} writes in {QUIET_SECONDS} s, the last: {new[-1]}")
            return True
        self.heddle.wait_for(quiet, "an extender that writes nothing at rest", 120)

    def settle(self):
        """Every gang is bound whole, or says why not."""
        self.trouble.mend_all()
        for node in sorted(self.cordoned):
            self.plane.rest.patch(path("nodes", name=node), {"spec": {"unschedulable": False}})
        self.cordoned.clear()
        self.nodes.wait_ready([node.name for node in self.cluster.nodes])

        def settled():
            self.tend()
            for job in self.jobs.values():
                bound = sum(1 for pod in self.plane.pods(TEAM, f"{NAME}={job.name}") if bound_to(pod))
                gang = scenario.gang_of(self.plane, TEAM, job.name)
                waits = gang and (gang.get("status") or {}).get("reason")
                if bound not in (0, job.pods) or (bound == 0 and not waits):
                    raise AssertionError(f"{job.name}: {bound} of {job.pods} bound, {waits or 'and nobody says why'}")
            wrong = self.promises.misplaced()
            if wrong:
                raise AssertionError("; ".join(wrong))
            return True
        # A rank whose pod was deleted by hand comes back after the Job controller's back-off, up to minutes.
        self.heddle.wait_for(settled, "every gang to be bound or to say why not", 420)

    def waiting(self):
        """Names of those that are not bound whole."""
        bound = collections.Counter(pod["metadata"]["labels"][NAME] for pod in self.plane.pods(TEAM) if bound_to(pod))
        return {name for name, job in self.jobs.items() if bound[name] != job.pods}

    def let_the_rest_run(self):
        """Every gang runs in the end, as each shape has a place in an empty cluster: whoever runs ends, and somebody of
        those who waited takes the room, until nobody waits."""
        while waiting := self.waiting():
            for name in sorted(self.jobs.keys() - waiting):
                self.end_job(name)

            def fewer(before=frozenset(waiting)):
                self.tend()
                if not self.waiting() < before:
                    raise AssertionError(f"all of these still wait: {', '.join(sorted(before))}")
                return True
            self.heddle.wait_for(fewer, "somebody who waited to take the room of those who ended", 240)
            self.check()

    def end_all(self):
        while self.jobs:
            self.end()
        self.heddle.wait_for(lambda: not [pod for pod in self.tend() if pod["metadata"]["namespace"] == TEAM],
                             "all pods to be gone", 90)
        self.heddle.wait_for(lambda: not self.plane.rest.list(path("gangs", TEAM)), "every Gang to go with its owner", 120)
        if self.driver:
            self.heddle.wait_for(lambda: not self.plane.rest.list(DOMAINS), "every ComputeDomain to go with its owner", 120)
        whole = TrainingJob("whole", *self.shapes[-1])
        self.plane.rest.create(path("jobs", TEAM), whole.manifest())
        scenario.wait_bound(self.plane, TEAM, whole.pods, whole.name)
        time.sleep(GRACE)  # whatever is still to be answered

    def counted(self):
        """What was watched, and who asked most."""
        busy = []
        for user in MOST_REQUESTS:
            requests, changes = self.tail.busiest(user)
            busy.append(f"{user} {requests} requests in its busiest minute, with {changes} changes")
        return (f"{len(self.promises.plans)} plans and {self.promises.changes} changes of pods seen, "
                f"{self.promises.moves} ranks moved by a later plan, {self.promises.with_domain} pods with a ComputeDomain, "
                f"{sum(watch.gaps for watch in self.watches)} gaps; {self.verbs.asked} answers to kube-scheduler; "
                f"{self.queue.told()}; {'; '.join(busy)}")

    def happened(self):
        return (f"{self.count} gangs, {self.sets} of them StatefulSets, {self.deleted} pods deleted, {self.cordons} cordons, "
                f"{self.trouble.told()}, {self.kills} kills, {self.revived} schedulers that gave up, {self.restarts} restarts of the "
                f"API server")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--bin", default=str(HERE.parents[1] / "build" / "dev" / "bin"))
    parser.add_argument("--cluster", choices=sorted(CLUSTERS), help="each third seed is of racks (nvl72)")
    arguments = parser.parse_args()
    cluster = arguments.cluster or ("nvl72" if arguments.seed % 3 == 0 else "h100")
    print(f"soak: {arguments.minutes} minutes, seed {arguments.seed}, {cluster}", flush=True)
    with ControlPlane("soak") as plane:
        soak = Soak(plane, Path(arguments.bin).resolve(), arguments.seed, cluster)
        try:
            soak.start()
            started, steps, told, small = time.monotonic(), 0, time.monotonic(), None
            while time.monotonic() - started < 60 * arguments.minutes:
                soak.step()
                steps += 1
                gpus = soak.check()
                if time.monotonic() - told > 30:
                    told = time.monotonic()
                    print(f"  {told - started:4.0f} s: {steps} steps, {soak.kills} kills, {soak.restarts} restarts, "
                          f"{len(soak.jobs)} gangs, {gpus} GPUs", flush=True)
                    small = small or soak.heddle.resident_bytes()
            soak.settle()
            soak.check_quiet()
            soak.let_the_rest_run()
            soak.end_all()
            soak.check()
        except BaseException:
            logs = plane.copy_logs(HERE.parents[1] / "build" / "cluster-logs" / "soak")
            print(f"soak: FAILED with seed {arguments.seed} ({cluster}) after {soak.happened()}; logs in {logs}", file=sys.stderr)
            raise
        for name in [f"extender@{host}" for host in HOSTS] + ["operator"]:
            now, before = soak.heddle.resident_bytes()[name], (small or {}).get(name, 0)
            print(f"  {name}: {before / 1e6:.0f} MB after half a minute, {now / 1e6:.0f} MB at the end")
            assert not small or now - before < GROWTH_BYTES, f"{name} has grown"
    print(f"  {soak.counted()}")
    print(f"soak: {steps} steps, {soak.happened()}; a Job over every GPU was bound at the end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
