"""Packages of the distribution: which are needed, fetched by apt as apt checks them, and what of them belongs into an
image."""

import fcntl
import fnmatch
import hashlib
import io
import os
import re
import subprocess
import tarfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from . import elf
from .tree import MERGED, Tree, joined, normal

# What no program of ours reads. Copyright files stay: they belong to what is shipped.
LEFT_OUT = (
    "usr/share/man/*", "usr/share/info/*", "usr/share/lintian/*", "usr/share/locale/*", "usr/share/bash-completion/*",
    "usr/share/zsh/*", "usr/share/bug/*", "usr/share/perl/*", "usr/share/perl5/*", "usr/lib/*/perl/*",
    "usr/lib/*/perl5/*", "usr/lib/*/perl-base/*", "usr/lib/*/gconv/*", "usr/lib/systemd/*", "usr/lib/udev/*",
    "usr/share/gcc/*", "usr/share/base-files/*", "usr/bin/cpan*", "usr/share/gdb/*", "usr/lib/valgrind/*",
    "etc/init.d/*", "etc/default/*", "etc/update-motd.d/*", "etc/modprobe.d/*")


TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}  # Debian's word: GNU's, of folders and tools
LISTS = Path("/var/lib/apt/lists")  # what `apt-get update` brings to this machine


class Refused(Exception):
    """Says what is wrong and what to do."""


def native():
    """The architecture of this machine's packages."""
    return subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()


@dataclass
class Package:
    name: str
    control: str             # as it stands in the package
    sha256: str              # of the .deb
    tree: Tree = field(repr=False)

    def field(self, name):
        match = re.search(rf"^{name}: (.*)$", self.control, re.MULTILINE)
        return match[1] if match else ""


