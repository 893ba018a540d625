"""charts/heddle beside others: what it does to a cluster that has limits, a Heddle already, or an older one."""

import json
import shutil
import ssl
import tempfile
import urllib.request
from pathlib import Path

from bed import REPOSITORY, ApiError, Heddle, path
from bed.heddle import CHART, NAMESPACE
from bed.process import run
from bed.testing import BedTestCase
from chart_text import FIXTURES, POLICIES
from test_chart_values import EVERYTHING

FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1"


class ClusterTestCase(BedTestCase):

    @classmethod
    def set_up_bed(cls):
        cls.heddle = Heddle(cls.plane, binaries=REPOSITORY / "build")
        cls.rest = cls.plane.rest

    def helm(self, *arguments, values=None, check=True):
        given = [] if values is None else ["--values", "-"]
        return run([self.plane.binaries / "helm", *arguments, *given], environment=self.plane.tool_environment(),
                   stdin=None if values is None else json.dumps(values), check=check)


class ApiPriorityTest(ClusterTestCase):

    @classmethod
    def set_up_bed(cls):
        super().set_up_bed()
        cls.heddle.install()

    def schema_of(self, account, where, namespace=NAMESPACE):
        """The name of the FlowSchema that a request of that account falls under, as the API server's answer says."""
        request = urllib.request.Request(self.plane.server + where, headers={
            "Authorization": f"Bearer {self.plane.account_token(namespace, account)}"})
        trusted = ssl.create_default_context(cafile=str(self.plane.certificate_authority))
        with urllib.request.urlopen(request, context=trusted, timeout=30) as answer:
            uid = answer.headers["X-Kubernetes-PF-FlowSchema-UID"]
        return next(one["metadata"]["name"] for one in self.rest.list(f"{FLOWS}/flowschemas") if one["metadata"]["uid"] == uid)

    def test_agents_are_apart_from_those_who_place(self):
        lease = {"metadata": {"name": "heddle-scheduler"}, "spec": {}}
        self.rest.create(path("leases", NAMESPACE), lease)
        self.plane.wait_for(lambda: self.schema_of("heddle-nodeagent", path("nodetopologies")) == "heddle-agents",
                            "the API server to take the schemas up")
        for account, where, schema in (
                ("heddle-extender", path("pods"), "heddle-control"), ("heddle-operator", path("nodes"), "heddle-control"),
                ("heddle-scheduler", path("pods"), "heddle-control"),
                ("heddle-extender", path("leases", NAMESPACE, "heddle-scheduler"), "heddle-leader-election"),
                ("heddle-scheduler", path("leases", NAMESPACE, "heddle-scheduler"), "heddle-leader-election")):
            with self.subTest(account=account, where=where):
                self.plane.wait_for(lambda: self.schema_of(account, where) == schema, schema)
        self.plane.wait_for_account("default", "default")
        self.assertEqual(self.schema_of("default", "/api", "default"), "service-accounts")

    def test_every_schema_has_its_level(self):
        for name in ("heddle-agents", "heddle-control", "heddle-leader-election"):
            def settled():
                conditions = self.rest.get(f"{FLOWS}/flowschemas/{name}").get("status", {}).get("conditions", [])
                return [condition["status"] for condition in conditions if condition["type"] == "Dangling"] == ["False"]
            self.plane.wait_for(settled, f"{name} to be settled")
        levels = {one["metadata"]["name"]: one["spec"].get("limited", {}).get("nominalConcurrencyShares", 0)
                  for one in self.rest.list(f"{FLOWS}/prioritylevelconfigurations")}
        self.assertEqual((levels.pop("heddle-agents"), levels.pop("heddle-control")), (10, 20))
        self.assertEqual(sum(levels.values()), 245, "the reckoning in docs/operations.md")


class EverythingTest(ClusterTestCase):

    def test_the_api_server_takes_every_object(self):
        self.heddle.install()
        # As Helm's weights have it, a hook's account is there before its pod.
        self.rest.create(path("serviceaccounts", NAMESPACE), {"metadata": {"name": "heddle-test"}})
        # Kinds of the Prometheus operator are not served here.
        rendered = self.helm("template", "heddle", CHART, "--namespace", NAMESPACE, "--api-versions", POLICIES, "--set",
                             "monitoring.podMonitors.enabled=false,monitoring.rules.enabled=false", values=EVERYTHING).stdout
        said = self.plane.kubectl("apply", "--server-side", "--dry-run=server", "--force-conflicts", "-f", "-", stdin=rendered)
        for line in ("job.batch/heddle-uninstall", "pod/heddle-test", "networkpolicy.networking.k8s.io/heddle-scheduler",
                     "poddisruptionbudget.policy/heddle-operator", "resourcequota/heddle-critical-pods",
                     "configmap/heddle-dashboard", "flowschema.flowcontrol.apiserver.k8s.io/heddle-agents"):
            self.assertIn(line, said)


