"""The chart as text: what helm makes of it without a cluster, and what stands in its values.yaml."""

import os
import re
import subprocess
import tempfile
import unittest
from dataclasses import dataclass
from pathlib import Path

import yaml

from bed.control_plane import REPOSITORY, control_plane_binaries
from bed.heddle import CHART, NAMESPACE

FIXTURES = REPOSITORY / "tests" / "fixtures" / "chart"
POLICIES = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
KUBERNETES = "1.36.3"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the CRDs are long
# Maps whose keys are the user's own.
FREE = {"resources", "nodeSelector", "labels", "annotations", "podLabels", "podAnnotations", "namespaceSelector"}


class ChartTextTestCase(unittest.TestCase):
    """No control plane: helm alone, in a home of its own."""

    @classmethod
    def setUpClass(cls):
        cls.helm_binary = control_plane_binaries() / "helm"
        cls.home = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))

    def helm(self, *arguments, values=None, check=True):
        """`values` as a dict, or as YAML text."""
        given = [] if values is None else ["--values", "-"]
        text = values if isinstance(values, str) or values is None else yaml.safe_dump(values)
        done = subprocess.run([self.helm_binary, *arguments, *given], input=text, capture_output=True, text=True,
                              check=False, timeout=60, env={"HOME": str(self.home), "PATH": os.environ["PATH"]})
        if check and done.returncode != 0:
            self.fail(f"helm {' '.join(map(str, arguments))} with {text}:\n{done.stderr}")
        return done

    def render(self, values=None, *arguments, chart=CHART, version=KUBERNETES):
        """The text of all objects, hooks too, on a cluster that serves the mutating policy where it is GA."""
        served = ["--api-versions", POLICIES] if version_of(version) >= (1, 36) else []
        return self.helm("template", "heddle", chart, "--namespace", NAMESPACE, "--kube-version", version, *served,
                         *arguments, values=values).stdout

    def objects(self, values=None, *arguments, **keywords):
        return objects_in(self.render(values, *arguments, **keywords))


def version_of(text):
    return tuple(int(number) for number in re.findall(r"\d+", text)[:2])


def objects_in(rendered):
    return [one for one in yaml.load_all(rendered, Loader=LOADER) if one]


def named(objects, kind, name):
    found = [one for one in objects if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    if len(found) != 1:
        raise AssertionError(f"{len(found)} of {kind} {name}")
    return found[0]


def names(objects, *kinds):
    return {one["metadata"]["name"] for one in objects if one["kind"] in kinds}


def pod_of(one):
    """The metadata and spec of the pod that an object is or makes; None where it makes none."""
    if one["kind"] == "Pod":
        return one
    return one["spec"]["template"] if one["kind"] in ("Deployment", "DaemonSet", "Job") else None


def rights(role):
    """{(group, resource, verb)} of a Role or ClusterRole; of a URL, which is in no group, None for it."""
    return {(group, resource, verb) for rule in role["rules"] for group in rule.get("apiGroups", [None])
            for resource in rule.get("resources", []) + rule.get("nonResourceURLs", []) for verb in rule["verbs"]}


@dataclass
class Value:
    path: str
    default: object
    comment: str


def values_in(text):
    """Every value of a values.yaml that is no map of others, with the comment above it."""
    def walk(tree, prefix):
        for key, value in tree.items():
            path = f"{prefix}{key}"
            if isinstance(value, dict) and value and key not in FREE:
                yield from walk(value, path + ".")
            else:
                # A section that is switched on and off says at its head what it is.
                of_section = comments.get(prefix[:-1], "") if key == "enabled" else ""
                yield Value(path, value, comments.get(path) or of_section)
    comments = _comments(text)
    return list(walk(yaml.safe_load(text), ""))


def _comments(text):
    """{path: the comment right above its line}; an empty line ends a comment."""
    found, above, parents = {}, [], []
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("#"):
            above.append(stripped.lstrip("# "))
            continue
        key = re.match(r"( *)([A-Za-z0-9_.]+):", line)
        if key:
            parents = [(indent, name) for indent, name in parents if indent < len(key[1])] + [(len(key[1]), key[2])]
            found[".".join(name for _, name in parents)] = " ".join(above)
        above = []
    return found
