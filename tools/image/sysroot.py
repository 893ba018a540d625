"""Development packages of another architecture, unpacked into a folder that a cross compiler and QEMU take for its root.
This machine's dpkg hears nothing of them: several of Debian's -dev packages of two architectures exclude each other."""

import fcntl
import json
import os
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

from . import debian
from .debian import Refused

# What no compiler and no program under test reads. Programs stay, though they are of another architecture: packages' own
# files for CMake look for them.
LEFT_OUT = ("./usr/share/doc/*/changelog*", "./usr/share/doc/*/examples*", "./usr/share/doc/*/html*",
            "./usr/share/man/*", "./usr/share/locale/*", "./usr/share/perl*", "./usr/lib/*/perl*", "./etc/*", "./var/*")
OWNED = (".so", "usr/include/")  # of these paths it is known whose they are
MERGED = ("lib", "lib64")  # links into /usr, where Debian's packages still say /lib
WHOLE = "packages.json"    # beside the files: what they are of. It is written last


def cache():
    """Where all that is fetched stays, apart from the tree."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("HEDDLE_CACHE") or Path(home) / "heddle")


def root_of(architecture):
    """Where the libraries lie that programs for it were linked to."""
    return ThisMachine() if architecture == debian.native() else Sysroot(architecture)


class ThisMachine:

    folder = Path("/")

    def library(self, soname):
        """Its path, or None."""
        places = [Path(place) / debian.TRIPLETS[debian.native()] / soname for place in ("/usr/lib", "/lib")]
        return next((place for place in places if place.exists()), None)

    def owners(self, libraries):
        """The packages that the shared libraries or headers at these paths come from."""
        return debian.owners_here([str(file) for file in libraries])

    def described(self, names):
        """{name: (version, architecture, source package)}."""
        return debian.described_here(names)


class Sysroot:

    def __init__(self, architecture):
        if architecture == debian.native():
            raise Refused(f"this machine is {architecture} itself: its own packages serve (preset release)")
        if architecture not in debian.TRIPLETS:
            raise Refused(f"unknown architecture {architecture}: {' and '.join(debian.TRIPLETS)} are known")
        self.architecture = architecture
        self.folder = cache() / "sysroot" / architecture

    def bring_up_to_date(self, packages, say):
        """`packages` and all that they depend on, of today's lists, lie there. The folder keeps its name, so that what
        was compiled against an unchanged header stays compiled."""
        with self._alone():
            archive = debian.Archive(self.architecture, cache() / "images")
            wanted = [list(which) for which in archive.closure(packages)]
            made_of = {"packages": wanted, "left out": list(LEFT_OUT), "owned": list(OWNED)}
            if made_of.items() <= self._read().items():
                return
            say(f"unpacking {len(wanted)} packages of {self.architecture}, some 100 MB to fetch at first")
            files = archive.fetch(wanted)
            with tempfile.TemporaryDirectory(dir=self.folder.parent, prefix=f".{self.architecture}-") as scratch:
                root = Path(scratch) / "root"
                owners = {}
                for name in MERGED:
                    (root / "usr" / name).mkdir(parents=True)
                    (root / name).symlink_to(f"usr/{name}")
                for (name, _, _), file in zip(wanted, files):
                    for path in _unpack(file, root):
                        owners[path] = name
                _make_links_relative(root)
                (root / WHOLE).write_text(json.dumps(made_of | {"owners": owners}, indent=1))
                if self.folder.exists():
                    self.folder.rename(Path(scratch) / "old")
                root.rename(self.folder)

    @contextmanager
    def _alone(self):
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with open(self.folder.parent / f".{self.architecture}.lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _read(self):
        file = self.folder / WHOLE
        return json.loads(file.read_text()) if file.exists() else {"owners": {}}

    def library(self, soname):
        file = self.folder / "usr/lib" / debian.TRIPLETS[self.architecture] / soname
        return file if file.exists() else None

    def owners(self, libraries):
        owners = self._read()["owners"]
        paths = [str(file.relative_to(self.folder)) for file in libraries]
        if missing := [path for path in paths if path not in owners]:
            raise Refused(f"{len(missing)} files in {self.folder} are of no package, as {missing[0]}; `tools/build arm64` "
                          "brings that folder up to date")
        return {owners[path] for path in paths}

    def described(self, names):
        """As ThisMachine has it; which source package a binary one is of, no list of apt's tells here."""
        return {name: (version.replace("%3a", ":"), architecture, "")
                for name, version, architecture in self._read()["packages"] if name in names}


def development_packages(text):
    """Of tools/apt-packages those that a compiler takes: the part that builds Heddle, of the libraries."""
    words = []
    for line in text.splitlines():
        if line.startswith("# ----"):
            break
        words += line.partition("#")[0].split()
    return {word for word in words if word.endswith("-dev")}


def _unpack(deb, root):
    """Paths of its shared libraries and headers, as on a machine with merged /usr."""
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as packed:
        done = subprocess.run(["tar", "--extract", "--verbose", "--keep-directory-symlink", "--no-same-owner", "--directory", root,
                               "--wildcards", *(f"--exclude={pattern}" for pattern in LEFT_OUT)],
                              stdin=packed.stdout, capture_output=True, text=True, check=False)
    if done.returncode or packed.returncode:
        raise Refused(f"{deb} cannot be unpacked: {done.stderr.strip()}")
    paths = [line.removeprefix("./") for line in done.stdout.splitlines()]
    return [path if path.startswith("usr/") else f"usr/{path}" for path in paths if any(word in path for word in OWNED)]


def _make_links_relative(root):
    """A link to /lib/… would lead out of the folder, to this machine's own library."""
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = Path(folder, name)
            if path.is_symlink() and (target := os.readlink(path)).startswith("/"):
                path.unlink()
                path.symlink_to(os.path.relpath(f"{root}{target}", folder))
