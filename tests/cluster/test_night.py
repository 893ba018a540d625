"""docs/night.md, walked: its commands are run on a real control plane and their output is compared with what stands there.

UPDATE_GOLDEN=1 writes the outputs into the page instead.
"""

import difflib
import os
import re
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path

import scenario
from bed import REPOSITORY, Heddle, TimedOut, h100, path
from bed.testing import BedTestCase, bound_to, indexed_job, options
from scenario import TEAM

PAGE = REPOSITORY / "docs" / "night.md"
# What follows `<!-- step: NAME -->`, up to the next such line, is one step of the walk.
STEP = re.compile(r"^<!-- step: ([a-z-]+) -->$", re.M)
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)


def steady(text):
    """The same for every run: names and times that chance gives, and how wide they make a table."""
    rules = (
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "00000000-0000-0000-0000-000000000000"),
        (r"\b(llama-)[0-9a-f]{8}-(\d+)\b", r"\g<1>3f9c1a7e-\2"),
        (r"\b(llama-\d+)-[a-z0-9]{5}\b", r"\1-x7k2p"),
        (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "2026-11-23T03:00:00Z"),
        (r"\b\d+(d|h|m|s)(\d+(h|m|s))?( ago)?(?=\s|,|$|\))", r"2m\4"),
    )
    for pattern, word in rules:
        text = re.sub(pattern, word, text, flags=re.M)
    return "\n".join(line.rstrip() for line in text.splitlines())


def squeezed(text):
    return [re.sub(r"\s+", " ", line).strip() for line in text.splitlines()]


