"""What a gang costs the API server: one patch a pod and a number of requests that does not grow with the gang."""

import collections
import copy
import datetime
import time

import scenario
from bed import h100
from bed.testing import indexed_job
from scenario import TEAM
from test_main_job import HeddleTestCase

EXTENDER = "system:serviceaccount:heddle-system:heddle-extender"
QUIET_SECONDS = 4


def at(event):
    return datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp()


def without_counts(status):
    """What a Gang's status says beside how many pods have come so far."""
    said = copy.deepcopy(status)
    for name in ("progress", "summary", "message"):
        said.pop(name, None)
    for condition in said.get("conditions", []):
        condition.pop("message", None)
    return said


class RequestsOfAGang(HeddleTestCase):
    cluster = h100(units=1, nodes_per_unit=8)

    def asked(self):
        """Everything that the extender's account asks for, but its streams and what it does without any gang: Leases, and
        once a minute whether a framework has been installed since."""
        return [event for event in self.plane.audit(user=EXTENDER)
                if event["verb"] != "watch" and event["resource"] != "leases"
                and (event["resource"] != "events" or event["verb"] == "list")
                and (event["verb"], event["code"]) != ("list", 404)]

    def settle(self):
        """What has been asked when nothing more is."""
        before, since = len(self.asked()), time.monotonic()
        while time.monotonic() - since < QUIET_SECONDS:
            time.sleep(0.5)
            now = len(self.asked())
            if now != before:
                before, since = now, time.monotonic()
        return before

    def run_gang(self, pods):
        """The requests of one gang from its Job to its rest, apart: patches of pods, counts, questions why pods do not
        come, and all else."""
        begin = self.settle()
        name = f"gang-of-{pods}"
        self.submit(indexed_job(name, pods, 2, annotations={"heddle.dev/parallelism": f"tp=2,dp={pods}"}))
        scenario.wait_bound(self.plane, TEAM, pods, name)
        self.wait_gang(name, "Running")
        self.settle()
        events = self.asked()[begin:]
        cost = collections.Counter()
        last = None
        for event in events:
            kind = f"{event['verb']} {event['resource']}"
            if event["resource"] == "gangs/status" and event["code"] == 200:
                said = without_counts(event["body"]["status"])
                kind = "counts" if said == last else kind
                last = said
            elif event["resource"] == "events":
                kind = "why"
            cost[kind] += 1
        seconds = at(events[-1]) - at(events[0])
        scenario.remove(self.plane, TEAM, name)
        self.plane.wait_for(self.all_ended, "the Gang to be gone")
        return cost, seconds

    def test_requests_of_a_gang_are_one_a_pod_and_a_constant(self):
        self.run_gang(4)  # what an extender asks once in its life
        rest = {}
        for pods in (8, 32):
            cost, seconds = self.run_gang(pods)
            shown = dict(sorted(cost.items()))
            counts, why, states = cost.pop("counts", 0), cost.pop("why", 0), cost.pop("update gangs/status")
            # A gang that takes longer to start says so once a second, and asks every 10 s why its pods do not come; one
            # that is whole at first sight is never said to be collecting.
            self.assertLessEqual(counts, seconds + 2, shown)
            self.assertLessEqual(why, seconds / 10 + 1, shown)
            self.assertIn(states, (3, 4, 5), shown)
            self.assertEqual(cost.pop("patch pods"), pods, shown)
            rest[pods] = cost
            lists = sum(number for kind, number in cost.items() if kind.startswith("list "))
            print(f"\n    {pods} pods: {pods} patches, {sum(cost.values()) - lists + states} other requests, {lists + why} "
                  f"LISTs, {counts} counts in {seconds:.1f} s: {shown}", flush=True)
        self.assertEqual(rest[8], rest[32], "what is not a patch of a pod grows with the gang")
