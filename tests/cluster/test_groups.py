"""Gangs that the UID of an owner does not tell: groups of a LeaderWorkerSet, workers of a RayCluster, lone pods, PodGroups.

StatefulSets and garbage collection are Kubernetes' own here; those of LeaderWorkerSet and KubeRay are in tests/frameworks, and
here the test plays them: it makes the StatefulSets and pods that they would, with their labels, annotations and owner references."""

from bed import ApiError, h100, path
from bed.testing import bound_to, indexed_job
from scenario import TEAM
from test_main_job import HeddleTestCase

PARALLELISM = {"heddle.dev/parallelism": "tp=8,dp=4"}
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def crd(group, version, kind, plural):
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced",
                 "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
                 "versions": [{"name": version, "served": True, "storage": True, "subresources": {"status": {}},
                               "schema": {"openAPIV3Schema": {"type": "object",
                                                              "x-kubernetes-preserve-unknown-fields": True}}}]}}


def template(annotations=None, labels=None, gpus=8):
    made = indexed_job("", 1, gpus, annotations=PARALLELISM if annotations is None else annotations)["spec"]["template"]
    made["metadata"]["labels"] = dict(labels or {})
    made["spec"].pop("restartPolicy", None)
    return made


def owned_by(owner):
    return [{"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
             "uid": owner["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}]


class GroupTestCase(HeddleTestCase):
    cluster = h100()
    kinds = ()  # (group, version, kind, plural) of CRDs

    @classmethod
    def set_up_bed(cls):
        for group, version, kind, plural in cls.kinds:
            cls.plane.rest.create(CRDS, crd(group, version, kind, plural))
            listed = f"/apis/{group}/{version}/namespaces/default/{plural}"
            cls.plane.wait_for(lambda at=listed: cls.plane.rest.list(at) == [], f"{plural} to be served")
        super().set_up_bed()

    def group_gang(self, group):
        return next((gang for gang in self.plane.rest.list(path("gangs", TEAM)) if gang["spec"].get("group") == group), None)

    def wait_running(self, group, but=None):
        def there():
            gang = self.group_gang(group)
            if not gang or gang["metadata"]["uid"] == but or not gang.get("status", {}).get("summary", "").startswith("Running"):
                raise AssertionError(gang.get("status", {}) if gang else "no Gang")
            return gang
        return self.heddle.wait_for(there, f"the gang {group} to run", 90)

    def ranks(self, prefix):
        return {pod["metadata"]["name"]: int(pod["metadata"]["annotations"].get("heddle.dev/rank", -1))
                for pod in self.plane.pods(TEAM) if pod["metadata"]["name"].startswith(prefix)}

    def make_pod(self, name, owner=None, **metadata):
        made = template()
        labels = metadata.get("labels", {})
        body = {"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "labels": labels, "annotations": PARALLELISM | metadata.get("annotations", {})},
                "spec": made["spec"] | {"restartPolicy": "Never"} | metadata.get("spec", {})}
        if owner:
            body["metadata"]["ownerReferences"] = owned_by(owner)
        return self.plane.rest.create(path("pods", TEAM), body)

    def wait_empty(self):
        self.plane.wait_for(lambda: not self.plane.pods(TEAM), "the pods to be gone", 90)


class LeaderWorkerSetTest(GroupTestCase):
    """The webhook of LeaderWorkerSet, which numbers its pods, is played by an admission policy."""

    LWS = "leaderworkerset.sigs.k8s.io/"
    SETS = f"/apis/leaderworkerset.x-k8s.io/v1/namespaces/{TEAM}/leaderworkersets"
    STATEFUL = f"/apis/apps/v1/namespaces/{TEAM}/statefulsets"
    kinds = (("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "leaderworkersets"),)

    @classmethod
    def set_up_bed(cls):
        super().set_up_bed()
        last = "object.metadata.name.split('-')[size(object.metadata.name.split('-')) - 1]"
        key = f"'{cls.LWS}group-index' in object.metadata.labels ? '{cls.LWS}worker-index' : '{cls.LWS}group-index'"
        cls.plane.rest.create(path("mutatingadmissionpolicies"), {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy",
            "metadata": {"name": "lws-webhook"},
            "spec": {"failurePolicy": "Fail", "reinvocationPolicy": "Never",
                     "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                                                             "operations": ["CREATE"], "resources": ["pods"]}]},
                     "matchConditions": [{"name": "is-of-a-set", "expression":
                                          f"has(object.metadata.labels) && '{cls.LWS}name' in object.metadata.labels"}],
                     "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {
                         "expression": "Object{metadata: Object.metadata{labels: {(" + key + "): " + last + "}}}"}}]}})
        cls.plane.rest.create("/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings", {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
            "metadata": {"name": "lws-webhook"}, "spec": {"policyName": "lws-webhook"}})
        body = {"metadata": {"name": "probe-7", "labels": {f"{cls.LWS}name": "probe"}}, "spec": template()["spec"]}
        cls.plane.wait_for(
            lambda: cls.plane.rest.create(path("pods", TEAM) + "?dryRun=All", body)["metadata"]["labels"].get(
                f"{cls.LWS}group-index") == "7", "the played webhook to be in force", 60)

    def submit(self, name, groups, size):
        """The LeaderWorkerSet and the StatefulSet of its leaders, as its controller makes it."""
        made = self.plane.rest.create(self.SETS, {
            "apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": name},
            "spec": {"replicas": groups, "leaderWorkerTemplate": {
                "size": size, "restartPolicy": "RecreateGroupOnPodRestart", "workerTemplate": template()}}})
        labels = {f"{self.LWS}name": name, f"{self.LWS}worker-index": "0"}
        self.plane.rest.create(self.STATEFUL, {
            "apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": name, "labels": {f"{self.LWS}name": name}, "ownerReferences": owned_by(made)},
            "spec": {"replicas": groups, "serviceName": name, "podManagementPolicy": "Parallel",
                     "selector": {"matchLabels": labels},
                     "template": template(PARALLELISM | {f"{self.LWS}size": str(size)}, labels)}})
        return made

    def play_workers(self, name, group, size, but=None):
        """The StatefulSet of one group's workers, which their leader owns."""
        def leader():
            pod = self.plane.rest.find(path("pods", TEAM, f"{name}-{group}"))
            return pod if pod and pod["metadata"]["uid"] != but else None
        pod = self.plane.wait_for(leader, f"the leader of group {group}", 90)
        self.plane.wait_for(lambda: not self.plane.rest.find(f"{self.STATEFUL}/{name}-{group}"), "older workers to be gone", 90)
        labels = {f"{self.LWS}name": name, f"{self.LWS}group-index": str(group)}
        marks = {f"{self.LWS}size": str(size), f"{self.LWS}leader-name": f"{name}-{group}"}
        self.plane.rest.create(self.STATEFUL, {
            "apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": f"{name}-{group}", "labels": labels,
                         "ownerReferences": owned_by({"apiVersion": "v1", "kind": "Pod"} | pod)},
            "spec": {"replicas": size - 1, "serviceName": name, "podManagementPolicy": "Parallel", "ordinals": {"start": 1},
                     "selector": {"matchLabels": labels}, "template": template(PARALLELISM | marks, labels)}})
        return pod

    def test_each_group_is_a_gang_and_a_new_leader_starts_another_attempt(self):
        made = self.submit("serve", 2, 4)
        leaders = [self.play_workers("serve", group, 4) for group in (0, 1)]
        gangs = [self.wait_running(f"LeaderWorkerSet/serve/{group}") for group in (0, 1)]
        for group, (gang, leader) in enumerate(zip(gangs, leaders)):
            self.assertEqual((gang["spec"]["owner"]["uid"], gang["spec"]["pods"], gang["spec"]["leader"]),
                             (made["metadata"]["uid"], 4, leader["metadata"]["uid"]))
            self.assertEqual(self.ranks(f"serve-{group}"),
                             {f"serve-{group}": 0} | {f"serve-{group}-{i}": i for i in (1, 2, 3)})
        self.assert_no_gpu_twice()

        # As its controller does when a pod of the group restarts: the leader goes, and its workers with it.
        self.plane.rest.delete(path("pods", TEAM, "serve-0"), gracePeriodSeconds=0)
        again = self.play_workers("serve", 0, 4, but=leaders[0]["metadata"]["uid"])
        gang = self.wait_running("LeaderWorkerSet/serve/0", but=gangs[0]["metadata"]["uid"])
        self.assertEqual(gang["spec"]["leader"], again["metadata"]["uid"])
        self.assertEqual(self.group_gang("LeaderWorkerSet/serve/1")["metadata"]["uid"], gangs[1]["metadata"]["uid"])
        self.assert_no_gpu_twice()

        self.plane.rest.delete(f"{self.SETS}/serve")
        self.wait_empty()
        self.plane.wait_for(self.all_ended, "the Gangs to end", 60)

    def test_workers_that_wait_for_a_ready_leader_are_told_what_to_set(self):
        made = self.submit("slow", 1, 2)
        self.plane.rest.patch(f"{self.SETS}/slow", {"spec": {"startupPolicy": "LeaderReady"}})
        self.assertIn("startupPolicy: LeaderCreated", self.wait_refused(made["metadata"]["name"], "LeaderFirst"))
        self.plane.rest.delete(f"{self.SETS}/slow")
        self.wait_empty()


