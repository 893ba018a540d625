"""What charts/heddle makes of its values, on paper: every value and version of Kubernetes, with helm and no cluster."""

import os
import re
import shutil
import tempfile
from itertools import count
from pathlib import Path

import yaml

from bed import REPOSITORY
from bed.heddle import CHART, NAMESPACE
from chart_text import FIXTURES, FREE, KUBERNETES, POLICIES, ChartTextTestCase, named, names, objects_in, pod_of, rights, values_in

VERSIONS = ("1.33.0", "1.34.4-gke.1201000", "1.35.2+k3s1", KUBERNETES, "1.37.0")
VALUES = CHART / "values.yaml"
DEFAULTS = yaml.safe_load(VALUES.read_text())
INSTALLING = REPOSITORY / "docs" / "installing.md"
EVERYTHING = {
    "computeDomains": {"enabled": True}, "networkPolicy": {"enabled": True, "apiServer": {"cidrs": ["10.96.0.1/32"]}},
    "monitoring": {"podMonitors": {"enabled": True, "labels": {"release": "kps"}, "scheduler": True}, "dashboard": {"enabled": True},
                   "rules": {"enabled": True, "docs": "https://git.example/docs/"}},
    "image": {"pullSecrets": ["registry"]}, "cli": {"enabled": True}, "agent": {"lossless": {"enabled": True, "hostPID": True},
                                                      "devices": {"followPlans": True}},
    "operator": {"nodeSelector": {"role": "infra"}, "tolerations": [{"key": "infra", "operator": "Exists"}]},
    "scheduler": {"nodeSelector": {"role": "infra"}}, "extender": {"spares": 1},
    "otherPlugins": {"rdmaShared": {"image": "a/b:1"}, "sriov": {"image": "a/c:1"}}}
NOTHING = {
    "components": {"run": False}, "crds": {"install": False}, "apiPriority": {"enabled": False},
    "extender": {"preemption": {"enabled": False}}}
# Of the Service, and of OpenShift's pods behind it: a plugin that looks at those cuts off who may reach 53 alone.
DNS = {(protocol, port) for protocol in ("UDP", "TCP") for port in (53, 5353)}
# A value that says nothing as long as another is off.
ONLY_WITH = {
    "computeDomains.byDefault": {"computeDomains": {"enabled": True}},
    "monitoring.podMonitors.scheduler": {"monitoring": {"podMonitors": {"enabled": True}}},
    "agent.lossless.hostPID": {"agent": {"lossless": {"enabled": True}}}}
CLUSTER_SCOPED = {
    "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "FlowSchema",
    "PriorityLevelConfiguration"}
