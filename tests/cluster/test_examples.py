"""docs/examples on paper: each manifest is sound by `kubectl heddle check`, is gated whole, and has its place in the docs.
Gangs of them on real controllers: tests/frameworks, and for Kubernetes' own kinds test_frameworks.py and test_groups.py.
And docs/choosing.md: what it shows of `plan` is what `plan` says, and its table has every key of crds/keys.h."""

import re
import shlex
import subprocess
import unittest
from pathlib import Path

import yaml
from bed.control_plane import REPOSITORY
from bed.testing import options

FOLDER = REPOSITORY / "docs" / "examples"
# Not workloads, or none that has its GPUs in a pod template.
NO_WORKLOAD = {"fabricswitch", "trainjob"}


def names():
    return sorted(file.stem for file in FOLDER.glob("*.yaml"))


def command(*arguments):
    return subprocess.run([Path(options.binaries).resolve() / "kubectl-heddle", *arguments], capture_output=True, text=True,
                          check=False, timeout=60)


def pod_templates(value):
    """All that looks like a pod or a template of one, however deep."""
    if isinstance(value, list):
        for one in value:
            yield from pod_templates(one)
    elif isinstance(value, dict):
        if isinstance(value.get("spec"), dict) and "containers" in value["spec"]:
            yield value
        else:
            for one in value.values():
                yield from pod_templates(one)


def annotated(text):
    return [pod for document in yaml.safe_load_all(text) for pod in pod_templates(document)
            if "heddle.dev/parallelism" in pod.get("metadata", {}).get("annotations", {})]


class ExamplesTest(unittest.TestCase):

    def test_each_is_sound(self):
        for name in names():
            if name in NO_WORKLOAD:
                continue
            with self.subTest(name):
                done = command("check", FOLDER / f"{name}.yaml")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertNotIn("0 workloads", done.stdout)

    def test_each_pod_of_a_gang_is_gated_by_prepare_as_by_admission(self):
        gated = 0
        for name in set(names()) - NO_WORKLOAD:
            with self.subTest(name):
                done = command("prepare", "-f", FOLDER / f"{name}.yaml")
                self.assertEqual(done.returncode, 0, done.stderr)
                before, after = annotated((FOLDER / f"{name}.yaml").read_text()), annotated(done.stdout)
                self.assertEqual(len(before), len(after))
                self.assertGreater(len(after), 0)
                for pod in after:
                    self.assertIn({"name": "heddle.dev/gang"}, pod["spec"]["schedulingGates"])
                    self.assertEqual(pod["spec"]["schedulerName"], "heddle")
                    gated += 1
        self.assertGreater(gated, 10)

    def test_each_is_named_where_people_look(self):
        pages = "".join((REPOSITORY / "docs" / page).read_text() for page in ("frameworks.md", "switches.md"))
        self.assertEqual([name for name in names() if f"examples/{name}.yaml" not in pages], [])


class ChoosingTest(unittest.TestCase):
    page = (REPOSITORY / "docs" / "choosing.md").read_text()

    def test_what_it_shows_is_what_plan_says(self):
        shown = re.findall(r"^```sh\nkubectl heddle (plan .*?)\n```\n\n```\n(.*?)^```$", self.page, re.MULTILINE | re.DOTALL)
        self.assertEqual(len(shown), 3)
        for line, block in shown:
            said = command(*shlex.split(line.replace("\\\n", " "))).stdout
            for one in block.splitlines():
                if one != "…":
                    self.assertIn(one + "\n", said, "the page shows another answer: put in what it says now")

    def test_every_key_is_in_its_tables(self):
        keys = re.findall(r'"heddle\.dev/([a-z-]+)"', (REPOSITORY / "crds" / "keys.h").read_text())
        self.assertGreater(len(keys), 20)
        missing = [key for key in keys if key != "leaf-" and f"heddle.dev/{key}`" not in self.page and f"`{key}`" not in self.page]
        self.assertEqual(missing, [])
