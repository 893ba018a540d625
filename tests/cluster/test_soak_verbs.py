"""Answers over which kube-scheduler would stumble are named by the soak, and sound ones are not. No control plane is needed."""

import http.server
import json
import threading
import types
import unittest

from soak_verbs import Verbs, kept_by, victims_of, wrong_filter, wrong_scores, wrong_victims

NODES = ["n0", "n1"]


def passing(*names, refused=None, error=""):
    return {"Nodes": None, "NodeNames": list(names), "FailedNodes": {}, "FailedAndUnresolvableNodes": refused or {}, "Error": error}


class AnswersTest(unittest.TestCase):
    def test_filter_says_something_of_each_node(self):
        kept = passing("n0", refused={"n1": "others left it for a gang of priority 100"})
        reserved = passing("n0", refused={"n1": "its GPUs are reserved for gang team/train-0a1b2c3d-0"})
        for answer in (passing("n0", "n1"), kept, reserved):
            self.assertEqual(wrong_filter(NODES, answer), "")
        self.assertEqual(kept_by(kept), {"n1": 100})
        self.assertEqual(kept_by(reserved), {})
        for answer in (passing("n0"), passing("n0", "n1", "n2"), passing("n0", "n0", "n1"), passing("n0", refused={"n1": "no"}),
                       passing("n0", "n1", error="?"), passing() | {"NodeNames": None}, []):
            with self.subTest(answer):
                self.assertNotEqual(wrong_filter(NODES, answer), "")

    def test_prioritize_gives_nodes_scores_that_the_scheduler_takes(self):
        def scores(**by_node):
            return [{"Host": node, "Score": score} for node, score in by_node.items()]
        for answer in (scores(n0=0, n1=10), scores(n1=10), []):
            self.assertEqual(wrong_scores(NODES, answer), "")
        for answer in (scores(n0=0, n1=11), scores(n0=-1, n1=0), scores(n0=0, n2=0), scores(n0=0, n1=None),
                       scores(n0=0, n1=1) * 2, {}):
            with self.subTest(answer):
                self.assertNotEqual(wrong_scores(NODES, answer), "")

    def test_preempt_names_the_victims_that_it_was_given_and_no_pod_of_a_gang(self):
        asked = victims_of(NODES, ["a"])

        def of(*nodes, uid="a"):
            return {"NodeNameToMetaVictims": {node: {"Pods": [{"UID": uid}], "NumPDBViolations": 0} for node in nodes}}
        for answer in (of(), of("n1"), of("n0", "n1")):
            self.assertEqual(wrong_victims(asked, answer, ["b"]), "")
        for answer, gangs in ((of("n2"), []), (of("n0", uid="b"), []), (of("n0"), ["a"]), ({"NodeNameToMetaVictims": None}, []), ([], [])):
            with self.subTest(answer):
                self.assertNotEqual(wrong_victims(asked, answer, gangs), "")


class Scripted(http.server.BaseHTTPRequestHandler):
    answers = {}

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = self.answers[self.path]
        body = json.dumps(answer(asked) if callable(answer) else answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class VerbsTest(unittest.TestCase):
    def setUp(self):
        Scripted.answers = {"/filter": passing("n0", refused={"n1": "others left it for a gang of priority 7"}),
                            "/prioritize": [{"Host": node, "Score": 3} for node in NODES], "/preempt": {"NodeNameToMetaVictims": {}}}
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.heddle = types.SimpleNamespace(extender_ports={"host-a": server.server_address[1], "host-b": server.server_address[1]})

    @staticmethod
    def is_there(uid):
        return uid != "gone"

    def test_a_pod_of_a_gang_that_may_be_stopped_alone_is_named_unless_it_has_left(self):
        Scripted.answers["/preempt"] = lambda asked: {"NodeNameToMetaVictims": asked["NodeNameToMetaVictims"]}
        verbs = Verbs(self.heddle, ["host-a"], NODES)
        self.assertEqual(verbs.look("host-a", ["a-0"], self.is_there)[0], [
            "VerbsAnswer: of host-a's extender preempt's answer lets a pod of a gang be stopped alone on n0"])
        self.assertEqual(verbs.look("host-a", ["gone"], self.is_there)[0], [])

    def test_what_the_leader_keeps_is_seen(self):
        verbs = Verbs(self.heddle, ["host-a", "host-b"], NODES)
        broken, look = verbs.look("host-b", ["a-0"], self.is_there)
        self.assertEqual((broken, look.leader, look.kept, verbs.asked), ([], "host-b", {"n1": 7}, 8))
        self.assertIsNone(verbs.look("", [], self.is_there)[1], "nobody leads")

    def test_a_wrong_answer_is_named_with_its_host_and_verb(self):
        Scripted.answers["/prioritize"] = [{"Host": "n2", "Score": 3}]
        broken, _ = Verbs(self.heddle, ["host-a"], NODES).look("host-a", [], self.is_there)
        self.assertEqual(len(broken), 1)
        self.assertIn("VerbsAnswer: of host-a's extender prioritize's answer is of other nodes", broken[0])

    def test_one_that_does_not_answer_is_named(self):
        self.heddle.extender_ports["host-a"] = 1
        broken, look = Verbs(self.heddle, ["host-a"], NODES).look("host-a", [], self.is_there)
        self.assertEqual((len(broken), look), (1, None))
        self.assertIn("did not come", broken[0])
