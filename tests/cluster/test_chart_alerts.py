"""Alerts of charts/heddle on made-up scrapes, by Prometheus' own engine: each fires when it should and only then."""

import tempfile
import unittest
from dataclasses import dataclass
from pathlib import Path

from promql_alerts import HEALTHY, HOUR, MINUTE, PLANNER, RAIL, SPARE, STEP, Story, seconds, tell
from promql_expressions import RULES, alerts

WELL = 30 * MINUTE  # before anything happens, in every story
SUSPECTS = 'heddle_fabric_suspects{instance="10.0.0.4:8081",fabric="roce"'
VERBS = "heddle_extender_request_seconds_bucket"


def verdict(word):
    return {f'heddle_link_verdict{{{RAIL},verdict="{one}"}}': int(one == word)
            for one in ("Healthy", "Degraded", "Flapping", "Down")}


@dataclass
class Case:
    """What makes an alert fire, and what looks alike and must not."""

    alert: str
    bad: dict
    summary: str
    silent: list  # changes as of a Story, counted from WELL
    late: int = 0  # seconds until the expression sees what is bad
    slack: int = STEP  # by which that may be off


CASES = [
    Case("HeddleNobodyPlans", {f"heddle_extender_leading{{{PLANNER}}}": 0},
         "No extender leads, so new gangs wait at their gates.",
         # A leader goes and the other takes over, within the Lease and a scrape.
         [(0, MINUTE, {"heddle_extender_leading": 0}),
          (MINUTE, HOUR, {f"heddle_extender_leading{{{PLANNER}}}": 0, f"heddle_extender_leading{{{SPARE}}}": 1,
                          f"heddle_extender_last_reconcile_timestamp_seconds{{{PLANNER}}}": "stuck",
                          f"heddle_extender_last_reconcile_timestamp_seconds{{{SPARE}}}": "now"})]),
    Case("HeddleNobodyPlans", {"heddle_extender_": None}, "No extender leads, so new gangs wait at their gates.",
         # One of two is not scraped.
         [(0, HOUR, {"10.0.0.2:8011": None})]),
    Case("HeddlePlannerStuck", {f"heddle_extender_last_reconcile_timestamp_seconds{{{PLANNER}}}": "stuck"},
         "The extender on infra-0 leads and has worked nothing off for 3m 30s.",
         # The one that does not lead has nothing to do; the one that does catches its breath.
         [(0, 2 * MINUTE, {f"heddle_extender_last_reconcile_timestamp_seconds{{{PLANNER}}}": "stuck"})],
         late=2 * MINUTE),
    Case("HeddleBlind", {'resource="pods"': 301},
         "The API server has said nothing of pods for 5m 1s.", [(0, 6 * HOUR, {'resource="pods"': 299})]),
    Case("HeddleGangDegraded", {'state="degraded"': 2},
         "2 gangs have a rank without a slot and stand still until their owner chooses.",
         [(0, 4 * MINUTE, {'state="degraded"': 1})]),
    Case("HeddleGangStalled", {'state="stalled"': 1},
         "1 gangs stand still on a node that is NotReady, and the eviction did not come.",
         # The taint is tolerated for five minutes.
         [(0, 6 * MINUTE, {'state="stalled"': 1})]),
    Case("HeddleGangWaitsLong", {'state="waiting"': 3}, "For six hours there was always a gang without a plan.",
         [(0, 5 * HOUR, {'state="waiting"': 3}), (5 * HOUR + MINUTE, 10 * HOUR, {'state="waiting"': 3})]),
    Case("HeddleFragmented",
         {"heddle_extender_fragmentation_ratio": 0.75, f'heddle_extender_gangs_that_fit{{{PLANNER},nodes="8"}}': 0},
         "75% of the free GPUs are on nodes that are partly taken, and no gang of 8 nodes fits.",
         # Broken, and yet one fits; then a full cluster, which is no broken one.
         [(0, 2 * HOUR, {"heddle_extender_fragmentation_ratio": 0.75}),
          (2 * HOUR, 5 * HOUR, {f'heddle_extender_gangs_that_fit{{{PLANNER},nodes="8"}}': 0,
                                "heddle_extender_fragmentation_ratio": 0})]),
    Case("HeddleNodesUnusable", {'reason="NotReady"': 2}, "2 GPU nodes are out of use: NotReady.",
         [(0, 5 * HOUR, {'reason="Cordoned"': 40, 'reason="Excluded"': 40}), (0, 20 * MINUTE, {'reason="NotReady"': 1})]),
    Case("HeddleSlowVerbs", {f'{VERBS}{{{PLANNER},verb="filter",le="0.1"}}': "9.8/s",
                             f'{VERBS}{{{PLANNER},verb="filter",le="3"}}': "9.8/s"},
         "One verb in a hundred takes longer than 3s.",
         # One in two hundred.
         [(0, 5 * HOUR, {f'{VERBS}{{{PLANNER},verb="filter",le="0.1"}}': "9.95/s"})], late=5 * MINUTE, slack=MINUTE),
    Case("HeddleNobodyAssembles", {'instance="10.0.0.4:8081"': None},
         "No operator leads, so the Fabric, node labels and wanted settings stay as they are.",
         [(0, 2 * MINUTE, {"heddle_operator_leading": 0}),
          (2 * MINUTE, HOUR, {'heddle_operator_leading{instance="10.0.0.4:8081"}': 0,
                              'heddle_operator_leading{instance="10.0.0.3:8081"}': 1})]),
    Case("HeddleAgentsAway", {"heddle_nodes_stale": 5}, "The agents of 5 nodes have not renewed their Leases.",
         # As an upgrade goes round.
         [(0, 10 * MINUTE, {"heddle_nodes_stale": 3}), (12 * MINUTE, 20 * MINUTE, {"heddle_nodes_stale": 3})]),
    Case("HeddleMiscabled", {"heddle_fabric_cabling_faults": 2},
         "2 cables of fabric infiniband end where their unit's others do not.",
         # Somebody swaps two cables, and swaps them back.
         [(0, 25 * MINUTE, {"heddle_fabric_cabling_faults": 2})]),
    Case("HeddleLinkSuspected", {SUSPECTS + ',symptom="Errors"': 1},
         "1 cables, hosts or leaves of fabric roce have been suspected for half an hour.",
         # A cable flaps twice, and holds: forgotten after ten minutes. Then again, and the operator restarts.
         [(0, 12 * MINUTE, {SUSPECTS + ',symptom="Flap"': 1}), (15 * MINUTE, 40 * MINUTE, {SUSPECTS + ',symptom="Flap"': 1}),
          (40 * MINUTE, 42 * MINUTE, {'instance="10.0.0.4:8081"': None}),
          (50 * MINUTE, 75 * MINUTE, {SUSPECTS + ',symptom="Flap"': 1})]),
    Case("HeddleCablesContradict", {'heddle_cables{instance="10.0.0.4:8081",verdict="Contradiction"': 6},
         "The ends of 6 cables are set against each other.",
         # A policy is on its way; and what nobody can prove contradicts nothing.
         [(0, 55 * MINUTE, {'heddle_cables{instance="10.0.0.4:8081",verdict="Contradiction"': 96}),
          (HOUR, 5 * HOUR, {'heddle_cables{instance="10.0.0.4:8081",verdict="Unproved"': 96})]),
    Case("HeddleSwitchSilent", {'heddle_switches{instance="10.0.0.4:8081",answers="false"': 2},
         "2 switches that are asked do not answer.",
         # One boots; then an operator starts, and has asked none yet.
         [(0, 20 * MINUTE, {'heddle_switches{instance="10.0.0.4:8081",answers="false"': 1}),
          (30 * MINUTE, 32 * MINUTE, {'heddle_switches{instance="10.0.0.4:8081",answers="false"': 12,
                                      'heddle_switches{instance="10.0.0.4:8081",answers="true"': 0})]),
    Case("HeddleUfmSilent", {'heddle_ufm_answers{instance="10.0.0.4:8081",fabric="infiniband"': 0},
         "The UFM of fabric infiniband does not answer.",
         # It boots; and later it answers.
         [(0, 20 * MINUTE, {'heddle_ufm_answers{instance="10.0.0.4:8081",fabric="infiniband"': 0}),
          (30 * MINUTE, 2 * HOUR, {'heddle_ufm_answers{instance="10.0.0.4:8081",fabric="infiniband"': 1})]),
    Case("HeddleRailBad", verdict("Down"), "gpu-017 mlx5_3 (rail 3, leaf su1-r3) is Down.",
         [(0, 14 * MINUTE, verdict("Down")), (20 * MINUTE, 30 * MINUTE, verdict("Flapping")),
          (HOUR, 2 * HOUR, verdict("Unknown"))]),
    Case("HeddleGpuUnhealthy", {'heddle_gpu_healthy{node="gpu-017"': 0},
         "gpu-017 has evidence against GPU 2 (0000:3b:00.0).",
         [(0, 10 * MINUTE, {'heddle_gpu_healthy{node="gpu-017"': 0})]),
    Case("HeddleLosslessDrift", {'heddle_lossless_ports{node="gpu-017",state="Drifted"}': 3},
         "3 ports of gpu-017 are Drifted: not as their LosslessPolicy wants them.",
         [(0, 5 * HOUR, {'heddle_lossless_ports{node="gpu-017",state="Pending"}': 8}),
          (0, 10 * MINUTE, {'heddle_lossless_ports{node="gpu-017",state="Drifted"}': 3})]),
]


