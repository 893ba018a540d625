"""Guests: the distribution's kernel in QEMU, with the files of this machine and devices of its own."""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

from kernel import SERVE, kernel
from lab import need, options, wait_for

QEMU = "qemu-system-x86_64"
# From start to the first command. On two busy cores without KVM it was 9 to 26 s.
BOOT_SECONDS = 150
MEBIBYTES = 256  # of each NUMA node


def why_no_guests():
    """What keeps this machine from running them; empty = nothing. QEMU that is not installed is a failure, not this."""
    machine = os.uname().machine
    return "" if machine == "x86_64" else f"their kernel is amd64's, and the agent of this machine is {machine}'s"


def accelerator():
    """KVM only where the processor says that it can: a /dev/kvm that opens may still hang every guest."""
    if options.accelerator:
        return options.accelerator
    flags = next((line.split() for line in open("/proc/cpuinfo") if line.startswith("flags")), [])
    return "kvm" if os.access("/dev/kvm", os.R_OK | os.W_OK) and {"vmx", "svm"} & set(flags) else "tcg"


def numa(nodes):
    # Shared memory, as devices that other processes play want it.
    for node in range(nodes):
        yield from ("-object", f"memory-backend-memfd,id=ram{node},size={MEBIBYTES}M,share=on",
                    "-numa", f"node,nodeid={node},cpus={node},memdev=ram{node}")


class Line:
    """Lines over a socket that QEMU connects to."""

    def __init__(self, path):
        self.path = path
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(1)
        self.peer, self.rest = None, b""

    def read(self, end):
        """The next line, without its end. Raises TimeoutError at `end`, EOFError when QEMU is gone."""
        while b"\n" not in self.rest:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError
            if self.peer is None:
                self.listener.settimeout(left)
                self.peer = self.listener.accept()[0]
            self.peer.settimeout(left)
            got = self.peer.recv(65536)
            if not got:
                raise EOFError
            self.rest += got
        line, _, self.rest = self.rest.partition(b"\n")
        return line.decode(errors="replace").strip()

    def write(self, text, passed=()):
        if passed:
            socket.send_fds(self.peer, [text.encode()], passed)
        else:
            self.peer.sendall(text.encode())

    def close(self):
        for end in (self.listener, self.peer):
            if end is not None:
                end.close()


