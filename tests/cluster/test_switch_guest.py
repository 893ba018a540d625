"""A DSCP from the NIC to the leaf: an agent in a guest reads and sets a kernel's own DCB, congestion and rdma_cm settings,
and the other end of that cable is a SONiC switch of tests/switches that the operator asks over gNMI. What is played: the
NIC is dcbdev's, and no cable goes from a guest to the switch, so the guest's lldpcli prints a file that has it."""

import base64
import json
import sys

from bed import REPOSITORY, path
from bed.heddle import NAMESPACE
from guest_bed import NIC, NODE, PORT, GuestBed, lab

sys.path.insert(0, str(REPOSITORY / "tests" / "switches"))
from switches import Switches, leaf, rendered_rows  # noqa: E402  pylint: disable=wrong-import-position

LEAF, LEAF_PORT, CHASSIS = "leaf-3", "Ethernet8", "52:54:00:00:00:03"
# As `lldpcli -f json0 show neighbors` prints it.
NEIGHBOURS = {"lldp": [{"interface": [{
    "name": "dcb0", "via": "LLDP", "rid": "1", "age": "0 day, 00:01:00",
    "chassis": [{"id": [{"type": "mac", "value": CHASSIS}], "name": [{"value": LEAF}],
                 "descr": [{"value": "SONiC Software Version"}], "capability": [{"type": "Bridge", "enabled": True}]}],
    "port": [{"id": [{"type": "local", "value": LEAF_PORT}], "descr": [{"value": LEAF_PORT}], "ttl": [{"value": "120"}]}]}]}]}
CNP_DSCP = f"/sys/kernel/debug/mlx5/{NIC}/cc_params/np_cnp_dscp"


