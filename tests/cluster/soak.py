#!/usr/bin/python3
"""Minutes of a busy cluster in which things go wrong: tests/cluster/soak.py [--minutes N] [--seed N] [--bin DIR]

Jobs of all sizes and priorities come and go, pods are deleted, nodes are cordoned, every daemon gets its kill -9 (both
extenders and both kube-schedulers, so the leader changes), the API server restarts, also with etcd compacted so that
every watch has to begin anew: all by a seed. All the while two watches and the audit log are held to promises of the
simulation (soak_promises.py): what a pod was told stood in its Gang before, under that epoch; no two gangs were let go
with one GPU, no GPU is used twice, by plan or by count; nobody asks the API server without a reason; and no Job has failed. At the end every
Job is bound whole where its Gang's plan says, or says why not, nothing is written while nothing happens, whoever waited
runs once others have ended, no Gang outlives its Job, a Job over every GPU of the cluster is bound whole, so nothing was
leaked, and the daemons have not grown.
"""

import argparse
import collections
import random
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

import scenario  # noqa: E402: the path above comes first
from bed import ApiError, ControlPlane, Heddle, Nodes, h100, path  # noqa: E402
from bed.testing import bound_to, indexed_job  # noqa: E402
from scenario import TEAM, TrainingJob  # noqa: E402
from soak_promises import GRACE, AuditTail, Promises, follow, gpus_of, hot, room_of, twice  # noqa: E402

SHAPES = ((1, 8, "tp=8"), (2, 8, "tp=8,dp=2"), (4, 8, "tp=8,pp=2,dp=2"), (8, 4, "tp=8,dp=4"), (8, 8, "tp=8,dp=8"),
          (16, 8, "tp=8,pp=4,dp=4"), (4, 2, "tp=2,dp=4"), (2, 1, "tp=1,dp=2"))
GROWTH_BYTES = 64 << 20
PRIORITIES = {"soak-low": 100, "soak-high": 1000}
EXTENDER = "system:serviceaccount:heddle-system:heddle-extender"
QUIET_SECONDS = 15
HOSTS = ("host-a", "host-b")  # of a kube-scheduler with an extender beside it, each
# Requests a minute of an account without a reason, and more for each pod, Job or Node that was written: the two extenders
# share one account and ask on their own twice in four seconds for a Lease; after a kill they read everything anew.
MOST_REQUESTS = {"heddle-extender": 400, "heddle-operator": 400}
REQUESTS_PER_CHANGE = 1