# What people write, and what they are told: (value, what is wrong, a part of the sentence).
WRONG = (
    ("mode", "Observe", "at '/mode': value must be one of 'place', 'observe'"),
    ("scope", "all", "at '/scope': value must be one of 'namespaces', 'cluster'"),
    ("operator.replica", 3, "at '/operator': additional properties 'replica' not allowed"),
    ("extender.port", "8010", "at '/extender/port': got string, want integer"),
    ("crds.install", "yes", "at '/crds/install': got string, want boolean"),
    ("mutatingPolicies", True, "at '/mutatingPolicies': value must be one of 'auto', 'always', 'never'"),
    ("operator.replicas", 0, "operator.replicas is 0, so nobody would tell which fabric the nodes make"),
    ("scheduler.replicas", 0, "would wait for ever: write 1 or more, mode: observe to leave them alone, or `helm uninstall`"),
    ("managedResources", "nvidia.com/gpu", "at '/managedResources': got string, want array"),
    ("agent.lossless", True, "at '/agent/lossless': got boolean, want object"),
    ("agent.tolerations", {"operator": "Exists"}, "at '/agent/tolerations': got object, want array"),
    ("image.pullPolicy", "always", "value must be one of 'Always', 'IfNotPresent', 'Never'"),
    ("image.pullSecrets", [{"name": "registry"}], "at '/image/pullSecrets/0': got object, want string"),
    ("operator.resources", {"memory": "1Gi"}, "at '/operator/resources': additional properties 'memory' not allowed"),
    ("managedResources", ["gpu"], 'managedResources[0] is "gpu": write nvidia.com/gpu, amd.com/gpu or heddle.dev/gpu, as it'),
    ("managedResources", ["nvidia.com/gpu", "nvidia.com/gpu.shared"], 'managedResources[1] is "nvidia.com/gpu.shared": write'),
    ("managedResources", ["nvidia.com/gpu", "heddle.dev/fabric"], "(heddle.dev/fabric is managed without being named)"),
    ("operator.resources.requests.memory", "128MB", 'is "128MB", which is no quantity: write 128Mi (1024 times 1024) or 128M'),
    ("agent.resources.limits.cpu", "lots", 'agent.resources.limits.cpu is "lots", which is no quantity'),
    ("monitoring.podMonitors.interval", 30, "monitoring.podMonitors.interval is 30: write a time with its unit"),
    ("monitoring.podMonitors.interval", "30 s", 'is "30 s": write a time with its unit and no space'),
    ("monitoring.rules.docs", "docs/", 'is "docs/": write the URL under which your people read docs/'),
    ("networkPolicy.apiServer.cidrs", ["10.0.0.1"], '[0] is "10.0.0.1": write an address with the length of its prefix'),
    ("priorityClasses.control", "No Class", 'is "No Class": write the name of a PriorityClass'),
    ("image.registry", "https://registry.example", "write a host and a path as in an image's name, without https://"),
    ("scheduler.image.registry", "registry k8s io", 'scheduler.image.registry is "registry k8s io": write a host'),
    ("otherPlugins.sriov.image", "a b", 'otherPlugins.sriov.image is "a b": write an image'),
    ("agent.driver.root", "usr", 'agent.driver.root is "usr": write a folder of the node from / on'),
    ("agent.kubeletRoot", "/var/lib/kubelet/", "without a / at its end"),
    ("agent.devices.stateDir", "heddle", 'agent.devices.stateDir is "heddle": write a path of the node'),
    ("image.tag", "a b", 'image.tag is "a b": write a tag as the registry has it'),
    ("image.repository", "bad repo", 'image.repository is "bad repo": write an image\'s name in small letters, without tag'),
    ("image.repository", "heddle:0.1.0", 'image.repository is "heddle:0.1.0": write an image\'s name'),
    ("scheduler.image.tag", "v1.36.3 ", 'scheduler.image.tag is "v1.36.3 ": write a tag'),
    ("scheduler.image.repository", "Kube Scheduler", 'scheduler.image.repository is "Kube Scheduler": write an image\'s'),
    ("image.pullSecrets", ["Bad Name"], 'image.pullSecrets[0] is "Bad Name": write the name of a Secret in Heddle\'s namespace'),
    ("operator.switches.secrets", ["ok", "A b"], 'operator.switches.secrets[1] is "A b": write the name of a Secret'),
    ("agent.driver.runtimeClass", "Bad Class", 'agent.driver.runtimeClass is "Bad Class": write the name of a RuntimeClass'),
    ("operator.tolerations", [{"kye": "a"}], "at '/operator/tolerations/0': additional properties 'kye' not allowed"),
    ("agent.tolerations", [{"operator": "exists"}], "value must be one of 'Exists', 'Equal', 'Lt', 'Gt'"),
    ("monitoring.podMonitors.interval", "0s", 'is "0s": write a time with its unit and no space, longest unit first and over 0'),
    ("monitoring.podMonitors.interval", "30s1m", "longest unit first"),
    ("monitoring.podMonitors.interval", "", 'monitoring.podMonitors.interval is "": write a time'),
    ("networkPolicy.apiServer.cidrs", ["10.0.0.0/99"], '[0] is "10.0.0.0/99": write an address with the length of its'),
    ("networkPolicy.apiServer.cidrs", ["10.0.0.256/32"], '[0] is "10.0.0.256/32": write an address'),
    ("networkPolicy.apiServer.cidrs", ["fd00::/129"], '[0] is "fd00::/129": write an address'),
    ("networkPolicy.metricsFrom", [{"ipBlock": {}}], "at '/networkPolicy/metricsFrom/0/ipBlock': missing property 'cidr'"),
    ("networkPolicy.metricsFrom", [{"ipBlock": {"cidr": "10.0.0.1"}}], 'metricsFrom[0].ipBlock.cidr is "10.0.0.1": write an'),
    ("networkPolicy.metricsFrom", [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["x"]}}], 'ipBlock.except[0] is "x": write an'),
    ("networkPolicy.metricsFrom", [{"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}}], "write each as its own"),
    ("agent.uncabled", ["mlx5_["], 'agent.uncabled[0] is "mlx5_[": write DEVICE or DEVICE:PORT'),
    ("agent.uncabled", ["mlx5_[]"], 'agent.uncabled[0] is "mlx5_[]": write DEVICE'),
    ("agent.uncabled", ["mlx5_1:[2"], 'agent.uncabled[0] is "mlx5_1:[2": write DEVICE'),
    ("agent.storage", ["mlx5_2", "mlx5_[6"], 'agent.storage[1] is "mlx5_[6": write the name of an RDMA device'),
    ("agent.lldp.socket", "/lldpd.socket", 'agent.lldp.socket is "/lldpd.socket": write a path of the node from / on, in a folder'),
    ("agent.lldp.socket", "/run/../lldpd.socket", 'agent.lldp.socket is "/run/../lldpd.socket": write a path of the node'),
    ("agent.labelsFile", "/./labels", 'agent.labelsFile is "/./labels": write a path of the node'),
    ("extender.port", 8011, "extender.port and extender.metricsPort are both 8011: write two, such as 8010 and 8011"),
    ("extender.metricsPort", 8010, "extender.port and extender.metricsPort are both 8010: write two, such as 8010 and 8011"),
    ("extender.metricsPort", 10259, "which is that of kube-scheduler beside it, too: write another, such as 8011"),
    ("extender.port", 10259, "extender.port is 10259, which is that of kube-scheduler beside it, too: write another, such as 8010"),
    ("extender", {"port": 10259, "metricsPort": 8010}, "which is that of kube-scheduler beside it, too: write another, such as 8012"),
    ("extender", {"port": 8011, "metricsPort": 10259}, "which is that of kube-scheduler beside it, too: write another, such as 8012"),
    ("operator", {"page": {"enabled": True, "port": 8081}}, "operator.port and operator.page.port are both 8081: write two"),
    ("operator", {"port": 8090, "page": {"enabled": True}}, "are both 8090: write two, such as 8081 and 8090"),
    ("agent.port", 10250, "agent.port is 10250, which is the kubelet's own, and the agents are on their hosts' network: write"),
    ("agent.port", 10248, "agent.port is 10248, which is the kubelet's own"),
    ("uninstall.resources.limits.cpu", "lots", 'uninstall.resources.limits.cpu is "lots", which is no quantity'),
    ("helmTest.resources.limits.memory", "64MB", 'helmTest.resources.limits.memory is "64MB", which is no quantity'),
    ("agent.lldp.resources.requests.cpu", "x", 'agent.lldp.resources.requests.cpu is "x", which is no quantity'),
    ("podLabels", {"team": 7}, "at '/podLabels/team': got number, want string"),
    ("podLabels", {"team": "a/b"}, 'podLabels.team is "a/b": write up to 63 letters, digits'),
    ("podLabels", {"team": "a" * 64}, "write up to 63 letters, digits"),
    ("podLabels", {"a b": "x"}, 'a key of podLabels is "a b": write it as Kubernetes has keys'),
    ("podAnnotations", {"/x": "x"}, 'a key of podAnnotations is "/x": write it as Kubernetes has keys'),
    # What Deployments select their pods by, and what the scheduler's pods have already.
    ("podLabels", {"app.kubernetes.io/name": "x"}, "podLabels has app.kubernetes.io/name, which is the chart's own on its pods"),
    ("podLabels", {"app.kubernetes.io/component": "x"}, "write it under another key"),
    ("podAnnotations", {"heddle.dev/config": "x"}, "podAnnotations has heddle.dev/config, which is the chart's own on its pods"),
    ("podAnnotations", {"helm.sh/hook": "pre-install"}, "podAnnotations has helm.sh/hook, which is the chart's own on its pods"),
    ("monitoring.podMonitors.labels", {"app.kubernetes.io/name": "x"},
     "monitoring.podMonitors.labels has app.kubernetes.io/name, which is the chart's own on its objects: write it under another key, "
     "or select by it as it is, heddle"),
    ("monitoring.rules.labels", {"helm.sh/chart": "x"}, "monitoring.rules.labels has helm.sh/chart, which is the chart's own"),
    ("monitoring.dashboard.labels", {"app.kubernetes.io/managed-by": "x"}, "monitoring.dashboard.labels has app.kubernetes.io/managed-by"))


def nested(path, value):
    """a.b.c as a dict of dicts."""
    for key in reversed(path.split(".")):
        value = {key: value}
    return value


def merged(one, other):
    out = dict(one)
    for key, value in other.items():
        out[key] = merged(out[key], value) if isinstance(value, dict) and isinstance(out.get(key), dict) else value
    return out


class MatrixTest(ChartTextTestCase):

    VARIANTS = ({}, {"mode": "observe"}, {"scope": "cluster"}, EVERYTHING, merged(EVERYTHING, {"mode": "observe"}), NOTHING,
                {"operator": {"replicas": 1}, "scheduler": {"replicas": 1}})

    def test_every_version_and_variant_is_whole(self):
        for version in VERSIONS:
            for number, values in zip(count(), self.VARIANTS):
                with self.subTest(version=version, variant=number):
                    objects = self.objects(values, version=version)
                    self.assertTrue(objects)
                    self.assert_whole(objects)
                    gated = "heddle-gang" in names(objects, "MutatingAdmissionPolicy")
                    self.assertEqual(gated, values.get("mode") != "observe" and version in (KUBERNETES, "1.37.0"))

    def assert_whole(self, objects):
        keys = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in objects]
        self.assertEqual(len(keys), len(set(keys)), "an object twice")
        accounts, roles = names(objects, "ServiceAccount"), names(objects, "ClusterRole")
        for one in objects:
            name = f'{one["kind"]} {one["metadata"]["name"]}'
            wanted = None if one["kind"] in CLUSTER_SCOPED else NAMESPACE
            if one["metadata"]["name"] != "heddle-scheduler-authentication-reader":
                self.assertEqual(one["metadata"].get("namespace"), wanted, name)
            if one["kind"] == "ClusterRoleBinding" and not one["roleRef"]["name"].startswith("system:"):
                self.assertIn(one["roleRef"]["name"], roles)
            for subject in one.get("subjects", []):
                self.assertIn(subject["name"], accounts, name)
            if one["kind"] in ("Role", "ClusterRole"):
                self.assertFalse([right for right in rights(one) if "*" in right or right[1] == "secrets"], name)
            if pod_of(one):
                self.assert_decent(one, pod_of(one), accounts)

    def assert_decent(self, one, pod, accounts):
        name, spec = one["metadata"]["name"], pod["spec"]
        self.assertIn(spec["serviceAccountName"], accounts, name)
        self.assertIs(spec["automountServiceAccountToken"], False, name)
        if one["kind"] in ("Deployment", "DaemonSet"):
            wanted = one["spec"]["selector"]["matchLabels"]
            self.assertEqual({key: pod["metadata"]["labels"].get(key) for key in wanted}, wanted)
        for container in spec["containers"] + spec.get("initContainers", []):
            self.assertTrue(container["resources"]["requests"], name)
            self.assertIs(container["securityContext"]["readOnlyRootFilesystem"], True, name)
        if name != "heddle-nodeagent":
            self.assertIs(spec["securityContext"]["runAsNonRoot"], True, name)
            self.assertNotIn("hostNetwork", spec, name)

    def test_a_chart_whose_version_says_what_it_was_built_of_has_labels_that_are_taken(self):
        """Flux adds the digest of what it pulled, and pipelines the commit, behind a + that the API server refuses. In the name of
        an image the kubelet does (InvalidImageName)."""
        for build, wanted in (("cbe3e8d0c3ef", "heddle-0.1.0_cbe3e8d0c3ef"), ("a" * 49 + "-b", "heddle-0.1.0_" + "a" * 49)):
            chart = Path(self.enterContext(tempfile.TemporaryDirectory())) / "heddle"
            shutil.copytree(CHART, chart)
            about = chart / "Chart.yaml"
            about.write_text(re.sub(r"(?m)^(version|appVersion): .*", rf"\g<0>+{build}", about.read_text()))
            objects = [one for one in self.objects(EVERYTHING, chart=chart) if one["kind"] != "CustomResourceDefinition"]
            for one in objects:
                for label in one["metadata"]["labels"].values():
                    self.assertRegex(label, r"^(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?$")
            self.assertEqual({one["metadata"]["labels"].get("helm.sh/chart", wanted) for one in objects}, {wanted})
            # As `kubectl heddle doctor` compares them.
            tag = f"0.1.0-{build}"
            self.assertEqual({one["metadata"]["labels"].get("app.kubernetes.io/version", tag) for one in objects}, {tag})
            self.assertEqual({container["image"].partition(":")[2] for one in filter(pod_of, objects)
                              for container in pod_of(one)["spec"]["containers"] if container["name"] != "scheduler"}, {tag})

    def test_a_copy_of_the_chart_without_the_files_that_it_links_to_is_refused(self):
        """It would install all but the CRDs, and every daemon would wait for them."""
        chart = Path(self.enterContext(tempfile.TemporaryDirectory())) / "heddle"
        shutil.copytree(CHART, chart, symlinks=True)
        links = [file for file in (chart / "files").iterdir() if file.is_symlink()]
        self.assertEqual({file.name for file in links}, {"crds", "defaults.yaml"})
        for as_text in (True, False):  # as Git writes them on Windows; as Flux leaves them out
            for file in links:
                target = file.readlink() if file.is_symlink() else "../values.yaml"
                file.unlink()
                if as_text:
                    file.write_text(str(target))
            done = self.helm("template", "heddle", chart, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("this copy of the chart lacks its CRDs", done.stderr)
            self.assertTrue(self.render({"crds": {"install": False}}, chart=chart))

    def test_lint_is_clean_with_everything_on_and_off(self):
        for values in (EVERYTHING, NOTHING):
            said = self.helm("lint", "--strict", CHART, values=values).stdout
            self.assertNotIn("[WARNING]", said)
            self.assertNotIn("[ERROR]", said)

    def test_a_cluster_that_is_too_old_is_refused_with_both_versions(self):
        done = self.helm("template", "heddle", CHART, "--kube-version", "1.32.9", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("requires kubeVersion: >=1.33.0", done.stderr)
        self.assertIn("1.32.9", done.stderr)

    def test_without_a_cluster_to_ask_the_version_says_whether_pods_are_gated(self):
        """As Argo CD, and whoever pipes `helm template` into kubectl. A list that names Pods is a cluster's own."""
        policies = {"heddle-gang", "heddle-compute-domain"}
        for version, listed, value, gated in (
                ("1.35.2+k3s1", [], "auto", False), ("1.36.0-gke.5", [], "auto", True), ("1.37.0", [], "auto", True),
                ("1.36.3", ["v1/Pod"], "auto", False), ("1.36.3", ["v1/Pod", POLICIES], "auto", True),
                ("1.35.2", [], "always", True), ("1.35.2", ["v1/Pod", POLICIES], "auto", True),
                ("1.36.3", [], "never", False), ("1.36.3", ["v1/Pod", POLICIES], "never", False)):
            with self.subTest(version=version, listed=listed, value=value):
                served = [word for one in listed for word in ("--api-versions", one)]
                objects = objects_in(self.helm(
                    "template", "heddle", CHART, "--namespace", NAMESPACE, "--kube-version", version, *served,
                    values={"mutatingPolicies": value, "computeDomains": {"enabled": True}}).stdout)
                self.assertEqual(names(objects, "MutatingAdmissionPolicy"), policies if gated else set())
                self.assertEqual(names(objects, "MutatingAdmissionPolicyBinding"), policies if gated else set())
                # What doctor reads; a cluster that is too old is no choice.
                guard = named(objects, "ValidatingAdmissionPolicy", "heddle-plan")
                self.assertEqual(guard["metadata"].get("annotations"),
                                 {"heddle.dev/mutating-policies": "never"} if value == "never" else None)
                # By which doctor knows that ComputeDomains are wanted, also where no pod gets their claims.
                self.assertIn("heddle-compute-domains", names(objects, "ValidatingAdmissionPolicy"))
                self.assertIn("heddle-control", names(objects, "FlowSchema"))

    def test_a_cluster_that_does_not_serve_what_is_asked_for_is_refused_with_what_to_do(self):
        done = self.helm("template", "heddle", CHART, "--kube-version", "1.35.2", "--api-versions", "v1/Pod",
                         values={"mutatingPolicies": "always"}, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("this cluster (v1.35.2) serves no MutatingAdmissionPolicy", done.stderr)
        self.assertIn("write auto and prepare each Job: kubectl heddle prepare -f job.yaml", done.stderr)

    def test_without_the_api_of_priority_and_fairness_nothing_else_is_missing(self):
        """Old defaults of helm's own are served by `helm template`, so it is turned off here."""
        with_it, without = self.objects(), self.objects({"apiPriority": {"enabled": False}})
        kinds = ("FlowSchema", "PriorityLevelConfiguration")
        self.assertEqual(names(with_it, *kinds), {"heddle-control", "heddle-agents", "heddle-leader-election"})
        self.assertEqual([one for one in with_it if one["kind"] not in kinds], without)


class SwitchesTest(ChartTextTestCase):

    def test_every_switch_does_something(self):
        """A value that changes nothing is a promise that nobody keeps."""
        for value in values_in(VALUES.read_text()):
            if not isinstance(value.default, bool):
                continue
            with self.subTest(value=value.path):
                around = ONLY_WITH.get(value.path, {})
                self.assertNotEqual(self.render(merged(around, nested(value.path, not value.default))), self.render(around))

    def test_unknown_keys_are_refused_everywhere(self):
        def maps(tree, path=""):
            for key, value in tree.items():
                if isinstance(value, dict) and key not in FREE:
                    yield f"{path}{key}."
                    yield from maps(value, f"{path}{key}.")
        for path in ["", *maps(DEFAULTS)]:
            with self.subTest(at=path):
                done = self.helm("template", "heddle", CHART, values=nested(f"{path}typo", 1), check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("additional properties 'typo' not allowed", done.stderr)

    def test_wrong_values_are_refused(self):
        for path, wrong in (("uninstall.timeoutSeconds", 0), ("apiPriority.agentShares", 0),
                            ("networkPolicy.apiServer.ports", []), ("networkPolicy.metricsFrom", [{"pods": {}}]),
                            ("image.pullSecrets", [""]), ("operator.nodeSelector", {"gpu": True})):
            with self.subTest(value=path):
                self.assert_refused(nested(path, wrong), "values don't meet the specifications of the schema")

    def test_a_wrong_value_is_refused_with_what_to_write_instead(self):
        for path, wrong, sentence in WRONG:
            with self.subTest(value=path, wrong=wrong):
                self.assert_refused(nested(path, wrong), sentence)

    def assert_refused(self, values, sentence):
        done = self.helm("template", "heddle", CHART, values=values, check=False)
        self.assertNotEqual(done.returncode, 0, values)
        self.assertIn(sentence, done.stderr)

    def test_gpus_have_the_names_that_the_programs_know(self):
        """Of another one a gang would be held at the gate and refused as NoGpus."""
        array = re.search(r"kGpuResources\{([^}]*)\}", (REPOSITORY / "crds" / "gpu_indexes.h").read_text())[1]
        known = re.findall(r'"([^"]+)"', array)
        self.assertGreaterEqual(len(known), 3)
        self.assertTrue(self.render({"managedResources": known}))
        said = self.helm("template", "heddle", CHART, values={"managedResources": ["example.com/gpu"]}, check=False).stderr
        sentence = said.partition("write ")[2].partition(", as it stands")[0]
        self.assertEqual(sorted(sentence.replace(" or ", ", ").split(", ")), sorted(known))

    def test_no_pattern_is_shown_to_anybody(self):
        """Helm says of one that a value does not match it, and nobody reads a regular expression."""
        self.assertNotIn('"pattern"', (CHART / "values.schema.json").read_text())

    def test_what_looks_odd_and_is_right_is_taken(self):
        for values in ({"operator": {"resources": {"limits": {"cpu": 2, "memory": 134217728, "example.com/x": "1"}}}},
                       {"operator": {"resources": {"requests": {"cpu": 0.5, "memory": "1e8"}}}},
                       {"image": {"registry": "localhost:5000/"}}, {"scheduler": {"image": {"registry": "[fd00::1]:5000/k8s"}}},
                       {"networkPolicy": {"enabled": True, "apiServer": {"cidrs": ["fd00::1/128"]}}},
                       {"monitoring": {"podMonitors": {"enabled": True, "interval": "1m30s"}}},
                       {"image": {"repository": "registry.example:5000/ai/heddle", "tag": f"0.1.0@sha256:{'0a' * 32}"}},
                       {"networkPolicy": {"enabled": True, "metricsFrom": [{"ipBlock": {"cidr": "::/0", "except": ["fd00::1/128"]}}]}},
                       {"networkPolicy": {"enabled": True, "apiServer": {"cidrs": ["0.0.0.0/0", "::ffff:10.0.0.1/128"]}}},
                       {"agent": {"tolerations": [{"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute",
                                                   "tolerationSeconds": 3}]}},
                       {"agent": {"uncabled": ["mlx5_*", "mlx5_[!4-5]:[12]", "mlx5_1:?"], "storage": ["mlx5_[67]"]}},
                       {"agent": {"lldp": {"socket": "/run/.lldpd/lldpd..socket"}, "labelsFile": "/etc/..heddle/labels"}},
                       {"mode": "observe", "extender": {"port": 8010}}, {"agent": {"driver": {"root": "/run/nvidia/driver"}}}):
            with self.subTest(values=values):
                self.assertTrue(self.render(values))

    def test_one_replica_has_no_budget_that_would_stop_every_drain(self):
        self.assertEqual(names(self.objects(), "PodDisruptionBudget"), {"heddle-operator", "heddle-scheduler"})
        self.assertEqual(names(self.objects({"mode": "observe"}), "PodDisruptionBudget"),
                         {"heddle-operator", "heddle-observer"})
        one = self.objects({"operator": {"replicas": 1}, "scheduler": {"replicas": 3}})
        self.assertEqual(names(one, "PodDisruptionBudget"), {"heddle-scheduler"})
        budget = named(one, "PodDisruptionBudget", "heddle-scheduler")["spec"]
        pods = pod_of(named(one, "Deployment", "heddle-scheduler"))["metadata"]["labels"]
        self.assertLessEqual(budget["selector"]["matchLabels"].items(), pods.items())

    def test_a_quota_admits_the_classes_of_the_system_and_only_those(self):
        def of(values, mode="place"):
            objects = self.objects({"priorityClasses": values, "mode": mode})
            classes = {pod_of(one)["spec"].get("priorityClassName") for one in objects
                       if one["kind"] in ("Deployment", "DaemonSet")}
            quotas = [one["spec"]["scopeSelector"]["matchExpressions"][0]["values"] for one in objects
                      if one["kind"] == "ResourceQuota"]
            return classes, quotas
        self.assertEqual(of({}), ({"system-cluster-critical", "system-node-critical"},
                                  [["system-cluster-critical", "system-node-critical"]]))
        self.assertEqual(of({}, "observe"), of({}))
        self.assertEqual(of({"control": "ours"}), ({"ours", "system-node-critical"}, [["system-node-critical"]]))
        self.assertEqual(of({"control": "", "agents": "ours"}), ({None, "ours"}, []))
        self.assertEqual(of({"quota": False})[1], [])
        # Nor do pods that the operator makes lack it, whose class is one of the system's whatever the values say.
        made = re.search(r'"priorityClassName", "([^"]+)"', (REPOSITORY / "operator" / "other_plugins.cc").read_text())[1]
        for plugin in ("rdmaShared", "sriov"):
            ours = {"priorityClasses": {"control": "", "agents": "ours"}, "otherPlugins": {plugin: {"image": "a/b:1"}}}
            quota = named(self.objects(ours), "ResourceQuota", "heddle-critical-pods")["spec"]
            self.assertEqual(quota["scopeSelector"]["matchExpressions"][0]["values"], [made])

    def test_network_policies_let_scrapers_in_and_the_api_server_and_dns_be_asked(self):
        self.assertEqual(names(self.objects(), "NetworkPolicy"), set())
        objects = self.objects({"networkPolicy": {"enabled": True}})
        self.assertEqual(names(objects, "NetworkPolicy"), {"heddle-nodeagent", "heddle-operator", "heddle-scheduler",
                                                         "heddle-test", "heddle-uninstall"})
        for component, kind, ports in (("operator", "Deployment", [8081]), ("scheduler", "Deployment", [8011, 10259]),
                                       ("nodeagent", "DaemonSet", [9559])):
            policy = named(objects, "NetworkPolicy", f"heddle-{component}")["spec"]
            pod = pod_of(named(objects, kind, f"heddle-{component}"))
            self.assertLessEqual(policy["podSelector"]["matchLabels"].items(), pod["metadata"]["labels"].items())
            self.assertEqual([port["port"] for port in policy["ingress"][0]["ports"]], ports)
            # What is scraped is what the containers say that they serve.
            self.assertEqual({port["containerPort"] for c in pod["spec"]["containers"] for port in c["ports"]}, set(ports))
            self.assertEqual(policy["ingress"][0]["from"], DEFAULTS["networkPolicy"]["metricsFrom"])
            api, *switches, dns = policy["egress"]
            self.assertEqual([port["port"] for rule in switches for port in rule["ports"]],
                             DEFAULTS["operator"]["switches"]["ports"] if component == "operator" else [])
            self.assertEqual(([port["port"] for port in api["ports"]], api.get("to")), ([443, 6443], None))
            self.assertEqual({(port["protocol"], port["port"]) for port in dns["ports"]}, DNS)
        closed = self.objects({"networkPolicy": {"enabled": True, "metricsFrom": [], "apiServer": {
            "ports": [8443], "cidrs": ["10.0.0.0/8", "fd00::/8"]}, "dnsPorts": [8053]}})
        policy = named(closed, "NetworkPolicy", "heddle-operator")["spec"]
        self.assertEqual([port["port"] for port in policy["egress"][-1]["ports"]], [8053, 8053])
        self.assertNotIn("ingress", policy)
        self.assertEqual(policy["egress"][0], {"ports": [{"protocol": "TCP", "port": 8443}], "to": [
            {"ipBlock": {"cidr": "10.0.0.0/8"}}, {"ipBlock": {"cidr": "fd00::/8"}}]})
        observing = self.objects({"networkPolicy": {"enabled": True}, "mode": "observe"})
        self.assertEqual(named(observing, "NetworkPolicy", "heddle-observer")["spec"]["ingress"][0]["ports"],
                         [{"protocol": "TCP", "port": 8010}])

    def test_the_command_in_the_cluster_is_off_and_reads_only(self):
        self.assertFalse([one for one in self.objects() if one["metadata"]["name"] == "heddle-cli"])
        self.assertFalse(names(self.objects({"cli": {"enabled": True}, "components": {"run": False}}), "Deployment"))
        objects = self.objects({"cli": {"enabled": True}, "networkPolicy": {"enabled": True}})
        written = {right for kind in ("ClusterRole", "Role") for right in rights(named(objects, kind, "heddle-cli"))
                   if right[2] not in ("get", "list")}
        # Asking what somebody may do is a create, and changes nothing.
        self.assertEqual(written, {("authorization.k8s.io", "subjectaccessreviews", "create")})
        self.assertFalse({right for kind in ("ClusterRole", "Role") for right in rights(named(objects, kind, "heddle-cli"))
                          if right[1] in ("secrets", "configmaps", "pods/exec")})
        spec = pod_of(named(objects, "Deployment", "heddle-cli"))["spec"]
        self.assertEqual((spec["serviceAccountName"], spec["securityContext"]["runAsUser"]), ("heddle-cli", 65532))
        self.assertEqual(spec["containers"][0]["command"], ["kubectl-heddle", "wait"])
        self.assertEqual(spec["containers"][0]["image"], pod_of(named(objects, "Deployment", "heddle-operator"))["spec"][
            "containers"][0]["image"])
        policy = named(objects, "NetworkPolicy", "heddle-cli")["spec"]
        self.assertNotIn("ingress", policy)
        self.assertEqual([port["port"] for rule in policy["egress"] for port in rule["ports"]], [443, 6443, 53, 53, 5353, 5353])

    def test_the_command_in_the_cluster_may_read_what_it_asks_for(self):
        """Every kind that cli/ lists or gets, but what `release` changes, is in its role."""
        role = named(self.objects({"cli": {"enabled": True}}), "ClusterRole", "heddle-cli")
        code = "".join(file.read_text() for file in sorted((REPOSITORY / "cli").glob("*.cc")))
        asked = set(re.findall(r'\{?"([a-z.0-9-]*)",\s*"v\d\w*",\s*"(\w+)",', code))
        self.assertGreater(len(asked), 10)
        missing = {(group, kind) for group, kind in asked if not rights(role) & {(group, kind, "list"), (group, kind, "create")}}
        self.assertEqual(missing, set())


class HooksTest(ChartTextTestCase):

    def hooks(self, word, values=None):
        return [one for one in self.objects(values) if word in one["metadata"].get("annotations", {}).get("helm.sh/hook", "")]

    def test_what_an_uninstall_hands_back_comes_last_and_may_no_more_than_it_needs(self):
        hooks = self.hooks("post-delete")
        self.assertEqual(sorted((one["kind"], one["metadata"]["name"]) for one in hooks), [
            ("ClusterRole", "heddle-uninstall"), ("ClusterRoleBinding", "heddle-uninstall"), ("Job", "heddle-uninstall"),
            ("ServiceAccount", "heddle-uninstall")])
        for one in hooks:
            notes = one["metadata"]["annotations"]
            self.assertEqual((notes["helm.sh/hook"], notes["helm.sh/hook-delete-policy"]),
                             ("post-delete", "before-hook-creation,hook-succeeded"))
        weights = {one["kind"]: int(one["metadata"]["annotations"]["helm.sh/hook-weight"]) for one in hooks}
        self.assertLess(weights["ServiceAccount"], weights["ClusterRoleBinding"])
        self.assertLess(weights["ClusterRole"], weights["ClusterRoleBinding"])
        self.assertLess(weights["ClusterRoleBinding"], weights["Job"])
        switched = {("batch", "jobs"), ("jobset.x-k8s.io", "jobsets"), ("kubeflow.org", "pytorchjobs"),
                    ("kubeflow.org", "mpijobs"), ("ray.io", "rayclusters"), ("ray.io", "rayjobs"),
                    ("trainer.kubeflow.org", "trainjobs")}
        role = named(hooks, "ClusterRole", "heddle-uninstall")
        self.assertEqual(rights(role), {(*kind, verb) for kind in switched for verb in ("get", "list", "patch")} | {
            ("", "pods", "list"), ("", "pods", "delete"),
            ("apps", "replicasets", "get"), ("apps", "statefulsets", "get"), ("apps", "daemonsets", "get"),
            ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings", "get")})
        # All kinds that have a switch, as the code lists them.
        code = (REPOSITORY / "kube" / "suspend_switch.cc").read_text()
        self.assertEqual({("batch", "jobs")} | set(re.findall(r'custom\("([a-z.0-9-]+)", "\w+", "(\w+)"', code)), switched)

    def test_an_uninstall_leaves_its_log_where_it_failed(self):
        job = named(self.hooks("post-delete", {"uninstall": {"timeoutSeconds": 90}}), "Job", "heddle-uninstall")
        # A deadline of the Job would delete the pod with its log.
        self.assertNotIn("activeDeadlineSeconds", job["spec"])
        self.assertNotIn("ttlSecondsAfterFinished", job["spec"])
        spec = job["spec"]["template"]["spec"]
        self.assertEqual((spec["activeDeadlineSeconds"], spec["restartPolicy"]), (90, "Never"))
        self.assertNotIn("hook-failed", job["metadata"]["annotations"]["helm.sh/hook-delete-policy"])
        self.assertIn("hook-failed", job["metadata"]["annotations"]["helm.sh/hook-output-log-policy"])
        self.assertEqual(spec["containers"][0]["command"], ["kubectl-heddle", "release", "--all"])
        # The quota that would admit a class of the system is gone by then.
        self.assertNotIn("priorityClassName", spec)

    def test_what_is_off_is_not_there(self):
        for values in ({"uninstall": {"release": False}}, {"components": {"run": False}}):
            self.assertEqual(self.hooks("post-delete", values), [])
        for values in ({"helmTest": {"enabled": False}}, {"components": {"run": False}}):
            self.assertEqual(self.hooks("test", values), [])

    def test_pods_of_hooks_reach_the_api_server_in_a_namespace_that_denies_everything(self):
        for hook, kind, name in (("post-delete", "Job", "heddle-uninstall"), ("test", "Pod", "heddle-test")):
            with self.subTest(hook=hook):
                self.assertEqual(names(self.hooks(hook), "NetworkPolicy"), set())
                hooks = self.hooks(hook, {"networkPolicy": {"enabled": True, "apiServer": {"cidrs": ["10.0.0.1/32"]}}})
                policy, runs = named(hooks, "NetworkPolicy", name), named(hooks, kind, name)
                # It is there before the pod, and gone with it.
                weights = [int(one["metadata"]["annotations"]["helm.sh/hook-weight"]) for one in (policy, runs)]
                self.assertLess(*weights)
                self.assertEqual(*(one["metadata"]["annotations"]["helm.sh/hook-delete-policy"] for one in (policy, runs)))
                self.assertEqual(policy["spec"]["podSelector"]["matchLabels"], pod_of(runs)["metadata"]["labels"])
                self.assertEqual(policy["spec"]["policyTypes"], ["Ingress", "Egress"])
                self.assertNotIn("ingress", policy["spec"])
                api, dns = policy["spec"]["egress"]
                self.assertEqual(([port["port"] for port in api["ports"]], api["to"]),
                                 ([443, 6443], [{"ipBlock": {"cidr": "10.0.0.1/32"}}]))
                self.assertEqual({(port["protocol"], port["port"]) for port in dns["ports"]}, DNS)
        for values in ({"uninstall": {"release": False}, "helmTest": {"enabled": False}}, {"components": {"run": False}}):
            hooks = self.objects({**values, "networkPolicy": {"enabled": True}})
            self.assertFalse(names(hooks, "NetworkPolicy") & {"heddle-uninstall", "heddle-test"})

    def test_a_test_only_reads(self):
        hooks = self.hooks("test")
        self.assertEqual({one["kind"] for one in hooks}, {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Pod"})
        role = named(hooks, "ClusterRole", "heddle-test")
        self.assertEqual(rights(role), {("heddle.dev", "nodetopologies", "list"), ("heddle.dev", "fabrics", "list")})


class OlderValuesTest(ChartTextTestCase):
    """`helm upgrade --reuse-values` puts the values of the last release in the place of values.yaml."""

    def with_values(self, values):
        """A chart as that upgrade sees it."""
        chart = Path(self.enterContext(tempfile.TemporaryDirectory())) / "heddle"
        shutil.copytree(CHART, chart)
        (chart / "values.yaml").write_text(yaml.safe_dump(values))
        return chart

    def test_what_an_older_chart_did_not_know_is_as_by_default(self):
        fixtures = sorted(FIXTURES.glob("values-*.yaml"))
        self.assertGreaterEqual(len(fixtures), 2)
        for fixture in fixtures:
            old = yaml.safe_load(fixture.read_text())
            self.assertTrue({value.path for value in values_in(VALUES.read_text())} >
                            {value.path for value in values_in(fixture.read_text())})
            with self.subTest(values=fixture.name):
                self.assertEqual(self.render(chart=self.with_values(old)), self.render(old))

    def test_even_nothing_is_enough(self):
        self.assertEqual(self.render(chart=self.with_values({})), self.render())

    def test_a_false_and_a_zero_of_then_stay_so(self):
        old = yaml.safe_load((FIXTURES / "values-2026-11-23.yaml").read_text())
        chosen = merged(old, {"crds": {"keep": False}, "extender": {"preemption": {"enabled": False}},
                              "agent": {"tolerations": [], "lossless": {"enabled": True, "patienceSeconds": 0}}})
        self.assertEqual(self.render(chart=self.with_values(chosen)), self.render(chosen))
        objects = self.objects(chart=self.with_values(chosen))
        agent = pod_of(named(objects, "DaemonSet", "heddle-nodeagent"))["spec"]
        self.assertIn("--lossless-patience=0", agent["containers"][0]["command"])
        self.assertNotIn("tolerations", agent)

    def test_what_a_person_took_out_stays_out(self):
        objects = self.objects({"operator": {"resources": {"requests": {"cpu": None}}}})
        container = pod_of(named(objects, "Deployment", "heddle-operator"))["spec"]["containers"][0]
        self.assertEqual(container["resources"], {"requests": {"memory": "128Mi"}})

    def test_every_template_fills_in_what_is_missing(self):
        """Which one helm renders first is helm's affair."""
        templates = [file for file in (CHART / "templates").iterdir() if file.suffix in (".yaml", ".txt")]
        self.assertGreater(len(templates), 15)
        for file in templates:
            first = next(line for line in file.read_text().splitlines() if line.startswith("{{- include") or (
                line.startswith("{{") and not line.startswith("{{- /*")))
            self.assertTrue(first.startswith('{{- include "heddle.defaults" . '), f"{file.name}: {first}")


class WordsTest(ChartTextTestCase):

    def notes(self, values=None, *arguments):
        said = self.helm("install", "heddle", CHART, "--namespace", "ml", "--dry-run=client", *arguments,
                         values=values).stdout
        return said.partition("NOTES:\n")[2]

    def test_the_notes_say_the_next_command(self):
        for values, sentences in (
                ({}, ["helm test heddle --namespace ml", "kubectl get nodetopologies", "heddle.dev/parallelism",
                      "kubectl label namespace ml --overwrite pod-security.kubernetes.io/enforce=privileged"]),
                ({"mutatingPolicies": "never"}, ["mutatingPolicies is never, so Jobs are not gated by themselves",
                                                 "kubectl heddle prepare -f job.yaml"]),
                ({"mode": "observe"}, ["kubectl heddle observe", "--set mode=place"]),
                ({"mode": "observe", "image": {"registry": "registry.example/ai"}},
                 ["out of registry.example/ai: where it has none, add --set scheduler.image.registry=registry.k8s.io"]),
                ({"components": {"run": False}}, ["no daemon was started here"]),
                ({"agent": {"devices": {"enabled": False}}}, ["no node offers heddle.dev/fabric, so gangs are not told to ask"]),
                ({"agent": {"devices": {"enabled": False}}, "mutatingPolicies": "never"},
                 ["kubectl heddle prepare -f job.yaml --without-fabric | kubectl create -f -"]),
                ({"uninstall": {"release": False}}, ["kubectl heddle release --all"]),
                ({"computeDomains": {"enabled": True}}, ["install NVIDIA's DRA driver"]),
                ({"computeDomains": {"enabled": True}, "mutatingPolicies": "never"},
                 ["mutatingPolicies is never, so no pod gets the claim of a ComputeDomain, and gangs that ask for one wait",
                  "helm upgrade heddle ... --namespace ml --reset-then-reuse-values --set mutatingPolicies=auto"]),
                ({"cli": {"enabled": True}}, ["tools/kubectl-heddle.sh, in PATH as kubectl-heddle"]),
                ({"agent": {"access": {"driver": "none"}}}, ["publish all of them as unhealthy"])):
            with self.subTest(values=values):
                said = self.notes(values)
                for sentence in sentences:
                    self.assertIn(sentence, said)
                self.assertNotIn("<no value>", said)
                self.assertNotIn("\n\n\n", said)

    def test_the_notes_miss_no_claims_where_pods_get_them_or_nobody_wants_any(self):
        for values in ({"mutatingPolicies": "never"}, {"computeDomains": {"enabled": True}, "mutatingPolicies": "always"},
                       {"computeDomains": {"enabled": True}, "mutatingPolicies": "never", "mode": "observe"}):
            with self.subTest(values=values):
                self.assertNotIn("no pod gets the claim", self.notes(values))

    def test_the_table_of_the_docs_has_every_value(self):
        page = INSTALLING.read_text()
        head, begin, rest = page.partition("<!-- values: charts/heddle/values.yaml -->\n")
        old, end, tail = rest.partition("<!-- end of values -->")
        self.assertTrue(begin and end, "the marks around the table")
        table = table_of(values_in(VALUES.read_text()))
        if os.environ.get("UPDATE_GOLDEN"):
            INSTALLING.write_text(head + begin + table + end + tail)
            return
        self.assertEqual(old, table, "UPDATE_GOLDEN=1 writes it anew")

    def test_pages_name_no_value_that_there_is_not(self):
        """Helm refuses a value that it does not know, so who copies one from a page has to find it in the chart."""
        pages = [REPOSITORY / "README.md", CHART / "templates" / "NOTES.txt", CHART / "rules" / "heddle.yaml",
                 *sorted((REPOSITORY / "docs").rglob("*.md"))]
        word = re.compile(rf"(?<![\w./-])(?:{'|'.join(DEFAULTS)})(?:\.[A-Za-z]\w*)+(?![\w(/])")
        named = [(page.relative_to(REPOSITORY), path) for page in pages for path in word.findall(page.read_text())
                 if not path.endswith((".md", ".cc", ".h", ".yaml", ".json", ".py")) and path != "monitoring.coreos"]
        self.assertGreater(len(named), 100, "the values are not found any more")
        self.assertEqual([one for one in named if not has_value(DEFAULTS, one[1].split("."))], [])

    def test_what_is_given_to_argo_cd_and_flux_is_taken_by_the_chart(self):
        section = INSTALLING.read_text().partition("## With Argo CD or Flux\n")[2].partition("\n## ")[0]
        objects = [one for block in re.findall(r"```yaml\n(.*?)```", section, re.DOTALL) for one in objects_in(block)]
        application, = (one for one in objects if one["kind"] == "Application")
        release, = (one for one in objects if one["kind"] == "HelmRelease")
        version = yaml.safe_load((CHART / "Chart.yaml").read_text())["version"]
        source, chart = application["spec"]["source"], release["spec"]["chart"]["spec"]
        self.assertEqual([source["targetRevision"], chart["version"]], [version, version])
        self.assertEqual([source["helm"]["releaseName"], release["spec"]["releaseName"]], ["heddle", "heddle"])
        for values in (source["helm"]["valuesObject"], release["spec"]["values"]):
            self.assertIn('image: "registry.example/ai/heddle:', self.render(values))

    def test_every_value_is_explained(self):
        self.assertEqual([value.path for value in values_in(VALUES.read_text()) if not value.comment], [])


def has_value(values, path):
    """Whether a chart's values have it. A map that is empty takes any key, and resources take limits."""
    for key in path:
        if not isinstance(values, dict):
            return False
        if not values or key == "limits":
            return True
        if key not in values:
            return False
        values = values[key]
    return True


def table_of(values):
    def shown(default):
        if default in ("", [], {}):
            return "none"
        text = default if isinstance(default, str) else yaml.safe_dump(default, default_flow_style=True, width=10**6,
                                                                       sort_keys=False)
        text = text.removesuffix("\n").removesuffix("\n...").strip()
        return f"`{text}`"
    rows = [f"| `{value.path}` | {shown(value.default)} | {value.comment.replace('|', chr(92) + '|')} |" for value in values]
    return "\n".join(["| value | default | |", "|---|---|---|", *rows]) + "\n"
