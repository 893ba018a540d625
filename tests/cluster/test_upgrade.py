"""From the charts and CRDs of earlier days to today's and back: objects of then are read, written and acted upon."""

import json
import re
import subprocess
import tarfile
import unittest

import yaml

import scenario
from bed import REPOSITORY, Heddle, h100, path
from bed.heddle import CHART, NAMESPACE
from bed.process import run
from bed.testing import BedTestCase, options
from chart_text import FIXTURES
from test_crds import PLURAL_OF, PLURALS

CRDS = REPOSITORY / "crds"
DAYS = sorted(file.name.removeprefix("heddle-").removesuffix(".tgz") for file in FIXTURES.glob("heddle-*.tgz"))
# Bounds that may only widen, as what lies in etcd has to be valid tomorrow.
AT_MOST, AT_LEAST = ("maxItems", "maxLength", "maximum", "maxProperties"), ("minItems", "minLength", "minimum", "minProperties")
KEPT = ("type", "format", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-preserve-unknown-fields")


def chart_of(day):
    return FIXTURES / f"heddle-{day}.tgz"


def crds_of(day):
    """{file name: CRD} of that day's chart."""
    with tarfile.open(chart_of(day)) as chart:
        return {name.rpartition("/")[2]: yaml.safe_load(chart.extractfile(name)) for name in chart.getnames()
                if "/files/crds/" in name and name.endswith(".yaml")}


def schema_of(crd):
    version, = crd["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]


def fields(schema, where=""):
    """(path, schema) of a schema and all below."""
    yield where, schema
    for name, inner in schema.get("properties", {}).items():
        yield from fields(inner, f"{where}.{name}")
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(key), dict):
            yield from fields(schema[key], where + mark)


def narrowed(then, now):
    """What `now` no longer takes of what `then` took, in words."""
    here = dict(fields(now))
    for where, old in fields(then):
        new = here.get(where)
        if new is None:
            yield f"{where} is gone"
            continue
        yield from (f"{where}: {key}" for key in KEPT if old.get(key) != new.get(key))
        if set(new.get("required", [])) - set(old.get("required", [])):
            yield f"{where}: required"
        if "enum" in new and not set(old.get("enum", [None])) <= set(new["enum"]):
            yield f"{where}: enum"
        yield from (f"{where}: {key}" for key in AT_MOST if key in new and new[key] < old.get(key, float("inf")))
        yield from (f"{where}: {key}" for key in AT_LEAST if key in new and new[key] > old.get(key, float("-inf")))
        if "pattern" in new and new["pattern"] != old.get("pattern"):
            yield f"{where}: pattern"


def holds(now, then):
    """Everything that was there is there; what a newer schema fills in by default may be, too."""
    if isinstance(then, dict):
        return isinstance(now, dict) and all(key in now and holds(now[key], value) for key, value in then.items())
    if isinstance(then, list):
        return isinstance(now, list) and len(now) == len(then) and all(map(holds, now, then))
    return now == then


class SchemasTest(unittest.TestCase):
    """On paper: the one served version only grows."""

    def test_no_field_goes_and_no_bound_narrows(self):
        self.assertGreaterEqual(len(DAYS), 2)
        for day in DAYS:
            then = crds_of(day)
            self.assertGreaterEqual(set(then), {"fabrics.yaml", "gangs.yaml", "losslesspolicies.yaml", "nodetopologies.yaml"})
            for name, crd in then.items():
                with self.subTest(day=day, crd=name):
                    now = yaml.safe_load((CRDS / name).read_text())
                    self.assertEqual([version["name"] for version in now["spec"]["versions"]], ["v1alpha1"])
                    self.assertEqual((now["spec"]["scope"], now["spec"]["names"]["plural"]),
                                     (crd["spec"]["scope"], crd["spec"]["names"]["plural"]))
                    self.assertEqual(list(narrowed(schema_of(crd), schema_of(now))), [])

    def test_what_narrows_would_be_seen(self):
        def one(**changed):
            return {"type": "object", "properties": {"a": {"type": "string", "enum": ["x", "y"], "maxLength": 9} | changed}}
        self.assertEqual(list(narrowed(one(), one())), [])
        self.assertEqual(list(narrowed(one(), one(enum=["x", "y", "z"], maxLength=12))), [])
        for change, said in (({"enum": ["x"]}, ".a: enum"), ({"maxLength": 8}, ".a: maxLength"), ({"type": "integer"}, ".a: type"),
                             ({"minLength": 1}, ".a: minLength"), ({"pattern": "^x$"}, ".a: pattern")):
            self.assertEqual(list(narrowed(one(), one(**change))), [said])
        self.assertEqual(list(narrowed(one(), {"type": "object"})), [".a is gone"])
        self.assertEqual(list(narrowed(one(), one() | {"required": ["a"]})), [": required"])


class UpgradeFrom:
    """A chart of `day` with objects of every kind that it has, upgraded to today's, with today's daemons, and back."""

    day: str

    @classmethod
    def set_up_bed(cls):
        cls.rest = cls.plane.rest
        cls.cluster = h100(units=1, nodes_per_unit=2)
        cls.heddle = Heddle(cls.plane, options.binaries)

    def helm(self, *arguments):
        return run([self.plane.binaries / "helm", *arguments, "--namespace", NAMESPACE],
                   environment=self.plane.tool_environment()).stdout

    def write(self):
        """Each object of then under a name of its own; returns {where: the object as the API server keeps it}."""
        written = {}
        for number, text in enumerate(re.split(r"^---$", (FIXTURES / f"objects-{self.day}.yaml").read_text(), flags=re.MULTILINE)):
            # YAML as kubectl reads it.
            body = json.loads(self.plane.kubectl("create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-",
                                                 stdin=text))
            plural, namespace = PLURAL_OF[body["kind"]], body["metadata"].get("namespace")
            body["metadata"]["name"] = f'{body["metadata"]["name"]}-{number}'
            where = path(plural, namespace, body["metadata"]["name"])
            made = self.rest.create(path(plural, namespace), body, fieldValidation="Strict")
            if "status" in body:
                body["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"]
                self.rest.replace(where + "/status", body, fieldValidation="Strict")
            written[where] = self.rest.get(where)
        return written

    def assert_kept(self, written):
        for where, then in written.items():
            now = self.rest.get(where)
            self.assertEqual(now["metadata"]["uid"], then["metadata"]["uid"])
            for part in ("spec", "status"):
                self.assertTrue(holds(now.get(part, {}), then.get(part, {})), f"{part} of {where}:\n{then}\n{now}")

    def serves(self, plural, new_field=None):
        self.plane.wait_for(lambda: self.rest.list(path(plural)) is not None, f"{plural} to be served")
        if new_field:
            def there():
                crd = self.rest.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.heddle.dev")
                return new_field in dict(fields(schema_of(crd)))
            self.plane.wait_for(there, f"{new_field} in the schema of {plural}")

    def test_nothing_is_lost_and_the_daemons_of_today_go_on(self):
        self.helm("install", "heddle", chart_of(self.day), "--create-namespace")
        kinds = set(crds_of(self.day))
        for plural in PLURALS:
            if f"{plural}.yaml" in kinds:
                self.serves(plural)
        written = self.write()
        self.assertEqual({f'{where.split("/")[-2]}.yaml' for where in written} & kinds, kinds, "objects of every kind")
        # With all Deployments, so that a field that never changes, as a selector, would stop it here.
        self.helm("upgrade", "heddle", CHART, "--reset-then-reuse-values")
        self.serves("fabricswitches")
        self.serves("gangs", ".status.preemptedBy")
        self.assert_kept(written)
        # They can be written, too: as a person who edits one, and as a daemon that writes its status.
        for where, then in written.items():
            self.rest.replace(where, self.rest.get(where), fieldValidation="Strict")
            if "status" in then:
                self.rest.replace(where + "/status", self.rest.get(where), fieldValidation="Strict")
        self.assert_kept(written)
        self.run_daemons(written)
        self.go_back(written)

    def run_daemons(self, written):
        """Today's, on a cluster that holds the objects of then."""
        # The garbage collector's work: no Node owns them, and the Fabric would count them.
        for where in [where for where in written if where.split("/")[-2] == "nodetopologies"]:
            self.rest.delete(where)
            del written[where]
        self.helm("upgrade", "heddle", CHART, "--reset-then-reuse-values", "--set", "components.run=false")
        scenario.start_heddle(self.heddle, self.nodes, self.cluster)
        placed = scenario.place(self.plane, options.binaries, scenario.TEAM, scenario.TrainingJob("after", 2, 8, "tp=8,dp=2"))
        self.assertIn("seconds", placed)
        done = subprocess.run([options.binaries / "kubectl-heddle", "doctor", "-o", "json"], capture_output=True, text=True,
                              check=False, timeout=120, env=self.plane.tool_environment())
        problems = [item for item in json.loads(done.stdout)["items"] if item["verdict"] == "problem"]
        self.assertEqual(problems, [], done.stderr)
        self.assertEqual(self.heddle.died(), None)
        # What people wrote is theirs, whatever a daemon thinks of it.
        for where, then in written.items():
            if where.split("/")[-2] in ("fabrics", "losslesspolicies", "rdmadevicepolicies"):
                self.assertTrue(holds(self.rest.get(where)["spec"], then["spec"]), where)

    def go_back(self, written):
        """docs/installing.md: a rollback hides what the older schema does not know; without CRDs it hides nothing."""
        self.heddle.stop()
        gang = scenario.gang_of(self.plane, scenario.TEAM, "after")
        where = path("gangs", scenario.TEAM, gang["metadata"]["name"])
        gang["status"]["preemptedBy"] = "team/other"
        self.rest.replace(where + "/status", gang, fieldValidation="Strict")
        switch = {"apiVersion": "heddle.dev/v1alpha1", "kind": "FabricSwitch", "metadata": {"name": "leaf-3"}}
        text = (REPOSITORY / "tests" / "cluster" / "samples" / "good" / "switch-sonic-leaf.yaml").read_text()
        switch["spec"] = yaml.safe_load(text)["spec"]
        self.rest.create(path("fabricswitches"), switch)

        def preempted_by():
            return self.rest.get(where)["status"].get("preemptedBy")
        self.helm("upgrade", "heddle", chart_of(self.day), "--reset-then-reuse-values", "--set", "crds.install=false")
        self.assertEqual(preempted_by(), "team/other")
        self.helm("rollback", "heddle", "1")
        self.plane.wait_for(lambda: preempted_by() is None, "the schema of then")
        self.assertTrue(self.rest.find(path("fabricswitches", name="leaf-3")), "a kind that the older chart does not have")
        self.assert_kept({where: then for where, then in written.items() if where.split("/")[-2] == "losslesspolicies"})
        self.helm("upgrade", "heddle", CHART, "--reset-then-reuse-values", "--set", "components.run=false")
        self.plane.wait_for(lambda: preempted_by() == "team/other", "what nobody wrote over to be seen again")


class UpgradeFrom22Test(UpgradeFrom, BedTestCase):
    day = "2026-11-22"


class UpgradeFrom23Test(UpgradeFrom, BedTestCase):
    day = "2026-11-23"


if __name__ == "__main__":
    unittest.main()
