"""LosslessPolicies from `kubectl apply` to the ports and back: real API server, operator and agents, each under its own
account, on recorded machines whose ports are a file (qos.yaml) that agents and a second writer write."""

import copy
import json
import os
import re
import sys
import time
import urllib.request

from bed import REPOSITORY, Heddle, path
from bed.process import free_port
from bed.testing import BedTestCase, options

sys.path.insert(0, str(REPOSITORY / "tests" / "support"))
import machines  # noqa: E402  pylint: disable=wrong-import-position

NODES = ("gpu-001", "gpu-002", "gpu-003")
PORTS = ("mlx5_bond_0:1", "mlx5_bond_0:2", "mlx5_bond_1:1", "mlx5_bond_1:2")
# Of a driver that has just come up: nothing is lossless, and everything can be read.
FRESH = {
    "dcbx": "Host", "trust": "PCP", "dscpToPriority": [{"priority": 0, "dscps": "0-63"}], "pfc": [], "watchdogMs": 0,
    "priorityToClass": list(range(8)), "classAlgorithm": ["Vendor"] * 8, "classPercent": [0] * 8, "mtu": 1500,
    "ecn": list(range(8)), "cnpDscp": 48, "cnpPriority": 6, "tos": 0}
# What a test can wait for; docs/lossless.md has the real times.
QUICK = ("--lossless=apply", "--lossless-interval=1", "--lossless-drain=0.2", "--lossless-settle=0.2")


