"""A guest whose interfaces have DCB (tests/lab/dcbdev), with an agent in it, on a cluster bed: what classes of tests share."""

import datetime
import json
import re
import sys
import time
import unittest
from urllib.parse import urlparse

import yaml

from bed import REPOSITORY, Heddle, path
from bed.forward import PUMP
from bed.heddle import CHART
from bed.testing import BedTestCase, options

sys.path.append(str(REPOSITORY / "tests" / "lab"))
import lab  # noqa: E402  pylint: disable=wrong-import-position
from dcb_device import DcbDevice, module, network_card  # noqa: E402  pylint: disable=wrong-import-position
from guest import Guest, why_no_guests  # noqa: E402  pylint: disable=wrong-import-position
from pci_device import NVIDIA_GPU, PciDevice, give_driver  # noqa: E402  pylint: disable=wrong-import-position

NODE = "gpu-guest"
NEXT = "gpu-next"  # no more than its status: a node that waits for NODE
PORT, NIC = "rxe0:1", "0000:01:00.0"
# The guest reaches this machine's loopback at 10.0.2.2 (QEMU's user network); certificates are for 127.0.0.1.
FORWARD = PUMP + """
port = int(sys.argv[1])
async def serve(reader, writer):
    there, back = await asyncio.open_connection("10.0.2.2", port)
    await asyncio.gather(pump(reader, back), pump(there, writer))
async def main():
    async with await asyncio.start_server(serve, "127.0.0.1", port) as server:
        await server.serve_forever()
asyncio.run(main())
"""


