"""The agent's pod in charts/heddle: what it may reach on its node, and what Pod Security says of that."""

import json

from bed import ApiError
from bed.heddle import CHART, NAMESPACE
from test_chart import ChartTestCase


class AgentAccessTest(ChartTestCase):
    """How the agent reaches the driver, InfiniBand and lldpd: what each choice makes of its pod."""

    UNPRIVILEGED = {
        "access": {"driver": "runtimeClass", "infiniband": "resource", "lldp": "sidecar"},
        "infiniband": {"resource": "rdma/hca_shared_devices_a"}, "nodeSelector": {"nvidia.com/gpu.present": "true"}}
    NOTHING = {"access": {"driver": "none", "infiniband": "none", "lldp": "none"}}

    @classmethod
    def set_up_bed(cls):
        super().set_up_bed()
        cls.rest.create("/apis/node.k8s.io/v1/runtimeclasses", {
            "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"},
            "handler": "nvidia"})
        for level in ("baseline", "privileged"):
            cls.plane.create_namespace(f"level-{level}", {"pod-security.kubernetes.io/enforce": level})
            cls.plane.wait_for_account(f"level-{level}", "default")

    def template(self, agent, check=True):
        return self.helm("template", "heddle", CHART, "--namespace", NAMESPACE, "--values", "-", "--show-only",
                         "templates/nodeagent.yaml", stdin=json.dumps({"agent": agent}), check=check)

    def agent_pod(self, agent):
        made = json.loads(self.plane.kubectl("create", "--dry-run=client", "-o", "json", "-f", "-",
                                             stdin=self.template(agent).stdout))
        return made["spec"]["template"]["spec"]

    @staticmethod
    def host_paths(spec):
        return {volume["name"]: volume["hostPath"]["path"] for volume in spec["volumes"] if "hostPath" in volume}

    def create(self, spec, level):
        """As the DaemonSet's controller would, in a namespace where Pod Security enforces `level`."""
        body = {"metadata": {"generateName": "agent-"}, "spec": {
            key: value for key, value in spec.items() if key != "serviceAccountName"}}
        return self.dry_create(body, f"level-{level}")

    def test_by_default_every_node_can_start_it_and_it_sees_what_is_there(self):
        spec = self.agent_pod({})
        agent = spec["containers"][0]
        self.assertEqual(agent["securityContext"], {"privileged": True, "readOnlyRootFilesystem": True})
        self.assertNotIn("runtimeClassName", spec)
        self.assertEqual(spec["nodeSelector"], {"kubernetes.io/os": "linux"})
        self.assertEqual(self.host_paths(spec), {
            "sys": "/sys", "pod-resources": "/var/lib/kubelet/pod-resources",
            "device-plugins": "/var/lib/kubelet/device-plugins", "state": "/var/lib/heddle", "driver-root": "/",
            "infiniband": "/dev/infiniband", "lldpd": "/run"})
        self.assertIn("--nvml=/host/", agent["command"])
        self.assertIn("--lldpd-socket=/run/heddle-lldpd/lldpd.socket", agent["command"])
        # What may be missing on a node must not keep its pod from starting.
        self.assertEqual({volume["hostPath"]["type"] for volume in spec["volumes"] if "hostPath" in volume
                          and volume["name"] != "sys"}, {"DirectoryOrCreate"})
        writable = [mount["name"] for mount in agent["volumeMounts"] if not mount.get("readOnly")]
        self.assertEqual(writable, ["device-plugins", "state", "infiniband"])
        driver = next(mount for mount in agent["volumeMounts"] if mount["name"] == "driver-root")
        self.assertEqual(driver["mountPropagation"], "HostToContainer")
        self.assertEqual(self.create(spec, "privileged")["spec"]["hostNetwork"], True)

    def test_unprivileged_it_gets_its_devices_from_others(self):
        spec = self.agent_pod(self.UNPRIVILEGED)
        agent, lldpd = spec["containers"][0], spec["initContainers"][0]
        self.assertEqual(spec["runtimeClassName"], "nvidia")
        self.assertEqual(agent["securityContext"], {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"], "add": ["DAC_OVERRIDE"]}})
        self.assertIn({"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}, agent["env"])
        self.assertEqual(agent["resources"]["limits"], {"rdma/hca_shared_devices_a": "1"})
        self.assertEqual(self.host_paths(spec), {"sys": "/sys", "pod-resources": "/var/lib/kubelet/pod-resources",
                                                 "device-plugins": "/var/lib/kubelet/device-plugins",
                                                 "state": "/var/lib/heddle"})
        self.assertEqual(lldpd["restartPolicy"], "Always")
        self.assertIn("-r", lldpd["command"], "it must not speak beside the host's own lldpd")
        self.assertIn("--lldpd-socket=" + lldpd["command"][lldpd["command"].index("-u") + 1], agent["command"])
        self.create(spec, "privileged")

    def test_with_no_access_at_all_it_still_runs(self):
        spec = self.agent_pod(self.NOTHING)
        self.assertEqual(spec["containers"][0]["securityContext"]["capabilities"], {"drop": ["ALL"]})
        self.assertFalse([word for word in spec["containers"][0]["command"] if "nvml" in word or "lldp" in word])
        self.create(spec, "privileged")

    def test_pod_security_says_what_each_choice_asks_for(self):
        always = ("host namespaces (hostNetwork=true)", "hostPath volumes")
        for agent, also, never in (({}, ("privileged (container",), ("non-default capabilities",)),
                                   (self.UNPRIVILEGED, ("non-default capabilities",), ("privileged (container",)),
                                   (self.NOTHING, (), ("privileged (container", "non-default capabilities"))):
            with self.subTest(agent=agent):
                with self.assertRaises(ApiError) as refused:
                    self.create(self.agent_pod(agent), "baseline")
                for words in always + also:
                    self.assertIn(words, refused.exception.message)
                for words in never:
                    self.assertNotIn(words, refused.exception.message)

    def test_only_who_sets_ports_gets_what_that_takes(self):
        for agent, capabilities in ((self.UNPRIVILEGED, ["DAC_OVERRIDE", "NET_ADMIN"]), (self.NOTHING, ["NET_ADMIN"])):
            spec = self.agent_pod(agent | {"lossless": {"enabled": True}, "devices": {"enabled": False, "stateDir": "/var/lib/other"}})
            container = spec["containers"][0]
            self.assertEqual(container["securityContext"]["capabilities"], {"drop": ["ALL"], "add": capabilities})
            self.assertEqual(container["securityContext"]["appArmorProfile"], {"type": "Unconfined"})
            self.assertIn("--lossless=apply", container["command"])
            self.assertIn("--lossless-patience=1800", container["command"])
            self.assertNotIn("hostPID", spec)
            self.assertIn("--state-dir=/var/lib/other", container["command"])
            self.assertEqual(self.host_paths(spec)["state"], "/var/lib/other")
            mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
            self.assertNotIn("readOnly", mounts["sys"])
            self.assertEqual(mounts["state"]["mountPath"], "/var/lib/other")
            self.create(spec, "privileged")
        spec = self.agent_pod(self.NOTHING | {"lossless": {"enabled": True, "patienceSeconds": 0, "hostPID": True}})
        self.assertIn("--lossless-patience=0", spec["containers"][0]["command"])
        self.assertTrue(spec["hostPID"])
        for agent in (self.UNPRIVILEGED, self.NOTHING):
            container = self.agent_pod(agent)["containers"][0]
            self.assertNotIn("NET_ADMIN", json.dumps(container))
            self.assertFalse([word for word in container["command"] if "lossless" in word])
        refused = self.template({"lossless": {"enabled": "yes"}}, check=False)
        self.assertIn("got string, want boolean", refused.stderr)

    def test_folders_of_other_distributions(self):
        spec = self.agent_pod({"driver": {"root": "/run/nvidia/driver"}, "kubeletRoot": "/var/lib/k0s/kubelet",
                               "lldp": {"socket": "/run/lldpd/control.socket"}})
        paths = self.host_paths(spec)
        self.assertEqual((paths["driver-root"], paths["pod-resources"], paths["device-plugins"], paths["lldpd"]),
                         ("/run/nvidia/driver", "/var/lib/k0s/kubelet/pod-resources",
                          "/var/lib/kubelet/device-plugins", "/run/lldpd"))  # a constant of the kubelet's
        self.assertIn("--lldpd-socket=/run/heddle-lldpd/control.socket", spec["containers"][0]["command"])

    def test_a_file_of_labels(self):
        spec = self.agent_pod({"labelsFile": "/etc/heddle/labels"})
        self.assertEqual(self.host_paths(spec)["labels"], "/etc/heddle")
        agent = spec["containers"][0]
        self.assertIn("--labels-file=/run/heddle-labels/labels", agent["command"])
        self.assertIn({"name": "labels", "mountPath": "/run/heddle-labels", "readOnly": True}, agent["volumeMounts"])
        self.assertNotIn("labels", json.dumps(self.agent_pod({})["containers"][0]["volumeMounts"]))
        for agent, wrong in (({"labelsFile": "labels"}, "write a path of the node from / on, in a folder"),
                             ({"labelsFile": "/labels"}, "write a path of the node from / on, in a folder"),
                             (self.NOTHING | {"labelsFile": "/run/labels"}, "has sockets of root in it")):
            with self.subTest(agent=agent):
                self.assertIn(wrong, self.template(agent, check=False).stderr)

    def test_ports_without_a_cable(self):
        agent = self.agent_pod({"uncabled": ["mlx5_1", "mlx5_[45]:2", "*:2"]})["containers"][0]
        self.assertIn("--uncabled=mlx5_1,mlx5_[45]:2,*:2", agent["command"])
        self.assertFalse([word for word in self.agent_pod({})["containers"][0]["command"] if "uncabled" in word])
        for patterns, wrong in ((["mlx5_1,mlx5_2"], "agent.uncabled[0] is \"mlx5_1,mlx5_2\": write DEVICE or DEVICE:PORT"),
                                (["mlx5_1", "mlx5_2:one"], "agent.uncabled[1] is \"mlx5_2:one\": write DEVICE"),
                                (["*"], "no alarm would be left of any"), ([""], "agent/uncabled"), ("mlx5_1", "want array")):
            with self.subTest(patterns=patterns):
                self.assertIn(wrong, self.template({"uncabled": patterns}, check=False).stderr)

    def test_nics_for_storage(self):
        agent = self.agent_pod({"storage": ["mlx5_2", "mlx5_[67]"]})["containers"][0]
        self.assertIn("--storage=mlx5_2,mlx5_[67]", agent["command"])
        self.assertFalse([word for word in self.agent_pod({})["containers"][0]["command"] if "storage" in word])
        for patterns, wrong in ((["mlx5_2,mlx5_3"], "agent.storage[0] is \"mlx5_2,mlx5_3\": write the name of an RDMA"),
                                (["mlx5_1", "mlx5_2:1"], "agent.storage[1] is \"mlx5_2:1\": write the name of an RDMA"),
                                (["*"], "no rail would be left of any"), ([""], "agent/storage"), ("mlx5_1", "want array")):
            with self.subTest(patterns=patterns):
                self.assertIn(wrong, self.template({"storage": patterns}, check=False).stderr)

    def test_it_writes_nothing_on_the_host_where_it_offers_no_devices(self):
        spec = self.agent_pod(self.NOTHING | {"devices": {"enabled": False}})
        agent = spec["containers"][0]
        self.assertIn("--device-plugins=none", agent["command"])
        self.assertNotIn("state", self.host_paths(spec))
        self.assertEqual([mount["name"] for mount in agent["volumeMounts"] if not mount.get("readOnly")], [])
        self.create(spec, "privileged")

    def test_it_may_read_pods_only_where_it_follows_plans(self):
        def may(values):
            rendered = self.helm("template", "heddle", CHART, "--namespace", NAMESPACE, "--values", "-", "--show-only",
                                 "templates/rbac.yaml", stdin=json.dumps({"agent": values})).stdout
            role = json.loads(self.plane.kubectl("create", "--dry-run=client", "-o", "json", "-f", "-",
                                                 stdin=next(text for text in rendered.split("\n---")
                                                            if "kind: ClusterRole\n" in text and "heddle-nodeagent" in text)))
            return [rule["verbs"] for rule in role["rules"] if "pods" in rule["resources"]]
        self.assertEqual(may({}), [])
        self.assertEqual(may({"devices": {"followPlans": True}}), [["list", "watch"]])
        self.assertEqual(may({"devices": {"followPlans": True, "enabled": False}}), [])

    def test_contradictions_are_refused_with_what_to_change(self):
        own_devices = {"driver": "none", "infiniband": "none"}
        for agent, sentence in (
                ({"access": {"driver": "runtimeClass"}}, "name the nodes that have it in agent.nodeSelector"),
                ({"access": {"infiniband": "resource"}}, "name it in agent.infiniband.resource"),
                ({"infiniband": {"resource": "rdma/hca"}}, "set that to resource, or leave the resource empty"),
                ({"access": own_devices | {"lldp": "host"}}, "use sidecar, or start lldpd with -u"),
                ({"access": {"driver": "auto"}}, "must be one of 'host', 'runtimeClass', 'none'"),
                ({"access": {"nvml": "host"}}, "additional properties 'nvml' not allowed"),
                ({"lldp": {"socket": "run/lldpd.socket"}}, "write a path of the node from / on"),
                ({"kubeletRoot": "../kubelet"}, "write a folder of the node from / on")):
            with self.subTest(agent=agent):
                done = self.template(agent, check=False)
                self.assertNotEqual(done.returncode, 0, done.stdout[:200])
                self.assertIn(sentence, done.stderr)
        # A folder of lldpd's own gives away nothing else.
        self.template({"access": own_devices | {"lldp": "host"}, "lldp": {"socket": "/run/lldpd/lldpd.socket"}})
