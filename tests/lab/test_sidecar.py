"""lldpd as the chart runs it beside an unprivileged agent: its command, its capabilities, and the agent's own."""

import json
import re
import subprocess

from lab import ROOT, Lab, Namespace, lldpd_settings, need, options, wait_for


def of_the_chart():
    """The sidecar's command and its capabilities, and the agent's, as the templates have them."""
    sidecar = (ROOT / "charts/heddle/templates/nodeagent.yaml").read_text()
    command = re.search(r"command: \[(lldpd,.*)\]", sidecar).group(1).split(", ")
    capabilities = re.search(r"add: \[(NET_RAW.*)\]", sidecar).group(1)
    template = (ROOT / "charts/heddle/templates/_agent.tpl").read_text()
    agent = re.search(r'access\.lldp "none" }}{{ \$add = append \$add "(\w+)" }}', template).group(1)
    return command, capabilities, agent


def limited(capabilities):
    """Root with these capabilities and no way to more, as a container has it."""
    names = ["+" + name.strip().lower() for name in capabilities.split(",")] if capabilities else []
    return ["setpriv", "--no-new-privs", "--inh-caps=-all", "--bounding-set=" + ",".join(["-all", *names])]


class Sidecar(Lab):
    def setUp(self):
        super().setUp()
        need("lldpd", "lldpcli", "ip", "nsenter", "unshare", "setpriv")
        self.host, self.leaf = Namespace(self, "host"), Namespace(self, "leaf")
        subprocess.run(["ip", "link", "add", "eth1", "netns", str(self.host.pid), "type", "veth",
                        "peer", "name", "swp7", "netns", str(self.leaf.pid)], check=True, timeout=30)
        self.host.run("ip", "link", "set", "eth1", "up")
        self.leaf.run("ip", "link", "set", "swp7", "up")
        command, self.capabilities, self.agent = of_the_chart()
        self.socket = "/run/heddle-lldpd/lldpd.socket"
        self.command = [self.socket if "lldpSocket" in word else word for word in command]
        self.host.run("mkdir", "-p", "/run/heddle-lldpd", "/run/lldpd")

    def ask(self, capabilities, *words):
        return subprocess.run([*self.host.enter, *limited(capabilities), "lldpcli", "-u", self.socket, *words],
                              capture_output=True, text=True, timeout=30, cwd="/")

    def start(self):
        self.host.spawn(*limited(self.capabilities), *self.command, log="sidecar.log")
        wait_for("the sidecar", lambda: self.ask(self.agent, "show", "configuration").returncode == 0)

    def counts(self):
        """Of eth1: frames sent and heard."""
        said = json.loads(self.ask(self.agent, "-f", "json0", "show", "statistics").stdout)
        [interface] = [one for one in said["lldp"][0]["interface"] if one["name"] == "eth1"]
        return {key: int(interface[key][0][key]) for key in ("tx", "rx")}

    def test_it_hears_the_leaf_and_never_speaks(self):
        self.start()
        self.leaf.write("/run/lldpd.conf", lldpd_settings("system hostname tor-1"))
        self.leaf.spawn("lldpd", "-d", "-O", "/run/lldpd.conf", "-I", "swp7", log="leaf.log")
        wait_for("three frames", lambda: self.counts()["rx"] >= 3)
        self.assertEqual(self.counts()["tx"], 0)
        heard = json.loads(self.leaf.run("lldpcli", "-f", "json0", "show", "neighbors"))
        self.assertFalse(heard["lldp"][0].get("interface"), "the leaf has heard the sidecar")
        # And the agent, with no more rights than its container, asks it.
        target = self.folder / "recorded"
        done = subprocess.run([*self.host.enter, *limited(self.agent), str(options.binaries / "heddle-nodeagent"),
                               "--node", "bed", "--lldpd-socket", self.socket, "record", str(target)],
                              capture_output=True, text=True, timeout=120, cwd="/")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("tor-1", (target / "lldp.json").read_text())

    def test_the_agent_needs_the_one_capability_that_it_has(self):
        self.start()
        refused = self.ask("", "show", "neighbors")
        self.assertIn("Permission denied", refused.stdout + refused.stderr)