@unittest.skipIf(why_no_guests(), why_no_guests())
class GuestBed(BedTestCase):
    """`values`: of the chart."""

    values = {}

    @classmethod
    def set_up_bed(cls):
        lab.options.binaries = options.binaries
        cls.nodes.add_plain(NODE, labels={"pool": "gpu", "row": "7"})
        cls.nodes.add_plain(NEXT, labels={"row": "7"})
        cls.heddle = Heddle(cls.plane, options.binaries)
        cls.heddle.install(**cls.values)
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
        cls.confined = as_the_chart_confines(cls.heddle)

    def setUp(self):
        """A port that nobody has set, and an agent without a past."""
        if self.guest.attempt("ip link show dcb0")[0] == 0:
            self.unbind()
        self.bind()
        self.guest.run("rm -rf /run/heddle")
        self.device.reset()
        self.before = self.kernel_settings()
        self.policy = f"roce-{re.sub('[^a-z]+', '-', self._testMethodName)[5:45].strip('-')}"
        self.started = time.time()

    def tearDown(self):
        self.guest.attempt("kill -9 $(cat /mnt/agent.pid)")
        if self.rest.find(path("losslesspolicies", name=self.policy)):
            self.rest.delete(path("losslesspolicies", name=self.policy))
        for name in (NODE, NEXT):
            self.heddle.wait_for(lambda n=name: not self.spec(n), "the spec to be empty")
            self.rest.patch(path("nodetopologies", name=name, sub="status"), {"status": None})

    # What is done.

    def unbind(self):
        """The NIC vanishes, with its interface and its RDMA device."""
        self.guest.run(f"echo {NIC} >/sys/bus/pci/drivers/mlx5_core/unbind")

    def bind(self):
        """It is there again, as its driver has it."""
        guest = self.guest
        guest.run(f"echo {NIC} >/sys/bus/pci/drivers/mlx5_core/bind")
        lab.wait_for("dcb0", lambda: guest.attempt("ip link show dcb0")[0] == 0)
        guest.run("ip address replace 10.0.10.1/24 dev dcb0 && ip link set dcb0 up && "
                  "(rdma link show rxe0/1 || rdma link add rxe0 type rxe netdev dcb0)")

    def start_agent(self, interval=30, settle=2, patience=1800):
        self.guest.run(
            f"({self.confined} {self.guest.agent_command} --kubeconfig /mnt/kubeconfig --lossless=apply "
            f"--lossless-interval={interval} --lossless-drain=1 --lossless-settle={settle} --lossless-patience={patience} "
            "--publish-jitter=0.1 --listen '' --pod-resources=none "
            "--state-dir=/run/heddle >>/mnt/agent 2>&1 & echo $! >/mnt/agent.pid) >/dev/null 2>&1")

    def kill_agent(self):
        self.guest.run("kill -9 $(cat /mnt/agent.pid); "
                       "while kill -0 $(cat /mnt/agent.pid) 2>/dev/null; do sleep 0.05; done")

    def make(self, **spec):
        self.rest.create(path("losslesspolicies"), {
            "apiVersion": "heddle.dev/v1alpha1", "kind": "LosslessPolicy", "metadata": {"name": self.policy},
            "spec": {"mode": "Apply", "nodeSelector": {"pool": "gpu"}} | spec})

    def change(self, **spec):
        self.rest.patch(path("losslesspolicies", name=self.policy), {"spec": spec})

    # What is there.

    def spec(self, node=NODE):
        return self.rest.get(path("nodetopologies", name=node)).get("spec", {}).get("lossless", [])

    def status(self):
        return self.rest.get(path("nodetopologies", name=NODE)).get("status", {})

    def report(self):
        return next((report for report in self.status().get("lossless", []) if PORT in report["ports"]), {})

    def condition(self, kind):
        return next((c for c in self.status().get("conditions", []) if c["type"] == kind), {})

    def ready(self):
        conditions = self.rest.get(path("losslesspolicies", name=self.policy)).get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == "Ready"), {})

    def wait_ready(self, reason):
        def there():
            if self.ready().get("reason") != reason:
                raise AssertionError(self.ready())
            return True
        self.heddle.wait_for(there, f"the policy to be {reason}", 120)

    def said(self):
        return (self.guest.folder / "agent").read_text(errors="replace")[-3000:]

    def wait_state(self, state, seconds=180, words=""):
        def there():
            report = self.report()
            if report.get("state") != state or words not in report.get("reason", ""):
                raise AssertionError(f"{report}\n{self.said()}")
            return report
        return self.heddle.wait_for(there, f"{PORT} to be {state}", seconds)

    def wait_generation(self, generation):
        self.heddle.wait_for(lambda: self.report().get("generation") == generation, f"generation {generation}", 120)
        return self.wait_state("Compliant")

    def wait_event(self, reason, words="", about=NODE):
        """The message of an event of this test."""
        def there():
            for event in self.rest.list(path("events", "default")):
                if event["reason"] == reason and event["involvedObject"]["name"] == about and words in event["message"]:
                    if seconds_of(event) >= self.started - 1:
                        return event["message"]
            return None
        return self.heddle.wait_for(there, f"the event {reason} {words}", 60)

    def carrier_changes(self):
        return int(self.guest.run("cat /sys/class/net/dcb0/carrier_changes"))

    def link_downs(self):
        return int(self.guest.run(f"cat {self.device.folder}/count/link_down_events_phy"))

    def kernel_settings(self):
        """As `dcb` and `ethtool` read them: all that an agent may write."""
        return self.guest.run(
            "for what in ets pfc buffer app dcbx; do dcb -j $what show dev dcb0; done | "
            "sed -E 's/\"(requests|indications)\":\\[[^]]*\\]//g'; "
            "ethtool --get-tunable dcb0 pfc-prevention-tout; ethtool -a dcb0; cat /sys/class/net/dcb0/mtu; "
            "grep . /sys/kernel/debug/mlx5/0000:01:00.0/cc_params/*")

    def journal(self):
        return self.guest.run("grep -rl unsettled /run/heddle || true").split()


def as_the_chart_confines(heddle):
    """The words before a command that leave it the capabilities of the agent's container, where that is not privileged
    and may set ports. /sys is writable in both."""
    values = {"agent": {"access": {"driver": "none", "infiniband": "none", "lldp": "none"}, "lossless": {"enabled": True}}}
    rendered = heddle._helm(  # pylint: disable=protected-access
        "template", "heddle", CHART, "--show-only", "templates/nodeagent.yaml", "--values", "-", stdin=json.dumps(values))
    security = yaml.safe_load(rendered)["spec"]["template"]["spec"]["containers"][0]["securityContext"]
    assert "privileged" not in security and security["capabilities"]["drop"] == ["ALL"], security
    kept = "".join(f",+{name.lower()}" for name in security["capabilities"]["add"])
    return f"setpriv --no-new-privs --inh-caps=-all --bounding-set=-all{kept} env"


def seconds_of(event):
    """When an event was last seen, in seconds since 1970."""
    text = event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"]
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
