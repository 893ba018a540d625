"""`heddle-nodeagent --print --follow` on real interfaces: what the kernel says shows at once, and a word ends it."""

import json
import os
import pathlib
import queue
import signal
import subprocess
import threading
import time

from lab import Lab, Namespace, need, options, wait_for


class Follower:
    """Its lines as they come, each with the time at which it came."""

    def __init__(self, lab, namespace, *arguments):
        self.process = namespace.spawn(options.binaries / "heddle-nodeagent", "--node", "bed", "--print", "--follow",
                                       "-o", "json", *arguments, stdout=subprocess.PIPE, log="follow.log")
        self.lines = queue.Queue()
        reader = threading.Thread(target=self.read, daemon=True)
        reader.start()
        lab.addCleanup(self.end, reader)

    def agent(self):
        # nsenter forks for the process namespace, waits for what it started and ends as that does.
        outer = self.process.pid
        children = pathlib.Path(f"/proc/{outer}/task/{outer}/children")
        return int(wait_for("the agent", lambda: children.read_text().split())[0])

    def end(self, reader):
        """Before its output is closed, which a reader that still waits would not let happen."""
        if self.process.poll() is None:
            os.kill(self.agent(), signal.SIGKILL)
        reader.join(30)

    def read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))

    def until(self, kind, text="", seconds=30.0):
        """The next line of that kind with the text in it."""
        end = time.monotonic() + seconds
        seen = []
        while True:
            try:
                line = self.lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no {kind} line with {text!r} within {seconds:.0f} s; there were {seen}") from None
            if line["kind"] == kind and text in line.get("text", ""):
                return line
            seen.append(line)


class Follow(Lab):
    def setUp(self):
        super().setUp()
        need("ip", "nsenter", "unshare")
        self.host = Namespace(self, "host")

    def cable(self):
        self.host.run("ip", "link", "add", "eth1", "type", "veth", "peer", "name", "swp1")
        for interface in ("eth1", "swp1"):
            self.host.run("ip", "link", "set", interface, "up")

    def test_shows_a_cable_that_is_pulled_and_put_back_within_seconds(self):
        self.cable()
        follower = Follower(self, self.host)
        first = follower.until("observation", seconds=60)
        self.assertEqual(first["object"]["kind"], "NodeTopology")
        self.host.run("ip", "link", "set", "swp1", "down")
        follower.until("kernel", "eth1: carrier lost", seconds=10)
        self.host.run("ip", "link", "set", "swp1", "up")
        follower.until("kernel", "eth1: carrier back", seconds=10)

    def test_shows_an_interface_that_comes_is_renamed_and_goes(self):
        follower = Follower(self, self.host)
        follower.until("observation", seconds=60)
        self.cable()
        follower.until("kernel", "eth1: interface came", seconds=10)
        self.host.run("ip", "link", "set", "eth1", "down")
        self.host.run("ip", "link", "set", "eth1", "name", "rail0")
        follower.until("kernel", "rail0: renamed from eth1", seconds=10)
        self.host.run("ip", "link", "set", "rail0", "mtu", "4200")
        follower.until("kernel", "rail0: MTU 4200, was 1500", seconds=10)
        self.host.run("ip", "link", "del", "rail0")
        follower.until("kernel", "rail0: interface went", seconds=10)

    def test_passes_over_what_pods_come_and_go_with(self):
        pod = Namespace(self, "pod")
        follower = Follower(self, self.host)
        follower.until("observation", seconds=60)
        subprocess.run(["ip", "link", "add", "cali0", "netns", str(self.host.pid), "type", "veth",
                        "peer", "name", "eth0", "netns", str(pod.pid)], check=True, timeout=30)
        self.host.run("ip", "link", "set", "cali0", "up")
        # What comes after is told, so what came before would have been.
        self.cable()
        line = follower.until("kernel", seconds=10)
        self.assertNotIn("cali0", line["text"])

    def test_ends_at_ctrl_c(self):
        follower = Follower(self, self.host)
        follower.until("observation", seconds=60)
        os.kill(follower.agent(), signal.SIGINT)
        self.assertEqual(follower.process.wait(timeout=30), 0, self.log("follow.log"))

    def test_ends_though_lldpd_hangs(self):
        need("lldpd", "lldpcli")
        self.cable()
        self.host.spawn("lldpd", "-d", "-I", "eth1", log="host.log")
        wait_for("lldpd", lambda: subprocess.run([*self.host.enter, "lldpcli", "show", "configuration"],
                                                 capture_output=True, cwd="/").returncode == 0)
        self.host.run("sh", "-c", "kill -STOP $(pidof lldpd)")
        follower = Follower(self, self.host)
        waits = [*self.host.enter, "pidof", "lldpcli"]
        wait_for("a look that waits for lldpd", lambda: subprocess.run(waits, capture_output=True, cwd="/").returncode == 0)
        os.kill(follower.agent(), signal.SIGTERM)
        # Its own patience with lldpd is 5 s.
        began = time.monotonic()
        self.assertEqual(follower.process.wait(timeout=30), 0, self.log("follow.log"))
        self.assertLess(time.monotonic() - began, 4)
        self.assertTrue(follower.lines.empty())

