"""What RBAC and policies let the extender and people do, beyond their RBAC rules: charts/heddle/templates."""

from bed import REPOSITORY, ApiError, Heddle, path
from bed.heddle import NAMESPACE, TRAINING_NAMESPACE
from bed.testing import BedTestCase

GATE = "heddle.dev/gang"


class PodPatchesTest(BedTestCase):

    @classmethod
    def set_up_bed(cls):
        cls.nodes.add_plain("node-a")
        cls.heddle = Heddle(cls.plane, binaries=REPOSITORY / "build")  # no daemon of Heddle runs here
        cls.heddle.install()
        cls.extender = cls.plane.account_rest(NAMESPACE, "heddle-extender")

    def make(self, **spec):
        """A gated pod that is deleted after the test."""
        worker = {"name": "worker", "image": "train", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
        body = {"metadata": {"generateName": "probe-", "labels": {"app": "train"}, "finalizers": [],
                             "annotations": {"heddle.dev/parallelism": "tp=1", "team": "blue"}},
                "spec": {"containers": [worker], "initContainers": [{"name": "first", "image": "data"}]} | spec}
        made = self.plane.rest.create(path("pods", TRAINING_NAMESPACE), body)
        where = path("pods", TRAINING_NAMESPACE, made["metadata"]["name"])
        self.addCleanup(self.plane.rest.delete, where, gracePeriodSeconds=0)
        self.assertIn(GATE, [gate["name"] for gate in made["spec"]["schedulingGates"]])
        return made, where

    def assert_refused(self, sentence, where, change, kind="merge"):
        with self.assertRaises(ApiError) as refused:
            self.extender.patch(where, change, kind) if kind == "json" else self.extender.patch(where, change)
        self.assertEqual(refused.exception.status, 403, refused.exception)
        self.assertIn(sentence, refused.exception.message)

    def test_it_lets_a_pod_go_and_notes_the_plan(self):
        made, where = self.make()
        index = [gate["name"] for gate in made["spec"]["schedulingGates"]].index(GATE)
        released = self.extender.patch(where, [
            {"op": "remove", "path": f"/spec/schedulingGates/{index}"},
            {"op": "add", "path": "/spec/affinity", "value": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}]}]}}}},
            {"op": "add", "path": "/metadata/annotations/heddle.dev~1rank", "value": "0"}], "json")
        self.assertEqual(released["metadata"]["annotations"]["heddle.dev/rank"], "0")
        self.assertNotIn("schedulingGates", released["spec"])

    def test_it_gives_no_container_another_image(self):
        _, where = self.make()
        for group, name in (("containers", 0), ("initContainers", 0)):
            change = [{"op": "replace", "path": f"/spec/{group}/{name}/image", "value": "evil"}]
            self.assert_refused(f"spec.{group} would change", where, change, "json")

    def test_it_adds_no_tolerations_and_sets_no_deadline(self):
        _, where = self.make()
        more = [{"op": "add", "path": "/spec/tolerations/-", "value": {"operator": "Exists"}}]
        self.assert_refused("spec.tolerations would change", where, more, "json")
        self.assert_refused("spec.activeDeadlineSeconds would change", where, {"spec": {"activeDeadlineSeconds": 1}})

    def test_it_leaves_the_gates_of_others(self):
        made, where = self.make(schedulingGates=[{"name": "example.com/quota"}])
        index = [gate["name"] for gate in made["spec"]["schedulingGates"]].index("example.com/quota")
        removal = [{"op": "remove", "path": f"/spec/schedulingGates/{index}"}]
        self.assert_refused("leaves other affinity and gates alone", where, removal, "json")

    def test_it_changes_no_label_owner_finalizer_or_foreign_annotation(self):
        _, where = self.make()
        self.assert_refused("annotations of heddle.dev on pods, and no other", where,
                            {"metadata": {"annotations": {"team": "red"}}})
        for change in ({"labels": {"app": "other"}}, {"finalizers": ["example.com/hold"]},
                       {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "1"}]}):
            with self.subTest(change=change):
                self.assert_refused("labels, owners or finalizers of pods", where, {"metadata": change})

    def test_others_change_what_they_may(self):
        _, where = self.make()
        after = self.plane.rest.patch(where, {"metadata": {"labels": {"app": "other"}}})
        self.assertEqual(after["metadata"]["labels"]["app"], "other")


