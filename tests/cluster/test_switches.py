"""The switch side from `kubectl apply` to the verdict: real API server, operator and agents, and SONiC switches of
tests/switches that are asked over gNMI with TLS."""

import base64
import json
import sys
import time
from pathlib import Path

from bed import REPOSITORY, Heddle, path
from bed.heddle import NAMESPACE
from bed.process import run
from bed.testing import BedTestCase, options

sys.path.insert(0, str(REPOSITORY / "tests" / "support"))
sys.path.insert(0, str(REPOSITORY / "tests" / "switches"))
import machines  # noqa: E402  pylint: disable=wrong-import-position
from switches import Switches, leaf, port, rendered_rows  # noqa: E402  pylint: disable=wrong-import-position

NODES = ("gpu-001",)  # two of one recording would be cabled to one port
# As the recorded machine's LLDP calls them; four lanes a port, so Ethernet0, Ethernet4.
LEAVES = ("tor-a", "tor-b")
QUICK = ("--lossless=apply", "--lossless-interval=1", "--lossless-drain=0.2", "--lossless-settle=0.2", "--publish-jitter=0.1")


def condition(item, kind):
    return next((one for one in item.get("status", {}).get("conditions", []) if one["type"] == kind), {})


class FabricSwitchesTest(BedTestCase):
    mostly_waits = True

    @classmethod
    def set_up_bed(cls):
        cls.nodes.add_plain(*NODES, labels={"pool": "gpu"})
        cls.heddle = Heddle(cls.plane, options.binaries)
        cls.heddle.install(operator={"switches": {
            "secrets": ["leaf-login", "leaf-ca", "redis-ca", "wrong-login", "leaf-certificate"], "render": True}})
        cls.rest = cls.plane.rest
        cls.ports = ports = [port(index, lanes=4, speed=200_000, fec="rs", mtu=9100) for index in range(16)]
        # The last says the same as tor-b in OpenConfig's models.
        made = [(name, name, "sonic") for name in LEAVES] + [("open-b", "tor-b", "openconfig")]
        # Hosts hear of each what it says of itself.
        cls.switches = Switches([leaf(hostname, name=name, dialect=dialect, ports=[dict(one) for one in ports],
                                      mac=machines.chassis_id(hostname), username="heddle", password="loom") for name, hostname, dialect in made] +
                                [leaf("tor-a", name=name, ports=[dict(one) for one in ports], config=config,
                                      mac=machines.chassis_id("tor-a"), emptyTableFails=True, username="heddle", password="loom")
                                 for name, config in (("old-a", LOSSY_BUFFERS), ("bare-a", NO_BUFFERS))] +
                                # As SONiC where nobody chose: it lets in whom its authority gave a certificate, and nobody else.
                                [leaf("cert-b", ports=[dict(one) for one in ports], clientAuthority=True)])
        cls.switches.__enter__()
        cls.addClassCleanup(cls.switches.close)
        cls.secret("leaf-login", username="heddle", password="loom")
        cls.secret("wrong-login", username="heddle", password="reed")
        ours = cls.switches.authority.issue("heddle", ["heddle"])
        cls.secret("leaf-certificate", **{"tls.crt": Path(ours["certificate"]).read_text(), "tls.key": Path(ours["key"]).read_text()})
        cls.secret("leaf-ca", **{"ca.crt": cls.switches.authority.certificate.read_text()})
        cls.heddle.machines = machines.write({"nodes": [{"name": name, "shape": "roce-dual-tor"} for name in NODES]},
                                             str(cls.plane.folder / "machines"))
        cls.heddle.start_operator()
        for name in NODES:
            folder = cls.plane.folder / f"qos-{name}"
            folder.mkdir()
            (folder / "qos.yaml").write_text(json.dumps({"ports": [
                {"name": f"mlx5_bond_{bond}:{number}", "settings": FRESH, "link": {"carrier": True}}
                for bond in (0, 1) for number in (1, 2)]}))
            cls.heddle.start_agent(name, *QUICK, "--qos-dir", str(folder))
        cls.heddle.wait_published(NODES)
        cls.rest.create(path("losslesspolicies"), {
            "apiVersion": "heddle.dev/v1alpha1", "kind": "LosslessPolicy", "metadata": {"name": "roce"},
            "spec": {"mode": "Apply", "countedCables": "NotContradicting"}})

    @classmethod
    def secret(cls, name, **data):
        cls.rest.create(path("secrets", NAMESPACE), {
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
            "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}})

    def tearDown(self):
        for one in self.rest.list(path("fabricswitches")):
            self.rest.delete(path("fabricswitches", name=one["metadata"]["name"]))
        for name in LEAVES:
            self.switches[name].mend()
        self.heddle.wait_for(lambda: not any(self.cables(node) for node in NODES), "verdicts of switches that are gone to go")

    def ask(self, switch, /, there=None, **spec):
        there = there or self.switches[switch]
        self.rest.create(path("fabricswitches"), {
            "apiVersion": "heddle.dev/v1alpha1", "kind": "FabricSwitch", "metadata": {"name": switch},
            "spec": {"address": there.address, "role": "Leaf", "name": switch, "pollSeconds": 10,
                     "tls": {"serverName": there.server_name, "caSecret": {"name": "leaf-ca"}},
                     "credentialsSecret": {"name": "leaf-login"}} | spec})

    def switch(self, name):
        return self.rest.get(path("fabricswitches", name=name))

    def cables(self, node):
        return self.rest.get(path("nodetopologies", name=node)).get("spec", {}).get("cables", [])

    def wait_condition(self, name, kind, status, reason=None, timeout=60.0):
        def there():
            has = condition(self.switch(name), kind)
            return has.get("status") == status and reason in (None, has.get("reason"))
        self.heddle.wait_for(there, f"{kind} of {name} to be {status} {reason or ''}: {self.switch(name).get('status')}", timeout=timeout)
        return condition(self.switch(name), kind)

    def wait_lossy(self, name, why):
        """Until its cables contradict for that reason: before the hosts' agents have done what they are told, it is another."""
        self.wait_condition(name, "Lossless", "False", "Contradiction")
        self.heddle.wait_for(lambda: why in condition(self.switch(name), "Lossless").get("message", ""), f"{name} to be lossy for {why}")

    def test_a_contradiction_is_told_with_both_ends_and_gone_once_the_switch_has_what_was_rendered(self):
        self.ask("tor-a", mode="Render")
        self.wait_condition("tor-a", "Reachable", "True", "Answers")
        # SONiC's own map puts DSCP 26 into a lossy class; the hosts send with it.
        self.wait_lossy("tor-a", "DSCP 26")
        worst = self.switch("tor-a")["status"]["worstCables"][0]
        self.assertTrue(worst["host"] and worst["switch"] and worst["setting"], worst)
        entries = self.cables("gpu-001")
        self.assertEqual({one["verdict"] for one in entries}, {"Contradiction"}, entries)
        self.assertEqual({one["countedPercent"] for one in entries}, {0})
        self.assertEqual(sorted(name for one in entries for name in one["ports"]), ["mlx5_bond_0:1", "mlx5_bond_1:1"])
        self.heddle.wait_for(lambda: condition(self.rest.get(path("nodetopologies", name="gpu-001")), "CablesLossless").get("status") == "False",
                             "the agent to say so, too")
        self.heddle.wait_for(lambda: condition(self.rest.get(path("fabrics", name="roce")), "Lossless").get("status") == "False",
                             "the Fabric to say so")
        self.wait_event("tor-a", "CablesContradict")
        data = self.apply_what_was_rendered("tor-a")
        self.assertIn("sudo config apply-patch roce.patch.json", data["roce.txt"])
        self.assertEqual([one["verdict"] for one in self.cables("gpu-001")], ["Lossless"])
        self.wait_event("tor-a", "CablesLossless")
        # Another test asks for a Secret that no value names.
        self.assert_nothing_forbidden("nodeagent", "operator", but=("secrets",))

    def rendered(self, name):
        stands = self.switch(name)["status"]["renderConfigMap"]
        return self.rest.get(path("configmaps", NAMESPACE, name=stands))["data"]

    def apply_what_was_rendered(self, name, then="True", reason="Lossless"):
        """What was rendered goes to the switch by a person's hand; Heddle only reads."""
        data = self.rendered(name)
        for rows in rendered_rows(data, "roce"):
            self.switches[name].rows("CONFIG_DB", rows)
        self.wait_condition(name, "Lossless", then, reason, timeout=90)
        return data

    def be_lossless(self, name):
        """Asks a switch and sets it as it should be, whatever tests before have made of it."""
        self.ask(name, mode="Render")

        def decided():
            return condition(self.switch(name), "Lossless").get("reason") in ("Lossless", "Contradiction")
        self.heddle.wait_for(decided, f"a verdict on {name}", timeout=60)
        if condition(self.switch(name), "Lossless")["reason"] == "Contradiction":
            self.apply_what_was_rendered(name)
        self.heddle.wait_for(lambda: self.verdicts() == {"Lossless"}, "the node to be told so")

    def verdicts(self):
        return {one["verdict"] for one in self.cables("gpu-001")}

    def wait_event(self, name, reason):
        def told():
            return any(one["reason"] == reason and one["involvedObject"]["name"] == name
                       for one in self.rest.list(path("events", "default")))
        self.heddle.wait_for(told, f"the event {reason} of {name}")

    def test_a_flap_climbs_to_the_top_of_the_suspects_with_both_ends_named(self):
        self.ask("tor-a")
        self.wait_condition("tor-a", "Reachable", "True", "Answers")
        time.sleep(12)  # a first sample of counters: only what comes after it is evidence
        began = time.monotonic()
        self.switches["tor-a"].flap("Ethernet4", 41)

        def suspect():
            found = self.rest.get(path("fabrics", name="roce")).get("status", {}).get("suspects", [])
            return found and found[0]["symptom"] == "Flap" and found[0]
        self.heddle.wait_for(suspect, "a suspect", timeout=40)
        took = time.monotonic() - began
        print(f"    a flap on the switch was in the Fabric's status after {took:.1f} s", file=sys.stderr)
        # Ten until the counters are read, one for each of: the switch's own tick, the operator's settling, its write.
        self.assertLess(took, 15)
        first = suspect()
        self.assertIn("tor-a port Ethernet4 <-> gpu-", first["name"])
        self.assertIn("41 flaps in 10 min", first["evidence"])
        said = run([options.binaries / "kubectl-heddle", "status"], environment=self.plane.tool_environment(), check=False).stdout
        self.assertIn("flaps", said)
        self.assertIn("tor-a port Ethernet4", said)

    def sees(self, name, **systems):
        """Whom the switch sees by its own LLDP, by port; None: nobody."""
        self.switches[name].rows("APPL_DB", {f"LLDP_ENTRY_TABLE:{port}": system and {
            "lldp_rem_sys_name": system, "lldp_rem_chassis_id": "52:54:00:00:00:17", "lldp_rem_chassis_id_subtype": "4",
            "lldp_rem_port_id": "52:54:00:00:00:18", "lldp_rem_port_id_subtype": "3", "lldp_rem_port_desc": "",
            "lldp_rem_index": "1"}
            for port, system in systems.items()})

    def test_the_switchs_own_lldp_is_the_second_witness_of_a_cable(self):
        self.be_lossless("tor-a")
        self.addCleanup(self.sees, "tor-a", Ethernet0=None, Ethernet4=None)
        # Both ends say so: a host is its node whatever its domain.
        self.sees("tor-a", Ethernet0="gpu-001", Ethernet4="gpu-001.cluster.example")
        time.sleep(22)  # two polls
        self.assertEqual(self.verdicts(), {"Lossless"})
        # One end lies. Whatever both are set to, that cable is proved no longer, and the other one is.
        self.sees("tor-a", Ethernet4="gpu-777")

        def told():
            return {one["verdict"] for one in self.cables("gpu-001")} == {"Lossless", "Unproved"}
        self.heddle.wait_for(told, "one of both cables to be doubted", timeout=60)
        worst = self.wait_worst("tor-a", "leafPort")
        self.assertEqual((worst["verdict"], worst["switchPort"], worst["node"]), ("Unproved", "Ethernet4", "gpu-001"))
        self.assertIn("gpu-777", worst["message"])
        self.assertEqual(condition(self.switch("tor-a"), "Lossless")["status"], "Unknown")
        self.sees("tor-a", Ethernet4="gpu-001")
        self.wait_condition("tor-a", "Lossless", "True", "Lossless")
        self.heddle.wait_for(lambda: self.verdicts() == {"Lossless"}, "the node to be told so")

    def test_another_switch_of_the_name_proves_no_cable(self):
        self.be_lossless("tor-a")
        there, heard = self.switches["tor-a"], machines.chassis_id("tor-a")
        self.addCleanup(there.rows, "APPL_DB", {"LLDP_LOC_CHASSIS": {"lldp_loc_chassis_id": heard}})
        # The one that is asked is not the one that the hosts are on.
        there.rows("APPL_DB", {"LLDP_LOC_CHASSIS": {"lldp_loc_chassis_id": "0c:42:a1:00:00:01"}})
        self.heddle.wait_for(lambda: self.verdicts() == {"Unproved"}, "the node to be told so", timeout=60)
        for one in self.cables("gpu-001"):
            self.assertIn(heard, one["message"])
            self.assertIn("0c:42:a1:00:00:01", one["message"])
        self.wait_condition("tor-a", "Compared", "False", "NoCables")
        # A MAC is the same in whatever notation.
        there.rows("APPL_DB", {"LLDP_LOC_CHASSIS": {"lldp_loc_chassis_id": heard.upper().replace(":", "-")}})
        self.wait_condition("tor-a", "Lossless", "True", "Lossless")
        self.heddle.wait_for(lambda: self.verdicts() == {"Lossless"}, "the node to be told so")

    def wait_worst(self, name, setting):
        def there():
            worst = self.switch(name)["status"].get("worstCables") or [{}]
            return worst[0].get("setting") == setting and worst[0]
        return self.heddle.wait_for(there, f"a worst cable of {name} by its {setting}", timeout=30)

    def test_what_keeps_a_switch_from_being_asked_is_told_apart(self):
        self.ask("tor-a", credentialsSecret={"name": "wrong-login"})
        self.wait_condition("tor-a", "Reachable", "False", "PasswordRefused")
        self.ask("tor-b", credentialsSecret={"name": "not-named-in-the-values"})
        said = self.wait_condition("tor-b", "Reachable", "False", "NotAllowed")
        self.assertIn("operator.switches.secrets", said["message"])
        self.rest.delete(path("fabricswitches", name="tor-b"))
        self.switches["tor-b"].wrong_certificate("name")
        self.ask("tor-b")
        self.wait_condition("tor-b", "Reachable", "False", "CertificateRefused")
        self.switches["tor-b"].mend()
        self.wait_condition("tor-b", "Reachable", "True", "Answers")
        self.switches["tor-b"].faults(half_of_rows=True, without_rows=["localhost"])
        self.wait_condition("tor-b", "Reachable", "False", "Unreadable")

    def test_whatever_goes_wrong_with_a_lossless_switch_no_cable_stays_lossless_and_all_are_once_it_is_well(self):
        self.be_lossless("tor-a")
        there = self.switches["tor-a"]

        def not_lossless(what):
            # What was read before is a proof for three polls.
            self.heddle.wait_for(lambda: self.cables("gpu-001") and "Lossless" not in self.verdicts(),
                                 f"no cable to be called lossless by {what}", timeout=90)

        def lossless_again(what):
            there.mend()
            # It is tried again after a minute at most.
            self.heddle.wait_for(lambda: self.verdicts() == {"Lossless"}, f"all to be lossless again after {what}", timeout=150)

        # It answers a part.
        for what, faults in {"half of each table's rows": {"half_of_rows": True},
                             "rows without a part of their fields": {"without_fields": ["pfc_*"]}}.items():
            there.faults(**faults)
            not_lossless(what)
            time.sleep(12)  # one more poll, which brings none of them back
            self.assertNotIn("Lossless", self.verdicts(), what)
            self.assertNotEqual(condition(self.switch("tor-a"), "Lossless")["status"], "True", what)
            lossless_again(what)
        # It answers nothing that can be read, and then somebody else answers in its place, and right.
        there.faults(garbage="json")
        not_lossless("garbage")
        self.wait_condition("tor-a", "Reachable", "False", "Unreadable")
        there.wrong_certificate("name")
        self.wait_condition("tor-a", "Reachable", "False", "CertificateRefused", timeout=90)
        self.assertNotIn("Lossless", self.verdicts())
        self.assertNotEqual(condition(self.switch("tor-a"), "Lossless")["status"], "True")
        lossless_again("a wrong certificate")

    def test_a_switch_that_wants_a_client_certificate_lets_in_who_has_one_of_its_authority(self):
        self.ask("cert-b")
        said = self.wait_condition("cert-b", "Reachable", "False", "Unreachable")
        self.assertIn("client certificate", said["message"])
        self.rest.patch(path("fabricswitches", name="cert-b"), {"spec": {"credentialsSecret": {"name": "leaf-certificate"}}})
        self.wait_condition("cert-b", "Reachable", "True", "Answers")

    def test_of_one_that_hangs_nothing_is_proved_once_its_answer_is_old(self):
        self.be_lossless("tor-a")
        self.switches["tor-a"].faults(stall="answers")
        self.wait_condition("tor-a", "Reachable", "False", "TooSlow")
        self.wait_condition("tor-a", "Counted", "False", "NotAsked")
        # Nothing else happens in this cluster: the operator looks by itself when three polls are over.
        self.wait_condition("tor-a", "Compared", "False", "Stale")
        self.assertNotEqual(condition(self.switch("tor-a"), "Lossless")["status"], "True")
        self.assertEqual(self.verdicts(), {"Unproved"})
        self.switches["tor-a"].mend()
        self.wait_condition("tor-a", "Lossless", "True", "Lossless", timeout=90)

    def test_of_garbage_nothing_is_used(self):
        self.be_lossless("tor-a")
        self.switches["tor-a"].faults(garbage="json")
        self.wait_condition("tor-a", "Reachable", "False", "Unreadable")
        self.wait_condition("tor-a", "Compared", "False", "Stale")
        self.wait_condition("tor-a", "Counted", "False", "Unreadable")
        self.assertEqual(self.verdicts(), {"Unproved"})
        self.switches["tor-a"].faults(garbage="type")
        time.sleep(12)  # a poll
        self.assertEqual(condition(self.switch("tor-a"), "Reachable")["reason"], "Unreadable")
        self.assertEqual(self.verdicts(), {"Unproved"})
        self.switches["tor-a"].mend()
        self.wait_condition("tor-a", "Lossless", "True", "Lossless", timeout=90)

    def test_one_of_another_make_is_told_apart_and_proves_nothing(self):
        self.be_lossless("tor-a")
        self.switches["tor-a"].faults(model="other")
        said = self.wait_condition("tor-a", "Reachable", "False", "NoGnmi")
        self.assertIn("set dialect to OpenConfig", said["message"])
        self.wait_condition("tor-a", "Compared", "False", "Stale")
        self.assertEqual(self.verdicts(), {"Unproved"})

    def test_a_leaf_of_openconfig_proves_nothing_and_contradicts_by_its_lines(self):
        there = self.switches["open-b"]
        self.addCleanup(there.rows, "APPL_DB", {"PORT_TABLE:Ethernet0": {"speed": "200000"}})
        self.ask("open-b", name="tor-b", dialect="OpenConfig")
        self.wait_condition("open-b", "Reachable", "True", "Answers")

        def held():
            return "were held against" in condition(self.switch("open-b"), "Compared").get("message", "")
        self.heddle.wait_for(held, "its lines to be known", timeout=60)
        self.assertEqual(condition(self.switch("open-b"), "Compared")["reason"], "DialectLacksPfc")
        self.wait_condition("open-b", "Lossless", "Unknown", "Unproved")
        there.rows("APPL_DB", {"PORT_TABLE:Ethernet0": {"speed": "100000"}})
        self.wait_condition("open-b", "Lossless", "False", "Contradiction")
        worst = self.wait_worst("open-b", "speed")
        self.assertEqual((worst["host"], worst["switch"]), ("200 Gb/s", "100 Gb/s"))
        self.heddle.wait_for(lambda: self.verdicts() == {"Contradiction", "Unproved"}, "the node to be told so")
        there.rows("APPL_DB", {"PORT_TABLE:Ethernet0": {"speed": "200000"}})
        self.wait_condition("open-b", "Lossless", "Unknown", "Unproved")
        # Its own LLDP is a witness as SONiC's is.
        self.addCleanup(self.sees, "open-b", Ethernet0=None, Ethernet4=None)
        self.sees("open-b", Ethernet0="gpu-777", Ethernet4="gpu-001")

        def doubted():
            return [one for one in self.switch("open-b")["status"].get("worstCables", []) if one["setting"] == "leafPort"]
        worst = self.heddle.wait_for(doubted, "one of both cables to be doubted", timeout=60)
        self.assertEqual([one["switchPort"] for one in worst], ["Ethernet0"])
        self.assertIn("gpu-777", worst[0]["message"])

    def read_and_follow(self, name):
        self.ask(name, name="tor-a", mode="Render", pollSeconds=600)
        self.wait_condition(name, "Reachable", "True", "Answers")
        said = self.wait_condition(name, "Lossless", "False", "Contradiction")
        self.assertIn("DSCP 26", said["message"])
        self.wait_condition(name, "Counted", "True")
        # Long before the next poll: the subscription to the tables that it has stands. It names no buffer for data,
        # and so nobody knows whether anything is held after a pause.
        self.apply_what_was_rendered(name, "Unknown", "Unproved")
        self.heddle.wait_for(lambda: self.verdicts() == {"Unproved"}, "the node to be told so")
        worst = self.switch(name)["status"]["worstCables"][0]
        self.assertIn(worst["setting"], ("bufferBytes", "lossyQueues"), worst)

    def test_a_sonic_of_202311_is_read_and_followed_though_it_has_no_port_channel(self):
        # Nor does its LLDP see anybody. Either table is NOT_FOUND there, with all that is asked together with it.
        # It does not count flaps either, and is counted all the same.
        self.addCleanup(self.switches["old-a"].mend)
        self.switches["old-a"].faults(without_fields=["flap_count"])
        self.read_and_follow("old-a")
        said = self.wait_condition("old-a", "Counted", "True", "FlapsByState")
        self.assertIn("in between is not seen", said["message"])
        # What the switch itself then makes of pfc_enable, speed and CABLE_LENGTH, in tables that it has.
        self.switches["old-a"].rows("CONFIG_DB", LOSSLESS_BUFFERS)
        self.wait_condition("old-a", "Lossless", "True", "Lossless", timeout=90)
        self.heddle.wait_for(lambda: self.verdicts() == {"Lossless"}, "the node to be told so")

    def test_a_sonic_of_202311_is_read_and_followed_though_it_has_no_buffers_either(self):
        self.read_and_follow("bare-a")

    def test_tables_in_a_real_redis_are_read_and_what_redis_cli_writes_is_followed(self):
        there = Switches([leaf("tor-a", ports=[dict(one) for one in self.ports], mac=machines.chassis_id("tor-a"),
                               username="heddle", password="loom")], redis=True)
        self.addCleanup(there.close)
        there.start()
        self.secret("redis-ca", **{"ca.crt": there.authority.certificate.read_text()})
        peer = there["tor-a"]
        self.ask("tor-a", there=peer, mode="Render", pollSeconds=600,
                 tls={"serverName": peer.server_name, "caSecret": {"name": "redis-ca"}})
        self.wait_lossy("tor-a", "DSCP 26")
        self.wait_condition("tor-a", "Counted", "True")
        # As a person on the switch would: of no peer's doing, and told by redis' own notifications long before the next poll.
        for rows in rendered_rows(self.rendered("tor-a"), "roce"):
            for key, fields in rows.items():
                for field, value in fields.items():
                    there.redis.cli(*(["HDEL", key, field] if value is None else ["HSET", key, field, value]), database=4)
        self.wait_condition("tor-a", "Lossless", "True", "Lossless", timeout=90)
        self.heddle.wait_for(lambda: self.verdicts() == {"Lossless"}, "the node to be told so")

    def test_restarts_of_both_sides_take_no_cable_away(self):
        self.be_lossless("tor-a")
        self.wait_condition("tor-a", "Counted", "True")
        generation = self.rest.get(path("nodetopologies", name="gpu-001"))["metadata"]["generation"]
        turned = condition(self.switch("tor-a"), "Lossless")["lastTransitionTime"]
        self.heddle.kill9("operator")
        # It comes back where the switch does not answer at first, and for less than three polls.
        self.switches["tor-a"].flap("Ethernet8", 3)
        self.switches["tor-a"].faults(stall="down")
        self.heddle.start_daemon("operator")
        self.wait_condition("tor-a", "Reachable", "False", "Unreachable")
        self.assertEqual(self.verdicts(), {"Lossless"})
        self.switches["tor-a"].mend()
        self.wait_condition("tor-a", "Reachable", "True", "Answers")
        self.wait_condition("tor-a", "Counted", "True")
        self.switches["tor-a"].restart(away_ms=3000)
        said = self.wait_condition("tor-a", "Counted", "True", "CountersReset")
        self.assertIn("Ethernet8", said["message"])
        self.wait_condition("tor-a", "Reachable", "True", "Answers")
        self.assertEqual(condition(self.switch("tor-a"), "Lossless")["lastTransitionTime"], turned)
        self.assertEqual(self.rest.get(path("nodetopologies", name="gpu-001"))["metadata"]["generation"], generation,
                         "nothing was taken back in between")

    def test_of_twins_neither_proves_anything(self):
        self.be_lossless("tor-a")
        # Another FabricSwitch of that name, and one that says that it is tor-a.
        there = self.switches["tor-b"]
        self.rest.create(path("fabricswitches"), {
            "apiVersion": "heddle.dev/v1alpha1", "kind": "FabricSwitch", "metadata": {"name": "tor-a-again"},
            "spec": {"address": there.address, "role": "Leaf", "chassisId": "52:54:00:00:00:77", "pollSeconds": 10,
                     "tls": {"serverName": there.server_name, "caSecret": {"name": "leaf-ca"}},
                     "credentialsSecret": {"name": "leaf-login"}}})
        there.faults(hostname="tor-a")
        said = self.wait_condition("tor-a", "Compared", "False", "NameInDoubt")
        self.assertIn("a hostname of its own", said["message"])
        self.assertNotEqual(condition(self.switch("tor-a"), "Lossless")["status"], "True")
        self.heddle.wait_for(lambda: self.verdicts() == {"Unproved"}, "the node to be told so")
        there.mend()
        self.wait_condition("tor-a", "Lossless", "True", "Lossless", timeout=90)

    def test_counters_that_cannot_be_read_are_told(self):
        self.ask("tor-a")
        self.wait_condition("tor-a", "Counted", "True")
        self.switches["tor-a"].faults(without_rows=["Ethernet*", "etp*"])
        # Its settings are gone with them: the answer has no port at all.
        self.wait_condition("tor-a", "Counted", "False", "Unreadable")
        self.wait_condition("tor-a", "Reachable", "False", "Unreadable")

    def test_a_switch_that_calls_itself_otherwise_proves_nothing(self):
        self.switches["tor-a"].faults(hostname="tor-z")
        self.ask("tor-a")
        self.wait_condition("tor-a", "Compared", "False", "NameInDoubt")
        self.assertNotEqual(condition(self.switch("tor-a"), "Lossless").get("status"), "True")


# What is in CONFIG_DB of buffers where the lossless ones are made by the switch itself (sonic-buildimage, buffers_config.j2).
LOSSY_BUFFERS = {
    "BUFFER_POOL": {"ingress_lossless_pool": {"type": "ingress", "mode": "dynamic", "size": "33004032"},
                    "egress_lossy_pool": {"type": "egress", "mode": "dynamic", "size": "26284032"}},
    "BUFFER_PROFILE": {"ingress_lossy_profile": {"pool": "ingress_lossless_pool", "size": "0", "dynamic_th": "3"},
                       "egress_lossy_profile": {"pool": "egress_lossy_pool", "size": "1518", "dynamic_th": "3"}},
    "BUFFER_PG": {"Ethernet0|0": {"profile": "ingress_lossy_profile"}, "Ethernet4|0": {"profile": "ingress_lossy_profile"}},
    "BUFFER_QUEUE": {"Ethernet0|0-2": {"profile": "egress_lossy_profile"}, "Ethernet4|0-2": {"profile": "egress_lossy_profile"}}}

# Of that: rows of redis.
LOSSLESS_BUFFERS = {
    "BUFFER_POOL|egress_lossless_pool": {"type": "egress", "mode": "static", "size": "33004032"},
    "BUFFER_PROFILE|egress_lossless_profile": {"pool": "egress_lossless_pool", "size": "1518", "static_th": "33004032"},
    "BUFFER_PROFILE|pg_lossless_200000_40m_profile": {"pool": "ingress_lossless_pool", "size": "185344", "xon": "19456",
                                                      "xoff": "165888", "dynamic_th": "0"}} | {
    f"{table}|{port}|3": {"profile": profile} for port in ("Ethernet0", "Ethernet4")
    for table, profile in (("BUFFER_PG", "pg_lossless_200000_40m_profile"), ("BUFFER_QUEUE", "egress_lossless_profile"))}
# Each in the place of what switch-peer has: of a switch that keeps no buffers in CONFIG_DB.
NO_BUFFERS = {table: {} for table in ("BUFFER_POOL", "BUFFER_PROFILE", "BUFFER_PG", "BUFFER_QUEUE")}

# Of a driver that has just come up, as in test_lossless_agents.py: nothing is lossless, and everything can be read.
FRESH = {
    "dcbx": "Host", "trust": "PCP", "dscpToPriority": [{"priority": 0, "dscps": "0-63"}], "pfc": [], "watchdogMs": 0,
    "priorityToClass": list(range(8)), "classAlgorithm": ["Vendor"] * 8, "classPercent": [0] * 8, "mtu": 1500,
    "ecn": list(range(8)), "cnpDscp": 48, "cnpPriority": 6, "tos": 0}