class Archive:
    """What apt knows of one architecture, apart from what is installed here. `cache` keeps .deb files, and for another
    architecture than this machine's the lists of its packages: dpkg need not be told of it (--add-architecture)."""

    def __init__(self, architecture, cache):
        self.architecture = architecture
        self._folder = Path(cache) / architecture
        (self._folder / "debs").mkdir(parents=True, exist_ok=True)
        (self._folder / "nothing-installed").write_text("")
        self._listed = {}  # what closure() saw of them: {name of a .deb: (bytes, "MD5Sum:…" or another sum)}
        self._lists = LISTS
        if architecture != native():
            self._lists = self._folder / "lists"
            with self._alone():
                self._follow()

    @contextmanager
    def _alone(self):
        """apt is told of no locks, and two of it would write the same files."""
        with open(self._folder / "lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _follow(self):
        """Lists of its own, made anew when this machine's are: what `apt-get update` has seen counts for both."""
        releases = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(LISTS.glob("*Release")))).hexdigest()
        mark = self._folder / "lists-made-beside"
        if mark.exists() and mark.read_text() == releases:
            return
        (self._lists / "partial").mkdir(parents=True, exist_ok=True)
        done = self._apt("update", "-o", "APT::Update::Error-Mode=any")
        if done.returncode:
            raise Refused(f"apt-get update for {self.architecture} failed; the sources of this machine must have that "
                          f"architecture, which Ubuntu keeps at ports.ubuntu.com:\n{done.stderr.strip()}")
        mark.write_text(releases)

    def _apt(self, *arguments, folder=None):
        """Debian's archive as this machine's sources name it; nothing of this machine is touched."""
        return subprocess.run(
            ["apt-get", "-o", f"Dir::State::status={self._folder}/nothing-installed", "-o", "Debug::NoLocking=1",
             "-o", f"Dir::State::Lists={self._lists}",
             # apt names no address of what this machine has kept of an apt-get install of its own, and closure() asks for all.
             "-o", f"Dir::Cache::archives={self._folder}/nothing-fetched",
             "-o", f"Dir::Cache::pkgcache={self._folder}/pkgcache.bin", "-o", "Dir::Cache::srcpkgcache=",
             "-o", f"APT::Architecture={self.architecture}", "-o", f"APT::Architectures={self.architecture}",
             "-o", "APT::Install-Recommends=0", "-o", "APT::Sandbox::User=root", "-qq", *arguments],
            cwd=folder or self._folder, capture_output=True, text=True, check=False,
            env=os.environ | {"LC_ALL": "C.UTF-8"})

    def closure(self, roots):
        """Name, version and architecture of `roots` and of all that they depend on."""
        done = self._apt("install", "--print-uris", "--yes", *sorted(roots))
        if done.returncode:
            raise Refused(f"apt finds no way to install {' '.join(sorted(roots))} for {self.architecture}; "
                          f"`apt-get update` may help:\n{done.stderr.strip()}")
        found = {}
        for line in done.stdout.splitlines():
            if line.startswith("'"):
                _, name, size, *checksum = line.split()
                found[name] = (int(size), "".join(checksum))
        self._listed |= found
        return [re.match(r"([^_]+)_([^_]+)_([^_]+)\.deb", name).groups() for name in found]

    def _is_whole(self, file):
        """Whether it is there, and what the archive's signed list says of it: a power cut leaves files of the right name and
        even of the right length."""
        if not file.exists():
            return False
        size, checksum = self._listed.get(file.name, (file.stat().st_size, ""))
        kind, _, value = checksum.partition(":")
        kind = kind.lower().removesuffix("sum")
        return file.stat().st_size == size and (
            kind not in hashlib.algorithms_available or
            hashlib.new(kind, file.read_bytes(), usedforsecurity=False).hexdigest() == value)

    def fetch(self, packages):
        """The paths of the .deb files of what closure() named, held against the sums in the archive's signed list: those of
        an earlier run too."""
        files = {self._folder / "debs" / f"{name}_{version}_{architecture}.deb": f"{name}={version.replace('%3a', ':')}"
                 for name, version, architecture in packages}
        with self._alone():
            if missing := [file for file in files if not self._is_whole(file)]:
                self._download({file: files[file] for file in missing})
        return list(files)

    def _download(self, files):
        # apt writes under the name of the whole file from the first byte on, and after an interruption or on a full disk
        # half of one is left. Here it goes on with that the next time; one that is as long as the whole it takes for it.
        fetching = self._folder / "fetching"
        fetching.mkdir(exist_ok=True)
        for file in files:
            file.unlink(missing_ok=True)
            half = fetching / file.name
            if half.exists() and half.stat().st_size >= self._listed.get(file.name, (0, ""))[0] and not self._is_whole(half):
                half.unlink()
        done = self._apt("download", *files.values(), folder=fetching)
        for file in files if done.returncode == 0 else []:
            if self._is_whole(fetching / file.name):
                (fetching / file.name).replace(file)
        if lacking := [file.name for file in files if not file.exists()]:
            raise Refused(f"apt-get download of {' '.join(lacking)} failed; `apt-get update` may help:\n{done.stderr.strip()}")


def owners_here(libraries):
    """The installed packages that the shared libraries or headers at these paths come from."""
    # /lib is a link, and dpkg knows a file by the path that its package was built with.
    spellings = {spelling for path in libraries for spelling in (path, path.removeprefix("/usr"), "/usr" + path)}
    done = subprocess.run(["dpkg-query", "--search", *sorted(spellings)], capture_output=True, text=True, check=False)
    found = {}
    for line in done.stdout.splitlines():
        packages, _, path = line.partition(": ")
        found[os.path.realpath(path)] = packages.split(",")[0].split(":")[0]
    missing = [path for path in libraries if os.path.realpath(path) not in found]
    if missing:
        raise Refused(f"{len(missing)} of these files are of no package: {' '.join(missing[:5])}")
    return {found[os.path.realpath(path)] for path in libraries}


def described_here(names):
    """{name: (version, architecture, source package)} of installed packages."""
    done = subprocess.run(["dpkg-query", "--show", "--showformat", "${Package} ${Version} ${Architecture} ${source:Package}\\n",
                           *sorted(names)], capture_output=True, text=True, check=True)
    return {name: (version, architecture, source)
            for name, version, architecture, source in map(str.split, done.stdout.splitlines())}


