"""tools/install: what building takes and what only tests do, on a machine whose dpkg and apt are played. And what
tools/images has of apt."""

import hashlib
import os
import subprocess
import sys
import tempfile
import unittest
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from unittest import mock

from bed.control_plane import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tools"))
from image import source  # noqa: E402
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

    def test_a_blank_in_the_name_of_the_folder_is_no_end_of_it(self):
        tree = Path(self.enterContext(tempfile.TemporaryDirectory())) / "my trees" / "heddle"
        (tree / "cmake").mkdir(parents=True)
        (tree / "cmake/precompiled.h").write_text("#include <cstddef>\n")
        (tree / "cmake/Precompiled.cmake").write_text((REPOSITORY / "cmake/Precompiled.cmake").read_text())
        (tree / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(small LANGUAGES CXX)\n"
                                             "include(cmake/Precompiled.cmake)\n")
        for command in (["cmake", "-S", tree, "-B", tree / "build", "-G", "Ninja", "-DCMAKE_CXX_COMPILER=clang++"],
                        ["ninja", "-C", tree / "build", "heddle_pch"]):
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex((tree / "build/precompiled.pch.sum").read_text(), "^[0-9a-f]{64} ")

    def test_cmake_reads_the_batches_of_a_folder_with_a_blank_in_its_name(self):
        tree = Path(self.enterContext(tempfile.TemporaryDirectory())) / "my trees"
        for folder in ("cmake", "base"):
            (tree / folder).mkdir(parents=True)
        (tree / "cmake/batches.py").write_text((REPOSITORY / "cmake/batches.py").read_text())
        for name in ("one", "two"):
            (tree / f"base/{name}.cc").write_text(f"int {name.title()}() {{ return 1; }}\n")
        subprocess.run(["/usr/bin/python3", tree / "cmake/batches.py", tree / "out", "8"], check=True, timeout=60)
        line = (tree / "out/batches.cmake").read_text().splitlines()[0]
        self.assertEqual(line, f'set(BATCH_base/one.cc "{tree}/out/base_0.cc")')

    def test_two_that_need_a_go_at_once_on_a_fresh_machine_install_one(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "go").write_text("#!/bin/sh\necho go1.1\n")
        (folder / "installed-go").write_text("#!/bin/sh\n[ $1 != env ] || echo go1.26.6\n[ $1 != list ] || echo /sources\n")
        (folder / "pip").write_text(f"#!/bin/sh\nsleep 1\ncp {folder}/installed-go ${{0%pip}}go\n")
        (folder / "python3").write_text(f"#!/bin/sh\necho made >>{folder}/log\nmkdir -p $3/bin\ncp {folder}/pip $3/bin\n")
        for name in ("go", "installed-go", "pip", "python3"):
            (folder / name).chmod(0o755)
        environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "HEDDLE_CACHE": str(folder / "cache")}
        both = [subprocess.Popen([REPOSITORY / "tools" / "control-plane", "--monitoring-crds", "--sources"], env=environment,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
        for one in both:
            said, why = one.communicate(timeout=60)
            self.assertEqual((one.returncode, said), (0, "monitoring_crds /sources\n"), why)
        self.assertEqual((folder / "log").read_text(), "made\n")


class WithoutGitTest(unittest.TestCase):
    """A release's archive has no history, and its reader perhaps no git."""

    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.said = []
        self.enterContext(mock.patch.dict(os.environ, {"PATH": str(self.folder)}))
        os.environ.pop("SOURCE_DATE_EPOCH", None)

    def git(self, script):
        (self.folder / "git").write_text(f"#!/bin/sh\n{script}\n")
        (self.folder / "git").chmod(0o755)

    def commit(self):
        return source.commit(REPOSITORY, self.said.append)

    def test_the_rules_are_checked_all_the_same(self):
        for script in (None, "echo 'fatal: not a git repository' >&2; exit 128", "exit 0"):
            if script:
                self.git(script)
            done = subprocess.run(["/usr/bin/python3", REPOSITORY / "tests/tidy/tidy.py"], capture_output=True, text=True,
                                  check=False, timeout=60)
            self.assertEqual(done.stderr, "")
            self.assertRegex(done.stdout, r"tidy: \d{4,} files")

    def test_an_image_says_in_one_sentence_that_its_commit_is_not_known(self):
        self.assertEqual(self.commit(), ("unknown", 0))
        self.git("echo 'fatal: detected dubious ownership' >&2; exit 128")
        self.assertEqual(self.commit(), ("unknown", 0))
        self.assertEqual(len(self.said), 2)
        self.assertIn("git is not installed", self.said[0])
        self.assertIn("dubious ownership", self.said[1])
        os.environ["SOURCE_DATE_EPOCH"] = "12"
        self.assertEqual(self.commit(), ("unknown", 12))

    def test_an_archive_says_what_git_wrote_into_it(self):
        with mock.patch.object(source, "ARCHIVED", "f00 7"):
            self.assertEqual(self.commit(), ("f00", 7))
            # Unpacked in a repository that does not know it.
            self.git("[ $3 = log ] && echo bad 8 || exit 1")
            self.assertEqual(self.commit(), ("f00", 7))
        self.git("[ $3 != log ] || echo ba5 9")
        self.assertEqual(self.commit(), ("ba5", 9))
        self.assertEqual(self.said, [])
        self.assertIn("tools/image/source.py export-subst", (REPOSITORY / ".gitattributes").read_text())

    def test_krew_and_images_ask_so(self):
        for name, ask in (("krew", "seconds_of_commit"), ("images", "commit")):
            tool = module_from_spec(spec_from_loader(name, SourceFileLoader(name, str(REPOSITORY / "tools" / name))))
            tool.__spec__.loader.exec_module(tool)
            with mock.patch.object(tool, "say", self.said.append):
                self.assertEqual(getattr(tool, ask)(), 0 if name == "krew" else ("unknown", 0))
        self.assertEqual(len(self.said), 2)


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

    def test_what_is_not_as_the_archive_lists_it_is_fetched_anew(self):
        """Of the right name, and after a power cut even of the right length: apt takes that for the whole."""
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "apt-get").write_text(f"""#!/bin/sh
case "$*" in
  *print-uris*) echo "'http://deb.example/one_1_all.deb' one_1_all.deb 5 MD5Sum:{hashlib.md5(b'whole').hexdigest()}" ;;
  *) echo fetched >>{folder}/log; [ -s one_1_all.deb ] || printf %s "${{BAD:-whole}}" >one_1_all.deb ;;
esac
""")
        (folder / "apt-get").chmod(0o755)
        with mock.patch.dict(os.environ, {"PATH": f"{folder}:{os.environ['PATH']}"}):
            archive = Archive(native(), folder / "cache")
            packages = archive.closure({"one"})
            debs = folder / "cache" / native() / "debs"
            for left in ("who", "wh\0le"):
                for place in (debs, debs.parent / "fetching"):
                    place.mkdir(exist_ok=True)
                    (place / "one_1_all.deb").write_text("wh\0le" if place != debs else left)
                file, = archive.fetch(packages)
                self.assertEqual(file.read_text(), "whole")
            archive.fetch(packages)
            self.assertEqual((folder / "log").read_text(), "fetched\n" * 2)
            file.unlink()
            with mock.patch.dict(os.environ, {"BAD": "wh\1le"}), self.assertRaises(Refused):
                archive.fetch(packages)
            self.assertFalse(file.exists())
            file, = archive.fetch(packages)
            self.assertEqual(file.read_text(), "whole")

    def test_what_this_machine_keeps_of_its_own_installing_is_asked_for_too(self):
        """apt-get --print-uris leaves out what lies in its cache, /var/cache/apt/archives unless it is told."""
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "apt-get").write_text(f"#!/bin/sh\necho \"$*\" >>{folder}/log\n")
        (folder / "apt-get").chmod(0o755)
        with mock.patch.dict(os.environ, {"PATH": f"{folder}:{os.environ['PATH']}"}):
            Archive(native(), folder / "cache").closure({"one"})
        self.assertIn(f"Dir::Cache::archives={folder}/cache/", (folder / "log").read_text())