class OperatorMapsTest(BedTestCase):
    """Which ConfigMaps the operator writes where the values let it write any: guard-policies.yaml."""

    @classmethod
    def set_up_bed(cls):
        cls.heddle = Heddle(cls.plane, binaries=REPOSITORY / "build")
        cls.heddle.install(operator={"switches": {"render": True}}, otherPlugins={"sriov": {"image": "a/c:1"}})
        cls.operator = cls.plane.account_rest(NAMESPACE, "heddle-operator")
        cls.plane.wait_for(lambda: cls.refused("create", path("configmaps", NAMESPACE) + "?dryRun=All",
                                               {"metadata": {"name": "anything"}}), "the policy to be in force")

    @classmethod
    def refused(cls, verb, *arguments):
        try:
            getattr(cls.operator, verb)(*arguments)
        except ApiError as problem:
            return problem.status == 403 and "of other RDMA device plugins, and no other" in problem.message
        return False

    def test_it_cannot_say_to_which_server_the_scheduler_shows_its_token(self):
        scheduler = path("configmaps", NAMESPACE, "heddle-scheduler")
        before = self.plane.rest.get(scheduler)
        self.assertIn("kubeconfig.json", before["data"])
        # Nor as one that looks like its own.
        owner = {"apiVersion": "heddle.dev/v1alpha1", "kind": "FabricSwitch", "name": "leaf", "uid": "1"}
        disguise = {"labels": {"app.kubernetes.io/managed-by": "heddle-operator", "heddle.dev/rdma-class": "1f2e3d4c"},
                    "ownerReferences": [owner]}
        for change in ({"data": {"kubeconfig.json": "{}"}}, {"metadata": disguise},
                       {"metadata": disguise, "data": {"kubeconfig.json": "{}"}}):
            with self.subTest(change=change):
                self.assertTrue(self.refused("patch", scheduler, change))
        self.assertTrue(self.refused("delete", scheduler))
        self.assertEqual(self.plane.rest.get(scheduler), before)
        other = {"metadata": {"name": "heddle-scheduler-2"} | disguise, "data": {}}
        self.assertTrue(self.refused("create", path("configmaps", NAMESPACE), other))

    def test_it_writes_those_of_switches_and_of_other_plugins(self):
        for name in ("heddle-switch-leaf-3.dc1", "heddle-rdma-shared-1f2e3d4c", "heddle-sriov-1f2e3d4c"):
            where = path("configmaps", NAMESPACE, name)
            for text in ("one", "two"):
                body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": text}}
                made = self.operator.patch(where, body, "apply", fieldManager="heddle-operator", force=True)
                self.assertEqual(made["data"], {"a": text})
            self.operator.delete(where)

    def test_others_write_what_they_may(self):
        self.plane.rest.create(path("configmaps", NAMESPACE), {"metadata": {"name": "anything"}})
        self.plane.rest.delete(path("configmaps", NAMESPACE, "anything"))


class PeopleTest(BedTestCase):
    """What people may see: charts/heddle/templates/people.yaml."""

    @classmethod
    def set_up_bed(cls):
        cls.heddle = Heddle(cls.plane, binaries=REPOSITORY / "build")
        cls.heddle.install()
        cls.rest = cls.plane.rest
        cls.rest.create("/apis/rbac.authorization.k8s.io/v1/namespaces/" + TRAINING_NAMESPACE + "/rolebindings", {
            "metadata": {"name": "ann-looks"}, "subjects": [{"kind": "User", "name": "ann"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}})
        cls.ann = cls.rest.as_user("ann", [])

    def assert_forbidden(self, call, *arguments):
        with self.assertRaises(ApiError) as refused:
            call(*arguments)
        self.assertEqual(refused.exception.status, 403, refused.exception)

    def test_who_may_look_at_a_namespace_sees_its_gangs_and_no_others(self):
        def sees():  # aggregation is a controller's work
            try:
                self.ann.list(path("gangs", TRAINING_NAMESPACE))
            except ApiError:
                return False
            return True
        self.plane.wait_for(sees, "the role view to hold heddle-view's rules")
        self.assert_forbidden(self.ann.list, path("gangs", "default"))
        self.assert_forbidden(self.ann.create, path("gangs", TRAINING_NAMESPACE), {"metadata": {"name": "forged"}})

    def test_what_lies_in_no_namespace_is_seen_by_whom_it_was_given_to(self):
        self.assert_forbidden(self.ann.list, path("nodetopologies"))
        binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
        self.rest.create(binding, {
            "metadata": {"name": "ann-sees-the-fabric"}, "subjects": [{"kind": "User", "name": "ann"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "heddle-fabric-view"}})
        self.addCleanup(self.rest.delete, binding + "/ann-sees-the-fabric")

        def sees():
            try:
                self.ann.list(path("nodetopologies"))
            except ApiError:
                return False
            return True
        self.plane.wait_for(sees, "the binding to hold")
