#!/usr/bin/env python3
"""Writes recorded machines: folders that `heddle-nodeagent --machine DIR` replays as if it stood on the host.

    machines.py SHAPE DIR [--hostname H] [--leaf RAIL=LEAF/PORT ...]

A folder holds machine.yaml (product, hostname), sys/ (sysfs as Linux has it), nvml.yaml (what NVML answered),
lldp.json (lldpd's json0), ib.txt (directed-route answers), verbs.yaml (the RDMA MTUs that drivers say) and, where
asked for, leaf-counters.txt (what leaves have counted). Identities (GPU UUIDs, NIC GUIDs, MACs) follow from the
hostname, so the same call writes the same bytes and no two hosts share one.

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

from machine_shapes import CHIPS, SHAPES

NO_CLUSTER = "00000000-0000-0000-0000-000000000000"  # what NVML says on an HGX board: a fabric of one host
SOME_RACK = "5eed5eed-0072-4000-8000-000000000000"  # of a tray that nobody gave a rack
GT = {1: "2.5 GT/s PCIe", 3: "8.0 GT/s PCIe", 4: "16.0 GT/s PCIe", 5: "32.0 GT/s PCIe"}
NVLINK_MBPS = {3: 25781, 4: 26562, 5: 53125}  # one link on the wire, as the driver says it
RATE = {  # Gb/s: the InfiniBand name of the speed, and the same with half of the lanes
    100: ("100 Gb/sec (4X EDR)", "50 Gb/sec (2X EDR)"),
    200: ("200 Gb/sec (4X HDR)", "100 Gb/sec (2X HDR)"),
    400: ("400 Gb/sec (4X NDR)", "200 Gb/sec (2X NDR)"),
    800: ("800 Gb/sec (4X XDR)", "400 Gb/sec (2X XDR)"),
}


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
    leaf_counts: dict = field(default_factory=dict)  # port key -> "link_downed=41 …"; any: the others count nothing

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


def chassis_id(leaf):
    """By which LLDP knows a switch, beside its name."""
    mac = leaf_guid(leaf)[2:14]
    return ":".join(mac[i:i + 2] for i in range(0, 12, 2))


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
    out.put(f"{base}/modalias", f"cpu:type:{shape.cpu_type}:feature:,0000,0001,0002,0003")
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
        distances = [10 if n == numa else 12 if n // per_socket == socket else 32
                     for n in range(len(by_numa))]
        out.put(f"{node}/distance", " ".join(map(str, distances)))
        out.put(f"{node}/meminfo", f"Node {numa} MemTotal:       {shape.numa_gib << 20} kB\n"
                                   f"Node {numa} MemFree:        {shape.numa_gib << 19} kB")
    out.put("sys/devices/system/node/online", cpu_list(range(len(by_numa))))


def config_space(pci):
    """256 bytes, enough for hwloc and lspci: identity, header type, buses and a PCIe capability at 0x40."""
    vendor, device, cls = CHIPS[pci.chip]
    config = bytearray(256)
    struct.pack_into("<HHHHBBBB", config, 0, vendor, device, 0x0006, 0x0010,
                     0, cls & 0xFF, cls >> 8 & 0xFF, cls >> 16)
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
    above_idle = {pci.path.rsplit("/", 1)[0] for pci in shape.pcis if pci.idle}  # both ends of a link agree
    for pci in shape.pcis:
        base = f"sys/devices/{pci.path}"
        vendor, device, cls = CHIPS[pci.chip]
        speed = GT[pci.generation]
        local = by_numa[pci.numa] if pci.numa >= 0 else range(total)
        for name, value in {
                "vendor": f"0x{vendor:04x}", "device": f"0x{device:04x}", "class": f"0x{cls:06x}",
                "revision": "0x00", "numa_node": pci.numa, "config": config_space(pci),
                "local_cpulist": cpu_list(local), "local_cpus": cpu_mask(local, total),
                "current_link_speed": GT[1] if pci.idle or pci.path in above_idle else speed, "max_link_speed": speed,
                "current_link_width": pci.width, "max_link_width": pci.width}.items():
            out.put(f"{base}/{name}", value)
        for name, value in pci.files.items():
            out.put(f"{base}/{name}", value)
        if vendor == 0x1D0F and device & 0xFFF0 == 0xEFA0:
            out.link(f"{base}/driver", "/".join([".."] * (pci.path.count("/") + 2)) + "/bus/pci/drivers/efa")
        out.link(f"sys/bus/pci/devices/{pci.bdf}", f"../../../devices/{pci.path}")
    paths = {pci.bdf: pci.path for pci in shape.pcis}
    for nic in shape.nics:
        if nic.rdma:
            out.folder(f"sys/devices/{paths[nic.bdf]}/infiniband/{nic.rdma}")
        if nic.vpd:
            out.put(f"sys/devices/{paths[nic.bdf]}/vpd", nic.vpd)
        for port, bdf in zip(nic.ports, port_addresses(nic)):
            if port.netdev:
                out.folder(f"sys/devices/{paths[bdf]}/net/{port.netdev}")


def port_addresses(nic):
    """The second port of a card is its second PCI function, unless it has all of them on one."""
    if nic.data_ports:
        return [nic.bdf] * len(nic.ports)
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
    chip = next(pci.chip for pci in shape.pcis if pci.bdf == nic.bdf)
    base = f"sys/class/infiniband/{nic.rdma}"
    guid = "0000:0000:0000:0000" if nic.kind == "efa" else host.guid(nic.rdma)
    state, phys_state, rate = link_of(host, nic)
    layer = {"ib": "InfiniBand", "roce": "Ethernet", "efa": "Unspecified"}[nic.kind]
    netdev = nic.bond or nic.ports[0].netdev
    gid = f"fe80:0000:0000:0000:{guid if nic.kind != 'efa' else host.guid(nic.rdma)}"
    files = {
        "node_type": "7: unspecified" if nic.kind == "efa" else "1: CA",
        "node_guid": guid, "sys_image_guid": guid, "node_desc": f"{host.name} {nic.rdma}",
        "fw_ver": {"CX6": "20.39.3560", "CX8": "40.45.1200"}.get(chip, "28.39.3560") if nic.kind != "efa" else "0.0.0.0",
        "hca_type": "" if nic.kind == "efa" else f"MT{CHIPS[chip][1]}",
        "board_id": "" if nic.kind == "efa" else "MT_0000000838",
        "ports/1/link_layer": layer, "ports/1/state": state, "ports/1/phys_state": phys_state,
        "ports/1/rate": rate, "ports/1/lid": f"0x{lid:x}",
        "ports/1/sm_lid": "0x1" if nic.kind == "ib" else "0x0",
        "ports/1/gids/0": gid, "ports/1/gid_attrs/types/0": "RoCE v2" if nic.kind == "roce" else "IB/RoCE v1",
    }
    if nic.kind == "roce":
        # As the kernel fills the table: each address once for RoCE v1 and once for v2.
        address = int(host.digest(nic.rdma, "ip")[:4], 16)
        ipv4 = f"0000:0000:0000:0000:0000:ffff:0a{address >> 8:02x}:{address & 0xff:02x}01"
        for index, entry in enumerate((gid, gid, ipv4, ipv4)):
            files[f"ports/1/gids/{index}"] = entry
            files[f"ports/1/gid_attrs/types/{index}"] = ("IB/RoCE v1", "RoCE v2")[index % 2]
            files[f"ports/1/gid_attrs/ndevs/{index}"] = netdev
    if nic.data_ports:
        write_data_ports(files, host, nic, lid)
    for name, value in files.items():
        out.put(f"{base}/{name}", value)
    out.link(f"{base}/device", f"../../../devices/{paths[nic.bdf]}")


def write_data_ports(files, host, nic, lid):
    """A ConnectX-8 in a multi-plane fabric: twelve ports, of which every third has a cable and the rest are off."""
    one = {name[len("ports/1/"):]: value for name, value in files.items() if name.startswith("ports/1/")}
    for number in range(1, 13):
        data = number in nic.data_ports
        port = nic.ports[nic.data_ports.index(number)] if data else None
        down = not data or port.key in host.down
        for name, value in one.items():
            files[f"ports/{number}/{name}"] = value
        files[f"ports/{number}/lid"] = f"0x{lid + number:x}" if data else "0x0"
        if down:
            files[f"ports/{number}/state"] = "1: DOWN"
            files[f"ports/{number}/phys_state"] = "2: Polling" if data else "3: Disabled"
            files[f"ports/{number}/rate"] = "10 Gb/sec (4X SDR)"
        else:
            files[f"ports/{number}/state"], files[f"ports/{number}/phys_state"] = "4: ACTIVE", "5: LinkUp"


def write_netdevs(out, host, shape, nic):
    paths = {pci.bdf: pci.path for pci in shape.pcis}
    for port, bdf in zip(nic.ports, port_addresses(nic)):
        if not port.netdev:
            continue
        base = f"sys/class/net/{port.netdev}"
        down = port.key in host.down
        # Linux says -1 without a carrier.
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


def verbs_yaml(host, shape):
    """What drivers say of the ports that are up, as ibv_query_port."""
    lines = []
    for nic in shape.nics:
        layer = {"ib": "InfiniBand", "roce": "Ethernet", "efa": "Unspecified"}.get(nic.kind)
        numbers = nic.data_ports or [1]
        for index, number in enumerate(numbers):
            # A bond is one RDMA port, and up as long as one of its cables is.
            keys = [nic.ports[index].key] if nic.data_ports else [port.key for port in nic.ports]
            if nic.rdma and not nic.vpd and any(key not in host.down for key in keys):
                lines.append(f'- {{device: "{nic.rdma}", port: {number}, link_layer: "{layer}", active_mtu: 4096}}')
    return "\n".join(lines)


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
                    "id": [{"type": "mac", "value": chassis_id(leaf)}],
                    "name": [{"value": leaf}],
                    "descr": [{"value": "SONiC Software Version: SONiC.202405 - HwSku: fixture"}],
                    "capability": [{"type": "Bridge", "enabled": True},
                                   {"type": "Router", "enabled": True}]}],
                "port": [{"id": [{"type": "local", "value": leaf_port}], "descr": [{"value": leaf_port}],
                          "ttl": [{"value": "120"}]}]})
    return json.dumps({"lldp": [{"interface": interfaces} if interfaces else {}]}, indent=1)


def ib_text(host, shape, lids):
    lines = ["# device port lid neighbour_type neighbour_guid \"neighbour description\" neighbour_port"]
    for nic in shape.nics:
        if nic.kind != "ib":
            continue
        for port, number in zip(nic.ports, nic.data_ports or [1]):
            leaf, leaf_port = place(host, port)
            if port.key in host.down or not leaf:
                lines.append(f"{nic.rdma} {number} 0 none")
            else:
                lid = lids[nic.rdma] + (number if nic.data_ports else 0)
                lines.append(f'{nic.rdma} {number} {lid} switch {leaf_guid(leaf)} "{leaf}" {leaf_port}')
    return "\n".join(lines)


def leaf_counters_text(host, shape):
    lines = []
    for nic in shape.nics:
        if nic.kind != "ib":
            continue
        for port, number in zip(nic.ports, nic.data_ports or [1]):
            leaf, leaf_port = place(host, port)
            if port.key in host.down or not leaf:
                continue
            lid = 1 + int(leaf_guid(leaf), 16) % 0xBFFE
            counts = host.leaf_counts.get(port.key, "symbol_error=0 link_downed=0 port_rcv_errors=0")
            lines.append(f'{nic.rdma} {number} {leaf_guid(leaf)} "{leaf}" {leaf_port} lid {lid} {counts}')
    return "\n".join(lines)


def write_kfd(out, host, shape):
    """AMD's GPUs as the kernel's compute driver shows them: first the processors' nodes, then every GPU linked with
    every other by one xGMI of 64 GB/s."""
    base = "sys/class/kfd/kfd/topology/nodes"
    sockets = shape.cpus[0]
    for node in range(sockets):
        out.put(f"{base}/{node}/gpu_id", 0)
        out.put(f"{base}/{node}/properties", "cpu_cores_count 48\nsimd_count 0\nmem_banks_count 1\nio_links_count 0")
    for index, gpu in enumerate(shape.gpus):
        domain, bus, device = gpu.bdf.split(":")
        place_of = int(bus, 16) << 8 | int(device.split(".")[0], 16) << 3 | int(device.split(".")[1])
        unique = int(host.digest("gpu", index)[:16], 16)
        node = f"{base}/{sockets + index}"
        out.put(f"{node}/gpu_id", int(host.digest("gpu_id", index)[:4], 16))
        out.put(f"{node}/properties", "\n".join(
            ["cpu_cores_count 0", "simd_count 1216", "mem_banks_count 1", "gfx_target_version 90402",
             "vendor_id 4098", "device_id 29857", f"location_id {place_of}", f"domain {int(domain, 16)}",
             f"hive_id {int(host.digest('hive')[:16], 16)}", f"unique_id {unique}", "num_xcc 8"]))
        out.put(f"{node}/mem_banks/0/properties",
                f"heap_type 1\nsize_in_bytes {gpu.memory_mib << 20}\nflags 0\nwidth 8192\nmem_clk_max 1300")
        others = [other for other in range(len(shape.gpus)) if other != index]
        links = [(2, index * sockets // len(shape.gpus), 20, 0)] + [(11, sockets + o, 15, 64000) for o in others]
        for link, (kind, to, weight, speed) in enumerate(links):
            out.put(f"{node}/io_links/{link}/properties", "\n".join(
                [f"type {kind}", "version_major 0", f"node_from {sockets + index}", f"node_to {to}",
                 f"weight {weight}", f"min_bandwidth {speed}", f"max_bandwidth {speed}", "flags 1"]))


def nvml_yaml(host, shape):
    if not shape.gpus or shape.amd:
        return 'absent: "libnvidia-ml.so.1 was not found"\ngpus: []'
    lines = [f'driver_version: "{shape.driver}"', "gpus:"]
    generation, links = shape.nvlink
    for index, gpu in enumerate(shape.gpus):
        bad = index in host.bad_gpus
        down = int(host.bad_nvlinks.get(index, 0))
        state, uuid, clique = shape.fabric, NO_CLUSTER, 0
        if state == "rack":
            state, uuid, clique = "completed", host.cluster_uuid or SOME_RACK, host.clique
        lines += [f"- index: {index}", f"  uuid: GPU-{host.uuid('gpu', index)}",
                  f'  name: "{shape.gpu_name}"', f'  pci: "{gpu.bdf}"', f"  memory_mib: {gpu.memory_mib}",
                  f"  nvlink_version: {generation}"]
        lines.append("  nvlinks:" if links else "  nvlinks: []")
        for link in range(links):
            remote = shape.nvswitches[link % len(shape.nvswitches)] if shape.nvswitches else ""
            lines.append(f"  - {{link: {link}, state: {'inactive' if link < down else 'active'}, "
                         f'remote_type: switch, remote_pci: "{remote}"'
                         + (f", speed_mbps: {NVLINK_MBPS[generation]}}}" if link >= down else "}"))
        lines += [f'  fabric: {{state: {state}, cluster_uuid: "{uuid}", clique: {clique}}}',
                  f"  ecc: {{mode: enabled, volatile_uncorrected: {int(bad)}, "
                  f"aggregate_uncorrected: {int(bad)}}}",
                  f"  health: {{row_remap_pending: {str(bad).lower()}, row_remap_failure: false, "
                  f"last_xid: {95 if bad else 0}}}"]
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
    if any(nic.kind in ("ib", "roce") for nic in shape.nics) and shape.gpus and not shape.amd:
        out.folder("sys/module/nvidia_peermem")
    lids = {}
    for nic in shape.nics:
        if nic.kind == "ib":
            # Unicast LIDs end at 0xBFFF.
            lids[nic.rdma] = 2 + int(host.digest(nic.rdma, "lid")[:8], 16) % 0xBFF0
        if nic.rdma:
            write_rdma(out, host, shape, nic, lids.get(nic.rdma, 0))
        write_netdevs(out, host, shape, nic)
    machine = [f'name: "{shape.product}"', f"hostname: {host.name}"]
    machine += [f"site: {host.site}"] if host.site else []
    out.put("machine.yaml", "\n".join(machine))
    out.put("nvml.yaml", nvml_yaml(host, shape))
    if shape.amd:
        write_kfd(out, host, shape)
    out.put("lldp.json", lldp_json(host, shape))
    out.put("ib.txt", ib_text(host, shape, lids))
    out.put("proc/sys/kernel/osrelease", "6.8.0-48-generic")
    if any(nic.rdma for nic in shape.nics):
        out.put("verbs.yaml", verbs_yaml(host, shape))
    if host.leaf_counts:
        out.put("leaf-counters.txt", leaf_counters_text(host, shape))
    return folder


def write_common(folder, shape, system=None):
    """With `system`, a folder that write_system wrote, its thousands of files of CPUs are a link."""
    out = Folder(folder)
    if system:
        out.link("sys/devices/system", os.path.relpath(f"{system}/sys/devices/system", f"{folder}/sys/devices"))
    else:
        write_system(out, shape)
    write_pci(out, shape)
    return folder


def write(cluster, folder):
    """Writes every node of a cluster below `folder`; returns {node name: its folder}."""
    shapes, systems, commons, machines = {}, {}, {}, {}
    for description in cluster["nodes"]:
        host = Host(**description)
        host.leaves = {str(key): value for key, value in host.leaves.items()}
        host.down, host.half = [str(key) for key in host.down], [str(key) for key in host.half]
        if host.shape not in shapes:
            shape = shapes[host.shape] = SHAPES[host.shape]()
            processors = (shape.cpus, shape.numa_gib, shape.cpu_type)
            if processors not in systems:
                systems[processors] = os.path.join(folder, ".common", f"system-{len(systems)}")
                write_system(Folder(systems[processors]), shape)
            common = os.path.join(folder, ".common", host.shape)
            commons[host.shape] = write_common(common, shape, systems[processors])
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
    parser.add_argument("--half", action="append", default=[], metavar="RAIL", help="a port at half width")
    parser.add_argument("--leaf-counts", action="append", default=[], metavar="RAIL=COUNTS",
                        help='what a leaf has counted, as in 3="link_downed=41 symbol_error=7"; the others nothing')
    parser.add_argument("--bad-gpu", action="append", default=[], type=int, metavar="INDEX")
    parser.add_argument("--cluster-uuid", default="")
    parser.add_argument("--clique", default=0, type=int)
    given = parser.parse_args(arguments)
    shape = SHAPES[given.shape]()
    keys = {port.key for nic in shape.nics for port in nic.ports}
    leaves = dict(item.split("=", 1) for item in given.leaf if "=" in item)
    leaf_counts = dict(item.split("=", 1) for item in given.leaf_counts if "=" in item)
    unknown = [key for key in [*leaves, *leaf_counts, *given.down, *given.half] if key not in keys]
    if unknown or len(leaves) != len(given.leaf):
        wanted = ", ".join(sorted(keys))
        parser.error(f"{', '.join(unknown) or '--leaf'}: want one of {wanted}, as in --leaf 3=su0-r3/12")
    host = Host(given.hostname or given.shape, given.shape, given.site, leaves, given.cluster_uuid,
                given.clique, given.down, given.half, given.bad_gpu, leaf_counts=leaf_counts)
    write_host(host, shape, given.dir)


if __name__ == "__main__":
    main(sys.argv[1:])
