"""A LosslessPolicy all the way to a kernel: real API server and operator, and an agent in a guest whose interfaces have
DCB (tests/lab/dcbdev). What was written is what the device counted."""

import json
import os
import random
import re
import time

from bed import path
from guest_bed import NEXT, NODE, PORT, GuestBed, lab

JOURNAL = f"/run/heddle/qos/{PORT}.json"
EBUSY, EOPNOTSUPP = 16, 95
# What a port from nothing takes: DCBX, CNPs and DCQCN are right already.
WRITES = {"ets": 1, "pfc": 1, "app": 64, "watchdog": 1, "mtu": 1}


class LosslessGuestTest(GuestBed):

    def test_from_nothing_to_compliant_and_a_change_is_seen_within_a_minute(self):
        self.start_agent()
        self.make()
        report = self.wait_state("Compliant")
        self.assertEqual([gap["setting"] for gap in report.get("gaps", [])], ["ecn"])
        self.assertEqual(self.device.writes(), WRITES)
        self.assertIn("3:on", self.guest.run("dcb pfc show dev dcb0"))
        # Of a second generation only what differs.
        self.device.reset()
        self.change(mtu=8900)
        self.assertEqual(self.wait_generation(2)["have"]["mtu"], 8900)
        self.assertEqual(self.device.writes(), {"mtu": 1})

        # An agent that starts again writes nothing, and hears a person who does.
        self.guest.run("kill $(cat /mnt/agent.pid); while kill -0 $(cat /mnt/agent.pid); do sleep 0.1; done")
        self.device.reset()
        renewed = lambda: self.rest.get(path("leases", "heddle-system", f"heddle-node-{NODE}"))["spec"]["renewTime"]
        before = renewed()
        self.start_agent()
        self.heddle.wait_for(lambda: renewed() != before, "the agent's Lease", 120)
        self.guest.run("dcb pfc set dev dcb0 prio-pfc 4:on")
        drift = self.wait_state("Drifted", 60)["drift"]
        self.assertEqual([(one["setting"], one["want"], one["have"], one["writer"]) for one in drift],
                         [("pfc", "3", "3,4", "manual")])
        # It had just started and looked. Now it is between two looks, and the kernel tells it.
        self.guest.run("dcb pfc set dev dcb0 prio-pfc 5:on")
        since = time.monotonic()
        self.heddle.wait_for(lambda: self.report()["drift"][0]["have"] == "3,4,5", "the second change", 60)
        print(f"(seen after {time.monotonic() - since:.1f} s) ", end="", flush=True)
        self.assertEqual(self.device.writes(), {"pfc": 2}, "the person's, and none of ours: onDrift is Report")

    def test_each_time_a_write_takes_the_link_down_is_counted_and_no_other(self):
        self.device.set("bounce", 1)
        self.start_agent()
        up = self.carrier_changes()
        self.make()
        self.wait_state("Compliant")
        self.assertEqual((self.device.writes(), self.link_downs()), (WRITES, 1))
        self.assertEqual(self.carrier_changes() - up, 2)
        self.assertRegex(self.wait_event("LosslessApplied"), "; its link went down and up once by that, which is no fl")
        # A DSCP alone leaves the link alone.
        self.device.reset()
        self.device.set("bounce", 1)
        self.change(classes=[{"name": "nvme-of", "use": "Storage", "dscps": "10", "priority": 1}])
        self.wait_generation(2)
        self.assertEqual((self.device.writes(), self.carrier_changes() - up), ({"app": 1}, 2))
        self.assertEqual(self.wait_event("LosslessApplied", "dscpToPriority is set").count("link"), 0)
        # mlx5 takes it down for PFC and for the MTU: two writes, each once.
        self.guest.run("dcb pfc set dev dcb0 prio-pfc all:off")
        self.wait_state("Drifted", 60)
        self.device.reset()
        self.device.set("bounce", 3)
        downs, up = self.link_downs(), self.carrier_changes()
        self.change(mtu=8900)
        self.wait_generation(3)
        self.assertEqual((self.device.writes(), self.link_downs() - downs), ({"mtu": 1, "pfc": 1}, 2))
        self.assertEqual(self.carrier_changes() - up, 4)
        self.assertIn("; its link went down and up 2 times by that", self.wait_event("LosslessApplied", "pfc and mtu"))
        self.assertNotIn("Flapping", str([c["reason"] for c in self.status()["conditions"]]))

    def test_global_pause_goes_before_pfc_comes_and_whoever_switches_it_on_again_is_seen(self):
        self.device.set("pause", 3)
        self.start_agent(interval=5)
        self.make()
        report = self.wait_state("Compliant")
        self.assertEqual((self.device.writes(), report["have"]["globalPause"]), ({**WRITES, "pause": 1}, "None"))
        self.guest.run("ethtool -A dcb0 rx on")
        drift = self.wait_state("Drifted", 60)["drift"]
        self.assertEqual([(one["setting"], one["want"], one["have"], one["writer"]) for one in drift],
                         [("globalPause", "None", "RX", "manual")])
        # A driver that does not let it be switched off is not called lossless.
        self.device.reset()
        self.device.fail("pause", EOPNOTSUPP)
        self.change(mtu=8900)
        reason = self.wait_state("Failed", words="globalPause")["reason"]
        self.assertRegex(reason, "the driver cannot set globalPause .*does not offer this")
        self.assertEqual(self.device.writes(), {"mtu": 1, "pause": 1})

    def test_a_busy_driver_is_asked_ever_more_rarely_and_the_rest_is_not_written_again(self):
        self.device.fail("pfc", EBUSY)
        self.start_agent(interval=5)
        self.make()
        reason = self.wait_state("Pending", words="is busy")["reason"]
        # The field, what the kernel said, and what comes next.
        self.assertRegex(reason, r"is busy and is tried again after a pause that grows: pfc: .*[Bb]usy")
        self.assertEqual(self.condition("Lossless")["reason"], "Pending")
        self.assertIn("is busy", self.condition("Lossless")["message"])
        since, tried = time.monotonic(), self.device.writes()["pfc"]
        time.sleep(20)
        writes = self.device.writes()
        # Pauses of 5, 10 and 20 s, and looks every 5.
        self.assertLessEqual(writes["pfc"] - tried, 3, f"in {time.monotonic() - since:.0f} s")
        self.assertGreaterEqual(writes["pfc"] - tried, 1)
        self.assertEqual({name: count for name, count in writes.items() if name != "pfc"},
                         {name: count for name, count in WRITES.items() if name != "pfc"})
        self.device.fail("pfc", 0)
        self.wait_state("Compliant")
        self.assertEqual(self.device.writes()["app"], 64)
        self.assertIn("3:on", self.guest.run("dcb pfc show dev dcb0"))
        print(f"({self.device.writes()['pfc']} writes of PFC) ", end="", flush=True)

    def test_what_the_driver_does_not_offer_is_named_and_not_tried_again(self):
        self.device.fail("watchdog", EOPNOTSUPP)
        self.start_agent(interval=5)
        self.make()
        report = self.wait_state("Compliant")
        gaps = {gap["setting"]: gap["reason"] for gap in report["gaps"]}
        self.assertIn("its driver does not offer this", gaps["watchdogMs"])
        self.assertEqual(self.device.writes(), WRITES)
        self.heddle.wait_for(lambda: self.condition("Lossless").get("reason") == "NoWatchdog", "the other port", 60)
        # Without PFC no port is lossless.
        self.device.reset()
        self.device.fail("pfc", EOPNOTSUPP)
        self.guest.run("dcb app replace dev dcb0 dscp-prio 26:0")
        self.wait_state("Drifted", 60)
        self.change(pfcPriorities=[4], rdma={"priority": 4})
        reason = self.wait_state("Failed", words="pfc")["reason"]
        self.assertRegex(reason, "the driver cannot set pfc .*does not offer this.*Take the port out of the policy")
        writes = self.device.writes()
        self.assertEqual(writes["pfc"], 1)
        time.sleep(15)
        self.assertEqual(self.device.writes(), writes, "it is not tried again at every look")

    def test_a_link_that_does_not_come_back_is_rolled_back_and_stops_the_others(self):
        self.device.set("bounce", 2)
        self.start_agent(interval=5)
        # A node whose ports nobody knows yet is nobody's canary, and one whose NIC is of another kind is one, too.
        self.heddle.wait_for(lambda: self.status().get("nics"), "the agent to publish", 90)
        nic = next(one for one in self.status()["nics"] if one["name"] == PORT.split(":", maxsplit=1)[0])
        port = {"number": 1, "state": "Active", "leafMissing": "Unknown"}
        self.rest.patch(path("nodetopologies", name=NEXT, sub="status"), {"status": {
            "observedAt": "2026-01-31T12:00:00Z", "hash": "0123456789abcdef", "nvlinkDomainMissing": "NotApplicable",
            "nics": [{"name": "mlx5_0", "rail": 0, "transport": "RoCE", "role": "compute", "ports": [port],
                      **{key: nic[key] for key in ("pciId", "driver") if key in nic}}]}})
        self.make(canary=1, nodeSelector={"row": "7"})
        reason = self.wait_state("Failed", 240)["reason"]
        self.assertRegex(reason, "the link had no carrier 60 s after the write, and had one before; "
                                 "what was there before is set again; nothing more is tried until the policy changes")
        self.assertEqual(self.kernel_settings(), self.before)
        self.assertEqual(self.guest.run("cat /sys/class/net/dcb0/carrier").strip(), "1")
        # The other port's turn has come: its write may be under way.
        self.assertNotIn(JOURNAL, self.journal())
        self.wait_event("LosslessRolledBack", "no carrier")
        self.wait_ready("CanaryStopped")
        self.assertIn(f"{NODE} {PORT}", self.ready()["message"])
        self.assertIn("no carrier", self.ready()["message"])
        self.wait_event("LosslessCanaryStopped", about=self.policy)
        writes = self.device.writes()
        time.sleep(15)
        self.assertEqual((self.spec(NEXT), self.device.writes()), ([], writes))
        # Mended, and said to try again.
        self.device.set("bounce", 1)
        self.change(mtu=8900)
        self.wait_state("Compliant")
        self.heddle.wait_for(lambda: self.spec(NEXT), "the other node to be told", 60)

    def test_a_port_that_a_program_uses_is_not_written_until_that_has_ended(self):
        self.guest.run("(ibv_rc_pingpong -d rxe0 >/mnt/pingpong 2>&1 & echo $! >/mnt/pingpong.pid) >/dev/null 2>&1")
        self.addCleanup(self.guest.attempt, "kill -9 $(cat /mnt/pingpong.pid)")
        lab.wait_for("its queue pair",
                     lambda: "ibv_rc_pingpong" in self.guest.attempt("rdma resource show qp link rxe0")[1])
        program = self.guest.run("cat /mnt/pingpong.pid").strip()
        self.start_agent(interval=5, patience=15)
        self.make()
        self.wait_state("Pending", words="waits for programs that use it")
        # It is not waited for without an end: new pods get it again, and who holds it is named.
        reason = self.wait_state("Pending", words="new pods get it again")["reason"]
        self.assertRegex(reason, rf"programs use it; processes: ibv_rc_pingpong \(pid {program}\)")
        self.assertIn(f"ibv_rc_pingpong (pid {program})", self.wait_event("LosslessPortInUse"))
        self.assertEqual((self.device.writes(), self.kernel_settings()), ({}, self.before))
        self.guest.run("kill $(cat /mnt/pingpong.pid)")
        self.wait_state("Compliant")
        self.assertEqual(self.device.writes(), WRITES)

    def test_a_nic_that_vanishes_in_the_middle_is_gone_on_with_when_it_is_back(self):
        self.device.fail("pfc", EBUSY)
        self.start_agent(interval=5)
        self.make()
        self.wait_state("Pending", words="is busy")
        self.unbind()
        self.wait_state("Unknown", words="the interface vanished in the middle of being set")
        self.assertIn(JOURNAL, self.journal(), "what was begun is not forgotten")
        # Its driver comes back with its own settings, and without the error.
        self.bind()
        self.wait_state("Compliant")
        # All of them are written anew. (The count of writes went with the device.) The other port's turn has come.
        self.assertEqual(self.device.writes(), WRITES)
        self.assertNotIn(JOURNAL, self.journal())

    def test_errors_that_grow_after_a_write_take_it_back(self):
        self.start_agent(settle=20)
        self.make()
        self.wait_state("Pending", words="its link is watched")
        self.assertNotEqual(self.kernel_settings(), self.before)
        self.device.set("count/rx_crc_errors_phy", 500)
        reason = self.wait_state("Failed", words="nothing more is tried until the policy changes")["reason"]
        self.assertIn("rx_crc_errors_phy grew by 500 after the write, and by 0 in the time before it", reason)
        self.assertIn("what was there before is set again", reason)
        self.assertEqual(self.kernel_settings(), self.before)
        self.assertIn("rx_crc_errors_phy", self.wait_event("LosslessRolledBack"))

    def test_discards_that_grow_after_a_write_take_it_back(self):
        self.device.set("count/rx_discards_phy", 70)
        self.start_agent(settle=20)
        self.make()
        self.wait_state("Pending", words="its link is watched")
        self.device.set("count/rx_discards_phy", 570)
        reason = self.wait_state("Failed", words="nothing more is tried until the policy changes")["reason"]
        self.assertIn("rx_discards_phy grew by 500 after the write, and by 0 in the time before it", reason)
        self.assertEqual(self.kernel_settings(), self.before)

    def killed_half_way(self):
        """An agent is killed when all is set but PFC."""
        self.device.fail("pfc", EBUSY)
        self.start_agent()
        self.make()
        self.wait_state("Pending", words="is busy")
        self.kill_agent()
        self.assertTrue(self.journal())
        half = self.kernel_settings()
        self.assertNotEqual(half, self.before)
        self.assertNotIn("3:on", self.guest.run("dcb pfc show dev dcb0"))
        self.device.reset()

    def test_the_next_agent_finishes_what_one_that_was_killed_began(self):
        self.killed_half_way()
        self.start_agent()
        self.wait_state("Compliant")
        self.assertEqual((self.device.writes(), self.journal()), ({"pfc": 1}, []))
        self.wait_event("LosslessApplied", "as was begun before the agent restarted")

    def test_the_next_agent_takes_back_what_nobody_wants_any_more(self):
        self.killed_half_way()
        self.rest.delete(path("losslesspolicies", name=self.policy))
        self.heddle.wait_for(lambda: not self.spec(), "the spec to be empty")
        self.start_agent()
        self.wait_event("LosslessRolledBack", "no policy wants it any more; what was there before is set again")
        self.assertEqual((self.kernel_settings(), self.journal()), (self.before, []))
        self.assertNotIn("pfc", self.device.writes(), "it never was written")

    def start_lldpad(self):
        """Debian's, which wants PFC on priority 5, too."""
        guest = self.guest
        # Its state and its shared memory, which this guest has nowhere else.
        guest.run("mkdir -p /dev/shm && mount -t tmpfs none /dev/shm && mount -t tmpfs none /var/lib/lldpad")
        self.addCleanup(guest.run, "umount /dev/shm /var/lib/lldpad")
        guest.run("lldpad >/mnt/lldpad 2>&1 & echo $! >/mnt/lldpad.pid")
        self.addCleanup(guest.run, "kill $(cat /mnt/lldpad.pid); until ! pidof lldpad >/dev/null; do sleep 0.1; done")
        lab.wait_for("lldpad", lambda: guest.attempt("lldptool ping")[0] == 0, 60)
        guest.run("lldptool set-lldp -i dcb0 adminStatus=rxtx && lldptool -T -i dcb0 -V IEEE-DCBX mode=reset && "
                  "lldptool -T -i dcb0 -V PFC willing=no enabled=3,5")

    def wrote(self):
        """What the agent wrote to the port, as it logs it: lldpad makes itself known on the other one, too."""
        log = (self.guest.folder / "agent").read_text(errors="replace")
        return re.findall(rf'Lossless port={PORT} what="((?:wrote|could not|is set back)[^"]*)"', log)

    def test_an_lldpad_that_insists_is_a_conflict_and_no_fight(self):
        self.device.set("bounce", 1)
        self.start_agent(interval=5)
        self.make(onDrift="Repair")
        self.wait_ready("Compliant")  # both ports
        self.start_lldpad()
        before, insisted = len(self.wrote()), 0

        def at_odds():
            nonlocal insisted
            if self.report().get("state") == "Compliant":
                # It writes what it was told anew; whatever else makes it write, it does by itself.
                self.guest.run("lldptool -T -i dcb0 -V PFC enabled=3; lldptool -T -i dcb0 -V PFC enabled=3,5")
                insisted += 1
                time.sleep(5)
            if self.report().get("state") != "Conflict":
                raise AssertionError(f"{self.report()}\n{self.said()}")
            return True
        self.heddle.wait_for(at_odds, "the conflict", 300)
        did = self.wrote()[before:]
        # Three repairs; and of one that is written over at once a second try, and what was there before.
        self.assertLessEqual(len(did), 3 + 3, did)
        self.assertGreaterEqual(len(did), 1, did)
        self.assertIn("lldpad", self.report()["reason"])
        condition = self.condition("Lossless")
        self.assertEqual((condition["status"], condition["reason"]), ("False", "Conflict"))
        self.assertIn("lldpad", condition["message"])
        self.assertIn("lldpad", self.wait_event("LosslessConflict"))
        self.wait_ready("Conflict")
        # From here on it has the port to itself.
        self.device.reset()
        self.guest.run("lldptool -T -i dcb0 -V PFC enabled=3; lldptool -T -i dcb0 -V PFC enabled=3,5")
        ours = self.wrote()
        time.sleep(60)
        self.assertEqual(self.wrote(), ours)
        # lldpad goes on, with nobody against it.
        writes = self.device.writes()
        print(f"({did}, lldpad told {insisted} times; {self.report()['reason']}; in a minute of conflict {writes}, "
              "none of them ours) ", end="", flush=True)

    def test_killed_at_any_moment_nothing_half_applied_stays(self):
        seed = int(os.environ.get("HEDDLE_SEED") or random.randrange(1 << 32))
        print(f"(HEDDLE_SEED={seed}) ", end="", flush=True)
        chance = random.Random(seed)
        self.device.set("bounce", 3)
        self.start_agent()
        self.make()
        self.heddle.wait_for(self.spec, "the spec", 90)
        deaths = 0
        for _ in range(6):
            time.sleep(chance.uniform(1, 5))
            self.kill_agent()
            deaths += bool(self.journal())
            self.start_agent()
        # Three deaths in one write are taken for its doing.
        ends = lambda: next((one for one in ("Compliant", "Failed") if self.report().get("state") == one), None)
        state = self.heddle.wait_for(ends, "an end of it", 240)
        self.heddle.wait_for(lambda: not self.journal(), "a journal without a write", 60)
        print(f"({deaths} in a write, then {state}) ", end="", flush=True)
        if state == "Failed":
            self.assertGreaterEqual(deaths, 3)
            self.assertIn("the agent was stopped 3 times in the middle of setting it", self.report()["reason"])
            self.assertEqual(self.kernel_settings(), self.before)
        else:
            self.assertIn("3:on", self.guest.run("dcb pfc show dev dcb0"))
            self.assertEqual(self.guest.run("cat /sys/class/net/dcb0/mtu").strip(), "9000")
            self.assertIn([26, 3], json.loads(self.guest.run("dcb -j app -N show dev dcb0"))["dscp_prio"])
        self.assertEqual(self.guest.run("cat /sys/class/net/dcb0/carrier").strip(), "1")