def holds_for(name):
    return next(seconds(rule["for"]) for rule in alerts() if rule["alert"] == name)


class AlertsFireTest(unittest.TestCase):

    def test_each_has_a_case(self):
        self.assertEqual({case.alert for case in CASES}, {rule["alert"] for rule in alerts()})

    def test_where_all_is_well_nothing_is_even_pending(self):
        self.assertEqual(tell([Story(8 * HOUR)]), [[]])

    def test_each_fires_after_its_time_and_ends_with_its_cause(self):
        mended = {case.alert: WELL + case.late + holds_for(case.alert) + 20 * MINUTE for case in CASES}
        stories = [Story(mended[case.alert] + HOUR, [(WELL, mended[case.alert], case.bad)]) for case in CASES]
        for case, fired in zip(CASES, tell(stories)):
            with self.subTest(alert=case.alert):
                # Of what is wrong nothing else is said, unless it is the one that would not be heard of any more.
                self.assertEqual([one.alert for one in fired], [case.alert])
                one, bad = fired[0], WELL + case.late
                self.assertLessEqual(abs(one.pending - bad), case.slack)
                self.assertEqual(one.firing - one.pending, holds_for(case.alert))
                self.assertEqual(one.summary, case.summary)
                # A rate over ten minutes forgets in ten.
                self.assertGreaterEqual(one.resolved, mended[case.alert])
                self.assertLessEqual(one.resolved, mended[case.alert] + 10 * MINUTE)

    def test_what_looks_alike_or_passes_wakes_nobody(self):
        ends = [max(until for _, until, _ in case.silent) for case in CASES]
        stories = [Story(WELL + end + 20 * MINUTE, [
            (WELL + since, WELL + until, changed) for since, until, changed in case.silent]) for case, end in zip(CASES, ends)]
        for case, fired in zip(CASES, tell(stories)):
            with self.subTest(alert=case.alert):
                self.assertEqual([one for one in fired if one.firing >= 0], [])

    def test_a_port_that_is_bad_by_turns_is_bad_all_the_time(self):
        turns = [(WELL + at * 10 * MINUTE, WELL + (at + 1) * 10 * MINUTE, verdict(word))
                 for at, word in enumerate(["Flapping", "Down", "Degraded"] * 3)]
        fired, = tell([Story(3 * HOUR, turns)])
        self.assertEqual([(one.alert, one.firing - one.pending) for one in fired], [("HeddleRailBad", 15 * MINUTE)])
        self.assertEqual(fired[0].summary, "gpu-017 mlx5_3 (rail 3, leaf su1-r3) is Down.")

    def test_what_is_suspected_of_this_and_that_by_turns_is_suspected_all_the_time(self):
        turns = [(WELL + at * 10 * MINUTE, WELL + (at + 1) * 10 * MINUTE, {f'{SUSPECTS},symptom="{word}"': 1})
                 for at, word in enumerate(["Flap", "Errors"] * 3)]
        fired, = tell([Story(3 * HOUR, turns)])
        self.assertEqual([(one.alert, one.firing - one.pending) for one in fired], [("HeddleLinkSuspected", 30 * MINUTE)])

    def test_a_leader_that_goes_takes_no_suspect_with_it(self):
        """It is no longer said by who led, and by who leads now: the time goes on."""
        new = SUSPECTS.replace("10.0.0.4", "10.0.0.3") + ',symptom="Flap"}'
        fired, = tell([Story(3 * HOUR, [
            (WELL, WELL + 20 * MINUTE, {SUSPECTS + ',symptom="Flap"}': 1}), (WELL + 20 * MINUTE, 3 * HOUR, {SUSPECTS: None}),
            (WELL + 20 * MINUTE, 2 * HOUR, {new: 1}), (2 * HOUR, 3 * HOUR, {new: 0})])])
        self.assertEqual([(one.alert, one.firing - one.pending) for one in fired], [("HeddleLinkSuspected", 30 * MINUTE)])
        self.assertLessEqual(abs(fired[0].resolved - 2 * HOUR), 30)

    def test_a_rule_that_asks_for_too_much_is_found_silent(self):
        """That these tests can fail: the same story, and a threshold that nothing reaches."""
        broken = Path(self.enterContext(tempfile.TemporaryDirectory())) / "rules.yaml"
        broken.write_text(RULES.read_text().replace("heddle_nodes_stale) > 0", "heddle_nodes_stale) > 1000"))
        story = Story(3 * HOUR, [(WELL, 2 * HOUR, {"heddle_nodes_stale": 5})])
        self.assertEqual([[one.alert for one in fired] for fired in tell([story]) + tell([story], broken)],
                         [["HeddleAgentsAway"], []])

    def test_a_story_of_a_series_that_nobody_has_is_none(self):
        with self.assertRaises(KeyError):
            Story(HOUR, [(0, HOUR, {"heddle_nodes_stael": 1})]).load()
        self.assertIn("heddle_nodes_stale", " ".join(HEALTHY))
