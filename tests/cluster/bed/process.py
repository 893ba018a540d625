"""Child processes that never outlive this one, their logs, and the folders and ports they use."""

import atexit
import json
import os
import queue
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

class _Spawner:
    """Starts every child from one thread that lives as long as the process.

    The kernel sends a child's parent-death signal when the *thread* that started it ends. A child started from a
    short-lived thread would be killed with it.
    """

    def __init__(self):
        self._requests = queue.Queue()
        self._thread = None
        self._lock = threading.Lock()

    def _serve(self):
        while True:
            arguments, keywords, answer = self._requests.get()
            try:
                answer.put((subprocess.Popen(arguments, **keywords), None))
            except BaseException as problem:
                answer.put((None, problem))

    def start(self, arguments, **keywords):
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="spawner", daemon=True)
                self._thread.start()
        answer = queue.Queue()
        self._requests.put((arguments, keywords, answer))
        child, problem = answer.get()
        if problem:
            raise problem
        return child

_spawner = _Spawner()

class Process:
    """One daemon: started, killed and started again with the same arguments, its log appended to one file."""

    def __init__(self, name, arguments, log, environment=None):
        self.name = name
        self.arguments = [str(argument) for argument in arguments]
        self.log = Path(log)
        self.environment = dict(environment or {})
        self._child = None
        self._wanted = False

    @property
    def pid(self):
        return self._child.pid if self._child else None

    def running(self):
        return self._child is not None and self._child.poll() is None

    def exit_code(self):
        return self._child.poll() if self._child else None

    def start(self):
        if self.running():
            raise RuntimeError(f"{self.name} is already running")
        with open(self.log, "ab") as log:
            self._child = _spawner.start(
                # setpriv makes the kernel kill the child when we die, however we die. A session of its own keeps the
                # terminal's Ctrl-C from reaching the child before we have decided the order of things.
                ["setpriv", "--pdeathsig", "KILL", *self.arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env={**os.environ, **self.environment})
        self._wanted = True
        return self

    def _signal(self, number):
        if self.running():
            self._child.send_signal(number)

    def kill9(self):
        """As a crash: no warning, and it stays down until start()."""
        self._wanted = False
        self._signal(signal.SIGKILL)
        if self._child:
            self._child.wait()

    def terminate(self):
        """Asks it to end and does not wait."""
        self._wanted = False
        self._signal(signal.SIGTERM)

    def stop(self, patience=10.0):
        """Asks, then insists. Returns the exit code."""
        self.terminate()
        if self._child:
            try:
                self._child.wait(patience)
            except subprocess.TimeoutExpired:
                self.kill9()
        return self.exit_code()

    def restart(self, patience=10.0):
        self.stop(patience)
        return self.start()

    def pause(self):
        """Half-open peers: the process keeps its sockets and answers nothing until resume()."""
        self._signal(signal.SIGSTOP)

    def resume(self):
        self._signal(signal.SIGCONT)

    def died(self):
        """A sentence if it ended although nobody asked for that, else None."""
        if self._wanted and not self.running():
            return f"{self.name} ended with {self.exit_code()}; the end of {self.log}:\n{self.tail()}"
        return None

    def tail(self, lines=15):
        try:
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        except OSError:
            return ""

    def resident_bytes(self):
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        return 0

_ports_taken = set()

def free_port():
    """A port on loopback that is free now and that nobody gets by accident later.

    Not one that the kernel hands out itself (bind to 0): those are also the source ports of outgoing connections, so
    while a server is down for a restart, some client, even the one that keeps retrying this very port, may take it.
    """
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    candidates = range(10240, low) if low > 12000 else range(1024, 65536)
    for _ in range(1000):
        port = random.choice(candidates)
        if port in _ports_taken:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _ports_taken.add(port)
        return port
    raise RuntimeError("no free port on loopback in a thousand tries")

_OWNER = "owner.json"

def _started_at(pid):
    """The kernel's start time of a process: a pid alone may have been given to another one since."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return None

def new_run_folder(name):
    """A folder for one bed's state and logs. Folders whose process was killed before it could clean up go first."""
    base = Path(tempfile.gettempdir())
    for left in base.glob("heddle-bed-*"):
        try:
            owner = json.loads((left / _OWNER).read_text())
        except (OSError, ValueError):
            continue
        if _started_at(owner["pid"]) != owner["started"]:
            shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"heddle-bed-{name}-", dir=base))
    (folder / _OWNER).write_text(json.dumps({"pid": os.getpid(), "started": _started_at(os.getpid())}))
    return folder

def run(arguments, timeout=120, environment=None, check=True, stdin=None):
    """A command that ends by itself. Failing, it raises with what it wrote."""
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=timeout, input=stdin,
                          stdin=subprocess.DEVNULL if stdin is None else None,
                          env={**os.environ, **(environment or {})})
    if check and done.returncode != 0:
        shown = " ".join(str(a) for a in arguments)
        raise RuntimeError(f"`{shown}` ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done

class _Interrupts:
    """Turns the signals that would end Python without cleaning up into the exception that unwinds it."""

    def __init__(self):
        self._installed = False

    def install(self):
        if self._installed or threading.current_thread() is not threading.main_thread():
            return
        self._installed = True
        for number in (signal.SIGTERM, signal.SIGHUP):
            # A caller that handles the signal itself, or ignores it (nohup), has its reasons.
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, self._unwind)

    @staticmethod
    def _unwind(_number, _frame):
        # Not SystemExit: unittest would take it for one more failing test and go on.
        raise KeyboardInterrupt

_interrupts = _Interrupts()

def stop_at_exit(stop):
    """Calls `stop` when the interpreter ends, also by Ctrl-C, SIGTERM or SIGHUP. Returns a handle to call it off."""
    _interrupts.install()
    atexit.register(stop)
    return lambda: atexit.unregister(stop)

