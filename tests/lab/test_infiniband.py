"""The host's leaf by InfiniBand, from a fabric that ibsim simulates and opensm runs."""

import json
import subprocess

from infiniband import PRELOAD, Fabric, fat_tree
from lab import Lab, need, options, wait_for


class InfiniBand(Lab):
    def setUp(self):
        super().setUp()
        need("ibsim", "opensm", "nsenter", "unshare", str(PRELOAD))

    def test_names_the_leaf_and_its_port_of_every_host(self):
        fabric = Fabric(self, fat_tree(leaves=4, hosts=4, spines=2))
        fabric.sweep()
        for node, leaf in ((0, "leaf-0 1"), (3, "leaf-0 4"), (5, "leaf-1 2"), (15, "leaf-3 4")):
            root = fabric.machine(f"node-{node}", "machine")
            seen = fabric.watch(f"node-{node}", root).look()
            self.assertEqual(seen["cables"], {"ibsim0:1": leaf}, seen)

    def test_does_not_ask_before_a_subnet_manager_has_seen_the_port(self):
        fabric = Fabric(self, fat_tree(leaves=1, hosts=2, spines=1))
        seen = fabric.watch("node-0", fabric.machine("node-0", "machine")).look()
        self.assertEqual(seen["cables"]["ibsim0:1"], "Unknown")
        self.assertIn("2: INIT", " ".join(seen["problems"]))

    def test_calls_a_port_that_lost_its_link_stale_and_knows_it_again(self):
        fabric = Fabric(self, fat_tree(leaves=2, hosts=2, spines=1))
        fabric.sweep()
        root = fabric.machine("node-1", "machine")
        watch = fabric.watch("node-1", root)
        self.assertEqual(watch.look()["cables"], {"ibsim0:1": "leaf-0 2"})
        # The switch is silent while the port still says Active: a lost answer takes no leaf away.
        fabric.console('Unlink "H-0000000000100002"[1]')
        silent = wait_for("silence", lambda: next((s for s in [watch.look()] if s["problems"]), None))
        self.assertEqual(silent["cables"], {"ibsim0:1": "leaf-0 2"})
        self.assertIn("does not answer", silent["problems"][0])
        (root / "sys/class/infiniband/ibsim0/ports/1/state").write_text("1: DOWN\n")
        (root / "sys/class/infiniband/ibsim0/ports/1/phys_state").write_text("2: Polling\n")
        down = watch.look()
        self.assertEqual(down["cables"], {"ibsim0:1": "Stale"})
        self.assertIn("it was leaf-0 port 2", " ".join(down["problems"]))
        fabric.console('Relink "H-0000000000100002"[1]')
        fabric.sweep()
        (root / "sys/class/infiniband/ibsim0/ports/1/state").write_text("4: ACTIVE\n")
        back = wait_for("the link", lambda: next((s for s in [watch.look()] if not s["problems"]), None))
        self.assertEqual(back["cables"], {"ibsim0:1": "leaf-0 2"})

    def test_costs_as_much_in_a_large_fabric_as_in_a_small_one(self):
        fabric = Fabric(self, fat_tree(leaves=60, hosts=32, spines=30))
        root = fabric.machine("node-1919", "machine")
        # A sweep of so many would take opensm minutes. The port answers before it, too.
        for port in (root / "sys/class/infiniband").glob("*/ports/1"):
            (port / "state").write_text("4: ACTIVE\n")
        watch = fabric.watch("node-1919", root)
        seen = watch.look()
        self.assertEqual(seen["cables"]["ibsim0:1"], "leaf-59 32")
        print(f"(one look in a fabric of 7,440 ports: {watch.look()['milliseconds']:.1f} ms) ", end="")

    def test_a_recording_replays_the_same_leaf(self):
        fabric = Fabric(self, fat_tree(leaves=2, hosts=2, spines=1))
        fabric.sweep()
        root = fabric.machine("node-2", "machine")
        agent, target = str(options.binaries / "heddle-nodeagent"), self.folder / "recorded"
        # The agent looks at /sys: the simulated devices are put where the kernel would show them.
        script = (f"mount -t tmpfs none /sys/class && cp -r {root}/sys/class/. /sys/class && "
                  f"LD_PRELOAD={PRELOAD} SIM_HOST=node-2 {agent} --node bed record {target} && "
                  f"LD_PRELOAD={PRELOAD} SIM_HOST=node-2 {agent} --node bed --print -o json")
        live = self.run_in(fabric, "unshare", "--mount", "sh", "-c", script)
        self.assertRegex((target / "ib.txt").read_text(), r'^ibsim0 1 \d+ switch 0x[0-9a-f]{16} "leaf-1" 1$')
        again = self.run_in(fabric, agent, "--machine", str(target), "--node", "bed", "--print", "-o", "json")
        ports = [[port for nic in json.loads(text)["status"]["nics"] for port in nic["ports"]
                  if nic["name"] == "ibsim0"] for text in (live, again)]
        self.assertEqual(ports[0], ports[1])
        self.assertEqual((ports[0][0]["leaf"], ports[0][0]["leafPort"]), ("leaf-1", "1"))

    def run_in(self, fabric, *command):
        done = subprocess.run([*fabric.enter, *command], cwd=self.folder, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout
