"""A SONiC switch answers as sonic-gnmi does: README.md says where each of these is known from."""

import json
import time
import unittest

from client import Client, Refused
from switches import ROOT, Switches, leaf, port

FEC = "SAI_PORT_STAT_IF_IN_FEC_NOT_CORRECTABLE_FRAMES"
DROPPED = "SAI_PORT_STAT_IF_OUT_DISCARDS"  # runs in none of these tests
GPU = {"system": "gpu-017", "chassis": "94:6d:ae:00:00:17", "port": "94:6d:ae:00:00:18", "description": "mlx5_3"}


class InMemory(unittest.TestCase):
    """Four ports, tables in memory, running counters five times a second."""

    @classmethod
    def setUpClass(cls):
        cls.switches = Switches([leaf("leaf-3", 4, neighbours={"Ethernet8": GPU}, username="heddle", password="loom"),
                                 leaf("leaf-4", 2)], tick_ms=200).start()
        cls.addClassCleanup(cls.switches.close)
        cls.leaf = cls.switches["leaf-3"]
        cls.client = Client(cls.leaf, cls.switches.authority, user="heddle", password="loom")

    def test_capabilities_name_sonics_own_model(self):
        said = self.client.capabilities()
        self.assertRegex(said, r'name:\s+"sonic-db"')
        self.assertRegex(said, r'gNMI_version:\s+"0\.7\.0"')
        self.assertIn("JSON_IETF", said)

    def test_a_table_is_an_object_of_rows_of_strings(self):
        ports = self.client.get("CONFIG_DB", "PORT")
        self.assertEqual(sorted(ports), ["Ethernet0", "Ethernet16", "Ethernet24", "Ethernet8"])
        self.assertEqual(ports["Ethernet8"]["alias"], "etp2")
        self.assertEqual(ports["Ethernet8"]["mtu"], "9100")
        self.assertIn("Ethernet0|3", self.client.get("CONFIG_DB", "QUEUE"))

    def test_a_row_is_flat_and_a_field_is_no_json(self):
        self.assertEqual(self.client.get("CONFIG_DB", "DEVICE_METADATA/localhost")["hostname"], "leaf-3")
        self.assertEqual(self.client.get("CONFIG_DB", "PORT/Ethernet0/speed"), "400000")
        self.assertIn("string_val", self.client.get_text("CONFIG_DB", "PORT/Ethernet0/speed"))
        self.assertEqual(self.client.get("CONFIG_DB", "QUEUE/Ethernet0/3")["wred_profile"], "AZURE_LOSSLESS")
        self.assertEqual(self.client.get("CONFIG_DB", "QUEUE/Ethernet0/3/scheduler"), "scheduler.1")

    def test_a_table_that_is_not_there_is_empty_and_a_row_that_is_not_fails_all(self):
        self.assertEqual(self.client.get("CONFIG_DB", "NO_SUCH_TABLE"), {})
        for path in ("PORT/Ethernet999", "PORT/Ethernet0/no_such_field"):
            with self.assertRaisesRegex(Refused, "NotFound.*No valid entry found on CONFIG_DB"):
                self.client.get_text("CONFIG_DB", "PORT", path)
        with self.assertRaisesRegex(Refused, "NotFound"):
            self.client.get("NO_SUCH_DB", "PORT")

    def test_counters_go_by_alias_for_all_ports_and_by_nothing_for_one(self):
        every = self.client.get("COUNTERS_DB", "COUNTERS/Ethernet*")
        self.assertEqual(sorted(every), ["etp1", "etp2", "etp3", "etp4"])
        self.assertEqual(every["etp1"]["SAI_PORT_STAT_PFC_3_RX_PKTS"], "0")
        self.assertEqual(self.client.get("COUNTERS_DB", "COUNTERS/Ethernet8"), every["etp2"])
        self.assertEqual(self.client.get("COUNTERS_DB", f"COUNTERS/Ethernet*/{DROPPED}")["etp3"], {DROPPED: "0"})
        self.assertEqual(self.client.get("COUNTERS_DB", f"COUNTERS/Ethernet8/{DROPPED}"), "0")
        self.assertEqual(self.client.get("COUNTERS_DB", "COUNTERS/Ethernet*/SAI_NO_SUCH_STAT"), {})
        self.assertEqual(sorted(self.client.get("COUNTERS_DB", "INTERFACE_COUNTERS"))[0], "Ethernet0")

    def test_names_of_ports_have_their_oddities(self):
        self.assertEqual(len(self.client.get("COUNTERS_DB", "COUNTERS/Ethernet2*")), 4, "any * means all ports")
        with self.assertRaisesRegex(Refused, "NotFound"):
            self.client.get("COUNTERS_DB", "COUNTERS/etp1")
        oid = self.client.get("COUNTERS_DB", "COUNTERS_QUEUE_NAME_MAP")["Ethernet0:3"]
        mark = {"SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES": "64"}
        self.leaf.rows("COUNTERS_DB", {f"PERIODIC_WATERMARKS:{oid}": mark})
        self.assertEqual(self.client.get("COUNTERS_DB", "COUNTERS/Ethernet*/Queues")["etp1:3:periodic"], mark)
        self.leaf.rows("COUNTERS_DB", {f"PERIODIC_WATERMARKS:{oid}": None})

    def test_a_stream_waits_for_what_is_not_there(self):
        for path in ("NO_SUCH_TABLE", "PORT/Ethernet999"):
            with self.client.stream("CONFIG_DB", path) as stream:
                self.assertEqual([stream.next(), stream.next()], [{}, "sync"])

    def test_queues_and_the_watchdog(self):
        queues = self.client.get("COUNTERS_DB", "COUNTERS/Ethernet*/Queues")
        self.assertEqual(len(queues), 4 * 8)
        self.assertEqual(queues["etp1:3"]["PFC_WD_STATUS"], "operational")
        self.assertNotIn("PFC_WD_STATUS", queues["etp1:0"])
        self.assertIn("SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS", queues["etp1:0"])
        self.assertEqual(sorted(self.client.get("COUNTERS_DB", "COUNTERS/Ethernet8/Queues"))[3], "Ethernet8:3")
        watched = self.client.get("COUNTERS_DB", "COUNTERS/Ethernet*/Pfcwd")
        self.assertEqual(sorted(watched)[:2], ["etp1:3", "etp1:4"])
        # As they are asked for where a port moved: by the name that was asked for.
        one = self.client.get("COUNTERS_DB", "COUNTERS/Ethernet8/Pfcwd")
        self.assertEqual(sorted(one), ["Ethernet8:3", "Ethernet8:4"])
        self.assertEqual(one["Ethernet8:3"]["PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED"], "0")

    def test_names_lie_beside_the_counters(self):
        numbers = self.client.get("COUNTERS_DB", "COUNTERS_PORT_NAME_MAP")
        self.assertIn(numbers["Ethernet0"], self.client.get("COUNTERS_DB", "COUNTERS"))
        self.assertEqual(len(self.client.get("COUNTERS_DB", "COUNTERS_QUEUE_NAME_MAP")), 32)

    def test_lldp_says_who_is_at_the_other_end(self):
        said = self.client.get("APPL_DB", "LLDP_ENTRY_TABLE")
        self.assertEqual(list(said), ["Ethernet8"])
        self.assertEqual(said["Ethernet8"]["lldp_rem_sys_name"], "gpu-017")
        self.assertEqual(self.client.get("APPL_DB", "LLDP_LOC_CHASSIS"), {})
        self.assertEqual(self.client.get("APPL_DB", "LLDP_LOC_CHASSIS/lldp_loc_sys_name"), "leaf-3")

    def test_a_flap_counts_twice(self):
        before = int(self.client.get("APPL_DB", "PORT_TABLE/Ethernet24")["flap_count"])
        self.leaf.flap("Ethernet24", 41)
        after = self.client.get("APPL_DB", "PORT_TABLE/Ethernet24")
        self.assertEqual(int(after["flap_count"]) - before, 82)
        time.strptime(after["last_down_time"], "%a %b %d %H:%M:%S %Y")
        self.leaf.link("Ethernet24", False)
        self.assertEqual(self.client.get("APPL_DB", "PORT_TABLE/Ethernet24")["oper_status"], "down")
        self.assertEqual(self.client.get("STATE_DB", "PORT_TABLE/Ethernet24")["netdev_oper_status"], "down")
        self.leaf.link("Ethernet24", True)

    def test_counters_are_set_and_run(self):
        self.leaf.counters({"Ethernet16": {FEC: 2**64 - 1}, "Ethernet16:3": {"SAI_QUEUE_STAT_DROPPED_PACKETS": 7}})
        self.assertEqual(self.client.get("COUNTERS_DB", f"COUNTERS/Ethernet16/{FEC}"), str(2**64 - 1))
        self.assertEqual(self.client.get("COUNTERS_DB", "COUNTERS/Ethernet16/Queues")["Ethernet16:3"]["SAI_QUEUE_STAT_DROPPED_PACKETS"], "7")
        self.leaf.counters({"Ethernet16": {FEC: 0}})
        self.leaf.rates({"Ethernet16": {FEC: 9}})
        with self.client.stream("COUNTERS_DB", f"COUNTERS/Ethernet16/{FEC}", mode="SAMPLE") as stream:
            first, synced, second = int(stream.next()), stream.next(), int(stream.next())
        self.leaf.rates({"Ethernet16": {}})
        self.assertEqual(synced, "sync")
        # One sample is a second and the machine's delay; a step is a fifth of one.
        self.assertTrue(5 <= second - first <= 40, (first, second))
        with self.assertRaisesRegex(ValueError, 'no port or queue "Ethernet3"'):
            self.leaf.counters({"Ethernet3": {FEC: 1}})

    def test_a_change_is_told_by_its_row(self):
        with self.client.stream("APPL_DB", "PORT_TABLE") as stream:
            self.assertIn("PortInitDone", stream.next())
            self.assertEqual(stream.next(), "sync")
            self.leaf.flap("Ethernet0")
            told = stream.next()
        self.assertEqual(list(told), ["Ethernet0"])
        self.assertEqual(told["Ethernet0"]["alias"], "etp1", "the whole row comes")

    def test_a_deleted_row_is_an_empty_one(self):
        with self.client.stream("APPL_DB", "LLDP_ENTRY_TABLE") as stream:
            stream.next(), stream.next()
            self.leaf.rows("APPL_DB", {"LLDP_ENTRY_TABLE:Ethernet0": {"lldp_rem_sys_name": "gpu-001"}})
            self.assertEqual(stream.next(), {"Ethernet0": {"lldp_rem_sys_name": "gpu-001"}})
            self.leaf.rows("APPL_DB", {"LLDP_ENTRY_TABLE:Ethernet0": None})
            self.assertEqual(stream.next(), {"Ethernet0": {}})

    def test_samples_come_changed_or_not(self):
        with self.client.stream("CONFIG_DB", "PFC_WD", mode="SAMPLE") as stream:
            first = stream.next()
            self.assertEqual(stream.next(), "sync")
            self.assertEqual(stream.next(), first)
        with self.client.stream("CONFIG_DB", "PFC_WD", mode="SAMPLE", interval_ms=10) as stream:
            self.assertRegex(str(stream.next()), "InvalidArgument.*cannot be less than 1s")

    def test_counters_of_all_ports_are_sampled_as_they_run(self):
        with self.client.stream("COUNTERS_DB", "COUNTERS/Ethernet*", mode="SAMPLE") as stream:
            stream.next(), stream.next()
            self.leaf.counters({"Ethernet8": {"SAI_PORT_STAT_IF_IN_ERRORS": 5}})
            self.assertEqual(stream.next()["etp2"]["SAI_PORT_STAT_IF_IN_ERRORS"], "5")
        with self.client.stream("COUNTERS_DB", f"COUNTERS/Ethernet*/{FEC}") as stream:
            stream.next(), stream.next()
            self.leaf.counters({"Ethernet8": {FEC: 77}})
            self.assertEqual(stream.next(), {"etp2": {FEC: "77"}}, "others have not changed")

    def test_a_missing_field_is_an_empty_string_in_a_stream(self):
        with self.client.stream("STATE_DB", "PORT_TABLE/Ethernet0/fec") as stream:
            self.assertEqual([stream.next(), stream.next()], ["rs", "sync"])
            self.leaf.rows("STATE_DB", {"PORT_TABLE|Ethernet0": None})
            self.assertEqual(stream.next(), "")
        self.leaf.rows("STATE_DB", {"PORT_TABLE|Ethernet0": {"fec": "rs", "netdev_oper_status": "up"}})

    def test_once_gives_all_and_a_sync_and_does_not_end(self):
        found, ended = self.client.once("CONFIG_DB", "SCHEDULER")
        self.assertEqual(found[0]["scheduler.0"], {"type": "DWRR", "weight": "14"})
        self.assertFalse(ended)

    def test_uptime_is_a_number(self):
        self.assertGreater(self.client.get("OTHERS", "proc/uptime")["total"], 0)

    def test_who_has_no_password_is_not_let_in(self):
        stranger = Client(self.leaf, self.switches.authority)
        wrong = Client(self.leaf, self.switches.authority, user="heddle", password="wrong")
        for client in (stranger, wrong):
            with self.assertRaisesRegex(Refused, "Unauthenticated"):
                client.get("CONFIG_DB", "PORT")
        self.assertGreaterEqual(self.leaf.asked()["refusedLogins"], 2)
        self.assertEqual(len(Client(self.switches["leaf-4"], self.switches.authority).get("CONFIG_DB", "PORT")), 2)


