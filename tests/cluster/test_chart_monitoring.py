"""Alerts and dashboard of charts/heddle: they ask for what the daemons export, in PromQL, and say what to do."""

import json
import re

import yaml

from bed import REPOSITORY
from chart_text import ChartTextTestCase, named, names, pod_of, rights
from promql_expressions import OF_SCRAPES, alerts, exported, expressions, family_of, panels, read, words_of

OPERATIONS = REPOSITORY / "docs" / "operations.md"
ON = {"monitoring": {"podMonitors": {"enabled": True}, "rules": {"enabled": True}, "dashboard": {"enabled": True}}}


def anchors(page):
    """Of the headings, as the pages of git hosts have them."""
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-")
            for heading in re.findall(r"^#+ (.*)$", page, re.MULTILINE)}


def asked_for(kind):
    """{metric that an expression of an "alert" or a "panel" names}."""
    return {family_of(metric) for one in expressions() for metric, _ in one.selectors if one.where.startswith(kind + " ")}


class ExpressionsTest(ChartTextTestCase):

    def test_prometheus_reads_every_one(self):
        self.assertGreater(len(expressions()), 50)
        self.assertEqual([(one.where, one.error) for one in expressions() if one.error], [])
        # And would say so if it did not.
        broken = read([("a", "sum(heddle_gpus"), ("b", "rate(heddle_x)"), ("c", "heddle_x{a=b}")])
        self.assertTrue(all(one.error for one in broken), broken)

    def test_every_metric_is_one_that_a_daemon_exports(self):
        self.assertGreater(len(exported()), 50)
        for one in expressions():
            self.assertTrue(one.selectors, one.where)
            for metric, _ in one.selectors:
                self.assertIn(family_of(metric), exported(), one.where)

    def test_every_word_that_is_asked_for_stands_in_the_sources(self):
        """What is compared is exported somewhere: state="degraded", verdict=~"Down|Flapping"."""
        sources = "".join(file.read_text() for folder in ("extender", "operator", "nodeagent", "crds", "topology")
                          for file in sorted((REPOSITORY / folder).rglob("*.cc")))
        for one in expressions():
            for _, matchers in one.selectors:
                for label, matcher in matchers.items():
                    for word in words_of(matcher):
                        self.assertTrue(f'"{word}"' in sources or word.isdigit(), f"{one.where}: {label} {word}")

    def test_legends_and_sentences_name_labels_that_are_left(self):
        for panel in panels():
            for target in panel.get("targets", []):
                said = read([(panel["title"], target["expr"])])[0]
                for label in re.findall(r"{{(\w+)}}", target.get("legendFormat", "")):
                    self.assertIn(label, said.grouping, panel["title"])
        for rule, said in zip(alerts(), expressions()):
            for label in re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])):
                self.assertIn(label, said.grouping | OF_SCRAPES, rule["alert"])


class AlertsTest(ChartTextTestCase):

    def test_each_says_how_bad_it_is_and_where_to_read_on(self):
        page = OPERATIONS.read_text()
        seen = set()
        for rule in alerts():
            with self.subTest(alert=rule["alert"]):
                self.assertNotIn(rule["alert"], seen)
                seen.add(rule["alert"])
                self.assertIn(rule["labels"]["severity"], ("critical", "warning"))
                self.assertTrue(rule["annotations"]["summary"].endswith("."))
                self.assertRegex(rule["for"], r"^\d+[mh]$")
                where, _, anchor = rule["annotations"]["runbook"].partition("#")
                self.assertEqual((where, anchor), ("docs/operations.md", rule["alert"].lower()))
                self.assertIn(anchor, anchors(page))
        # And the page has no runbook of an alert that is no more.
        self.assertEqual(set(re.findall(r"^#+ (Heddle\w+)$", page, re.MULTILINE)), seen)

    def test_a_list_that_shows_which_has_a_column_for_it(self):
        said = [found for rule in alerts() for found in re.findall(
            r"kubectl get (\w+) shows which, and (\w+) says why", rule["annotations"]["description"])]
        self.assertIn(("fabricswitches", "Reachable"), said)
        for kind, condition in said:
            version = yaml.safe_load((REPOSITORY / "crds" / f"{kind}.yaml").read_text())["spec"]["versions"][0]
            columns = [column["jsonPath"] for column in version["additionalPrinterColumns"]]
            self.assertTrue(any(f'"{condition}"' in column for column in columns), f"{kind}: {condition}")

    def test_the_operator_s_object_has_them_all_with_links(self):
        self.assertEqual(names(self.objects(), "PrometheusRule", "PodMonitor"), set())
        rule = named(self.objects(ON), "PrometheusRule", "heddle")
        self.assertEqual([one for group in rule["spec"]["groups"] for one in group["rules"]], alerts())
        self.assertNotIn("runbook_url", json.dumps(rule))
        values = {"monitoring": {"rules": {"enabled": True, "docs": "https://git.example/docs/", "labels": {"team": "ml"}}}}
        linked = named(self.objects(values), "PrometheusRule", "heddle")
        self.assertEqual(linked["metadata"]["labels"]["team"], "ml")
        self.assertEqual([one["annotations"]["runbook_url"] for group in linked["spec"]["groups"] for one in group["rules"]],
                         ["https://git.example/docs/operations.md#" + rule["alert"].lower() for rule in alerts()])


