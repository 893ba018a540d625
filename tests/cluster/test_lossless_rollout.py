"""A LosslessPolicy over many nodes, each with an agent of its own: canaries first, then the others; none of them where
a canary fails; agents that die on the way. What it took is printed: seconds, requests, CPU. HEDDLE_AGENTS=N for another
number of nodes."""

import json
import os
import sys
import time
from collections import Counter

from bed import REPOSITORY, Heddle, path
from bed.testing import BedTestCase, options

sys.path[:0] = [str(REPOSITORY / "bench"), str(REPOSITORY / "tests" / "support")]
import machines  # noqa: E402  pylint: disable=wrong-import-position
from agent_fleet import Sample, cpu_seconds  # noqa: E402  pylint: disable=wrong-import-position
from test_lossless_agents import FRESH, PORTS  # noqa: E402  pylint: disable=wrong-import-position

# On two cores all of 60 have published 9 s after the first was started.
NODES = [f"gpu-{index:03}" for index in range(int(os.environ.get("HEDDLE_AGENTS", "60")))]
CANARIES = NODES[:3]
RAIL_0 = list(PORTS[:2])
# What a test can wait for. With the real ones (15 s, 10 s) a node of four ports takes about 100 s.
QUICK = ("--lossless=apply", "--lossless-interval=2", "--lossless-drain=0.5", "--lossless-settle=0.5",
         "--publish-jitter=0.5")


class PortsOfNodes:
    """Ports that are files: `ports` has a folder for each node, and `rest` is the API server."""

    @classmethod
    def give_ports(cls, node, **more):
        """As FRESH, or as its agent left them, with `more`."""
        have = cls.have(node)
        text = json.dumps({"ports": [{"name": port, "settings": have.get(port, FRESH), "link": {"carrier": True}} | more
                                     for port in PORTS]})
        (cls.ports[node] / ".next").write_text(text)
        os.rename(cls.ports[node] / ".next", cls.ports[node] / "qos.yaml")

    @classmethod
    def have(cls, node):
        """What each port reads back as."""
        topology = cls.rest.find(path("nodetopologies", name=node)) or {}
        reports = topology.get("status", {}).get("lossless", [])
        return {port: report["have"] for report in reports for port in report["ports"]}

    def writes(self, node):
        file = self.ports[node] / "writes"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def ready(self, policy="roce"):
        conditions = self.rest.get(path("losslesspolicies", name=policy)).get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == "Ready"), {})


