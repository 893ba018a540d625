"""The kinds of server that machines.py records: what sits on which bus. Values only: no I/O."""

from dataclasses import dataclass, field

# name: (vendor, device, class)
CHIPS = {
    "A100": (0x10DE, 0x20B2, 0x030200),
    "A100-40": (0x10DE, 0x20B0, 0x030200),
    "H100": (0x10DE, 0x2330, 0x030200),
    "GB200": (0x10DE, 0x2941, 0x030200),
    "A800": (0x10DE, 0x20F3, 0x030200),
    "H800": (0x10DE, 0x2324, 0x030200),
    "H200": (0x10DE, 0x2335, 0x030200),
    "B200": (0x10DE, 0x2901, 0x030200),
    "GB300": (0x10DE, 0x31C2, 0x030200),
    "B300": (0x10DE, 0x3182, 0x030200),
    "MI300X": (0x1002, 0x74A1, 0x120000),
    "MI300X switch": (0x1022, 0x1500, 0x060400),
    "CX7 switch": (0x15B3, 0x1979, 0x060400),
    "CX6-VF": (0x15B3, 0x101C, 0x020700),
    "L40S": (0x10DE, 0x26B9, 0x030200),
    "NVSwitch3": (0x10DE, 0x1AF1, 0x068000),
    "NVSwitch4": (0x10DE, 0x22A3, 0x068000),
    "CX6": (0x15B3, 0x101B, 0x020700),
    "CX7": (0x15B3, 0x1021, 0x020700),
    "CX8": (0x15B3, 0x1023, 0x020700),
    "CX7-eth": (0x15B3, 0x1021, 0x020000),
    "BF3": (0x15B3, 0xA2DC, 0x020000),
    "CX8-eth": (0x15B3, 0x1023, 0x020000),
    "EFA0": (0x1D0F, 0xEFA0, 0x020000),
    "EFA": (0x1D0F, 0xEFA2, 0x020000),
    "EFA3": (0x1D0F, 0xEFA3, 0x020000),
    "ENA": (0x1D0F, 0xEC20, 0x020000),
    "X550": (0x8086, 0x1563, 0x020000),
    "I210": (0x8086, 0x1533, 0x020000),
    "AMD port": (0x1022, 0x1483, 0x060400),
    "Intel port": (0x8086, 0x352A, 0x060400),
    "Grace port": (0x10DE, 0x22B1, 0x060400),
    "PEX switch": (0x1000, 0xC030, 0x060400),
}


@dataclass
class Pci:
    bdf: str
    chip: str
    path: str  # below sys/devices
    numa: int
    generation: int = 5
    width: int = 16
    port_type: int = 0  # PCIe capability: 0 endpoint, 4 root port, 5 upstream, 6 downstream
    buses: tuple = (0, 0, 0)  # of a bridge: primary, secondary, subordinate
    idle: bool = False  # trained down to generation 1, as a GPU does that nobody uses
    files: dict = field(default_factory=dict)  # what its driver shows beside


@dataclass
class Port:
    """A physical port. `key` is how --leaf and `leaves` name it: "3" for rail 3, "3.2" for its second."""

    key: str
    netdev: str = ""
    leaf: str = ""
    leaf_port: str = ""


@dataclass
class NicSpec:
    rdma: str  # "" = an Ethernet NIC without RDMA
    bdf: str
    kind: str  # ib, roce, efa, eth
    gbps: int
    ports: list
    bond: str = ""
    mtu: int = 0
    vpd: str = ""  # "SW_MNG": the management port of the NVLink switches
    data_ports: list = field(default_factory=list)  # of a card with twelve ports: those with a cable


@dataclass
class GpuSpec:
    bdf: str
    memory_mib: int


