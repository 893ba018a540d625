"""VerbsAnswer: both extenders are asked as kube-scheduler asks, and an answer that it would stumble over is a broken promise.
What filter says of a pod that is worth less than all others is what is kept for gangs of higher priority."""

import http.client
import json
import re
import time

from soak_promises import GPU
from soak_queue import Look

TIMEOUT = 30.0  # seconds; the scheduler waits less, but this machine may be busy
LEAST, MOST = -(1 << 31), (1 << 31) - 1
KEPT = re.compile(r"others left it for a gang of priority (-?\d+)$")
RESERVED = re.compile(r"its GPUs are reserved for (gang|pod|the successor of pod) \S+$")  # kept from everybody
TOP_SCORE = 10  # kube-scheduler's MaxExtenderPriority


def probe(priority):
    """A pod of no gang with one GPU, which nobody has made."""
    return {"metadata": {"name": "soak-probe", "namespace": "others", "uid": "soak-probe"}, "spec": {
        "priority": priority, "containers": [{"name": "main", "resources": {"limits": {GPU: "1"}}}]}}


def question(priority, nodes):
    return {"Pod": probe(priority), "Nodes": None, "NodeNames": nodes}


def victims_of(nodes, uids):
    """The question of preempt: on each of `nodes` these would have to go."""
    return {"Pod": probe(MOST), "NodeNameToVictims": None, "NodeNameToMetaVictims": {
        node: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 0} for node in nodes}}


def is_whole(answer, kind):
    """A sentence where it is no JSON of that kind."""
    return "" if isinstance(answer, kind) else f"is no {'object' if kind is dict else 'list'}: {json.dumps(answer)[:200]}"


def wrong_filter(nodes, answer):
    """What kube-scheduler would make of it: each node passes or is told why not."""
    if wrong := is_whole(answer, dict):
        return wrong
    passed, refused = answer.get("NodeNames"), answer.get("FailedAndUnresolvableNodes")
    if answer.get("Error") or not isinstance(passed, list) or not isinstance(refused, dict):
        return f"has an error, no NodeNames or no FailedAndUnresolvableNodes: {json.dumps(answer)[:200]}"
    if sorted([*passed, *refused]) != sorted(nodes):
        return f"is of other nodes than it was asked about: {sorted({*passed, *refused} ^ set(nodes))[:5]}, or names one twice"
    silent = [node for node, why in refused.items() if not KEPT.search(why) and not RESERVED.search(why)]
    return f"refuses {silent[0]} for {refused[silent[0]]!r}" if silent else ""


def kept_by(answer):
    """node: the priority of the gang for which it is kept."""
    return {node: int(kept[1]) for node, why in answer["FailedAndUnresolvableNodes"].items() if (kept := KEPT.search(why))}


def wrong_scores(nodes, answer):
    if wrong := is_whole(answer, list):
        return wrong
    scores = {one.get("Host"): one.get("Score") for one in answer}  # a node that is not told has 0
    if len(answer) != len(scores) or scores.keys() - set(nodes):
        return f"is of other nodes than it was asked about: {sorted(map(str, scores.keys() - set(nodes)))[:5]}, or names one twice"
    bad = [node for node, score in scores.items() if not isinstance(score, int) or not 0 <= score <= TOP_SCORE]
    return f"gives {bad[0]} the score {scores[bad[0]]!r}" if bad else ""


def wrong_victims(asked, answer, of_gangs=()):
    """`of_gangs`: UIDs of pods none of which may be stopped alone."""
    if wrong := is_whole(answer, dict) or is_whole(answer.get("NodeNameToMetaVictims"), dict):
        return wrong
    for node, victims in answer["NodeNameToMetaVictims"].items():
        if victims != asked["NodeNameToMetaVictims"].get(node):
            return f"names other victims on {node} than it was given: {json.dumps(victims)[:200]}"
        if any(pod["UID"] in of_gangs for pod in victims["Pods"]):
            return f"lets a pod of a gang be stopped alone on {node}"
    return ""


class Verbs:
    """Asks the extender of each of `hosts`; both have to run."""

    def __init__(self, heddle, hosts, nodes):
        self._heddle, self._hosts, self._nodes = heddle, hosts, nodes
        self.asked = 0

    def _ask(self, host, verb, body):
        connection = http.client.HTTPConnection("127.0.0.1", self._heddle.extender_ports[host], timeout=TIMEOUT)
        try:
            connection.request("POST", verb, json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            self.asked += 1
            if answer.status != 200:
                raise ValueError(f"{answer.status} {text[:200]!r}")
            return json.loads(text)
        finally:
            connection.close()

    def look(self, leader, of_gangs, is_there):
        """What breaks a promise, and a Look of `leader`'s where it answered. `of_gangs`: UIDs of pods that were let go long
        enough ago for both to have heard of it; `is_there` says whether one still is, since nobody vouches for one that left."""
        broken, seen, nodes = [], None, self._nodes
        for host in self._hosts:
            try:
                asked = time.time()
                answer = self._ask(host, "/filter", question(LEAST, nodes))
                wrong = wrong_filter(nodes, answer)
                if host == leader and not wrong:
                    seen = Look(asked, time.time(), leader, kept_by(answer))
                said = [("filter", wrong), ("prioritize", wrong_scores(nodes, self._ask(host, "/prioritize", question(0, nodes))))]
                for uids in (["soak-nobody"], *([uid] for uid in of_gangs)):
                    victims = victims_of(nodes, uids)
                    wrong = wrong_victims(victims, self._ask(host, "/preempt", victims), of_gangs)
                    if uids[0] not in of_gangs or (wrong and is_there(uids[0])):
                        said.append(("preempt", wrong))
            except (OSError, http.client.HTTPException, ValueError) as problem:
                said = [("any", f"did not come: {problem!r}")]
            broken += [f"VerbsAnswer: of {host}'s extender {verb}'s answer {wrong}" for verb, wrong in said if wrong]
        return broken, seen
