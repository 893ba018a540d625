"""Soft-RoCE between two guests: real verbs, GIDs and counters of a real kernel, as the agent sees them."""

import json
import socket

from guest import Follow, Guest, GuestCase
from lab import lldpd_settings, need, options, wait_for
from pci_device import NVIDIA_GPU, PciDevice, give_driver

MAC = "52:54:00:00:00:0{}".format
COUNTERS = "/sys/class/infiniband/rxe0/ports/1/hw_counters"


def until_link(state):
    return f"until [ $(cat /sys/class/net/eth0/operstate) = {state} ]; do sleep 0.05; done"


class Rdma(GuestCase):
    @classmethod
    def boot(cls):
        need("ibv_rc_pingpong", "rdma", "tc", "lldpd", "lldpcli")
        cable = socket.socketpair()
        for i, end in enumerate(cable):
            # With a GPU beside it the NIC carries the traffic of jobs, and its health matters.
            gpu = PciDevice(**NVIDIA_GPU)
            cls.addClassCleanup(gpu.close)
            cls.guests.append(Guest(f"guest-{i}", [
                "-device", "pcie-root-port,id=root0,chassis=1", "-device", "pcie-root-port,id=root1,chassis=2",
                "-device", gpu.argument("root1", "gpu0"), "-netdev", f"socket,id=cable,fd={end.fileno()}",
                "-device", f"virtio-net-pci,bus=root0,id=nic,netdev=cable,mac={MAC(i)},speed=100000,duplex=full",
            ], passed=[end.fileno(), gpu.end.fileno()]))
            gpu.end.close()
        for end in cable:
            end.close()

    @classmethod
    def prepare(cls):
        for i, guest in enumerate(cls.guests):
            give_driver(guest, ["0000:02:00.0"])
            guest.load("virtio_net", "crc32_generic", "rdma_rxe", "sch_netem")
            # An lldpd that starts while the link comes up may miss that, and is silent then.
            guest.run(f"hostname guest-{i} && ip address add 10.0.0.{i + 1}/24 dev eth0 && ip link set eth0 up && "
                      f"{until_link('up')} && rdma link add rxe0 type rxe netdev eth0 && mkdir -p /run/lldpd && "
                      f"echo '{lldpd_settings()}' >/run/lldpd.conf && lldpd -O /run/lldpd.conf")
        try:
            wait_for("both guests to hear each other", lambda: all(
                # Before it has its settings it answers nothing.
                "SysName" in guest.attempt("lldpcli show neighbors")[1] for guest in cls.guests), 120)
        except AssertionError as problem:
            told = [guest.attempt("ip -s link show eth0; lldpcli show statistics; lldpcli show interfaces; pidof lldpd")[1]
                    for guest in cls.guests]
            raise AssertionError("\n".join([str(problem), *told])) from None

    def counters(self, guest):
        text = guest.run(f"cd {COUNTERS} && grep . *")
        return {name: int(value) for name, value in (line.split(":") for line in text.split())}

    def rdma_nic(self, status):
        return next(nic for nic in status["nics"] if nic["name"] == "rxe0")

    def pingpong(self, iterations, size, lossy=False):
        """Reliable-connection messages there and back, over the GID of the IPv4 address."""
        command = f"ibv_rc_pingpong -d rxe0 -g 1 -n {iterations} -s {size}"
        server, client = self.guests
        server.run(f"{command} >/mnt/server 2>&1 & echo $! >/mnt/pid")
        # The server listens on TCP before it has a peer.
        wait_for("the server", lambda: server.attempt("ss -ltn | grep -q :18515")[0] == 0)
        said = client.run(f"{command} 10.0.0.1")
        if lossy:
            # The client may be gone before the server has the last acknowledgement, and then it never gets it.
            server.attempt("kill $(cat /mnt/pid)")
        wait_for("the server's end", lambda: server.attempt("kill -0 $(cat /mnt/pid)")[0] != 0)
        for text in (said, *([] if lossy else [(server.folder / "server").read_text()])):
            self.assertIn(f"{iterations} iters in", text)

    def test_the_agent_sees_the_device_where_its_interface_is(self):
        for i, guest in enumerate(self.guests):
            status = guest.status()
            nic = self.rdma_nic(status)
            # EUI-64 of the interface's address, as the kernel forms it, is the GUID and the end of GID 0.
            self.assertEqual(nic["guid"], f"0x505400fffe00000{i}")
            gids = guest.run("cd /sys/class/infiniband/rxe0/ports/1 && head -n 1 gids/[01] gid_attrs/types/[01]")
            self.assertIn(f"fe80:0000:0000:0000:5054:00ff:fe00:000{i}", gids)
            self.assertIn(f"0000:0000:0000:0000:0000:ffff:0a00:000{i + 1}", gids)
            self.assertEqual(gids.count("RoCE v2"), 2)
            self.assertEqual((nic["transport"], nic["netdev"], nic["mtu"]), ("RoCE", "eth0", 1500))
            self.assertEqual([nic["name"] for nic in status["nics"]], ["rxe0"], "the interface is no second NIC")
            self.assertEqual(len(nic["ports"]), 1)
            self.assertEqual((nic["pci"], nic["role"], nic["rail"]), ("0000:01:00.0", "compute", 0))
            self.assertEqual(status["paths"], [{"gpu": 0, "nic": "rxe0", "distance": "PHB"}])
            port = nic["ports"][0]
            self.assertEqual((port["number"], port["state"], port["rateGbps"]), (1, "Active", 100))
            self.assertEqual((port["leaf"], port["leafPort"]), (f"guest-{1 - i}", "eth0"))
            # rxe takes the largest that fits into the interface's 1500; it was asked and let go again.
            self.assertEqual(port["rdmaMtu"], 1024)
            equal = next(one for one in status["conditions"] if one["type"] == "RdmaMtuEqual")
            self.assertEqual(equal["message"], "1024 bytes, as the drivers say")

    def test_verbs_move_the_counters_and_nothing_else(self):
        before = [self.counters(guest) for guest in self.guests]
        self.pingpong(iterations=100, size=4096)
        for guest, was in zip(self.guests, before):
            now = self.counters(guest)
            grown = {name for name in now if now[name] > was[name]}
            self.assertLessEqual({"sent_pkts", "rcvd_pkts"}, grown)
            # 100 messages of four packets each (the path's MTU is 1024).
            self.assertGreaterEqual(now["rcvd_pkts"] - was["rcvd_pkts"], 400)
            self.assertFalse(grown & {"out_of_seq_request", "rcvd_seq_err", "retry_exceeded_err", "link_downed"})

    def test_loss_on_the_cable_raises_the_counters_of_it(self):
        sender = self.guests[1]
        before = [self.counters(guest) for guest in self.guests]
        sender.run("tc qdisc add dev eth0 root netem loss 5% seed 5 || tc qdisc add dev eth0 root netem loss 5%")
        self.addCleanup(sender.run, "tc qdisc del dev eth0 root")
        self.pingpong(iterations=100, size=16384, lossy=True)
        grown = [{name: now[name] - was[name] for name in now if now[name] > was[name]}
                 for was, now in zip(before, map(self.counters, self.guests))]
        # What is lost leaves a gap before the receiver, which asks for it again.
        self.assertIn("out_of_seq_request", grown[0])
        self.assertIn("rcvd_seq_err", grown[1])

    def follow(self, guest):
        follow = Follow(guest, "--counters-interval", "1")
        self.addCleanup(follow.stop)
        return follow

    def link(self, up):
        """Of the first guest, seen by it."""
        guest = self.guests[0]
        guest.qmp("set_link", name="cable", up=up)
        guest.run(until_link("up" if up else "down"))

    def test_loss_on_the_cable_is_told_of_the_port_whose_packets_are_lost(self):
        sender = self.guests[1]
        follow = self.follow(sender)
        sender.run("tc qdisc add dev eth0 root netem loss 5%")
        self.addCleanup(sender.run, "tc qdisc del dev eth0 root")
        self.pingpong(iterations=50, size=65536, lossy=True)
        follow.until("health", "rxe0 port 1 (guest-0 port eth0): Degraded", "in 1 min")
        # It may be lost anywhere on the way: the port itself carries what it did.
        follow.until("topology", "rxe0 port 1 fault: None -> PathLoss")
        follow.until("condition", "Rail0Healthy False (PathLoss): rxe0 port 1 (guest-0 port eth0)")
        self.assertFalse([line for line in follow.lines() if "usable" in line.get("text", "")])

    def test_a_link_that_flaps_is_told_and_carries_no_plan(self):
        self.addCleanup(self.link, True)
        follow = self.follow(self.guests[0])
        for up in (False, True, False, True):
            self.link(up)
        follow.until("kernel", "eth0: carrier lost")
        follow.until("health", "rxe0 port 1 (guest-1 port eth0): Flapping: ", "in 10 min")
        fault = "rxe0 port 1 fault: None -> Flapping"
        follow.until("topology", fault)
        follow.until("condition", "Rail0Healthy False (Flapping): rxe0 port 1 (guest-1 port eth0)")
        # Up again, and nothing may count on it.
        self.assertEqual(self.rdma_nic(self.guests[0].status())["ports"][0]["state"], "Active")
        said = [line.get("text", "") for line in follow.lines()]
        since = said[next(i for i, text in enumerate(said) if fault in text):]
        self.assertFalse([text for text in since if "usable Gb/s: 0 -> " in text])

    def test_a_cable_that_is_pulled_takes_the_port_down_and_back(self):
        guest = self.guests[0]
        self.addCleanup(self.link, True)
        self.link(False)
        down = self.rdma_nic(guest.status())["ports"][0]
        self.assertEqual((down["state"], down["rateGbps"], down["usableGbps"]), ("Down", 0, 0))
        self.link(True)
        back = self.rdma_nic(guest.status())["ports"][0]
        self.assertEqual((back["state"], back["rateGbps"], back["usableGbps"]), ("Active", 100, 100))

    def test_an_event_of_verbs_makes_the_agent_look_at_once(self):
        """By the agent's own monitor, whose clock is set to a day and who hears nothing else (verbs_watch.cc)."""
        guest = self.guests[0]
        guest.run(f"({options.binaries / 'verbs_watch'} >/mnt/verbs 2>/mnt/verbs.err & echo $! >/mnt/verbs.pid; wait $!; "
                  "echo $? >/mnt/verbs.end) >/dev/null 2>&1 &")
        self.addCleanup(guest.run, "kill $(cat /mnt/verbs.pid); until [ -e /mnt/verbs.end ]; do sleep 0.1; done; "
                                   "rm /mnt/verbs*")
        self.addCleanup(self.link, True)

        def lines():
            file = guest.folder / "verbs"
            text = file.read_text(errors="replace") if file.exists() else ""
            return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("}\n")]

        def until(what, after, wanted):
            return wait_for(what, lambda: next((i for i, line in enumerate(lines()) if i > after and wanted(line)), None), 90)

        until("the first look", -1, lambda line: line.get("ports") == {"rxe0 port 1": "Active"})
        held = "ls -l /proc/$(cat /mnt/verbs.pid)/fd | grep -q /dev/infiniband/uverbs"
        wait_for("the device to be listened to", lambda: guest.attempt(held)[0] == 0, 60)
        for up, said, state in ((False, "rxe0 port 1: port went down", "Down"),
                                (True, "rxe0 port 1: port became Active", "Active")):
            before = len(lines()) - 1
            self.link(up)
            event = until(said, before, lambda line: line.get("event") == said)
            self.assertTrue(lines()[event]["topology"])
            counters = until("a pass over the counters", event, lambda line: line.get("pass") == "counters")
            until(f"the port to be {state}", event, lambda line: line.get("ports") == {"rxe0 port 1": state})
            until("a full look", event, lambda line: line.get("pass") == "look")
            # Else it comes after a day.
            took = lines()[counters]["at_ms"] - lines()[event]["at_ms"]
            self.assertLess(took, 5000)
            print(f"(a pass {took} ms after \"{said}\") ", end="", flush=True)

    def test_the_agent_does_not_keep_open_what_its_driver_would_not_let_go(self):
        guest = self.guests[1]
        follow = self.follow(guest)
        follow.until("observation")
        self.assertEqual(self.rdma_nic(guest.status())["ports"][0]["rdmaMtu"], 1024, "verbs work here")
        self.assertNotEqual(guest.attempt("ls -l /proc/$(cat /mnt/follow.pid)/fd | grep /dev/infiniband/uverbs")[0], 0)
        guest.run("rdma link delete rxe0 && rdma link add rxe0 type rxe netdev eth0", seconds=30)

    def test_a_device_that_is_renamed_while_the_agent_looks_is_never_half_there(self):
        guest = self.guests[1]
        guest.run("""
            touch /mnt/renaming
            while [ -e /mnt/renaming ]; do
              rdma dev set rxe0 name rxe9 && sleep 0.02; rdma dev set rxe9 name rxe0 && sleep 0.02
            done >/dev/null 2>&1 &""")
        self.addCleanup(guest.run, "rm -f /mnt/renaming; sleep 0.5; rdma dev show rxe0")
        for _ in range(8):
            nics = guest.status()["nics"]
            self.assertEqual([(nic["transport"], nic["netdev"], nic["ports"][0].get("leaf")) for nic in nics],
                             [("RoCE", "eth0", "guest-0")])
            self.assertIn(nics[0]["name"], ("rxe0", "rxe9"))

    def test_a_recording_replays_outside_byte_for_byte(self):
        recorded = self.replays(self.guests[0])
        self.assertIn("guest-1", (recorded / "lldp.json").read_text())
