"""A switch of OpenConfig's models says the same of the same tables; Subscribe is openconfig/gnmi's own."""

import unittest

from client import Client, Refused
from switches import Switches, leaf

GPU = {"system": "gpu-017", "chassis": "94:6d:ae:00:00:17", "port": "enp1s0np0", "portSubtype": "5"}
STATE = "interfaces/interface[name=Ethernet0]/state"


class OpenConfig(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.switches = Switches([leaf("spine-0", 2, dialect="openconfig", neighbours={"Ethernet8": GPU}, mac="52:54:00:00:00:09")],
                                tick_ms=200).start()
        cls.addClassCleanup(cls.switches.close)
        cls.spine = cls.switches["spine-0"]
        cls.client = Client(cls.spine, cls.switches.authority)

    def test_capabilities_have_no_model_of_sonics(self):
        said = self.client.capabilities()
        self.assertIn("openconfig-if-ethernet", said)
        self.assertNotIn("sonic", said)

    def test_get_writes_a_state_as_rfc_7951_has_it(self):
        state = self.client.get("spine-0", STATE)
        self.assertEqual(state["openconfig-interfaces:mtu"], 9100)
        self.assertEqual(state["openconfig-interfaces:oper-status"], "UP")
        self.assertEqual(state["openconfig-interfaces:counters"]["in-errors"], "0", "64 bits are a string")
        ethernet = self.client.get("any", "interfaces/interface[name=Ethernet0]/ethernet/state")
        self.assertEqual(ethernet["openconfig-if-ethernet:port-speed"], "openconfig-if-ethernet:SPEED_400GB")
        self.assertEqual(ethernet["openconfig-if-ethernet:fec-mode"], "openconfig-if-ethernet:FEC_RS544_2X_INTERLEAVE")

    def test_a_wildcard_gives_each_and_a_list_is_one(self):
        self.assertEqual(self.client.get("any", "interfaces/interface[name=*]/state/name"), ["Ethernet0", "Ethernet8"])
        everything = self.client.get("any", "interfaces")
        self.assertEqual([one["name"] for one in everything["openconfig-interfaces:interface"]], ["Ethernet0", "Ethernet8"])
        with self.assertRaisesRegex(Refused, "NotFound"):
            self.client.get("any", "interfaces/interface[name=Ethernet9]/state")

    def test_lldp_and_queues(self):
        self.assertEqual(self.client.get("any", "lldp/state/system-name"), "spine-0")
        said = self.client.get("any", "lldp/interfaces/interface[name=Ethernet8]/neighbors/neighbor/state")
        self.assertEqual(said["openconfig-lldp:port-id-type"], "INTERFACE_NAME")
        self.spine.counters({"Ethernet0:3": {"SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS": 12}})
        queue = "qos/interfaces/interface[interface-id=Ethernet0]/output/queues/queue[name=3]/state"
        self.assertEqual(self.client.get("any", queue)["openconfig-qos:ecn-marked-pkts"], "12")

    def test_a_stream_gives_leaves_as_they_change(self):
        with self.client.stream("spine-0", STATE) as stream:
            first = []
            while (value := stream.next()) != "sync":
                first.append(value)
            self.assertIn("UP", first)
            transitions = int(self.client.get("any", STATE + "/counters/interface-transitions"))
            self.spine.flap("Ethernet0", 2)
            # Its last change may come first, where that is another second.
            while (value := stream.next()) != transitions + 4:
                self.assertGreater(value, 10**18, "nothing else has changed")

    def test_samples_come_changed_or_not(self):
        with self.client.stream("spine-0", STATE + "/oper-status", mode="SAMPLE") as stream:
            self.assertEqual([stream.next() for _ in range(4)], ["UP", "sync", "UP", "UP"])

    def test_once_ends_by_itself(self):
        self.assertEqual(self.client.once("spine-0", "interfaces/interface/state/oper-status", patience=10), (["UP", "UP"], True))


class Many(unittest.TestCase):
    def test_five_hundred_switches_are_one_process(self):
        count = 500
        with Switches([leaf(f"leaf-{index}", 64) for index in range(count)]) as switches:
            self.assertEqual(len(list(switches)), count)
            client = Client(switches["leaf-499"], switches.authority)
            self.assertEqual(len(client.get("COUNTERS_DB", "COUNTERS/Ethernet*")), 64)
            self.assertLess(switches.process.resident_bytes(), 600_000_000)
