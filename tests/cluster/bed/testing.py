"""What the cluster tests share: a bed per class, logs kept when a test fails, one Job to start from."""

import sys
import types
import unittest

from .control_plane import REPOSITORY, ControlPlane
from .nodes import Nodes


# What tests/cluster/run was told: the folder of Heddle's binaries (--bin).
options = types.SimpleNamespace(binaries=REPOSITORY / "build" / "dev" / "bin")


class BedTestCase(unittest.TestCase):
    """A control plane for all tests of the class: `self.plane`, `self.nodes`.

    Where a test failed, the logs of everything are in build/cluster-logs/<class>/ afterwards.
    """

    plane: ControlPlane
    nodes: Nodes
    arguments: dict = {}  # of the control plane's components, beside the usual ones
    mostly_waits = False  # for periods to pass: another class may run beside it however busy the machine is
    _failed = False

    @classmethod
    def setUpClass(cls):
        cls._failed = False
        cls.plane = ControlPlane(cls.__name__, arguments=cls.arguments)
        cls.addClassCleanup(cls._tear_down_plane)
        cls.nodes = Nodes(cls.plane)
        try:
            cls.plane.start()
            cls.set_up_bed()
        except BaseException:
            cls._failed = True
            raise

    @classmethod
    def set_up_bed(cls):
        """For subclasses: nodes, Heddle, whatever all tests of the class need."""

    @classmethod
    def _tear_down_plane(cls):
        if cls._failed:
            logs = cls.plane.copy_logs(REPOSITORY / "build" / "cluster-logs" / cls.__name__)
            print(f"    logs of the failed class: {logs.relative_to(REPOSITORY)}", file=sys.stderr)
        cls.plane.stop()

    def assert_nothing_forbidden(self, *components, but=()):
        """By the audit log so far, to these of Heddle's accounts; `but` are resources that tests of the class forbid."""
        for component in components:
            events = self.plane.audit(user=f"system:serviceaccount:heddle-system:heddle-{component}", code=403)
            refused = [(event["verb"], event["resource"], event["name"]) for event in events if event["resource"] not in but]
            self.assertEqual(refused[:5], [], component)

    def run(self, result=None):
        before = len(result.failures) + len(result.errors) if result else 0
        answer = super().run(result)
        if result and len(result.failures) + len(result.errors) > before:
            type(self)._failed = True
        return answer


def indexed_job(name, pods, gpus=0, annotations=None, scheduler=None, backoff_limit=0, **pod_spec):
    """An indexed Job of `pods` pods, with `gpus` each. KWOK keeps its pods running until finish_pod()."""
    resources = {"cpu": "1"}
    if gpus:
        resources["nvidia.com/gpu"] = str(gpus)
    spec = {
        "restartPolicy": "Never",
        "containers": [{"name": "worker", "image": "train", "resources": {"limits": resources, "requests": resources}}],
    } | pod_spec
    if scheduler:
        spec["schedulerName"] = scheduler
    return {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {
            "completions": pods, "parallelism": pods, "completionMode": "Indexed", "backoffLimit": backoff_limit,
            "template": {"metadata": {"annotations": dict(annotations or {})}, "spec": spec}}}


def deployment(name, gpus, **pod_spec):
    """Of one pod with `gpus`, labelled app=NAME."""
    limits = {"cpu": "1", "nvidia.com/gpu": str(gpus)}
    spec = {"containers": [{"name": "serve", "image": "serve", "resources": {"limits": limits, "requests": limits}}]}
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}},
                 "template": {"metadata": {"labels": {"app": name}}, "spec": spec | pod_spec}}}


def bound_to(pod):
    return pod["spec"].get("nodeName", "")


def is_running(pod):
    return pod["status"].get("phase") == "Running"
