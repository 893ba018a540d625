#!/usr/bin/python3
"""What the chart's apiPriority is worth: bench/agent_storm.py [--connections N] [--seconds S].

So many connections under the agents' account list 1,500 NodeTopologies as fast as they are answered, and one under the
extender's asks for something small. Once without the chart's FlowSchemas and once with them, on API servers of their own:
etcd and kube-apiserver alone."""

import argparse
import http.client
import multiprocessing
import ssl
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "cluster"), str(ROOT / "tests" / "support")]

from bed import ApiError, ControlPlane, Heddle, path  # noqa: E402: the path above comes first
from bed.heddle import NAMESPACE  # noqa: E402

TOPOLOGIES = 1500
PROCESSES = 2
WARM_UP = 4  # seconds until all connections are there


def storm(server, authority, token, connections, seconds, answers):
    """A process of agents; puts how often each status was answered."""
    address, counted, lock = urlsplit(server), Counter(), threading.Lock()
    end = time.monotonic() + seconds

    def agent():
        trusted = ssl.create_default_context(cafile=authority)
        connection = http.client.HTTPSConnection(address.hostname, address.port, context=trusted, timeout=60)
        while time.monotonic() < end:
            try:
                connection.request("GET", path("nodetopologies"), headers={"Authorization": f"Bearer {token}"})
                answer = connection.getresponse()
                answer.read()
                status = str(answer.status)
            except (OSError, http.client.HTTPException) as problem:
                connection.close()
                status = type(problem).__name__
            with lock:
                counted[status] += 1
    threads = [threading.Thread(target=agent) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answers.put(counted)


def ask(rest, seconds):
    """Milliseconds of each of the extender's requests, sorted, and how they were answered."""
    took, statuses, end = [], Counter(), time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.monotonic()
        try:
            rest.get(path("gangs"), limit=1)
            statuses["200"] += 1
        except ApiError as refused:
            statuses[str(refused.status)] += 1
        took.append((time.monotonic() - begin) * 1e3)
        time.sleep(0.02)
    return sorted(took), statuses


def measure(enabled, arguments):
    with ControlPlane("storm", components=("etcd", "apiserver")) as plane:
        heddle = Heddle(plane, ROOT / "build")  # no daemon of Heddle runs here
        # Made here: install() would wait for the default account, which no controller-manager makes.
        plane.rest.create(path("namespaces"), {"metadata": {"name": heddle.namespace}})
        heddle.install(wait=False, apiPriority={"enabled": enabled})
        plane.create_all(path("nodetopologies"), [
            {"apiVersion": "heddle.dev/v1alpha1", "kind": "NodeTopology", "metadata": {"name": f"node-{index:05}"}}
            for index in range(TOPOLOGIES)])
        extender = plane.account_rest(NAMESPACE, "heddle-extender")
        extender.get(path("gangs"))
        time.sleep(WARM_UP)  # until the API server has taken the schemas up
        answers = multiprocessing.Queue()
        clients = [multiprocessing.Process(target=storm, args=(
            plane.server, str(plane.certificate_authority), plane.account_token(NAMESPACE, "heddle-nodeagent"),
            arguments.connections // PROCESSES, arguments.seconds + WARM_UP, answers)) for _ in range(PROCESSES)]
        for client in clients:
            client.start()
        time.sleep(WARM_UP)
        took, statuses = ask(extender, arguments.seconds)
        agents = sum((answers.get() for _ in clients), Counter())
        for client in clients:
            client.join()
    print(f"apiPriority.enabled={str(enabled).lower()}: the extender's {len(took)} requests {dict(statuses)}: "
          f"p50 {took[len(took) // 2]:.0f} ms, p90 {took[len(took) * 9 // 10]:.0f}, last {took[-1]:.0f}; "
          f"the agents' {dict(agents)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=600)
    parser.add_argument("--seconds", type=int, default=16)
    arguments = parser.parse_args()
    for enabled in (False, True):
        measure(enabled, arguments)


if __name__ == "__main__":
    main()
