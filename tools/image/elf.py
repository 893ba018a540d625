"""What a program needs at its start, as its dynamic section says. Without running it, so of any architecture."""

import struct

DT_NEEDED, DT_STRTAB, DT_SONAME = 1, 5, 14
PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
MACHINES = {62: "amd64", 183: "arm64"}


class Program:
    """`data`: a file's bytes. `needed` are sonames; `machine` is Debian's word for the architecture."""

    def __init__(self, data):
        self.machine = MACHINES.get(struct.unpack_from("<H", data, 18)[0], "unknown")
        self.needed, self.soname, self.interpreter = [], "", ""
        table, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
        # type, flags, offset, virtual address, physical address, size in the file, size in memory, alignment
        segments = [struct.unpack_from("<IIQQQQQQ", data, table + index * size) for index in range(count)]
        loads = [segment for segment in segments if segment[0] == PT_LOAD]
        for kind, _, offset, _, _, length, _, _ in segments:
            if kind == PT_INTERP:
                self.interpreter = data[offset:offset + length].rstrip(b"\0").decode()
            if kind == PT_DYNAMIC:
                self._read_dynamic(data, loads, offset, length)

    def _read_dynamic(self, data, loads, offset, length):
        entries = [struct.unpack_from("<QQ", data, offset + at) for at in range(0, length, 16)]
        strings = next((_offset_of(loads, value) for tag, value in entries if tag == DT_STRTAB), 0)

        def text(value):
            start = strings + value
            return data[start:data.index(b"\0", start)].decode()
        self.needed = [text(value) for tag, value in entries if tag == DT_NEEDED]
        self.soname = next((text(value) for tag, value in entries if tag == DT_SONAME), "")


def _offset_of(loads, address):
    return next(address - start + offset for _, _, offset, start, _, size, _, _ in loads
                if start <= address < start + size)


def is_elf(data):
    """64 bits, little-endian, and a program or a shared library: what the loader takes."""
    return data[:6] == b"\x7fELF\x02\x01" and len(data) > 64 and struct.unpack_from("<H", data, 16)[0] in (2, 3)
