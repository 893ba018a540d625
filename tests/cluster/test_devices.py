"""RdmaDevicePolicies on a real API server: what the operator makes of them, under its own account."""

import json
import re
import subprocess

import sriov_config
from bed import REPOSITORY, ApiError, Heddle, path
from bed.testing import BedTestCase, options

NODES = ("gpu-001", "gpu-002")
SYSTEM = "heddle-system"
SHARED, SRIOV = "registry.test/shared:v1", "registry.test/sriov:v1"
IMAGES = (f"--rdma-shared-image={SHARED}", f"--sriov-image={SRIOV}")


def status_of_a_roce_node(first):
    nics = [{"name": f"mlx5_{i}", "netdev": f"eth{first + i}", "rail": i, "transport": "RoCE", "role": "compute",
             "ports": [{"number": 1, "state": "Active", "leafMissing": "Unknown"}]} for i in range(2)]
    return {"observedAt": "2026-01-31T12:00:00Z", "hash": "0123456789abcdef", "nvlinkDomainMissing": "NotApplicable",
            "nics": nics}


class DevicesTest(BedTestCase):

    @classmethod
    def set_up_bed(cls):
        cls.nodes.add_plain(*NODES, labels={"pool": "gpu"})
        cls.heddle = Heddle(cls.plane, options.binaries)
        cls.heddle.install(otherPlugins={"rdmaShared": {"image": SHARED}, "sriov": {"image": SRIOV}})
        cls.rest = cls.plane.rest
        cls.heddle.start_operator(*IMAGES)
        for i, name in enumerate(NODES):
            cls.heddle.wait_for(lambda n=name: cls.rest.find(path("nodetopologies", name=n)), f"NodeTopology {name}")
            cls.rest.patch(path("nodetopologies", name=name, sub="status"), {"status": status_of_a_roce_node(10 * i)})

    def tearDown(self):
        for policy in self.rest.list(path("rdmadevicepolicies")):
            self.rest.delete(path("rdmadevicepolicies", name=policy["metadata"]["name"]))
        self.heddle.wait_for(lambda: not any(self.wishes(name) for name in NODES), "specs without policies to be empty")

    def make(self, name, spec):
        return self.rest.create(path("rdmadevicepolicies"), {
            "apiVersion": "heddle.dev/v1alpha1", "kind": "RdmaDevicePolicy", "metadata": {"name": name}, "spec": spec})

    def wishes(self, node):
        return self.rest.get(path("nodetopologies", name=node)).get("spec", {}).get("devices", [])

    def ready(self, name):
        conditions = self.rest.get(path("rdmadevicepolicies", name=name)).get("status", {}).get("conditions", [])
        return next((c["reason"] for c in conditions if c["type"] == "Ready"), None)

    def message(self, name):
        conditions = self.rest.get(path("rdmadevicepolicies", name=name))["status"]["conditions"]
        return next(c["message"] for c in conditions if c["type"] == "Ready")

    def report(self, node, state, devices):
        """As its agent would; `devices`: so many the kubelet has of each resource."""
        entries = [{"resource": wish["resource"], "policy": wish["policies"][0], "generation": wish["generation"],
                    "policyUid": wish["policyUid"], "state": state, "reason": "as the test says", "healthy": devices, "total": devices}
                   for wish in self.wishes(node)]
        self.rest.patch(path("nodetopologies", name=node, sub="status"), {"status": {"devices": entries}})

    def classes(self):
        """By node, the label by which it gets its plugin; None where it has none."""
        return {name: self.rest.get(path("nodes", name=name))["metadata"]["labels"].get("heddle.dev/rdma-class")
                for name in NODES}

    def operator_with(self, *images):
        self.heddle.stop_daemon("operator")
        self.heddle.start_operator(*images)

    def test_each_node_is_told_and_the_tables_say_how_it_stands(self):
        self.make("rails", {"nodeSelector": {"pool": "gpu"}, "mode": "Nics",
                            "resources": [{"name": "heddle.dev/rail{rail}"}]})
        self.heddle.wait_for(lambda: all(len(self.wishes(name)) == 2 for name in NODES), "all nodes to be told")
        self.assertEqual([(wish["resource"], wish["ports"]) for wish in self.wishes("gpu-001")],
                         [("heddle.dev/rail0", ["mlx5_0:1"]), ("heddle.dev/rail1", ["mlx5_1:1"])])
        self.heddle.wait_for(lambda: self.ready("rails") == "Waiting", "the policy to wait for reports")
        for name in NODES:
            self.report(name, "Offered", 1)
        self.heddle.wait_for(lambda: self.ready("rails") == "Offered", "the policy to be ready", 60)
        self.assertRegex(self.plane.kubectl("get", "rdmadevicepolicies"), r"rails +True +2/2 +4 +0 +Nics +Heddle ")
        before = [self.rest.get(path("nodetopologies", name=name))["metadata"]["resourceVersion"] for name in NODES]
        self.rest.patch(path("rdmadevicepolicies", name="rails"), {"spec": {"nodeSelector": None}})
        self.heddle.wait_for(
            lambda: self.rest.get(path("rdmadevicepolicies", name="rails"))["status"]["observedGeneration"] == 2,
            "the new generation to be seen", 60)
        after = [self.rest.get(path("nodetopologies", name=name))["metadata"]["resourceVersion"] for name in NODES]
        self.assertEqual(before, after)

    def test_a_nic_of_two_policies_is_offered_by_neither_and_both_are_named(self):
        self.make("rails", {"mode": "Nics", "resources": [{"name": "heddle.dev/rail{rail}"}]})
        self.make("whole", {"resources": [{"name": "heddle.dev/rdma"}]})
        self.heddle.wait_for(lambda: self.ready("rails") == self.ready("whole") == "Conflict", "both to be told", 60)
        wish = next(wish for wish in self.wishes("gpu-001") if wish["resource"] == "heddle.dev/rdma")
        self.assertNotIn("ports", wish)
        self.assertIn("of all but one of heddle.dev/rail0, heddle.dev/rdma", wish["reason"])
        self.assertIn("is in several resources", self.plane.kubectl("get", "rdmadevicepolicies", "-o", "wide"))

    def test_another_plugin_runs_by_classes_of_nodes_and_goes_with_its_policy(self):
        self.make("shared", {"mode": "Nics", "plugin": "RdmaShared",
                             "resources": [{"name": "rdma/rail{rail}", "slots": 63}]})
        sets = path("daemonsets", SYSTEM)
        self.heddle.wait_for(lambda: len(self.rest.list(sets)) == 2, "a DaemonSet for each class of nodes", 60)

        # Last of all: a plugin never starts without its configuration.
        self.heddle.wait_for(lambda: None not in self.classes().values(), "the labels of the classes", 60)
        labels = list(self.classes().values())
        self.assertNotEqual(*labels)
        config = self.rest.get(path("configmaps", SYSTEM, f"heddle-rdma-shared-{labels[1]}"))
        self.assertEqual([entry["selectors"]["ifNames"] for entry in json.loads(config["data"]["config.json"])["configList"]],
                         [["eth10"], ["eth11"]])
        self.rest.delete(path("rdmadevicepolicies", name="shared"))
        self.heddle.wait_for(lambda: not self.rest.list(sets), "the DaemonSets to go", 60)
        self.assertEqual(self.classes(), dict.fromkeys(NODES))
        self.assert_nothing_forbidden("operator")

    def test_what_is_rendered_is_what_the_other_plugin_reads(self):
        """k8s-rdma-shared-dev-plugin's own packages (tests/cluster/plugin_config) on the ConfigMaps that the operator made."""
        self.make("shared", {"mode": "Nics", "plugin": "RdmaShared",
                             "resources": [{"name": "rdma/rail{rail}", "slots": 63}]})
        maps = path("configmaps", SYSTEM)

        def rendered():
            return [made["data"]["config.json"] for made in self.rest.list(maps)
                    if made["metadata"]["name"].startswith("heddle-rdma-shared-")]
        self.heddle.wait_for(lambda: len(rendered()) == 2, "a ConfigMap for each class of nodes", 60)
        for config in rendered():
            said = self.ask_plugin(config)
            self.assertEqual(said["error"], "")
            entries = json.loads(config)["configList"]
            self.assertEqual([(one["resourcePrefix"], one["resourceName"], one["rdmaHcaMax"], one["selectors"]["ifNames"])
                              for one in said["resources"]],
                             [("rdma", one["resourceName"], 63, one["selectors"]["ifNames"]) for one in entries])
            # It can tell: what the operator and the API server refuse is what the plugin ends of.
            for spoil, why in (({"resourceName": "rail-0"}, "invalid characters"), ({"selectors": {}}, "neither"),
                               ({"rdmaHcaMax": -1}, "rdmaHcaMax < 0"), ({"ifNames": ["eth0"]}, "unknown field")):
                self.assertIn(why, self.ask_plugin(json.dumps({"configList": [entries[0] | spoil]}))["error"])
            twice = {"configList": [entries[0], entries[0] | {"resourcePrefix": "other.dev"}]}
            self.assertIn("already exists", self.ask_plugin(json.dumps(twice))["error"])

    def ask_plugin(self, config):
        binaries = subprocess.run([REPOSITORY / "tools" / "control-plane", "--plugin-config"], stdout=subprocess.PIPE,
                                  text=True, check=True).stdout.split("\n")[-2]
        file = self.plane.folder / "plugin-config.json"
        file.write_text(config)
        return json.loads(subprocess.run([f"{binaries}/plugin_config", file], capture_output=True, text=True,
                                         check=True).stdout)

    def test_the_sriov_plugin_is_told_in_its_own_words_and_runs_on_the_nodes_that_are_meant(self):
        """Its format by sriov_config.py, of which test_sriov_config.py shows that it can tell."""
        of_both = status_of_a_roce_node(10)
        of_both["nics"].append({
            "name": "mlx5_2", "pci": "0000:5e:00.0", "rail": 2, "transport": "InfiniBand", "role": "compute",
            "ports": [{"number": 1, "state": "Active", "leafMissing": "Unknown"}]})
        status = path("nodetopologies", name="gpu-002", sub="status")
        self.addCleanup(self.rest.patch, status, {"status": status_of_a_roce_node(10)})
        self.rest.patch(status, {"status": of_both})
        self.make("sriov", {"mode": "Nics", "plugin": "Sriov", "resources": [
            {"name": "nvidia.com/rail-{rail}", "rails": [0]}, {"name": "nvidia.com/others", "rails": [1, 2]}]})

        def resource(name, *selectors):
            return {"name": f"nvidia.com/{name}", "deviceType": "netDevice",
                    "selectors": [selector | {"isRdma": True} for selector in selectors]}
        meant = {"gpu-001": [resource("others", {"pfNames": ["eth1"]}), resource("rail-0", {"pfNames": ["eth0"]})],
                 "gpu-002": [resource("others", {"pfNames": ["eth11"]}, {"pciAddresses": ["0000:5e:00.0"]}),
                             resource("rail-0", {"pfNames": ["eth10"]})]}

        def told():
            """What the plugin of each node reads, by the label that picks it."""
            maps = {node: self.rest.get(path("configmaps", SYSTEM, f"heddle-sriov-{label}"))["data"]
                    for node, label in self.classes().items()}
            self.assertEqual({node: sriov_config.read(data["config.json"]) for node, data in maps.items()}, meant)
            return True
        self.heddle.wait_for(told, "each node's plugin to be told its devices", 60)

        def there(kind):
            """Theirs among all that is in the namespace."""
            return {made["metadata"]["name"]: made for made in self.rest.list(path(kind, SYSTEM))
                    if made["metadata"]["name"].startswith("heddle-sriov-")}
        labels = self.classes()
        names = {node: f"heddle-sriov-{label}" for node, label in labels.items()}
        for kind in ("configmaps", "daemonsets"):
            self.heddle.wait_for(lambda k=kind: set(there(k)) == set(names.values()), f"these {kind} and no others", 60)
        sets = there("daemonsets")
        for node, name in names.items():
            self.assert_runs_the_plugin(sets[name], name, labels[node])

        # The cluster's own controller and scheduler agree on where that is.
        def places():
            self.assertEqual({node: [pod["spec"].get("nodeName") for pod in self.plane.pods(
                SYSTEM, f"app.kubernetes.io/name={name}")] for node, name in names.items()}, {node: [node] for node in NODES})
            return True
        self.heddle.wait_for(places, "a pod of its class on each node", 60)

        self.heddle.wait_for(lambda: self.ready("sriov") == "Waiting", "the policy to wait for reports", 60)
        # No container of it runs here, and so no kubelet has any: an agent that sees that says Pending.
        for node in NODES:
            self.report(node, "Pending", 0)
        self.heddle.wait_for(lambda: "wait for the plugin" in self.message("sriov"), "the policy to wait for the plugin", 60)
        self.assertEqual(self.ready("sriov"), "Waiting")
        look = re.search("; of [^ ]+ look at: kubectl -n heddle-system (get pods .*)$", self.message("sriov"))
        self.assertRegex(self.plane.kubectl("-n", SYSTEM, *look.group(1).split()), "|".join(names.values()))
        # One of an older version does not look.
        self.report(NODES[0], "Elsewhere", 0)
        self.heddle.wait_for(lambda: "does not say whether the plugin runs" in self.message("sriov"), "that to be no success", 60)
        self.assertEqual(self.ready("sriov"), "Waiting")
        for node in NODES:
            self.report(node, "Elsewhere", 1)
        self.heddle.wait_for(lambda: self.ready("sriov") == "Offered", "the policy to be ready", 60)
        self.assertRegex(self.plane.kubectl("get", "rdmadevicepolicies"), r"sriov +True +2/2 +4 +0 +Nics +Sriov ")

        self.rest.delete(path("rdmadevicepolicies", name="sriov"))
        for kind in ("daemonsets", "configmaps"):
            self.heddle.wait_for(lambda k=kind: not there(k), f"the {kind} to go", 60)
        self.assertEqual(self.classes(), dict.fromkeys(NODES))
        self.assert_nothing_forbidden("operator")

    def assert_runs_the_plugin(self, made, name, label):
        """The DaemonSet as the API server has it: where it runs, and that it finds what it looks for."""
        template = made["spec"]["template"]
        pod = template["spec"]
        self.assertEqual(made["spec"]["selector"]["matchLabels"], template["metadata"]["labels"])
        self.assertEqual(pod["nodeSelector"], {"heddle.dev/rdma-class": label})
        self.assertEqual(made["metadata"]["labels"]["heddle.dev/rdma-class"], label)
        self.assertEqual((pod["hostNetwork"], pod["automountServiceAccountToken"]), (True, False))
        self.assertEqual([(one["image"], one["securityContext"]["privileged"]) for one in pod["containers"]], [(SRIOV, True)])
        container = pod["containers"][0]
        # Its own defaults hold, of the file above all.
        self.assertEqual([key for key in ("command", "args", "env") if container.get(key)], [])
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        mounted = {mount["mountPath"]: volumes[mount["name"]] for mount in container["volumeMounts"]}
        folder, file = sriov_config.FILE.rsplit("/", 1)
        self.assertEqual(mounted[folder]["configMap"]["name"], name)
        self.assertEqual(list(self.rest.get(path("configmaps", SYSTEM, name))["data"]), [file])
        for sockets in (sriov_config.SOCKETS, sriov_config.OLD_SOCKETS):
            self.assertEqual(mounted[sockets]["hostPath"]["path"], sockets)

    def test_a_plugin_without_an_image_is_refused_with_what_to_set(self):
        self.addCleanup(self.operator_with, *IMAGES)
        self.operator_with(IMAGES[0])
        self.make("sriov", {"mode": "Nics", "plugin": "Sriov", "resources": [{"name": "rdma/vf"}]})
        self.heddle.wait_for(lambda: self.ready("sriov") == "Refused", "the policy to be refused", 60)
        self.assertIn("otherPlugins.sriov.image", self.wishes("gpu-001")[0]["reason"])

    def test_the_api_server_refuses_what_cannot_be(self):
        with self.assertRaises(ApiError) as refused:
            self.make("pairs", {"mode": "Pairs", "plugin": "Sriov", "resources": [{"name": "rdma/vf"}]})
        self.assertIn("other plugins know no GPU and no plan", str(refused.exception))
