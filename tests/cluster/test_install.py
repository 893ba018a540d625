"""tools/install: what building takes and what only tests do, on a machine whose dpkg and apt are played. And what
tools/images has of apt."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from bed.control_plane import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tools"))
from image.debian import Archive, Refused, native  # noqa: E402

PACKAGES = REPOSITORY / "tools" / "apt-packages"
FOR_ARM64 = {"g++-aarch64-linux-gnu", "qemu-user"}
# What nobody should have to take who only wants to look at the demo, or to build an image.
FOR_TESTS = {"chromium", "qemu-system-x86", "opensm", "lldpd", "lldpad", "redis-server", "clang", "clang-tidy", "runc"}
FOR_BUILDING = {"g++", "cmake", "libgrpc++-dev", "protobuf-compiler-grpc", "libibverbs-dev", "python3-venv", "openssl", "binutils"}


def words(text):
    return [word for line in text.splitlines() for word in line.partition("#")[0].split()]


class InstallingPackagesTest(unittest.TestCase):

    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.there, self.unknown, self.log = self.folder / "there", self.folder / "unknown", self.folder / "log"
        for file in (self.there, self.unknown, self.log):
            file.write_text("")
        self.plays("dpkg-query", f"while read -r one; do echo \"ii  $one\"; done <{self.there}")
        self.plays("apt-get", f"echo \"$*\" >>{self.log}")
        self.plays("apt-cache", f"! grep -qxF -- \"${{@: -1}}\" {self.unknown}")
        self.plays("sudo", "\"$@\"")

    def plays(self, name, script):
        (self.folder / name).write_text(f"#!/bin/bash\n{script}\n")
        (self.folder / name).chmod(0o755)

    def install(self, *arguments):
        return subprocess.run([REPOSITORY / "tools" / "install", *arguments], capture_output=True, text=True, check=False,
                              timeout=30, env={**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"})

    def missing(self, *arguments):
        done = self.install(*arguments, "--check")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(self.log.read_text(), "", "a check installs nothing")
        return set(done.stderr.rpartition("missing: ")[2].split())

    def test_building_takes_a_part_and_tests_take_all(self):
        build, cross, everything = self.missing("--build"), self.missing("--arm64"), self.missing()
        self.assertEqual(cross - build, FOR_ARM64)
        self.assertLessEqual(build, cross)
        self.assertEqual(cross & FOR_TESTS, set())
        self.assertEqual(everything, set(words(PACKAGES.read_text())))
        self.assertLessEqual(FOR_BUILDING, build)
        self.assertLess(build, everything)
        self.assertEqual(build & FOR_TESTS, set())
        self.assertLessEqual(FOR_TESTS, everything)

    def test_no_package_is_named_twice(self):
        named = words(PACKAGES.read_text())
        self.assertEqual(len(named), len(set(named)))

    def test_where_all_is_there_nothing_is_touched(self):
        self.there.write_text("\n".join(words(PACKAGES.read_text())) + "\n")
        for arguments in ((), ("--build",), ("--arm64",), ("--check",), ("--build", "--check")):
            self.assertEqual(self.install(*arguments).returncode, 0)
        self.assertEqual(self.log.read_text(), "")

    def test_only_what_is_missing_is_installed(self):
        self.there.write_text("\n".join(self.missing("--build") - {"mold", "skopeo"}) + "\n")
        self.assertEqual(self.install("--build").returncode, 0)
        update, install = self.log.read_text().splitlines()
        self.assertTrue(update.endswith("update"))
        self.assertEqual(install.partition("--no-install-recommends ")[2].split(), ["mold", "skopeo"])

    def test_a_distribution_without_one_of_them_gets_the_others(self):
        """Ubuntu has chromium as a snap alone."""
        self.there.write_text("\n".join(self.missing() - {"chromium", "runc"}) + "\n")
        self.unknown.write_text("chromium\n")
        done = self.install()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("has no package chromium", done.stderr)
        self.assertEqual(self.log.read_text().splitlines()[-1].partition("--no-install-recommends ")[2].split(), ["runc"])

    def test_without_the_network_nobody_is_told_that_the_distribution_has_no_compiler(self):
        """apt-get update ends with 0 then."""
        said = "W: Failed to fetch http://deb.debian.org/debian/dists/bookworm/InRelease  Temporary failure resolving 'deb.debian.org'"
        self.plays("apt-get", f"echo \"$*\" >>{self.log}; [[ ${{@: -1}} != update ]] || echo \"{said}\"")
        self.there.write_text("\n".join(self.missing("--build") - {"g++", "mold"}) + "\n")
        self.unknown.write_text("g++\n")
        done = self.install("--build")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("could not read all sources of this machine, and knows no package g++", done.stderr)
        self.assertIn("Temporary failure resolving", done.stderr)
        self.assertNotIn("this distribution has no package", done.stderr)
        # One source that is ill keeps nobody from what the others have.
        self.unknown.write_text("")
        self.assertEqual(self.install("--build").returncode, 0)
        self.assertEqual(self.log.read_text().splitlines()[-1].partition("--no-install-recommends ")[2].split(), ["g++", "mold"])

    def test_apt_hears_of_the_proxy_through_sudo(self):
        self.plays("id", "echo 1000")
        self.plays("sudo", "[[ $1 == -v ]] || env -i PATH=\"$PATH\" \"$@\"")
        self.plays("apt-get", f"echo \"$http_proxy $https_proxy $no_proxy\" >>{self.log}")
        self.there.write_text("\n".join(set(words(PACKAGES.read_text())) - {"mold"}) + "\n")
        with mock.patch.dict(os.environ, {"http_proxy": "http://proxy:3128", "HTTPS_PROXY": "http://other:1", "no_proxy": "corp.example"}):
            os.environ.pop("https_proxy", None)
            self.assertEqual(self.install("--build").returncode, 0)
        self.assertEqual(self.log.read_text().splitlines(), ["http://proxy:3128 http://other:1 corp.example"] * 2)

    def test_an_argument_that_is_none_is_refused(self):
        done = self.install("--biuld")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("--biuld", done.stderr)

    def test_make_asks_for_as_much_as_it_needs(self):
        def installs(*target):
            said = subprocess.run(["make", "--dry-run", "-C", REPOSITORY, *target], capture_output=True, text=True, check=True)
            return [line.strip() for line in said.stdout.splitlines() if line.startswith("tools/install")]
        for target in ("release", "images", "demo", "control-plane"):
            self.assertEqual(installs(target), ["tools/install --build"], target)
        self.assertEqual(installs("images", "MACHINE=amd64", "ARCH=arm64"), ["tools/install --arm64"])
        self.assertEqual(installs("images", "MACHINE=amd64", "ARCH=all"), ["tools/install --build", "tools/install --arm64"])
        for target in ("test", "check-all", "e2e", "shell"):
            self.assertEqual(installs(target)[0], "tools/install", target)


class BuildingTest(unittest.TestCase):

    def test_as_many_compilers_run_as_somebody_says(self):
        """Eight on a machine of eight cores and 8 GB would not end well."""
        tree = Path(self.enterContext(tempfile.TemporaryDirectory()))
        for folder in ("tools", "bin", "build/release"):
            (tree / folder).mkdir(parents=True)
        (tree / "CMakePresets.json").write_text("{}")
        (tree / "build/release/build.ninja").write_text("")
        (tree / "tools/build").write_text((REPOSITORY / "tools" / "build").read_text())
        (tree / "bin/ninja").write_text(f"#!/bin/sh\necho \"$*\" >>{tree}/log\n")
        (tree / "bin/ninja").chmod(0o755)
        for jobs in ("", "2"):
            subprocess.run(["bash", tree / "tools/build", "release", "a", "b"], capture_output=True, check=True, timeout=60,
                           env={**os.environ, "PATH": f"{tree}/bin:{os.environ['PATH']}", "JOBS": jobs})
        self.assertEqual((tree / "log").read_text(), "-C build/release a b\n-C build/release -j2 a b\n")
        said = subprocess.run(["make", "--dry-run", "-C", REPOSITORY, "release", "JOBS=2"], capture_output=True, text=True, check=True)
        self.assertIn("tools/build release", said.stdout)


class FetchingPackagesTest(unittest.TestCase):

    def test_half_a_package_that_an_interruption_has_left_is_not_taken_for_one(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "apt-get").write_text("#!/bin/sh\nprintf %s \"${HALF:-whole}\" >one_1%3a2_all.deb\n[ -z \"${HALF-}\" ]\n")
        (folder / "apt-get").chmod(0o755)
        with mock.patch.dict(os.environ, {"PATH": f"{folder}:{os.environ['PATH']}"}):
            archive = Archive(native(), folder / "cache")
            with mock.patch.dict(os.environ, {"HALF": "half"}), self.assertRaises(Refused):
                archive.fetch([("one", "1%3a2", "all")])
            file, = archive.fetch([("one", "1%3a2", "all")])
        self.assertEqual(file.read_text(), "whole")