class OfOldRelease(unittest.TestCase):
    """sonic-gnmi of 202311: nothing comes of what is asked together with a table without a row."""

    @classmethod
    def setUpClass(cls):
        cls.switches = Switches([leaf("leaf-3", 2, emptyTableFails=True)]).start()
        cls.addClassCleanup(cls.switches.close)
        cls.client = Client(cls.switches["leaf-3"], cls.switches.authority)

    def test_one_empty_table_fails_all_that_is_asked_with_it(self):
        self.assertEqual(sorted(self.client.get("CONFIG_DB", "PORT")), ["Ethernet0", "Ethernet8"])
        with self.assertRaisesRegex(Refused, "NotFound.*Failed to find CONFIG_DB .PORTCHANNEL"):
            self.client.get_text("CONFIG_DB", "PORT", "PORTCHANNEL")
        with self.client.stream("CONFIG_DB", "PORT", "PORTCHANNEL") as stream:
            self.assertRegex(str(stream.next()), "NotFound.*Failed to find CONFIG_DB .PORTCHANNEL")
        self.switches["leaf-3"].rows("CONFIG_DB", {"PORTCHANNEL|PortChannel1": {"mtu": "9100"}})
        self.assertEqual(list(self.client.get("CONFIG_DB", "PORTCHANNEL")), ["PortChannel1"])


