"""PCI devices that QEMU does not have, played to it by this process: the guest's kernel finds them on its bus.

QEMU's x-pci-proxy-dev asks another process for the configuration space of a device (docs/system/multi-process.rst; the
messages are those of include/hw/remote/mpqemu-link.h). What answers here is all that a driverless device has: who it
is, and how its link trained."""

import socket
import struct
import threading

from lab import need, options

# Commands of the protocol, and its messages: the command, the length of what follows, that.
SYNC_MEMORY, ANSWER, WRITE, READ, _, _, SET_IRQ, RESET = range(8)
HEADER = struct.Struct("=i4xQ")
ACCESS = struct.Struct("=IIi")

# Configuration space (PCI Local Bus 3.0, 6.1; PCI Express Base 4.0, 7.5).
COMMAND, STATUS, REVISION_AND_CLASS, SUBSYSTEM, CAPABILITIES, EXPRESS = 0x04, 0x06, 0x08, 0x2C, 0x34, 0x40
WRITABLE = {COMMAND: 0x0406, 0x0C: 0xFF, 0x3C: 0xFF}
GENERATION = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}  # gigatransfers a second

NVIDIA_GPU = dict(vendor=0x10DE, device=0x2330, kind=0x0302)  # "GH100 [H100 SXM5 80GB]", a 3D controller


def configuration(vendor, device, kind, speed=32.0, width=16, trained_speed=None, trained_width=None):
    """256 bytes of an endpoint without memory, interrupts or driver. `kind`: class and subclass."""
    space = bytearray(256)
    struct.pack_into("<HH", space, 0, vendor, device)
    struct.pack_into("<H", space, STATUS, 0x10)  # has capabilities
    struct.pack_into("<I", space, REVISION_AND_CLASS, kind << 16)
    struct.pack_into("<HH", space, SUBSYSTEM, vendor, device)
    space[CAPABILITIES] = EXPRESS
    struct.pack_into("<BBH", space, EXPRESS, 0x10, 0, 0x02)  # PCI Express, the last, an endpoint of version 2
    struct.pack_into("<I", space, EXPRESS + 0x0C, GENERATION[speed] | width << 4)
    trained = GENERATION[trained_speed or speed] | (trained_width or width) << 4
    struct.pack_into("<H", space, EXPRESS + 0x12, trained)
    struct.pack_into("<I", space, EXPRESS + 0x2C, (1 << GENERATION[speed]) - 1 << 1)
    return space


class PciDevice:
    """Answers until QEMU goes or `close`. QEMU is given `end`, its copy here is to be closed then."""

    def __init__(self, **what):
        self.space = configuration(**what)
        self.socket, self.end = socket.socketpair()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def argument(self, bus, name):
        return f"x-pci-proxy-dev,bus={bus},id={name},fd={self.end.fileno()}"

    def plug(self, guest, bus, name):
        """Into a guest that runs."""
        guest.qmp("getfd", [self.end.fileno()], fdname=name)
        guest.qmp("device_add", driver="x-pci-proxy-dev", bus=bus, id=name, fd=name)
        self.end.close()

    def serve(self):
        try:
            while True:
                command, size = HEADER.unpack(self.receive(HEADER.size))
                body = self.receive(size)
                # The two that bring descriptors, which a plain read lets go of, want no answer.
                if command not in (SYNC_MEMORY, SET_IRQ):
                    self.socket.sendall(HEADER.pack(ANSWER, 8) + struct.pack("=Q", self.answer(command, body)))
        except (EOFError, OSError):
            pass

    def receive(self, size):
        got = b""
        while len(got) < size:
            more = self.socket.recv(size - len(got))
            if not more:
                raise EOFError
            got += more
        return got

    def answer(self, command, body):
        if command not in (READ, WRITE):
            return 0
        at, value, size = ACCESS.unpack(body)
        if command == READ:
            return int.from_bytes(self.space[at:at + size], "little")
        for i in range(size):
            start = (at + i) & ~1
            mask = WRITABLE.get(start, 0) >> 8 * ((at + i) - start) & 0xFF
            self.space[at + i] = self.space[at + i] & ~mask | value >> 8 * i & mask
        return 0

    def close(self):
        self.socket.close()


def give_driver(guest, places):
    """What NVML says of GPUs there: the test library that tests/support/nvml builds, which reads nvml.yaml."""
    library = options.binaries.parent / "nvml/libnvidia-ml.so.1"
    need(str(library))
    lines = ["driver_version: '570.86'", "gpus:"]
    for index, place in enumerate(places):
        lines += [f"- index: {index}", f"  uuid: GPU-{index}", "  name: NVIDIA H100 80GB HBM3", f'  pci: "{place}"',
                  "  memory_mib: 81559"]
    (guest.folder / "nvml.yaml").write_text("\n".join(lines) + "\n")
    guest.agent_command = f"HEDDLE_TEST_NVML=/mnt/nvml.yaml {guest.agent_command} --nvml {library}"
