"""kube-scheduler and extender as a pair: what happens to gangs and to other pods when either dies, hangs, lies or comes
twice. Moments are made by what the apiserver refuses for a while or by a proxy that holds one write, never by time."""

import contextlib
import datetime
import http.server
import itertools
import json
import subprocess
import threading
import time
from pathlib import Path

import scenario
from bed import ApiError, Heddle, HoldingProxy, h100, path
from bed.heddle import NAMESPACE
from bed.testing import bound_to, indexed_job, options
from scenario import TEAM
from test_main_job import HeddleTestCase, RefusedReleases

# Eight servers, so that a gang of eight takes all and two of four fit exactly.
SMALL = h100(units=1, nodes_per_unit=8)
QUEUE_GATE = "kueue.x-k8s.io/admission"
INDEX = "int(object.metadata.labels['batch.kubernetes.io/job-completion-index'])"


class RefusedStatus(RefusedReleases):
    """While it stands, the apiserver takes no status of that Gang for which `expression` does not hold."""

    def __init__(self, plane, gang, expression):
        super().__init__(plane, expression)
        self.gang = gang

    NAME = "test-status-refused"

    def policy(self):
        return (f"object.metadata.name != '{self.gang}' || ({self.expression})",
                {"apiGroups": ["heddle.dev"], "apiVersions": ["v1alpha1"], "operations": ["UPDATE"],
                 "resources": ["gangs/status"]})

    def _wait_in_force(self):
        def refused():
            try:
                self.plane.rest.patch(path("gangs", TEAM, self.gang, "status") + "?dryRun=All",
                                      {"status": {"message": "probe"}})
            except ApiError as problem:
                return "the test refuses" in problem.message
            return False
        self.plane.wait_for(refused, "the test's policy to be in force", 30)


class GangCase(HeddleTestCase):
    """Gangs of whole servers, and what must hold of one however it got there."""

    cluster = SMALL
    numbers = itertools.count(1)

    def gang_job(self, pods=8, backoff_limit=0, **pod_spec):
        name = f"gang-{next(self.numbers)}"
        words = {"heddle.dev/parallelism": f"tp=8,dp={pods}"}
        self.submit(indexed_job(name, pods, 8, annotations=words, backoff_limit=backoff_limit, **pod_spec))
        return name

    def bound(self, name):
        return [pod for pod in scenario.pods_of(self.plane, TEAM, name) if bound_to(pod)]

    def wait_bound(self, name, count, timeout=60.0):
        self.heddle.wait_for(lambda: len(self.bound(name)) == count, f"{count} pods of {name} to be bound", timeout)

    def gated(self, name):
        return [pod for pod in scenario.pods_of(self.plane, TEAM, name) if pod["spec"].get("schedulingGates")]

    def assert_whole(self, name, planned=None):
        """All bound where the plan says, each once, and none was made anew or counted as failed."""
        pods = scenario.pods_of(self.plane, TEAM, name)
        placed = self.wait_gang(name, "Running")["status"]["placement"]
        for pod in pods:
            rank = int(pod["metadata"]["annotations"]["heddle.dev/rank"])
            self.assertEqual(bound_to(pod), placed["nodeNames"][placed["nodes"][rank]])
            bindings = self.plane.audit(verb="create", resource="pods/binding", name=pod["metadata"]["name"], code=201)
            self.assertEqual(len(bindings), 1, bindings)
        if planned:  # who leads anew writes the same plan once more, before it lets anybody go by it
            self.assertEqual(*[[plan[column] for column in ("nodeNames", "nodes", "gpus")] for plan in (placed, planned)])
            self.assertIn(placed["epoch"] - planned["epoch"], (0, 1))
        self.assert_no_gpu_twice()
        self.assert_not_failed(name)


