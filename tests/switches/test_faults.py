"""Each fault does what it says, as a client sees it; and once it is mended, nothing of it is left."""

import time
import unittest

from client import Client, Refused, verified
from switches import Switches, leaf


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.switches = Switches([leaf("leaf-3", 4), leaf("leaf-5", 4, name="twin", hwsku="other")], tick_ms=200).start()
        cls.addClassCleanup(cls.switches.close)
        cls.leaf = cls.switches["leaf-3"]
        cls.client = Client(cls.leaf, cls.switches.authority)

    def tearDown(self):
        self.leaf.mend()
        self.assertEqual(self.client.get("CONFIG_DB", "PORT/Ethernet0/mtu"), "9100")

    def test_a_word_that_is_no_fault_is_refused(self):
        for wrong in ({"stall": "a bit"}, {"no_such": True}, {"certificate": "x"}):
            with self.assertRaises(ValueError):
                self.leaf.faults(**wrong)

    def test_stalled_answers_never_come(self):
        self.leaf.faults(stall="answers")
        with self.assertRaises(TimeoutError):
            self.client.get("CONFIG_DB", "PORT", timeout=2)

    def test_a_stalled_stream_falls_silent_and_goes_on(self):
        with self.client.stream("CONFIG_DB", "PFC_WD", mode="SAMPLE") as stream:
            stream.next(), stream.next()
            self.leaf.faults(stall="answers")
            with self.assertRaises(TimeoutError):
                for _ in range(3):  # one may be on its way
                    stream.next(timeout=1.5)
            self.leaf.mend()
            self.assertIn("GLOBAL", stream.next())

    def test_stalled_connections_do_not_shake_hands(self):
        self.leaf.faults(stall="connections")
        with self.assertRaises(Refused):
            self.client.get("CONFIG_DB", "PORT")
        self.leaf.faults(stall="down")
        with self.assertRaises(Refused):
            self.client.get("CONFIG_DB", "PORT")

    def test_latency(self):
        self.leaf.faults(latency=700)
        since = time.monotonic()
        self.client.get("CONFIG_DB", "PORT")
        self.assertGreater(time.monotonic() - since, 0.7)

    def test_garbage(self):
        self.leaf.faults(garbage="json")
        self.assertIsInstance(self.client.get("CONFIG_DB", "PORT"), bytes)
        self.leaf.faults(garbage="cut")
        self.assertIsInstance(self.client.get("CONFIG_DB", "PORT"), bytes)
        self.leaf.faults(garbage="type")
        self.assertIsInstance(self.client.get("CONFIG_DB", "PORT"), list)
        self.leaf.faults(garbage="numbers")
        self.assertEqual(self.client.get("COUNTERS_DB", "COUNTERS/Ethernet0")["SAI_PORT_STAT_IF_IN_ERRORS"], "-1e400 banana")
        self.leaf.faults(garbage="utf8")
        self.assertIsInstance(self.client.get("CONFIG_DB", "PORT"), bytes)

    def test_half_a_table(self):
        self.leaf.faults(without_rows=["Ethernet8"], without_fields=["pfc_*"])
        found = self.client.get("CONFIG_DB", "PORT_QOS_MAP")
        self.assertEqual(sorted(found), ["Ethernet0", "Ethernet16", "Ethernet24", "global"])
        self.assertEqual(sorted(found["Ethernet0"]), ["dscp_to_tc_map", "pfcwd_sw_enable", "tc_to_pg_map", "tc_to_queue_map"])
        self.leaf.faults(half_of_rows=True)
        self.assertEqual(sorted(self.client.get("CONFIG_DB", "PORT")), ["Ethernet0", "Ethernet24"])

    def test_a_refused_login(self):
        self.leaf.faults(refuse_login=True)
        with self.assertRaisesRegex(Refused, "Unauthenticated"):
            self.client.get("CONFIG_DB", "PORT")

    def test_wrong_certificates(self):
        self.assertEqual(verified(self.leaf, self.switches.authority), "ok")
        for kind, why in (("name", "ostname mismatch"), ("expired", "has expired"), ("authority", "self.signed|unable to")):
            with self.subTest(kind):
                self.leaf.wrong_certificate(kind)
                self.assertRegex(verified(self.leaf, self.switches.authority), why)
        with self.assertRaisesRegex(Refused, "deadline"):
            self.client.get("CONFIG_DB", "PORT")

    def test_streams_are_closed(self):
        with self.client.stream("CONFIG_DB", "PORT") as stream:
            stream.next(), stream.next()
            self.leaf.close_streams()
            self.assertRegex(str(stream.next()), "InvalidArgument")
        self.leaf.faults(close_after=1)
        with self.client.stream("CONFIG_DB", "PORT") as stream:
            self.assertIn("Ethernet0", stream.next())
            self.assertRegex(str(stream.next()), "InvalidArgument")

    def test_a_restart_begins_at_zero(self):
        errors = "SAI_PORT_STAT_IF_IN_ERRORS"
        self.leaf.counters({"Ethernet0": {errors: 1000}})
        self.leaf.flap("Ethernet0", 3)
        before = self.client.get("OTHERS", "proc/uptime")["total"]
        with self.client.stream("CONFIG_DB", "PORT") as stream:
            stream.next(), stream.next()
            self.leaf.restart()
            self.assertRegex(str(stream.next()), "Unavailable|EOF|closed|reset")
        self.assertEqual(self.client.get("COUNTERS_DB", f"COUNTERS/Ethernet0/{errors}"), "0")
        self.assertEqual(self.client.get("APPL_DB", "PORT_TABLE/Ethernet0/flap_count"), "1")
        self.assertLess(self.client.get("OTHERS", "proc/uptime")["total"], before + 60)
        self.assertEqual(self.leaf.asked()["port"], self.leaf.port)

    def test_another_model(self):
        self.leaf.faults(model="vendor")
        self.assertNotIn("sonic-db", self.client.capabilities())
        self.assertEqual(list(self.client.get("CONFIG_DB", "PORT")), ["Smash"])
        self.leaf.faults(model="other")
        with self.assertRaisesRegex(Refused, "NotFound"):
            self.client.get("CONFIG_DB", "PORT")
        self.leaf.faults(model="none")
        with self.assertRaisesRegex(Refused, "Unimplemented"):
            self.client.get("CONFIG_DB", "PORT")

    def test_two_switches_say_one_name(self):
        twin = Client(self.switches["twin"], self.switches.authority)
        self.assertEqual(twin.get("CONFIG_DB", "DEVICE_METADATA/localhost/hostname"), "leaf-5")
        self.switches["twin"].faults(hostname="leaf-3")
        self.assertEqual(twin.get("CONFIG_DB", "DEVICE_METADATA/localhost/hostname"), "leaf-3")
        self.assertEqual(twin.get("CONFIG_DB", "DEVICE_METADATA")["localhost"]["hostname"], "leaf-3")
        self.assertEqual(twin.get("CONFIG_DB", "DEVICE_METADATA/localhost")["hwsku"], "other")
        self.assertEqual(twin.get("APPL_DB", "LLDP_LOC_CHASSIS/lldp_loc_sys_name"), "leaf-3")
        self.switches["twin"].mend()


class ClientCertificates(unittest.TestCase):
    def test_who_brings_no_certificate_is_not_let_in(self):
        switches = Switches([leaf(name, 1, clientAuthority=True) for name in ("leaf-3", "leaf-4")])
        identity = switches.authority.issue("heddle", ["heddle"])
        with switches:
            with self.assertRaises(Refused):
                Client(switches["leaf-3"], switches.authority).get("CONFIG_DB", "PORT")
            self.assertIn("Ethernet0", Client(switches["leaf-3"], switches.authority, identity=identity).get("CONFIG_DB", "PORT"))
