"""No value of charts/heddle is a promise that nobody keeps: each one, away from its default, is seen in what helm makes
of it. On paper. Of values that are true or false see SwitchesTest in test_chart_values.py."""

import json
from dataclasses import dataclass, field

from bed import REPOSITORY
from chart_text import ChartTextTestCase, named, pod_of, values_in
from test_chart_values import VALUES, merged, nested

MONITORS = {"monitoring": {"podMonitors": {"enabled": True}}}
RULES = {"monitoring": {"rules": {"enabled": True, "docs": "https://git.example/docs"}}}
DASHBOARD = {"monitoring": {"dashboard": {"enabled": True}}}
POLICIES = {"networkPolicy": {"enabled": True}}
SWITCHES = {"operator": {"switches": {"secrets": ["leaf-login"]}}}
RESOURCES = {"requests": {"cpu": "77m", "memory": "77Mi"}}
TOLERATIONS = [{"key": "odd-taint", "operator": "Exists"}]
ODD = {"odd": "label"}


@dataclass(frozen=True)
class Other:
    value: object
    seen: str  # stands in a line that the default does not make; "" = lines go, and none comes
    around: dict = field(default_factory=dict)  # what it says nothing without


OTHERS = {
    "mode": Other("observe", "name: heddle-observer"),
    "scope": Other("cluster", ""),
    "mutatingPolicies": Other("never", "heddle.dev/mutating-policies: never"),
    "managedResources": Other(["amd.com/gpu"], '"name": "amd.com/gpu"'),
    "image.registry": Other("reg.example/ai", "reg.example/ai/heddle:"),
    "image.repository": Other("other-name", "other-name:"),
    "image.tag": Other("9.9.9", "heddle:9.9.9"),
    "image.pullPolicy": Other("Always", "imagePullPolicy: Always"),
    "image.pullSecrets": Other(["registry-login"], '- name: "registry-login"'),
    "podLabels": Other(ODD, "odd: label"),
    "podAnnotations": Other(ODD, "odd: label"),
    "otherPlugins.rdmaShared.image": Other("a/b:1", "--rdma-shared-image=a/b:1"),
    "otherPlugins.sriov.image": Other("a/c:1", "--sriov-image=a/c:1"),
    "uninstall.timeoutSeconds": Other(97, "activeDeadlineSeconds: 97"),
    "uninstall.resources": Other(RESOURCES, "cpu: 77m"),
    "priorityClasses.control": Other("our-control", 'priorityClassName: "our-control"'),
    "priorityClasses.agents": Other("our-agents", 'priorityClassName: "our-agents"'),
    "apiPriority.controlShares": Other(97, "nominalConcurrencyShares: 97"),
    "apiPriority.agentShares": Other(97, "nominalConcurrencyShares: 97"),
    "networkPolicy.metricsFrom": Other([{"podSelector": ODD}], "odd: label", POLICIES),
    "networkPolicy.apiServer.ports": Other([8443], "port: 8443", POLICIES),
    "networkPolicy.apiServer.cidrs": Other(["10.1.2.3/32"], "10.1.2.3/32", POLICIES),
    "networkPolicy.dnsPorts": Other([8053], "{protocol: UDP, port: 8053}", POLICIES),
    "monitoring.podMonitors.interval": Other("97s", "interval: 97s", MONITORS),
    "monitoring.podMonitors.labels": Other(ODD, "odd: label", MONITORS),
    "monitoring.rules.labels": Other(ODD, "odd: label", RULES),
    "monitoring.rules.docs": Other("https://odd.example/docs", "runbook_url: https://odd.example/docs/", RULES),
    "monitoring.dashboard.labels": Other(ODD, "odd: label", DASHBOARD),
    "monitoring.dashboard.annotations": Other(ODD, "odd: label", DASHBOARD),
    "helmTest.timeoutSeconds": Other(97, "97"),
    "helmTest.resources": Other(RESOURCES, "cpu: 77m"),
    "cli.resources": Other(RESOURCES, "77m", {"cli": {"enabled": True}}),
    "operator.replicas": Other(3, "replicas: 3"),
    "operator.port": Other(9797, "--listen=:9797"),
    "operator.nodeSelector": Other(ODD, "odd: label"),
    "operator.tolerations": Other(TOLERATIONS, "odd-taint"),
    "operator.page.port": Other(9797, "--page=127.0.0.1:9797", {"operator": {"page": {"enabled": True}}}),
    "operator.switches.secrets": Other(["spine-login"], "spine-login", SWITCHES),
    "operator.switches.ports": Other([9797], "port: 9797", POLICIES),
    "operator.arguments": Other(["--log-level=debug"], "- --log-level=debug"),
    "operator.resources": Other(RESOURCES, "cpu: 77m"),
    "scheduler.replicas": Other(3, "replicas: 3"),
    "scheduler.image.registry": Other("reg.example", "reg.example/kube-scheduler:"),
    "scheduler.image.repository": Other("other-scheduler", "other-scheduler:"),
    "scheduler.image.tag": Other("v9.9.9", "kube-scheduler:v9.9.9"),
    "scheduler.nodeSelector": Other(ODD, "odd: label"),
    "scheduler.tolerations": Other(TOLERATIONS, "odd-taint"),
    "scheduler.resources": Other(RESOURCES, "cpu: 77m"),
    "extender.port": Other(9797, "--listen=127.0.0.1:9797"),
    "extender.metricsPort": Other(9797, "--metrics-listen=:9797"),
    "extender.timeoutSeconds": Other(7, '"httpTimeout": "7s"'),
    "extender.weight": Other(97, '"weight": 97'),
    "extender.spares": Other(3, "- --spares=3"),
    "extender.arguments": Other(["--log-level=debug"], "- --log-level=debug"),
    "extender.resources": Other(RESOURCES, "cpu: 77m"),
    "agent.port": Other(9797, "9797"),
    "agent.nodeSelector": Other(ODD, "odd: label"),
    "agent.tolerations": Other(TOLERATIONS, "odd-taint"),
    "agent.access.driver": Other("none", ""),
    "agent.access.infiniband": Other("none", ""),
    "agent.access.lldp": Other("none", ""),
    "agent.driver.root": Other("/opt/odd", "/opt/odd"),
    "agent.driver.runtimeClass": Other("odd-class", 'runtimeClassName: "odd-class"', {
        "agent": {"access": {"driver": "runtimeClass"}, "nodeSelector": {"gpu": "true"}}}),
    "agent.infiniband.resource": Other("rdma/odd", "rdma/odd", {
        "agent": {"access": {"infiniband": "resource"}, "infiniband": {"resource": "rdma/even"}}}),
    "agent.lldp.socket": Other("/run/odd/lldpd.socket", "/run/odd"),
    "agent.lldp.resources": Other(RESOURCES, "cpu: 77m", {"agent": {"access": {"lldp": "sidecar"}}}),
    "agent.labelsFile": Other("/etc/odd/labels", "/etc/odd"),
    "agent.uncabled": Other(["mlx5_97"], "mlx5_97"),
    "agent.storage": Other(["mlx5_97"], "mlx5_97"),
    "agent.devices.stateDir": Other("/var/lib/odd", "/var/lib/odd"),
    "agent.devices.ncclConf": Other("etc", "--nccl-conf=etc"),
    "agent.lossless.patienceSeconds": Other(97, "97", {"agent": {"lossless": {"enabled": True}}}),
    "agent.kubeletRoot": Other("/var/lib/odd", "/var/lib/odd"),
    "agent.arguments": Other(["--log-level=debug"], "- --log-level=debug"),
    "agent.resources": Other(RESOURCES, "cpu: 77m")}