class Guest:
    """One machine with a processor and 256 MiB for each of its NUMA nodes. `arguments`: QEMU's, beyond the host's
    files, a console and two lines for the test. `passed`: descriptors named in them. Thread rule: one thread."""

    def __init__(self, name, arguments, nodes=1, passed=()):
        machine = kernel()
        self.name, self.modules = name, machine.folder
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"heddle-{name}-"))
        (self.folder / "serve").write_text(SERVE)
        self.commands, self.monitor = Line(self.folder / "commands"), Line(self.folder / "monitor")
        self.numbers, self.events = 0, []
        self.agent_command = f"{options.binaries / 'heddle-nodeagent'} --node {name}"
        kind = accelerator()
        share = "security_model=none,multidevs=remap,id={0},path={1}".format
        command = [
            "nice", "-n", "5", "setpriv", "--pdeathsig", "KILL", QEMU, "-nodefaults", "-display", "none", "-no-reboot",
            "-accel", kind, "-cpu", "host" if kind == "kvm" else "max", "-machine", "q35",
            # Plugs by the slot's own button and power, as PCI Express has them.
            "-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off",
            "-smp", nodes, "-m", f"{MEBIBYTES * nodes}M", *numa(nodes),
            "-kernel", machine.image, "-initrd", machine.initrd,
            "-append", "console=ttyS0 quiet panic=-1 net.ifnames=0",
            "-serial", f"file:{self.folder / 'console'}", "-serial", f"unix:{self.commands.path}",
            "-qmp", f"unix:{self.monitor.path}",
            "-fsdev", "local,readonly=on," + share("host", "/"), "-device", "virtio-9p-pci,fsdev=host,mount_tag=host",
            "-fsdev", "local," + share("test", self.folder), "-device", "virtio-9p-pci,fsdev=test,mount_tag=test",
            *arguments]
        self.started = time.monotonic()
        with open(self.folder / "qemu", "wb") as out:
            self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=out, start_new_session=True, pass_fds=passed)

    def ready(self):
        """Waits until it takes commands."""
        end = self.started + BOOT_SECONDS
        self._expect("the monitor", self.monitor, lambda line: "QMP" in line, end)
        self._expect("its first line", self.commands, lambda line: line == "up", end)
        self.boot_seconds = time.monotonic() - self.started
        self.qmp("qmp_capabilities")
        return self

    def run(self, script, seconds=120):
        """What a shell script wrote to its standard output. One that fails fails the test."""
        code, out, err = self.attempt(script, seconds)
        if code != 0:
            raise AssertionError(f"{self.name}: {script.strip()}\nended with {code}: {out}{err}")
        return out

    def attempt(self, script, seconds=120):
        """Exit code, standard output and standard error."""
        self.numbers += 1
        file = self.folder / str(self.numbers)
        file.with_suffix(".sh").write_text(script)
        self.commands.write(f"{self.numbers}\n")
        answer = self._expect(script.strip(), self.commands, lambda line: line.startswith(f"{self.numbers} "),
                              time.monotonic() + seconds)
        read = lambda suffix: file.with_suffix(suffix).read_text(errors="replace")
        return int(answer.split()[1]), read(".out"), read(".err")

    def load(self, *modules):
        self.run("\n".join(f"modprobe -d {self.modules} {module} || exit 1" for module in modules))

    def qmp(self, command, passed=(), **arguments):
        """What QEMU's monitor returns; events that come before it are kept in `events`. `passed`: descriptors."""
        self.monitor.write(json.dumps({"execute": command, "arguments": arguments}) + "\n", passed)
        def answers(line):
            message = json.loads(line)
            if "event" in message:
                self.events.append(message)
            return "event" not in message
        answer = json.loads(self._expect(command, self.monitor, answers, time.monotonic() + 60))
        if "error" in answer:
            raise AssertionError(f"{self.name}: {command} {arguments}: {answer['error']['desc']}")
        return answer["return"]

    def unplug(self, *devices):
        """As their buttons do: five seconds later the guest lets go, and the power of the slots goes off."""
        self.events = []
        for device in devices:
            self.qmp("device_del", id=device)

        def gone():
            self.qmp("query-status")
            return set(devices) <= {event["data"].get("device") for event in self.events
                                    if event["event"] == "DEVICE_DELETED"}
        wait_for(f"{' and '.join(devices)} unplugged", gone, 60)

    def agent(self, *arguments):
        """What heddle-nodeagent writes in the guest."""
        return self.run(" ".join([self.agent_command, *arguments]))

    def status(self):
        return json.loads(self.agent("--print", "-o", "json"))["status"]

    def _expect(self, what, line, wanted, end):
        while True:
            try:
                text = line.read(end)
            except (TimeoutError, EOFError, OSError) as problem:
                kind = "not in time" if isinstance(problem, TimeoutError) else "QEMU is gone"
                raise AssertionError(f"{self.name}: {what}: {kind}\n{self.said()}") from None
            if wanted(text):
                return text

    def said(self):
        """What QEMU and the kernel wrote."""
        parts = []
        for name in ("qemu", "console"):
            file = self.folder / name
            text = file.read_text(errors="replace") if file.exists() else ""
            parts.append(f"--- {self.name}: {name}\n{text[-6000:]}")
        return "\n".join(parts)

    def dmesg(self):
        """The kernel's last lines, where the guest still answers."""
        try:
            return f"--- {self.name}: dmesg\n{self.attempt('dmesg | tail -n 40', 20)[1]}"
        except (AssertionError, OSError):
            return f"--- {self.name} takes no command any more"

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.commands.close()
        self.monitor.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Follow:
    """`heddle-nodeagent --print --follow` in a guest."""

    def __init__(self, guest, *arguments):
        self.guest = guest
        guest.run("rm -f /mnt/follow* && touch /mnt/follow")
        command = f"{guest.agent_command} --print --follow -o json {' '.join(arguments)} >/mnt/follow 2>/mnt/follow.err"
        guest.run(f"({command} & echo $! >/mnt/follow.pid; wait $!; echo $? >/mnt/follow.end) >/dev/null 2>&1 &")
        self.until("observation")

    def lines(self):
        text = (self.guest.folder / "follow").read_text(errors="replace")
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("}\n")]

    def until(self, kind, *words, seconds=90.0):
        """The first line of the kind that has all of the words in it."""
        def found():
            for line in self.lines():
                if line["kind"] == kind and all(word in line.get("text", "") for word in words):
                    return line
            if (self.guest.folder / "follow.end").exists():
                raise AssertionError("the agent has ended")
            return None
        try:
            return wait_for(f"{kind} {' '.join(words)}", found, seconds)
        except AssertionError as problem:
            said = [(self.guest.folder / name).read_text(errors="replace")[-6000:] for name in ("follow", "follow.err")]
            raise AssertionError(f"{problem}\n{''.join(said)}") from None

    def stop(self):
        self.guest.run("kill $(cat /mnt/follow.pid); until [ -e /mnt/follow.end ]; do sleep 0.1; done")


