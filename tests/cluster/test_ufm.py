"""A cable above the leaves, which no host sees: real API server, operator and agents of InfiniBand machines, and a UFM
over HTTPS (tests/support/ufm_server.py)."""

import base64
import sys
import time

from bed import REPOSITORY, Heddle, path
from bed.heddle import NAMESPACE
from bed.testing import BedTestCase, options

sys.path.insert(0, str(REPOSITORY / "tests" / "support"))
sys.path.insert(0, str(REPOSITORY / "tests" / "switches"))
import machines  # noqa: E402  pylint: disable=wrong-import-position
from switches import Authority  # noqa: E402  pylint: disable=wrong-import-position
from ufm_server import Ufm  # noqa: E402  pylint: disable=wrong-import-position

NODES = ("gpu-001", "gpu-002")
LEAF, SPINE = "1c34da0300728606", "1c34da03000000ff"


def condition(item, kind):
    return next((one for one in item.get("status", {}).get("conditions", []) if one["type"] == kind), {})


class UfmTest(BedTestCase):
    mostly_waits = True

    @classmethod
    def set_up_bed(cls):
        cls.nodes.add_plain(*NODES)
        cls.heddle = Heddle(cls.plane, options.binaries)
        cls.heddle.install(operator={"switches": {"secrets": ["ufm-login", "ufm-wrong", "ufm-ca", "ufm-other-ca"]}})
        cls.rest = cls.plane.rest
        authority = Authority(cls.plane.folder / "authority")
        files = authority.issue("ufm", ["localhost", "127.0.0.1"])
        cls.ufm = Ufm(files["certificate"], files["key"], "heddle", "loom").__enter__()
        cls.addClassCleanup(cls.ufm.close)
        cls.secret("ufm-login", username="heddle", password="loom")
        cls.secret("ufm-wrong", username="heddle", password="reed")
        cls.secret("ufm-ca", **{"ca.crt": authority.certificate.read_text()})
        other = Authority(cls.plane.folder / "stranger", "stranger")
        cls.secret("ufm-other-ca", **{"ca.crt": other.certificate.read_text()})
        cls.heddle.machines = machines.write({"nodes": [{"name": name, "shape": "hgx-h100"} for name in NODES]},
                                             str(cls.plane.folder / "machines"))
        cls.heddle.start_operator()
        for name in NODES:
            cls.heddle.start_agent(name, "--publish-jitter=0.1")
        cls.heddle.wait_published(NODES)
        cls.heddle.wait_for(lambda: (cls.fabric().get("status") or {}).get("leaves"), "the Fabric's leaves")
        nic = next(nic for nic in cls.rest.get(path("nodetopologies", name="gpu-001"))["status"]["nics"]
                   if nic["transport"] == "InfiniBand" and nic["ports"][0].get("leaf"))
        cls.leaf, port = nic["ports"][0]["leaf"], nic["ports"][0]
        # UFM calls the switch otherwise than the agent does; the cable that both see tells that they are one.
        cls.ufm.port_of(LEAF, int(port["leafPort"]), "ufms-own-name", f"0c42a103001b8256_{port['number']}", "gpu-001",
                        f"gpu-001 {nic['name']}")
        cls.ufm.cable(LEAF, 40, "ufms-own-name", SPINE, 3, "spine-0")

    @classmethod
    def secret(cls, name, **data):
        cls.rest.create(path("secrets", NAMESPACE), {
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
            "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}})

    @classmethod
    def fabric(cls):
        return cls.rest.get(path("fabrics", name="infiniband"))

    def ask(self, login="ufm-login", authority="ufm-ca"):
        self.rest.patch(path("fabrics", name="infiniband"), {"spec": {"ufm": {
            "address": f"127.0.0.1:{self.ufm.port}", "credentialsSecret": {"name": login},
            "tls": {"caSecret": {"name": authority}}, "pollSeconds": 10}}})

    def tearDown(self):
        self.ufm.fault = None
        self.rest.patch(path("fabrics", name="infiniband"), {"spec": {"ufm": None}})
        self.heddle.wait_for(lambda: not condition(self.fabric(), "UfmReachable"), "its conditions to go", timeout=60)

    def wait_condition(self, kind, status, reason, timeout=90.0):
        def there():
            has = condition(self.fabric(), kind)
            return (has.get("status"), has.get("reason")) == (status, reason)
        self.heddle.wait_for(there, f"{kind} to be {status} {reason}: {self.fabric().get('status', {}).get('conditions')}", timeout=timeout)

    def test_a_flap_between_leaf_and_spine_becomes_the_suspect(self):
        self.ask()
        self.wait_condition("UfmReachable", "True", "Answers")
        self.wait_condition("UfmCounted", "True", "Counted")
        began = time.monotonic()
        self.ufm.count(SPINE, 3, LinkDowned=41)

        def suspect():
            found = (self.fabric().get("status") or {}).get("suspects") or []
            return next((one for one in found if "spine-0" in one["name"]), None)
        self.heddle.wait_for(suspect, "a suspect", timeout=60)
        print(f"    a flap above the leaves was in the Fabric's status {time.monotonic() - began:.1f} s after UFM counted it",
              file=sys.stderr)
        one = suspect()
        self.assertIn(self.leaf, one["name"])
        self.assertEqual(one["symptom"], "Flap")
        self.assertIn("41 link downs in 10 min", one["evidence"])
        self.assertEqual(self.ufm.methods, {"GET"})
        # The next operator does not call well what its predecessor saw.
        self.heddle.kill9("operator")
        self.heddle.start_daemon("operator")
        self.ask(login="ufm-wrong")  # of which only the next one can tell
        self.wait_condition("UfmReachable", "False", "PasswordRefused")
        self.assertTrue(suspect())

    def test_what_keeps_it_from_being_asked_is_told_apart(self):
        self.ask(login="ufm-wrong")
        self.wait_condition("UfmReachable", "False", "PasswordRefused")
        self.ask(authority="ufm-other-ca")
        self.wait_condition("UfmReachable", "False", "CertificateRefused")
        self.ask(login="not-there")
        self.wait_condition("UfmReachable", "False", "NotAllowed")
        self.ask()
        self.wait_condition("UfmReachable", "True", "Answers")
        self.ufm.fault = "garbage"
        self.wait_condition("UfmCounted", "False", "Unreadable")
        self.assertEqual(condition(self.fabric(), "UfmReachable")["status"], "True", "its cables are known all the same")
        self.ufm.fault = "half"
        self.wait_condition("UfmReachable", "False", "Unreadable")
        self.ufm.fault = "down"
        self.wait_condition("UfmReachable", "False", "Unreachable")
        self.ufm.fault = "hang"
        self.wait_condition("UfmReachable", "False", "TooSlow")
        self.ufm.fault = None
        self.wait_condition("UfmReachable", "True", "Answers")
