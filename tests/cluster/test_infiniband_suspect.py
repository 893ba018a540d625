"""A link that flaps on InfiniBand, from the leaf's own counter to `kubectl heddle status`: ibsim and opensm are the fabric,
an agent asks the leaf by real management datagrams and publishes, and operator and API server are real, too."""

import shutil
import subprocess
import sys
from urllib.parse import urlparse

from bed import REPOSITORY, Heddle, path
from bed.forward import PUMP
from bed.process import run
from bed.testing import BedTestCase, options

sys.path.append(str(REPOSITORY / "tests" / "lab"))
import lab  # noqa: E402  pylint: disable=wrong-import-position
from infiniband import PRELOAD, Fabric, fat_tree  # noqa: E402  pylint: disable=wrong-import-position

NODE = "gpu-ib"
# The fabric has a network namespace of its own, and the API server listens outside: a socket of the file system leads out.
FORWARD = PUMP + """
end, file, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
async def serve(reader, writer):
    there, back = await (asyncio.open_unix_connection(file) if end == "inner" else asyncio.open_connection("127.0.0.1", port))
    await asyncio.gather(pump(reader, back), pump(there, writer))
async def main():
    if end == "inner":
        server = await asyncio.start_server(serve, "127.0.0.1", port)
    else:
        server = await asyncio.start_unix_server(serve, file)
    async with server:
        await server.serve_forever()
asyncio.run(main())
"""


class InfiniBandSuspectTest(BedTestCase, lab.Lab):
    mostly_waits = True

    @classmethod
    def set_up_bed(cls):
        lab.need("ibsim", "opensm", "nsenter", "unshare", str(PRELOAD))
        lab.options.binaries = options.binaries
        cls.nodes.add_plain(NODE)
        cls.heddle = Heddle(cls.plane, options.binaries)
        cls.heddle.install()
        cls.rest = cls.plane.rest
        cls.heddle.start_operator()

    def setUp(self):
        super().setUp()
        self.fabric = Fabric(self, fat_tree(leaves=2, hosts=2, spines=1))
        self.fabric.sweep()

    def board(self):
        """A whole HGX H100 whose rail 3 is node-1's port, on leaf-0 port 2; its other NICs have no umad (test_pma.py)."""
        simulated, board = self.fabric.machine("node-1", "machine"), self.folder / "board"
        subprocess.run([sys.executable, REPOSITORY / "tests/support/machines.py", "hgx-h100", str(board)], check=True)
        infiniband = board / "sys/class/infiniband"
        (infiniband / "mlx5_3").rename(infiniband / "ibsim0")
        shutil.rmtree(board / "sys/class/infiniband_mad", ignore_errors=True)
        shutil.copytree(simulated / "sys/class/infiniband_mad", board / "sys/class/infiniband_mad")
        return board

    def start_agent(self):
        """In the fabric's namespace, on that board, under an account of its own."""
        port, file = urlparse(self.plane.server).port, self.folder / "api"
        self.spawn(sys.executable, "-c", FORWARD, "outer", file, port, log="forward.log")
        self.spawn(*self.fabric.enter, sys.executable, "-c", FORWARD, "inner", file, port, log="forward.log")
        board = self.board()
        kubeconfig = self.heddle._account("nodeagent", NODE)  # pylint: disable=protected-access
        self.spawn(
            *self.fabric.enter, "unshare", "--mount", "sh", "-c", f'mount --rbind {board}/sys /sys && exec "$0" "$@"',
            options.binaries / "heddle-nodeagent", "--kubeconfig", kubeconfig, "--node", NODE,
            "--nvml", options.binaries.parent / "nvml/libnvidia-ml.so.1", "--publish-jitter=0.1", "--listen", "",
            "--pod-resources=none", "--device-plugins=none", "--state-dir", self.folder / "state", log="agent.log",
            env={**self.fabric.environment("node-1"), "HEDDLE_TEST_NVML": str(board / "nvml.yaml")})

    def status(self):
        return self.rest.get(path("nodetopologies", name=NODE)).get("status", {})

    def on_its_leaf(self):
        """Once the agent has published where ibsim0 hangs, and that it counts there."""
        status = self.status()
        ports = {nic["name"]: nic["ports"][0] for nic in status.get("nics", [])}
        counted = next((one for one in status.get("conditions", []) if one["type"] == "LeavesCounted"), None)
        if not counted or ports.get("ibsim0", {}).get("leaf") != "leaf-0":
            raise AssertionError(f"{ports.get('ibsim0')} {counted}\n{self.log('agent.log')[-3000:]}\n{self.log('forward.log')}")
        self.assertNotIn("ibsim0", counted["message"], "it alone is asked")
        return True

    def suspects(self):
        fabric = self.rest.find(path("fabrics", name="infiniband")) or {}
        return fabric.get("status", {}).get("suspects", [])

    def test_a_flap_that_the_leaf_counts_climbs_to_the_top_of_the_fabrics_suspects(self):
        self.start_agent()
        self.heddle.wait_for(self.on_its_leaf, "the agent to publish", 120)
        self.assertEqual(self.suspects(), [])
        self.fabric.console('PerformanceSet "S-0000000000000001"[2] PortCounters.LinkDownedCounter=41')
        self.heddle.wait_for(lambda: self.suspects() and self.suspects()[0]["symptom"] == "Flap", "a suspect", 60)
        first = self.suspects()[0]
        self.assertIn(f"leaf-0 port 2 <-> {NODE} ibsim0:1", first["name"])
        self.assertIn("41 link downs in 10 min", first["evidence"])
        port = next(nic["ports"][0] for nic in self.status()["nics"] if nic["name"] == "ibsim0")
        self.assertEqual(port.get("fault"), "Flapping")
        said = run([options.binaries / "kubectl-heddle", "status"], environment=self.plane.tool_environment(), check=False).stdout
        self.assertIn(f"leaf-0 port 2 <-> {NODE} ibsim0:1", said)
        self.assertIn("41 link downs", said)