class Soak:
    def __init__(self, plane, binaries, seed):
        self.plane, self.chance, self.cluster = plane, random.Random(seed), h100()
        self.heddle = Heddle(plane, binaries)
        self.jobs, self.cordoned, self.count, self.kills, self.restarts, self.revived = {}, set(), 0, 0, 0, 0
        self.promises, self.watches = Promises(), []
        self.tail = AuditTail(plane.audit_log, self.promises)

    def start(self):
        heddle = self.heddle
        Nodes(self.plane).add(self.cluster)
        heddle.install()
        scenario.make_namespaces(self.plane)
        for name, value in PRIORITIES.items():
            self.plane.rest.create("/apis/scheduling.k8s.io/v1/priorityclasses", {
                "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
                "value": value})
        self.promises.room = room_of(self.plane.rest.list(path("nodes")))
        self.watches = follow(self.plane, self.promises, TEAM)
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

    # What happens

    def submit(self):
        pods, gpus, parallelism = self.chance.choice(SHAPES)
        name = f"job-{self.count}"
        self.count += 1
        priority = self.chance.choices([None, *PRIORITIES], [6, 2, 1])[0]
        body = indexed_job(name, pods, gpus, annotations={"heddle.dev/parallelism": parallelism}, backoff_limit=100,
                           **({"priorityClassName": priority} if priority else {}))
        self.plane.rest.create(path("jobs", TEAM), body)
        self.jobs[name] = TrainingJob(name, pods, gpus, parallelism)

    def end(self):
        self.end_job(self.chance.choice(sorted(self.jobs)))

    def end_job(self, name):
        del self.jobs[name]
        self.plane.rest.delete(path("jobs", TEAM, name), propagationPolicy="Background")

    def delete_a_pod(self):
        pods = sorted(pod["metadata"]["name"] for pod in self.plane.pods(TEAM))
        if pods:
            try:
                self.plane.rest.delete(path("pods", TEAM, self.chance.choice(pods)), gracePeriodSeconds=0)
            except ApiError as problem:
                if problem.status != 404:
                    raise

    def cordon(self):
        node = self.chance.choice(self.cluster.nodes).name
        self.plane.rest.patch(path("nodes", name=node), {"spec": {"unschedulable": node not in self.cordoned}})
        self.cordoned ^= {node}

    def kill(self):
        agent = f"agent:{self.chance.choice(self.cluster.nodes).name}"
        host = self.chance.choice(HOSTS)
        pair = [f"extender@{host}", f"scheduler@{host}"]
        killed = self.chance.choice([pair[:1], pair[:1], pair[1:], pair, ["operator"], [agent]])
        for name in killed:
            self.heddle.kill9(name)
            self.kills += 1
        time.sleep(self.chance.uniform(0, 1))
        for name in self.chance.sample(killed, len(killed)):
            self.heddle.start_daemon(name)

    def revive(self):
        """As a kubelet: a kube-scheduler that could not renew its Lease in time ends, and is started again."""
        for name in [f"scheduler@{host}" for host in HOSTS]:
            if not self.heddle.daemon(name).running():
                self.heddle.start_daemon(name)
                self.revived += 1

    def restart_api_server(self):
        if self.chance.random() < 0.5:
            self.plane.forget_history()
        else:
            self.plane.kill9("apiserver")
            self.plane.start_component("apiserver")
        self.restarts += 1

    def step(self):
        actions = [(self.submit, 6 if len(self.jobs) < 12 else 1), (self.delete_a_pod, 2), (self.cordon, 1),
                   (self.kill, 1), (self.restart_api_server, 0.15)]
        if self.jobs:
            actions.append((self.end, 2 if len(self.jobs) < 12 else 6))
        self.chance.choices([a for a, _ in actions], [w for _, w in actions])[0]()
        time.sleep(self.chance.uniform(0, 0.5))

    # What must hold

    def check(self):
        self.revive()
        pods = [pod for pod in self.plane.pods(TEAM)
                if bound_to(pod) and pod["status"].get("phase") not in ("Succeeded", "Failed")]
        for pod in pods:
            self.check_told(pod)
        for job in self.plane.rest.list(path("jobs", TEAM)):
            failed = scenario.condition(job, "Failed")
            assert not failed, f"{job['metadata']['name']} has failed: {failed}"
        broken = twice(pods, self.promises.room) + self.promises.answer(time.monotonic())
        broken += hot(self.tail.read(), MOST_REQUESTS, REQUESTS_PER_CHANGE)
        assert not broken, "\n".join(broken)
        for watch in self.watches:
            assert not watch.failed, f"nobody watches any more: {watch.failed!r}"
        died = self.heddle.died() or self.plane.died()
        assert not died, died
        return sum(gpus_of(pod) for pod in pods)

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
        """Every Job is bound whole, or its Gang says why not."""
        for node in sorted(self.cordoned):
            self.plane.rest.patch(path("nodes", name=node), {"spec": {"unschedulable": False}})
        self.cordoned.clear()

        def settled():
            self.revive()
            for job in self.jobs.values():
                bound = sum(1 for pod in scenario.pods_of(self.plane, TEAM, job.name) if bound_to(pod))
                gang = scenario.gang_of(self.plane, TEAM, job.name)
                waits = gang and (gang.get("status") or {}).get("reason")
                if bound not in (0, job.pods) or (bound == 0 and not waits):
                    raise AssertionError(f"{job.name}: {bound} of {job.pods} bound, {waits or 'and nobody says why'}")
            wrong = self.promises.misplaced()
            if wrong:
                raise AssertionError("; ".join(wrong))
            return True
        # A rank whose pod was deleted by hand comes back after the Job controller's back-off, up to minutes.
        self.heddle.wait_for(settled, "every Job to be bound or to say why not", 420)

    def waiting(self):
        """Names of Jobs that are not bound whole."""
        bound = collections.Counter(pod["metadata"]["labels"]["batch.kubernetes.io/job-name"]
                                    for pod in self.plane.pods(TEAM) if bound_to(pod))
        return {name for name, job in self.jobs.items() if bound[name] != job.pods}

    def let_the_rest_run(self):
        """Every gang runs in the end, as each of SHAPES has a place in an empty cluster: whoever runs ends, and somebody of
        those who waited takes the room, until nobody waits."""
        while waiting := self.waiting():
            for name in sorted(self.jobs.keys() - waiting):
                self.end_job(name)

            def fewer(before=frozenset(waiting)):
                self.revive()
                if not self.waiting() < before:
                    raise AssertionError(f"all of these still wait: {', '.join(sorted(before))}")
                return True
            self.heddle.wait_for(fewer, "somebody who waited to take the room of those who ended", 240)
            self.check()

    def end_all(self):
        while self.jobs:
            self.end()
        self.heddle.wait_for(lambda: not self.plane.pods(TEAM), "all pods to be gone", 60)
        self.heddle.wait_for(lambda: not self.plane.rest.list(path("gangs", TEAM)), "every Gang to go with its Job", 120)
        whole = TrainingJob("whole", len(self.cluster.nodes), 8, "tp=8,pp=4,dp=8")
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
                f"{sum(watch.gaps for watch in self.watches)} gaps; {'; '.join(busy)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--bin", default=str(HERE.parents[1] / "build" / "dev" / "bin"))
    arguments = parser.parse_args()
    print(f"soak: {arguments.minutes} minutes, seed {arguments.seed}", flush=True)
    with ControlPlane("soak") as plane:
        soak = Soak(plane, Path(arguments.bin).resolve(), arguments.seed)
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
                          f"{len(soak.jobs)} Jobs, {gpus} GPUs", flush=True)
                    small = small or soak.heddle.resident_bytes()
            soak.settle()
            soak.check_quiet()
            soak.let_the_rest_run()
            soak.end_all()
            soak.check()
        except BaseException:
            logs = plane.copy_logs(HERE.parents[1] / "build" / "cluster-logs" / "soak")
            print(f"soak: FAILED with seed {arguments.seed}; logs in {logs}", file=sys.stderr)
            raise
        for name in [f"extender@{host}" for host in HOSTS] + ["operator"]:
            now, before = soak.heddle.resident_bytes()[name], (small or {}).get(name, 0)
            print(f"  {name}: {before / 1e6:.0f} MB after half a minute, {now / 1e6:.0f} MB at the end")
            assert not small or now - before < GROWTH_BYTES, f"{name} has grown"
    print(f"  {soak.counted()}")
    print(f"soak: {steps} steps, {soak.count} Jobs, {soak.kills} kills, {soak.revived} schedulers that gave up, "
          f"{soak.restarts} restarts of the API server; a Job over every GPU was bound at the end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
