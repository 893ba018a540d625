"""PCIe trees of a real kernel: expander bridges, root ports and switches of QEMU, two NUMA nodes."""

from guest import Follow, Guest, GuestCase
from lab import need, wait_for
from pci_device import NVIDIA_GPU, PciDevice, give_driver

# Host bridge A on node 0: a switch with GPU 0, a NIC and a second switch with a NIC; a NIC on a port of its own.
# Host bridge B on node 0: a NIC. Host bridge C on node 1: a switch with GPU 1 and a NIC.
TREE = """
pxb-pcie,id=a,bus=pcie.0,bus_nr=0x20,numa_node=0
pxb-pcie,id=b,bus=pcie.0,bus_nr=0x60,numa_node=0
pxb-pcie,id=c,bus=pcie.0,bus_nr=0xa0,numa_node=1
ioh3420,id=a0,bus=a,chassis=1
x3130-upstream,id=sa,bus=a0
xio3130-downstream,id=sa0,bus=sa,chassis=2
xio3130-downstream,id=sa1,bus=sa,chassis=3
xio3130-downstream,id=sa2,bus=sa,chassis=4
x3130-upstream,id=ta,bus=sa2
xio3130-downstream,id=ta0,bus=ta,chassis=5
pcie-root-port,id=a1,bus=a,chassis=6
pcie-root-port,id=b0,bus=b,chassis=7
pcie-root-port,id=z0,bus=pcie.0,chassis=20
pcie-root-port,id=c0,bus=c,chassis=8
x3130-upstream,id=sc,bus=c0
xio3130-downstream,id=sc0,bus=sc,chassis=9
xio3130-downstream,id=sc1,bus=sc,chassis=10
"""
# Each NIC is named after its distance from GPU 0. "none" hangs on the one host bridge that is of no NUMA node.
SLOTS = {"pix": "sa1", "pxb": "ta0", "phb": "a1", "node": "b0", "sys": "sc1", "none": "z0"}
PLACES = ("0000:23:00.0", "0000:a3:00.0")  # of the GPUs: buses are numbered depth first from bus_nr


def address(name):
    return f"52:54:00:00:01:0{list(SLOTS).index(name)}"