class OneHeddleTest(ClusterTestCase):

    def test_a_second_one_is_refused_by_the_name_of_the_first(self):
        self.heddle.install()
        for name, namespace in (("second", NAMESPACE), ("heddle", "elsewhere")):
            with self.subTest(release=name, namespace=namespace):
                done = self.helm("install", name, CHART, "--namespace", namespace, "--create-namespace", "--set",
                                 "components.run=false", check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(f"Heddle is in this cluster already, as release heddle in namespace {NAMESPACE}", done.stderr)
                self.assertIn("helm uninstall heddle --namespace heddle-system", done.stderr)
        self.heddle.install(mode="observe")
        self.heddle.uninstall()
        # Only the CRDs are left, and are still the first one's.
        done = self.helm("install", "second", CHART, "--namespace", "elsewhere", "--create-namespace", "--set",
                         "components.run=false", "--take-ownership", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("Heddle works in the namespace heddle-system alone", done.stderr)
        self.helm("install", "second", CHART, "--namespace", NAMESPACE, "--set", "components.run=false", "--take-ownership")


class OlderReleaseTest(ClusterTestCase):

    def test_an_upgrade_that_reuses_the_values_of_then_brings_what_is_new(self):
        for fixture in sorted(FIXTURES.glob("values-*.yaml")):
            with self.subTest(values=fixture.name):
                chart = Path(self.enterContext(tempfile.TemporaryDirectory())) / "heddle"
                shutil.copytree(CHART, chart)
                shutil.copy(fixture, chart / "values.yaml")
                self.helm("install", "heddle", chart, "--namespace", NAMESPACE, "--create-namespace", "--set",
                          "extender.preemption.enabled=false,components.run=false")
                self.helm("upgrade", "heddle", CHART, "--namespace", NAMESPACE, "--reuse-values")
                self.assertTrue(self.rest.find(f"{FLOWS}/flowschemas/heddle-agents"))
                config = self.rest.get(path("configmaps", NAMESPACE, "heddle-scheduler"))["data"]["config.json"]
                self.assertNotIn("preemptVerb", config, "what was chosen then")
                self.helm("uninstall", "heddle", "--namespace", NAMESPACE)


class CriticalClassesTest(ClusterTestCase):
    """As on GKE: the system- priority classes are limited to namespaces that have a quota for them."""

    LIMITS = {
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": [{
            "name": "ResourceQuota", "configuration": {
                "apiVersion": "apiserver.config.k8s.io/v1", "kind": "ResourceQuotaConfiguration", "limitedResources": [{
                    "resource": "pods", "matchScopes": [{
                        "scopeName": "PriorityClass", "operator": "In",
                        "values": ["system-node-critical", "system-cluster-critical"]}]}]}}]}

    @classmethod
    def setUpClass(cls):
        file = Path(cls.enterClassContext(tempfile.TemporaryDirectory())) / "admission.json"
        file.write_text(json.dumps(cls.LIMITS))
        cls.arguments = {"apiserver": [f"--admission-control-config-file={file}"]}
        super().setUpClass()

    def create(self, name):
        body = {"metadata": {"generateName": "probe-"}, "spec": {
            "priorityClassName": name, "containers": [{"name": "a", "image": "a"}]}}
        return self.rest.create(path("pods", NAMESPACE), body, dryRun="All")

    def test_the_charts_quota_lets_its_pods_in(self):
        self.plane.create_namespace(NAMESPACE)
        with self.assertRaises(ApiError) as refused:
            self.create("system-node-critical")
        self.assertIn("insufficient quota to match these scopes", refused.exception.message)
        self.heddle.install(components={"run": True})
        for name in ("system-node-critical", "system-cluster-critical"):
            def admitted():
                try:
                    return self.create(name)
                except ApiError as problem:
                    raise AssertionError(problem.message) from problem
            self.plane.wait_for(admitted, f"a pod of {name} to be admitted")