class OnePair(GangCase):
    """One kube-scheduler and one extender; each fails in its ways."""

    def in_the_middle(self, *steps):
        """Half of a gang is let go and bound. `steps` are of "-NAME" (kill -9) and "+NAME" (start); the rest of the gang may
        be let go from the first start on."""
        def take(step):
            name = step[1:]
            if step[0] == "-":
                self.heddle.kill9(name)
            else:
                if name == "scheduler":
                    self.heddle.forget_lease()
                self.heddle.start_daemon(name)
        kills = list(itertools.takewhile(lambda step: step[0] == "-", steps))
        with RefusedReleases(self.plane, f"{INDEX} >= 4"):
            name = self.gang_job()
            self.wait_bound(name, 4)
            planned = self.gang(name)["status"]["placement"]
            for step in kills:
                take(step)
        for step in steps[len(kills):]:
            take(step)
        self.wait_bound(name, 8)
        self.assert_whole(name, planned)

    def test_a_gang_half_let_go_outlives_its_scheduler(self):
        self.in_the_middle("-scheduler", "+scheduler")

    def test_a_gang_half_let_go_outlives_both_and_the_scheduler_may_come_first(self):
        self.in_the_middle("-scheduler", "-extender", "+scheduler", "+extender")

    def test_a_gang_half_let_go_outlives_both_and_the_extender_may_come_first(self):
        self.in_the_middle("-extender", "-scheduler", "+extender", "+scheduler")

    def test_pods_that_are_let_go_while_no_scheduler_is_there_are_bound_by_the_next(self):
        # It leads on until the Lease of its scheduler has run out, and lets all of them go.
        self.heddle.kill9("scheduler")
        name = self.gang_job()
        self.heddle.wait_for(lambda: len(scenario.pods_of(self.plane, TEAM, name)) == 8 and not self.gated(name),
                             "all pods to be let go", 15)
        self.assertEqual(self.bound(name), [])
        self.heddle.forget_lease()
        self.heddle.start_daemon("scheduler")
        self.wait_bound(name, 8)
        self.assert_whole(name)


    def with_clock(self, seconds):
        """A new extender whose host's clock is off. The scheduler's, and so the Lease's, is right."""
        self.heddle.kill9("extender")
        self.heddle.skew_clock("extender", seconds)
        self.heddle.start_daemon("extender")

    def quota(self, pods):
        self.plane.rest.create(f"/api/v1/namespaces/{TEAM}/resourcequotas", {
            "metadata": {"name": "few"}, "spec": {"hard": {"pods": str(pods)}}})
        self.plane.wait_for(lambda: (self.plane.rest.get(f"/api/v1/namespaces/{TEAM}/resourcequotas/few").get("status") or {})
                            .get("used"), "the quota to be counted")

    def test_a_slot_is_kept_for_its_rank_though_one_leaders_clock_is_behind_and_the_nexts_ahead(self):
        try:
            self.with_clock(-300)
            name = self.gang_job(pods=4, backoff_limit=9)
            self.wait_gang(name, "Running")
            self.quota(pods=3)  # what is deleted cannot be made again
            victim = self.bound(name)[0]
            since = self.lose(name, victim)
            told = datetime.datetime.fromisoformat(since.replace("Z", "+00:00")).timestamp()
            self.assertLess(abs(time.time() - told), 60, "the condition has the time of its writer's host")
            self.assertEqual([one["since"] for one in self.gang(name)["status"]["missing"]], [since])
            self.with_clock(300)
            # Four nodes are free, and a fifth would be if ten minutes had passed, as the two clocks have it.
            five = self.too_large_beside(5)
            self.plane.rest.delete(path("jobs", "beside", five), propagationPolicy="Background")
            self.plane.rest.delete(f"/api/v1/namespaces/{TEAM}/resourcequotas/few")
            self.wait_bound(name, 4, timeout=120)
            self.assertIn(bound_to(victim), {bound_to(pod) for pod in self.bound(name)})
            self.assert_no_gpu_twice()
            self.assert_leads_by_its_scheduler()
        finally:
            self.with_clock(0)

    def test_a_pod_of_no_gang_takes_no_gpu_that_is_kept_for_a_rank(self):
        self.team_beside()
        name = self.gang_job(pods=8, backoff_limit=9)  # every server
        self.wait_gang(name, "Running")
        self.quota(pods=7)  # what is deleted cannot be made again
        try:
            victim = self.bound(name)[0]
            self.lose(name, victim)
            self.submit(indexed_job("notebook", 1, 1), "beside")
            said = self.wait_unschedulable("notebook", "beside")
            # Its pod may just be leaving, and then it is said of that.
            self.assertRegex(said, f"its GPUs are reserved for (gang|the successor of pod) {TEAM}/")
            self.plane.rest.delete(f"/api/v1/namespaces/{TEAM}/resourcequotas/few")
            self.wait_bound(name, 8, timeout=120)
            self.assertIn(bound_to(victim), {bound_to(pod) for pod in self.bound(name)})
            self.assertEqual([bound_to(pod) for pod in scenario.pods_of(self.plane, "beside", "notebook")], [""])
        finally:
            with contextlib.suppress(ApiError):
                self.plane.rest.delete(f"/api/v1/namespaces/{TEAM}/resourcequotas/few")
            self.plane.rest.delete(path("jobs", "beside", "notebook"), propagationPolicy="Background")

    def test_a_slot_whose_pod_does_not_come_back_for_five_minutes_is_given_to_others(self):
        name = self.gang_job(pods=4, backoff_limit=9)
        self.wait_gang(name, "Running")
        self.quota(pods=3)
        five = None
        try:
            victim = self.bound(name)[0]
            since = datetime.datetime.fromisoformat(self.lose(name, victim).replace("Z", "+00:00"))
            five = self.too_large_beside(5)
            # The Gang itself says since when, and nothing else does: so five minutes pass at once.
            self.let_five_minutes_pass(name, since)
            scenario.wait_bound(self.plane, "beside", 5, five, timeout=60)
            self.assertIn(bound_to(victim), {bound_to(pod) for pod in scenario.pods_of(self.plane, "beside", five)})
            self.assertEqual(len(self.bound(name)), 3, "a pod that runs lost its place")
        finally:
            self.plane.rest.delete(f"/api/v1/namespaces/{TEAM}/resourcequotas/few")
            if five:
                scenario.remove(self.plane, "beside", five)

    def let_five_minutes_pass(self, name, since):
        """Since one of its ranks was lost."""
        gang = self.gang(name)
        rank, = [one["rank"] for one in gang["status"]["missing"]]
        earlier = (since - datetime.timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.plane.rest.patch(path("gangs", TEAM, gang["metadata"]["name"], "status"),
                              {"status": {"missing": [{"rank": rank, "since": earlier}]}})

    def lift_queue_gates(self, name):
        """As Kueue, when it admits the Job."""
        for pod in self.gated(name):
            gates = [gate["name"] for gate in pod["spec"]["schedulingGates"]]
            if QUEUE_GATE in gates:
                self.plane.rest.patch(path("pods", TEAM, pod["metadata"]["name"]), [
                    {"op": "remove", "path": f"/spec/schedulingGates/{gates.index(QUEUE_GATE)}"}], "json")

    def test_a_slot_whose_next_pod_waits_for_quota_for_five_minutes_is_given_to_others(self):
        name = self.gang_job(pods=4, backoff_limit=9, schedulingGates=[{"name": QUEUE_GATE}])
        self.heddle.wait_for(lambda: len(self.gated(name)) == 4, "all pods to be made", 30)
        self.lift_queue_gates(name)
        self.wait_gang(name, "Running")
        five = None
        try:
            victim = self.bound(name)[0]
            since = datetime.datetime.fromisoformat(self.lose(name, victim).replace("Z", "+00:00"))
            self.heddle.wait_for(lambda: len(self.gated(name)) == 1, "its next pod to wait for quota", 30)
            five = self.too_large_beside(5)
            self.let_five_minutes_pass(name, since)
            scenario.wait_bound(self.plane, "beside", 5, five, timeout=60)
            self.assertEqual(len(self.bound(name)), 3, "a pod that runs lost its place")
            scenario.remove(self.plane, "beside", five)
            five = None
            self.lift_queue_gates(name)
            self.wait_bound(name, 4, timeout=60)
            self.assert_no_gpu_twice()
        finally:
            if five:
                scenario.remove(self.plane, "beside", five)

    def lose(self, name, pod):
        """A pod of that gang goes, and its Gang notes it; returns since when, as that says it."""
        self.plane.rest.delete(path("pods", TEAM, pod["metadata"]["name"]), gracePeriodSeconds=0)

        def missed():
            found = scenario.condition(self.gang(name), "Collected")
            return found if found["status"] == "False" else None
        return self.heddle.wait_for(missed, "the Gang to miss a rank", 30)["lastTransitionTime"]

    def team_beside(self):
        """A namespace that the quota is not of."""
        if not self.plane.rest.find(path("namespaces", name="beside")):
            self.plane.create_namespace("beside", {"heddle.dev/scope": "enabled"})

    def too_large_beside(self, pods):
        """A gang of so many whole nodes in a namespace that has no quota, once it was told that too few are free."""
        self.team_beside()
        name = f"beside-{next(self.numbers)}"
        self.submit(indexed_job(name, pods, 8, annotations={"heddle.dev/parallelism": f"tp=8,dp={pods}"}), "beside")

        def refused():
            gang = scenario.gang_of(self.plane, "beside", name)
            return gang and (gang.get("status") or {}).get("reason") == "NotEnoughFree"
        self.heddle.wait_for(refused, "the larger gang to find too few nodes", 30)
        return name

    def assert_leads_by_its_scheduler(self):
        _, text = self.ask(self.heddle.extender_port, "GET", "/metrics")
        self.assertIn("\nheddle_extender_leading 1\n", text)


    # A pod that is let go and cannot be bound, though its slot is sound: by hand somebody else's came there in between.

    @contextlib.contextmanager
    def without_cpus(self, node):
        """A pod of nobody's scheduler takes every CPU of that node."""
        cpus = str(self.cluster.node(node).cpus)
        where = path("pods", scenario.OTHERS, "hog")
        self.plane.rest.create(path("pods", scenario.OTHERS), {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "hog"},
            "spec": {"nodeName": node, "containers": [
                {"name": "hog", "image": "hog", "resources": {"requests": {"cpu": cpus}}}]}})
        try:
            yield
        finally:
            self.plane.rest.delete(where, gracePeriodSeconds=0)

    def planned_nodes(self, name):
        placed = self.wait_gang(name, "Planned")["status"]["placement"]
        return [placed["nodeNames"][index] for index in placed["nodes"]]

    def uids(self, name):
        return {pod["metadata"]["uid"] for pod in scenario.pods_of(self.plane, TEAM, name)}

    def test_a_pod_that_cannot_be_bound_moves_to_its_substitute_and_is_not_made_again(self):
        with contextlib.ExitStack() as others:
            with RefusedReleases(self.plane, "true"):
                name = self.gang_job(pods=7)
                planned = self.planned_nodes(name)
                others.enter_context(self.without_cpus(planned[2]))
            free, = {node.name for node in self.cluster.nodes} - set(planned)
            before = self.uids(name)
            self.wait_bound(name, 7, timeout=120)
            self.assert_whole(name)
            planned[2] = free
            self.assertEqual(self.planned_nodes(name), planned)
            self.assertEqual(self.uids(name), before)
            self.assertTrue(any(f"rank 2 was moved to its substitute {free}" in line
                                for line in self.gang(name)["status"]["explanation"]))

    def test_a_pod_that_cannot_be_bound_and_has_no_substitute_is_told_and_bound_once_it_can(self):
        with contextlib.ExitStack() as others:
            with RefusedReleases(self.plane, "true"):
                name = self.gang_job()
                planned = self.planned_nodes(name)
                others.enter_context(self.without_cpus(planned[2]))
            status = self.wait_gang(name, "Degraded", timeout=120)["status"]
            self.assertEqual(status["reason"], "Unschedulable")
            self.assertIn(f"cannot start on {planned[2]}: ", status["message"])
            self.assertIn("Insufficient cpu", status["message"])
            self.assertIn("no substitute is left", status["message"])
            self.assertEqual(len(self.bound(name)), 7)
        self.wait_bound(name, 8)
        self.assert_whole(name)
        self.assertEqual(self.planned_nodes(name), planned)
        self.assertEqual(scenario.condition(self.gang(name), "Degraded")["status"], "False")

    # The extender hangs, is away or talks nonsense: GPU pods wait, and nobody else does.

    def assert_others_are_placed(self, within):
        """CPU pods of both schedulers, each placed in so many seconds."""
        for scheduler in ("heddle", "default-scheduler"):
            name = f"cpu-{next(self.numbers)}"
            started = time.monotonic()
            self.submit(indexed_job(name, 4, scheduler=scheduler))
            self.wait_bound(name, 4)
            self.assertLess(time.monotonic() - started, within, scheduler)

    def gpu_pod(self):
        name = f"notebook-{next(self.numbers)}"
        self.submit(indexed_job(name, 1, 1))
        self.wait_unschedulable(name)
        return name

    def wait_unschedulable(self, name, namespace=TEAM):
        def said():
            pods = scenario.pods_of(self.plane, namespace, name)
            return pods and (scenario.condition(pods[0], "PodScheduled") or {}).get("message")
        return self.heddle.wait_for(said, f"the scheduler to say why {name} waits", 30)

    def test_while_the_extender_is_away_only_gpu_pods_wait(self):
        self.heddle.kill9("extender")
        try:
            gang, notebook = self.gang_job(pods=4), self.gpu_pod()
            self.assert_others_are_placed(within=5)
            self.assertEqual(self.bound(gang) + self.bound(notebook), [])
        finally:
            self.heddle.start_daemon("extender")
        self.wait_bound(notebook, 1)
        self.wait_bound(gang, 4)
        self.assert_whole(gang)

    def test_while_the_extender_hangs_only_gpu_pods_wait_and_its_check_says_so(self):
        extender = self.heddle.daemon("extender")
        check = [str(Path(options.binaries).resolve() / "heddle-extender"), "--check",
                 f"--listen=127.0.0.1:{self.heddle.extender_port}"]
        self.assertEqual(subprocess.run(check, timeout=20, check=False).returncode, 0)
        extender.pause()
        try:
            gang, notebook = self.gang_job(pods=4), self.gpu_pod()
            # One call that times out may stand before them.
            self.assert_others_are_placed(within=10)
            self.assertEqual(self.bound(gang) + self.bound(notebook), [])
            checked = subprocess.run(check, capture_output=True, text=True, timeout=20, check=False)
            self.assertEqual((checked.returncode, "does not answer" in checked.stderr), (1, True))
        finally:
            extender.resume()
        self.wait_bound(notebook, 1)
        self.wait_bound(gang, 4)
        self.assert_whole(gang)

    def test_what_talks_nonsense_in_its_place_binds_nobody(self):
        answers = itertools.cycle([(200, b"\xff\x00{{{"), (500, b"no"), (200, b"{}"), (200, b'{"NodeNames": ["nowhere"]}'),
                                   (200, b'{"Error": 7}'), (200, b"")])

        class Nonsense(http.server.BaseHTTPRequestHandler):
            asked = 0

            def do_POST(self):  # noqa: N802: the base class calls it so
                self.rfile.read(int(self.headers["Content-Length"]))
                status, body = next(answers)
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                Nonsense.asked += 1

            def log_message(self, *_):
                pass

        self.heddle.kill9("extender")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", self.heddle.extender_port), Nonsense)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            notebooks = [self.gpu_pod() for _ in range(3)]
            self.heddle.wait_for(lambda: Nonsense.asked >= 6, "every answer to be given once", 60)
            self.assert_others_are_placed(within=5)
            self.assertEqual([pod for name in notebooks for pod in self.bound(name)], [])
        finally:
            server.shutdown()
            server.server_close()
            self.heddle.start_daemon("extender")
        for name in notebooks:
            self.wait_bound(name, 1)


