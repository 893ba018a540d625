"""The host's leaf by InfiniBand, from a fabric that ibsim simulates and opensm runs."""

import json
import subprocess

from infiniband import PRELOAD, Fabric, fat_tree
from lab import Lab, Watch, need, options, wait_for


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

    def test_names_the_leaf_in_a_fabric_of_thousands_of_ports_and_says_what_a_look_costs(self):
        for shape, ports, leaf in ((4, 4, 2), 48, "leaf-3 4"), ((60, 32, 30), 7440, "leaf-59 32"):
            fabric = Fabric(self, fat_tree(*shape))
            fabric.sweep()
            host = f"node-{shape[0] * shape[1] - 1}"
            watch = fabric.watch(host, fabric.machine(host, "machine"))
            looks = [watch.look() for _ in range(20)]
            self.assertEqual([look["cables"] for look in looks], [{"ibsim0:1": leaf}] * 20)
            median = sorted(look["milliseconds"] for look in looks)[10]
            print(f"({ports:,} cabled ports: a look {median:.1f} ms) ", end="", flush=True)

    def test_survives_a_fabric_that_vanishes_while_it_looks(self):
        fabric = Fabric(self, fat_tree(leaves=2, hosts=2, spines=1))
        fabric.sweep()
        watch = fabric.watch("node-1", fabric.machine("node-1", "machine"))
        self.assertEqual(watch.look()["cables"], {"ibsim0:1": "leaf-0 2"})
        self.end(fabric.simulator)
        gone = watch.look()
        self.assertEqual(gone["cables"], {"ibsim0:1": "leaf-0 2"})
        self.assertIn("ibsim0 port 1: its leaf is unknown", gone["problems"][0])

    def test_says_of_a_port_that_it_may_not_ask(self):
        self.folder.chmod(0o755)
        for name, text in (("infiniband/mlx5_0/ports/1/state", "4: ACTIVE"), ("infiniband_mad/abi_version", "5"),
                           ("infiniband/mlx5_0/ports/1/link_layer", "InfiniBand"),
                           ("infiniband_mad/umad0/ibdev", "mlx5_0"), ("infiniband_mad/umad0/port", "1")):
            file = self.folder / "sys/class" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text + "\n")
        script = ("mount -t tmpfs none /dev && mkdir -m 755 /dev/infiniband && touch /dev/infiniband/umad0 && "
                  "chmod 600 /dev/infiniband/umad0 && exec setpriv --reuid 65534 --clear-groups \"$0\" \"$@\"")
        seen = Watch(self, self.folder, ["unshare", "--mount", "sh", "-c", script]).look()
        self.assertEqual(seen["cables"], {"mlx5_0:1": "Unknown"})
        self.assertEqual(seen["problems"],
                         ["mlx5_0 port 1: its leaf is unknown: no permission for /dev/infiniband/umad0"])

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