class RayTest(GroupTestCase):
    CLUSTERS = f"/apis/ray.io/v1/namespaces/{TEAM}/rayclusters"
    kinds = (("ray.io", "v1", "RayCluster", "rayclusters"),)

    def submit(self, name, **spec):
        return self.plane.rest.create(self.CLUSTERS, {
            "apiVersion": "ray.io/v1", "kind": "RayCluster",
            "metadata": {"name": name, "labels": {"ray.io/originated-from-crd": "RayJob",
                                                  "ray.io/originated-from-cr-name": "train"}},
            "spec": {"headGroupSpec": {"template": template({}, gpus=0)},
                     "workerGroupSpecs": [{"groupName": "gpu", "replicas": 4, "numOfHosts": 1,
                                           "template": template()}]} | spec})

    def labels(self, ray, group, kind):
        return {"ray.io/cluster": ray["metadata"]["name"], "ray.io/group": group, "ray.io/node-type": kind,
                "ray.io/is-ray-node": "yes"}

    def worker(self, ray, name):
        return self.make_pod(name, ray, labels=self.labels(ray, "gpu", "worker"))

    def ranks_file(self):
        made = self.plane.rest.find(path("configmaps", TEAM, "train-heddle-ranks"))
        return [line.split("\t") for line in made["data"]["ranks.tsv"].splitlines()[1:]] if made else []

    def test_workers_get_ranks_in_a_config_map_that_goes_with_the_cluster(self):
        ray = self.submit("train-abcde")
        self.plane.rest.create(path("pods", TEAM), {
            "metadata": {"name": "head", "labels": self.labels(ray, "headgroup", "head"), "ownerReferences": owned_by(ray)},
            "spec": template({}, gpus=0)["spec"]})
        for name in ("w-qx", "w-b7", "w-z0", "w-m4"):
            self.worker(ray, name)
        self.wait_gang("train-abcde", "Running")
        ranks = self.ranks("w-")
        self.assertEqual(ranks, {"w-b7": 0, "w-m4": 1, "w-qx": 2, "w-z0": 3})
        lines = self.ranks_file()
        self.assertEqual([(int(rank), pod) for rank, pod, _, _ in lines], sorted((rank, pod) for pod, rank in ranks.items()))
        for _, pod, node, gpus in lines:
            live = self.plane.rest.get(path("pods", TEAM, pod))
            self.assertEqual((node, gpus), (bound_to(live), live["metadata"]["annotations"]["heddle.dev/gpus"]))
        extender = "system:serviceaccount:heddle-system:heddle-extender"
        made = self.plane.audit(user=extender, verb="create", resource="configmaps")[0]["time"]
        released = [event["time"] for event in self.plane.audit(user=extender, verb="patch", resource="pods")]
        self.assertLess(made, min(released), "the file comes before the first pod")

        # A worker that is made anew takes its rank over, whatever its name is.
        self.plane.rest.delete(path("pods", TEAM, "w-b7"), gracePeriodSeconds=0)
        self.worker(ray, "w-zz")
        self.heddle.wait_for(lambda: self.ranks("w-zz").get("w-zz") == 0, "the new worker to have rank 0", 60)
        self.assertEqual(self.ranks_file()[0][1], "w-zz")

        self.plane.rest.delete(f"{self.CLUSTERS}/train-abcde")
        self.wait_empty()
        self.plane.wait_for(lambda: not self.ranks_file(), "the ConfigMap to be collected", 60)
        self.plane.wait_for(self.all_ended, "the Gang to end", 60)

    def test_a_cluster_that_scales_itself_is_planned_again_at_its_new_size(self):
        ray = self.submit("train-fghij", enableInTreeAutoscaling=True)
        for index in range(4):
            self.worker(ray, f"w-{index}")
        before = self.wait_gang("train-fghij", "Running")
        where = {pod["metadata"]["name"]: bound_to(pod) for pod in self.plane.pods(TEAM)}
        group = ray["spec"]["workerGroupSpecs"][0] | {"replicas": 6}
        self.plane.rest.patch(f"{self.CLUSTERS}/train-fghij", {"spec": {"workerGroupSpecs": [group]}})
        for index in (4, 5):
            self.worker(ray, f"w-{index}")

        def grown():
            gang = self.gang("train-fghij")
            if not gang or gang["spec"]["pods"] != 6 or gang["status"].get("summary") != "Running 6/6":
                raise AssertionError(gang.get("status") if gang else "no Gang")
            return gang
        gang = self.heddle.wait_for(grown, "six workers to run", 90)
        self.assertNotEqual(gang["metadata"]["uid"], before["metadata"]["uid"])
        self.assertEqual(gang["spec"]["parallelism"]["dp"], 6)
        self.assertIn("dp is 6 and not 4", " ".join(gang["status"]["explanation"]))
        after = {pod["metadata"]["name"]: bound_to(pod) for pod in self.plane.pods(TEAM)}
        self.assertEqual({name: after[name] for name in where}, where, "nobody that ran was moved")
        self.assertEqual(self.assert_no_gpu_twice(), 48)
        self.plane.rest.delete(f"{self.CLUSTERS}/train-fghij")
        self.wait_empty()

    def test_the_extender_may_write_no_other_config_map(self):
        extender = self.plane.account_rest("heddle-system", "heddle-extender")
        for name, owners in (("anything", []), ("x-heddle-ranks", [])):
            with self.assertRaises(ApiError) as refused:
                extender.create(path("configmaps", TEAM), {"metadata": {"name": name, "ownerReferences": owners}})
            self.assertIn("ConfigMaps of ranks", refused.exception.message)


