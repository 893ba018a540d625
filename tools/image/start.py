"""Starts what was packed, out of the files of the image alone: a library that is not in it, or not of its architecture,
shows here and not on a node."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from . import debian, elf
from .debian import Refused
from .tree import joined

EMULATORS = {"arm64": ("qemu-aarch64", "qemu-aarch64-static"), "amd64": ("qemu-x86_64", "qemu-x86_64-static")}


def each(programs, base, ours, architecture):
    """Each of `programs` says what it is for. `base` and `ours` are the trees of the layers."""
    with tempfile.TemporaryDirectory() as root:
        for tree in (base, ours):
            _write_libraries(tree, Path(root))
        for name in programs:
            command = _command(Path(root), name, ours, architecture)
            done = subprocess.run([*command, "--help"], capture_output=True, text=True, check=False, timeout=120)
            if done.returncode or not done.stdout:
                raise Refused(f"{name} for {architecture} does not start: --help ended with {done.returncode} and said "
                              f"{(done.stdout + done.stderr).strip()!r}")


def _command(root, name, ours, architecture):
    program = root / "usr/bin" / name
    if architecture == debian.native():
        # By the image's own loader and with its libraries before this machine's.
        loader = root / elf.Program(ours.data(f"usr/bin/{name}")).interpreter.lstrip("/")
        return [loader, "--inhibit-cache", "--library-path", root / "usr/lib" / debian.TRIPLETS[architecture], program]
    emulator = next((found for one in EMULATORS[architecture] if (found := shutil.which(one))), None)
    if not emulator:
        raise Refused(f"no {EMULATORS[architecture][0]} here to start programs for {architecture} by: "
                      f"`tools/install --arm64` brings it")
    return [emulator, "-L", root, program]


def _write_libraries(tree, root):
    """Programs, libraries and links among them: what a loader looks at."""
    links = []
    for path, (info, data) in tree.entries.items():
        if info.issym():
            links.append((path, info.linkname))
        elif data is not None and elf.is_elf(data):
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            file.chmod(0o755)
    for path, target in links:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        # A link to /lib/… would lead to this machine's own library.
        (root / path).symlink_to(os.path.relpath(joined(path, target), path.rpartition("/")[0] or "."))
