"""QoS of a real kernel: the agent's hands on DCB, ethtool, debugfs, configfs and RDMA netlink, checked by `dcb` and
`ethtool` and by the count of writes that the device itself keeps (dcbdev/)."""

import json
import re
import subprocess

from dcb_device import DcbDevice, module, network_card
from guest import Guest, GuestCase
from lab import ROOT, need, options, wait_for
from pci_device import NVIDIA_GPU, PciDevice, give_driver

PORT = {"name": "rxe0:1", "rdmaDevice": "rxe0", "netdev": "dcb0", "pciAddress": "0000:01:00.0", "driver": "mlx5_core"}
OTHER = {"name": "rxe1:1", "rdmaDevice": "rxe1", "netdev": "dcb1", "pciAddress": "0000:02:00.0", "driver": "mlx5_core"}
EBUSY, ENODEV, EINVAL, EOPNOTSUPP, EPERM = 16, 19, 22, 95, 1
ANY = [-1] * 8
# As lossless/render.cc makes it of the generic profile.
WANT = {
    "dcbx": "Host", "trust": "DSCP", "pfc": [3], "watchdogMs": 65535, "cableMetres": 30, "mtu": 9000, "cnpDscp": 46,
    "cnpPriority": 5, "tos": 106,
    "dscpToPriority": [{"priority": 0, "dscps": "0-25,27-47,49-63"}, {"priority": 3, "dscps": "26"},
                       {"priority": 6, "dscps": "48"}],
    "priorityToClass": [0, 0, 0, 3, 0, 0, 6, 0],
    "classAlgorithm": ["ETS", "Any", "Any", "ETS", "Any", "Any", "Strict", "Any"],
    "classPercent": [50, -1, -1, 50, -1, -1, -1, -1],
    "priorityToBuffer": [0, 0, 0, 1, 0, 0, 0, 0],
    "bufferBytes": [262016, 524032, -1, -1, -1, -1, -1, -1],
    "dcqcn": {"rpAiRate": 9, "npMinTimeBetweenCnps": 4},
}


