#!/usr/bin/env python3
"""Writes recorded machines: folders that `heddle-nodeagent --machine DIR` replays as if it stood on the host.

    machines.py SHAPE DIR [--hostname H] [--leaf RAIL=LEAF/PORT ...]

A folder holds machine.yaml (product, hostname), sys/ (sysfs as Linux has it), nvml.yaml (what NVML answered),
lldp.json (lldpd's json0) and ib.txt (directed-route answers). Identities (GPU UUIDs, NIC GUIDs, MACs) follow from
the hostname, so the same call writes the same bytes and no two hosts share one.

write(cluster, dir) writes many machines that share their PCI tree by symbolic links. A cluster is
    {"nodes": [{"name": "node-00", "shape": "hgx-h100", ...options}, ...]}
with the options of `Host` below. It returns {node name: folder}.
"""

import argparse
import hashlib
import json
import os
import struct
import sys
from dataclasses import dataclass, field

NO_CLUSTER = "00000000-0000-0000-0000-000000000000"  # what NVML says on an HGX board: a fabric, but of one host
SOME_RACK = "5eed5eed-0072-4000-8000-000000000000"  # of a tray that nobody gave a rack

# name: (vendor, device, class)
CHIPS = {
    "A100": (0x10DE, 0x20B2, 0x030200),
    "H100": (0x10DE, 0x2330, 0x030200),
    "GB200": (0x10DE, 0x2941, 0x030200),
    "L40S": (0x10DE, 0x26B9, 0x030200),
    "NVSwitch3": (0x10DE, 0x1AF1, 0x068000),
    "NVSwitch4": (0x10DE, 0x22A3, 0x068000),
    "CX6": (0x15B3, 0x101B, 0x020700),
    "CX7": (0x15B3, 0x1021, 0x020700),
    "CX7-eth": (0x15B3, 0x1021, 0x020000),
    "EFA": (0x1D0F, 0xEFA2, 0x020000),
    "ENA": (0x1D0F, 0xEC20, 0x020000),
    "X550": (0x8086, 0x1563, 0x020000),
    "I210": (0x8086, 0x1533, 0x020000),
    "AMD port": (0x1022, 0x1483, 0x060400),
    "Intel port": (0x8086, 0x352A, 0x060400),
    "Grace port": (0x10DE, 0x22B1, 0x060400),
    "PEX switch": (0x1000, 0xC030, 0x060400),
}
GT = {3: "8.0 GT/s PCIe", 4: "16.0 GT/s PCIe", 5: "32.0 GT/s PCIe"}
RATE = {  # Gb/s: the InfiniBand name of the speed, and the same with half of the lanes
    100: ("100 Gb/sec (4X EDR)", "50 Gb/sec (2X EDR)"),
    200: ("200 Gb/sec (4X HDR)", "100 Gb/sec (2X HDR)"),
    400: ("400 Gb/sec (4X NDR)", "200 Gb/sec (2X NDR)"),
    800: ("800 Gb/sec (4X XDR)", "400 Gb/sec (2X XDR)"),
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


@dataclass
class Port:
    """A physical port. `key` is how --leaf and `leaves` name it: "3" for rail 3, "0.2" for rail 0's second port."""

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

    # A root port of its own for one device; returns the device's address.
    def direct(self, root_bus, bus, chip, numa, functions=1, domain=0, width=16):
        root = f"pci{domain:04x}:{root_bus:02x}"
        port = f"{domain:04x}:{root_bus:02x}:01.0"
        self.pcis.append(Pci(port, self.root_chip, f"{root}/{port}", numa, self.generation, 16, 4, (root_bus, bus, bus)))
        names = [f"{domain:04x}:{bus:02x}:00.{function}" for function in range(functions)]
        for name in names:
            self.pcis.append(Pci(name, chip, f"{root}/{port}/{name}", numa, self.generation, width))
        return names[0]

    # Root port, PCIe switch, and below it `devices` as {bus: chip}; returns the addresses of their first functions.
    def switch(self, root_bus, devices, numa, domain=0, two_functions=()):
        def bdf(bus, device):
            return f"{domain:04x}:{bus:02x}:{device:02x}.0"

        last = max(devices)
        port, upstream = bdf(root_bus, 1), bdf(root_bus + 1, 0)
        path = f"pci{domain:04x}:{root_bus:02x}/{port}"
        self.pcis.append(Pci(port, self.root_chip, path, numa, self.generation, 16, 4, (root_bus, root_bus + 1, last)))
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

    def infiniband(self, number, bdf, gbps, key, leaf):
        self.nics.append(NicSpec(f"mlx5_{number}", bdf, "ib", gbps, [Port(key, f"ib{number}", leaf, "1")], mtu=4092))

    def ethernet(self, netdev, bdf, gbps, key="mgmt0", leaf="mgmt-0"):
        self.nics.append(NicSpec("", bdf, "eth", gbps, [Port(key, netdev, leaf, "Ethernet1")], mtu=1500))


def dgx_a100():
    # 2 EPYC 7742 as 4 NUMA nodes each; GPU 0 and 1 hang on NUMA node 3, as on the real board.
    m = Shape("DGX A100", (2, 4, 16, 2), 256, "NVIDIA A100-SXM4-80GB", "535.183.01", (3, 12),
              root_chip="AMD port", generation=4)
    blocks = [(0x00, 3, (0x07, 0x0F, 0x0C, 0x12)), (0x40, 1, (0x47, 0x4E, 0x4B, 0x54)),
              (0x80, 7, (0x87, 0x90, 0x8D, 0x94)), (0xB0, 5, (0xB7, 0xBD, 0xBA, 0xC0))]
    rail_device = [0, 1, 2, 3, 6, 7, 8, 9]  # mlx5_4 and mlx5_5 are the two storage ports
    for block, (root, numa, (gpu_a, gpu_b, nic_a, nic_b)) in enumerate(blocks):
        found = m.switch(root, {gpu_a: "A100", nic_a: "CX6", gpu_b: "A100", nic_b: "CX6"}, numa)
        m.gpus += [GpuSpec(found[0], 81920), GpuSpec(found[2], 81920)]
        for side in range(2):
            rail = 2 * block + side
            m.infiniband(rail_device[rail], found[1 + 2 * side], 200, str(rail), f"leaf-r{rail}")
    storage = m.direct(0x60, 0x61, "CX6", 2, functions=2)
    m.infiniband(4, storage, 200, "storage0", "storage-0")
    m.infiniband(5, storage[:-1] + "1", 200, "storage1", "storage-0")
    m.nvswitches = m.switch(0xC1, {bus: "NVSwitch3" for bus in range(0xC4, 0xCA)}, 5)
    m.ethernet("enp226s0", m.direct(0xE1, 0xE2, "I210", 4, width=1), 1)
    return m


def hgx_h100():
    m = Shape("HGX H100", (2, 1, 56, 2), 1024, "NVIDIA H100 80GB HBM3", "550.90.07", (4, 18), fabric="completed")
    blocks = [(0x15, 0x18, 0x1B), (0x3D, 0x40, 0x43), (0x4C, 0x4F, 0x52), (0x5B, 0x5E, 0x61),
              (0x97, 0x9A, 0x9D), (0xBD, 0xC0, 0xC3), (0xCB, 0xCE, 0xD1), (0xD9, 0xDC, 0xDF)]
    for rail, (root, nic, gpu) in enumerate(blocks):
        found = m.switch(root, {nic: "CX7", gpu: "H100"}, rail // 4)
        m.infiniband(rail, found[0], 400, str(rail), f"leaf-r{rail}")
        m.gpus.append(GpuSpec(found[1], 81559))
    m.nvswitches = m.switch(0x02, {bus: "NVSwitch4" for bus in range(0x05, 0x09)}, 0)
    m.ethernet("eno1", m.direct(0x29, 0x2A, "X550", 0, width=4), 10)
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


def p5_48xlarge():
    m = Shape("p5.48xlarge", (2, 1, 48, 2), 1024, "NVIDIA H100 80GB HBM3", "550.90.07", (4, 18), fabric="completed",
              root_chip="AMD port")
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


def roce_dual_tor():
    # Four GPUs share a NIC; its two ports are a bond over two ToRs. No NVLink.
    m = Shape("8x L40S, dual ToR", (2, 1, 32, 2), 512, "NVIDIA L40S", "550.90.07")
    for rail, root in enumerate((0x10, 0x90)):
        chips = {root + 3 + gpu: "L40S" for gpu in range(4)} | {root + 7: "CX7-eth"}
        found = m.switch(root, chips, rail, two_functions=(root + 7,))
        m.gpus += [GpuSpec(bdf, 46068) for bdf in found[:4]]
        ports = [Port(str(rail), f"ens{rail + 1}f0np0", "tor-a", f"Ethernet{4 * rail}"),
                 Port(f"{rail}.2", f"ens{rail + 1}f1np1", "tor-b", f"Ethernet{4 * rail}")]
        m.nics.append(NicSpec(f"mlx5_bond_{rail}", found[4], "roce", 200, ports, f"bond{rail}", 9000))
    m.ethernet("eno1", m.direct(0x29, 0x2A, "X550", 0, width=4), 10)
    return m


def plain_host():
    m = Shape("PowerEdge R650", (1, 1, 16, 2), 128)
    m.ethernet("eno1", m.direct(0x29, 0x2A, "X550", 0, width=4), 10)
    return m


SHAPES = {"dgx-a100": dgx_a100, "hgx-h100": hgx_h100, "gb200-tray": gb200_tray, "gb200-nvl72-tray": gb200_tray,
          "p5-48xlarge": p5_48xlarge, "roce-dual-tor": roce_dual_tor, "plain-host": plain_host}


@dataclass
class Host:
    """One machine of a cluster: a shape and what differs from host to host."""

    name: str
    shape: str
    site: str = ""
    leaves: dict = field(default_factory=dict)  # port key ("3", "0.2", "storage0") -> "LEAF/PORT"
    cluster_uuid: str = ""  # NVL72: equal on all trays of a rack
    clique: int = 0
    down: list = field(default_factory=list)  # port keys without link
    half: list = field(default_factory=list)  # port keys that trained to half of the lanes
    bad_gpus: list = field(default_factory=list)  # GPUs with an uncorrectable ECC error
    bad_nvlinks: dict = field(default_factory=dict)  # GPU index -> number of NVLinks that are down
    no_lldp: bool = False

    def digest(self, *what):
        return hashlib.sha256(":".join([self.name, *map(str, what)]).encode()).hexdigest()

    def uuid(self, *what):
        d = self.digest(*what)
        return f"{d[:8]}-{d[8:12]}-{d[12:16]}-{d[16:20]}-{d[20:32]}"

    # As sysfs prints one: 506b:4b03:00c3:b4a2.
    def guid(self, *what):
        d = "506b4b" + self.digest(*what)[:10]
        return ":".join(d[i:i + 4] for i in range(0, 16, 4))

    def mac(self, *what):
        d = "02" + self.digest(*what)[:10]
        return ":".join(d[i:i + 2] for i in range(0, 12, 2))


def leaf_guid(leaf):
    return "0xfc6a1c" + hashlib.sha256(leaf.encode()).hexdigest()[:10]


class Folder:
    """Writes small files quickly: each directory is made once."""

    def __init__(self, root):
        self.root = root
        self.made = set()

    def parent(self, path):
        full = os.path.join(self.root, path)
        folder = os.path.dirname(full)
        if folder not in self.made:
            os.makedirs(folder, exist_ok=True)
            self.made.add(folder)
        return full

    def put(self, path, content):
        data = content if isinstance(content, bytes) else f"{content}\n".encode()
        descriptor = os.open(self.parent(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.write(descriptor, data)
        os.close(descriptor)

    def link(self, path, target):
        full = self.parent(path)
        if os.path.lexists(full):
            os.unlink(full)
        os.symlink(target, full)

    def folder(self, path):
        os.makedirs(os.path.join(self.root, path), exist_ok=True)


# ---- what every machine of a shape has in common: CPUs, NUMA nodes and the PCI tree


def cpu_list(cpus):
    """Kernel list format: 0-3,8."""
    cpus, parts, start = sorted(cpus), [], None
    for position, cpu in enumerate(cpus):
        start = cpu if start is None else start
        if position + 1 == len(cpus) or cpus[position + 1] != cpu + 1:
            parts.append(str(start) if start == cpu else f"{start}-{cpu}")
            start = None
    return ",".join(parts)


def cpu_mask(cpus, total):
    """Kernel mask format: 32-bit words in hex, the highest first."""
    bits = sum(1 << cpu for cpu in cpus)
    words = (total + 31) // 32
    return ",".join(f"{bits >> (32 * word) & 0xFFFFFFFF:08x}" for word in reversed(range(words)))


def numa_cpus(shape):
    sockets, per_socket, cores, threads = shape.cpus
    total_cores = sockets * per_socket * cores
    return [[thread * total_cores + numa * cores + core for thread in range(threads) for core in range(cores)]
            for numa in range(sockets * per_socket)]


def write_system(out, shape):
    sockets, per_socket, cores, threads = shape.cpus
    total_cores = sockets * per_socket * cores
    total = total_cores * threads
    by_numa = numa_cpus(shape)
    base = "sys/devices/system/cpu"
    for name in ("online", "possible", "present"):
        out.put(f"{base}/{name}", cpu_list(range(total)))
    for numa, cpus in enumerate(by_numa):
        socket = numa // per_socket
        package = sorted(sum(by_numa[socket * per_socket:(socket + 1) * per_socket], []))
        groups = {"package_cpus": package, "core_siblings": package}
        for core in range(numa * cores, (numa + 1) * cores):
            siblings = [thread * total_cores + core for thread in range(threads)]
            groups |= {"core_cpus": siblings, "thread_siblings": siblings}
            files = {"physical_package_id": socket, "core_id": core % (per_socket * cores)}
            for name, members in groups.items():
                files[name] = cpu_mask(members, total)
                files[f"{name}_list"] = cpu_list(members)
            for cpu in siblings:
                for name, value in files.items():
                    out.put(f"{base}/cpu{cpu}/topology/{name}", value)
        node = f"sys/devices/system/node/node{numa}"
        out.put(f"{node}/cpulist", cpu_list(cpus))
        out.put(f"{node}/cpumap", cpu_mask(cpus, total))
        distances = (10 if n == numa else 12 if n // per_socket == socket else 32 for n in range(len(by_numa)))
        out.put(f"{node}/distance", " ".join(map(str, distances)))
        out.put(f"{node}/meminfo", f"Node {numa} MemTotal:       {shape.numa_gib << 20} kB\n"
                                   f"Node {numa} MemFree:        {shape.numa_gib << 19} kB")
    out.put("sys/devices/system/node/online", cpu_list(range(len(by_numa))))


def config_space(pci):
    """256 bytes, enough for hwloc and lspci: identity, header type, buses and a PCIe capability at 0x40."""
    vendor, device, cls = CHIPS[pci.chip]
    config = bytearray(256)
    struct.pack_into("<HHHHBBBB", config, 0, vendor, device, 0x0006, 0x0010, 0, cls & 0xFF, cls >> 8 & 0xFF, cls >> 16)
    config[0x34] = 0x40
    if pci.port_type:
        config[0x0E] = 1
        config[0x18], config[0x19], config[0x1A] = pci.buses
    config[0x40] = 0x10
    struct.pack_into("<H", config, 0x42, pci.port_type << 4 | 2)
    link = pci.generation | pci.width << 4
    struct.pack_into("<I", config, 0x4C, link)  # what it can
    struct.pack_into("<H", config, 0x52, link)  # what it does
    return bytes(config)


def write_pci(out, shape):
    by_numa = numa_cpus(shape)
    total = sum(map(len, by_numa))
    for pci in shape.pcis:
        base = f"sys/devices/{pci.path}"
        vendor, device, cls = CHIPS[pci.chip]
        speed = GT[pci.generation]
        for name, value in {
                "vendor": f"0x{vendor:04x}", "device": f"0x{device:04x}", "class": f"0x{cls:06x}",
                "revision": "0x00", "numa_node": pci.numa, "config": config_space(pci),
                "local_cpulist": cpu_list(by_numa[pci.numa]), "local_cpus": cpu_mask(by_numa[pci.numa], total),
                "current_link_speed": speed, "max_link_speed": speed,
                "current_link_width": pci.width, "max_link_width": pci.width}.items():
            out.put(f"{base}/{name}", value)
        out.link(f"sys/bus/pci/devices/{pci.bdf}", f"../../../devices/{pci.path}")
    paths = {pci.bdf: pci.path for pci in shape.pcis}
    for nic in shape.nics:
        if nic.rdma:
            out.folder(f"sys/devices/{paths[nic.bdf]}/infiniband/{nic.rdma}")
        for port, bdf in zip(nic.ports, port_addresses(nic)):
            if port.netdev:
                out.folder(f"sys/devices/{paths[bdf]}/net/{port.netdev}")


def port_addresses(nic):
    """The second port of a card is its second PCI function."""
    return [nic.bdf[:-1] + str(index) for index in range(len(nic.ports))]


# ---- what differs from host to host


def link_of(host, nic):
    """(state, phys_state, rate) as sysfs prints them for the RDMA device; a bond has the rate of one port."""
    keys = [port.key for port in nic.ports]
    full, halved = RATE[nic.gbps]
    down = sum(key in host.down for key in keys)
    if down == len(keys):
        return "1: DOWN", "2: Polling" if nic.kind == "ib" else "3: Disabled", "10 Gb/sec (4X SDR)"
    return "4: ACTIVE", "5: LinkUp", halved if any(key in host.half for key in keys) else full


def write_rdma(out, host, shape, nic, lid):
    paths = {pci.bdf: pci.path for pci in shape.pcis}
    base = f"sys/class/infiniband/{nic.rdma}"
    guid = "0000:0000:0000:0000" if nic.kind == "efa" else host.guid(nic.rdma)
    state, phys_state, rate = link_of(host, nic)
    layer = {"ib": "InfiniBand", "roce": "Ethernet", "efa": "Unspecified"}[nic.kind]
    netdev = nic.bond or nic.ports[0].netdev
    gid = f"fe80:0000:0000:0000:{guid if nic.kind != 'efa' else host.guid(nic.rdma)}"
    files = {
        "node_type": "7: unspecified" if nic.kind == "efa" else "1: CA",
        "node_guid": guid, "sys_image_guid": guid, "node_desc": f"{host.name} {nic.rdma}",
        "fw_ver": {"ib": "28.39.3560", "roce": "28.39.3560", "efa": "0.0.0.0"}[nic.kind],
        "board_id": "" if nic.kind == "efa" else "MT_0000000838",
        "ports/1/link_layer": layer, "ports/1/state": state, "ports/1/phys_state": phys_state,
        "ports/1/rate": rate, "ports/1/lid": f"0x{lid:x}", "ports/1/sm_lid": "0x1" if nic.kind == "ib" else "0x0",
        "ports/1/gids/0": gid, "ports/1/gid_attrs/types/0": "RoCE v2" if nic.kind == "roce" else "IB/RoCE v1",
    }
    if nic.kind == "roce":
        files["ports/1/gid_attrs/ndevs/0"] = netdev
    for name, value in files.items():
        out.put(f"{base}/{name}", value)
    out.link(f"{base}/device", f"../../../devices/{paths[nic.bdf]}")


def write_netdevs(out, host, shape, nic):
    paths = {pci.bdf: pci.path for pci in shape.pcis}
    for port, bdf in zip(nic.ports, port_addresses(nic)):
        if not port.netdev:
            continue
        base = f"sys/class/net/{port.netdev}"
        down = port.key in host.down
        # An IPoIB interface says nothing of its speed before it is brought up; an Ethernet one without carrier says -1.
        speed = -1 if down else nic.gbps * (500 if port.key in host.half else 1000)
        files = {"address": host.mac(nic.bond or port.netdev), "mtu": nic.mtu,
                 "operstate": "down" if down else "up", "speed": speed, "type": 32 if nic.kind == "ib" else 1}
        for name, value in files.items():
            out.put(f"{base}/{name}", value)
        out.link(f"{base}/device", f"../../../devices/{paths[bdf]}")
        if nic.bond:
            out.link(f"{base}/master", f"../{nic.bond}")
    if nic.bond:
        base = f"sys/class/net/{nic.bond}"
        up = [port for port in nic.ports if port.key not in host.down]
        files = {"address": host.mac(nic.bond), "mtu": nic.mtu, "operstate": "up" if up else "down",
                 "speed": nic.gbps * 1000 * len(up) if up else -1, "type": 1, "bonding/mode": "802.3ad 4",
                 "bonding/slaves": " ".join(port.netdev for port in nic.ports)}
        for name, value in files.items():
            out.put(f"{base}/{name}", value)


def place(host, port):
    """Where the cable of a port ends: (leaf, port)."""
    said = host.leaves.get(port.key)
    if not said:
        return port.leaf, port.leaf_port
    leaf, _, leaf_port = said.partition("/")
    return leaf, leaf_port or port.leaf_port


def lldp_json(host, shape):
    interfaces = []
    for nic in shape.nics:
        for port in nic.ports:
            leaf, leaf_port = place(host, port)
            if nic.kind not in ("roce", "eth") or not leaf or port.key in host.down or host.no_lldp:
                continue
            interfaces.append({
                "name": port.netdev, "via": "LLDP", "rid": "1", "age": "0 day, 01:02:03",
                "chassis": [{
                    "id": [{"type": "mac", "value": ":".join(leaf_guid(leaf)[2:14][i:i + 2] for i in range(0, 12, 2))}],
                    "name": [{"value": leaf}],
                    "descr": [{"value": "SONiC Software Version: SONiC.202405 - HwSku: fixture"}],
                    "capability": [{"type": "Bridge", "enabled": True}, {"type": "Router", "enabled": True}]}],
                "port": [{"id": [{"type": "local", "value": leaf_port}], "descr": [{"value": leaf_port}],
                          "ttl": [{"value": "120"}]}]})
    return json.dumps({"lldp": [{"interface": interfaces} if interfaces else {}]}, indent=1)


def ib_text(host, shape, lids):
    lines = ["# device port lid neighbour_type neighbour_guid \"neighbour description\" neighbour_port"]
    for nic in shape.nics:
        if nic.kind != "ib":
            continue
        port = nic.ports[0]
        leaf, leaf_port = place(host, port)
        if port.key in host.down or not leaf:
            lines.append(f"{nic.rdma} 1 0 none")
        else:
            lines.append(f'{nic.rdma} 1 {lids[nic.rdma]} switch {leaf_guid(leaf)} "{leaf}" {leaf_port}')
    return "\n".join(lines)


def nvml_yaml(host, shape):
    if not shape.gpus:
        return 'absent: "libnvidia-ml.so.1 was not found"\ngpus: []'
    lines = [f'driver_version: "{shape.driver}"', "gpus:"]
    generation, links = shape.nvlink
    for index, gpu in enumerate(shape.gpus):
        bad = index in host.bad_gpus
        down = int(host.bad_nvlinks.get(index, 0))
        state, uuid, clique = shape.fabric, NO_CLUSTER, 0
        if state == "rack":
            state, uuid, clique = "completed", host.cluster_uuid or SOME_RACK, host.clique
        lines += [f"- index: {index}", f"  uuid: GPU-{host.uuid('gpu', index)}", f'  name: "{shape.gpu_name}"',
                  f'  pci: "{gpu.bdf}"', f"  memory_mib: {gpu.memory_mib}", f"  nvlink_version: {generation}"]
        lines.append("  nvlinks:" if links else "  nvlinks: []")
        for link in range(links):
            remote = shape.nvswitches[link % len(shape.nvswitches)] if shape.nvswitches else ""
            lines.append(f"  - {{link: {link}, state: {'inactive' if link < down else 'active'}, "
                         f'remote_type: switch, remote_pci: "{remote}"}}')
        lines += [f'  fabric: {{state: {state}, cluster_uuid: "{uuid}", clique: {clique}}}',
                  f"  ecc: {{mode: enabled, volatile_uncorrected: {int(bad)}, aggregate_uncorrected: {int(bad)}}}",
                  f"  health: {{row_remap_pending: {str(bad).lower()}, row_remap_failure: false, last_xid: "
                  f"{95 if bad else 0}}}"]
    return "\n".join(lines)


def write_host(host, shape, folder, common=None):
    """Writes one machine. With `common`, a folder that write_common made, its CPUs and PCI tree are links."""
    out = Folder(folder)
    if common:
        target = os.path.relpath(common, os.path.join(folder, "sys"))
        out.link("sys/bus", f"{target}/sys/bus")
        out.link("sys/devices", f"{target}/sys/devices")
    else:
        write_common(folder, shape)
    lids = {}
    for nic in shape.nics:
        if nic.kind == "ib":
            lids[nic.rdma] = 2 + int(host.digest(nic.rdma, "lid")[:8], 16) % 0xBFF0  # unicast LIDs end at 0xBFFF
        if nic.rdma:
            write_rdma(out, host, shape, nic, lids.get(nic.rdma, 0))
        write_netdevs(out, host, shape, nic)
    machine = [f'name: "{shape.product}"', f"hostname: {host.name}"]
    machine += [f"site: {host.site}"] if host.site else []
    machine += [f"cluster_uuid: {host.cluster_uuid}"] if host.cluster_uuid else []
    out.put("machine.yaml", "\n".join(machine))
    out.put("nvml.yaml", nvml_yaml(host, shape))
    out.put("lldp.json", lldp_json(host, shape))
    out.put("ib.txt", ib_text(host, shape, lids))
    return folder


def write_common(folder, shape):
    out = Folder(folder)
    write_system(out, shape)
    write_pci(out, shape)
    return folder


def write(cluster, folder):
    """Writes every node of a cluster below `folder`; returns {node name: its folder}."""
    shapes, commons, machines = {}, {}, {}
    for description in cluster["nodes"]:
        host = Host(**description)
        host.leaves = {str(key): value for key, value in host.leaves.items()}
        host.down, host.half = [str(key) for key in host.down], [str(key) for key in host.half]
        if host.shape not in shapes:
            shapes[host.shape] = SHAPES[host.shape]()
            commons[host.shape] = write_common(os.path.join(folder, ".common", host.shape), shapes[host.shape])
        machines[host.name] = write_host(host, shapes[host.shape], os.path.join(folder, host.name),
                                         commons[host.shape])
    return machines


def main(arguments):
    parser = argparse.ArgumentParser(description="Write one recorded machine.")
    parser.add_argument("shape", choices=sorted(SHAPES))
    parser.add_argument("dir")
    parser.add_argument("--hostname", default="")
    parser.add_argument("--site", default="")
    parser.add_argument("--leaf", action="append", default=[], metavar="RAIL=LEAF/PORT",
                        help="where a port's cable ends; RAIL.2 is a NIC's second port")
    parser.add_argument("--down", action="append", default=[], metavar="RAIL", help="a port without link")
    parser.add_argument("--half", action="append", default=[], metavar="RAIL", help="a port with half of its lanes")
    parser.add_argument("--bad-gpu", action="append", default=[], type=int, metavar="INDEX")
    parser.add_argument("--cluster-uuid", default="")
    parser.add_argument("--clique", default=0, type=int)
    given = parser.parse_args(arguments)
    shape = SHAPES[given.shape]()
    keys = {port.key for nic in shape.nics for port in nic.ports}
    leaves = dict(item.split("=", 1) for item in given.leaf if "=" in item)
    unknown = [key for key in [*leaves, *given.down, *given.half] if key not in keys]
    if unknown or len(leaves) != len(given.leaf):
        parser.error(f"{', '.join(unknown) or '--leaf'}: want one of {', '.join(sorted(keys))}, as 3=su0-r3/12")
    host = Host(given.hostname or given.shape, given.shape, given.site, leaves, given.cluster_uuid, given.clique,
                given.down, given.half, given.bad_gpu)
    write_host(host, shape, given.dir)


if __name__ == "__main__":
    main(sys.argv[1:])
