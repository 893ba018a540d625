"""What charts/heddle says of its pods: where they may run, what stands on them, what they may take. On paper."""

import re

from chart_text import ChartTextTestCase, named, pod_of
from test_chart_values import EVERYTHING


class PodsTest(ChartTextTestCase):

    def test_pods_go_where_the_values_say(self):
        objects = self.objects(EVERYTHING)
        for kind, name in (("Deployment", "heddle-operator"), ("Job", "heddle-uninstall"), ("Pod", "heddle-test")):
            spec = pod_of(named(objects, kind, name))["spec"]
            self.assertEqual((spec["nodeSelector"], spec["tolerations"]),
                             ({"role": "infra", "kubernetes.io/os": "linux"}, [{"key": "infra", "operator": "Exists"}]), name)
        scheduler = pod_of(named(objects, "Deployment", "heddle-scheduler"))["spec"]
        self.assertEqual(scheduler["nodeSelector"], {"role": "infra", "kubernetes.io/os": "linux"})
        self.assertNotIn("tolerations", scheduler)
        for one in filter(pod_of, objects):
            self.assertEqual(pod_of(one)["spec"]["imagePullSecrets"], [{"name": "registry"}], one["metadata"]["name"])

    def test_a_name_of_digits_is_a_name(self):
        """Unquoted it would be a number, which the API server does not take for one."""
        values = {"image": {"pullSecrets": ["1234"]}, "priorityClasses": {"control": "7", "agents": "0x1"},
                  "agent": {"access": {"driver": "runtimeClass"}, "driver": {"runtimeClass": "12"}, "nodeSelector": {"gpu": "true"}}}
        classes = {}
        for mode in ("place", "observe"):
            for one in filter(pod_of, self.objects({**values, "mode": mode})):
                spec = pod_of(one)["spec"]
                self.assertEqual(spec["imagePullSecrets"], [{"name": "1234"}])
                classes[one["metadata"]["name"]] = (spec.get("priorityClassName"), spec.get("runtimeClassName"))
        self.assertEqual({name: seen for name, seen in classes.items() if any(seen)}, {
            "heddle-operator": ("7", None), "heddle-scheduler": ("7", None), "heddle-observer": ("7", None),
            "heddle-nodeagent": ("0x1", "12")})

    def test_no_pod_starts_on_a_node_of_another_system(self):
        """The agents tolerate every taint, so also those by which Windows nodes keep others' pods away."""
        for mode in ("place", "observe"):
            made = [one for one in self.objects({"mode": mode, "cli": {"enabled": True}}) if pod_of(one)]
            self.assertEqual(len(made), 6)
            for one in made:
                self.assertEqual(pod_of(one)["spec"]["nodeSelector"], {"kubernetes.io/os": "linux"}, one["metadata"]["name"])
        chosen = self.objects({"agent": {"nodeSelector": {"kubernetes.io/os": "ours", "gpu": "true"}}})
        self.assertEqual(pod_of(named(chosen, "DaemonSet", "heddle-nodeagent"))["spec"]["nodeSelector"],
                         {"kubernetes.io/os": "ours", "gpu": "true"})

    def test_every_pod_has_the_labels_and_annotations_that_policies_ask_for(self):
        for mode in ("place", "observe"):
            around = {"mode": mode, "cli": {"enabled": True}}
            before = [one for one in self.objects(around) if pod_of(one)]
            after = [one for one in self.objects({**around, "podLabels": {"team": "ai"}, "podAnnotations": {"a.b/c": "d"}})
                     if pod_of(one)]
            for old, new in zip(before, after, strict=True):
                with self.subTest(mode=mode, name=new["metadata"]["name"]):
                    was, now = pod_of(old)["metadata"], pod_of(new)["metadata"]
                    self.assertEqual(now["labels"], {**was["labels"], "team": "ai"})
                    self.assertEqual(now["annotations"], {**was.get("annotations", {}), "a.b/c": "d"})
                    # A selector never changes: the API server would refuse the upgrade.
                    self.assertEqual(new["spec"].get("selector"), old["spec"].get("selector"))

    def test_every_container_can_be_given_limits(self):
        """Policies and quotas refuse pods without them."""
        given = {"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}
        for mode in ("place", "observe"):
            objects = self.objects({
                "mode": mode, "operator": given, "scheduler": given, "extender": given, "helmTest": given, "uninstall": given,
                "cli": {"enabled": True, **given}, "agent": {**given, "access": {"lldp": "sidecar"}, "lldp": given}})
            for one in filter(pod_of, objects):
                spec = pod_of(one)["spec"]
                for container in spec["containers"] + spec.get("initContainers", []):
                    self.assertEqual(container["resources"]["limits"], {"cpu": "2"}, (one["metadata"]["name"], container["name"]))

    def test_what_is_asked_over_the_network_is_answered_on_clusters_with_ipv6_alone(self):
        for mode, name in (("place", "heddle-scheduler"), ("observe", "heddle-observer")):
            for one in filter(pod_of, self.objects({"mode": mode})):
                for container in pod_of(one)["spec"]["containers"]:
                    self.assertNotIn("0.0.0.0", " ".join(container["command"]), one["metadata"]["name"])
            command = pod_of(named(self.objects({"mode": mode}), "Deployment", name))["spec"]["containers"][-1]["command"]
            self.assertTrue([word for word in command if re.fullmatch(r"--(metrics-)?listen=:\d+", word)], command)

    def test_no_gang_is_told_to_ask_for_what_no_agent_offers(self):
        def policy(values):
            return named(self.objects(values), "MutatingAdmissionPolicy", "heddle-gang")["spec"]
        self.assertIn("'heddle.dev/fabric': '1'", policy({})["mutations"][0]["applyConfiguration"]["expression"])
        without = policy({"agent": {"devices": {"enabled": False}}})
        expression = without["mutations"][0]["applyConfiguration"]["expression"]
        self.assertNotIn("fabric", expression)
        self.assertIn("schedulingGates: [Object.spec.schedulingGates{name: 'heddle.dev/gang'}]\n", expression)
        self.assertEqual([one["name"] for one in without["variables"]], ["gang"])
