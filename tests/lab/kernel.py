"""The distribution's own kernel for guests: downloaded once, cut down to the modules that the beds load, and an
initramfs that finds the host's files."""

import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import stat
import subprocess
import tempfile

# The empty meta package that names the current kernel.
NEWEST = "linux-image-amd64"
# What the guest needs before it sees the host's files; the rest is loaded from there.
EARLY = ("virtio_pci", "9p", "9pnet_virtio")
# crc32_generic: rdma_rxe asks for it by a name that modules.dep does not know.
LATE = ("virtio_net", "crc32_generic", "rdma_rxe", "rdma_cm", "sch_netem", "bonding")

# proc, sys and dev are the guest's own, all else is the host's: read-only, but for the test's folder at /mnt.
# Commands arrive as numbers on the second serial line, their text and what they write lies in that folder.
INIT = """#!/bin/busybox sh
busybox mount -t devtmpfs none /dev && exec >/dev/ttyS0 2>&1 </dev/null
busybox mount -t proc none /proc
for module in {modules}; do busybox insmod /modules/$module || echo "heddle: $module does not load"; done
busybox mount -t 9p -o trans=virtio,version=9p2000.L,cache=loose,msize=262144,ro host /root &&
busybox mount -t 9p -o trans=virtio,version=9p2000.L,cache=none,msize=262144 test /root/mnt &&
busybox mount -t proc none /root/proc && busybox mount -t sysfs none /root/sys &&
busybox mount -t tmpfs none /root/run && busybox mount -o move /dev /root/dev &&
exec busybox chroot /root /bin/sh /mnt/serve
echo 'heddle: the guest does not see the files of its host'
exec busybox poweroff -f
"""

SERVE = """
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/mnt TMPDIR=/mnt
cd /mnt
ip link set lo up
exec 3<>/dev/ttyS1
stty -F /dev/ttyS1 raw -echo
echo up >&3
while read -r number <&3; do
  sh /mnt/$number.sh >/mnt/$number.out 2>/mnt/$number.err </dev/null
  echo "$number $?" >&3
done
"""


def cache():
    home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(os.environ.get("HEDDLE_CACHE") or pathlib.Path(home) / "heddle") / "kernel"


def run(*command, **kwargs):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300, **kwargs)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}")
    return done.stdout


class Kernel:
    """vmlinuz and initrd in `folder`, and there under lib/modules what `modprobe -d FOLDER` loads."""

    def __init__(self, folder):
        self.folder = folder
        self.image, self.initrd = folder / "vmlinuz", folder / "initrd"


def kernel():
    """From the cache, else downloaded. A cached one serves where nothing can be downloaded."""
    base = cache()
    base.mkdir(parents=True, exist_ok=True)
    with open(base / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            package, version = newest()
            recipe = hashlib.sha256(repr((EARLY, LATE, INIT)).encode()).hexdigest()[:12]
            folder = base / f"{package}_{version}_{recipe}".replace(":", "-").replace("~", "-")
            if not folder.is_dir():
                make(package, folder)
            return Kernel(folder)
        except AssertionError as problem:
            made = sorted(base.glob("linux-image-*/initrd"), key=lambda file: file.stat().st_mtime)
            if not made:
                raise AssertionError(f"no kernel for the guests: {problem}\n(apt-get update, and try again)") from None
            return Kernel(made[-1].parent)


def newest():
    """The package that the meta package depends on, and its version."""
    depends = re.findall(r"^\s*Depends: (linux-image-\S+)", run("apt-cache", "depends", NEWEST), re.M)
    if not depends:
        raise AssertionError(f"apt does not know {NEWEST}")
    candidate = re.search(r"^\s*Candidate: (\S+)", run("apt-cache", "policy", depends[0]), re.M)
    if candidate is None or candidate[1] == "(none)":
        raise AssertionError(f"apt cannot download {depends[0]}")
    return depends[0], candidate[1]


def make(package, folder):
    """Into a folder beside it and then renamed: nobody ever sees half of it. What it replaces goes."""
    for old in folder.parent.glob("*linux-image-*"):
        shutil.rmtree(old, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="unpacked-", dir=folder.parent) as name:
        unpacked = pathlib.Path(name)
        # As root, apt downloads as a user of its own, who may write here.
        unpacked.chmod(0o777)
        run("apt-get", "download", package, cwd=unpacked)
        run("dpkg-deb", "-x", next(unpacked.glob("*.deb")), unpacked / "root")
        whole = unpacked / "root"
        release = next((whole / "lib/modules").iterdir()).name
        run("depmod", "-b", whole, release)
        made = unpacked / "made"
        for module in EARLY + LATE:
            for file in with_what_it_needs(whole, release, module):
                target = made / file.relative_to(whole)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, target)
        for lists in (whole / "lib/modules" / release).glob("modules.[bo]*"):
            shutil.copy(lists, made / "lib/modules" / release)
        run("depmod", "-b", made, release)
        shutil.copy(next((whole / "boot").glob("vmlinuz-*")), made / "vmlinuz")
        (made / "initrd").write_bytes(initramfs(made, release))
        made.rename(folder)


def with_what_it_needs(root, release, module):
    """Its files in the order in which they load."""
    lines = run("modprobe", "-d", root, "-S", release, "--show-depends", module).splitlines()
    return [pathlib.Path(os.path.normpath(line.split()[1])) for line in lines if line.startswith("insmod ")]


def initramfs(root, release):
    files = {}
    for module in EARLY:
        for file in with_what_it_needs(root, release, module):
            files.setdefault(file.name, file.read_bytes())
    busybox = shutil.which("busybox")
    if busybox is None:
        raise AssertionError("busybox is not installed: tools/install")
    archive = Archive()
    for name in ("bin", "dev", "proc", "root", "modules"):
        archive.add(name, stat.S_IFDIR | 0o755)
    archive.add("bin/busybox", stat.S_IFREG | 0o755, pathlib.Path(busybox).read_bytes())
    archive.add("init", stat.S_IFREG | 0o755, INIT.format(modules=" ".join(files)).encode())
    for name, content in files.items():
        archive.add(f"modules/{name}", stat.S_IFREG | 0o644, content)
    return archive.finish()


class Archive:
    """cpio as the kernel reads it ("newc", Documentation/driver-api/early-userspace/buffer-format.rst)."""

    def __init__(self):
        self.bytes = bytearray()
        self.count = 0

    def add(self, name, mode, content=b""):
        self.count += 1
        # inode, mode, uid, gid, links, mtime, size, two devices of two numbers, length of the name, no checksum
        fields = (self.count, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
        self.bytes += b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        self.pad()
        self.bytes += content
        self.pad()

    def pad(self):
        self.bytes += bytes(-len(self.bytes) % 4)

    def finish(self):
        self.add("TRAILER!!!", 0)
        return bytes(self.bytes)