@dataclass
class Shape:
    product: str
    cpus: tuple  # sockets, NUMA nodes per socket, cores per NUMA node, threads per core
    numa_gib: int
    gpu_name: str = ""
    driver: str = ""
    nvlink: tuple = (0, 0)  # generation, links per GPU
    pcis: list = field(default_factory=list)
    gpus: list = field(default_factory=list)
    nics: list = field(default_factory=list)
    nvswitches: list = field(default_factory=list)
    fabric: str = "not_supported"  # not_supported, completed, rack
    root_chip: str = "Intel port"
    generation: int = 5
    cpu_type: str = ""
    amd: bool = False  # its GPUs are AMD's

    # As the kernel's modalias names the processor: Sapphire Rapids, Milan, Neoverse V2.
    def __post_init__(self):
        self.cpu_type = self.cpu_type or {"AMD port": "x86,ven0002fam0019mod0001",
                                          "Grace port": "aarch64"}.get(self.root_chip, "x86,ven0000fam0006mod008F")

    # A root port of its own for one device; returns the device's address.
    def direct(self, root_bus, bus, chip, numa, functions=1, domain=0, width=16):
        root = f"pci{domain:04x}:{root_bus:02x}"
        port = f"{domain:04x}:{root_bus:02x}:01.0"
        self.pcis.append(Pci(port, self.root_chip, f"{root}/{port}", numa, self.generation, 16, 4,
                             (root_bus, bus, bus)))
        names = [f"{domain:04x}:{bus:02x}:00.{function}" for function in range(functions)]
        for name in names:
            self.pcis.append(Pci(name, chip, f"{root}/{port}/{name}", numa, self.generation, width))
        return names[0]

    # Root port, PCIe switch, and below it `devices` as {bus: chip}; returns the first functions.
    def switch(self, root_bus, devices, numa, domain=0, two_functions=()):
        def bdf(bus, device):
            return f"{domain:04x}:{bus:02x}:{device:02x}.0"

        last = max(devices)
        port, upstream = bdf(root_bus, 1), bdf(root_bus + 1, 0)
        path = f"pci{domain:04x}:{root_bus:02x}/{port}"
        self.pcis.append(Pci(port, self.root_chip, path, numa, self.generation, 16, 4,
                             (root_bus, root_bus + 1, last)))
        path += f"/{upstream}"
        self.pcis.append(Pci(upstream, "PEX switch", path, numa, self.generation, 16, 5,
                             (root_bus + 1, root_bus + 2, last)))
        for slot, (bus, chip) in enumerate(devices.items()):
            down, device = bdf(root_bus + 2, slot), bdf(bus, 0)
            self.pcis.append(Pci(down, "PEX switch", f"{path}/{down}", numa, self.generation, 16, 6,
                                 (root_bus + 2, bus, bus)))
            for name in [device, device[:-1] + "1"] if bus in two_functions else [device]:
                self.pcis.append(Pci(name, chip, f"{path}/{down}/{name}", numa, self.generation))
        return [bdf(bus, 0) for bus in devices]

    def infiniband(self, number, bdf, gbps, key, leaf, leaf_port="1"):
        ports = [Port(key, f"ib{number}", leaf, leaf_port)]
        self.nics.append(NicSpec(f"mlx5_{number}", bdf, "ib", gbps, ports, mtu=4092))

    def ethernet(self, netdev, bdf, gbps, key="mgmt0", leaf="mgmt-0"):
        self.nics.append(NicSpec("", bdf, "eth", gbps, [Port(key, netdev, leaf, "Ethernet1")], mtu=1500))


def dgx_a100(product="DGX A100", chip="A100", links=12):
    # 2 EPYC 7742 as 4 NUMA nodes each; GPU 0 and 1 hang on NUMA node 3, as on the real board.
    m = Shape(product, (2, 4, 16, 2), 256, f"NVIDIA {chip}-SXM4-80GB", "535.183.01", (3, links),
              root_chip="AMD port", generation=4)
    blocks = [(0x00, 3, (0x07, 0x0F, 0x0C, 0x12)), (0x40, 1, (0x47, 0x4E, 0x4B, 0x54)),
              (0x80, 7, (0x87, 0x90, 0x8D, 0x94)), (0xB0, 5, (0xB7, 0xBD, 0xBA, 0xC0))]
    rail_device = [0, 1, 2, 3, 6, 7, 8, 9]  # mlx5_4 and mlx5_5 are the two storage ports
    for block, (root, numa, (gpu_a, gpu_b, nic_a, nic_b)) in enumerate(blocks):
        found = m.switch(root, {gpu_a: chip, nic_a: "CX6", gpu_b: chip, nic_b: "CX6"}, numa)
        m.gpus += [GpuSpec(found[0], 81920), GpuSpec(found[2], 81920)]
        for side in range(2):
            rail = 2 * block + side
            m.infiniband(rail_device[rail], found[1 + 2 * side], 200, str(rail), f"leaf-r{rail}")
    storage = m.direct(0x60, 0x61, "CX6", 2, functions=2)
    m.infiniband(4, storage, 200, "storage0", "storage-0")
    m.infiniband(5, storage[:-1] + "1", 200, "storage1", "storage-0", "2")
    m.nvswitches = m.switch(0xC1, {bus: "NVSwitch3" for bus in range(0xC4, 0xCA)}, 5)
    m.ethernet("enp226s0", m.direct(0xE1, 0xE2, "I210", 4, width=1), 1)
    return m