class Qos(GuestCase):
    @classmethod
    def boot(cls):
        need("dcb", "ethtool", "rdma", "ibv_rc_pingpong", "lldpad", options.binaries / "port_io")
        cls.module = module()
        cards = [network_card(), network_card(), PciDevice(**NVIDIA_GPU)]
        cls.addClassCleanup(lambda: [card.close() for card in cards])
        arguments = []
        for index, card in enumerate(cards):
            arguments += ["-device", f"pcie-root-port,id=root{index},chassis={index + 1}",
                          "-device", card.argument(f"root{index}", f"card{index}")]
        cls.guests.append(Guest("qos", arguments, passed=[card.end.fileno() for card in cards]))
        for card in cards:
            card.end.close()

    @classmethod
    def prepare(cls):
        guest = cls.guests[0]
        give_driver(guest, ["0000:03:00.0"])
        guest.load("crc32_generic", "rdma_rxe", "rdma_cm")
        guest.run("mount -t debugfs none /sys/kernel/debug && mount -t configfs none /sys/kernel/config")
        guest.run(f"insmod {cls.module}")
        for index in (0, 1):
            guest.run(f"ip address add 10.0.{index}.1/24 dev dcb{index} && ip link set dcb{index} up && "
                      f"rdma link add rxe{index} type rxe netdev dcb{index}")

    def setUp(self):
        self.guest = self.guests[0]
        self.device = DcbDevice(self.guest, "dcb0")
        # Each test begins with a port that nobody has set.
        self.guest.run("cd /sys/bus/pci/drivers/mlx5_core && echo 0000:01:00.0 >unbind && echo 0000:01:00.0 >bind")
        wait_for("dcb0", lambda: self.guest.attempt("ip link show dcb0")[0] == 0)
        self.guest.run("ip address replace 10.0.0.1/24 dev dcb0 && ip link set dcb0 up && "
                       "(rdma link show rxe0/1 || rdma link add rxe0 type rxe netdev dcb0)")
        self.device.reset()

    def ask(self, *lines):
        """What port_io answers to each."""
        (self.guest.folder / "ask").write_text("".join(json.dumps(line) + "\n" for line in lines))
        said = self.guest.run(f"{options.binaries}/port_io </mnt/ask").splitlines()
        self.assertEqual(len(said), len(lines), said)
        return [json.loads(line) for line in said]

    def read(self, port=PORT):
        return self.ask({"do": "read", "port": port})[0]

    def write(self, want, port=PORT):
        return self.ask({"do": "write", "port": port, "settings": sorted(want), "want": want})[0]

    def write_back(self, before, port=PORT):
        return self.ask({"do": "write back", "port": port, "settings": sorted(before), "want": before})[0]

    def written(self, want):
        answer = self.write(want)
        self.assertEqual(answer, {"code": ""})

    def dcb(self, what, verb="show"):
        return json.loads(self.guest.run(f"dcb -j {what} {verb} dev dcb0"))

    def watchdog(self):
        return self.guest.run("ethtool --get-tunable dcb0 pfc-prevention-tout").split()[-1]

    def test_reads_what_dcb_and_ethtool_read(self):
        self.guest.run("dcb pfc set dev dcb0 prio-pfc all:off 3:on 4:on delay 55 && dcb app add dev dcb0 dscp-prio 26:3 48:6 && "
                       "dcb ets set dev dcb0 tc-tsa all:strict 0:ets 3:ets tc-bw all:0 0:40 3:60 prio-tc all:0 3:3 && "
                       "dcb buffer set dev dcb0 prio-buffer 3:1 buffer-size 1:131072 && ip link set dcb0 mtu 4200 && "
                       "ethtool --set-tunable dcb0 pfc-prevention-tout 200 && ethtool -A dcb0 rx on")
        read = self.read()
        have = read["have"]
        self.assertFalse(read["gone"])
        self.assertEqual([priority in have["pfc"] for priority in range(8)], self.dcb("pfc")["prio_pfc"])
        self.assertEqual(have["cableMetres"], self.dcb("pfc")["delay"])
        self.assertEqual(have["dscpToPriority"], [{"priority": 3, "dscps": "26"}, {"priority": 6, "dscps": "48"}])
        self.assertEqual(sorted(map(tuple, self.dcb("app -N")["dscp_prio"])), [(26, 3), (48, 6)])
        ets = self.dcb("ets")
        self.assertEqual(have["priorityToClass"], ets["prio_tc"])
        self.assertEqual([word.lower() for word in have["classAlgorithm"]], ets["tc_tsa"])
        self.assertEqual(have["classPercent"], [share if kind == "ets" else -1
                                                for share, kind in zip(ets["tc_bw"], ets["tc_tsa"])])
        self.assertEqual(have["priorityToBuffer"], self.dcb("buffer")["prio_buffer"])
        self.assertEqual(have["bufferBytes"], self.dcb("buffer")["buffer_size"])
        self.assertEqual((have["mtu"], have["watchdogMs"], self.watchdog()), (4200, 200, "200"))
        self.assertEqual((have["trust"], have["dcbx"]), ("DSCP", "Host"))
        self.assertEqual((have["cnpDscp"], have["cnpPriority"], have["dcqcn"]["rpHaiRate"]), (48, 6, 50))
        self.assertEqual((have["tos"], have["globalPause"]), (0, "RX"))
        self.assertEqual(list(read["gaps"]), ["ecn"], "the kernel's own mlx5 has no switch for it")

    def test_from_nothing_to_compliant_with_the_writes_it_needs_and_then_none(self):
        self.written(WANT)
        have = self.read()["have"]
        for setting, want in WANT.items():
            if setting in ("classAlgorithm", "classPercent", "bufferBytes"):
                for wanted, there in zip(want, have[setting]):
                    self.assertIn(wanted, (there, -1, "Any"), setting)
            elif setting == "dcqcn":
                self.assertEqual(want, {name: have[setting][name] for name in want})
            else:
                self.assertEqual(have[setting], want)
        # 64 DSCPs; CNP's DSCP and priority and one of both DCQCN parameters, as the other is right already.
        self.assertEqual(self.device.writes(),
                         {"ets": 1, "pfc": 1, "app": 64, "buffer": 1, "watchdog": 1, "mtu": 1, "cc": 3})
        self.assertEqual(self.dcb("pfc")["prio_pfc"], [index == 3 for index in range(8)])
        self.assertEqual(self.dcb("pfc")["delay"], 30)
        self.assertIn([26, 3], self.dcb("app -N")["dscp_prio"])
        self.assertEqual(len(self.dcb("app -N")["dscp_prio"]), 64)
        self.assertEqual(self.dcb("ets")["tc_tsa"][:4], ["ets", "vendor", "vendor", "ets"])
        self.assertEqual(self.dcb("ets")["tc_bw"], [50, 0, 0, 50, 0, 0, 0, 0])
        self.assertEqual(self.dcb("buffer")["buffer_size"][:2], [262016, 524032])
        self.assertEqual(self.watchdog(), "65535")
        self.assertIn("mtu 9000", self.guest.run("ip link show dcb0"))
        self.device.reset()
        self.written(WANT)
        self.assertEqual(self.device.writes(), {})

    def test_of_a_table_only_what_differs_is_written(self):
        self.written(WANT)
        self.guest.run("dcb app replace dev dcb0 dscp-prio 26:4 && dcb app del dev dcb0 dscp-prio 48:6")
        self.device.reset()
        self.assertIn({"priority": 4, "dscps": "26"}, self.read()["have"]["dscpToPriority"])
        self.written(WANT)
        self.assertEqual(self.device.writes(), {"app": 2})
        self.assertIn([48, 6], self.dcb("app -N")["dscp_prio"])

    def test_each_refusal_of_the_driver_has_its_code_and_names_the_setting(self):
        cases = [("pfc", EBUSY, "pfc", [3], "Unavailable", "pfc: "),
                 ("pfc", EOPNOTSUPP, "pfc", [3], "Unimplemented", "does not offer"),
                 ("ets", EINVAL, "classPercent", [100] + [-1] * 7, "Invalid", "classPercent: "),
                 ("app", EPERM, "dscpToPriority", WANT["dscpToPriority"], "Forbidden", "CAP_NET_ADMIN"),
                 ("buffer", ENODEV, "bufferBytes", [4096] + [-1] * 7, "Unavailable", "gone"),
                 ("watchdog", EOPNOTSUPP, "watchdogMs", 100, "Unimplemented", "watchdogMs: "),
                 ("mtu", EBUSY, "mtu", 9000, "Unavailable", "mtu: "),
                 ("cc", EINVAL, "cnpDscp", 46, "Invalid", "cnpDscp: ")]
        for operation, errno, setting, value, code, words in cases:
            with self.subTest(operation=operation, errno=errno):
                self.device.reset()
                self.device.fail(operation, errno)
                want = {setting: value}
                if setting == "classPercent":
                    want["classAlgorithm"] = ["ETS"] + ["Any"] * 7
                answer = self.write(want)
                self.assertEqual(answer["code"], code, answer)
                self.assertIn(words, answer["message"])
                self.assertEqual(self.device.writes(), {operation: 1}, "it stops there")

    def test_without_rights_reading_goes_and_writing_is_forbidden(self):
        (self.guest.folder / "ask").write_text(json.dumps({"do": "read", "port": PORT}) + "\n" + json.dumps(
            {"do": "write", "port": PORT, "settings": ["pfc"], "want": {"pfc": [3]}}) + "\n")
        said = self.guest.run(f"setpriv --bounding-set -net_admin --inh-caps -net_admin {options.binaries}/port_io </mnt/ask")
        read, written = map(json.loads, said.splitlines())
        self.assertEqual(read["have"]["pfc"], [])
        self.assertEqual(written["code"], "Forbidden", written)
        self.assertIn("CAP_NET_ADMIN", written["message"])

    def test_an_interface_that_goes_is_gone(self):
        self.guest.run("echo 0000:01:00.0 >/sys/bus/pci/drivers/mlx5_core/unbind")
        read, written, link, pairs = self.ask(
            {"do": "read", "port": PORT}, {"do": "write", "port": PORT, "settings": ["pfc"], "want": {"pfc": [3]}},
            {"do": "link", "port": PORT}, {"do": "pairs", "port": PORT})
        self.assertEqual(read, {"gone": True, "have": {}, "gaps": {}})
        for answer in (written, link, pairs):
            self.assertEqual(answer["code"], "Unavailable", answer)
        # It comes and goes while it is read and written: never a crash, never half a reading.
        self.guest.run("""
            touch /mnt/flapping
            cd /sys/bus/pci/drivers/mlx5_core
            while [ -e /mnt/flapping ]; do echo 0000:01:00.0 >bind; sleep 0.02; echo 0000:01:00.0 >unbind; done >/dev/null 2>&1 &""")
        self.addCleanup(self.guest.run, "rm -f /mnt/flapping; sleep 1; cd /sys/bus/pci/drivers/mlx5_core; "
                                        "[ -e 0000:01:00.0 ] || echo 0000:01:00.0 >bind")
        for answer in self.ask(*[{"do": "read", "port": PORT},
                                 {"do": "write", "port": PORT, "settings": sorted(WANT), "want": WANT}] * 20):
            if "gone" in answer:
                self.assertTrue(answer["gone"] or "mtu" in answer["have"] or "mtu" in answer["gaps"], answer)
            elif answer["code"]:
                self.assertIn(answer["code"], ("Unavailable", "NotFound", "Unimplemented", "Invalid"), answer)

    def test_queue_pairs_of_processes_are_counted_from_inside_a_container_too(self):
        self.assertEqual(self.ask({"do": "pairs", "port": PORT}), [{"pairs": 0, "holders": []}])
        self.guest.run("ibv_rc_pingpong -d rxe0 -g 0 >/dev/null 2>&1 & echo $! >/mnt/pid")
        self.addCleanup(self.guest.attempt, "kill $(cat /mnt/pid)")
        count = lambda: self.ask({"do": "pairs", "port": PORT}, {"do": "pairs", "port": OTHER})
        wait_for("the process to have its queue pair", lambda: count()[0]["pairs"] == 1)
        self.assertEqual(count()[1], {"pairs": 0, "holders": []}, "the other device has none")
        pid = self.guest.run("cat /mnt/pid").strip()
        self.assertEqual(count()[0]["holders"], [f"ibv_rc_pingpong (pid {pid})"])
        listed = json.loads(self.guest.run("rdma -j resource show qp link rxe0/1"))
        self.assertEqual(len([pair for pair in listed if "pid" in pair]), 1)
        # A container has PIDs of its own; the kernel shows it the queue pair all the same.
        said = self.guest.run(f"unshare --pid --fork --mount-proc {options.binaries}/port_io </mnt/ask")
        self.assertEqual(json.loads(said.splitlines()[0]), {"pairs": 1, "holders": []}, "nor who has it")
        self.guest.run("kill $(cat /mnt/pid)")
        wait_for("it to be gone", lambda: count()[0]["pairs"] == 0)

    def test_a_link_that_a_write_bounces_or_takes_away_is_seen(self):
        before = self.ask({"do": "link", "port": PORT})[0]
        self.assertTrue(before["carrier"])
        self.device.set("bounce", 1)
        self.written({"pfc": [3]})
        after = self.ask({"do": "link", "port": PORT})[0]
        self.assertTrue(after["carrier"])
        self.assertGreater(after["changes"], before["changes"])
        self.assertEqual(after["errors"], before["errors"], "a bounce is no error")
        self.device.set("bounce", 2)
        self.written({"pfc": [3, 4]})
        self.assertFalse(self.ask({"do": "link", "port": PORT})[0]["carrier"])
        self.written({"pfc": []})
        self.assertTrue(self.ask({"do": "link", "port": PORT})[0]["carrier"])
        self.device.set("count/rx_crc_errors_phy", 12)
        self.assertEqual(self.ask({"do": "link", "port": PORT})[0]["errors"]["rx_crc_errors_phy"], 12)

    def test_the_tos_of_rdma_cm_is_set_and_its_folder_left_as_it_was(self):
        self.written({"tos": 106})
        self.assertEqual(self.guest.run("ls /sys/kernel/config/rdma_cm"), "")
        made = "mkdir /sys/kernel/config/rdma_cm/rxe0 && cat /sys/kernel/config/rdma_cm/rxe0/ports/1/default_roce_"
        self.assertEqual(self.guest.run(made + "tos").strip(), "106")
        self.addCleanup(self.guest.run, "rmdir /sys/kernel/config/rdma_cm/rxe0")
        self.assertEqual(self.read()["have"]["tos"], 106)
        self.assertEqual(self.guest.run("ls /sys/kernel/config/rdma_cm").strip(), "rxe0")

    def test_firmware_that_owns_dcbx_is_named_and_asked_to_let_go(self):
        self.device.set("dcbx", 8)
        read, writer = self.ask({"do": "read", "port": PORT}, {"do": "writer", "port": PORT, "settings": ["pfc"]})
        self.assertEqual((read["have"]["dcbx"], writer["writer"]), ("Firmware", "firmware DCBX"))
        self.device.fail("dcbx", EBUSY)
        answer = self.write({"dcbx": "Host"})
        self.assertEqual(answer["code"], "Conflict", answer)
        self.device.fail("dcbx", 0)
        self.written({"dcbx": "Host"})
        self.assertTrue(self.dcb("dcbx")["host"] and self.dcb("dcbx")["ieee"])

    def test_the_old_kind_of_dcbx_is_mended_and_taken_back(self):
        self.guest.run("dcb dcbx set dev dcb0 host cee")
        self.assertEqual(self.read()["have"]["dcbx"], "HostCEE")
        flags = lambda: sorted(flag for flag, on in self.dcb("dcbx").items() if on is True)
        self.written({"dcbx": "Host"})
        self.assertEqual(flags(), ["host", "ieee"])
        self.assertEqual(self.write_back({"dcbx": "HostCEE"}), {"code": ""})
        self.assertEqual(flags(), ["cee", "host"])

    def test_dscps_that_had_no_entry_have_none_when_they_are_written_back(self):
        self.guest.run("dcb app add dev dcb0 dscp-prio 26:4 48:7")
        before = self.read()["have"]["dscpToPriority"]
        self.written({"dscpToPriority": WANT["dscpToPriority"]})
        self.assertEqual(len(self.dcb("app -N")["dscp_prio"]), 64)
        self.assertEqual(self.write_back({"dscpToPriority": before}), {"code": ""})
        self.assertEqual(sorted(map(tuple, self.dcb("app -N")["dscp_prio"])), [(26, 4), (48, 7)])
        self.assertEqual(self.read()["have"]["dscpToPriority"], before)
        self.device.reset()
        self.assertEqual(self.write_back({"dscpToPriority": before}), {"code": ""})
        self.assertEqual(self.device.writes(), {}, "what is right is not written")

    def watch(self):
        """Starts `qos watch`; what it says is in the file that is returned."""
        file = self.guest.folder / "watch"
        file.write_text("")
        self.guest.run(f"({self.guest.agent_command} qos watch dcb0 >/mnt/watch 2>&1 & echo $! >/mnt/watch.pid) >/dev/null 2>&1")
        self.addCleanup(self.guest.run, "kill $(cat /mnt/watch.pid)")
        wait_for("the watch", lambda: "until Ctrl-C" in file.read_text(), 60)
        return file

    def test_an_lldpad_that_writes_is_heard_and_named(self):
        self.written(WANT)
        writer = {"do": "writer", "port": PORT, "settings": ["pfc"]}
        self.assertEqual(self.ask(writer)[0]["writer"], "manual")
        # Its state and its shared memory, which this guest has nowhere else.
        self.guest.run("mkdir -p /dev/shm && mount -t tmpfs none /dev/shm && mount -t tmpfs none /var/lib/lldpad")
        self.addCleanup(self.guest.run, "umount /dev/shm /var/lib/lldpad")
        said = self.watch()
        self.guest.run("lldpad >/mnt/lldpad 2>&1 & echo $! >/mnt/lldpad.pid")
        self.addCleanup(self.guest.run, "kill $(cat /mnt/lldpad.pid); until ! pidof lldpad >/dev/null; do sleep 0.1; done")
        wait_for("lldpad", lambda: self.guest.attempt("lldptool ping")[0] == 0, 60)
        self.guest.run("lldptool set-lldp -i dcb0 adminStatus=rxtx && lldptool -T -i dcb0 -V IEEE-DCBX mode=reset && "
                       "lldptool -T -i dcb0 -V PFC willing=no enabled=3,5")
        wait_for("its PFC", lambda: re.search(r"rxe0:1 pfc: \S+ -> 3,5 \(lldpad\)", said.read_text()), 60)
        read, named, mtu = self.ask({"do": "read", "port": PORT}, writer, writer | {"settings": ["mtu"]})
        self.assertEqual(read["have"]["pfc"], [3, 5])
        self.assertEqual((named["writer"], mtu["writer"]), ("lldpad", "manual"))

    def test_what_the_agent_shows_is_what_it_records_and_replays(self):
        self.written(WANT)
        shown = self.guest.agent("qos", "show", "dcb0")
        for line in ("rxe0:1  dcb0  mlx5_core  0000:01:00.0", "trust              DSCP", "pfc                3",
                     "watchdogMs         65535", "mtu                9000", "tos                106",
                     "queue pairs        0 of processes"):
            self.assertIn(line, shown)
        live = json.loads(self.guest.agent("qos", "show", "-o", "json"))
        self.assertEqual([port["name"] for port in live["ports"]], ["rxe0:1", "rxe1:1"])
        self.assertEqual(live["ports"][0]["settings"], self.read()["have"])
        recorded = self.replays(self.guest)
        replayed = subprocess.run([options.binaries / "heddle-nodeagent", "--machine", recorded, "qos", "show", "-o", "json"],
                                  capture_output=True, text=True, timeout=60)
        self.assertEqual(json.loads(replayed.stdout), live, replayed.stderr)
        code, _, said = self.guest.attempt(f"{self.guest.agent_command} qos show eth7")
        self.assertEqual(code, 1)
        self.assertIn("there is no RoCE port eth7; there are rxe0:1, rxe1:1", said)

    def test_a_change_of_somebody_else_is_heard_at_once(self):
        self.written(WANT)
        said = self.watch()
        self.guest.run("dcb pfc set dev dcb0 prio-pfc 4:on && dcb app replace dev dcb0 dscp-prio 26:5")
        wait_for("PFC", lambda: "rxe0:1 pfc: 3 -> 3,4 (manual)" in said.read_text(), 60)
        wait_for("the DSCP", lambda: "DSCP 26: 5" in said.read_text(), 60)

    def leaf(self):
        """A SONiC leaf's tables with what `switch render` gives its port Ethernet0 for the generic policy."""
        default = ROOT / "tests/fixtures/lossless/sonic-default.json"
        policy = self.guest.folder / "policy.yaml"
        policy.write_text("apiVersion: heddle.dev/v1alpha1\nkind: LosslessPolicy\nmetadata: {name: roce}\nspec: {}\n")
        done = subprocess.run([options.binaries / "kubectl-heddle", "switch", "render", policy, "--config", default,
                               "--port", "Ethernet0", "--format", "patch"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 3, done.stderr)
        tables = json.loads(default.read_text())
        for operation in json.loads(done.stdout):
            steps = [step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:]]
            place = tables
            for step in steps[:-1]:
                place = place.setdefault(step, {})
            if operation["op"] == "remove":
                place.pop(steps[-1], None)
            else:
                place[steps[-1]] = operation["value"]
        tables["PORT"]["Ethernet0"]["fec"] = "rs"
        # What SONiC makes of pfc_enable, speed and CABLE_LENGTH, and its template of queues: buffermgr.cpp, buffers_config.j2.
        tables |= {
            "BUFFER_POOL": {"ingress_lossless_pool": {"type": "ingress", "mode": "dynamic", "size": "33004032"},
                            "egress_lossless_pool": {"type": "egress", "mode": "static", "size": "33004032"}},
            "BUFFER_PROFILE": {"pg_lossless_400000_5m_profile": {"pool": "ingress_lossless_pool", "size": "118432",
                                                                 "xon": "18432", "xoff": "100000", "dynamic_th": "0"},
                               "egress_lossless_profile": {"pool": "egress_lossless_pool", "size": "1518",
                                                           "static_th": "33004032"}},
            "BUFFER_PG": {"Ethernet0|3": {"profile": "pg_lossless_400000_5m_profile"}},
            "BUFFER_QUEUE": {"Ethernet0|3": {"profile": "egress_lossless_profile"}}}
        file = self.guest.folder / "leaf-3.json"
        file.write_text(json.dumps(tables))
        return file

    def node(self, **more):
        """This machine's NodeTopology: the agent's own look at its NIC and what it reads back of its settings, and a cable
        to the leaf's Ethernet0, which no LLDP tells here."""
        node = json.loads(self.guest.agent("--print", "-o", "json"))
        read = next(port for port in json.loads(self.guest.agent("qos", "show", "-o", "json"))["ports"]
                    if port["name"] == "rxe0:1")
        nic = next(nic for nic in node["status"]["nics"] if nic["name"] == "rxe0")
        self.assertEqual((nic["netdev"], nic["transport"], nic["mtu"]), ("dcb0", "RoCE", 9000))
        nic["role"] = "compute"
        nic["ports"][0] |= {"leaf": "leaf-3", "leafPort": "Ethernet0", "state": "Active", "rateGbps": 400}
        nic["ports"][0].pop("leafMissing", None)
        node["status"]["nics"] = [nic]
        node["status"].pop("paths", None)
        node["status"]["lossless"] = [{"ports": ["rxe0:1"], "policy": "roce", "state": "Compliant",
                                       "have": read["settings"] | more, "fec": read["fec"]}]
        file = self.guest.folder / "node.json"
        file.write_text(json.dumps(node))
        return file

    def compare(self, node, leaf):
        """What `kubectl heddle switch compare` finds of the one cable, on the host side."""
        done = subprocess.run([options.binaries / "kubectl-heddle", "switch", "compare", node, leaf, "-o", "json"],
                              capture_output=True, text=True, timeout=60)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        cable, = json.loads(done.stdout)["cables"]
        self.assertEqual((cable["port"], cable["switch"], cable["switchPort"]), ("rxe0:1", "leaf-3", "Ethernet0"))
        return cable

    def test_a_dscp_is_carried_from_the_nic_to_the_leaf(self):
        self.written(WANT | {"cnpDscp": 48, "cnpPriority": 6})
        self.assertIn("RS", self.guest.run("ethtool --show-fec dcb0").splitlines()[-1])
        leaf = self.leaf()
        # The kernel's own mlx5 has no switch for ECN, so of that nobody knows: whatever else is right, no "lossless".
        cable = self.compare(self.node(), leaf)
        self.assertEqual(cable["verdict"], "Unproved")
        self.assertEqual([one["setting"] for one in cable["findings"] if one["weight"] != "Lossless"], ["ecn"])
        # With what NVIDIA's driver says of it everything is known, and goes together.
        self.assertEqual(self.compare(self.node(ecn=[3]), leaf)["verdict"], "Lossless")
        # Somebody else moves the DSCP of data on the host.
        self.guest.run("dcb app replace dev dcb0 dscp-prio 26:4")
        cable = self.compare(self.node(ecn=[3]), leaf)
        self.assertEqual(cable["verdict"], "Contradiction")
        moved = next(one for one in cable["findings"] if one["rule"] == "data-lossy")
        self.assertIn("DSCP 26, which is priority 4", moved["host"])
        # And then, back on the host, on the leaf.
        self.guest.run("dcb app replace dev dcb0 dscp-prio 26:3")
        tables = json.loads(leaf.read_text())
        for table in tables["DSCP_TO_TC_MAP"].values():
            table["26"] = "0"
        leaf.write_text(json.dumps(tables))
        cable = self.compare(self.node(ecn=[3]), leaf)
        self.assertEqual(cable["verdict"], "Contradiction")
        moved = next(one for one in cable["findings"] if one["rule"] == "switch-data-lossy")
        self.assertIn("DSCP 26: priority 3", moved["host"])
        self.assertIn("DSCP 26: priority 0", moved["switch"])
        # And another one its coding.
        tables["PORT"]["Ethernet0"]["fec"] = "fc"
        leaf.write_text(json.dumps(tables))
        found = {one["rule"]: (one["host"], one["switch"]) for one in self.compare(self.node(ecn=[3]), leaf)["findings"]}
        self.assertEqual(found["link-fec"], ("rs", "fc"))
