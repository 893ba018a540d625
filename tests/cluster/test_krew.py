"""What tools/krew makes: the same bytes twice, taken by krew itself, a program that needs nothing of its machine."""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import yaml

from bed import REPOSITORY
from bed.process import run
from bed.testing import options

sys.path.insert(0, str(REPOSITORY / "tools"))
from image import elf  # noqa: E402

URI = "https://git.example/heddle/heddle-linux-amd64.tar.gz"
BUSYBOX = Path("/bin/busybox")  # busybox-static, as the lab's guests have it
PLAN = ["plan", "--synthetic", "su:2 node:4 gpu:8 rail:8 spine:2", "--parallelism", "tp=8,dp=4"]


def make(out, *arguments, check=True):
    return run([REPOSITORY / "tools" / "krew", "--bin", options.binaries, "--out", out, *arguments], check=check)


class Krew(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        archive, manifest = make(cls.folder / "out", "--uri", URI).stdout.split()
        cls.archive, cls.manifest = Path(archive), Path(manifest)
        cls.tools = Path(run([REPOSITORY / "tools" / "control-plane", "--krew"], timeout=900).stdout.split("\n")[-2])

    def test_the_same_program_makes_the_same_bytes(self):
        again, = make(self.folder / "again").stdout.split()
        self.assertEqual(Path(again).read_bytes(), self.archive.read_bytes())

    def test_it_holds_every_library_that_anything_in_it_needs_and_their_licences(self):
        with tarfile.open(self.archive) as archive:
            files = {info.name: archive.extractfile(info).read() for info in archive if info.isreg()}
        self.assertEqual(files["LICENSE"], (REPOSITORY / "LICENSE").read_bytes())
        programs = {name: elf.Program(data) for name, data in files.items() if elf.is_elf(data)}
        self.assertGreater(len(programs), 5)
        there = {name.removeprefix("lib/") for name in programs}
        for name, program in programs.items():
            self.assertLessEqual(set(program.needed), there, name)
        self.assertGreater(len([name for name in files if name.endswith(".copyright")]), 5)

    def test_krews_own_check_of_manifests_takes_it(self):
        said = run([self.tools / "validate-krew-manifest", "-manifest", self.manifest, "-skip-install"])
        self.assertIn("structural validation OK", said.stderr)
        platform, = yaml.safe_load(self.manifest.read_text())["spec"]["platforms"]
        self.assertEqual((platform["uri"], platform["sha256"]), (URI, hashlib.sha256(self.archive.read_bytes()).hexdigest()))
        # And it would say so if there were something wrong.
        (self.folder / "bad").mkdir()
        bad = self.folder / "bad" / "heddle.yaml"
        bad.write_text(self.manifest.read_text().replace("version: v", "version: "))
        done = run([self.tools / "validate-krew-manifest", "-manifest", bad, "-skip-install"], check=False)
        self.assertNotEqual(done.returncode, 0)

    def test_one_manifest_has_a_platform_for_each_architecture(self):
        """Of made-up archives, since here may be no program for another architecture."""
        krew = module_from_spec(spec_from_loader("krew", SourceFileLoader("krew", str(REPOSITORY / "tools" / "krew"))))
        krew.__spec__.loader.exec_module(krew)
        archives = {arch: (URI.replace("amd64", arch), arch.encode()) for arch in ("arm64", "amd64")}
        (self.folder / "both").mkdir()
        both = self.folder / "both" / "heddle.yaml"
        both.write_text(krew.manifest("https://git.example", archives))
        platforms = yaml.safe_load(both.read_text())["spec"]["platforms"]
        self.assertEqual([(one["selector"]["matchLabels"]["arch"], one["uri"], one["sha256"]) for one in platforms],
                         [(arch, archives[arch][0], hashlib.sha256(arch.encode()).hexdigest()) for arch in ("amd64", "arm64")])
        run([self.tools / "validate-krew-manifest", "-manifest", both, "-skip-install"])

    def test_krew_installs_it_and_kubectl_would_find_it(self):
        environment = {"KREW_ROOT": str(self.folder / "krew"), "KREW_NO_UPGRADE_CHECK": "1"}
        run([self.tools / "krew", "install", f"--manifest={self.manifest}", f"--archive={self.archive}"], environment=environment)
        done = run([self.folder / "krew" / "bin" / "kubectl-heddle", *PLAN])
        self.assertIn("4 pods of 8 GPUs", done.stdout)

    def test_it_runs_where_there_is_no_library_at_all(self):
        """A root with a static busybox and nothing else; what is said there is what is said here."""
        if not BUSYBOX.exists() or os.geteuid() != 0:
            self.skipTest("needs root and busybox-static")
        root = self.folder / "root"
        for folder in ("bin", "opt", "tmp"):
            (root / folder).mkdir(parents=True)
        shutil.copy(BUSYBOX, root / "bin")
        for name in ("sh", "dirname", "readlink"):
            (root / "bin" / name).symlink_to("busybox")
        with tarfile.open(self.archive) as archive:
            archive.extractall(root / "opt")
        (root / "bin" / "kubectl-heddle").symlink_to("/opt/kubectl-heddle")
        self.assertFalse((root / "lib").exists() or (root / "usr").exists() or (root / "lib64").exists())
        bare = subprocess.run(["unshare", f"--root={root}", "/bin/kubectl-heddle", *PLAN], capture_output=True, text=True,
                              check=False, timeout=60, env={"PATH": "/bin"})
        self.assertEqual((bare.returncode, bare.stderr), (0, ""))
        self.assertEqual(bare.stdout, run([options.binaries / "kubectl-heddle", *PLAN]).stdout)
        # Without the starter there is nothing that would load it.
        (root / "bin" / "alone").symlink_to("/opt/lib/kubectl-heddle")
        alone = subprocess.run(["unshare", f"--root={root}", "/bin/alone"], capture_output=True, text=True, check=False)
        self.assertNotEqual(alone.returncode, 0)

    def test_what_cannot_be_is_refused_in_a_sentence(self):
        for arguments, sentence in ((["--uri", "heddle.zip"], "krew fetches https://"),
                                    (["--bin", self.folder], "has no kubectl-heddle"),
                                    (["--bin", options.binaries], "there is one for"),
                                    (["--bin", options.binaries, "--uri", URI], "1 of --uri for 2 of --bin")):
            done = make(self.folder / "none", *arguments, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(sentence, done.stderr)