class LosslessRolloutTest(PortsOfNodes, BedTestCase):

    @classmethod
    def set_up_bed(cls):
        cls.nodes.add_plain(*NODES, labels={"pool": "gpu"})
        # cpprestsdk reads the system's 140 authorities for each connection: 45 ms that each node pays for itself, and
        # this machine cannot for all of them.
        cls.heddle = Heddle(cls.plane, options.binaries, environment={"SSL_CERT_FILE": "/dev/null"})
        cls.heddle.install()
        cls.rest = cls.plane.rest
        written = machines.write({"nodes": [{"name": name, "shape": "roce-dual-tor"} for name in NODES]},
                                 str(cls.plane.folder / "machines"))
        cls.heddle.machines = written
        cls.heddle.start_operator()
        cls.ports = {name: cls.plane.folder / f"qos-{name}" for name in NODES}
        started = time.monotonic()
        for name in NODES:
            cls.ports[name].mkdir()
            cls.give_ports(name)
            cls.heddle.start_agent(name, *QUICK, "--qos-dir", str(cls.ports[name]))
        cls.heddle.wait_published(NODES, 600)
        print(f"    {len(NODES)} agents have published after {time.monotonic() - started:.0f} s")
        cls.wait_quiet()

    @classmethod
    def wait_quiet(cls):
        """Until nobody writes any more: leaves, place labels and the Fabric follow from what was published."""
        before = None

        def quiet():
            nonlocal before
            now = {item["metadata"]["name"]: item["metadata"]["resourceVersion"]
                   for item in cls.rest.list(path("nodetopologies"))}
            same, before = now == before, now
            time.sleep(4)
            return same
        cls.heddle.wait_for(quiet, "nobody to write any more", 120)

    def all(self):
        """Of each node: the generations that it was told, and its ports' states with the generation they are of."""
        told, states = {}, {}
        for item in self.rest.list(path("nodetopologies")):
            name = item["metadata"]["name"]
            told[name] = {wish["generation"] for wish in item.get("spec", {}).get("lossless", [])}
            states[name] = Counter((report["state"], report.get("generation")) for report in
                                   item.get("status", {}).get("lossless", []) for _ in report["ports"])
        return told, states

    def wait_generation(self, generation, timeout=600):
        """Until every port of every node is compliant with it. No node may have been told before the canaries were."""
        compliant = Counter({("Compliant", generation): len(PORTS)})
        first, early = [], []

        def there():
            told, states = self.all()
            others = [name for name in NODES if name not in CANARIES and generation in told[name]]
            if others and not first:
                first.append(time.monotonic())
                early.extend(states[name] for name in CANARIES if states[name] != compliant)
            left = [name for name in NODES if states[name] != compliant]
            if left:
                raise TimeoutError(f"{len(left)} are not, the first {left[0]}: {dict(states[left[0]])}")
            return True
        self.heddle.wait_for(there, f"generation {generation} everywhere", timeout)
        self.assertEqual(early, [], "others were told before these canaries were compliant")
        return first[0]

    def wait_states(self, states, timeout=300):
        """Until every node says this of its ports, whatever the generation."""
        def there():
            left = {}
            for item in self.rest.list(path("nodetopologies")):
                reports = item.get("status", {}).get("lossless", [])
                now = {port: report["state"] for report in reports for port in report["ports"]}
                if now != states:
                    left[item["metadata"]["name"]] = now
            if left:
                raise TimeoutError(f"{len(left)} do not, the first {next(iter(left.items()))}")
            return True
        self.heddle.wait_for(there, f"{states} everywhere", timeout)

    def measured(self, what, act):
        """Says what it took, and returns how many specs were written."""
        before, cpu, started = Sample(self.plane), self.cpu(), time.monotonic()
        first = act()
        took, after, used = time.monotonic() - started, Sample(self.plane), self.cpu()
        asked = after.requests - before.requests
        wrote = lambda kind: sum(count for (verb, name, _), count in asked.items()
                                 if name == kind and verb in ("PATCH", "APPLY", "PUT", "POST"))
        specs, statuses = wrote("nodetopologies"), wrote("nodetopologies/status")
        canaries = f", canaries after {first - started:.0f} s" if first else ""
        print(f"    {what}: {took:.0f} s{canaries}; writes: {specs:.0f} specs, {statuses:.0f} statuses "
              f"({statuses / len(NODES):.1f} a node), {wrote('losslesspolicies/status'):.0f} of the policy, "
              f"{wrote('events'):.0f} events; CPU: operator {used[0] - cpu[0]:.2f} s, agents {used[1] - cpu[1]:.1f} s, "
              f"API server {after.cpu['apiserver'] - before.cpu['apiserver']:.1f} s", flush=True)
        return specs

    def cpu(self):
        running = {name: daemon for name, daemon in self.heddle.daemons.items() if daemon.running()}
        return (cpu_seconds(running["operator"].pid),
                sum(cpu_seconds(daemon.pid) for name, daemon in running.items() if name.startswith("agent:")))

    def change(self, **spec):
        self.rest.patch(path("losslesspolicies", name="roce"), {"spec": spec})

    def test_canaries_first_then_all_and_nobody_where_a_canary_fails(self):
        def make():
            self.rest.create(path("losslesspolicies"), {
                "apiVersion": "heddle.dev/v1alpha1", "kind": "LosslessPolicy", "metadata": {"name": "roce"},
                "spec": {"mode": "Apply", "canary": len(CANARIES), "nodeSelector": {"pool": "gpu"}}})
            return self.wait_generation(1)
        # Once each, however slow the agents are and however far the operator's cache is behind its own writes.
        self.assertEqual(self.measured("a new policy", make), len(NODES))
        self.assertEqual({self.writes(name) for name in NODES}, {len(PORTS)}, "one write a port")
        self.heddle.wait_for(lambda: self.ready().get("reason") == "Compliant", "the policy to be Compliant", 90)

        # What the second canary refuses goes no further.
        refusal = {"setting": "mtu", "code": "Invalid", "message": "not with this firmware"}
        self.give_ports(CANARIES[1], refuses=[refusal])
        # Its agent has read that once this is over.
        time.sleep(3)

        def fail():
            self.change(mtu=8900)
            self.heddle.wait_for(lambda: self.ready().get("reason") == "CanaryStopped", "the policy to stop", 120)
        self.assertLessEqual(self.measured("a change that a canary refuses", fail), len(CANARIES))
        time.sleep(15)
        told, states = self.all()
        self.assertIn(f"{CANARIES[1]} {PORTS[0]}", self.ready()["message"])
        self.assertIn("not with this firmware", self.ready()["message"])
        self.assertEqual(states[CANARIES[1]], Counter({("Failed", 2): len(PORTS)}))
        for name in NODES:
            self.assertEqual(told[name], {2} if name in CANARIES else {1}, name)
        self.assertEqual({self.writes(name) for name in NODES[len(CANARIES):]}, {len(PORTS)})

        # Mended, and on the way five agents die.
        self.give_ports(CANARIES[1])
        before = {name: self.writes(name) for name in NODES}
        victims = NODES[10:15]

        def mend():
            self.change(mtu=8800)
            self.heddle.wait_for(lambda: any(self.writes(name) > before[name] for name in victims), "a write", 300)
            for name in victims:
                self.heddle.kill9(f"agent:{name}")
            for name in victims:
                self.heddle.start_daemon(f"agent:{name}")
            return self.wait_generation(3)
        self.measured("mended, five agents killed", mend)
        for name in NODES:
            wrote = self.writes(name) - before[name]
            self.assertLessEqual(wrote, len(PORTS) + (name in victims), name)
            self.assertEqual({port["mtu"] for port in self.have(name).values()}, {8800}, name)

        # What changes nothing.
        def nothing():
            self.change(rdma={"dscp": 26})
            self.heddle.wait_for(
                lambda: self.rest.get(path("losslesspolicies", name="roce"))["status"]["observedGeneration"] == 4,
                "the new generation to be seen", 60)
            time.sleep(15)
        wrote = {name: self.writes(name) for name in NODES}
        self.assertEqual(self.measured("a change that changes nothing", nothing), 0)
        self.assertEqual({name: self.writes(name) for name in NODES}, wrote)

        # A second policy on one rail: neither is in force there, which every agent says, and nobody writes.
        def disagree():
            self.rest.create(path("losslesspolicies"), {
                "apiVersion": "heddle.dev/v1alpha1", "kind": "LosslessPolicy", "metadata": {"name": "rail-0"},
                "spec": {"mode": "Apply", "rails": [0], "mtu": 8700, "nodeSelector": {"pool": "gpu"}}})
            self.wait_states({port: "Conflict" if port in RAIL_0 else "Compliant" for port in PORTS})
            for policy in ("roce", "rail-0"):
                self.heddle.wait_for(lambda name=policy: self.ready(name).get("reason") == "Conflict", f"{policy} to say so", 90)
        self.measured("a second policy on rail 0", disagree)
        for item in self.rest.list(path("nodetopologies")):
            for wish in item["spec"]["lossless"]:
                self.assertEqual(wish["policies"], ["rail-0", "roce"] if wish["ports"] == RAIL_0 else ["roce"])

        def agree():
            self.rest.delete(path("losslesspolicies", name="rail-0"))
            self.wait_states(dict.fromkeys(PORTS, "Compliant"))
            self.heddle.wait_for(lambda: self.ready().get("reason") == "Compliant", "the policy to be Compliant", 90)
        self.measured("the second one deleted", agree)
        time.sleep(10)
        self.assertEqual({name: self.writes(name) for name in NODES}, wrote, "what was set before was right all the time")


