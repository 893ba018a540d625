"""What tools/images makes: the same bytes twice, small, not root's, and whole. No cluster."""

import gzip
import hashlib
import io
import json
import shutil
import socket
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

import pod_network
from bed import REPOSITORY
from bed.process import run
from bed.testing import options

sys.path.insert(0, str(REPOSITORY / "tools"))
from image import elf  # noqa: E402
from image.compiled import headers, packages  # noqa: E402
from image.debian import TRIPLETS  # noqa: E402
from image.oci import Image, archive_of  # noqa: E402
from image.sbom import spdx  # noqa: E402
from image.tree import Tree, joined, normal  # noqa: E402

LARGEST = 120e6  # bytes, unpacked


class Archive:
    """What a file of tools/images holds."""

    def __init__(self, path):
        self.path = path
        with tarfile.open(path) as archive:
            self.files = {info.name: archive.extractfile(info).read() for info in archive}
        index = json.loads(self.files["index.json"])
        self.name = index["manifests"][0]["annotations"]["io.containerd.image.name"]
        self.manifest = self.blob(index["manifests"][0])
        self.config = self.blob(self.manifest["config"])
        self.members = {}  # as they lie over each other: path: (kind, mode, owner, data or target)
        for layer in self.manifest["layers"]:
            tar = gzip.decompress(self.files["blobs/sha256/" + layer["digest"].partition(":")[2]])
            with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
                for info in archive:
                    data = archive.extractfile(info).read() if info.isreg() else info.linkname
                    self.members[info.name] = (info.type, info.mode, (info.uid, info.gid), data)

    def blob(self, descriptor):
        return json.loads(self.files["blobs/sha256/" + descriptor["digest"].partition(":")[2]])

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