class InRedis(unittest.TestCase):
    """The same tables in a real redis-server, where others read and write them, too."""

    @classmethod
    def setUpClass(cls):
        config = json.loads((ROOT / "tests" / "fixtures" / "lossless" / "sonic-default.json").read_text())
        ports = [port(index, lanes=4) for index in range(3)]
        cls.switches = Switches([leaf("leaf-3", ports, qos="none", config=config)], redis=True).start()
        cls.addClassCleanup(cls.switches.close)
        cls.redis = cls.switches.redis
        cls.client = Client(cls.switches["leaf-3"], cls.switches.authority)

    def test_redis_cli_reads_what_gnmi_says(self):
        self.assertEqual(self.redis.cli("HGET", "DEVICE_METADATA|localhost", "hostname", database=4), "leaf-3")
        oid = self.redis.cli("HGET", "COUNTERS_PORT_NAME_MAP", "Ethernet4", database=2)
        self.assertEqual(self.redis.cli("HGET", f"COUNTERS:{oid}", DROPPED, database=2), "0")
        self.assertEqual(self.client.get("CONFIG_DB", "DSCP_TO_TC_MAP")["AZURE"]["26"], "1")
        self.assertEqual(sorted(self.client.get("COUNTERS_DB", "COUNTERS/Ethernet*")), ["Ethernet0", "Ethernet8", "etp2"],
                         "a port without alias goes by its name")

    def test_what_redis_cli_writes_is_told(self):
        with self.client.stream("CONFIG_DB", "PORT_QOS_MAP") as stream:
            stream.next(), stream.next()
            self.redis.cli("HSET", "PORT_QOS_MAP|Ethernet0", "pfc_enable", "3", database=4)
            self.assertEqual(stream.next()["Ethernet0"]["pfc_enable"], "3")
            self.redis.cli("DEL", "PORT_QOS_MAP|Ethernet0", database=4)
            self.assertEqual(stream.next(), {"Ethernet0": {}})

    def test_counters_run_in_redis(self):
        self.switches["leaf-3"].rates({"Ethernet4": {FEC: 100}})
        with self.client.stream("COUNTERS_DB", f"COUNTERS/Ethernet4/{FEC}") as stream:
            first = int(stream.next())
            self.assertEqual(stream.next(), "sync")
            self.assertGreater(int(stream.next()), first)
        self.switches["leaf-3"].rates({"Ethernet4": {}})
