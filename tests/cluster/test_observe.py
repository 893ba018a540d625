"""Mode observe on a real control plane: the cluster's own scheduler places, Heddle prices it and touches no pod."""

import json
import math
import re
import subprocess
from pathlib import Path

import scenario
from bed import Heddle, h100, path
from bed.testing import BedTestCase, options
from scenario import MAIN_JOB, STOCK, TEAM, TrainingJob

EXTENDER = "system:serviceaccount:heddle-system:heddle-extender"


def percent(part, whole):
    """In whole per cent, a half counted up."""
    return math.floor(100 * part / whole + 0.5)


class ObserveTest(BedTestCase):
    cluster = h100()

    @classmethod
    def set_up_bed(cls):
        cls.binaries = Path(options.binaries).resolve()
        cls.heddle = Heddle(cls.plane, cls.binaries)
        cls.nodes.add(cls.cluster)
        cls.heddle.install(mode="observe")
        scenario.make_namespaces(cls.plane)
        cls.heddle.write_machines(cls.cluster)
        cls.heddle.start_operator()
        cls.heddle.start_agents()
        cls.heddle.start_extender("--mode=observe", "--own-lease")
        cls.heddle.wait_published(cls.heddle.machines)
        scenario.declare_fabric(cls.plane, cls.cluster)
        scenario.wait_fabric(cls.heddle, cls.cluster)

    def observe(self, *arguments):
        return self.ask("observe", *arguments)

    def ask(self, *arguments):
        command = [str(self.binaries / "kubectl-heddle"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60,
                              env={"KUBECONFIG": str(self.plane.kubeconfig), "HOME": str(self.plane.folder)})

    def wait_observed(self, namespace, name):
        def there():
            gang = scenario.gang_of(self.plane, namespace, name)
            if not gang or not {"observed", "predicted"} <= gang.get("status", {}).keys():
                raise AssertionError(gang.get("status") if gang else "no Gang")
            return gang
        return self.heddle.wait_for(there, f"{name} to be observed", 90)

    def test_what_the_stock_scheduler_did_is_priced_beside_what_heddle_would_have_done(self):
        scenario.submit(self.plane, TEAM, MAIN_JOB)
        scenario.wait_bound(self.plane, TEAM, MAIN_JOB.pods, MAIN_JOB.name)
        gang = self.wait_observed(TEAM, MAIN_JOB.name)
        actual, heddle = gang["status"]["predicted"], gang["status"]["observed"]["heddle"]
        self.assertGreater(actual["stepMicros"], heddle["stepMicros"])
        self.assertEqual(heddle["tpGroupsInDomain"], heddle["tpGroups"])
        self.assertNotIn("placement", gang["status"])
        self.assertNotIn("ownerReferences", gang["metadata"])
        explained = scenario.explain(self.plane, self.binaries, TEAM, MAIN_JOB)
        self.assertEqual(explained["stepMicros"], actual["stepMicros"], "explain and observe price the same")

        # A Job that says nothing, in a namespace that nobody labelled.
        plain = TrainingJob("plain", 4, 8, "tp=8,dp=4")
        scenario.submit(self.plane, STOCK, plain, annotated=False)
        scenario.wait_bound(self.plane, STOCK, 4, "plain")
        self.assertTrue(self.wait_observed(STOCK, "plain")["status"]["observed"]["assumedParallelism"])

        for pod in self.plane.pods(TEAM) + self.plane.pods(STOCK):
            self.assertEqual(pod["spec"]["schedulerName"], "default-scheduler")
            self.assertFalse([key for key in pod["metadata"].get("annotations", {})
                              if key.startswith("heddle.dev/") and key not in
                              ("heddle.dev/parallelism", "heddle.dev/model")])
        touched = [event for event in self.plane.audit(user=EXTENDER)
                   if event["resource"].startswith("pods") and event["verb"] not in ("get", "list", "watch")]
        self.assertEqual(touched, [])
        told = [event for event in self.plane.rest.list(path("events", TEAM)) if event["reason"] == "Observed"]
        self.assertEqual([event["involvedObject"]["name"] for event in told], [MAIN_JOB.name])
        self.assertIn("where Heddle would have put them", told[0]["message"])

        # It outlives its Job, and a kill -9.
        scenario.remove(self.plane, TEAM, MAIN_JOB.name)
        self.heddle.kill9("extender")
        self.heddle.start_daemon("extender")
        self.heddle.wait_for(
            lambda: (scenario.condition(scenario.gang_of(self.plane, TEAM, MAIN_JOB.name), "Ended") or {}).get("status") == "True",
            "the observed Gang to be ended", 90)
        printed = self.observe()
        self.assertEqual(printed.returncode, 0, printed.stderr)
        self.assertIn(f"team/{MAIN_JOB.name}", printed.stdout)
        line = printed.stdout.splitlines()[-1]
        self.assertRegex(line, r"^last 2 jobs: \d+ % of DP edges crossed leaves; Heddle: \d+ %; predicted step \d+ % shorter$")
        totals = json.loads(self.observe("-o", "json").stdout)
        theirs, ours = totals["cluster"], totals["heddle"]
        self.assertEqual([int(word) for word in re.findall(r"(\d+) %", line)], [
            percent(theirs["dpLeafCrossings"], theirs["dpEdges"]), percent(ours["dpLeafCrossings"], ours["dpEdges"]),
            percent(theirs["stepMicros"] - ours["stepMicros"], theirs["stepMicros"])])
        self.assertEqual(theirs["stepMicros"], sum(job["cluster"]["stepMicros"] for job in totals["jobs"]))
        as_json = json.loads(self.observe("-o", "json", "-n", TEAM).stdout)
        self.assertEqual((as_json["compared"], as_json["jobs"][0]["name"]), (1, MAIN_JOB.name))
        self.assertEqual(as_json["heddle"]["stepMicros"], heddle["stepMicros"])
        self.assert_nothing_forbidden("nodeagent", "operator", "extender")

    def test_what_heddle_would_refuse_is_said_while_the_job_runs_all_the_same(self):
        job = TrainingJob("wrong", 2, 8, "tp=8,dp=3")
        scenario.submit(self.plane, TEAM, job)
        scenario.wait_bound(self.plane, TEAM, 2, "wrong")

        def said():
            gang = scenario.gang_of(self.plane, TEAM, "wrong")
            if not gang or "24" not in gang.get("status", {}).get("message", ""):
                return None
            return (scenario.condition(gang, "Running") or {}).get("status") == "True" and gang
        gang = self.heddle.wait_for(said, "the annotation's fault to be named, of a gang that runs", 60)
        self.assertIn("observed", gang["status"], "nobody is to take it for one that waits for a plan")
        told = json.loads(self.ask("status", "-o", "json", "-n", TEAM).stdout)["items"]
        self.assertEqual([(item["severity"], item["what"]) for item in told if item["kind"] == "Gang"],
                         [("note", "not priced: WorldMismatch")])
        scenario.remove(self.plane, TEAM, "wrong")
        self.heddle.wait_for(lambda: not scenario.gang_of(self.plane, TEAM, "wrong"), "its Gang to go with it", 60)