class Images(unittest.TestCase):
    """Each archive in --images: of this machine's architecture, and of another where tools/test-arm64 has made it."""

    OUTSIDE = True  # of the bed's network: tools/images downloads packages that this machine has not at hand

    @classmethod
    def setUpClass(cls):
        cls.archives = [Archive(path) for architecture in TRIPLETS
                        for path in sorted(options.images.glob(f"heddle-*-{architecture}.tar"))]
        assert cls.archives, f"no image of heddle in {options.images}"

    def each(self):
        for archive in self.archives:
            with self.subTest(archive.path.name):
                yield archive

    def test_the_same_programs_make_the_same_bytes(self):
        made = []
        for zone in ("UTC", "Asia/Tokyo"):
            with tempfile.TemporaryDirectory() as folder:
                run([REPOSITORY / "tools" / "images", "--bin", options.binaries, "--out", folder], timeout=300,
                    environment={"TZ": zone})
                made.append({file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in Path(folder).iterdir()})
        self.assertEqual(len(made[0]), 2)
        self.assertEqual(made[0], made[1])

    def test_packages_that_are_not_at_hand_can_be_asked_for(self):
        """Behind the bed's bridge nobody is there to ask."""
        self.assertNotIn(pod_network.BRIDGE, [name for _, name in socket.if_nameindex()])

    def test_another_program_reads_it(self):
        for archive in self.each():
            architecture = archive.config["architecture"]
            said = json.loads(run(["skopeo", f"--override-arch={architecture}", "inspect", f"oci-archive:{archive.path}"]).stdout)
            self.assertEqual((said["Architecture"], said["Os"]), (architecture, "linux"))
            self.assertIn(f"-{architecture}.tar", archive.path.name)
            with tempfile.TemporaryDirectory() as folder:
                # It holds every digest against its blob.
                run(["skopeo", "copy", "--quiet", f"oci-archive:{archive.path}", f"dir:{folder}/a"])
                run(["skopeo", "copy", "--quiet", f"docker-archive:{archive.path}", f"dir:{folder}/b"])

    def test_one_file_of_two_architectures_gives_each_machine_its_own(self):
        """Of images as small as can be, since here may be no programs for another architecture."""
        images = []
        for architecture in ("amd64", "arm64"):
            tree = Tree()
            tree.add_file("usr/bin/whoami", architecture.encode(), 0o755)
            images.append(Image("heddle:0", architecture, 0, "1:1", "/usr/bin", {}))
            images[-1].add_layer("one file", tree.tar(0))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "both.tar")
            data, digest = archive_of(images)
            self.assertEqual((data, digest), archive_of(images))
            file.write_bytes(data)
            for architecture in ("amd64", "arm64"):
                out = Path(folder, architecture)
                run(["skopeo", f"--override-arch={architecture}", "copy", "--quiet", f"oci-archive:{file}", f"dir:{out}"])
                layer = json.loads((out / "manifest.json").read_text())["layers"][0]["digest"].partition(":")[2]
                with tarfile.open(out / layer) as tar:
                    self.assertEqual(tar.extractfile("usr/bin/whoami").read(), architecture.encode())
            # As a registry gets it: the index and both, under the digest that tools/images says.
            run(["skopeo", "copy", "--quiet", "--all", f"oci-archive:{file}", f"dir:{folder}/all"])
            index = Path(folder, "all", "manifest.json").read_bytes()
            self.assertEqual("sha256:" + hashlib.sha256(index).hexdigest(), digest)
            self.assertEqual([manifest["platform"]["architecture"] for manifest in json.loads(index)["manifests"]],
                             ["amd64", "arm64"])

    def test_it_is_small_and_not_roots_and_named_as_the_chart_asks_for_it(self):
        version = run(["sed", "-n", "s/^appVersion: *//p", REPOSITORY / "charts/heddle/Chart.yaml"]).stdout.strip()
        for archive in self.each():
            size = sum(len(data) for kind, _, _, data in archive.members.values() if kind == tarfile.REGTYPE)
            self.assertLess(size, LARGEST)
            self.assertEqual(archive.config["config"]["User"], "65532:65532")
            self.assertEqual(archive.name, f"docker.io/library/heddle:{version}")
            self.assertEqual([path for path, (kind, mode, owner, _) in archive.members.items()
                              if owner != (0, 0) or mode & 0o6000 or (mode & 0o002 and kind == tarfile.REGTYPE)], [])

    def test_every_program_and_library_finds_what_it_is_linked_to(self):
        folders = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu")
        for archive in self.each():
            machine, checked = archive.config["architecture"], 0
            for path, (kind, _, _, data) in archive.members.items():
                if kind != tarfile.REGTYPE or not elf.is_elf(data):
                    continue
                program = elf.Program(data)
                self.assertEqual(program.machine, machine, path)
                if program.interpreter:
                    self.assertTrue(elf.is_elf(archive.file(normal(program.interpreter))), path)
                for soname in program.needed:
                    place = next((f"{folder}/{soname}" for folder in folders if f"{folder}/{soname}" in archive.members), None)
                    self.assertTrue(place and elf.is_elf(archive.file(place)), f"{path} needs {soname}")
                checked += 1
            self.assertGreater(checked, 50)

    def test_links_lead_somewhere(self):
        for archive in self.each():
            dangling = [path for path, (kind, _, _, target) in archive.members.items()
                        if kind == tarfile.SYMTYPE and joined(path, target) not in archive.members
                        and not path.startswith(("etc/os-release", "usr/share/doc/"))]
            self.assertEqual(dangling, [])

    def test_a_program_that_does_not_start_makes_no_image(self):
        """A library that Debian's package lost would show on a node: here it shows before."""
        with tempfile.TemporaryDirectory() as folder:
            for program in ("heddle-nodeagent", "heddle-operator", "heddle-extender"):
                shutil.copy(options.binaries / program, folder)
            shutil.copy("/usr/bin/false", Path(folder, "kubectl-heddle"))
            done = run([REPOSITORY / "tools" / "images", "--bin", folder, "--out", f"{folder}/out"], timeout=300, check=False)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("kubectl-heddle for", done.stderr)
            self.assertIn("does not start", done.stderr)
            self.assertFalse(Path(folder, "out").exists())

    def test_what_is_compiled_in_is_what_our_libraries_read_outside_of_the_tree(self):
        log = ("CMakeFiles/heddle_base.dir/base/check.cc.o: #deps 4, deps mtime 1 (VALID)\n    ../../base/check.cc\n"
               "    /src/base/check.h\n    generated/api.h\n    /usr/lib/gcc/x/12/../../../../include/c++/12/map\n\n"
               "tests/CMakeFiles/base_test.dir/x.cc.o: #deps 1, deps mtime 1 (VALID)\n    /usr/include/gtest/gtest.h\n\n"
               "CMakeFiles/heddle_gone.dir/y.cc.o: #deps 1, deps mtime 1 (STALE)\n    /usr/include/gone.h\n")
        self.assertEqual(headers(log, Path("/src/build/release"), Path("/src")), ["/usr/include/c++/12/map"])

    def test_a_bill_without_a_build_tree_says_what_it_lacks(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIsNone(packages(Path(folder, "bin"), None))
        bill = spdx("heddle", "0", "1970-01-01T00:00:00Z", "sha256:0", "debian-12", [], {}, "Apache-2.0", None)
        self.assertIn("compiled into", bill["creationInfo"]["comment"])
        self.assertEqual(len(bill["packages"]), 1)

    def test_the_bill_names_every_package_and_program(self):
        for archive in self.each():
            bill = json.loads((options.images / archive.path.name.replace(".tar", ".spdx.json")).read_text())
            listed = {package["name"]: package for package in bill["packages"]}
            there = {path.rpartition("/")[2] for path, (kind, *_) in archive.members.items()
                     if path.startswith("var/lib/dpkg/status.d/") and kind == tarfile.REGTYPE}
            linked = {relation["relatedSpdxElement"] for relation in bill["relationships"]
                      if relation["relationshipType"] == "STATIC_LINK"}
            compiled = {name for name, package in listed.items() if package["SPDXID"] in linked}
            self.assertEqual(set(listed) - {"heddle"} - compiled, there)
            self.assertEqual(len(linked), len(compiled))
            self.assertLessEqual({"nlohmann-json3-dev", "libcli11-dev", "libexpected-dev"}, compiled)
            self.assertTrue(any(name.startswith("libboost") for name in compiled), compiled)
            self.assertRegex(listed["nlohmann-json3-dev"]["externalRefs"][0]["referenceLocator"],
                             r"^pkg:deb/debian/nlohmann-json3-dev@3\.")
            self.assertNotIn("comment", bill["creationInfo"])
            locator = listed["libssl3"]["externalRefs"][0]["referenceLocator"]
            self.assertRegex(locator, r"^pkg:deb/debian/libssl3@3\.")
            self.assertIn(f"arch={archive.config['architecture']}&", locator)
            for file in bill["files"]:
                wanted = next(c["checksumValue"] for c in file["checksums"] if c["algorithm"] == "SHA256")
                self.assertEqual(hashlib.sha256(archive.file(file["fileName"][1:])).hexdigest(), wanted)
            self.assertEqual(len(bill["files"]), 4)
            # Each package's licence goes with it.
            for name in there:
                self.assertIn(b"icen", archive.file(f"usr/share/doc/{name}/copyright"), name)
