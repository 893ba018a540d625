"""What the leaf has counted at its end of an InfiniBand cable: real management datagrams to switches that ibsim
simulates, opensm as their subnet manager, and errors that ibsim's console sets."""

import json
import re
import shutil
import subprocess
import sys
import threading
import time

from infiniband import PRELOAD, Fabric, fat_tree
from lab import ROOT, Lab, need, options, wait_for
from test_follow import Follower

LEAF = 'S-0000000000000001'  # leaf-0
HOST = 'H-0000000000100002'  # node-1, at its port 2
PORT = "ibsim0:1"
GET = 0x01


class Fixed:
    """Follower wants a namespace that spawns and whose agent is the child of what it spawned."""

    def __init__(self, lab, command, environment):
        self.lab, self.command, self.environment = lab, command, environment

    def spawn(self, *arguments, **kwargs):
        return self.lab.spawn(*self.command, *arguments, env=self.environment, **kwargs)


class LeafFollower(Follower):
    def agent(self):
        return self.process.pid  # nsenter, unshare and sh each became the next


class Pma(Lab):
    def setUp(self):
        super().setUp()
        need("ibsim", "opensm", "nsenter", "unshare", str(PRELOAD))
        self.fabric = Fabric(self, fat_tree(leaves=2, hosts=2, spines=1))
        self.fabric.sweep()
        self.root = self.fabric.machine("node-1", "machine")

    def watch(self):
        return self.fabric.watch("node-1", self.root)

    def set(self, counter, value, leaf=LEAF, port=2):
        self.fabric.console(f'PerformanceSet "{leaf}"[{port}] PortCounters.{counter}={value}')

    def counted(self, watch, name, value):
        """The look at which the leaf says so; the console takes its time."""
        return wait_for(f"{name}={value}", lambda: next(
            (look for look in [watch.look()] if look["leaf_counts"][PORT]["counts"].get(name) == value), None))

    def test_reads_what_the_leafs_port_has_counted(self):
        watch = self.watch()
        first = watch.look()["leaf_counts"][PORT]
        self.assertEqual((first["leaf"], first["unread"]), ("leaf-0 2", ""))
        self.assertEqual({first["counts"][name] for name in ("link_downed", "symbol_error")}, {0})
        # The widths of the specification, each at its end, and what another port has counted nowhere.
        ends = {"SymbolErrorCounter": ("symbol_error", 65535), "LinkErrorRecoveryCounter": ("link_error_recovery", 255),
                "LinkDownedCounter": ("link_downed", 255), "PortRcvErrors": ("port_rcv_errors", 65535),
                "PortRcvRemotePhysicalErrors": ("port_rcv_remote_physical_errors", 65535),
                "PortXmitDiscards": ("port_xmit_discards", 65535),
                "LocalLinkIntegrityErrors": ("local_link_integrity_errors", 15),
                "ExcessiveBufferOverrunErrors": ("excessive_buffer_overrun_errors", 15),
                "PortXmitWait": ("port_xmit_wait", 4294967295)}
        for i, (field, (name, end)) in enumerate(ends.items()):
            self.set(field, 13, port=1)
            self.set(field, end - i)
            self.counted(watch, name, end - i)
        last = watch.look()["leaf_counts"][PORT]["counts"]
        self.assertEqual({name: last[name] for name, _ in ends.values()},
                         {name: end - i for i, (name, end) in enumerate(ends.values())})
        self.assertGreater(last["port_xmit_packets"], 0)

    def test_says_what_a_pass_costs(self):
        watch = self.watch()
        looks = [watch.look()["leaf_milliseconds"] for _ in range(50)]
        self.assertLess(sorted(looks)[25], 50)
        print(f"(a pass over one port {sorted(looks)[25]:.2f} ms, the first {looks[0]:.2f}) ", end="", flush=True)

    def test_sets_nothing(self):
        watch = self.watch()
        watch.look()
        self.fabric.console("Verbose 3")  # each datagram in its log
        wait_for("datagrams", lambda: watch.look() and "--- packet ---" in self.log("ibsim.log"))
        for downs in range(1, 6):
            self.set("LinkDownedCounter", downs)
            self.counted(watch, "link_downed", downs)
        dumps = re.findall(r"--- packet ---\n((?:[0-9a-f]{4} ?)(?:[0-9a-f \n])*)\n", self.log("ibsim.log"))
        packets = [bytes.fromhex("".join(dump.split())) for dump in dumps]
        self.assertGreater(len(packets), 20)
        self.assertEqual({packet[1] for packet in packets}, {0x81, 0x04}, "by directed route, and performance management")
        self.assertEqual({packet[3] for packet in packets}, {GET})

    def test_says_of_a_leaf_that_refuses_that_it_is_unknown(self):
        watch = self.watch()
        self.assertEqual(watch.look()["leaf_counts"][PORT]["unread"], "")
        # Performance management alone is lost, as in a fabric whose owner lets nobody ask.
        self.fabric.console(f'Error "{LEAF}" 100 0x12')
        silent = wait_for("silence", lambda: next(
            (s for s in [watch.look()["leaf_counts"][PORT]] if s["unread"]), None))
        self.assertRegex(silent["unread"], r"^leaf-0 port 2 does not tell what it has counted \(LID \d+\): no answer within 50 ms$")
        self.assertEqual(silent["counts"], {})
        look = watch.look()
        self.assertEqual(look["cables"], {PORT: "leaf-0 2"}, "its name is known as before")
        self.assertLess(look["leaf_milliseconds"], 5, "not asked again at once")

    def test_keeps_within_its_time_when_the_link_is_gone(self):
        watch = self.watch()
        self.assertEqual(watch.look()["leaf_counts"][PORT]["unread"], "")
        self.fabric.console(f'Unlink "{HOST}"[1]')
        gone = wait_for("silence", lambda: next(
            (s for s in [watch.look()] if s["leaf_counts"].get(PORT, {}).get("unread")), None))
        self.assertIn("does not say which port it is", gone["leaf_counts"][PORT]["unread"])
        self.assertLess(gone["leaf_milliseconds"], 100)
        state = self.root / "sys/class/infiniband/ibsim0/ports/1/state"
        state.write_text("1: DOWN\n")
        self.assertEqual(watch.look()["leaf_counts"], {}, "there is no way to it")
        self.fabric.console(f'Relink "{HOST}"[1]')
        self.fabric.sweep()
        state.write_text("4: ACTIVE\n")
        back = wait_for("the link", lambda: next(
            (s for s in [watch.look()["leaf_counts"][PORT]] if s["counts"]), None))
        self.assertEqual(back["unread"], "")

    def board(self):
        """A whole HGX H100 whose rail 3 hangs on leaf-0 port 2; its other NICs have no umad."""
        board = self.folder / "board"
        subprocess.run([sys.executable, ROOT / "tests/support/machines.py", "hgx-h100", str(board)], check=True)
        infiniband = board / "sys/class/infiniband"
        (infiniband / "mlx5_3").rename(infiniband / "ibsim0")
        shutil.rmtree(board / "sys/class/infiniband_mad", ignore_errors=True)
        shutil.copytree(self.root / "sys/class/infiniband_mad", board / "sys/class/infiniband_mad")
        return board

    def agent(self, board):
        """As a command that runs the agent of that board in the fabric."""
        script = f"mount --rbind {board}/sys /sys && exec \"$0\" \"$@\""
        return [*self.fabric.enter, "unshare", "--mount", "sh", "-c", script]

    def environment(self, board):
        return {**self.fabric.environment("node-1"), "HEDDLE_TEST_NVML": str(board / "nvml.yaml")}

    def nvml(self):
        return str(options.binaries.parent / "nvml/libnvidia-ml.so.1")

    def follow(self, board):
        return LeafFollower(self, Fixed(self, self.agent(board), self.environment(board)), "--nvml", self.nvml())

    def test_a_leaf_whose_port_counts_link_downs_is_its_rails_fault_within_15_seconds(self):
        follower = self.follow(self.board())
        follower.until("observation", seconds=60)
        # The other seven say why not, and take no rail along.
        counted = follower.until("condition", "LeavesCounted")
        self.assertIn("LeavesCounted Unknown (Unread): ", counted["text"])
        self.assertNotIn("ibsim0", counted["text"])
        self.set("LinkDownedCounter", 41)
        started = time.monotonic()
        fault = follower.until("condition", "Rail3Healthy False", seconds=30)
        took = time.monotonic() - started
        self.assertRegex(fault["text"], r"Rail3Healthy False \(Flapping\): ibsim0 port 1 \(.*\): "
                                        r"at leaf-0 port 2: 41 link downs in 10 min, since 20")
        self.assertLess(took, 15)
        print(f"(seen after {took:.1f} s) ", end="", flush=True)

    def suspects(self, *objects):
        """Whom the operator suspects of these NodeTopologies."""
        lines = "".join(json.dumps(one) + "\n" for one in objects)
        return subprocess.run([options.binaries / "suspect_list"], input=lines, capture_output=True, text=True,
                              timeout=60, check=True).stdout.splitlines()

    def test_a_flap_that_the_leaf_counts_is_the_operators_first_suspect(self):
        follower = self.follow(self.board())
        node = follower.until("observation", seconds=60)["object"]
        self.assertEqual(self.suspects(node), [])
        self.set("LinkDownedCounter", 41)
        said = follower.until("health", "Flapping", seconds=30)["text"]
        reason = said.split("Flapping: ", 1)[1]
        # As it is published: --follow says what changes since.
        ports = {nic["name"]: nic["ports"][0] for nic in node["status"]["nics"]}
        ports["ibsim0"].update(fault="Flapping", reason=reason, usableGbps=0)
        other = next(name for name, port in ports.items() if name.startswith("mlx5_") and "leafPort" not in port)
        ports[other].update(fault="Errors", reason="700 symbol errors in 1 h, since 2026-11-25T00:00:00Z")
        first, second = self.suspects(node)
        self.assertRegex(first, r"^infiniband: leaf leaf-0 port 2 <-> \S+ ibsim0:1: 41 link downs in 10 min, since 20\S+; "
                                r"drain or reseat it$")
        self.assertIn(other, second)

    def test_print_shows_what_the_leaf_counted_and_a_recording_replays_it(self):
        self.set("SymbolErrorCounter", 7)
        board, agent, target = self.board(), str(options.binaries / "heddle-nodeagent"), self.folder / "recorded"

        def run(*arguments):
            command = [*self.agent(board), agent, "--node", "bed", *arguments]
            done = subprocess.run(command, cwd=self.folder, env=self.environment(board), capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        live = run("--nvml", self.nvml(), "--print")
        self.assertIn("  ibsim0 port 1 (leaf-0 port 2): symbol_error 7\n", live)
        self.assertIn("  mlx5_0 port 1: the kernel has no umad device for this port\n", live)
        run("--nvml", self.nvml(), "record", str(target))
        self.assertRegex((target / "leaf-counters.txt").read_text(),
                         r'(?m)^ibsim0 1 0x[0-9a-f]{16} "leaf-0" 2 lid \d+ symbol_error=7 ')
        again = subprocess.run([agent, "--machine", str(target), "--print"], capture_output=True, text=True, timeout=60, check=True).stdout
        shown = [text.split("Counted at the leaf")[1].split("\n\n")[0] for text in (live, again)]
        self.assertEqual(*shown)
        as_json = json.loads(subprocess.run([agent, "--machine", str(target), "--print", "-o", "json"], capture_output=True,
                                            text=True, timeout=60, check=True).stdout)
        reasons = {c["type"]: c["reason"] for c in as_json["status"]["conditions"]}
        self.assertEqual(reasons["LeavesCounted"], "Unread")
