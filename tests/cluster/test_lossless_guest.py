"""A LosslessPolicy all the way to a kernel: real API server and operator, and an agent in a guest whose interfaces have
DCB (tests/lab/dcbdev). What was written is what the device counted."""

import sys
import time
import unittest
from urllib.parse import urlparse

from bed import REPOSITORY, Heddle, path
from bed.testing import BedTestCase, options

sys.path.append(str(REPOSITORY / "tests" / "lab"))
import lab  # noqa: E402  pylint: disable=wrong-import-position
from dcb_device import DcbDevice, module, network_card  # noqa: E402  pylint: disable=wrong-import-position
from guest import Guest, why_no_guests  # noqa: E402  pylint: disable=wrong-import-position
from pci_device import NVIDIA_GPU, PciDevice, give_driver  # noqa: E402  pylint: disable=wrong-import-position

NODE = "gpu-guest"
PORT = "rxe0:1"
# The guest reaches this machine's loopback at 10.0.2.2 (QEMU's user network); certificates are for 127.0.0.1.
FORWARD = """
import asyncio, sys
port = int(sys.argv[1])
async def pump(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()
async def serve(reader, writer):
    there, back = await asyncio.open_connection("10.0.2.2", port)
    await asyncio.gather(pump(reader, back), pump(there, writer))
async def main():
    async with await asyncio.start_server(serve, "127.0.0.1", port) as server:
        await server.serve_forever()
asyncio.run(main())
"""


@unittest.skipIf(why_no_guests(), why_no_guests())
class LosslessGuestTest(BedTestCase):

    @classmethod
    def set_up_bed(cls):
        lab.options.binaries = options.binaries
        cls.nodes.add_plain(NODE, labels={"pool": "gpu"})
        cls.heddle = Heddle(cls.plane, options.binaries)
        cls.heddle.install()
        cls.rest = cls.plane.rest
        cls.heddle.start_operator()
        cls.start_guest()

    @classmethod
    def start_guest(cls):
        built = module()
        cards = [network_card(), network_card(), PciDevice(**NVIDIA_GPU)]
        cls.addClassCleanup(lambda: [card.close() for card in cards])
        arguments = ["-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net"]
        for index, card in enumerate(cards):
            arguments += ["-device", f"pcie-root-port,id=root{index},chassis={index + 1}",
                          "-device", card.argument(f"root{index}", f"card{index}")]
        cls.guest = Guest(NODE, arguments, passed=[card.end.fileno() for card in cards])
        cls.addClassCleanup(cls.guest.close)
        for card in cards:
            card.end.close()
        guest = cls.guest.ready()
        gpu = "basename $(dirname $(grep -l 0x10de /sys/bus/pci/devices/*/vendor))"
        give_driver(guest, [guest.run(gpu).strip()])
        guest.load("virtio_net", "crc32_generic", "rdma_rxe", "rdma_cm")
        guest.run("mount -t debugfs none /sys/kernel/debug && mount -t configfs none /sys/kernel/config && "
                  f"insmod {built} && ip link set eth0 up && ip address add 10.0.2.15/24 dev eth0")
        for index in (0, 1):
            guest.run(f"ip address add 10.0.{index + 10}.1/24 dev dcb{index} && ip link set dcb{index} up && "
                      f"rdma link add rxe{index} type rxe netdev dcb{index}")
        file = cls.heddle._account("nodeagent", NODE)  # pylint: disable=protected-access
        (guest.folder / "kubeconfig").write_text(file.read_text())
        (guest.folder / "forward.py").write_text(FORWARD)
        port = urlparse(cls.plane.server).port
        guest.run(f"(python3 /mnt/forward.py {port} >/mnt/forward 2>&1 &) >/dev/null 2>&1")
        cls.device = DcbDevice(guest, "dcb0")

    def setUp(self):
        self.device.reset()
        self.start_agent()
        self.addCleanup(self.guest.attempt, "kill $(cat /mnt/agent.pid)")

    def start_agent(self):
        self.guest.run(
            f"({self.guest.agent_command} --kubeconfig /mnt/kubeconfig --lossless=apply --lossless-interval=30 "
            "--lossless-drain=1 --lossless-settle=2 --publish-jitter=0.1 --listen '' --pod-resources=none "
            "--state-dir=/run/heddle >>/mnt/agent 2>&1 & echo $! >/mnt/agent.pid) >/dev/null 2>&1")

    def report(self):
        reports = self.rest.get(path("nodetopologies", name=NODE)).get("status", {}).get("lossless", [])
        return next((report for report in reports if PORT in report["ports"]), {})

    def wait_state(self, state, seconds=180):
        def there():
            report = self.report()
            if report.get("state") != state:
                said = (self.guest.folder / "agent").read_text(errors="replace")
                raise AssertionError(f"{report}\n{said[-3000:]}")
            return report
        return self.heddle.wait_for(there, f"{PORT} to be {state}", seconds)

    def test_from_nothing_to_compliant_and_a_change_is_seen_within_a_minute(self):
        self.rest.create(path("losslesspolicies"), {
            "apiVersion": "heddle.dev/v1alpha1", "kind": "LosslessPolicy", "metadata": {"name": "roce"},
            "spec": {"mode": "Apply", "nodeSelector": {"pool": "gpu"}}})
        report = self.wait_state("Compliant")
        self.assertEqual([gap["setting"] for gap in report.get("gaps", [])], ["ecn"])
        # Exactly what it needed: DCBX, CNPs and DCQCN were right already.
        self.assertEqual(self.device.writes(), {"ets": 1, "pfc": 1, "app": 64, "watchdog": 1, "mtu": 1})
        self.assertIn("3:on", self.guest.run("dcb pfc show dev dcb0"))
        # Of a second generation only what differs.
        self.device.reset()
        self.rest.patch(path("losslesspolicies", name="roce"), {"spec": {"mtu": 8900}})
        self.heddle.wait_for(lambda: self.report().get("generation") == 2, "the second generation", 120)
        self.assertEqual(self.wait_state("Compliant")["have"]["mtu"], 8900)
        self.assertEqual(self.device.writes(), {"mtu": 1})

        # An agent that starts again writes nothing, and hears a person who does.
        self.guest.run("kill $(cat /mnt/agent.pid); while kill -0 $(cat /mnt/agent.pid); do sleep 0.1; done")
        self.device.reset()
        renewed = lambda: self.rest.get(path("leases", "heddle-system", f"heddle-node-{NODE}"))["spec"]["renewTime"]
        before = renewed()
        self.start_agent()
        self.heddle.wait_for(lambda: renewed() != before, "the agent's Lease", 120)
        self.guest.run("dcb pfc set dev dcb0 prio-pfc 4:on")
        drift = self.wait_state("Drifted", 60)["drift"]
        self.assertEqual([(one["setting"], one["want"], one["have"], one["writer"]) for one in drift],
                         [("pfc", "3", "3,4", "manual")])
        # It had just started and looked. Now it is between two looks, and the kernel tells it.
        self.guest.run("dcb pfc set dev dcb0 prio-pfc 5:on")
        since = time.monotonic()
        self.heddle.wait_for(lambda: self.report()["drift"][0]["have"] == "3,4,5", "the second change", 60)
        print(f"(seen after {time.monotonic() - since:.1f} s) ", end="", flush=True)
        self.assertEqual(self.device.writes(), {"pfc": 2}, "the person's, and none of ours: onDrift is Report")