def unpack(deb):
    """One package as it goes into an image."""
    def dpkg_deb(option):
        return subprocess.run(["dpkg-deb", option, deb], capture_output=True, check=True).stdout
    control = dpkg_deb("--field").decode()
    name = re.search(r"^Package: (.*)$", control, re.MULTILINE)[1]
    sha256 = subprocess.run(["sha256sum", deb], capture_output=True, text=True, check=True).stdout.split()[0]
    tree = Tree()
    with tarfile.open(fileobj=io.BytesIO(dpkg_deb("--fsys-tarfile"))) as archive:
        for info in archive:
            path = normal(info.name)
            if not path or path in {f"usr/{name}" for name in MERGED} and info.isdir() or _left_out(path):
                continue
            data = archive.extractfile(info).read() if info.isreg() else None
            target = normal(info.linkname) if info.islnk() else info.linkname
            if not (info.isdir() or info.isreg() or info.issym() or info.islnk()):
                raise Refused(f"{deb.name} has a file of a kind that no image of ours needs: {path}")
            # Nothing in the image is for a program to become somebody else by.
            tree.add(path, info.type, info.mode & ~0o6000, data, target)
    return Package(name, control, sha256, tree)


def _left_out(path):
    documentation = path.startswith("usr/share/doc/") and path.count("/") >= 4 and not path.endswith("/copyright")
    return documentation or any(fnmatch.fnmatch(path, pattern) for pattern in LEFT_OUT)


def needed_packages(packages, named, programs):
    """Of `packages` those that `named` lists, and those that the loader would look into for `programs` (bytes of ELF
    files) or for what the named ones bring. The rest of a dependency closure serves scripts that are never run here."""
    libraries = {}  # soname: package
    for package in packages:
        for path, (info, data) in package.tree.entries.items():
            if data is not None and elf.is_elf(data) and path.startswith("usr/lib/"):
                libraries.setdefault(_soname(path, data), (package, data))
    kept = {package.name: package for package in packages if package.name in named}
    waiting = list(programs) + [data for package in kept.values() for _, data in package.tree.entries.values()
                                if data is not None and elf.is_elf(data)]
    seen = set()
    while waiting:
        program = elf.Program(waiting.pop())
        for soname in program.needed + ([program.interpreter.rpartition("/")[2]] if program.interpreter else []):
            if soname in seen:
                continue
            seen.add(soname)
            if soname not in libraries:
                raise Refused(f"no package that was fetched has {soname}")
            package, data = libraries[soname]
            kept[package.name] = package
            waiting.append(data)
    _keep_copyrights(kept, packages)
    return [kept[name] for name in sorted(kept)], seen


def _soname(path, data):
    return elf.Program(data).soname or path.rpartition("/")[2]


def _keep_copyrights(kept, packages):
    """Packages of one source share a copyright file: the others' folder is a link to it."""
    for package in list(kept.values()):
        info, _ = package.tree.entries.get(f"usr/share/doc/{package.name}", (None, None))
        if info is not None and info.issym():
            other = joined(info.name, info.linkname).rpartition("/")[2]
            kept |= {candidate.name: candidate for candidate in packages if candidate.name == other}


def without_idle_libraries(package, needed, named):
    """A package's tree without the shared libraries that nothing in the image is linked to."""
    if package.name in named:
        return package.tree
    tree = Tree()
    idle = set()
    for path, (info, data) in package.tree.entries.items():
        if data is not None and elf.is_elf(data) and _soname(path, data) not in needed:
            idle.add(path)
    for path, entry in package.tree.entries.items():
        info = entry[0]
        leads_to = joined(path, info.linkname) if info.issym() else normal(info.linkname) if info.islnk() else path
        if path not in idle and leads_to not in idle:
            tree.entries[path] = entry
    return tree
