"""A made-up fabric of any size in the form that the operator serves (docs/page.md), and a server that has it.

  /usr/bin/python3 tests/page/made_up.py --nodes 10000 --port 8090     to look at the page without a cluster
"""

import argparse
import itertools
import json
import random
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

STATIC = Path(__file__).resolve().parents[2] / "operator" / "page" / "static"
TYPES = {".html": "text/html; charset=utf-8", ".mjs": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
# As operator/page/page.cc: what the page may not do there it may not do here.
GUARDS = {"Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'",
          "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
OK, DEGRADED, DOWN, STALE, UNKNOWN = range(5)
RAILS = 8


class Fabric:
    """Units of `per_unit` nodes with a leaf for each rail, two thirds of them taken by gangs."""

    def __init__(self, nodes, per_unit=32, seed=1):
        chance = random.Random(seed)
        units = -(-nodes // per_unit)
        digits = len(str(nodes - 1))
        self.lock = threading.Condition()
        self.revision = 1
        self.left_out = 0  # gangs
        self.oldest = 1    # who knows less is told everything
        self.changed = {}  # (part, key): revision
        self.gone = {}
        self.fabric = {
            "name": "infiniband", "transport": "InfiniBand", "site": "", "shape": "RailOptimised", "rails": RAILS,
            "leaves": [[f"su{unit}-r{rail}", rail, 0, unit, list(range(8)), 400 * per_unit, 400 * per_unit]
                       for unit in range(units) for rail in range(RAILS)],
            "spines": [[f"spine-{i}", 2, []] for i in range(8)],
            "units": [f"su-{unit}" for unit in range(units)], "domains": [], "faults": [],
            "suspects": [[f"node-{1:0{digits}}", f"leaf su0-r1 port 2 <-> node-{1:0{digits}} mlx5_1:1: 41 flaps in 10 min, 3 gangs cross it; drain or reseat it"],
                         ["", "leaf su0-r5: 17 of its 32 links flap; move its gangs, and look at what its ports share: power, line card, firmware"]],
            "assumptions": ["leaves count as 1:1, since no uplink's bandwidth is declared"]}
        self.nodes = {}
        for i in range(nodes):
            unit = i // per_unit
            links = list(itertools.chain(*([rail, unit * RAILS + rail, 400, 400] for rail in range(RAILS))))
            self.nodes[f"node-{i:0{digits}}"] = [f"node-{i:0{digits}}", 0, OK, unit, -1, 8, 0, links, []]
        names = list(self.nodes)
        for name in chance.sample(names, max(1, nodes // 120)):
            self._fail(name, chance.randrange(RAILS))
        for name in chance.sample(names, max(1, nodes // 400)):
            self.nodes[name][2], self.nodes[name][8] = STALE, ["its agent does not renew its Lease; what is shown may be old"]
        down = self.nodes[names[-2]]
        down[2], down[8] = DOWN, ["no rail can be used", "rail 0: mlx5_0: is down since 03:12"]
        down[7] = [0 if i % 4 == 3 else value for i, value in enumerate(down[7])]
        self.nodes[names[-1]] = [names[-1], -1, UNKNOWN, -1, -1, 0, 0, [], ["no agent has reported yet: look at its heddle-nodeagent pod"]]
        self.gangs = {}
        at, number = 0, 0
        while at < nodes * 2 // 3:
            size = min(chance.choice([2, 4, 8, 16, 32, 64, 128]), max(2, nodes // 4))
            self._gang(number, list(range(at, min(at + size, nodes - 2))))
            at, number = at + size + chance.choice([0, 0, 0, 1, 3]), number + 1
        self._gang(number, [], state="waiting", message="64 hosts needed in one scalable unit, best has 12 (su-3); 3 gangs hold the rest")
        if nodes > 20:
            self.gangs["lab/tune-5-0"] = {**self.gangs["team-0/train-0-0"], "key": "lab/tune-5-0", "title": "tune-5", "ns": "lab",
                                          "owner": "Job/tune-5", "pods": 1, "gpus": 4, "places": [nodes - 4, 0x0F]}

    def _gang(self, number, places, state="running", message=""):
        pods = len(places) or 64
        gang = {"key": f"team-{number % 5}/train-{number}-0", "title": f"train-{number}", "ns": f"team-{number % 5}", "owner": f"Job/train-{number}",
                "state": state, "summary": f"Running {pods}/{pods}" if places else "Waiting: NotEnoughFree", "pods": pods, "gpus": pods * 8,
                "parallelism": f"tp=8,dp={pods}"}
        if places:
            gang |= {"places": list(itertools.chain(*([node, 0] for node in places))), "planned": "2026-11-23T10:00:00Z", "step": 1302000, "misaligned": 0,
                     "tp": [pods, pods], "axes": [["tp", 8, 0, 0, 812000], ["dp", pods, 0 if pods < 32 else pods // 4, pods * 8, 490000]]}
        if message:
            gang |= {"message": message, "reason": "NotEnoughFree"}
        self.gangs[gang["key"]] = gang

    def _fail(self, name, rail):
        node = self.nodes[name]
        # As a port that is down: it says neither its rate nor where it ends.
        node[2], node[7][4 * rail + 1:4 * rail + 4] = DEGRADED, [-1, 0, 0]
        node[8] = [f"rail {rail}: mlx5_{rail}: is down, on su{node[3]}-r{rail} port {int(name[5:]) % 32}, since 12:01:07"]

    def fail_link(self, name, rail):
        with self.lock:
            self.nodes[name] = json.loads(json.dumps(self.nodes[name]))
            self._fail(name, rail)
            self._changed("nodes", name)

    def remove_node(self, name):
        """The last by name only: others' places are numbers."""
        with self.lock:
            del self.nodes[name]
            self._changed("nodes", name)

    def add_leaf(self, name, at):
        """Those behind it move on by one, and with them the numbers by which nodes refer to them."""
        with self.lock:
            self.fabric = json.loads(json.dumps(self.fabric))
            self.fabric["leaves"].insert(at, [name, -1, 0, -1, [], 0, 0])
            self.nodes = json.loads(json.dumps(self.nodes))
            for node in self.nodes.values():
                node[7] = [leaf + 1 if i % 4 == 1 and leaf >= at else leaf for i, leaf in enumerate(node[7])]
            self.revision += 1
            self.oldest = self.revision
            self.lock.notify_all()

    def add_gang(self, gang):
        with self.lock:
            self.gangs[gang["key"]] = gang
            self._changed("gangs", gang["key"])

    def _changed(self, part, key):
        self.revision += 1
        self.changed[part, key] = self.revision
        self.lock.notify_all()

    def document(self, since=0):
        if since < self.oldest:
            return {"revision": f"made-{self.revision}", "full": True, "sources": [{"kind": kind} for kind in ("NodeTopology", "Fabric", "Gang")],
                    "fabrics": [self.fabric], "nodes": [self.nodes[name] for name in sorted(self.nodes)], "gangs": [self.gangs[key] for key in sorted(self.gangs)], "gangsLeftOut": self.left_out}
        fresh = [key for key, revision in self.changed.items() if revision > since]
        of = {"nodes": self.nodes, "gangs": self.gangs}
        document = {"revision": f"made-{self.revision}", "full": False}
        for part, gone in (("nodes", "goneNodes"), ("gangs", "goneGangs")):
            document[part] = [of[part][key] for which, key in fresh if which == part and key in of[part]]
            document[gone] = [key for which, key in fresh if which == part and key not in of[part]]
        return document

    def about_node(self, name):
        node = self.nodes[name]
        leaves = self.fabric["leaves"]
        links = [node[7][i:i + 4] for i in range(0, len(node[7]), 4)]
        return {"name": name, "machine": "DGX H100", "domain": "node", "rails": "8/8", "transport": "InfiniBand", "site": "", "agent": "0.1.0", "observed": "2026-11-23T12:00:00Z",
                "gpus": [{"index": i, "model": "NVIDIA H100 80GB HBM3", "healthy": True, "nics": [[i, "PIX"]]} for i in range(node[5])],
                "nics": [{"name": f"mlx5_{rail}", "netdev": "", "role": "compute", "transport": "InfiniBand", "rail": rail,
                          "ports": [{"port": 1, "plane": 0, "state": "Active" if usable else "Down", "rate": rate, "usable": usable, **({"leaf": leaves[leaf][0], "leafPort": str(leaf % 32)} if leaf >= 0 else {"leafMissing": "Unknown"})}]}
                         for rail, leaf, rate, usable in links],
                "conditions": [{"type": "LinksUp", "status": "False" if node[2] else "True", "reason": "LinkDown" if node[2] else "AllUp", "message": (node[8] or [""])[0], "since": "2026-11-23T12:00:00Z"}],
                "grants": []}


class Server:
    """Serves the page of this tree and one fabric. `away` answers as kubectl port-forward does without its pod: not."""

    def __init__(self, fabric, port=0):
        self.fabric = fabric
        self.away = False
        self.version = "0.1.0"
        self.unread = False      # as an operator that has not read the cluster yet
        self.unreadable = set()  # nodes whose NodeTopologies are no such thing
        self.asked = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer.answer(self)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # a browser that left in the middle
        self.address = f"http://localhost:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, handler):
        url = urlsplit(handler.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        self.asked.append(url.path)
        if self.away:
            handler.close_connection = True
            return
        if url.path == "/fabric/view.json" and self.unread:
            return self.send(handler, 503, "text/plain", b"the operator has not read the cluster yet\n")
        if query.get("node") in self.unreadable:
            return self.send(handler, 422, "text/plain", b"NodeTopology cannot be read: status.gpus: must be an array\n")
        if url.path == "/fabric/view.json":
            return self.send(handler, 200, "application/json", self.view(query))
        if url.path == "/fabric/about.json":
            return self.send(handler, 200, "application/json", self.about(query))
        file = STATIC / (url.path[1:] or "index.html")
        if file.parent == STATIC and file.is_file():
            return self.send(handler, 200, TYPES[file.suffix], file.read_bytes())
        self.send(handler, 404, "text/plain", b"not here\n")

    def view(self, query):
        fabric = self.fabric
        since = int(query.get("since", "made-0").split("-")[1])
        with fabric.lock:
            if since and fabric.revision <= since:
                fabric.lock.wait_for(lambda: fabric.revision > since or self.away, timeout=min(20, int(query.get("wait", 0))))
            return json.dumps(fabric.document(since), separators=(",", ":")).encode()

    def about(self, query):
        if "gang" in query:
            return json.dumps({"key": query["gang"], "why": ["su-0 has room for all of it"], "conditions": []}).encode()
        return json.dumps(self.fabric.about_node(query["node"])).encode()

    def send(self, handler, status, kind, body):
        try:
            self.write(handler, status, kind, body)
        except OSError:
            handler.close_connection = True  # a browser that left in the middle

    def write(self, handler, status, kind, body):
        handler.send_response(status)
        for name, value in {**GUARDS, "Heddle-Version": self.version, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    def close(self):
        self.away = True
        with self.fabric.lock:
            self.fabric.lock.notify_all()
        self.server.shutdown()
        self.server.server_close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--port", type=int, default=8090)
    arguments = parser.parse_args()
    server = Server(Fabric(arguments.nodes), arguments.port)
    print(f"open {server.address}; Ctrl-C ends it", flush=True)
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        server.close()


if __name__ == "__main__":
    main()
