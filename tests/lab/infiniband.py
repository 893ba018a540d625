"""A simulated InfiniBand fabric: ibsim answers real management datagrams, opensm brings the ports up."""

import os
import pathlib
import shutil
import subprocess

from lab import Watch, wait_for

PRELOAD = next(pathlib.Path("/usr/lib").glob("*/umad2sim/libumad2sim.so"), pathlib.Path("/no-libumad2sim"))

# The simulator shows its files only to calls that it intercepts, and has none for the link layer.
COPY = """
import os, shutil, sys
os.listdir('/sys/class/infiniband')
shutil.copytree(f'sys-{os.getpid()}/sys', sys.argv[1])
"""


def fat_tree(leaves, hosts, spines):
    """ibnetdiscover's text: every leaf with `hosts` hosts of two ports, one port to every spine."""
    switch, host = "S-00000000000{:05x}".format, "H-00000000001{:05x}".format
    lines = []
    for leaf in range(leaves):
        lines.append(f'Switch 64 "{switch(leaf + 1)}" # "leaf-{leaf}"')
        for i in range(hosts):
            lines.append(f'[{i + 1}] "{host(leaf * hosts + i + 1)}"[1]')
        lines += [f'[{33 + spine}] "{switch(0x1000 + spine)}"[{leaf + 1}]' for spine in range(spines)] + [""]
    for spine in range(spines):
        lines.append(f'Switch 64 "{switch(0x1000 + spine)}" # "spine-{spine}"')
        lines += [f'[{leaf + 1}] "{switch(leaf + 1)}"[{33 + spine}]' for leaf in range(leaves)] + [""]
    for i in range(leaves * hosts):
        lines += [f'Ca 2 "{host(i + 1)}" # "node-{i}"', f'[1] "{switch(i // hosts + 1)}"[{i % hosts + 1}]', ""]
    return "\n".join(lines)


class Fabric:
    """Each has a network namespace of its own, since ibsim's socket names are the same for all."""

    def __init__(self, lab, text):
        self.lab = lab
        (lab.folder / "net").write_text(text)
        self.holder = lab.spawn("unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec sleep 600",
                                stdout=subprocess.PIPE)
        if self.holder.stdout.readline() != b"up\n":
            raise AssertionError(f"no namespaces here: {lab.log()}")
        self.enter = ["nsenter", "--target", str(self.holder.pid), "--net"]
        self.simulator = lab.spawn(*self.enter, "ibsim", "-s", "-N", "8192", "-S", "1024", "-P", "65536",
                                   lab.folder / "net", stdin=subprocess.PIPE, log="ibsim.log")
        wait_for("ibsim", lambda: "simulator ready" in lab.log("ibsim.log"))

    def console(self, command):
        self.simulator.stdin.write(f"{command}\n".encode())
        self.simulator.stdin.flush()

    def environment(self, host):
        return {**os.environ, "LD_PRELOAD": str(PRELOAD)} | ({"SIM_HOST": host} if host else {})

    def sweep(self):
        """One sweep of opensm, which leaves every cabled port Active."""
        done = subprocess.run([*self.enter, "opensm", "-o", "-f", self.lab.folder / "opensm.log"], timeout=60,
                              cwd=self.lab.folder, env=self.environment(None), capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(f"opensm: {done.stdout}{done.stderr}")

    def machine(self, host, name):
        """A folder with sys/ as `host` has it now."""
        root = self.lab.folder / name
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        subprocess.run([*self.enter, "python3", "-c", COPY, str(root / "sys")], cwd=self.lab.folder, check=True,
                       env=self.environment(host), timeout=30, capture_output=True)
        for port in (root / "sys/class/infiniband").glob("*/ports/*"):
            (port / "link_layer").write_text("InfiniBand\n")
        return root

    def watch(self, host, root):
        return Watch(self.lab, root, self.enter, env=self.environment(host))
