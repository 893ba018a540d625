"""What people watch on a real control plane: the extender's metrics over a gang's life, and `kubectl heddle explain`."""

import json
import re
import subprocess
import urllib.request
from pathlib import Path

import scenario
from bed import Heddle, h100, path
from bed.process import free_port
from bed.testing import BedTestCase, indexed_job, options
from promql_expressions import OF_HISTOGRAMS, OF_SCRAPES, expressions, family_of
from scenario import TEAM


def training_job(name, nodes, require=None):
    annotations = {"heddle.dev/parallelism": f"tp=8,dp={nodes}"}
    if require:
        annotations["heddle.dev/require"] = require
    return indexed_job(name, nodes, 8, backoff_limit=0, annotations=annotations)


class WatchingTest(BedTestCase):
    cluster = h100(nodes_per_unit=4)

    @classmethod
    def set_up_bed(cls):
        cls.binaries = Path(options.binaries).resolve()
        cls.heddle = Heddle(cls.plane, cls.binaries)
        scenario.start_heddle(cls.heddle, cls.nodes, cls.cluster)
        cls.metrics_port = free_port()
        cls.heddle.stop_daemon("extender")
        cls.heddle.start_extender("--metrics-listen", f"127.0.0.1:{cls.metrics_port}")

    def tearDown(self):
        for job in self.plane.rest.list(path("jobs", TEAM)):
            scenario.remove(self.plane, TEAM, job["metadata"]["name"])
        self.plane.kubectl("uncordon", *(node.name for node in self.cluster.nodes))
        self.wait_metric('heddle_extender_gpus{state="free"}', 64)

    def metrics(self, port=None):
        with urllib.request.urlopen(f"http://127.0.0.1:{port or self.metrics_port}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}

    def wait_metric(self, name, value, timeout=60.0):
        def there():
            now = self.metrics().get(name)
            if now != value:
                raise AssertionError(f"{name} is {now}")
            return True
        self.heddle.wait_for(there, f"{name} to be {value}", timeout)

    def explain(self, *arguments):
        return subprocess.run([str(self.binaries / "kubectl-heddle"), "explain", *arguments, "-n", TEAM],
                              capture_output=True, text=True, check=False, timeout=60,
                              env={"KUBECONFIG": str(self.plane.kubeconfig), "HOME": str(self.plane.folder)})

    def wait_reason(self, name, reason):
        def there():
            status = (scenario.gang_of(self.plane, TEAM, name) or {}).get("status", {})
            if status.get("reason") != reason:
                raise AssertionError(status.get("summary"))
            return True
        self.heddle.wait_for(there, f"{name} to be {reason}", 60)

    def test_metrics_move_with_a_gangs_life(self):
        self.wait_metric('heddle_extender_gangs_that_fit{nodes="4"}', 2)
        before = self.metrics()
        self.plane.rest.create(path("jobs", TEAM), training_job("llama", 4))
        scenario.wait_bound(self.plane, TEAM, 4, "llama")
        self.wait_metric('heddle_extender_gangs{state="running"}', 1)
        self.wait_metric('heddle_extender_gpus{state="bound"}', 32)
        now = self.metrics()
        for name, value in {
                'heddle_extender_gpus{state="free"}': 32, 'heddle_extender_gpus{state="reserved"}': 0,
                'heddle_extender_gangs_that_fit{nodes="4"}': 1, "heddle_extender_largest_gang_nodes": 4,
                "heddle_extender_whole_nodes_free": 4, 'heddle_extender_whole_domains_free{gpus="8"}': 4,
                "heddle_extender_fragmentation_ratio": 0, "heddle_extender_leading": 1}.items():
            self.assertEqual(now[name], value, name)
        for name in ('heddle_extender_gang_plan_wait_seconds_count{at_once="true"}',
                     'heddle_extender_planned_step_seconds_count{for="start"}'):
            self.assertEqual(now[name], before.get(name, 0) + 1, name)
        self.assertGreater(now['heddle_extender_planned_edges_total{axis="dp",crosses="false"}'],
                           before.get('heddle_extender_planned_edges_total{axis="dp",crosses="false"}', 0))
        # A watch without events hears a bookmark once a minute.
        for resource in ("pods", "nodes", "gangs", "jobs", "nodetopologies", "fabrics"):
            self.assertLess(now[f'heddle_extender_watch_age_seconds{{resource="{resource}"}}'], 120, resource)
        self.assertGreater(now["heddle_extender_last_reconcile_timestamp_seconds"], 1.7e9)

        # One GPU of a server that is whole leaves seven fragments.
        self.plane.rest.create(path("jobs", TEAM), indexed_job("notebook", 1, 1))
        scenario.wait_bound(self.plane, TEAM, 1, "notebook")
        self.wait_metric("heddle_extender_largest_gang_nodes", 3)
        self.assertAlmostEqual(self.metrics()["heddle_extender_fragmentation_ratio"], 7 / 31, 3)

        # A gang that finds no room waits, and is counted.
        self.plane.rest.create(path("jobs", TEAM), training_job("second", 4))
        self.wait_metric('heddle_extender_gangs{state="waiting"}', 1)
        scenario.remove(self.plane, TEAM, "notebook")
        scenario.wait_bound(self.plane, TEAM, 4, "second")
        self.wait_metric('heddle_extender_gangs{state="running"}', 2)
        waited = 'heddle_extender_gang_plan_wait_seconds_count{at_once="false"}'
        self.assertEqual(self.metrics()[waited], before.get(waited, 0) + 1)

        node = self.cluster.nodes[0].name
        self.plane.kubectl("cordon", node)
        self.wait_metric('heddle_extender_unusable_nodes{reason="Cordoned"}', 1)
        self.plane.kubectl("uncordon", node)
        self.wait_metric('heddle_extender_unusable_nodes{reason="Cordoned"}', 0)

    def test_alerts_and_dashboard_choose_by_labels_that_there_are(self):
        node, port = self.cluster.nodes[0].name, free_port()
        self.heddle.stop_daemon(f"agent:{node}")
        self.heddle.start_agent(node, "--listen", f"127.0.0.1:{port}")
        self.plane.rest.create(path("jobs", TEAM), training_job("llama", 4))
        scenario.wait_bound(self.plane, TEAM, 4, "llama")
        self.plane.rest.create(path("jobs", TEAM), training_job("wide", 16))
        last = self.cluster.nodes[-1].name
        self.plane.kubectl("cordon", last)
        self.wait_metric('heddle_extender_unusable_nodes{reason="Cordoned"}', 1)
        self.wait_metric('heddle_extender_gangs{state="running"}', 1)
        self.wait_metric('heddle_extender_gangs{state="waiting"}', 1)

        def looked():
            return any(name.startswith("heddle_link_verdict") for name in self.metrics(port))
        self.heddle.wait_for(looked, "the agent to have looked")
        there = {}
        for scraped in (self.metrics_port, self.heddle.operator_port, port):
            for series in self.metrics(scraped):
                name, _, labels = series.partition("{")
                there.setdefault(family_of(name), set()).update(re.findall(r'(\w+)="', labels))
        asked = {}
        for one in expressions():
            for metric, matchers in one.selectors:
                asked.setdefault(family_of(metric), set()).update(matchers)
                grouped = one.grouping - OF_SCRAPES - ({"le"} if metric.endswith(OF_HISTOGRAMS) else set())
                if len({family_of(name) for name, _ in one.selectors}) == 1:
                    asked[family_of(metric)] |= grouped
        # What only trouble makes, and a Fabric that names a UFM (its labels: metrics_test of the operator).
        unseen = set(asked) - set(there)
        self.assertLessEqual(unseen, {"heddle_extender_write_failures_total", "heddle_ufm_answers"})
        for name, labels in asked.items():
            if name not in unseen:
                self.assertLessEqual(labels, there[name] | OF_SCRAPES, name)

    def test_explain_answers_why_here_why_waiting_and_what_would_help(self):
        for name, nodes in (("first", 3), ("second", 3)):
            self.plane.rest.create(path("jobs", TEAM), training_job(name, nodes, "dp=leaf"))
            scenario.wait_bound(self.plane, TEAM, nodes, name)
        runs = self.explain("job/first", "-o", "json")
        self.assertEqual(runs.returncode, 0, runs.stderr)
        gang = json.loads(runs.stdout)["gang"]["name"]
        self.assertNotIn("waiting", json.loads(runs.stdout))
        by_gang = self.explain(f"gang/{gang}", "-o", "json")
        self.assertEqual(json.loads(by_gang.stdout)["stepMicros"], json.loads(runs.stdout)["stepMicros"])

        self.plane.rest.create(path("jobs", TEAM), training_job("third", 2, "dp=leaf"))
        self.wait_reason("third", "Requirement")
        waits = self.explain("job/third", "-o", "json")
        self.assertEqual(waits.returncode, 3, waits.stderr)
        said = json.loads(waits.stdout)
        self.assertEqual((said["waiting"]["position"], said["waiting"]["queued"]), (1, 1))
        self.assertEqual([holder["name"] for holder in said["waiting"]["holders"]], ["gang team/first", "gang team/second"])
        helps = {remedy["kind"]: remedy for remedy in said["wouldHelp"]}
        self.assertEqual(set(helps), {"End", "WeakerRequirement", "FewerGpus"}, said["wouldHelp"])
        text = self.explain("job/third").stdout
        for words in ("Why waiting", "WHAT WOULD HELP", "nobody is ahead", helps["End"]["names"][0]):
            self.assertIn(words, text)

        # What was said to help does.
        ended = helps["End"]["names"][0].split("/")[1].split(" ")[0]
        scenario.remove(self.plane, TEAM, ended)
        scenario.wait_bound(self.plane, TEAM, 2, "third")

        self.assertIn("third", self.explain("job/thrid").stderr)
        self.assertIn("this cluster has no jobsets", self.explain("jobset/third").stderr)
        self.assertEqual(self.explain("deployment/third").returncode, 2)
