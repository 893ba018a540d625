"""What the tests of frameworks share: a bed with their controllers and Heddle, and the manifests of docs/examples."""

import json
import subprocess

import yaml
from bed import REPOSITORY, h100, path
from bed.testing import bound_to
from controllers import Controller, refused_or_made
from scenario import TEAM
from test_main_job import HeddleTestCase

EXAMPLES = REPOSITORY / "docs" / "examples"


def example(name):
    """The objects of docs/examples/NAME.yaml."""
    return [one for one in yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text()) if one]


def environment(pod, container=0):
    """What the API server has of a container's variables: {name: value}, those of fields resolved."""
    meta = pod["metadata"]
    found = {}
    for one in pod["spec"]["containers"][container].get("env", []):
        field = one.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", "")
        if field.startswith("metadata.") and "['" in field:
            kind, _, key = field.removeprefix("metadata.").partition("['")
            found[one["name"]] = meta.get(kind, {}).get(key.removesuffix("']"), "")
        elif field == "metadata.name":
            found[one["name"]] = meta["name"]
        else:
            found[one["name"]] = one.get("value", "")
    return found


def rank_of(pod):
    return int(pod["metadata"]["annotations"]["heddle.dev/rank"])


class FrameworkTestCase(HeddleTestCase):
    """A bed with the controllers `frameworks`, started in that order."""

    cluster = h100()
    frameworks = ()
    arguments = {}  # of a controller, beside those that it always has
    kinds = ()  # what the tests make; all of them are deleted after each, and with them all else has to go

    @classmethod
    def set_up_bed(cls):
        cls.controllers = {name: Controller(cls.plane, name, cls.arguments.get(name, ())) for name in cls.frameworks}
        for controller in cls.controllers.values():
            controller.install()
        for controller in cls.controllers.values():
            controller.start()
        super().set_up_bed()
        for controller in cls.controllers.values():
            controller.wait()
        # As RdmaDevicePolicy `dgx` of docs/devices.md: a device is all NICs of a node.
        for node in cls.cluster.nodes:
            cls.nodes.set_allocatable(node.name, **{"heddle.dev/rdma": "1"})

    def tearDown(self):
        for kind in self.kinds:
            self.plane.kubectl("-n", TEAM, "delete", kind, "--all", "--wait=false")
        self.plane.wait_for(lambda: not self.plane.pods(TEAM) and not self.plane.rest.list(path("jobs", TEAM)),
                            f"all pods and Jobs to go with their {' or '.join(self.kinds)}", 60)
        # Waits for every Gang to end.
        super().tearDown()

    def wait_for(self, predicate, what, timeout=60.0):
        def alive():
            for controller in self.controllers.values():
                if sentence := controller.died():
                    raise AssertionError(sentence)
            return predicate()
        return self.heddle.wait_for(alive, what, timeout)

    def apply(self, *objects):
        """By kubectl, as a person would."""
        for body in objects:
            self.plane.kubectl("-n", TEAM, "apply", "-f", "-", stdin=json.dumps(body))

    @classmethod
    def wait_webhook(cls, collection, probe, default):
        """Waits until a framework's webhook sets what `probe` leaves out: a field of its spec."""
        cls.plane.wait_for(lambda: (refused_or_made(lambda: cls.plane.rest.create(collection + "?dryRun=All", probe))
                                    or {}).get("spec", {}).get(default), f"the webhook of {probe['kind']} to set {default}")

    def placed(self, count, selector=None, but=()):
        """Waits until so many pods that `selector` names run where their plan says. Pods whose UID is in `but` are others."""
        def all_run():
            pods = [pod for pod in self.plane.pods(TEAM, selector)
                    if pod["metadata"]["uid"] not in but and not pod["metadata"].get("deletionTimestamp")]
            running = [pod for pod in pods if bound_to(pod) and pod["status"].get("phase") == "Running"]
            if len(pods) != count or len(running) != count:
                gangs = [(gang["metadata"]["name"], gang.get("status", {}).get("summary"),
                          gang.get("status", {}).get("message")) for gang in self.plane.rest.list(path("gangs", TEAM))]
                raise AssertionError(f"{len(running)} of {len(pods)} pods run; gangs: {gangs}")
            return pods
        pods = self.wait_for(all_run, f"all {count} pods of {selector or TEAM} to run", 90)
        for pod in pods:
            annotations = pod["metadata"].get("annotations", {})
            if "heddle.dev/node" in annotations:
                self.assertEqual(bound_to(pod), annotations["heddle.dev/node"], pod["metadata"]["name"])
        self.assert_no_gpu_twice()
        return pods

    def by_rank(self, pods):
        """Pods in the order of ranks, which are 0 to their number."""
        ordered = sorted(pods, key=rank_of)
        self.assertEqual([rank_of(pod) for pod in ordered], list(range(len(pods))))
        return ordered

    def assert_as_planned(self, gang, pods):
        """The Gang's own plan says the node of each rank."""
        placement = gang["status"]["placement"]
        self.assertEqual([bound_to(pod) for pod in self.by_rank(pods)],
                         [placement["nodeNames"][index] for index in placement["nodes"]])

    def assert_groups_share_a_node(self, pods, size):
        """So many pods in the order of ranks make a tensor-parallel group, which NVLink has to join."""
        nodes = [bound_to(pod) for pod in self.by_rank(pods)]
        for first in range(0, len(nodes), size):
            self.assertEqual(len(set(nodes[first:first + size])), 1, f"ranks {first} to {first + size - 1}")

    def ranks_file(self, owner, key="ranks.tsv"):
        """The rows of its ranks, without the names of the columns; none where it has no file, or that has no such key."""
        made = self.plane.rest.find(path("configmaps", TEAM, f"{owner}-heddle-ranks"))
        return [line.split("\t") for line in made["data"].get(key, "").splitlines()[1:]] if made else []

    def assert_in_the_file(self, owner, pods, key="ranks.tsv"):
        """The file says of these pods, and of no others, which rank each has and on which node."""
        self.assertEqual([(int(rank), pod, node) for rank, pod, node, _ in self.ranks_file(owner, key)],
                         [(rank, pod["metadata"]["name"], bound_to(pod)) for rank, pod in enumerate(self.by_rank(pods))])

    def heddle_command(self, *arguments):
        """`kubectl heddle ...` as a person types it."""
        return subprocess.run([str(self.binaries / "kubectl-heddle"), *arguments], capture_output=True, text=True,
                              check=False, timeout=60,
                              env={"KUBECONFIG": str(self.plane.kubeconfig), "HOME": str(self.plane.folder)})

    def explain(self, what):
        done = self.heddle_command("explain", what, "-n", TEAM, "-o", "json")
        self.assertEqual(done.returncode, 0, f"explain {what}: {done.stderr}{done.stdout}")
        return json.loads(done.stdout)

    def assert_example_is_sound(self, name):
        done = self.heddle_command("check", str(EXAMPLES / f"{name}.yaml"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def finish(self, pods, how="succeeded"):
        for pod in pods:
            self.plane.finish_pod(TEAM, pod["metadata"]["name"], how)
