"""A job mix that comes and goes until the cluster is fragmented, as long as is asked.

A synthetic mix by published marginals (Acme's cluster Kalos, 19,907 GPU jobs: GPUs a job mean 26.8, median 1, largest
1,024; run time mean 1,260 s, median 124 s); sizes and times are drawn apart from each other, which the real jobs' are
not. Times are divided by --faster. Jobs of one server are pods of no gang, larger ones gangs of whole servers.

How the free GPUs lie depends on who ends and who comes in which order, not on how long each stays. So before the clock
starts, jobs end at random and others come, as fast as they are bound, until 95 % of those that filled the cluster have
gone; then each of those that run is given what a random moment leaves of a run time.
"""

import json
import math
import random
import time
from statistics import NormalDist

from bed import path
from bed.testing import indexed_job

from .fleet import TEAM, Binds, cpu_seconds, percentile

SIZES = {1: 0.5075, 2: 0.03, 4: 0.05, 8: 0.2, 16: 0.05, 32: 0.05, 64: 0.045, 128: 0.03, 256: 0.0235, 512: 0.01,
         1024: 0.004}
MEAN_GPUS = sum(size * share for size, share in SIZES.items())
MEDIAN_SECONDS, SIGMA = 124.0, math.sqrt(2 * math.log(1260 / 124))  # of a log-normal run time with Kalos' mean
LONGEST_SECONDS = 86400.0  # where it is cut, so that the mean is 1,126 s
TURNED_OVER = 0.95  # the share of the jobs of the fill that have gone when the clock starts
AT_A_TIME = 1 / 3  # of the jobs that run end before others come for them
PODS_AHEAD = 200  # come before those ahead of them run, while the cluster is filled
STILL_SECONDS = 20  # in which nobody starts: who waits then has no place until others end
PARTLY_SECONDS = 60  # for which some pods of a gang may be bound and others not


def _parallelism(gpus):
    return f"tp=8,dp={gpus // 8}" if gpus <= 128 else f"tp=8,pp=4,dp={gpus // 32}"


def _mean_seconds():
    """Of a run time that is cut at LONGEST_SECONDS."""
    normal, mu, cut = NormalDist().cdf, math.log(MEDIAN_SECONDS), math.log(LONGEST_SECONDS)
    return (math.exp(mu + SIGMA ** 2 / 2) * normal((cut - mu - SIGMA ** 2) / SIGMA) +
            LONGEST_SECONDS * (1 - normal((cut - mu) / SIGMA)))