class SwitchGuestTest(GuestBed):
    values = {"operator": {"switches": {"secrets": ["leaf-ca", "leaf-login"], "render": True}}}

    @classmethod
    def start_guest(cls):
        super().start_guest()
        folder = cls.guest.folder
        (folder / "neighbours").write_text(json.dumps(NEIGHBOURS))
        (folder / "lldpcli").write_text("#!/bin/sh\nexec cat /mnt/neighbours\n")
        (folder / "lldpcli").chmod(0o755)
        cls.guest.run('mount --bind /mnt/lldpcli "$(command -v lldpcli)"')
        cls.switches = Switches([leaf(LEAF, 2, mac=CHASSIS, username="heddle", password="loom")])
        cls.addClassCleanup(cls.switches.close)
        cls.switches.start()
        for name, data in (("leaf-login", {"username": "heddle", "password": "loom"}),
                           ("leaf-ca", {"ca.crt": cls.switches.authority.certificate.read_text()})):
            cls.rest.create(path("secrets", NAMESPACE), {
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
                "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}})

    def ask(self):
        there = self.switches[LEAF]
        self.rest.create(path("fabricswitches"), {
            "apiVersion": "heddle.dev/v1alpha1", "kind": "FabricSwitch", "metadata": {"name": LEAF},
            "spec": {"address": there.address, "role": "Leaf", "name": LEAF, "pollSeconds": 10, "mode": "Render",
                     "tls": {"serverName": there.server_name, "caSecret": {"name": "leaf-ca"}},
                     "credentialsSecret": {"name": "leaf-login"}}})
        self.addCleanup(self.rest.delete, path("fabricswitches", name=LEAF))

    def lossless(self):
        conditions = self.rest.get(path("fabricswitches", name=LEAF)).get("status", {}).get("conditions", [])
        return next((one for one in conditions if one["type"] == "Lossless"), {})

    def wait_worst(self, setting):
        """The one cable that ends on the leaf, once that is what is wrong with it."""
        def there():
            status = self.rest.get(path("fabricswitches", name=LEAF)).get("status", {})
            worst = (status.get("worstCables") or [{}])[0]
            if worst.get("setting") != setting:
                raise AssertionError(f"{worst}\n{status.get('conditions')}\n{self.said()}")
            return worst
        worst = self.heddle.wait_for(there, f"{setting} to be the worst", 120)
        self.assertEqual((worst["node"], worst["port"], worst["switchPort"]), (NODE, PORT, LEAF_PORT))
        return worst

    def told(self):
        """What the operator tells the node of that cable."""
        cables = self.rest.get(path("nodetopologies", name=NODE)).get("spec", {}).get("cables", [])
        return next((one for one in cables if PORT in one["ports"]), {})

    def be_as_two_defaults_contradict(self):
        """What one NIC operator sets by itself: trust of DSCPs, PFC on 3, CNPs with DSCP 4, and a ToS of 0 as it was. mlx5
        gives what has PFC a buffer by itself, dcbdev does not."""
        self.guest.run("dcb app add dev dcb0 dscp-prio 0:0 3:3 4:0 && dcb pfc set dev dcb0 prio-pfc all:off 3:on && "
                       "dcb buffer set dev dcb0 prio-buffer 3:1 buffer-size 1:131072 && "
                       f"echo 4 >{CNP_DSCP}")

    def send_with(self, tos):
        """The ToS of rdma_cm; while it is set an agent may look, who makes the same folder and takes it away."""
        script = (f"mkdir -p /sys/kernel/config/rdma_cm/rxe0 && cd /sys/kernel/config/rdma_cm/rxe0/ports/1 && "
                  f"echo 'RoCE v2' >default_roce_mode && echo {tos} >default_roce_tos && cd / && "
                  "rmdir /sys/kernel/config/rdma_cm/rxe0")
        lab.wait_for(f"ToS {tos}", lambda: self.guest.attempt(script)[0] == 0)

    def apply_what_was_rendered(self):
        """A person does it; Heddle only reads."""
        stands = self.rest.get(path("fabricswitches", name=LEAF))["status"]["renderConfigMap"]
        data = self.rest.get(path("configmaps", NAMESPACE, name=stands))["data"]
        for rows in rendered_rows(data, self.policy):
            self.switches[LEAF].rows("CONFIG_DB", rows)

    def row(self, key):
        return self.switches[LEAF].row("CONFIG_DB", key)

    def test_two_defaults_contradict_on_the_cable_and_one_dscp_goes_through_once_both_ends_are_set(self):
        self.be_as_two_defaults_contradict()
        self.start_agent(interval=5)
        # As fast as the guest's rxe says that its link is: what an interface of no hardware runs at is no matter here.
        rate = self.heddle.wait_for(lambda: next((one["ports"][0].get("rateGbps") for one in self.status().get("nics", [])
                                                  if one["name"] == PORT.split(":", maxsplit=1)[0]), None),
                                    "the agent to publish", 90)
        self.switches[LEAF].rows("CONFIG_DB", {f"PORT|{LEAF_PORT}": {"speed": str(rate * 1000)}})
        self.make(mode="Observe")
        self.ask()
        # One half: data that nobody marks. Both ends' values are in the objects.
        worst = self.wait_worst("dscpToPriority")
        self.assertEqual((worst["verdict"], worst["host"], worst["switch"]),
                         ("Contradiction", "DSCP 0: priority 0, PFC 3", "DSCP 0: priority 0, PFC 3,4"))
        self.assertEqual((self.lossless()["status"], self.lossless()["reason"]), ("False", "Contradiction"))
        self.heddle.wait_for(lambda: self.told().get("verdict") == "Contradiction", "the node to be told so")
        self.assertIn("data is sent with DSCP 0; the switch puts DSCP 0 in priority group 0", self.told()["message"])
        # The other half is what is left once data has a DSCP that SONiC's own map has in a lossless class.
        self.send_with(tos=3 * 4)
        worst = self.wait_worst("cnpDscp")
        self.assertEqual((worst["verdict"], worst["host"], worst["switch"]),
                         ("Contradiction", "DSCP 4: priority 0, PFC 3", "DSCP 4: priority 4, PFC 3,4"))
        self.heddle.wait_for(lambda: "CNPs are sent with DSCP 4" in self.told().get("message", ""), "the node to be told so")
        self.assertIn("the switch puts DSCP 4 in priority group 4, which has PFC", self.told()["message"])
        # Both ends get what one policy says, the leaf by a person's hand.
        self.change(mode="Apply")
        self.wait_generation(2)
        self.apply_what_was_rendered()
        # No contradiction is left. The kernel's own mlx5 does not say where DCQCN acts, so that this alone is not proved.
        worst = self.wait_worst("ecn")
        self.assertEqual((worst["verdict"], worst["host"]), ("Unproved", "not known"))
        self.assertEqual((self.lossless()["status"], self.lossless()["reason"]), ("Unknown", "Unproved"))
        self.heddle.wait_for(lambda: self.told().get("verdict") == "Unproved", "the node to be told so")
        # DSCP 26 from end to end: the kernel's priority, and the leaf's class and group, pause under one number.
        self.assertIn([26, 3], json.loads(self.guest.run("dcb -j app -N show dev dcb0"))["dscp_prio"])
        self.assertIn("3:on", self.guest.run("dcb pfc show dev dcb0"))
        self.assertEqual(self.guest.run(f"cat {CNP_DSCP}").strip(), "48")
        maps = {field: value.strip("[]").rpartition("|")[2] for field, value in self.row(f"PORT_QOS_MAP|{LEAF_PORT}").items()}
        tc = self.row(f"DSCP_TO_TC_MAP|{maps['dscp_to_tc_map']}")["26"]
        self.assertEqual(self.row(f"TC_TO_PRIORITY_GROUP_MAP|{maps['tc_to_pg_map']}")[tc], "3")
        self.assertEqual(maps["pfc_enable"], "3")