class LosslessAgentsTest(BedTestCase):
    mostly_waits = True

    @classmethod
    def set_up_bed(cls):
        cls.nodes.add_plain(*NODES, labels={"pool": "gpu"})
        cls.heddle = Heddle(cls.plane, options.binaries)
        cls.heddle.install()
        cls.rest = cls.plane.rest
        written = machines.write({"nodes": [{"name": name, "shape": "roce-dual-tor"} for name in NODES]},
                                 str(cls.plane.folder / "machines"))
        cls.heddle.machines = written
        cls.heddle.start_operator()

    def setUp(self):
        self.ports = {name: self.plane.folder / f"qos-{name}-{self._testMethodName}" for name in NODES}
        for folder in self.ports.values():
            folder.mkdir()

    def tearDown(self):
        if not self.heddle.daemon("operator").running():
            self.heddle.start_daemon("operator")
        for name in NODES:
            if f"agent:{name}" in self.heddle.daemons:
                self.heddle.stop_daemon(f"agent:{name}")
                del self.heddle.daemons[f"agent:{name}"]
            self.rest.patch(path("nodetopologies", name=name, sub="status"), {"status": None})
        for policy in self.rest.list(path("losslesspolicies")):
            self.rest.delete(path("losslesspolicies", name=policy["metadata"]["name"]))
        self.heddle.wait_for(lambda: not any(self.spec(name) for name in NODES), "specs without policies to be empty")

    # What people and others do.

    def start_agents(self, *arguments, nodes=NODES, **settings):
        """Agents on ports that are FRESH but for `settings`: qos.yaml's keys of each port."""
        for name in nodes:
            self.write_ports(name, {port: FRESH for port in PORTS}, **settings)
            self.start_agent(name, *arguments)
        self.heddle.wait_published(nodes)

    def start_agent(self, name, *arguments, jitter=0.1):
        self.heddle.start_agent(name, *QUICK, f"--publish-jitter={jitter}", "--qos-dir", str(self.ports[name]), *arguments)

    def write_ports(self, node, settings, **more):
        """As another program would that sets ports: the file is swapped whole."""
        text = json.dumps({"ports": [{"name": port, "settings": have, "link": {"carrier": True}} | more
                                     for port, have in settings.items()]})
        (self.ports[node] / ".next").write_text(text)
        os.rename(self.ports[node] / ".next", self.ports[node] / "qos.yaml")

    def meddle(self, node, **setting):
        """Another writer sets something on the first port."""
        have = {port: dict(report["have"]) for report in self.reports(node) for port in report["ports"]}
        have[PORTS[0]] |= setting
        self.write_ports(node, have, writer="lldpad")

    def make(self, name="roce", **spec):
        self.rest.create(path("losslesspolicies"), {
            "apiVersion": "heddle.dev/v1alpha1", "kind": "LosslessPolicy", "metadata": {"name": name},
            "spec": {"mode": "Apply"} | spec})

    # What is there.

    def spec(self, node):
        return self.rest.get(path("nodetopologies", name=node)).get("spec", {}).get("lossless", [])

    def status(self, node):
        return self.rest.get(path("nodetopologies", name=node)).get("status", {})

    def reports(self, node):
        return self.status(node).get("lossless", [])

    def report(self, node, port=PORTS[0]):
        return next((report for report in self.reports(node) if port in report["ports"]), {})

    def states(self, node):
        return {port: report["state"] for report in self.reports(node) for port in report["ports"]}

    def wait_states(self, state, nodes=NODES, ports=PORTS, timeout=120.0):
        def there():
            for node in nodes:
                states = self.states(node)
                if {states.get(port) for port in ports} != {state}:
                    raise AssertionError(f"{node}: {states}, {[r.get('reason') for r in self.reports(node)]}")
            return True
        self.heddle.wait_for(there, f"all ports of {', '.join(nodes)} to be {state}", timeout)

    def condition(self, node, kind="Lossless"):
        return next((c for c in self.status(node).get("conditions", []) if c["type"] == kind), {})

    def ready(self, policy="roce"):
        conditions = self.rest.get(path("losslesspolicies", name=policy)).get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == "Ready"), {})

    def wait_ready(self, reason, policy="roce", timeout=90.0):
        def there():
            if self.ready(policy).get("reason") != reason:
                raise AssertionError(self.ready(policy))
            return True
        self.heddle.wait_for(there, f"the policy to be {reason}", timeout)

    def writes(self, node):
        file = self.ports[node] / "writes"
        return file.read_text().splitlines() if file.exists() else []

    def events(self, reason, about):
        return [event for event in self.rest.list(path("events", "default"))
                if event["reason"] == reason and event["involvedObject"]["name"] == about]

    # The tests.

    def test_a_policy_goes_from_nothing_to_compliant_and_is_not_written_twice(self):
        self.start_agents()
        self.make(nodeSelector={"pool": "gpu"})
        self.wait_states("Compliant")
        self.wait_ready("Compliant")
        have = self.report("gpu-001")["have"]
        self.assertEqual((have["trust"], have["pfc"], have["mtu"], have["tos"], have["watchdogMs"]),
                         ("DSCP", [3], 9000, 106, 65535))
        for name in NODES:
            self.assertEqual(len(self.writes(name)), len(PORTS), self.writes(name))
        self.assertEqual(self.condition("gpu-001")["reason"], "Compliant")
        self.assertRegex(self.plane.kubectl("get", "losslesspolicies"), r"roce +True +12/12 ")
        self.assertRegex(self.plane.kubectl("get", "nt", "-o", "wide"), r"gpu-002 .* 4/4 ")
        self.heddle.wait_for(lambda: self.events("LosslessApplied", "gpu-001"), "the Node's event")
        self.heddle.wait_for(lambda: self.events("LosslessCompliant", "roce"), "the policy's event")
        # A generation that changes nothing, and agents that start again, write nothing: no port and no object.
        before = [self.rest.get(path("nodetopologies", name=name))["metadata"]["resourceVersion"] for name in NODES]
        self.rest.patch(path("losslesspolicies", name="roce"), {"spec": {"rdma": {"dscp": 26}}})
        for name in NODES:
            self.heddle.restart(f"agent:{name}")
        self.heddle.wait_for(
            lambda: self.rest.get(path("losslesspolicies", name="roce"))["status"]["observedGeneration"] == 2,
            "the new generation to be seen", 60)
        time.sleep(3)  # three looks of each agent
        after = [self.rest.get(path("nodetopologies", name=name))["metadata"]["resourceVersion"] for name in NODES]
        self.assertEqual(before, after)
        for name in NODES:
            self.assertEqual(len(self.writes(name)), len(PORTS), self.writes(name))

    def test_drift_is_named_by_field_within_a_minute(self):
        # With the interval that users have.
        self.write_ports("gpu-001", {port: FRESH for port in PORTS})
        self.start_agent("gpu-001", "--lossless-interval=30", jitter=10)
        self.make()
        self.wait_states("Compliant", NODES[:1])
        started = time.monotonic()
        self.meddle("gpu-001", pfc=[3, 4])
        self.wait_states("Drifted", NODES[:1], PORTS[:1], 60)
        self.assertLess(time.monotonic() - started, 60)
        drift = self.report("gpu-001")["drift"]
        self.assertEqual([(d["setting"], d["want"], d["have"], d["writer"]) for d in drift],
                         [("pfc", "3", "3,4", "lldpad")])
        self.assertEqual(self.condition("gpu-001")["status"], "False")
        self.assertIn("mlx5_bond_0:1 Drifted: pfc differs", self.plane.kubectl("get", "nt", "-o", "wide"))
        self.wait_ready("Drifted")
        self.assertIn("gpu-001 mlx5_bond_0:1: pfc differs", self.plane.kubectl("get", "losslesspolicies", "-o", "wide"))
        self.heddle.wait_for(lambda: self.events("LosslessDrift", "gpu-001"), "the Node's event")
        # It only reports; a restart forgets nothing.
        self.heddle.restart("agent:gpu-001")
        time.sleep(3)
        self.assertEqual(self.report("gpu-001")["drift"], drift)
        self.assertEqual(len(self.writes("gpu-001")), len(PORTS))

    def test_it_repairs_and_does_not_fight(self):
        self.start_agents(nodes=NODES[:1])
        self.make(onDrift="Repair")
        self.wait_states("Compliant", NODES[:1])
        for repair in range(3):
            self.meddle("gpu-001", pfc=[])
            self.heddle.wait_for(lambda n=repair: len(self.writes("gpu-001")) == len(PORTS) + n + 1, "a repair")
            self.wait_states("Compliant", NODES[:1])
        self.meddle("gpu-001", pfc=[])
        self.wait_states("Conflict", NODES[:1], PORTS[:1])
        self.assertIn("lldpad", self.report("gpu-001")["reason"])
        self.heddle.wait_for(lambda: self.events("LosslessConflict", "gpu-001"), "the Node's event")
        self.wait_ready("Conflict")
        time.sleep(3)
        self.assertEqual(len(self.writes("gpu-001")), len(PORTS) + 3)

    def test_a_canary_that_fails_stops_the_others(self):
        self.start_agents(nodes=NODES[1:])
        self.start_agents(nodes=NODES[:1], refuses=[{"setting": "pfc", "code": "Invalid", "message": "not with this firmware"}])
        self.make(canary=1)
        self.wait_states("Failed", NODES[:1])
        self.wait_ready("CanaryStopped")
        self.assertIn("gpu-001 mlx5_bond_0:1: could not be set", self.ready()["message"])
        self.assertIn("not with this firmware", self.ready()["message"])
        self.heddle.wait_for(lambda: self.events("LosslessCanaryStopped", "roce"), "the policy's event")
        self.assertEqual([self.spec(name) for name in NODES[1:]], [[], []])
        self.assertEqual([self.writes(name) for name in NODES[1:]], [[], []])
        have = self.report("gpu-001")["have"]
        self.assertEqual((have["trust"], have["mtu"], have["pfc"]), ("PCP", 1500, []), "half set")
        tried = len(self.writes("gpu-001"))
        time.sleep(3)
        self.assertEqual(len(self.writes("gpu-001")), tried, "it is not tried again and again")
        # Mended, and said to try again.
        self.write_ports("gpu-001", {port: FRESH for port in PORTS})
        self.rest.patch(path("losslesspolicies", name="roce"), {"spec": {"mtu": 8900}})
        self.wait_states("Compliant")
        self.wait_ready("Compliant")

    def test_an_agent_that_is_killed_in_the_middle_finishes_and_says_so(self):
        self.start_agents("--lossless-settle=600", nodes=NODES[:1])
        self.make()
        self.heddle.wait_for(lambda: self.writes("gpu-001"), "the first write")
        self.heddle.wait_for(lambda: self.condition("gpu-001", "Rail0Healthy").get("reason") == "BeingSet",
                             "the rail to be shown as being set", 60)
        nics = {nic["name"]: nic for nic in self.status("gpu-001")["nics"]}
        self.assertEqual([port["usableGbps"] for port in nics["mlx5_bond_0"]["ports"]][0], 0)
        self.heddle.kill9("agent:gpu-001")
        del self.heddle.daemons["agent:gpu-001"]
        journal = list((self.ports["gpu-001"] / "journal").iterdir())
        self.assertTrue(any('"unsettled"' in file.read_text() for file in journal), journal)
        self.start_agent("gpu-001")
        self.wait_states("Compliant", NODES[:1])
        self.assertEqual(len(self.writes("gpu-001")), len(PORTS), self.writes("gpu-001"))
        self.assertFalse(any('"unsettled"' in file.read_text() for file in (self.ports["gpu-001"] / "journal").iterdir()))
        self.heddle.wait_for(
            lambda: any("begun before the agent restarted" in event["message"]
                        for event in self.events("LosslessApplied", "gpu-001")), "an event that says so")

    def test_without_the_right_to_it_only_says_what_differs(self):
        self.start_agents("--lossless=observe", nodes=NODES[:1])
        self.make()
        self.wait_states("Drifted", NODES[:1])
        self.assertIn("agent.lossless.enabled", self.report("gpu-001")["reason"])
        self.assertFalse(self.writes("gpu-001"))
        wide = self.plane.kubectl("get", "nt", "-o", "wide")
        self.assertTrue(re.search(r"gpu-001 .* 0/4 .*Drifted: .*trust", wide), wide)

    def test_a_profile_for_other_nics_is_refused_before_anything_is_written(self):
        self.start_agents(nodes=NODES[:1])
        ids = {nic["pciId"] for nic in self.status("gpu-001")["nics"] if nic["role"] == "compute"}
        self.assertEqual(ids, {"15b3:1021"}, "as the machine's PCI tree has them")
        self.make(profile="thor2/v1")
        self.wait_ready("Refused")
        why = "profile thor2/v1 is not for a NIC of PCI id 15b3:1021: name connectx-7/v1, or generic/v1"
        self.assertIn(why, self.ready()["message"])
        self.wait_states("Failed", NODES[:1])
        self.assertIn(why, self.condition("gpu-001")["message"])
        self.assertEqual((self.condition("gpu-001")["status"], self.writes("gpu-001")), ("False", []))
        self.heddle.wait_for(lambda: self.events("LosslessRefused", "roce"), "the policy's event")
        self.rest.patch(path("losslesspolicies", name="roce"), {"spec": {"profile": "connectx-7/v1"}})
        self.wait_states("Compliant", NODES[:1])
        self.wait_ready("Compliant")

    def widen(self):
        """The CRD as a later release would have it: one key more in settings, one word more for trust."""
        where = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nodetopologies.heddle.dev"
        versions = self.rest.get(where)["spec"]["versions"]
        self.addCleanup(self.rest.patch, where, {"spec": {"versions": versions}})
        wider = copy.deepcopy(versions)
        spec = wider[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        settings = spec["properties"]["lossless"]["items"]["properties"]["settings"]["properties"]
        settings["pauseQuota"] = {"type": "integer", "description": "what only a later release knows"}
        settings["trust"]["enum"].append("MPLS")
        self.rest.patch(where, {"spec": {"versions": wider}})

    def tell(self, node, *entries):
        """As an operator of that release would; until the API server has the wider schema it drops the key."""
        def stored():
            self.rest.patch(path("nodetopologies", name=node), {"spec": {"lossless": list(entries)}})
            return self.spec(node) == list(entries)
        self.heddle.wait_for(stored, "the API server to keep what it is told")

    def test_of_a_newer_spec_it_names_what_it_does_not_know_and_sets_the_rest(self):
        node = "gpu-001"
        self.start_agents(nodes=[node])
        self.make(mode="Observe")
        self.wait_states("Drifted", [node])
        # Its operator is a newer one from here on: this test.
        self.heddle.stop_daemon("operator")
        self.widen()
        entry = self.spec(node)[0] | {"mode": "Apply"}
        key, word, known = (copy.deepcopy(entry) | {"ports": list(ports)} for ports in (PORTS[:1], PORTS[1:2], PORTS[2:]))
        key["settings"]["pauseQuota"] = 7
        word["settings"]["trust"] = "MPLS"
        # A watch from before the wider schema shows objects without the key, and goes on doing so until it ends: only
        # when the agent has been shown it is it told to set anything.
        for told in (key, word, known):
            told["mode"] = "Observe"

        def shown():
            key["settings"]["pauseQuota"] += 1
            self.tell(node, key, word, known)
            time.sleep(1)
            return "pauseQuota" in self.condition(node, "SpecUnderstood").get("message", "")
        self.heddle.wait_for(shown, "the agent to be shown the key", 120)
        for told in (key, word, known):
            told["mode"] = "Apply"
        self.tell(node, key, word, known)
        self.wait_states("Compliant", [node], PORTS[2:])
        self.wait_states("Unknown", [node], PORTS[:2])
        condition = self.condition(node, "SpecUnderstood")
        self.assertEqual((condition["status"], condition["reason"]), ("False", "OlderThanSpec"))
        self.assertIn("spec.lossless[0].settings.pauseQuota", condition["message"])
        self.assertIn('spec.lossless[1].settings.trust: "MPLS"', condition["message"])
        self.assertIn("spec.lossless[0].settings.pauseQuota", self.report(node, PORTS[0])["reason"])
        self.assertIn("update the agent", self.report(node, PORTS[1])["reason"])
        self.assertEqual((self.condition(node)["status"], self.condition(node)["reason"]), ("Unknown", "Unknown"))
        # An agent that starts in the middle of that is no wiser.
        self.heddle.restart(f"agent:{node}")
        time.sleep(3)
        self.assertEqual([line for line in self.writes(node) if PORTS[0] in line or PORTS[1] in line], [])
        self.assertEqual(len(self.writes(node)), 2, self.writes(node))
        # The word goes, then the key.
        word["settings"]["trust"] = "DSCP"
        self.tell(node, key, word, known)
        self.wait_states("Compliant", [node], PORTS[1:])
        self.assertNotIn("MPLS", self.condition(node, "SpecUnderstood")["message"])
        del key["settings"]["pauseQuota"]
        self.tell(node, key, word, known)
        self.wait_states("Compliant", [node])
        self.heddle.wait_for(lambda: not self.condition(node, "SpecUnderstood"), "the condition to go")
        self.assertEqual((self.condition(node)["status"], len(self.writes(node))), ("True", len(PORTS)))
        # A release that is taken back: its operator writes what it knows over what it does not.
        key["settings"]["pauseQuota"] = 7
        self.tell(node, key, word, known)
        self.heddle.wait_for(lambda: self.condition(node, "SpecUnderstood"), "the condition to come back")
        self.heddle.start_daemon("operator")
        self.heddle.wait_for(lambda: not self.condition(node, "SpecUnderstood"), "the condition to go for good", 60)
        self.assertNotIn("pauseQuota", json.dumps(self.spec(node)))
        self.wait_states("Compliant", [node])
        self.assertEqual(len(self.writes(node)), len(PORTS), "nothing was written twice for all that")

    def test_an_agent_that_may_not_say_so_sets_ports_all_the_same_and_says_it_later(self):
        account = "system:serviceaccount:heddle-system:heddle-nodeagent"
        role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/heddle-nodeagent"
        rules = self.rest.get(role)["rules"]
        port = free_port()
        self.start_agents(f"--listen=127.0.0.1:{port}", nodes=NODES[:1])
        self.addCleanup(self.rest.patch, role, {"rules": rules})
        self.rest.patch(role, {"rules": [rule for rule in rules if "nodetopologies/status" not in rule["resources"]]})

        def metric(name):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
                lines = answer.read().decode().splitlines()
            return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith(name)), 0)
        self.make()
        compliant = 'heddle_lossless_ports{state="Compliant"}'
        failed = 'heddle_nodeagent_publications_total{result="failed"}'
        self.heddle.wait_for(lambda: metric(compliant) == len(PORTS) and metric(failed) > 0, "the ports to be set", 60)
        self.assertFalse(self.reports("gpu-001"))
        self.wait_ready("Waiting")
        self.assertIn("have not been reported yet", self.ready()["message"])
        time.sleep(10)
        refused = len(self.plane.audit(user=account, resource="nodetopologies/status", code=403))
        self.assertLess(refused, 20, "it asks ever more rarely")
        print(f"    {refused} refusals")
        self.rest.patch(role, {"rules": rules})
        self.wait_states("Compliant", NODES[:1])
        self.wait_ready("Compliant")
        self.assertEqual(len(self.writes("gpu-001")), len(PORTS), "nothing is set twice for it")

    def test_a_port_that_programs_use_waits_for_them(self):
        self.start_agents(nodes=NODES[:1], queuePairs=16)
        self.make()
        self.wait_states("Pending", NODES[:1])
        self.heddle.wait_for(lambda: "programs that use it" in self.report("gpu-001")["reason"], "the reason to name programs", 60)
        self.assertFalse(self.writes("gpu-001"))
        self.write_ports("gpu-001", {port: FRESH for port in PORTS})
        self.wait_states("Compliant", NODES[:1])
