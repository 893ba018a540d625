"""Gangs with a ComputeDomain: claims by admission, the ComputeDomain between plan and release, channels by the scheduler.

Claims, their allocation and garbage collection are Kubernetes' own. NVIDIA's DRA driver needs its hardware, so the test plays
it: an API of our own words, a template for each ComputeDomain, one channel a node. No channel is opened by anybody."""

import itertools
import json
import threading

import scenario
from bed import REPOSITORY, ApiError, path
from bed.clusters import nvl72
from bed.heddle import NAMESPACE
from bed.testing import bound_to, indexed_job
from scenario import TEAM
from test_groups import CRDS
from test_main_job import HeddleTestCase, RefusedReleases

TRAYS = 6  # of a rack
ENTRY, SUFFIX = "heddle-compute-domain", "-heddle"
GROUP, DRIVER, CLASS = "resource.nvidia.com", "compute-domain.nvidia.com", "compute-domain-default-channel.nvidia.com"
DOMAINS = f"/apis/{GROUP}/v1beta1/namespaces/{TEAM}/computedomains"
CLAIMS = f"/apis/resource.k8s.io/v1/namespaces/{TEAM}/resourceclaims"
TEMPLATES = f"/apis/resource.k8s.io/v1/namespaces/{TEAM}/resourceclaimtemplates"
EXTENDER = f"system:serviceaccount:{NAMESPACE}:heddle-extender"
FINALIZER = f"{GROUP}/computeDomain"


def string(**more):
    return {"type": "string"} | more