class ANodeDiedAtThree(BedTestCase):
    mostly_waits = True
    # As a cluster has it by default: a node is NotReady when its Lease was last renewed 50 s ago. Other beds have more.
    arguments = {"controller-manager": ["--node-monitor-grace-period=50s"]}
    cluster = h100(nodes_per_unit=17)

    @classmethod
    def set_up_bed(cls):
        cls.binaries = Path(options.binaries).resolve()
        cls.heddle = Heddle(cls.plane, cls.binaries)
        scenario.start_heddle(cls.heddle, cls.nodes, cls.cluster)
        cls.tools = cls.plane.folder / "path"
        cls.tools.mkdir()
        for program in (cls.plane.binaries / "kubectl", cls.binaries / "kubectl-heddle"):
            shutil.copy(program, cls.tools / program.name)

    def setUp(self):
        self.text = PAGE.read_text()
        self.different = []

    def test_what_the_page_says_is_what_happens(self):
        self.plane.rest.create(path("jobs", TEAM), self.job())
        self.wait_summary("Running 16/16")
        self.step("before")

        first = self.node_of(5)
        self.fall_silent(first)
        silent = time.monotonic()
        self.wait_ready_is(first, "Unknown")
        # The page says 40 to 60: its last heartbeat was up to 10 s before, and the node controller looks every 5 s.
        self.assertTrue(30 < time.monotonic() - silent < 100, f"noticed after {time.monotonic() - silent:.0f} s")
        self.wait_summary("Running 16/16: NodeLost")
        self.wait_metric('heddle_extender_gangs{state="stalled"} 1')
        self.step("lost")
        self.wait_moved(5, first)
        self.wait_summary("Running 16/16")
        self.wait_metric('heddle_extender_gangs{state="running"} 1')
        self.step("repaired")

        second = self.node_of(9)
        self.fall_silent(second)
        self.wait_summary("Degraded: Requirement")
        self.step("degraded")
        # Events have whole seconds, and the page has them in their order.
        said = int(time.time())
        self.plane.wait_for(lambda: time.time() >= said + 1, "the second after")
        self.nodes.find_again(first)
        self.heddle.start_daemon(f"agent:{first}")
        self.wait_moved(9, second)
        self.wait_summary("Running 16/16")
        self.step("back")
        self.save_or_compare()

    @staticmethod
    def job():
        silence = [{"key": f"node.kubernetes.io/{word}", "operator": "Exists", "effect": "NoExecute",
                    "tolerationSeconds": 10} for word in ("unreachable", "not-ready")]
        return indexed_job("llama", 16, 8, backoff_limit=6, tolerations=silence, annotations={
            "heddle.dev/parallelism": "tp=8,dp=16", "heddle.dev/require": "dp=leaf"} | scenario.MODEL)

    # What happens in the machine room

    def fall_silent(self, node):
        """Power is gone: no kubelet renews its Lease, no agent its own, and nothing is said to anybody."""
        self.heddle.kill9(f"agent:{node}")
        self.nodes.fall_silent(node)

    # What is waited for

    def gang(self):
        return scenario.gang_of(self.plane, TEAM, "llama") or {}

    def wait_summary(self, wanted, timeout=150.0):
        def there():
            summary = self.gang().get("status", {}).get("summary", "")
            if not re.fullmatch(wanted, summary):
                raise AssertionError(summary)
            return True
        self.heddle.wait_for(there, f"the gang to be {wanted}", timeout)

    def wait_ready_is(self, node, status):
        def there():
            return scenario.condition(self.plane.rest.get(path("nodes", name=node)), "Ready")["status"] == status
        self.heddle.wait_for(there, f"{node} to be {status}", 150)

    def wait_metric(self, line):
        def there():
            with urllib.request.urlopen(f"http://127.0.0.1:{self.heddle.extender_port}/metrics", timeout=10) as answer:
                return line in answer.read().decode().splitlines()
        self.heddle.wait_for(there, f"the metrics to say {line}", 30)

    def node_of(self, rank):
        placement = self.gang()["status"]["placement"]
        return placement["nodeNames"][placement["nodes"][rank]]

    def wait_moved(self, rank, away_from):
        def moved():
            pods = [(bound_to(pod), pod["status"].get("phase")) for pod in scenario.pods_of(self.plane, TEAM, "llama")
                    if pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == str(rank)
                    and not pod["metadata"].get("deletionTimestamp")]
            if not pods or pods[0][0] in ("", away_from) or pods[0][1] != "Running":  # its kubelet takes a moment
                raise AssertionError(pods)
            return True
        self.heddle.wait_for(moved, f"rank {rank} to have left {away_from}", 150)

    # The page

    def step(self, name):
        marks = list(STEP.finditer(self.text))
        index = next(i for i, mark in enumerate(marks) if mark.group(1) == name)
        end = marks[index + 1].start() if index + 1 < len(marks) else len(self.text)
        part = self.text[marks[index].end():end]
        self.text = self.text[:marks[index].end()] + BLOCK.sub(self.run_block, part) + self.text[end:]

    def run_block(self, block):
        commands = [line[2:] for line in block.group(1).splitlines() if line.startswith("$ ")]
        wanted = squeezed(steady(block.group(1)))
        said = ""

        def says_so():  # what events, metrics and columns say comes a moment after what was waited for
            nonlocal said
            said = "".join(f"$ {command}\n{self.run_command(command)}\n" for command in commands)
            return squeezed(said) == wanted
        try:
            self.heddle.wait_for(says_so, "what the page says", 1 if os.environ.get("UPDATE_GOLDEN") == "1" else 20)
        except TimedOut:
            changed = difflib.unified_diff(wanted, squeezed(said), "docs/night.md", "now", lineterm="", n=1)
            self.different.append("\n".join(changed))
        return f"```console\n{said}```"

    def run_command(self, command):
        command = command.replace("localhost:8011", f"127.0.0.1:{self.heddle.extender_port}")
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60, env={
            "KUBECONFIG": str(self.plane.kubeconfig), "HOME": str(self.plane.folder),
            "PATH": f"{self.tools}:{os.environ['PATH']}"})
        self.assertEqual(done.stderr, "", command)
        return steady(done.stdout)

    def save_or_compare(self):
        if os.environ.get("UPDATE_GOLDEN") == "1":
            PAGE.write_text(self.text)
        elif self.different:
            self.fail("UPDATE_GOLDEN=1 writes what happens now:\n" + "\n".join(self.different))