class Replicas(GangCase):
    """Two kube-schedulers with an extender each, as the chart runs them; the extenders reach the apiserver by a proxy."""

    HOSTS = ("replica-a", "replica-b")
    # Shorter than the chart's 15 s, which only takes longer to show the same.
    LEASE = {"leaseDuration": "8s", "renewDeadline": "6s", "retryPeriod": "1s"}

    @classmethod
    def set_up_bed(cls):
        cls.binaries = Path(options.binaries).resolve()
        cls.heddle = Heddle(cls.plane, cls.binaries)
        cls.nodes.add(cls.cluster)
        cls.heddle.install()
        scenario.make_namespaces(cls.plane)
        cls.plane.rest.create("/apis/scheduling.k8s.io/v1/priorityclasses", {
            "metadata": {"name": "urgent"}, "value": 1000, "preemptionPolicy": "Never"})
        cls.heddle.write_machines(cls.cluster)
        cls.heddle.start_operator()
        cls.heddle.start_agents()
        cls.proxy = HoldingProxy(cls.plane)
        kubeconfig = cls.plane.account_kubeconfig(NAMESPACE, "heddle-extender", server=cls.proxy.server)
        for host in cls.HOSTS:
            cls.heddle.start_extender(host=host, kubeconfig=kubeconfig)
            cls.heddle.start_scheduler(host=host, lease=cls.LEASE)
        cls.heddle.wait_published(cls.heddle.machines)
        scenario.declare_fabric(cls.plane, cls.cluster)
        scenario.wait_fabric(cls.heddle, cls.cluster)
        cls.heddle.wait_for(cls.heddle.lease_holder, "one of the schedulers to lead", 30)

    def tearDown(self):
        for name in [f"{kind}@{host}" for host in self.HOSTS for kind in ("extender", "scheduler")]:
            if not self.heddle.daemon(name).running():
                self.heddle.start_daemon(name)
        super().tearDown()

    def leader(self):
        host = self.heddle.lease_holder()
        return host, next(other for other in self.HOSTS if other != host)

    def wait_leads(self, host):
        started = time.monotonic()
        self.heddle.wait_for(lambda: self.heddle.lease_holder() == host, f"{host} to hold the Lease", 30)
        return time.monotonic() - started

    def leading(self, host):
        _, text = self.ask(self.heddle.extender_ports[host], "GET", "/metrics")
        return "\nheddle_extender_leading 1\n" in text

    def test_the_other_replica_takes_over_from_a_pair_that_dies_and_finishes_its_gang(self):
        leader, other = self.leader()
        with RefusedReleases(self.plane, f"{INDEX} >= 4"):
            name = self.gang_job()
            self.wait_bound(name, 4)
            planned = self.gang(name)["status"]["placement"]
            self.heddle.kill9(f"scheduler@{leader}")
            self.heddle.kill9(f"extender@{leader}")
            # The Lease's 8 s, the next try of the other, and a busy machine.
            self.assertLess(self.wait_leads(other), 15)
        self.wait_bound(name, 8)
        self.assert_whole(name, planned)
        self.heddle.start_daemon(f"extender@{leader}")
        self.heddle.start_daemon(f"scheduler@{leader}")

    def test_an_extender_whose_scheduler_died_leads_no_more_and_the_other_pair_finishes_its_gang(self):
        leader, other = self.leader()
        with RefusedReleases(self.plane, f"{INDEX} >= 4"):
            name = self.gang_job()
            self.wait_bound(name, 4)
            planned = self.gang(name)["status"]["placement"]
            self.heddle.kill9(f"scheduler@{leader}")
            self.wait_leads(other)
            self.heddle.wait_for(lambda: self.leading(other) and not self.leading(leader),
                                 "the extenders to follow their schedulers", 15)
        self.wait_bound(name, 8)
        self.assert_whole(name, planned)
        self.heddle.start_daemon(f"scheduler@{leader}")

    def test_while_the_leaders_extender_is_away_nobody_else_plans_and_when_it_is_back_it_goes_on(self):
        leader, other = self.leader()
        self.heddle.wait_for(lambda: self.leading(leader), "the extender to follow its scheduler", 15)
        self.heddle.kill9(f"extender@{leader}")
        name = self.gang_job()
        self.heddle.wait_for(lambda: len(self.gated(name)) == 8, "all pods to wait at the gate")
        self.assertFalse(self.leading(other), "the Lease is not its scheduler's")
        self.assertIsNone(self.gang(name))
        self.heddle.start_daemon(f"extender@{leader}")
        self.wait_bound(name, 8)
        self.assert_whole(name)
        self.assertEqual(self.heddle.lease_holder(), leader)

    # Two leaders, each with a plan over the same GPUs

    def hold_a_plan(self):
        """A gang whose plan its leader has sent, and the apiserver has not got."""
        leader, other = self.leader()
        self.heddle.wait_for(lambda: self.leading(leader), "the extender to follow its scheduler", 15)
        held = self.proxy.hold("PUT", r"/gangs/[^/]+/status$", b'"placement":')
        name = self.gang_job()
        self.heddle.wait_for(held.arrived.is_set, "its plan to be sent", 60)
        return name, held, leader, other

    def change_leader(self, old, new):
        """From here on the old one may still have a write on its way."""
        self.heddle.kill9(f"scheduler@{old}")
        self.wait_leads(new)
        self.heddle.wait_for(lambda: self.leading(new) and not self.leading(old), "the extenders to follow", 15)

    def land(self, held):
        held.release()
        self.heddle.wait_for(held.landed.is_set, "the late plan to land")
        return held.status

    def test_a_plan_that_lands_after_the_next_leaders_is_refused_by_its_version(self):
        name, held, old, new = self.hold_a_plan()
        self.change_leader(old, new)
        self.wait_bound(name, 8)
        self.assertEqual(self.land(held), 409)
        self.assert_whole(name)
        self.assertEqual(self.gang(name)["status"]["placement"]["epoch"], 1)
        self.heddle.start_daemon(f"scheduler@{old}")

    def overlap(self, let_go):
        """Two plans over all GPUs of the cluster stand side by side: the one that was made first lands last."""
        first, held, old, new = self.hold_a_plan()
        gang, planned_at = held.target.split("/")[-2], json.loads(held.body)["status"]["plannedAt"]
        # Whatever the new leader says of that gang would give it another version, so it gets no word in.
        with RefusedStatus(self.plane, gang, f"has(object.status.plannedAt) && object.status.plannedAt == '{planned_at}'"):
            with contextlib.nullcontext() if let_go else RefusedReleases(self.plane, "true"):
                self.change_leader(old, new)
                later = self.gang_job(priorityClassName="urgent")
                if let_go:
                    self.wait_bound(later, 8)
                else:
                    self.wait_gang(later, "Planned")
                self.assertEqual(self.land(held), 200)
        self.heddle.start_daemon(f"scheduler@{old}")
        return (later, first) if let_go else (first, later)

    def assert_only_one_was_let_go(self, stays, yields):
        self.wait_bound(stays, 8)
        self.wait_refused(yields, "NotEnoughFree")
        self.assert_whole(stays)
        self.assertEqual(len(self.gated(yields)), 8)
        self.assertNotIn("placement", self.gang(yields)["status"])
        for pod in scenario.pods_of(self.plane, TEAM, yields):
            self.assertNotIn("heddle.dev/node", pod["metadata"]["annotations"], "it was told a place once")

    def test_of_two_plans_over_the_same_gpus_the_later_is_revoked_before_its_pods_are_let_go(self):
        stays, yields = self.overlap(let_go=False)
        self.assert_only_one_was_let_go(stays, yields)
        scenario.remove(self.plane, TEAM, stays)
        self.wait_bound(yields, 8)
        self.assert_whole(yields)

    def test_a_plan_that_lands_when_others_run_on_its_gpus_lets_nobody_go(self):
        self.assert_only_one_was_let_go(*self.overlap(let_go=True))