COMPUTE_DOMAIN = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"computedomains.{GROUP}"},
    "spec": {"group": GROUP, "scope": "Namespaced",
             "names": {"kind": "ComputeDomain", "plural": "computedomains", "singular": "computedomain",
                       "listKind": "ComputeDomainList"},
             "versions": [{"name": "v1beta1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": {
                 "openAPIV3Schema": {"type": "object", "properties": {
                     "spec": {"type": "object", "required": ["channel"],
                              "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "the spec never changes"}],
                              "properties": {
                                  "numNodes": {"type": "integer", "minimum": 0, "default": 0},
                                  "channel": {"type": "object", "required": ["resourceClaimTemplate"], "properties": {
                                      "resourceClaimTemplate": {"type": "object", "required": ["name"],
                                                                "properties": {"name": string()}},
                                      "allocationMode": string(enum=["All", "Single"], default="Single")}}}},
                     "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}}}]}}


class PlayedDriver:
    """What NVIDIA's driver does in the API: a ResourceClaimTemplate for each ComputeDomain, which names it by its UID and is
    gone before the ComputeDomain is; a channel on each node. `hold` keeps ComputeDomains from being gone."""

    def __init__(self, plane):
        self.plane, self.hold = plane, False
        self._stop, self._thread = threading.Event(), threading.Thread(target=self._run, name="driver", daemon=True)
        plane.before_stop(self.stop)

    def install(self, nodes):
        rest = self.plane.rest
        rest.create(CRDS, COMPUTE_DOMAIN)
        rest.create("/apis/resource.k8s.io/v1/deviceclasses", {"metadata": {"name": CLASS}, "spec": {"selectors": [{"cel": {
            "expression": f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'channel' && "
                          f"device.attributes['{DRIVER}'].id == 0"}}]}})
        self.plane.create_all("/apis/resource.k8s.io/v1/resourceslices", [{
            "metadata": {"name": f"{node}-channels"},
            "spec": {"driver": DRIVER, "nodeName": node, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                     "devices": [{"name": "channel-0", "attributes": {"type": {"string": "channel"}, "id": {"int": 0}}}]}}
            for node in nodes])
        listed = f"/apis/{GROUP}/v1beta1/computedomains"
        self.plane.wait_for(lambda: rest.list(listed) == [], "computedomains to be served")

    def start(self):
        self._thread.start()

    def stop(self):
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self):
        while not self._stop.wait(0.1):
            try:
                for domain in self.plane.rest.list(DOMAINS):
                    self._look(domain)
            except (ApiError, OSError):
                pass  # somebody was faster, or the apiserver is not there: the next look tells

    def _look(self, domain):
        uid, where = domain["metadata"]["uid"], f"{DOMAINS}/{domain['metadata']['name']}"
        name = domain["spec"]["channel"]["resourceClaimTemplate"]["name"]
        template = self.plane.rest.find(f"{TEMPLATES}/{name}")
        ours = template is not None and template["metadata"]["labels"][FINALIZER] == uid
        if "deletionTimestamp" in domain["metadata"]:
            if ours:
                self.plane.rest.delete(f"{TEMPLATES}/{name}")
            elif not self.hold:
                self.plane.rest.patch(where, {"metadata": {"finalizers": None}})
        elif FINALIZER not in domain["metadata"].get("finalizers", []):
            self.plane.rest.patch(where, {"metadata": {"finalizers": [FINALIZER]}})
        elif template is None:
            self.plane.rest.create(TEMPLATES, self._template(name, uid))

    @staticmethod
    def _template(name, uid):
        channel = {"apiVersion": f"{GROUP}/v1beta1", "kind": "ComputeDomainChannelConfig", "domainID": uid,
                   "allocationMode": "Single"}
        return {"metadata": {"name": name, "labels": {FINALIZER: uid}}, "spec": {"spec": {"devices": {
            "requests": [{"name": "channel", "exactly": {"deviceClassName": CLASS}}],
            "config": [{"requests": ["channel"], "opaque": {"driver": DRIVER, "parameters": channel}}]}}}}


class RefusedDomains(RefusedReleases):
    """While it stands, the apiserver takes no ComputeDomain."""

    NAME = "test-domains-refused"

    def __init__(self, plane):
        super().__init__(plane, "false")

    def policy(self):
        return (self.expression, {"apiGroups": [GROUP], "apiVersions": ["v1beta1"], "operations": ["CREATE"],
                                  "resources": ["computedomains"]})

    def _wait_in_force(self):
        def refused():
            try:
                self.plane.rest.create(DOMAINS + "?dryRun=All", {
                    "apiVersion": f"{GROUP}/v1beta1", "kind": "ComputeDomain", "metadata": {"name": "probe"},
                    "spec": {"channel": {"resourceClaimTemplate": {"name": "probe"}}}})
            except ApiError as problem:
                return "the test refuses" in problem.message
            return False
        self.plane.wait_for(refused, "the test's policy to be in force", 30)


class ComputeDomainTest(HeddleTestCase):
    """Two racks of six trays with a channel each."""

    cluster = nvl72(racks=2, trays=TRAYS)
    numbers = itertools.count(1)

    @classmethod
    def set_up_bed(cls):
        cls.driver = PlayedDriver(cls.plane)
        cls.driver.install([node.name for node in cls.cluster.nodes])
        super().set_up_bed()
        cls.heddle.install(computeDomains={"enabled": True})
        cls.driver.start()
        body = cls.pod("probe", {}, [{"apiVersion": "batch/v1", "kind": "Job", "name": "probe", "uid": "1" * 8, "controller": True}])
        cls.plane.wait_for(lambda: cls.claims_of(cls.plane.rest.create(path("pods", TEAM) + "?dryRun=All", body)),
                           "the policy heddle-compute-domain to be in force")

    def setUp(self):
        self.name = f"train-{next(self.numbers)}"

    def tearDown(self):
        self.driver.hold = False
        super().tearDown()
        self.plane.wait_for(lambda: not self.plane.rest.list(DOMAINS), "the ComputeDomains to go with their jobs", 90)

    @staticmethod
    def pod(name, labels, owners):
        spec = indexed_job(name, 1, 4)["spec"]["template"]["spec"]
        spec["containers"].insert(0, {"name": "proxy", "image": "proxy"})
        return {"metadata": {"name": name, "labels": labels, "ownerReferences": owners, "annotations": {
            "heddle.dev/parallelism": "tp=4", "heddle.dev/compute-domain": "true"}}, "spec": spec}

    @staticmethod
    def claims_of(pod):
        return {claim["name"]: claim.get("resourceClaimTemplateName") for claim in pod["spec"].get("resourceClaims", [])}

    def start(self, pods=TRAYS - 1, suspended=False, **annotations):
        words = {"heddle.dev/parallelism": f"tp=4,dp={pods}", "heddle.dev/require": "gang=nvlink",
                 "heddle.dev/compute-domain": "true"} | annotations
        body = indexed_job(self.name, pods, 4, annotations=words, backoff_limit=50)
        body["spec"]["suspend"] = suspended
        job = self.submit(body)
        self.domain = f"{self.name}-{job['metadata']['uid'][:8]}{SUFFIX}"
        return job

    def suspend(self):
        self.plane.rest.patch(path("jobs", TEAM, self.name), {"spec": {"suspend": True}})
        self.heddle.wait_for(self.all_ended, "the suspended Job's Gang to be ended", 60)
        self.plane.wait_for(lambda: not self.pods(), "its pods to be gone", 60)

    def resume(self):
        self.plane.rest.patch(path("jobs", TEAM, self.name), {"spec": {"suspend": False}})

    def wait_running(self, pods=TRAYS - 1):
        scenario.wait_bound(self.plane, TEAM, pods, self.name)
        return self.wait_gang(self.name, "Running")

    def the_domain(self):
        return self.plane.rest.find(f"{DOMAINS}/{self.domain}")

    def pods(self):
        return [pod for pod in scenario.pods_of(self.plane, TEAM, self.name) if "deletionTimestamp" not in pod["metadata"]]

    def wait_says(self, *words, timeout=60.0):
        message = self.wait_refused(self.name, "NoComputeDomain", timeout)

        def says():
            nonlocal message
            message = self.wait_refused(self.name, "NoComputeDomain", timeout)
            if any(word not in message for word in words):
                raise AssertionError(message)
            return True
        self.heddle.wait_for(says, f"the Gang of {self.name} to say {words}", timeout)
        self.assertTrue(all(pod["spec"].get("schedulingGates") for pod in self.pods()), "a pod was let go")
        return message

    def assert_in_one_rack_with_channels(self, domain_uid):
        pods = self.pods()
        racks = {self.cluster.node(bound_to(pod)).nvlink_domain for pod in pods}
        self.assertEqual(len(racks), 1, racks)
        self.assertEqual(len({bound_to(pod) for pod in pods}), len(pods), "a node has one channel")
        for pod in pods:
            self.assertEqual(self.claims_of(pod), {ENTRY: self.domain})
            names = {status["name"]: status["resourceClaimName"] for status in pod["status"]["resourceClaimStatuses"]}
            claim = self.plane.rest.get(f"{CLAIMS}/{names[ENTRY]}")
            config = claim["spec"]["devices"]["config"][0]["opaque"]["parameters"]
            self.assertEqual(config["domainID"], domain_uid)
            results = claim["status"]["allocation"]["devices"]["results"]
            self.assertEqual([(result["driver"], result["pool"]) for result in results], [(DRIVER, bound_to(pod))])
        return racks.pop()

    def test_a_gang_lands_in_one_rack_and_its_compute_domain_comes_between_the_plan_and_the_first_release(self):
        job = self.start()
        gang = self.wait_running()
        domain = self.the_domain()
        self.assertEqual(domain["spec"], {"numNodes": 0, "channel": {
            "resourceClaimTemplate": {"name": self.domain}, "allocationMode": "Single"}})
        self.assertEqual([owner["uid"] for owner in domain["metadata"]["ownerReferences"]], [job["metadata"]["uid"]])
        self.assert_in_one_rack_with_channels(domain["metadata"]["uid"])
        self.assert_no_gpu_twice()
        self.assert_not_failed(self.name)

        def times(**wanted):
            return [event["time"] for event in self.plane.audit(user=EXTENDER, **wanted) if event["code"] in (200, 201)]
        plans = [event["time"] for event in self.plane.audit(user=EXTENDER, resource="gangs/status", name=gang["metadata"]["name"])
                 if "placement" in ((event["body"] or {}).get("status") or {})]
        made = times(resource="computedomains", verb="create", name=self.domain)
        releases = [time for pod in self.pods() for time in times(resource="pods", verb="patch", name=pod["metadata"]["name"])]
        self.assertEqual((len(made), len(releases)), (1, TRAYS - 1))
        self.assertLess(min(plans), made[0])
        self.assertLess(made[0], min(releases))
        forbidden = [event for account in ("extender", "scheduler") for event in self.plane.audit(
            user=f"system:serviceaccount:{NAMESPACE}:heddle-{account}", code=403) if event["name"] not in ("x", "x-heddle", "probe")]
        self.assertEqual([(e["verb"], e["resource"], e["name"]) for e in forbidden], [])

    def test_kill_9_between_the_plan_and_the_compute_domain_loses_nothing(self):
        with RefusedDomains(self.plane):
            self.start()
            self.wait_says("the test refuses")
            planned = self.wait_gang(self.name, "Planned")["status"]["placement"]
            self.heddle.kill9("extender")
            self.assertIsNone(self.the_domain())
            self.assertTrue(all(not bound_to(pod) and pod["spec"].get("schedulingGates") for pod in self.pods()))
        self.heddle.start_daemon("extender")
        gang = self.wait_running()
        self.assertEqual((gang["status"]["placement"]["nodes"], gang["status"]["placement"]["epoch"]),
                         (planned["nodes"], planned["epoch"] + 1), "the same plan, written once more before anybody is let go")
        self.assertEqual(gang["status"].get("reason", ""), "")
        self.assertEqual(len(self.plane.audit(resource="computedomains", verb="create", name=self.domain, code=201)), 1)
        self.assert_in_one_rack_with_channels(self.the_domain()["metadata"]["uid"])

    def test_a_foreign_compute_domain_is_left_alone_and_so_are_the_claims_that_came_of_it(self):
        self.start(suspended=True)
        foreign = self.plane.rest.create(DOMAINS, {
            "apiVersion": f"{GROUP}/v1beta1", "kind": "ComputeDomain", "metadata": {"name": self.domain},
            "spec": {"channel": {"resourceClaimTemplate": {"name": self.domain}}}})
        self.resume()
        self.wait_says(f"{TEAM}/{self.domain} is not Heddle's")
        there = self.the_domain()
        self.assertEqual((there["metadata"]["uid"], there["spec"]), (foreign["metadata"]["uid"], foreign["spec"]))
        self.assertNotIn("labels", there["metadata"])
        self.plane.wait_for(lambda: len(self.plane.rest.list(CLAIMS)) == TRAYS - 1, "claims from the foreign template", 30)

        self.driver.hold = True
        self.plane.rest.delete(f"{DOMAINS}/{self.domain}")
        self.wait_says("is being deleted")
        self.driver.hold = False
        self.wait_says(f"{TRAYS - 1} claims of its pods", "suspend the job and resume it")
        self.suspend()
        self.resume()
        self.wait_running()
        self.assertNotEqual(self.the_domain()["metadata"]["uid"], foreign["metadata"]["uid"])
        self.assert_in_one_rack_with_channels(self.the_domain()["metadata"]["uid"])

    def test_it_lasts_through_suspension_and_goes_with_its_job(self):
        self.start()
        self.wait_running()
        uid = self.the_domain()["metadata"]["uid"]
        self.suspend()
        self.assertEqual(self.the_domain()["metadata"]["uid"], uid)
        self.resume()
        self.wait_running()
        self.assertEqual(self.the_domain()["metadata"]["uid"], uid)
        self.assert_in_one_rack_with_channels(uid)
        scenario.remove(self.plane, TEAM, self.name)
        self.plane.wait_for(lambda: not self.the_domain(), "the ComputeDomain to go with its Job", 90)
        self.plane.wait_for(lambda: not self.plane.rest.list(CLAIMS), "the claims to go with their pods", 60)

    def test_a_lost_rank_moves_inside_the_rack_and_joins_the_same_compute_domain(self):
        self.start()
        self.wait_running()
        uid = self.the_domain()["metadata"]["uid"]
        rack = self.assert_in_one_rack_with_channels(uid)
        victim = self.pods()[0]
        node = path("nodes", name=bound_to(victim))
        self.plane.rest.patch(node, {"spec": {"unschedulable": True}})
        try:
            self.plane.rest.delete(path("pods", TEAM, victim["metadata"]["name"]), gracePeriodSeconds=0)

            def moved():
                pods = self.pods()
                return len(pods) == TRAYS - 1 and all(bound_to(pod) not in ("", bound_to(victim)) for pod in pods)
            self.heddle.wait_for(moved, "the rank to have another node", 90)
            self.assertEqual(self.assert_in_one_rack_with_channels(uid), rack)
        finally:
            self.plane.rest.patch(node, {"spec": {"unschedulable": None}})

    def test_admission_names_them_by_the_rule_that_the_extender_has(self):
        table = json.loads((REPOSITORY / "tests" / "fixtures" / "compute_domain_names.json").read_text())
        for one in table:
            with self.subTest(one["of"]):
                made = self.plane.rest.create(path("pods", TEAM) + "?dryRun=All",
                                              self.pod("probe", one["labels"], one["ownerReferences"]))
                self.assertEqual(self.claims_of(made), {ENTRY: one["name"]} if one["name"] else {})
                proxy, worker = (container["resources"].get("claims", []) for container in made["spec"]["containers"])
                self.assertEqual((proxy, worker), ([], [{"name": ENTRY}] if one["name"] else []))

    def test_who_does_not_ask_for_one_has_none_and_other_claims_stay_refused(self):
        self.start(**{"heddle.dev/compute-domain": "false"})
        self.wait_running()
        self.assertEqual([self.claims_of(pod) for pod in self.pods()], [{}] * (TRAYS - 1))
        self.assertEqual(self.plane.rest.list(DOMAINS), [])
        self.submit(indexed_job("claims", 2, 4, annotations={"heddle.dev/parallelism": "tp=4,dp=2"},
                                resourceClaims=[{"name": "mine", "resourceClaimTemplateName": "mine"}]))
        self.assertIn("(mine) is not modelled", self.wait_refused("claims", "NotModelled"))

    def test_by_default_all_have_one_but_those_that_say_no(self):
        def claims(**annotations):
            body = self.pod("probe", {}, [{"apiVersion": "batch/v1", "kind": "Job", "name": "probe", "uid": "1" * 8,
                                           "controller": True}])
            body["metadata"]["annotations"] = annotations
            return self.claims_of(self.plane.rest.create(path("pods", TEAM) + "?dryRun=All", body))
        gang = {"heddle.dev/parallelism": "tp=4"}
        self.assertEqual(claims(**gang), {})
        self.heddle.install(computeDomains={"enabled": True, "byDefault": True})
        try:
            self.plane.wait_for(lambda: claims(**gang) == {ENTRY: "probe-11111111-heddle"}, "the default to be in force")
            self.assertEqual(claims(**gang, **{"heddle.dev/compute-domain": "false"}), {})
            self.assertEqual(claims(), {}, "a pod of no gang has no ComputeDomain")
        finally:
            self.heddle.install(computeDomains={"enabled": True})
        self.plane.wait_for(lambda: claims(**gang) == {}, "the default to be back")

    def test_the_extender_may_make_no_other(self):
        extender = self.plane.account_rest(NAMESPACE, "heddle-extender")
        owners = [{"apiVersion": "batch/v1", "kind": "Job", "name": "x", "uid": "1" * 8}]
        ours = {"app.kubernetes.io/managed-by": "heddle-extender"}
        for name, template, labels, owned in (("x", "x", ours, owners), ("x-heddle", "other", ours, owners),
                                              ("x-heddle", "x-heddle", {}, owners), ("x-heddle", "x-heddle", ours, [])):
            with self.subTest(name=name, template=template, labels=labels, owned=owned):
                with self.assertRaises(ApiError) as refused:
                    extender.create(DOMAINS, {
                        "apiVersion": f"{GROUP}/v1beta1", "kind": "ComputeDomain",
                        "metadata": {"name": name, "labels": labels, "ownerReferences": owned},
                        "spec": {"channel": {"resourceClaimTemplate": {"name": template}}}})
                self.assertIn("makes the ComputeDomains of gangs", refused.exception.message)
        for call in (lambda: extender.delete(f"{DOMAINS}/x"), lambda: extender.patch(f"{DOMAINS}/x", {})):
            with self.assertRaises(ApiError) as refused:
                call()
            self.assertEqual(refused.exception.status, 403)
