"""charts/heddle beside others: what it does to a cluster that has limits, a Heddle already, or an older one."""

import base64
import json
import shutil
import ssl
import subprocess
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

import yaml
from bed import REPOSITORY, ApiError, Heddle, path
from bed.heddle import CHART, NAMESPACE
from bed.process import run
from bed.rest import Rest
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


class KeptCrdsTest(ClusterTestCase):

    def upgrade(self, values, check=True):
        return self.helm("upgrade", "heddle", CHART, "--namespace", NAMESPACE, "--reset-then-reuse-values", "--set", values,
                         check=check)

    def test_an_upgrade_that_would_delete_them_with_all_they_hold_is_refused(self):
        self.helm("install", "heddle", CHART, "--namespace", NAMESPACE, "--create-namespace", "--set",
                  "components.run=false,crds.keep=false")
        self.plane.wait_for(lambda: self.rest.list(path("fabrics")) is not None, "fabrics to be served")
        fabric = {"apiVersion": "heddle.dev/v1alpha1", "kind": "Fabric", "metadata": {"name": "kept"}, "spec": {}}
        uid = self.rest.create(path("fabrics"), fabric)["metadata"]["uid"]
        # What is written in the same breath is not in the cluster yet, and there Helm looks.
        for values in ("crds.install=false", "crds.install=false,crds.keep=true"):
            with self.subTest(values=values):
                done = self.upgrade(values, check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("this release made fabrics.heddle.dev, fabricswitches.heddle.dev, gangs.heddle.dev", done.stderr)
                self.assertIn("--set crds.install=true,crds.keep=true", done.stderr)
        self.upgrade("crds.install=true,crds.keep=true")
        for values in ("crds.install=false", "crds.keep=false"):
            with self.subTest(values=values):
                self.upgrade(values)
                self.assertEqual(self.rest.get(path("fabrics", name="kept"))["metadata"]["uid"], uid)


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


ESTABLISHED = "{.status.conditions[?(@.type=='Established')].status}"


def serve_monitoring(plane):
    """The Prometheus operator's own PodMonitor and PrometheusRule, from the release that tests/cluster/monitoring_crds pins."""
    said = subprocess.run([REPOSITORY / "tools" / "control-plane", "--monitoring-crds", "--sources"], stdout=subprocess.PIPE,
                          text=True, check=True).stdout
    folder = Path(said.split()[1]) / "example" / "prometheus-operator-crd"
    for kind in ("podmonitors", "prometheusrules"):
        plane.kubectl("apply", "--server-side", "-f", folder / f"monitoring.coreos.com_{kind}.yaml")
        # Of a resource that has no conditions yet, `kubectl wait` says that it cannot read them, and ends.
        name = f"{kind}.monitoring.coreos.com"
        plane.wait_for(lambda: "True" in plane.kubectl("get", "crd", name, "-o", f"jsonpath={ESTABLISHED}"), f"{name} to be served")


class MonitoringObjectsTest(ClusterTestCase):
    """What monitoring.* makes, under the schemas of who reads it."""

    MONITORING = "/apis/monitoring.coreos.com/v1"
    ALL = {"podMonitors": {"enabled": True, "scheduler": True, "labels": {"release": "x"}},
           "rules": {"enabled": True, "docs": "https://git.example/docs", "labels": {"release": "x"}}}

    @classmethod
    def set_up_bed(cls):
        super().set_up_bed()
        serve_monitoring(cls.plane)
        cls.plane.create_namespace(NAMESPACE)

    def rendered(self, **values):
        # Strict: a field that the schema does not know is refused, and none is dropped in silence.
        text = self.helm("template", "heddle", CHART, "--namespace", NAMESPACE, "--set-json", "monitoring=" + json.dumps(self.ALL),
                         *(f"--set={key}={value}" for key, value in values.items())).stdout
        return [item for item in yaml.safe_load_all(text) if item and item["apiVersion"] == "monitoring.coreos.com/v1"]

    def apply(self, items, check=True):
        text = yaml.safe_dump_all(items)
        return self.plane.kubectl("apply", "--server-side", "--validate=strict", "-f", "-", stdin=text, check=check)

    def there(self, item):
        plural = {"PodMonitor": "podmonitors", "PrometheusRule": "prometheusrules"}[item["kind"]]
        return self.rest.find(f"{self.MONITORING}/namespaces/{NAMESPACE}/{plural}/{item['metadata']['name']}")

    def test_the_api_server_keeps_every_field_of_them(self):
        for mode, last in (("place", "scheduler"), ("observe", "observer")):
            items = self.rendered(mode=mode)
            self.assertEqual({(item["kind"], item["metadata"]["name"]) for item in items}, {
                ("PodMonitor", "heddle-nodeagent"), ("PodMonitor", "heddle-operator"), ("PodMonitor", f"heddle-{last}"),
                ("PrometheusRule", "heddle")})
            self.apply(items)
            for item in items:
                kept = self.there(item)["spec"]
                # Defaults of the schema may come in; nothing of ours may go.
                self.assertEqual(held(item["spec"], kept), item["spec"], item["metadata"]["name"])

    def test_a_field_that_nobody_reads_is_refused(self):
        self.assertFalse([item for item in self.rendered() if item["kind"] == "ServiceMonitor"])
        rule = next(item for item in self.rendered() if item["kind"] == "PrometheusRule")
        rule["metadata"]["name"] = "broken"
        rule["spec"]["groups"][0]["rules"][0]["expression"] = rule["spec"]["groups"][0]["rules"][0].pop("expr")
        self.apply([rule], check=False)
        self.assertIsNone(self.there(rule))


def held(wanted, has):
    """`has`, but for what `wanted` does not speak of."""
    if isinstance(wanted, dict) and isinstance(has, dict):
        return {key: held(value, has[key]) for key, value in wanted.items() if key in has}
    if isinstance(wanted, list) and isinstance(has, list) and len(wanted) == len(has):
        return [held(*pair) for pair in zip(wanted, has)]
    return has


class SchedulerMetricsTest(ClusterTestCase):
    """kube-scheduler of the chart, asked as Prometheus asks it by the chart's PodMonitor."""

    @classmethod
    def set_up_bed(cls):
        super().set_up_bed()
        serve_monitoring(cls.plane)
        cls.heddle.install(components={"run": True}, monitoring={"podMonitors": {"enabled": True, "scheduler": True}})
        cls.heddle.start_scheduler()
        monitor = cls.rest.get(f"/apis/monitoring.coreos.com/v1/namespaces/{NAMESPACE}/podmonitors/heddle-scheduler")
        cls.endpoint = monitor["spec"]["podMetricsEndpoints"][1]

    def token(self):
        wanted = self.endpoint["authorization"]["credentials"]

        def filled():
            return (self.rest.get(path("secrets", NAMESPACE, wanted["name"])).get("data") or {}).get(wanted["key"])
        self.plane.wait_for(filled, "the token of heddle-metrics")
        return base64.b64decode(filled()).decode()

    def scrape(self, token, where="/metrics"):
        """(status, text)"""
        request = urllib.request.Request(f"https://127.0.0.1:{self.heddle.scheduler_port}{where}")
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        unverified = ssl.create_default_context()
        unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
        try:
            with urllib.request.urlopen(request, context=unverified, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as problem:
            return problem.code, ""

    def test_it_shows_its_metrics_to_that_account_and_to_no_other(self):
        self.assertEqual((self.endpoint["scheme"], self.endpoint["tlsConfig"]), ("https", {"insecureSkipVerify": True}))
        status, text = self.scrape(self.token())
        self.assertEqual(status, 200)
        self.assertIn("\nscheduler_pending_pods{", text)
        for token in ("", self.plane.account_token(NAMESPACE, "heddle-operator"),
                      self.plane.account_token(NAMESPACE, "heddle-extender")):
            self.assertEqual(self.scrape(token)[0], 403)
        self.assertEqual(self.scrape("nonsense")[0], 401)

    def test_the_token_opens_nothing_else(self):
        self.assertEqual(self.scrape(self.token(), "/metrics/resources")[0], 403, "which names pods")
        self.assertEqual(self.scrape(self.token(), "/configz")[0], 403)
        stranger = Rest(self.plane.server, self.plane.certificate_authority, self.token())
        for where in (path("pods"), path("nodes"), path("secrets", NAMESPACE), path("nodetopologies"),
                      path("configmaps", NAMESPACE)):
            with self.assertRaises(ApiError) as refused:
                stranger.list(where)
            self.assertEqual(refused.exception.status, 403)


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
