"""The host's leaf by LLDP: a real lldpd on each end of veth pairs, and frames that no lldpd would send."""

import json
import subprocess

from lab import Lab, Namespace, Watch, lldpd_settings, need, options, wait_for

# Sends one LLDP frame: interface, chassis MAC, port name, seconds to live. No system name and no description.
SEND = """
import socket, struct, sys
interface, mac, port, ttl = sys.argv[1], bytes.fromhex(sys.argv[2]), sys.argv[3].encode(), int(sys.argv[4])
def tlv(kind, value): return struct.pack('!H', kind << 9 | len(value)) + value
frame = bytes.fromhex('0180c200000e') + mac + b'\\x88\\xcc'
frame += tlv(1, b'\\x04' + mac) + tlv(2, b'\\x05' + port) + tlv(3, struct.pack('!H', ttl)) + tlv(0, b'')
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((interface, 0))
s.send(frame.ljust(60, b'\\0'))
"""


class Lldp(Lab):
    def setUp(self):
        super().setUp()
        need("lldpd", "lldpcli", "ip", "nsenter", "unshare")
        self.host = Namespace(self, "host")
        self.leaf = Namespace(self, "leaf")

    def cable(self, one, name, other, other_name):
        # Both ends are made where they belong: none is ever seen outside.
        subprocess.run(["ip", "link", "add", name, "netns", str(one.pid), "type", "veth",
                        "peer", "name", other_name, "netns", str(other.pid)], check=True, timeout=30)
        for end, interface in ((one, name), (other, other_name)):
            end.run("ip", "link", "set", interface, "up")

    def lldpd(self, namespace, interfaces, name):
        """One that is quick: a frame a second, which counts for two."""
        namespace.write("/run/lldpd.conf", lldpd_settings("lldp tx-hold 2", f"system hostname {name}"))
        daemon = namespace.spawn("lldpd", "-d", "-O", "/run/lldpd.conf", "-I", interfaces, "-S", f"bed {name}",
                                 log=f"{namespace.name}.log")
        wait_for("lldpd", lambda: subprocess.run([*namespace.enter, "lldpcli", "show", "configuration"],
                                                 capture_output=True, cwd="/").returncode == 0)
        return daemon

    def watch(self, root="/"):
        return Watch(self, root, self.host.enter)

    def until(self, watch, cable, value):
        def look():
            seen = watch.look()
            return seen if seen["cables"].get(cable) == value else None
        return wait_for(f"{cable} = {value}", look)

    def test_names_the_leaf_and_calls_it_stale_when_its_time_to_live_is_over(self):
        self.cable(self.host, "eth1", self.leaf, "swp7")
        self.lldpd(self.host, "eth1", "host-1")
        self.lldpd(self.leaf, "swp7", "tor-1")
        watch = self.watch()
        self.until(watch, "eth1", "tor-1 swp7")
        # Ended without a goodbye: only the time to live tells.
        self.leaf.run("sh", "-c", "kill -KILL $(pidof lldpd)")
        stale = self.until(watch, "eth1", "Stale")
        self.assertRegex(stale["problems"][0], r"eth1: its leaf is stale: it was tor-1 port swp7, last confirmed at 20")
        # And known again when it is back.
        self.lldpd(self.leaf, "swp7", "tor-1")
        self.assertEqual(self.until(watch, "eth1", "tor-1 swp7")["problems"], [])

    def test_takes_a_goodbye_for_an_end(self):
        self.cable(self.host, "eth1", self.leaf, "swp7")
        self.lldpd(self.host, "eth1", "host-1")
        watch = self.watch()
        send = lambda ttl: self.leaf.run("python3", "-c", SEND, "swp7", "0200000000aa", "Ethernet12", ttl)
        send("3600")
        self.until(watch, "eth1", "02:00:00:00:00:aa Ethernet12")
        send("0")
        self.until(watch, "eth1", "Stale")

    def test_calls_two_neighbours_through_a_bridge_ambiguous(self):
        bridge, other = Namespace(self, "bridge"), Namespace(self, "other")
        bridge.run("ip", "link", "add", "br0", "type", "bridge", "group_fwd_mask", "0x4000")
        bridge.run("ip", "link", "set", "br0", "up")
        for port, (end, name) in enumerate([(self.host, "eth1"), (self.leaf, "swp1"), (other, "swp2")]):
            self.cable(end, name, bridge, f"p{port}")
            bridge.run("ip", "link", "set", f"p{port}", "master", "br0")
        self.lldpd(self.host, "eth1", "host-1")
        self.lldpd(self.leaf, "swp1", "tor-1")
        watch = self.watch()
        self.until(watch, "eth1", "tor-1 swp1")
        other.run("python3", "-c", SEND, "swp2", "0200000000bb", "Ethernet9", "120")
        ambiguous = self.until(watch, "eth1", "Ambiguous")
        self.assertIn("hears 2 LLDP neighbours", ambiguous["problems"][0])

    def test_goes_on_without_lldpd(self):
        seen = self.watch().look()
        self.assertEqual((seen["cables"], seen["problems"]), ({}, []))
        port = self.folder / "sys/class/infiniband/mlx5_0/ports/1"
        port.mkdir(parents=True)
        (port / "state").write_text("4: ACTIVE\n")
        (port / "link_layer").write_text("Ethernet\n")
        self.assertRegex(self.watch(self.folder).look()["problems"][0],
                         "^lldpd does not say where Ethernet cables end: lldpcli failed with status 1: unable to connect")

    def test_is_not_held_by_an_lldpd_that_hangs_and_keeps_what_still_counts(self):
        self.cable(self.host, "eth1", self.leaf, "swp7")
        self.lldpd(self.host, "eth1", "host-1")
        self.leaf.run("python3", "-c", SEND, "swp7", "0200000000aa", "Ethernet12", "3600")
        watch = self.watch()
        self.until(watch, "eth1", "02:00:00:00:00:aa Ethernet12")
        self.host.run("sh", "-c", "kill -STOP $(pidof lldpd)")
        seen = watch.look()
        self.assertEqual(seen["cables"], {"eth1": "02:00:00:00:00:aa Ethernet12"})
        self.assertRegex(seen["problems"][0], "did not finish within 5000 ms")

    def test_a_recording_keeps_what_lldpd_said(self):
        self.cable(self.host, "eth1", self.leaf, "swp7")
        self.lldpd(self.host, "eth1", "host-1")
        self.leaf.run("python3", "-c", SEND, "swp7", "0200000000aa", "Ethernet12", "3600")
        self.until(self.watch(), "eth1", "02:00:00:00:00:aa Ethernet12")
        target = self.folder / "recorded"
        self.host.run(str(options.binaries / "heddle-nodeagent"), "--node", "bed", "record", str(target))
        kept = json.loads((target / "lldp.json").read_text())
        self.assertEqual([entry["name"] for entry in kept["lldp"][0]["interface"]], ["eth1"])
