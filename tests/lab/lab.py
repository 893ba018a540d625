"""What the beds share: network namespaces that end with the test, and the watcher of leaves."""

import json
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class options:
    binaries = ROOT / "build/dev/bin"
    accelerator = None  # of guests: "kvm" or "tcg"; nothing: what the machine can


def need(*programs):
    """A missing program is a failure: a suite that skips its beds says nothing."""
    for program in programs:
        if shutil.which(program) is None and not pathlib.Path(program).is_file():
            raise AssertionError(f"{program} is not installed: tools/install")


def wait_for(what, check, seconds=15.0):
    """Calls `check` until it returns something true, and returns that."""
    end = time.monotonic() + seconds
    while True:
        found = check()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.1)


def lldpd_settings(*more):
    """For `lldpd -O`: a frame a second, ports by their names. Who sets an lldpd once it runs races the lldpcli that it
    starts itself: each writes all settings as it read them, and the one that read "paused" silences it for good."""
    return "".join(f"configure {line}\n" for line in ("lldp tx-interval 1", "lldp portidsubtype ifname", *more))


class Lab(unittest.TestCase):
    """A test with a folder of its own; whatever it starts ends with it."""

    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="heddle-lab-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def spawn(self, *command, log="log", **kwargs):
        """Starts a program in a group of its own, its output in a file of the folder unless somebody wants it."""
        with open(self.folder / log, "ab") as out:
            kwargs = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": out, "cwd": self.folder} | kwargs
            process = subprocess.Popen([str(part) for part in command], start_new_session=True, **kwargs)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream:
                stream.close()

    def log(self, name="log"):
        return (self.folder / name).read_text(errors="replace")


class Namespace:
    """Network, mount and process namespaces with /run and /sys of their own. All in them ends with the test."""

    def __init__(self, lab, name):
        self.lab, self.name = lab, name
        outer = lab.spawn("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
                          "sh", "-c", "mount -t tmpfs none /run && mount -t sysfs none /sys && ip link set lo up && echo up && exec sleep 600",
                          stdout=subprocess.PIPE)
        if outer.stdout.readline() != b"up\n":
            raise AssertionError(f"no namespaces here: {lab.log()}")
        children = pathlib.Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split()
        self.pid = int(children[0])
        # --root: our own may not be the root of the mount namespace.
        self.enter = ["nsenter", "--target", str(self.pid), "--net", "--mount", "--pid", "--root"]

    def run(self, *command):
        done = subprocess.run([*self.enter, *command], capture_output=True, text=True, timeout=30, cwd="/")
        if done.returncode != 0:
            raise AssertionError(f"{self.name}: {' '.join(command)}: {done.stderr}")
        return done.stdout

    def write(self, path, text):
        """In its own /run everybody may read it, as lldpcli must, which lldpd starts without root's rights."""
        subprocess.run([*self.enter, "tee", path], input=text, text=True, stdout=subprocess.DEVNULL, check=True,
                       timeout=30, cwd="/")

    def spawn(self, *command, **kwargs):
        return self.lab.spawn(*self.enter, *command, **kwargs)


class Watch:
    """leaf_watch in a namespace or under an environment of its own."""

    def __init__(self, lab, root, enter=(), **kwargs):
        self.process = lab.spawn(*enter, options.binaries / "leaf_watch", root, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, log="watch.log", **kwargs)

    def look(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())
