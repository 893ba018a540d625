"""The agent as a device plugin, on a real kubelet and containerd: what a container that asks for devices really has."""

import json
import os
import re
import shutil
import stat
import time
import unittest
from pathlib import Path

from bed import Heddle
from bed.process import run
from bed.rest import ApiError, path
from bed.testing import options
from real_node import NodeTestCase, archive_image
from test_grants import DevicePlugin

NODE = NodeTestCase.NODE
BUSYBOX = "localhost/busybox:1"
FABRIC = "heddle.dev/fabric"
LOSSLESS = ("--lossless=apply", "--lossless-interval=1", "--lossless-drain=1", "--lossless-settle=1")
# What a policy wants of a port for packets that are marked, and a port that nobody has set.
MARKS = {"trust": "DSCP", "pfc": [3], "trafficClass": 106,
         "dscpToPriority": [{"priority": 0, "dscps": "0-25,27-63"}, {"priority": 3, "dscps": "26"}]}
FRESH = {"trust": "PCP", "pfc": [], "dscpToPriority": [{"priority": 0, "dscps": "0-63"}]}
# What a container sees, a line each, and then nothing until it is told to end.
LOOK = """
trap 'exit 0' TERM
echo "conf=$NCCL_CONF_FILE"
echo "provider=$FI_PROVIDER"
[ -n "$NCCL_CONF_FILE" ] && [ -e "$NCCL_CONF_FILE" ] && sed 's/^/nccl: /' "$NCCL_CONF_FILE"
for file in /etc/heddle/nccl/*; do echo "file=$file"; done
touch /etc/heddle/nccl/mine 2>/dev/null && echo "folder is writable"
for node in /dev/infiniband/*; do [ -c "$node" ] && echo "node=$node" && cat "$node" >/dev/null && echo "opens=$node"; done
env | grep '^BED_GPU_' | sort | sed 's/^/cdi: /'
for file in /bed/gpu*; do [ -e "$file" ] && echo "cdi file: $file"; done
[ -n "$FI_PROVIDER" ] && sed 's/^/topology: /' /etc/heddle/nccl/topology.xml
echo "end"
while :; do sleep 1; done
"""


