"""What tools/images makes: the same bytes twice, small, not root's, and whole. No cluster."""

import gzip
import hashlib
import io
import json
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

from bed import REPOSITORY
from bed.process import run
from bed.testing import options

sys.path.insert(0, str(REPOSITORY / "tools"))
from image import elf  # noqa: E402
from image.tree import joined, normal  # noqa: E402

LARGEST = 120e6  # bytes, unpacked


class Images(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.archive = next(options.images.glob("heddle-*.tar"))
        with tarfile.open(cls.archive) as archive:
            cls.files = {info.name: archive.extractfile(info).read() for info in archive}
        index = json.loads(cls.files["index.json"])
        cls.name = index["manifests"][0]["annotations"]["io.containerd.image.name"]
        cls.manifest = cls.blob(index["manifests"][0])
        cls.config = cls.blob(cls.manifest["config"])
        cls.members = {}  # as they lie over each other: path: (kind, mode, owner, data or target)
        for layer in cls.manifest["layers"]:
            tar = gzip.decompress(cls.files["blobs/sha256/" + layer["digest"].partition(":")[2]])
            with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
                for info in archive:
                    data = archive.extractfile(info).read() if info.isreg() else info.linkname
                    cls.members[info.name] = (info.type, info.mode, (info.uid, info.gid), data)

    @classmethod
    def blob(cls, descriptor):
        return json.loads(cls.files["blobs/sha256/" + descriptor["digest"].partition(":")[2]])

    def file(self, path):
        """A file's bytes, through links of itself and of its folders."""
        for folder in [path[:at] for at, letter in enumerate(path) if letter == "/"]:
            kind, _, _, target = self.members[folder]
            if kind == tarfile.SYMTYPE:
                return self.file(joined(folder, target) + path[len(folder):])
        kind, _, _, data = self.members[path]
        if kind == tarfile.SYMTYPE:
            return self.file(joined(path, data))
        return self.file(normal(data)) if kind == tarfile.LNKTYPE else data

    def test_the_same_programs_make_the_same_bytes(self):
        made = []
        for zone in ("UTC", "Asia/Tokyo"):
            with tempfile.TemporaryDirectory() as folder:
                run([REPOSITORY / "tools" / "images", "--bin", options.binaries, "--out", folder], timeout=300,
                    environment={"TZ": zone})
                made.append({file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in Path(folder).iterdir()})
        self.assertEqual(len(made[0]), 2)
        self.assertEqual(made[0], made[1])

    def test_another_program_reads_it(self):
        said = json.loads(run(["skopeo", "inspect", f"oci-archive:{self.archive}"]).stdout)
        self.assertEqual((said["Architecture"], said["Os"]), (self.config["architecture"], "linux"))
        with tempfile.TemporaryDirectory() as folder:
            # It holds every digest against its blob.
            run(["skopeo", "copy", "--quiet", f"oci-archive:{self.archive}", f"dir:{folder}/a"])
            run(["skopeo", "copy", "--quiet", f"docker-archive:{self.archive}", f"dir:{folder}/b"])

    def test_it_is_small_and_not_roots_and_named_as_the_chart_asks_for_it(self):
        size = sum(len(data) for kind, _, _, data in self.members.values() if kind == tarfile.REGTYPE)
        self.assertLess(size, LARGEST)
        self.assertEqual(self.config["config"]["User"], "65532:65532")
        version = run(["sed", "-n", "s/^appVersion: *//p", REPOSITORY / "charts/heddle/Chart.yaml"]).stdout.strip()
        self.assertEqual(self.name, f"docker.io/library/heddle:{version}")
        self.assertEqual([path for path, (kind, mode, owner, _) in self.members.items()
                          if owner != (0, 0) or mode & 0o6000 or (mode & 0o002 and kind == tarfile.REGTYPE)], [])

    def test_every_program_and_library_finds_what_it_is_linked_to(self):
        folders = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu")
        machine, checked = self.config["architecture"], 0
        for path, (kind, _, _, data) in self.members.items():
            if kind != tarfile.REGTYPE or not elf.is_elf(data):
                continue
            program = elf.Program(data)
            self.assertEqual(program.machine, machine, path)
            if program.interpreter:
                self.assertTrue(elf.is_elf(self.file(normal(program.interpreter))), path)
            for soname in program.needed:
                place = next((f"{folder}/{soname}" for folder in folders if f"{folder}/{soname}" in self.members), None)
                self.assertTrue(place and elf.is_elf(self.file(place)), f"{path} needs {soname}")
            checked += 1
        self.assertGreater(checked, 50)

    def test_links_lead_somewhere(self):
        dangling = [path for path, (kind, _, _, target) in self.members.items()
                    if kind == tarfile.SYMTYPE and joined(path, target) not in self.members
                    and not path.startswith(("etc/os-release", "usr/share/doc/"))]
        self.assertEqual(dangling, [])

    def test_the_bill_names_every_package_and_program(self):
        bill = json.loads((options.images / self.archive.name.replace(".tar", ".spdx.json")).read_text())
        listed = {package["name"]: package for package in bill["packages"]}
        there = {path.rpartition("/")[2] for path, (kind, *_) in self.members.items()
                 if path.startswith("var/lib/dpkg/status.d/") and kind == tarfile.REGTYPE}
        self.assertEqual(set(listed) - {"heddle"}, there)
        self.assertRegex(listed["libssl3"]["externalRefs"][0]["referenceLocator"], r"^pkg:deb/debian/libssl3@3\.")
        for file in bill["files"]:
            wanted = next(c["checksumValue"] for c in file["checksums"] if c["algorithm"] == "SHA256")
            self.assertEqual(hashlib.sha256(self.file(file["fileName"][1:])).hexdigest(), wanted)
        self.assertEqual(len(bill["files"]), 4)
        # Each package's licence goes with it.
        for name in there:
            self.assertIn(b"icen", self.file(f"usr/share/doc/{name}/copyright"), name)