def hgx_h100(product="HGX H100", chip="H100", name="NVIDIA H100 80GB HBM3", memory_mib=81559, nvlink=(4, 18),
             driver="550.90.07"):
    m = Shape(product, (2, 1, 56, 2), 1024, name, driver, nvlink, fabric="completed")
    blocks = [(0x15, 0x18, 0x1B), (0x3D, 0x40, 0x43), (0x4C, 0x4F, 0x52), (0x5B, 0x5E, 0x61),
              (0x97, 0x9A, 0x9D), (0xBD, 0xC0, 0xC3), (0xCB, 0xCE, 0xD1), (0xD9, 0xDC, 0xDF)]
    for rail, (root, nic, gpu) in enumerate(blocks):
        found = m.switch(root, {nic: "CX7", gpu: chip}, rail // 4)
        m.infiniband(rail, found[0], 400, str(rail), f"leaf-r{rail}")
        m.gpus.append(GpuSpec(found[1], memory_mib))
    if nvlink[0] == 4:
        m.nvswitches = m.switch(0x02, {bus: "NVSwitch4" for bus in range(0x05, 0x09)}, 0)
    m.ethernet("eno1", m.direct(0x29, 0x2A, "X550", 0, width=4), 10)
    return m


def hgx_b200():
    # The NVSwitches are on no bus of the host: two ConnectX-7 that manage them are, and look like NICs.
    m = hgx_h100("HGX B200", "B200", "NVIDIA B200", 183359, (5, 18), "570.124.06")
    for number, bdf in enumerate(m.switch(0x02, {0x05: "CX7", 0x06: "CX7"}, 0)):
        m.infiniband(8 + number, bdf, 400, f"nvlink{number}", "")
        m.nics[-1].vpd = "SW_MNG"
    return m


def gb300_tray():
    # As a GB200's, with a ConnectX-8 for each GPU.
    m = Shape("GB300 NVL72", (2, 1, 72, 1), 480, "NVIDIA GB300", "580.65.06", (5, 18), fabric="rack",
              root_chip="Grace port")
    for gpu, domain in enumerate((0x08, 0x09, 0x18, 0x19)):
        m.gpus.append(GpuSpec(m.direct(0, 1, "GB300", gpu // 2, domain=domain), 284208))
    for rail, domain in enumerate((0x00, 0x02, 0x10, 0x12)):
        m.infiniband(rail, m.direct(0, 3, "CX8", rail // 2, domain=domain), 800, str(rail), f"leaf-r{rail}")
    m.ethernet("enP5p1s0", m.direct(0, 1, "I210", 0, domain=5, width=1), 1)
    return m


def gb200_tray():
    # Each GPU and each NIC has a PCIe domain of its own: they share a Grace and nothing nearer.
    m = Shape("GB200 NVL72", (2, 1, 72, 1), 480, "NVIDIA GB200", "570.124.06", (5, 18), fabric="rack",
              root_chip="Grace port")
    for gpu, domain in enumerate((0x08, 0x09, 0x18, 0x19)):
        m.gpus.append(GpuSpec(m.direct(0, 1, "GB200", gpu // 2, domain=domain), 189471))
    for rail, (number, domain) in enumerate(((0, 0x00), (1, 0x02), (4, 0x10), (5, 0x12))):
        m.infiniband(number, m.direct(0, 3, "CX7", rail // 2, domain=domain), 400, str(rail), f"leaf-r{rail}")
    m.ethernet("enP5p1s0", m.direct(0, 1, "I210", 0, domain=5, width=1), 1)
    return m


def gb200_roce_tray():
    # The same with rails over Ethernet and the two BlueField-3 that such trays have for storage, one on each Grace, of
    # the transport of the rails and half of their rate.
    m = Shape("GB200 NVL72", (2, 1, 72, 1), 480, "NVIDIA GB200", "570.124.06", (5, 18), fabric="rack",
              root_chip="Grace port")
    for gpu, domain in enumerate((0x08, 0x09, 0x18, 0x19)):
        m.gpus.append(GpuSpec(m.direct(0, 1, "GB200", gpu // 2, domain=domain), 189471))

    def roce(number, chip, domain, gbps, key, leaf):
        bdf = m.direct(0, 3, chip, domain // 0x10, domain=domain)
        ports = [Port(key, f"eth{number}", leaf, f"Ethernet{number}")]
        m.nics.append(NicSpec(f"mlx5_{number}", bdf, "roce", gbps, ports, mtu=9000))

    for rail, (number, domain) in enumerate(((0, 0x00), (1, 0x02), (4, 0x10), (5, 0x12))):
        roce(number, "CX7-eth", domain, 400, str(rail), f"leaf-r{rail}")
    for storage, (number, domain) in enumerate(((2, 0x06), (6, 0x16))):
        roce(number, "BF3", domain, 200, f"storage{storage}", "storage-0")
    m.ethernet("enP5p1s0", m.direct(0, 1, "I210", 0, domain=5, width=1), 1)
    return m


def p5_48xlarge():
    m = Shape("p5.48xlarge", (2, 1, 48, 2), 1024, "NVIDIA H100 80GB HBM3", "550.90.07", (4, 18),
              fabric="completed", root_chip="AMD port")
    for gpu in range(8):
        first = 0x4F + 0x11 * gpu  # EFA on four buses, the GPU on the fifth
        chips = {bus: "EFA" for bus in range(first, first + 4)} | {first + 4: "H100"}
        found = m.switch(first - 3, chips, gpu // 4)
        m.gpus.append(GpuSpec(found[4], 81559))
        for number, bdf in enumerate(found[:4]):
            key = str(gpu) if number == 0 else f"{gpu}.{number + 1}"
            m.nics.append(NicSpec(f"rdmap{first + number}s0", bdf, "efa", 100, [Port(key)]))
    m.nvswitches = m.switch(0xD8, {bus: "NVSwitch4" for bus in range(0xDB, 0xDF)}, 1)
    m.ethernet("ens32", m.direct(0x1E, 0x1F, "ENA", 0, width=4), 100, leaf="")  # nobody answers LLDP there
    return m


def p5en_48xlarge():
    # Two EFA devices of 200 Gb/s for each GPU, 16 in all, after what health checks for it count. Which buses they are
    # on is made up, and so is their id: the newest that the efa driver knows.
    m = Shape("p5en.48xlarge", (2, 1, 48, 2), 1024, "NVIDIA H200", "550.127.05", (4, 18), fabric="completed")
    for gpu in range(8):
        first = 0x4F + 0x11 * gpu  # EFA on two buses, the GPU on the third
        found = m.switch(first - 3, {first: "EFA3", first + 1: "EFA3", first + 2: "H200"}, gpu // 4)
        m.gpus.append(GpuSpec(found[2], 143771))
        for number, bdf in enumerate(found[:2]):
            key = str(gpu) if number == 0 else f"{gpu}.{number + 1}"
            m.nics.append(NicSpec(f"rdmap{first + number}s0", bdf, "efa", 200, [Port(key)]))
    m.nvswitches = m.switch(0xD8, {bus: "NVSwitch4" for bus in range(0xDB, 0xDF)}, 1)
    m.ethernet("ens32", m.direct(0x1E, 0x1F, "ENA", 0, width=4), 100, leaf="")
    return m


def p4d_24xlarge():
    # After ../shared/data/resourceslice, which is of a real one: no port stands above any device, and two GPUs, an EFA
    # and mostly an ENA share each of four host bridges. The NVSwitches are not in it; their place here is made.
    m = Shape("p4d.24xlarge", (2, 1, 24, 2), 576, "NVIDIA A100-SXM4-40GB", "580.126.9", (3, 12), generation=4)

    def guest(bus, device, chip, numa):
        name = f"0000:{bus:02x}:{device:02x}.0"
        m.pcis.append(Pci(name, chip, f"pci0000:{bus:02x}/{name}", numa, m.generation))
        return name

    for rail, bus in enumerate((0x10, 0x20, 0x90, 0xA0)):
        numa = rail // 2
        m.gpus += [GpuSpec(guest(bus, device, "A100-40", numa), 40960) for device in (0x1C, 0x1D)]
        m.nics.append(NicSpec(f"rdmap{bus}s27", guest(bus, 0x1B, "EFA0", numa), "efa", 100, [Port(str(rail))]))
        if bus != 0x10:
            m.ethernet({0x20: "ens65", 0x90: "ens129", 0xA0: "ens161"}[bus], guest(bus, 0x01, "ENA", numa), 100,
                       f"mgmt{rail}", leaf="")
    m.nvswitches = [guest(0x80, device, "NVSwitch3", 0) for device in range(0x1A, 0x20)]
    return m


def p6_b200():
    # One EFA of 400 Gb/s for each GPU. The ConnectX-7 that manage the NVLink switches look like NICs, as ibp*.
    m = Shape("p6-b200.48xlarge", (2, 1, 48, 2), 1024, "NVIDIA B200", "570.124.06", (5, 18), fabric="completed")
    for gpu in range(8):
        first = 0x4F + 0x11 * gpu
        found = m.switch(first - 3, {first: "EFA3", first + 1: "B200"}, gpu // 4)
        m.gpus.append(GpuSpec(found[1], 183359))
        m.nics.append(NicSpec(f"rdmap{first}s0", found[0], "efa", 400, [Port(str(gpu))]))
    for number, bdf in enumerate(m.switch(0x02, {0x05: "CX7", 0x06: "CX7"}, 0)):
        name = f"ibp{5 + number}s0"
        m.nics.append(NicSpec(name, bdf, "ib", 400, [Port(f"nvlink{number}", name)], mtu=4092, vpd="SW_MNG"))
    m.ethernet("ens32", m.direct(0x1E, 0x1F, "ENA", 0, width=4), 100, leaf="")
    return m


def roce_dual_tor(chip="CX7-eth"):
    # Four GPUs share a NIC; its two ports are a bond over two ToRs. No NVLink.
    m = Shape("8x L40S, dual ToR", (2, 1, 32, 2), 512, "NVIDIA L40S", "550.90.07")
    for rail, root in enumerate((0x10, 0x90)):
        chips = {root + 3 + gpu: "L40S" for gpu in range(4)} | {root + 7: chip}
        found = m.switch(root, chips, rail, two_functions=(root + 7,))
        m.gpus += [GpuSpec(bdf, 46068) for bdf in found[:4]]
        for pci in m.pcis:
            pci.idle = pci.chip == "L40S"
        ports = [Port(str(rail), f"ens{rail + 1}f0np0", "tor-a", f"Ethernet{4 * rail}"),
                 Port(f"{rail}.2", f"ens{rail + 1}f1np1", "tor-b", f"Ethernet{4 * rail}")]
        m.nics.append(NicSpec(f"mlx5_bond_{rail}", found[4], "roce", 200, ports, f"bond{rail}", 9000))
    m.ethernet("eno1", m.direct(0x29, 0x2A, "X550", 0, width=4), 10)
    return m


def hgx_b300():
    # ConnectX-8 in a fabric of four planes: ports 3, 6, 9 and 12 of each have a cable, each into another plane.
    m = Shape("HGX B300", (2, 1, 56, 2), 1024, "NVIDIA B300", "580.65.06", (5, 18), fabric="completed")
    blocks = [(0x15, 0x18, 0x1B), (0x3D, 0x40, 0x43), (0x4C, 0x4F, 0x52), (0x5B, 0x5E, 0x61),
              (0x97, 0x9A, 0x9D), (0xBD, 0xC0, 0xC3), (0xCB, 0xCE, 0xD1), (0xD9, 0xDC, 0xDF)]
    for rail, (root, nic, gpu) in enumerate(blocks):
        found = m.switch(root, {nic: "CX8", gpu: "B300"}, rail // 4)
        keys = [f"{rail}" if plane == 0 else f"{rail}.{plane + 1}" for plane in range(4)]
        ports = [Port(key, f"ibp{root}p{plane}", f"leaf-r{rail}-p{plane}", "1") for plane, key in enumerate(keys)]
        m.nics.append(NicSpec(f"mlx5_{rail}", found[0], "ib", 200, ports, mtu=4092, data_ports=[3, 6, 9, 12]))
        m.gpus.append(GpuSpec(found[1], 275040))
    m.ethernet("eno1", m.direct(0x29, 0x2A, "X550", 0, width=4), 10)
    return m


def nd_a100_v4_vm(numa=True):
    # A guest of Azure's: each device has a host bridge of its own below VMBus, with no port above it. The real
    # pairs stand in ../shared/data/nccl-xml/ndv4-topo.xml: GPU 0 and 1 share a switch with NIC 0 and 1, on NUMA 1.
    m = Shape("ND96amsr A100 v4", (2, 2, 24, 1), 450, "NVIDIA A100-SXM4-80GB", "535.183.01", (3, 12),
              root_chip="AMD port", generation=4)
    nodes = [1, 1, 0, 0, 3, 3, 2, 2]
    gpus = (0x0001, 0x0002, 0x0003, 0x0004, 0x000B, 0x000C, 0x000D, 0x000E)

    def guest(domain, chip, node):
        vmbus = f"LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/47505500-{domain:04x}-0000-3130-444531303244"
        name = f"{domain:04x}:00:00.0"
        m.pcis.append(Pci(name, chip, f"{vmbus}/pci{domain:04x}:00/{name}", node if numa else -1, 4))
        return name

    for index, (domain, node) in enumerate(zip(gpus, nodes)):
        m.gpus.append(GpuSpec(guest(domain, "A100", node), 81920))
        m.infiniband(index, guest(0x0101 + index, "CX6-VF", node), 200, str(index), f"leaf-r{index}")
    return m


def mi300x():
    # After ../shared/data/nccl-xml/mi300-topo_8p_940.xml: a switch of the NIC's maker with the NIC and, behind a
    # second switch and the GPU's own, the GPU. Every GPU has an xGMI link to every other.
    m = Shape("8x MI300X", (2, 1, 48, 2), 1152, "AMD Instinct MI300X OAM", amd=True)
    for rail, bus in enumerate((0x05, 0x0E, 0x17, 0x62, 0x98, 0xA8, 0xB8, 0xD8)):
        numa, root = rail // 4, bus - 1
        path = f"pci0000:{root:02x}"

        def bridge(at, chip, port_type, last, device=0):
            nonlocal path
            path += f"/0000:{at:02x}:{device:02x}.0"
            m.pcis.append(Pci(path.rsplit("/", 1)[1], chip, path, numa, 5, 16, port_type, (at, at + 1, last)))
            return path

        last = bus + 7
        bridge(root, m.root_chip, 4, last, 1)
        top = bridge(bus, "CX7 switch", 5, last)
        nic = bridge(bus + 1, "CX7 switch", 6, bus + 2) + f"/0000:{bus + 2:02x}:00.0"
        m.pcis.append(Pci(f"0000:{bus + 2:02x}:00.0", "CX7", nic, numa))
        path = top
        bridge(bus + 1, "CX7 switch", 6, last, 1)
        bridge(bus + 3, "CX7 switch", 5, last)
        bridge(bus + 4, "CX7 switch", 6, last)
        bridge(bus + 5, "MI300X switch", 5, last)
        bridge(bus + 6, "MI300X switch", 6, last)
        gpu = f"0000:{last:02x}:00.0"
        m.pcis.append(Pci(gpu, "MI300X", f"{path}/{gpu}", numa, files={
            "product_name": m.gpu_name, "mem_info_vram_total": 196592 << 20, "ras/umc_err_count": "ue: 0\nce: 3"}))
        m.gpus.append(GpuSpec(gpu, 196592))
        m.infiniband(rail, f"0000:{bus + 2:02x}:00.0", 400, str(rail), f"leaf-r{rail}")
    m.ethernet("eno1", m.direct(0x29, 0x2A, "X550", 0, width=4), 10)
    return m


def plain_host():
    m = Shape("PowerEdge R650", (1, 1, 16, 2), 128)
    m.ethernet("eno1", m.direct(0x29, 0x2A, "X550", 0, width=4), 10)
    return m


SHAPES = {
    "dgx-a100": dgx_a100,
    "dgx-a800": lambda: dgx_a100("DGX A800", "A800", 8),
    "hgx-h100": hgx_h100,
    "hgx-h800": lambda: hgx_h100("HGX H800", "H800", "NVIDIA H800", 81559, (4, 8)),
    "hgx-h200": lambda: hgx_h100("HGX H200", "H200", "NVIDIA H200", 143771),
    "hgx-b200": hgx_b200,
    "gb300-nvl72-tray": gb300_tray,
    "gb200-tray": gb200_tray,
    "gb200-nvl72-tray": gb200_tray,
    "gb200-roce-tray": gb200_roce_tray,
    "p4d-24xlarge": p4d_24xlarge,
    "p5-48xlarge": p5_48xlarge,
    "p5en-48xlarge": p5en_48xlarge,
    "p6-b200-48xlarge": p6_b200,
    "roce-dual-tor": roce_dual_tor,
    "roce-dual-tor-cx8": lambda: roce_dual_tor("CX8-eth"),
    "hgx-b300": hgx_b300,
    "nd-a100-v4-vm": nd_a100_v4_vm,
    "nd-a100-v4-vm-blind": lambda: nd_a100_v4_vm(numa=False),
    "mi300x": mi300x,
    "plain-host": plain_host,
}
