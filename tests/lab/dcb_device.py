"""Interfaces with DCB for guests: dcbdev/ built for their kernel, and what a test asks of it."""

import fcntl
import hashlib
import pathlib
import re
import shutil
import tempfile

from kernel import cache, kernel, run
from pci_device import PciDevice

SOURCE = pathlib.Path(__file__).with_name("dcbdev")
CONNECTX7 = dict(vendor=0x15B3, device=0x1021, kind=0x0200)
DEBUG = "/sys/kernel/debug/dcbdev"


def module():
    """dcbdev.ko, which fits the guests' kernel. Built once for each kernel and source; the headers are kept."""
    machine = kernel()
    release = next(path.name for path in (machine.folder / "lib/modules").iterdir())
    sources = sorted(path for path in SOURCE.iterdir() if path.is_file())
    state = hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    built = cache() / f"dcbdev_{release}_{state}"
    with open(cache() / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (built / "dcbdev.ko").is_file():
            tree = headers(release)
            for old in cache().glob("dcbdev_*"):
                shutil.rmtree(old, ignore_errors=True)
            with tempfile.TemporaryDirectory(prefix="making-", dir=cache()) as name:
                made = pathlib.Path(name) / "made"
                made.mkdir()
                for path in sources:
                    shutil.copy(path, made)
                run("make", "-C", tree, f"M={made}", "modules")
                made.rename(built)
    return built / "dcbdev.ko"


def headers(release):
    """The folder that the distribution's packages would make below /usr/src."""
    kept = cache() / f"headers_{release}"
    tree = kept / f"usr/src/linux-headers-{release}"
    if not tree.is_dir():
        for old in cache().glob("headers_*"):
            shutil.rmtree(old, ignore_errors=True)
        package = f"linux-headers-{release}"
        others = re.findall(r"^\s*Depends: (linux-(?:headers|kbuild)-\S+)", run("apt-cache", "depends", package), re.M)
        with tempfile.TemporaryDirectory(prefix="unpacked-", dir=cache()) as name:
            unpacked = pathlib.Path(name)
            unpacked.chmod(0o777)
            run("apt-get", "download", package, *others, cwd=unpacked)
            for archive in unpacked.glob("*.deb"):
                run("dpkg-deb", "-x", archive, unpacked / "root")
            (unpacked / "root").rename(kept)
    # They name each other where they would be installed.
    makefile = tree / "Makefile"
    makefile.write_text(re.sub(r"include \S*/usr/src/", f"include {kept}/usr/src/", makefile.read_text()))
    return tree


def network_card():
    """A PCI function that the module's driver takes for a ConnectX-7."""
    return PciDevice(**CONNECTX7)


class DcbDevice:
    """dcb0 of a guest, as its module keeps it: what was written, and what is to fail."""

    def __init__(self, guest, netdev):
        self.guest, self.netdev, self.folder = guest, netdev, f"{DEBUG}/{netdev}"

    def writes(self):
        """How often each operation was called since the last reset; those never called are left out."""
        lines = self.guest.run(f"cd {self.folder}/writes && grep . *").split()
        return {name: int(count) for name, count in (line.split(":") for line in lines) if int(count)}

    def reset(self):
        self.guest.run(f"cd {self.folder} && for file in writes/* fail/* bounce; do echo 0 >$file; done")

    def fail(self, operation, errno):
        self.guest.run(f"echo {errno} >{self.folder}/fail/{operation}")

    def set(self, file, value):
        self.guest.run(f"echo {value} >{self.folder}/{file}")