class LonePodsTest(GroupTestCase):
    # Without its controller nobody takes the finalizer off a PodGroup again.
    arguments = {"apiserver": ["--feature-gates=GenericWorkload=true", "--runtime-config=scheduling.k8s.io/v1alpha2=true"],
                 "controller-manager": ["--feature-gates=GenericWorkload=true"]}

    def lone(self, name, rank=None, size=4, group="lone"):
        labels = {"heddle.dev/gang-name": group, "heddle.dev/gang-size": str(size)}
        return self.make_pod(name, labels=labels | ({"heddle.dev/gang-rank": str(rank)} if rank is not None else {}))

    def remove_all(self):
        for pod in self.plane.pods(TEAM):
            self.plane.rest.delete(path("pods", TEAM, pod["metadata"]["name"]), gracePeriodSeconds=0)
        self.wait_empty()

    def test_pods_with_labels_are_a_gang_that_goes_with_the_last_of_them(self):
        for name, rank in (("d", 0), ("c", 1), ("b", 2)):
            self.lone(name, rank)
        self.heddle.wait_for(lambda: (self.group_gang("Pods/lone") or {}).get("status", {}).get("summary") == "Collecting 3/4",
                             "the gang to wait for its fourth pod", 60)
        self.assertTrue(all(not bound_to(pod) for pod in self.plane.pods(TEAM)))
        self.lone("a", 3)
        self.wait_running("Pods/lone")
        placed = {pod["metadata"]["name"]: pod["metadata"]["annotations"]["heddle.dev/rank"] for pod in self.plane.pods(TEAM)}
        self.assertEqual(placed, {"d": "0", "c": "1", "b": "2", "a": "3"})
        self.remove_all()
        self.plane.wait_for(lambda: not self.group_gang("Pods/lone"), "the Gang to go with its pods", 60)

    def test_doubled_and_missing_ranks_are_given_out_by_name_and_it_says_so(self):
        for name, rank in (("w", 0), ("x", 0), ("y", None), ("z", 17)):
            self.lone(name, rank)
        gang = self.wait_running("Pods/lone")
        placed = {pod["metadata"]["name"]: pod["metadata"]["annotations"]["heddle.dev/rank"] for pod in self.plane.pods(TEAM)}
        self.assertEqual(placed, {"w": "0", "x": "1", "y": "2", "z": "3"})
        said = " ".join(gang["status"]["explanation"])
        self.assertIn("the ranks are not in order", said)
        self.assertIn("lone-heddle-ranks", said)
        self.assertIn("3\tz\t", self.plane.rest.get(path("configmaps", TEAM, "lone-heddle-ranks"))["data"]["ranks.tsv"])
        self.remove_all()
        self.plane.wait_for(lambda: not self.plane.rest.find(path("configmaps", TEAM, "lone-heddle-ranks")),
                            "the ConfigMap to be collected", 60)

    def test_a_native_pod_group_is_a_gang(self):
        groups = f"/apis/scheduling.k8s.io/v1alpha2/namespaces/{TEAM}/podgroups"
        for index in range(4):
            made = self.make_pod(f"n-{index}", spec={"schedulingGroup": {"podGroupName": "native"}})
            self.assertEqual(made["spec"]["schedulingGroup"]["podGroupName"], "native")

        def told():
            gang = self.group_gang("PodGroup/native")
            return gang and "PodGroup native, which does not exist" in gang.get("status", {}).get("message", "")
        self.heddle.wait_for(told, "the missing PodGroup to be named", 60)
        group = self.plane.rest.create(groups, {
            "apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": "native"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 4}}}})
        gang = self.wait_running("PodGroup/native")
        self.assertEqual((gang["spec"]["owner"]["kind"], gang["spec"]["owner"]["uid"]), ("PodGroup", group["metadata"]["uid"]))
        self.assertEqual(self.ranks("n-"), {f"n-{index}": index for index in range(4)})
        self.remove_all()
        self.plane.rest.delete(f"{groups}/native")
        self.plane.wait_for(lambda: not self.group_gang("PodGroup/native"), "the Gang to go with its PodGroup", 60)