class Mix:
    def __init__(self, fleet, load, faster, seed):
        self.fleet, self.chance, self.faster = fleet, random.Random(seed), faster
        self.capacity = 8 * len(fleet.cluster.nodes)
        self.asked = load * self.capacity  # GPUs
        self.rate = self.asked * faster / (MEAN_GPUS * _mean_seconds())  # jobs a second
        self.jobs, self.count, self.waits, self.binds = {}, 0, {}, Binds(fleet.plane, TEAM)
        self.partly = {}  # gangs that are bound in part, and since when

    def run_time(self):
        return min(self.chance.lognormvariate(math.log(MEDIAN_SECONDS), SIGMA), LONGEST_SECONDS) / self.faster

    def submit(self, seconds):
        gpus = self.chance.choices(list(SIZES), SIZES.values())[0]
        pods, each = (1, gpus) if gpus <= 8 else (gpus // 8, 8)
        name = f"job-{self.count:05}"
        self.count += 1
        annotations = {} if pods == 1 else {"heddle.dev/parallelism": _parallelism(gpus)}
        body = indexed_job(name, pods, each, annotations=annotations, backoff_limit=1000)
        self.fleet.plane.rest.create(path("jobs", TEAM), body)
        self.jobs[name] = {"pods": pods, "gpus": gpus, "seconds": seconds, "made": time.monotonic(), "runs": None}
        return self.jobs[name]

    def step(self):
        """Notes who runs, and ends whose time is over."""
        now = time.monotonic()
        bound = {}
        for pod, at in list(self.binds.bound.items()):
            job = pod.rsplit("-", 2)[0]
            number, last = bound.get(job, (0, 0))
            bound[job] = (number + 1, max(last, at))
        for name, job in list(self.jobs.items()):
            number, last = bound.get(name, (0, 0))
            self.note_partly(name, number, job["pods"], now)
            if job["runs"] is None and number >= job["pods"]:
                job["runs"] = last
                self.waits.setdefault(job["gpus"], []).append(last - job["made"])
            if job["runs"] is not None and now - job["runs"] > job["seconds"]:
                self.end(name)

    def end(self, name):
        self.fleet.plane.rest.delete(path("jobs", TEAM, name), propagationPolicy="Background")
        del self.jobs[name]
        self.partly.pop(name, None)
        for pod in [pod for pod in list(self.binds.bound) if pod.startswith(name + "-")]:
            self.binds.bound.pop(pod, None)

    def fill(self, wait=1800):
        """Jobs without an end come, a few ahead of what runs, until they have what is to be in use."""
        limit = time.monotonic() + wait
        waiting, moved = 0, time.monotonic()
        while time.monotonic() < limit:
            self.step()
            asked = sum(job["gpus"] for job in self.jobs.values())
            ahead = sum(job["pods"] for job in self.jobs.values() if job["runs"] is None)
            while asked < 0.95 * self.asked and ahead < PODS_AHEAD:
                job = self.submit(math.inf)
                asked, ahead = asked + job["gpus"], ahead + job["pods"]
            if (left := self.picture()["waiting"]) != waiting:
                waiting, moved = left, time.monotonic()
            if asked >= 0.95 * self.asked and (waiting == 0 or time.monotonic() - moved > STILL_SECONDS):
                return
            time.sleep(0.2)

    def turn_over(self):
        """A part of the jobs ends, whichever, and others come."""
        running = [name for name, job in self.jobs.items() if job["runs"] is not None]
        for name in self.chance.sample(running, round(AT_A_TIME * len(running))):
            self.end(name)
        self.fill()

    def start_the_clock(self):
        """Of a run time that is met at a random moment, as long ones are more often, a random part is left."""
        times = [self.run_time() for _ in range(20_000)]
        met = self.chance.choices(times, weights=times, k=len(self.jobs))
        now = time.monotonic()
        for job, seconds in zip(self.jobs.values(), met, strict=True):
            job["seconds"] = seconds * self.chance.random()
            if job["runs"] is not None:
                job["runs"] = now
        self.waits.clear()

    def note_partly(self, name, bound, pods, now):
        """A gang is bound whole or not at all, but for the moment that its binding takes."""
        if bound in (0, pods):
            self.partly.pop(name, None)
            return
        since = now - self.partly.setdefault(name, now)
        if since <= PARTLY_SECONDS:
            return
        if name not in self.check():
            # The watch is late: with thousands of pods coming and going this program is not the fastest here.
            self.partly.pop(name)
            return
        self._tell(name)
        raise AssertionError(f"{bound} of {pods} pods of {name} are bound, for {since:.0f} s already")

    def _tell(self, name):
        """What there is to see of a gang that is bound in part."""
        gangs = [gang for gang in self.fleet.plane.rest.list(path("gangs", TEAM)) if gang["spec"]["owner"]["name"] == name]
        for gang in gangs:
            gang["status"].pop("placement", None)
            print(json.dumps(gang["status"]), flush=True)
        for pod in self.fleet.plane.pods(TEAM, f"batch.kubernetes.io/job-name={name}"):
            if not pod["spec"].get("nodeName"):
                marks = {key: value for key, value in pod["metadata"]["annotations"].items() if key.startswith("heddle.dev/")}
                print(pod["metadata"]["name"], pod["metadata"]["creationTimestamp"], pod["spec"].get("schedulingGates"), marks,
                      json.dumps(pod["status"].get("conditions")), flush=True)

    def end_whole(self):
        """Nothing new comes, and no gang that is bound in part now stays so: neither by the watch nor by the API server's list."""
        limit = time.monotonic() + PARTLY_SECONDS
        partly = self.partly.keys() | self.check()
        while partly:
            assert time.monotonic() < limit, f"bound in part at the end: {', '.join(sorted(partly))}"
            time.sleep(0.5)
            self.step()
            partly &= self.partly.keys() | self.check()  # those that wait go on starting

    def picture(self):
        running = [job for job in self.jobs.values() if job["runs"] is not None]
        used = sum(job["gpus"] for job in running)
        waiting = [job["gpus"] for job in self.jobs.values() if job["runs"] is None]
        return {"gpus": used / self.capacity, "running": len(running), "waiting": len(waiting),
                "largest waiting": max(waiting, default=0)}

    def check(self):
        """No GPU is told to two pods. Returns the gangs that are bound in part right now; step() says for how long."""
        taken, by_job = {}, {}
        for pod in self.fleet.plane.pods(TEAM):
            meta, node = pod["metadata"], pod["spec"].get("nodeName")
            if meta.get("deletionTimestamp"):
                continue
            by_job.setdefault(meta["labels"]["batch.kubernetes.io/job-name"], []).append(bool(node))
            marks = meta.get("annotations", {})
            for gpu in marks.get("heddle.dev/gpus", "").split(",") if node and "heddle.dev/rank" in marks else []:
                assert (node, gpu) not in taken, f"{meta['name']} and {taken[(node, gpu)]} share GPU {gpu} of {node}"
                taken[(node, gpu)] = meta["name"]
        return {job for job, pods in by_job.items() if job in self.jobs and sum(pods) not in (0, self.jobs[job]["pods"])}


def _on_used_nodes(fleet):
    """Which share of the free GPUs no gang of whole nodes can use."""
    used = {}
    for pod in fleet.plane.pods(TEAM):
        node = pod["spec"].get("nodeName")
        if node and not pod["metadata"].get("deletionTimestamp"):
            gpus = pod["spec"]["containers"][0]["resources"]["limits"].get("nvidia.com/gpu", 0)
            used[node] = used.get(node, 0) + int(gpus)
    nodes = len(fleet.cluster.nodes)
    free = 8 * nodes - sum(used.values())
    return (free - 8 * (nodes - len(used))) / max(1, free)


def _fragment(mix):
    started = time.monotonic()
    mix.fill()
    filled = set(mix.jobs)
    stayed = 1.0
    while True:
        print(f"  {time.monotonic() - started:4.0f} s: {mix.picture()['gpus']:.0%} of the GPUs in use, {mix.count} jobs came, "
              f"{stayed:.0%} of the first run, free GPUs on partly used nodes {_on_used_nodes(mix.fleet):.0%}", flush=True)
        if stayed <= 1 - TURNED_OVER:
            return
        mix.turn_over()
        stayed = len(filled & mix.jobs.keys()) / len(filled)


def measure(fleet, minutes, load, faster, seed):
    fleet.start_extender()
    fleet.start_scheduler(with_extender=True)
    mix = Mix(fleet, load, faster, seed)
    print(f"\n{len(fleet.cluster.nodes)} nodes, {mix.capacity} GPUs; {mix.rate:.1f} jobs/s of {MEAN_GPUS:.1f} GPUs on "
          f"average, times divided by {faster:g}, load {load:.0%}, seed {seed}", flush=True)
    _fragment(mix)
    mix.start_the_clock()
    first, begun, told, next_job = mix.count, time.monotonic(), time.monotonic(), time.monotonic()
    busy = {name: cpu_seconds(process.pid) for name, process in _processes(fleet)}
    used, looked = 0.0, begun  # GPUs times seconds
    while time.monotonic() - begun < 60 * minutes:
        while next_job <= time.monotonic():
            mix.submit(mix.run_time())
            next_job += mix.chance.expovariate(mix.rate)
        mix.step()
        now = time.monotonic()
        used, looked = used + mix.picture()["gpus"] * (now - looked), now
        if time.monotonic() - told > 30:
            told = time.monotonic()
            print(f"  {told - begun:4.0f} s: {json.dumps(mix.picture())}, {len(mix.check())} gangs on their way, free "
                  f"GPUs on partly used nodes {_on_used_nodes(fleet):.0%}, "
                  f"extender {fleet.extender.resident_bytes() / 1e6:.0f} MB", flush=True)
        time.sleep(0.1)
    seconds = time.monotonic() - begun
    print(f"\nGPUs in use {used / (looked - begun):.1%} on average; {mix.count - first} jobs came\n")
    print("| GPUs of a job | jobs that started | wait p50 | p90 | p99 |\n|---|---|---|---|---|")
    for gpus, waits in sorted(mix.waits.items()):
        shown = " | ".join(f"{percentile(waits, share):.1f} s" for share in (0.5, 0.9, 0.99))
        print(f"| {gpus} | {len(waits)} | {shown} |")
    mix.end_whole()
    print("\nof a core: " + ", ".join(f"{name} {(cpu_seconds(process.pid) - busy[name]) / seconds:.0%}"
                                      for name, process in _processes(fleet)), flush=True)
    mix.binds.close()
    fleet.stop_scheduler()


def _processes(fleet):
    plane = [(name, fleet.plane.process(name)) for name in ("apiserver", "etcd", "controller-manager", "kwok")]
    return plane + [("extender", fleet.extender), ("kube-scheduler", fleet.heddle.daemon("scheduler"))]