class ScrapesTest(ChartTextTestCase):

    def test_each_monitor_finds_a_port_of_its_pods(self):
        for mode, last in (("place", "scheduler"), ("observe", "observer")):
            objects = self.objects(ON | {"mode": mode})
            self.assertEqual(names(objects, "PodMonitor"), {"heddle-nodeagent", "heddle-operator", f"heddle-{last}"})
            for monitor in (one for one in objects if one["kind"] == "PodMonitor"):
                made = [one["spec"]["template"] for one in objects if one["kind"] in ("Deployment", "DaemonSet")
                        and one["metadata"]["name"] == monitor["metadata"]["name"]]
                self.assertLessEqual(monitor["spec"]["selector"]["matchLabels"].items(), made[0]["metadata"]["labels"].items())
                ports = {port["name"] for container in made[0]["spec"]["containers"] for port in container["ports"]}
                endpoint = monitor["spec"]["podMetricsEndpoints"][0]
                self.assertIn(endpoint["port"], ports)
                self.assertIn("node", [one["targetLabel"] for one in endpoint["relabelings"]])

    def test_kube_scheduler_is_asked_with_a_token_that_opens_nothing_else(self):
        login = {"ServiceAccount", "Secret", "ClusterRole", "ClusterRoleBinding"}
        self.assertNotIn("heddle-metrics", names(self.objects(ON), *login))
        asked = {"monitoring": {"podMonitors": {"enabled": True, "scheduler": True}}}
        objects = self.objects(asked)
        own, scheduler = named(objects, "PodMonitor", "heddle-scheduler")["spec"]["podMetricsEndpoints"]
        pod = pod_of(named(objects, "Deployment", "heddle-scheduler"))
        ports = {port["name"]: container["name"] for container in pod["spec"]["containers"] for port in container["ports"]}
        self.assertEqual((ports[own["port"]], ports[scheduler["port"]]), ("extender", "scheduler"))
        self.assertEqual((scheduler["scheme"], scheduler["relabelings"]), ("https", own["relabelings"]))
        self.assertNotIn("authorization", own)
        secret = named(objects, "Secret", scheduler["authorization"]["credentials"]["name"])
        self.assertEqual(secret["metadata"]["annotations"], {"kubernetes.io/service-account.name": "heddle-metrics"})
        self.assertEqual(rights(named(objects, "ClusterRole", "heddle-metrics")), {(None, "/metrics", "get")})
        # Where no scheduler runs there is none to ask, and no token.
        for other in ({"mode": "observe"}, {"components": {"run": False}}):
            self.assertNotIn("heddle-metrics", names(self.objects(asked | other), *login))
            self.assertNotIn("heddle-metrics-token", self.render(asked | other))


class DashboardTest(ChartTextTestCase):

    def test_grafana_gets_the_file_as_it_stands(self):
        self.assertEqual(names(self.objects(), "ConfigMap"), {"heddle-scheduler"})
        made = named(self.objects(ON), "ConfigMap", "heddle-dashboard")
        self.assertEqual(made["metadata"]["labels"]["grafana_dashboard"], "1")
        self.assertEqual(json.loads(made["data"]["heddle.json"])["panels"], panels())

    def test_no_panel_covers_another(self):
        taken = {}
        for panel in panels():
            at = panel["gridPos"]
            self.assertLessEqual(at["x"] + at["w"], 24, panel["title"])
            for x in range(at["x"], at["x"] + at["w"]):
                for y in range(at["y"], at["y"] + at["h"]):
                    self.assertEqual(taken.setdefault((x, y), panel["id"]), panel["id"], panel["title"])
        self.assertEqual(len({panel["id"] for panel in panels()}), len(panels()))

    def test_whoever_is_woken_finds_there_what_the_alert_saw(self):
        shown = asked_for("panel")
        self.assertGreater(len(asked_for("alert")), 15)
        for alert in (one for one in expressions() if one.where.startswith("alert")):
            with self.subTest(alert=alert.where):
                self.assertEqual({family_of(metric) for metric, _ in alert.selectors} - shown, set())

    def test_it_shows_what_people_ask_about(self):
        asked = asked_for("panel")
        for metric in ("heddle_extender_gangs", "heddle_extender_gang_plan_wait_seconds", "heddle_extender_plan_seconds",
                       "heddle_extender_whole_domains_free", "heddle_extender_fragmentation_ratio", "heddle_nodes_stale",
                       "heddle_link_verdict", "heddle_lossless_ports", "heddle_fabric_suspects", "heddle_cables", "heddle_switches"):
            self.assertIn(metric, asked)