class OtherValuesTest(ChartTextTestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.rendered = {}

    def lines(self, values):
        key = json.dumps(values, sort_keys=True)
        if key not in self.rendered:
            self.rendered[key] = self.render(values).splitlines()
        return self.rendered[key]

    def test_every_value_has_another_one_here(self):
        leaves = {value.path for value in values_in(VALUES.read_text()) if not isinstance(value.default, bool)}
        self.assertEqual(leaves, set(OTHERS))

    def test_another_value_is_another_chart(self):
        for path, other in OTHERS.items():
            with self.subTest(value=path):
                before = self.lines(other.around)
                after = self.lines(merged(other.around, nested(path, other.value)))
                self.assertNotEqual(after, before)
                came = set(after) - set(before)
                self.assertTrue(not other.seen or [line for line in came if other.seen in line],
                                f"{other.seen} stands in none of {sorted(came)}")

    def test_the_operator_hears_of_another_root_of_the_kubelet_where_it_runs_other_plugins(self):
        """Without, it would mount a folder that such a kubelet does not look at."""
        root, image = {"agent": {"kubeletRoot": "/var/lib/odd"}}, {"otherPlugins": {"sriov": {"image": "a/c:1"}}}
        for values, heard in ((merged(root, image), ["--kubelet-root=/var/lib/odd"]), (root, []), (image, [])):
            with self.subTest(values=values):
                command = pod_of(named(self.objects(values), "Deployment", "heddle-operator"))["spec"]["containers"][0]["command"]
                self.assertEqual([word for word in command if word.startswith("--kubelet-root")], heard)

    def test_the_operator_hears_of_the_registry_s_login_where_it_runs_other_plugins(self):
        """Without, their images could not be pulled out of a registry that all pods of the chart log in to."""
        login, image = {"image": {"pullSecrets": ["a", "b"]}}, {"otherPlugins": {"rdmaShared": {"image": "reg.example/b:1"}}}
        self.assertIn('add_option("--image-pull-secret", daemon.plugins.pods.pull_secrets', (REPOSITORY / "operator" / "main.cc").read_text())
        for values, heard in ((merged(login, image), ["--image-pull-secret=a", "--image-pull-secret=b"]), (login, []), (image, [])):
            with self.subTest(values=values):
                command = pod_of(named(self.objects(values), "Deployment", "heddle-operator"))["spec"]["containers"][0]["command"]
                self.assertEqual([word for word in command if word.startswith("--image-pull-secret")], heard)

    def test_the_operator_hears_of_the_words_of_all_pods_where_it_runs_other_plugins(self):
        """Without, the policies that ask for them would refuse the plugins' pods."""
        program = (REPOSITORY / "operator" / "main.cc").read_text()
        words = {"podLabels": {"team": "ai"}, "podAnnotations": {"a.b/c": '{"d": "$(e)=f"}'}}
        image = {"otherPlugins": {"sriov": {"image": "reg.example/b:1"}}}
        # The kubelet makes $( of $$(.
        heard = ["--plugin-pod-label=team=ai", '--plugin-pod-annotation=a.b/c={"d": "$$(e)=f"}']
        for flag in ("--plugin-pod-label", "--plugin-pod-annotation"):
            self.assertIn(f'add_option("{flag}"', program)
        for values, wanted in ((merged(words, image), heard), (words, []), (image, [])):
            with self.subTest(values=values):
                command = pod_of(named(self.objects(values), "Deployment", "heddle-operator"))["spec"]["containers"][0]["command"]
                self.assertEqual([word for word in command if word.startswith("--plugin-pod")], wanted)

    def test_the_operator_counts_as_gpus_what_admission_does(self):
        """It asks only with --nodes=gpu, and would then leave nodes with other GPUs than NVIDIA's without an agent."""
        self.assertIn('add_option("--gpu-resource", daemon.selection.gpu_resources', (REPOSITORY / "operator" / "main.cc").read_text())
        for names in (["nvidia.com/gpu"], ["amd.com/gpu", "heddle.dev/gpu"]):
            objects = self.objects({"managedResources": names, "operator": {"arguments": ["--nodes=gpu"]}})
            command = pod_of(named(objects, "Deployment", "heddle-operator"))["spec"]["containers"][0]["command"]
            self.assertEqual([word for word in command if "gpu" in word],
                             [*(f"--gpu-resource={name}" for name in names), "--nodes=gpu"])
