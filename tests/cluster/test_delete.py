"""Somebody deletes the Job in the middle of each step of its gang's life: while its pods are collected, planned, let go by
half, while a rank is moved and while none can be. Afterwards nothing of it is left and the next gang has the GPUs. Each
moment is made by what the apiserver refuses for a while, never by time."""

import contextlib

import scenario
from bed import path
from bed.testing import bound_to
from scenario import TEAM
from test_main_job import RefusedReleases
from test_scheduler import INDEX, GangCase

QUOTAS = f"/api/v1/namespaces/{TEAM}/resourcequotas"


class DeleteInTheMiddle(GangCase):
    """On eight servers, which the next gang takes all of."""

    def setUp(self):
        self.cordoned = []
        self.addCleanup(self.mend)

    def mend(self):
        while self.cordoned:
            self.plane.rest.patch(path("nodes", name=self.cordoned.pop()), {"spec": {"unschedulable": None}})

    # The moments: each yields the name of a gang that stays in that step as long as the block lasts

    @contextlib.contextmanager
    def collecting(self):
        """Three of four pods can be made, and the Gang quotes their controller."""
        self.plane.rest.create(QUOTAS, {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "3"}}})
        try:
            self.plane.wait_for(lambda: (self.plane.rest.get(f"{QUOTAS}/few").get("status") or {}).get("used"), "the quota to be counted")
            name = self.gang_job(pods=4)

            def quoted():
                status = (self.gang(name) or {}).get("status") or {}
                if status.get("progress", {}).get("seen") != 3 or status.get("reason") != "FailedCreate":
                    raise AssertionError(status or "no Gang")
                return status
            # The Gang is looked at again half a minute after its last pod came.
            status = self.heddle.wait_for(quoted, f"three pods of {name} to be seen, and why there is no fourth", 90)
            self.assertIn("exceeded quota: few", status["message"])
            collected = scenario.condition(self.gang(name), "Collected")
            self.assertEqual((collected["status"], collected["reason"]), ("False", "FailedCreate"))
            yield name
        finally:
            self.plane.rest.delete(f"{QUOTAS}/few")

    @contextlib.contextmanager
    def planned(self):
        with RefusedReleases(self.plane, "true"):
            name = self.gang_job()
            self.wait_gang(name, "Planned")
            self.assertEqual(self.bound(name), [])
            yield name

    @contextlib.contextmanager
    def half_let_go(self):
        with RefusedReleases(self.plane, f"{INDEX} >= 4"):
            name = self.gang_job()
            self.wait_bound(name, 4)
            yield name

    def lose_a_node(self, name):
        victim = self.bound(name)[0]
        self.cordoned.append(bound_to(victim))
        self.plane.rest.patch(path("nodes", name=bound_to(victim)), {"spec": {"unschedulable": True}})
        self.plane.rest.delete(path("pods", TEAM, victim["metadata"]["name"]), gracePeriodSeconds=0)

    @contextlib.contextmanager
    def repairing(self):
        """A rank has another slot, and its pod is not let go to it."""
        name = self.gang_job(pods=4, backoff_limit=9)
        self.wait_gang(name, "Running")
        with RefusedReleases(self.plane, "true"):
            self.lose_a_node(name)
            gang = self.wait_gang(name, "Repairing")
            self.assertGreater(gang["status"]["placement"]["epoch"], 1)
            yield name

    @contextlib.contextmanager
    def degraded(self):
        """No server is free for a lost rank."""
        name = self.gang_job(backoff_limit=9)
        self.wait_gang(name, "Running")
        self.lose_a_node(name)
        self.wait_gang(name, "Degraded", timeout=120)
        yield name

    def delete_at(self, moment):
        with moment as name:
            scenario.remove(self.plane, TEAM, name)
            self.heddle.wait_for(lambda: self.gang(name) is None, f"the Gang of {name} to be gone", 90)
            self.heddle.wait_for(self.nothing_held, "every GPU to be neither reserved nor bound", 60)
        self.assertEqual(self.plane.pods(TEAM), [])
        self.mend()
        following = self.gang_job()
        self.wait_bound(following, 8)
        self.assert_whole(following)

    def nothing_held(self):
        _, text = self.ask(self.heddle.extender_port, "GET", "/metrics")
        held = [line for line in text.splitlines()
                if line.startswith(('heddle_extender_gpus{state="reserved"}', 'heddle_extender_gpus{state="bound"}'))]
        if [line.split()[-1] for line in held] != ["0", "0"]:
            raise AssertionError(held)
        return True

    def test_while_its_pods_are_collected(self):
        self.delete_at(self.collecting())

    def test_when_it_is_planned_and_nobody_is_let_go(self):
        self.delete_at(self.planned())

    def test_when_half_of_it_is_let_go(self):
        self.delete_at(self.half_let_go())

    def test_while_a_lost_rank_is_moved(self):
        self.delete_at(self.repairing())

    def test_when_a_lost_rank_has_no_place(self):
        self.delete_at(self.degraded())