class LosslessKindsTest(PortsOfNodes, BedTestCase):
    """Two kinds of NICs under one policy: what one driver took says nothing of another."""

    KINDS = {"gpu-001": "roce-dual-tor", "gpu-002": "roce-dual-tor", "gpu-101": "roce-dual-tor-cx8",
             "gpu-102": "roce-dual-tor-cx8"}
    FIRST = ("gpu-001", "gpu-101")  # by name, of each kind
    REFUSAL = {"setting": "mtu", "code": "Invalid", "message": "not with this firmware"}

    @classmethod
    def set_up_bed(cls):
        cls.nodes.add_plain(*cls.KINDS, labels={"pool": "gpu"})
        cls.heddle = Heddle(cls.plane, options.binaries)
        cls.heddle.install()
        cls.rest = cls.plane.rest
        cls.heddle.machines = machines.write({"nodes": [{"name": name, "shape": shape} for name, shape in cls.KINDS.items()]},
                                             str(cls.plane.folder / "machines"))
        cls.heddle.start_operator()
        cls.ports = {name: cls.plane.folder / f"qos-{name}" for name in cls.KINDS}
        for name, folder in cls.ports.items():
            folder.mkdir()
            cls.give_ports(name, **({"refuses": [cls.REFUSAL]} if name == "gpu-101" else {}))
            cls.heddle.start_agent(name, *QUICK, "--qos-dir", str(folder))
        cls.heddle.wait_published(list(cls.KINDS), 120)

    def states(self, node):
        status = self.rest.get(path("nodetopologies", name=node)).get("status", {})
        return Counter((report["state"], report.get("generation")) for report in status.get("lossless", [])
                       for _ in report["ports"])

    def told(self, node):
        return {wish["generation"] for wish in self.rest.get(path("nodetopologies", name=node))["spec"].get("lossless", [])}

    def test_each_kind_of_nic_has_a_canary_and_one_that_fails_holds_up_all(self):
        ids = {name: {nic["pciId"] for nic in self.rest.get(path("nodetopologies", name=name))["status"]["nics"]
                      if nic["role"] == "compute"} for name in self.KINDS}
        self.assertEqual(ids, {"gpu-001": {"15b3:1021"}, "gpu-002": {"15b3:1021"},
                               "gpu-101": {"15b3:1023"}, "gpu-102": {"15b3:1023"}})
        self.rest.create(path("losslesspolicies"), {
            "apiVersion": "heddle.dev/v1alpha1", "kind": "LosslessPolicy", "metadata": {"name": "roce"},
            "spec": {"mode": "Apply", "canary": 1, "nodeSelector": {"pool": "gpu"}}})
        self.heddle.wait_for(lambda: self.ready().get("reason") == "CanaryStopped", "the policy to stop", 90)
        self.heddle.wait_for(lambda: self.states("gpu-001") == Counter({("Compliant", 1): len(PORTS)}),
                             "the canary of the first kind to be compliant", 60)
        self.assertEqual(self.states("gpu-101"), Counter({("Failed", 1): len(PORTS)}))
        self.assertIn(f"gpu-101 {PORTS[0]}", self.ready()["message"])
        self.assertIn("not with this firmware", self.ready()["message"])
        # Of the kind that took it neither: one policy is one rollout.
        self.assertEqual({name: (self.told(name), self.writes(name)) for name in self.KINDS if name not in self.FIRST},
                         {"gpu-002": (set(), 0), "gpu-102": (set(), 0)})

        self.give_ports("gpu-101")
        time.sleep(3)
        self.rest.patch(path("losslesspolicies", name="roce"), {"spec": {"mtu": 8900}})
        self.heddle.wait_for(lambda: self.ready().get("reason") == "Compliant", "all to follow", 120)
        for name in self.KINDS:
            self.assertEqual({port["mtu"] for port in self.have(name).values()}, {8900}, name)