class Pcie(GuestCase):
    @classmethod
    def boot(cls):
        need("rdma")
        gpus = [PciDevice(**NVIDIA_GPU) for _ in range(2)]
        cls.addClassCleanup(lambda: [gpu.close() for gpu in gpus])
        devices = [*TREE.split(), gpus[0].argument("sa0", "gpu0"), gpus[1].argument("sc0", "gpu1")]
        cls.guests.append(Guest("pcie", [word for device in devices for word in ("-device", device)], nodes=2,
                                passed=[gpu.end.fileno() for gpu in gpus]))
        for gpu in gpus:
            gpu.end.close()

    @classmethod
    def prepare(cls):
        guest = cls.guests[0]
        guest.load("virtio_net", "crc32_generic", "rdma_rxe")
        give_driver(guest, PLACES)
        for name in SLOTS:
            cls.plug(name)
        for name in SLOTS:
            cls.found(name)

    @classmethod
    def plug(cls, name):
        cls.guests[0].qmp("device_add", driver="virtio-net-pci", id=name, bus=SLOTS[name], mac=address(name),
                          speed=100000, duplex="full")

    @classmethod
    def found(cls, name):
        """Waits for the guest's interface, and makes an RDMA NIC of it."""
        find = f"grep -l {address(name)} /sys/class/net/*/address | cut -d / -f 5"
        netdev = wait_for(f"the interface {name}", lambda: cls.guests[0].attempt(find)[1].strip(), 60)
        cls.guests[0].run(f"ip link set {netdev} name {name}-eth && ip link set {name}-eth up && "
                          f"rdma link add {name} type rxe netdev {name}-eth")

    def paths(self, status, gpu):
        """The NICs nearest to a GPU, and how near."""
        return {path["nic"]: path["distance"] for path in status["paths"] if path["gpu"] == gpu}

    def roles(self, status):
        return {nic["name"]: (nic["role"], nic.get("rail")) for nic in status["nics"]}

    def test_finds_switches_host_bridges_and_numa_nodes(self):
        status = self.guests[0].status()
        self.assertEqual(status["numaNodes"], 2)
        self.assertEqual([(gpu["index"], gpu["pci"], gpu["numa"], gpu["health"]) for gpu in status["gpus"]],
                         [(0, PLACES[0], 0, "Healthy"), (1, PLACES[1], 1, "Healthy")])
        self.assertEqual({nic["name"]: nic.get("numa") for nic in status["nics"]},
                         {"pix": 0, "pxb": 0, "phb": 0, "node": 0, "sys": 1, "none": None})
        for nic in status["nics"]:
            # The bus tells the same of the interface to whoever asks.
            link = self.guests[0].run(f"readlink -f /sys/class/net/{nic['netdev']}/device/..")
            self.assertEqual(nic["pci"], link.strip().rpartition("/")[2])
        # The ports of these switches say 2.5 GT/s and one lane whatever is plugged in: that speaks against no link.
        self.assertNotIn(("PcieLinksFull", "False"), [(c["type"], c["status"]) for c in status["conditions"]])
        self.assertEqual(self.paths(status, 0), {"pix": "PIX"})
        self.assertEqual(self.paths(status, 1), {"sys": "PIX"})
        # Behind a switch with a GPU is compute, its rail the number of the GPU; the rest serves storage.
        self.assertEqual(self.roles(status), {"pix": ("compute", 0), "pxb": ("compute", None), "sys": ("compute", 1),
                                              "phb": ("storage", None), "node": ("storage", None),
                                              "none": ("storage", None)})

    def test_an_agent_that_follows_tells_of_plugs_and_holds_none_back(self):
        # It listens to the devices. None may be kept open for that, or the guest could not let go of it.
        guest = self.guests[0]
        follow = Follow(guest)
        self.addCleanup(follow.stop)
        guest.unplug("pix")
        follow.until("kernel", "0000:24:00.0: PCI device went")
        follow.until("topology", "pix: is gone")
        follow.until("topology", "GPU 0 to pxb: ", "-> PXB")
        self.plug("pix")
        self.found("pix")
        follow.until("kernel", "0000:24:00.0: PCI device came")
        follow.until("topology", "GPU 0 to pix: ", "-> PIX")

    def test_follows_what_is_unplugged_and_plugged(self):
        guest = self.guests[0]
        whole = guest.status()
        guest.unplug("pix")
        status = guest.status()
        self.assertEqual(self.paths(status, 0), {"pxb": "PXB"})
        self.assertEqual(self.roles(status)["pxb"], ("compute", 0))
        # No NIC is left behind a switch: those of the host bridge and of the NUMA node take their place.
        guest.unplug("pxb", "sys")
        status = guest.status()
        self.assertEqual(self.paths(status, 0), {"phb": "PHB"})
        self.assertEqual(self.paths(status, 1), {"phb": "SYS", "node": "SYS"})
        guest.unplug("phb")
        status = guest.status()
        self.assertEqual(self.paths(status, 0), {"node": "NODE"})
        self.assertEqual(self.roles(status), {"node": ("compute", 0), "none": ("storage", None)})
        for name in ("pix", "pxb", "sys", "phb"):
            self.plug(name)
        for name in ("pix", "pxb", "sys", "phb"):
            self.found(name)
        again = guest.status()
        for part in ("gpus", "nics", "paths", "hash"):
            self.assertEqual(again[part], whole[part])

    def test_two_interfaces_of_a_bond_are_one_nic_with_two_ports(self):
        guest = self.guests[0]
        whole = guest.status()
        guest.load("bonding")
        guest.run("""
            rdma link delete phb && rdma link delete node
            ip link add bond0 type bond mode 802.3ad miimon 100
            for slave in phb-eth node-eth; do ip link set $slave down && ip link set $slave master bond0; done
            ip link set bond0 up && rdma link add bond type rxe netdev bond0""")
        bond = next(nic for nic in guest.status()["nics"] if nic["name"] == "bond")
        guest.run("""
            rdma link delete bond && ip link delete bond0
            for nic in phb node; do ip link set $nic-eth up && rdma link add $nic type rxe netdev $nic-eth; done""")
        self.assertEqual((bond["netdev"], bond["transport"], bond["pci"]), ("bond0", "RoCE", "0000:28:00.0"))
        self.assertEqual([(port["number"], port["state"], port["rateGbps"]) for port in bond["ports"]],
                         [(1, "Active", 100), (2, "Active", 100)])
        self.assertEqual(guest.status()["hash"], whole["hash"])

    def test_a_gpu_that_falls_off_the_bus_is_named_until_it_is_back(self):
        guest = self.guests[0]
        whole = guest.status()
        guest.unplug("gpu0")
        # The driver still lists it.
        self.assertEqual([(gpu["pci"], gpu["health"], gpu.get("reason")) for gpu in guest.status()["gpus"]],
                         [(PLACES[0], "Unhealthy", "the PCI bus does not show it: power-cycle the node"),
                          (PLACES[1], "Healthy", None)])
        gpu = PciDevice(**NVIDIA_GPU)
        self.addClassCleanup(gpu.close)
        gpu.plug(guest, "sa0", "gpu0")
        again = wait_for("the GPU", lambda: next(
            (s for s in [guest.status()] if s["gpus"][0]["health"] == "Healthy"), None), 60)
        self.assertEqual((again["gpus"], again["hash"]), (whole["gpus"], whole["hash"]))

    def test_a_recording_replays_outside_byte_for_byte(self):
        self.replays(self.guests[0])