class Devices(NodeTestCase):
    """The tests share a node, and each takes back the devices that it asked for."""

    BED = "devices"

    @classmethod
    def prepare(cls):
        (cls.plane.folder / "busybox").mkdir()
        archive = archive_image(cls.plane.folder / "busybox", BUSYBOX, {"bin/busybox": shutil.which("busybox")},
                                ["/bin/busybox"], links={"bin/sh": "busybox"})
        cls.node.import_image(archive)
        import machines  # The generator of the C++ tests' fixtures.
        written = machines.write({"nodes": [{"name": NODE, "shape": "hgx-h100"}]}, str(cls.plane.folder / "machines"))
        cls.recording = Path(written[NODE])
        cls.agent_root = cls.plane.folder / "agent"
        printed = run([options.binaries / "heddle-nodeagent", "--machine", cls.recording, "--print", "-o", "json"])
        cls.machine = json.loads(printed.stdout)["status"]
        cls.nics = sorted((nic for nic in cls.machine["nics"] if nic["role"] == "compute"), key=lambda nic: nic["rail"])
        cls._make_device_nodes()
        cls._make_cdi()
        cls.heddle = Heddle(cls.plane, options.binaries)
        cls.heddle.install(agent={"devices": {"followPlans": True}})
        cls.heddle.machines[NODE] = cls.recording
        cls.want([])
        cls.start_agent(cls.agent_root / "state", *LOSSLESS, "--qos-dir", cls.ports_folder())
        cls.heddle.wait_published([NODE])
        cls.wait_allocatable(FABRIC, 250)

    @classmethod
    def start_agent(cls, state, *arguments):
        cls.heddle.start_agent(
            NODE, "--pod-resources", cls.node.pod_resources, "--device-plugins", cls.node.device_plugins,
            "--state-dir", state, "--infiniband-devices", cls.agent_root / "infiniband", "--follow-plans",
            "--interval", "1", "--counters-interval", "0.5", "--publish-jitter", "0.1", *arguments)

    @classmethod
    def _make_device_nodes(cls):
        """uverbs0 to uverbs8 and rdma_cm as character devices that anybody may read, and what sysfs says of them."""
        folder = cls.agent_root / "infiniband"
        folder.mkdir(parents=True)
        verbs = cls.recording / "sys/class/infiniband_verbs"
        cls.verbs = {}
        for number, nic in enumerate(cls.machine["nics"]):
            (verbs / f"uverbs{number}").mkdir(parents=True)
            (verbs / f"uverbs{number}" / "ibdev").write_text(nic["name"] + "\n")
            cls.verbs[nic["name"]] = f"uverbs{number}"
        misc = cls.recording / "sys/class/misc/rdma_cm"
        misc.mkdir(parents=True)
        (misc / "dev").write_text("10:58\n")
        for name in [*cls.verbs.values(), "rdma_cm"]:
            os.mknod(folder / name, stat.S_IFCHR | 0o666, os.makedev(1, 3))  # null

    @classmethod
    def ports_folder(cls):
        """Where the agent keeps the ports of its recorded machine, in place of a kernel."""
        return cls.plane.folder / "ports"

    @classmethod
    def _make_cdi(cls):
        """As nvidia-ctk cdi generate does it: a device for each GPU, by UUID."""
        folder = cls.node.folder / "run" / "cdi"
        folder.mkdir()
        spec = {"cdiVersion": "0.6.0", "kind": "nvidia.com/gpu", "devices": [
            {"name": gpu["uuid"], "containerEdits": {"env": [f"BED_GPU_{gpu['index']}=1"],
                                                     "mounts": [{"hostPath": str(cls.recording / "machine.yaml"),
                                                                 "containerPath": f"/bed/gpu{gpu['index']}",
                                                                 "options": ["ro", "bind"]}]}}
            for gpu in cls.machine["gpus"]]}
        (folder / "nvidia.json").write_text(json.dumps(spec))

    # The NodeTopology, which is the operator's on a cluster

    @classmethod
    def want(cls, devices):
        where = path("nodetopologies", name=NODE)
        if not cls.plane.rest.find(where):
            cls.plane.rest.create(path("nodetopologies"), {
                "apiVersion": "heddle.dev/v1alpha1", "kind": "NodeTopology", "metadata": {"name": NODE},
                "spec": {"devices": devices}})
        else:
            cls.plane.rest.patch(where, {"spec": {"devices": devices}})

    def offer(self, mode, resource, nics=None, **more):
        """A resource of the node for one test. Each has a name of its own: the Node's status lags behind the kubelet, and
        shows one that went and came back as if it had been there all the time."""
        ports = sorted(f"{nic['name']}:1" for nic in (nics or self.nics))
        self.want([{"resource": resource, "policies": ["bed"], "generation": 1, "mode": mode, "plugin": "Heddle",
                    "ports": ports} | more])
        self.addCleanup(self.want, [])

    @classmethod
    def wait_allocatable(cls, resource, count):
        cls.node.wait_for(lambda: cls.plane.rest.get(path("nodes", name=NODE))["status"].get("allocatable", {}).get(
            resource) == str(count), f"{count} {resource} to be allocatable", 90)

    def lists(self, resource):
        """How often the kubelet took a list of its devices, by its log: what it says of itself lags behind."""
        log = (self.plane.logs / f"{NODE}-kubelet.log").read_text(errors="replace")
        return sum("Processed device updates" in line and f'"{resource}"' in line for line in log.splitlines())

    def status(self):
        return self.plane.rest.get(path("nodetopologies", name=NODE))["status"]

    def report(self, resource):
        return next((report for report in self.status().get("devices", []) if report["resource"] == resource), {})

    def condition(self, name):
        return next((c for c in self.status().get("conditions", []) if c["type"] == name), {})

    # Pods

    def pod(self, name, namespace="default", annotations=None, environment=None, **limits):
        return {"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "namespace": namespace, "annotations": annotations or {}},
                "spec": {"nodeName": NODE, "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
                         "automountServiceAccountToken": False, "hostNetwork": namespace == "default",
                         "containers": [{"name": "worker", "image": BUSYBOX, "imagePullPolicy": "Never",
                                         "args": ["sh", "-c", LOOK], "resources": {"limits": limits},
                                         "env": [{"name": key, "value": value}
                                                 for key, value in (environment or {}).items()]}]}}

    def start(self, body):
        metadata = body["metadata"]
        where = path("pods", metadata["namespace"], metadata["name"])
        extender = self.plane.rest.as_user("system:serviceaccount:heddle-system:heddle-extender",
                                           groups=["system:masters"])
        extender.create(path("pods", metadata["namespace"]), body)
        self.addCleanup(self.end, where)
        return where

    def end(self, where):
        if self.plane.rest.find(where):
            self.plane.rest.delete(where)
        self.node.wait_for(lambda: not self.plane.rest.find(where), "the pod to be gone", 60)

    def seen(self, where):
        """What the container of a pod saw, by the kubelet's log of it."""
        def lines():
            pod = self.plane.rest.get(where)
            state = pod["status"].get("phase"), pod["status"].get("reason"), pod["status"].get("message")
            if state[0] == "Failed":
                raise AssertionError(f"the pod failed: {state}")
            text = self.node.log_of(pod, "worker")
            return text if "end" in text else None
        return self.node.wait_for(lines, f"the container of {where} to say what it sees", 90)

    def nodes_seen(self, where):
        return sorted(line.removeprefix("opens=/dev/infiniband/") for line in self.seen(where)
                      if line.startswith("opens="))

    # heddle.dev/fabric

    def test_a_pod_that_asks_for_fabric_has_the_nodes_nccl_file(self):
        where = self.start(self.pod("fabric", **{FABRIC: "1"}))
        seen = self.seen(where)
        self.assertIn("conf=/etc/heddle/nccl/nccl.conf", seen)
        hcas = ",".join(f"{nic['name']}:1:{nic['rail']}" for nic in self.nics)
        self.assertIn(f"nccl: NCCL_IB_HCA=={hcas}", seen)
        self.assertIn("nccl: NCCL_CROSS_NIC=0", seen)
        self.assertNotIn("folder is writable", seen)
        self.assertEqual([line for line in seen if line.startswith("file=")], ["file=/etc/heddle/nccl/nccl.conf"])
        self.assertIn("provider=", seen, "no libfabric provider where NCCL speaks verbs")
        self.assertEqual(self.nodes_seen(where), [])
        self.assertEqual(self.condition("NcclFilesWritten")["status"], "True")

    def be_machine(self, shape, state, *arguments):
        """For the rest of the test the node is a machine of this shape, and its agent a new one with this state folder."""
        import machines
        name, ours, machine = f"agent:{NODE}", self.heddle.daemons[f"agent:{NODE}"], self.machine["machine"]
        written = machines.write({"nodes": [{"name": NODE, "shape": shape}]}, str(self.plane.folder / f"as-{shape}"))

        def back():
            self.heddle.stop_daemon(name)
            self.heddle.daemons[name], self.heddle.machines[NODE] = ours, self.recording
            self.heddle.start_daemon(name)
            self.node.wait_for(lambda: self.status()["machine"] == machine, "the machine that the others know")
            self.wait_allocatable(FABRIC, 250)
        self.heddle.stop_daemon(name)
        self.addCleanup(back)
        self.wait_allocatable(FABRIC, 0)
        self.heddle.machines[NODE] = Path(written[NODE])
        self.start_agent(state, *LOSSLESS, "--qos-dir", self.ports_folder(), *arguments)
        self.node.wait_for(lambda: self.status()["machine"] != machine, f"the node to be a {shape}")
        self.wait_allocatable(FABRIC, 250)

    def test_a_pod_on_an_efa_guest_has_its_provider_and_its_topology(self):
        """The machine of a cloud that hides the PCIe tree of its host, with the cloud's file of it."""
        import machines
        written = machines.write({"nodes": [{"name": NODE, "shape": "p5-48xlarge"}]}, str(self.plane.folder / "guest"))
        cloud = self.plane.folder / "cloud.xml"
        run([options.binaries / "heddle-nodeagent", "--machine", written[NODE], "--nccl-topo", cloud])
        state = self.agent_root / "guest"
        self.be_machine("p5-48xlarge", state, "--from-nccl-xml", cloud)
        seen = self.seen(self.start(self.pod("efa", **{FABRIC: "1"})))
        self.assertIn("provider=efa", seen)
        self.assertIn("nccl: NCCL_TOPO_FILE=/etc/heddle/nccl/topology.xml", seen)
        self.assertEqual([line for line in seen if line.startswith("nccl: NCCL_IB")], [])
        topology = "\n".join(line.removeprefix("topology: ") for line in seen if line.startswith("topology: "))
        self.assertEqual(topology.strip(), (state / "nccl" / "topology.xml").read_text().strip())
        self.assertEqual(len(re.findall(r'class="0x030[02]', topology)), 8, "each GPU has its place in it")

    def test_what_the_pod_sets_itself_wins(self):
        where = self.start(self.pod("own", environment={"NCCL_CONF_FILE": "/mine.conf"}, **{FABRIC: "1"}))
        self.assertIn("conf=/mine.conf", self.seen(where))

    def test_it_works_in_a_namespace_with_pod_security(self):
        for level in ("baseline", "restricted"):
            namespace = f"pods-{level}"
            self.plane.create_namespace(namespace, {"pod-security.kubernetes.io/enforce": level})
            body = self.pod("fabric", namespace=namespace, **{FABRIC: "1"})
            if level == "restricted":
                body["spec"]["securityContext"] = {"runAsNonRoot": True, "runAsUser": 65534,
                                                   "seccompProfile": {"type": "RuntimeDefault"}}
                body["spec"]["containers"][0]["securityContext"] = {"allowPrivilegeEscalation": False,
                                                                    "capabilities": {"drop": ["ALL"]}}
            where = self.start(body)
            self.assertIn("nccl: NCCL_CROSS_NIC=0", self.seen(where))
            hostile = self.pod("hostpath", namespace=namespace)
            hostile["spec"]["volumes"] = [{"name": "h", "hostPath": {"path": "/"}}]
            with self.assertRaises(ApiError):
                self.plane.rest.create(path("pods", namespace), hostile)

    # The three modes

    def test_whole_node_brings_every_compute_nic_to_one_pod(self):
        self.offer("WholeNode", "heddle.dev/rdma")
        self.wait_allocatable("heddle.dev/rdma", 1)
        where = self.start(self.pod("whole", **{"heddle.dev/rdma": "1"}))
        self.assertEqual(self.nodes_seen(where), sorted([self.verbs[nic["name"]] for nic in self.nics] + ["rdma_cm"]))
        self.node.wait_for(lambda: self.report("heddle.dev/rdma").get("state") == "Offered", "the report")
        self.node.wait_for(lambda: [grant["nics"] for grant in self.status().get("grants", [])
                                    if grant["pod"] == "whole"] == [sorted(nic["name"] for nic in self.nics)],
                           "the grant to name the NICs")

    def test_pairs_bring_gpus_with_their_nics_and_follow_the_plan(self):
        self.offer("Pairs", "heddle.dev/gpu")
        self.wait_allocatable("heddle.dev/gpu", 8)
        planned = [nic["name"] for nic in self.nics[4:6]]
        where = self.start(self.pod("pairs", annotations={"heddle.dev/gpus": "4,5", "heddle.dev/nics": ",".join(planned)},
                                    **{"heddle.dev/gpu": "2", FABRIC: "1"}))
        self.assertEqual(self.nodes_seen(where), sorted([self.verbs[name] for name in planned] + ["rdma_cm"]))
        # As a pod of a gang asks for both: what the two resources bring is one container's.
        self.assertIn("conf=/etc/heddle/nccl/nccl.conf", self.seen(where))
        self.assertIn("nccl: NCCL_CROSS_NIC=0", self.seen(where))
        # By their CDI names, which Allocate answered and containerd looked up.
        self.assertEqual([line for line in self.seen(where) if line.startswith("cdi")],
                         ["cdi: BED_GPU_4=1", "cdi: BED_GPU_5=1", "cdi file: /bed/gpu4", "cdi file: /bed/gpu5"])

        def granted():
            grants = [grant for grant in self.status().get("grants", []) if grant["pod"] == "pairs"]
            return grants and grants[0]
        grant = self.node.wait_for(granted, "the grant")
        self.assertEqual([gpu["index"] for gpu in grant["gpus"]], [4, 5])
        self.assertEqual(grant["nics"], sorted(planned))
        self.node.wait_for(lambda: self.condition("DevicesAsPlanned").get("status") == "True", "the comparison")

    def test_equal_pods_admitted_together_all_run(self):
        """Nobody says whose devices an Allocate is for. Whatever each gets, none fails, and what differs is said."""
        self.offer("Pairs", "heddle.dev/pair")
        self.wait_allocatable("heddle.dev/pair", 8)
        bodies = [self.pod(f"equal-{i}", annotations={
            "heddle.dev/gpus": f"{2 * i},{2 * i + 1}",
            "heddle.dev/nics": ",".join(nic["name"] for nic in self.nics[2 * i:2 * i + 2])},
            **{"heddle.dev/pair": "2"}) for i in range(4)]
        places = [self.start(body) for body in bodies]
        seen = [tuple(node for node in self.nodes_seen(where) if node != "rdma_cm") for where in places]
        self.assertEqual(len(set(seen)), 4, seen)

        def all_granted():
            grants = {grant["pod"]: grant for grant in self.status().get("grants", []) if grant["pod"].startswith("equal")}
            return grants if len(grants) == 4 else None
        grants = self.node.wait_for(all_granted, "four grants")
        as_planned = all([gpu["index"] for gpu in grants[f"equal-{i}"]["gpus"]] == [2 * i, 2 * i + 1] for i in range(4))
        wanted = "True" if as_planned else "False"
        self.node.wait_for(lambda: self.condition("DevicesAsPlanned").get("status") == wanted, f"the condition {wanted}")
        print(f"    as planned: {as_planned}")

    def nics_of(self, name, rails, resource):
        """A pod that is to have the NICs of these rails, by its plan. GPUs come from elsewhere, so that the NICs alone
        say which rail it is on."""
        return self.pod(name, annotations={"heddle.dev/gpus": ",".join(map(str, rails)),
                                           "heddle.dev/nics": ",".join(self.nics[rail]["name"] for rail in rails)},
                        **{resource: str(len(rails))})

    def rails_seen(self, where):
        seen = self.nodes_seen(where)
        return [rail for rail, nic in enumerate(self.nics) if self.verbs[nic["name"]] in seen]

    def doubts(self, resource):
        return [event["message"] for event in self.plane.rest.list(path("events", "default"))
                if event["reason"] == "DevicesAmbiguous" and event["involvedObject"]["name"] == NODE
                and resource in event["message"]]

    def test_of_two_pods_at_once_each_has_the_nics_of_its_gpus(self):
        """The kubelet hears of both pods while it was away, and asks for the first when the second is there, too."""
        resource = "heddle.dev/nic-at-once"
        self.offer("Nics", resource)
        self.wait_allocatable(resource, 8)
        rails = {"older": [6, 7], "younger": [1, 2]}
        with self.node.kubelet_paused():
            places = {}
            for name, mine in rails.items():
                places[name] = self.start(self.nics_of(name, mine, resource))
                time.sleep(1.1)  # their times have whole seconds
        self.assertEqual([self.nics[rail]["rail"] for rail in range(8)], list(range(8)))
        for name, mine in rails.items():
            self.assertEqual(self.rails_seen(places[name]), mine, name)
        self.node.wait_for(lambda: self.condition("DevicesAsPlanned").get("status") == "True", "the comparison")
        self.assertEqual(self.doubts(resource), [], "the one that was bound first is meant")

    def test_of_two_pods_whose_order_is_in_doubt_no_plan_is_followed_and_both_are_named(self):
        """Bound in one order and made in the other: a kubelet may take either of them first."""
        resource = "heddle.dev/nic-in-doubt"
        self.offer("Nics", resource)
        self.wait_allocatable(resource, 8)
        rails = {"made-first": [6, 7], "bound-first": [1, 2]}
        with self.node.kubelet_paused():
            places = {}
            for name, mine in rails.items():
                body = self.nics_of(name, mine, resource)
                del body["spec"]["nodeName"]
                body["spec"]["schedulerName"] = "nobody"
                places[name] = self.start(body)
                time.sleep(1.1)  # their times have whole seconds
            for name in reversed(rails):
                self.plane.rest.create(path("pods", "default", name, "binding"), {
                    "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                    "target": {"apiVersion": "v1", "kind": "Node", "name": NODE}})
        got = {name: self.rails_seen(where) for name, where in places.items()}
        planned = [name for name, mine in rails.items() if got[name] == mine]
        self.assertEqual(len(planned), 1, f"the second is in no doubt: {got}")
        other, = rails.keys() - planned
        self.assertFalse(set(got[other]) & {1, 2, 6, 7}, "what is in doubt gets what nobody waits for")
        message, = self.node.wait_for(lambda: self.doubts(resource), "the event")
        self.assertIn("no plan is followed, because default/bound-first was bound before default/made-first and made "
                      "after it", message)
        self.node.wait_for(lambda: self.condition("DevicesAsPlanned").get("status") == "False", "the comparison")
        self.assertIn(f"default/{other} holds", self.condition("DevicesAsPlanned")["message"])

    def test_nics_follow_the_plan_and_come_one_by_one(self):
        self.offer("Nics", "heddle.dev/nic")
        self.wait_allocatable("heddle.dev/nic", 8)
        planned = [self.nics[6]["name"]]
        where = self.start(self.pod("nic", annotations={"heddle.dev/gpus": "6", "heddle.dev/nics": planned[0]},
                                    **{"heddle.dev/nic": "1"}))
        self.assertEqual(self.nodes_seen(where), sorted([self.verbs[planned[0]], "rdma_cm"]))

    def test_a_nic_that_many_share_is_a_slot_for_each(self):
        self.offer("Nics", "heddle.dev/shared", nics=self.nics[:1], slots=3)
        self.wait_allocatable("heddle.dev/shared", 3)
        for name in ("one", "two", "three"):
            where = self.start(self.pod(f"share-{name}", **{"heddle.dev/shared": "1"}))
            self.assertEqual(self.nodes_seen(where), sorted([self.verbs[self.nics[0]["name"]], "rdma_cm"]))

    # Health

    def test_a_port_that_goes_down_takes_its_device_along_and_brings_it_back(self):
        self.offer("Nics", "heddle.dev/nic-down")
        self.wait_allocatable("heddle.dev/nic-down", 8)
        port = self.recording / "sys/class/infiniband" / self.nics[2]["name"] / "ports/1"
        up = (port / "state").read_text()
        self.addCleanup((port / "state").write_text, up)
        (port / "state").write_text("1: DOWN\n")
        self.wait_allocatable("heddle.dev/nic-down", 7)
        self.node.wait_for(lambda: self.report("heddle.dev/nic-down").get("healthy") == 7, "the report")
        self.assertIn(f"{self.nics[2]['name']} port 1 is down", self.report("heddle.dev/nic-down")["reason"])
        (port / "state").write_text(up)
        self.wait_allocatable("heddle.dev/nic-down", 8)

    # Lossless settings

    def set_port(self, name, **more):
        """What the agent reads of a port, as a kernel would say it."""
        self.set_ports([name], **{"settings": {"mtu": 1500}} | more)

    def set_ports(self, names, **more):
        folder = self.ports_folder()
        folder.mkdir(exist_ok=True)
        (folder / ".next").write_text(json.dumps({"ports": [
            {"name": name, "netdev": "eth0", "link": {"carrier": True}} | more for name in names]}))
        os.rename(folder / ".next", folder / "qos.yaml")

    def lossless(self, wishes):
        self.plane.rest.patch(path("nodetopologies", name=NODE), {"spec": {"lossless": wishes}})

    def test_a_port_that_is_being_set_is_given_to_no_pod_until_it_is_set(self):
        resource, port = "heddle.dev/nic-set", f"{self.nics[3]['name']}:1"
        # Somebody uses it, so that it stays away for as long as this test wants.
        self.set_port(port, queuePairs=2, holders=["python3 (pid 4711)"])
        self.offer("Nics", resource, nics=self.nics[3:4])
        self.wait_allocatable(resource, 1)
        self.addCleanup(self.lossless, None)
        self.lossless([{"ports": [port], "policies": ["bed"], "generation": 1, "mode": "Apply", "settings": {"mtu": 9000}}])
        self.wait_allocatable(resource, 0)
        self.node.wait_for(lambda: "lossless settings are being changed" in self.report(resource).get("reason", ""), "the report")
        where = path("pods", "default", "waits")
        self.plane.rest.create(path("pods", "default"), self.node.pod("waits", **{resource: "1"}))
        self.addCleanup(self.end, where)

        def waits():
            conditions = self.plane.rest.get(where)["status"].get("conditions", [])
            return any(c["type"] == "PodScheduled" and c["status"] == "False" and f"Insufficient {resource}" in c["message"]
                       for c in conditions)
        self.node.wait_for(waits, "the pod to wait for the device", 60)
        self.assertIn("mtu: 1500", (self.ports_folder() / "qos.yaml").read_text().replace('"', ""), "nothing was written yet")
        self.set_port(port)  # they have ended
        self.node.wait_for(lambda: self.plane.rest.get(where)["status"].get("phase") == "Running", "the pod to run", 90)
        writes = [line for line in (self.ports_folder() / "writes").read_text().splitlines() if line.startswith(f"{port} ")]
        self.assertEqual(writes, [f"{port} mtu"], "it was set before")
        self.assertEqual([r["state"] for r in self.status()["lossless"]], ["Compliant"])

    def be_roce(self, settings):
        """A machine of RoCE, which the others are not, whose ports read back as this. Returns their names."""
        self.be_machine("roce-dual-tor", self.agent_root / self.id().rpartition(".")[2])
        ports = sorted(f"{nic['name']}:{port['number']}" for nic in self.status()["nics"] if nic["role"] == "compute"
                       for port in nic["ports"])
        self.set_ports(ports, settings=settings)
        self.addCleanup(self.lossless, None)
        return ports

    def told(self, line):
        """Waits until the NCCL file has it."""
        file = self.agent_root / self.id().rpartition(".")[2] / "nccl" / "nccl.conf"

        def there():
            if line not in file.read_text():
                raise AssertionError(file.read_text())
            return True
        self.node.wait_for(there, f"{line} in the file", 60)

    def marks(self, pod):
        """What a pod that starts now is told of marks."""
        seen = self.seen(self.start(self.pod(pod, **{FABRIC: "1"})))
        self.assertIn("nccl: NCCL_IB_ROCE_VERSION_NUM=2", seen)
        self.assertIn("nccl: NCCL_IB_ADDR_FAMILY=AF_INET", seen)
        return [line for line in seen if line.startswith(("nccl: NCCL_IB_TC", "nccl: NCCL_IB_SL"))]

    def test_a_lossless_policys_marks_reach_pods_while_its_ports_read_back_so(self):
        ports = self.be_roce(FRESH)
        self.assertEqual(self.marks("no-policy"), [])
        self.lossless([{"ports": ports, "policies": ["bed"], "generation": 1, "mode": "Apply", "settings": MARKS}])
        self.told("NCCL_IB_TC=106\n")
        self.node.wait_for(lambda: [r["state"] for r in self.status()["lossless"]] == ["Compliant"], "the report", 60)
        self.assertEqual(self.marks("marked"), ["nccl: NCCL_IB_TC=106", "nccl: NCCL_IB_SL=3"])
        # Somebody turns PFC off.
        self.set_ports(ports, settings=MARKS | {"pfc": []})
        why = (f"NCCL_IB_TC is left out: LosslessPolicy bed marks data with 106, and {ports[0]} has another pfc than that, "
               f"as {len(ports) - 1} more")
        self.told(f"# {why}.\n")
        self.assertEqual(self.marks("spoilt"), [])
        self.node.wait_for(lambda: why in self.condition("NcclFilesWritten")["message"], "the condition to say why")

    def test_a_lossless_policy_that_observes_marks_what_others_have_set(self):
        """A site that sets its hosts by means of its own."""
        ports, written = self.be_roce(FRESH), self.ports_folder() / "writes"
        before = written.read_text() if written.exists() else ""
        self.lossless([{"ports": ports, "policies": ["bed"], "generation": 1, "mode": "Observe", "settings": MARKS}])
        self.told(f"# NCCL_IB_TC is left out: LosslessPolicy bed marks data with 106, and {ports[0]} has another trust than "
                  f"that, as {len(ports) - 1} more.\n")
        self.assertEqual(self.marks("not-set"), [])
        self.set_ports(ports, settings=MARKS)
        self.told("NCCL_IB_TC=106\n")
        self.assertEqual(self.marks("watched"), ["nccl: NCCL_IB_TC=106", "nccl: NCCL_IB_SL=3"])
        self.assertEqual(written.read_text() if written.exists() else "", before, "it only looks")

    # Others

    def test_another_plugin_of_the_same_resource_is_said_and_survived(self):
        resource = "heddle.dev/nic-foreign"
        self.offer("Nics", resource)
        self.wait_allocatable(resource, 8)
        other = DevicePlugin(self.node, resource, ["not-ours"])
        other.start()
        self.addCleanup(other.stop)
        report = self.node.wait_for(lambda: self.report(resource).get("state") == "Elsewhere" and self.report(resource),
                                    "the report to say so")
        self.assertIn('"not-ours" is none of our devices', report["reason"])
        self.assertEqual((report.get("healthy", 0), report["total"]), (0, 8))
        other.stop()
        self.wait_allocatable(resource, 8)
        self.node.wait_for(lambda: self.report(resource).get("state") == "Offered", "ours to be offered again")
        where = self.start(self.pod("after-foreign", **{resource: "1"}))
        self.assertEqual(len(self.nodes_seen(where)), 2)

    def test_another_plugin_that_the_policy_names_is_there_once_the_kubelet_has_its_devices(self):
        resource = "rdma/hca"
        self.offer("Nics", resource, plugin="RdmaShared", slots=4)
        report = self.node.wait_for(lambda: self.report(resource).get("state") == "Pending" and self.report(resource),
                                    "the report to say that it is not there")
        self.assertEqual(report["reason"], "its plugin is RdmaShared, and the kubelet lists no device of it")
        self.assertEqual(report.get("total", 0), 0)
        other = DevicePlugin(self.node, resource, ["0", "1", "2", "3"])
        other.start()
        self.addCleanup(other.stop)
        self.node.wait_for(lambda: (self.report(resource).get("state"), self.report(resource).get("healthy")) ==
                           ("Elsewhere", 4), "the report to say that it is there", 60)
        other.stop()
        self.node.wait_for(lambda: self.report(resource).get("state") == "Pending", "the report to say that it went", 60)

    def test_pairs_wait_until_the_vendors_plugin_is_off(self):
        vendor = DevicePlugin(self.node, "nvidia.com/gpu", [gpu["uuid"] for gpu in self.machine["gpus"]]).start()
        self.addCleanup(vendor.stop)
        self.node.wait_for(lambda: "8 GPUs" in self.condition("GrantsKnown").get("message", ""), "the agent to see it")
        resource = "heddle.dev/late-gpu"
        self.offer("Pairs", resource)
        report = self.node.wait_for(lambda: self.report(resource).get("state") == "Refused" and self.report(resource),
                                    "the report to refuse")
        self.assertRegex(report["reason"], "^nvidia.com/gpu offers GPU [0-7] on this node as well")
        vendor.stop()
        self.wait_allocatable(resource, 8)

    # Restarts

    def test_a_kubelet_that_starts_anew_has_the_devices_again(self):
        self.offer("Nics", "heddle.dev/nic-kubelet")
        self.wait_allocatable("heddle.dev/nic-kubelet", 8)
        before = self.start(self.pod("before", **{FABRIC: "1"}))
        self.seen(before)
        told = {resource: self.lists(resource) for resource in (FABRIC, "heddle.dev/nic-kubelet")}
        self.node.kill_kubelet()
        self.node.start_kubelet()
        for resource, count in told.items():
            self.node.wait_for(lambda: self.lists(resource) > count, f"the new kubelet to hear of {resource}")
        self.wait_allocatable("heddle.dev/nic-kubelet", 8)
        self.wait_allocatable(FABRIC, 250)
        after = self.start(self.pod("after", **{FABRIC: "1", "heddle.dev/nic-kubelet": "1"}))
        self.assertIn("nccl: NCCL_CROSS_NIC=0", self.seen(after))
        self.assertEqual(self.plane.rest.get(before)["status"]["phase"], "Running")

    def test_an_agent_that_is_killed_and_starts_again_offers_what_it_did(self):
        self.offer("Nics", "heddle.dev/nic-killed")
        self.wait_allocatable("heddle.dev/nic-killed", 8)
        running = self.start(self.pod("running", **{FABRIC: "1", "heddle.dev/nic-killed": "1"}))
        self.seen(running)
        self.heddle.kill9(f"agent:{NODE}")
        self.wait_allocatable("heddle.dev/nic-killed", 0)
        self.assertEqual(self.plane.rest.get(running)["status"]["phase"], "Running")
        self.heddle.start_daemon(f"agent:{NODE}")
        self.wait_allocatable("heddle.dev/nic-killed", 8)
        again = self.start(self.pod("again", **{FABRIC: "1", "heddle.dev/nic-killed": "1"}))
        self.assertIn("nccl: NCCL_CROSS_NIC=0", self.seen(again))

    def test_an_agent_that_is_told_to_end_takes_its_devices_along(self):
        self.heddle.stop_daemon(f"agent:{NODE}")
        self.wait_allocatable(FABRIC, 0)
        self.assertEqual([entry.name for entry in self.node.device_plugins.glob("heddle-*.sock")], [])
        self.heddle.start_daemon(f"agent:{NODE}")
        self.wait_allocatable(FABRIC, 250)


if __name__ == "__main__":
    unittest.main()