def without_times(text):
    return re.sub(r'"(lastTransitionTime|observedAt)": "[^"]*"', r'"\1": ""', text)


class GuestCase(unittest.TestCase):
    """Tests that share guests, which `boot` starts. What those wrote is shown under a test that fails."""

    maxDiff = None
    guests = ()

    @classmethod
    def setUpClass(cls):
        need(QEMU, "setpriv", "busybox", "modprobe", "depmod", "dpkg-deb", "apt-get")
        cls.guests = []
        cls.addClassCleanup(lambda: [guest.close() for guest in cls.guests])
        cls.boot()
        for guest in cls.guests:
            guest.ready()
        took = max(guest.boot_seconds for guest in cls.guests)
        print(f"({len(cls.guests)} up after {took:.1f} s, {accelerator()}) ", end="", flush=True)
        try:
            cls.prepare()
        except AssertionError as problem:
            raise AssertionError("\n".join([str(problem), *(g.said() + g.dmesg() for g in cls.guests)])) from None

    @classmethod
    def boot(cls):
        raise NotImplementedError

    @classmethod
    def prepare(cls):
        """What is done once in guests that are up."""

    def run(self, result=None):
        before = len(result.failures) + len(result.errors)
        super().run(result)
        if len(result.failures) + len(result.errors) > before:
            print("\n".join(["", *(guest.said() + guest.dmesg() for guest in self.guests)]), flush=True)
        return result

    def replays(self, guest):
        """A recording made in the guest says outside what the agent says inside, byte for byte but for the time."""
        inside = guest.agent("--print", "-o", "json")
        # Hundreds of small files over 9p take a quarter of a minute, one large one no time.
        guest.agent("record", "/run/recorded")
        guest.run("tar -C /run -cf /mnt/recorded.tar recorded && rm -r /run/recorded")
        recorded = guest.folder / "recorded"
        self.addCleanup(shutil.rmtree, recorded, ignore_errors=True)
        subprocess.run(["tar", "-C", guest.folder, "-xf", guest.folder / "recorded.tar"], check=True, timeout=60)
        outside = subprocess.run([options.binaries / "heddle-nodeagent", "--machine", recorded, "--node", guest.name,
                                  "--print", "-o", "json"], capture_output=True, text=True, timeout=60)
        self.assertEqual(outside.returncode, 0, outside.stderr)
        self.assertEqual(without_times(outside.stdout), without_times(inside))
        return recorded
