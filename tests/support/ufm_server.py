"""A UFM for tests to ask: the two answers that Heddle reads of one, over HTTPS with a login, in the shapes of the NVIDIA
UFM Enterprise REST API Guide (Ports, Monitoring). The product cannot run here: it wants a subnet to manage.

    with Ufm(certificate, key, "heddle", "loom") as ufm:
        ufm.cable("1c34da0300728606", 40, "su1-r3", "1c34da03000000ff", 3, "spine-0")
        ufm.count("1c34da03000000ff", 3, LinkDowned=41)
        ufm.fault = "garbage"        # of counters; or "hang", "half", "down"; None mends it
"""

import base64
import http.server
import json
import ssl
import threading
import time
import urllib.parse


class Ufm:

    def __init__(self, certificate, key, username, password):
        self._login = "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()
        self._lock = threading.Lock()
        self._ports, self._counters = {}, {}
        self.fault, self.asked, self.methods = None, [], set()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]

    def port_of(self, guid, number, system, peer="N/A", peer_system="", description=""):
        with self._lock:
            self._ports[f"{guid}_{number}"] = {
                "name": f"{guid}_{number}", "guid": guid, "number": number, "dname": str(number), "system_name": system,
                "systemID": guid, "description": "Switch IB Port", "peer": peer, "peer_node_name": peer_system,
                "peer_node_description": description, "logical_state": "Active", "physical_state": "Link Up",
                "severity": "Info", "capabilities": ["reset", "disable"]}
            self._counters.setdefault(f"{guid}_{number}", {
                "Infiniband_LinkDowned": 0, "Infiniband_SymbolErrors": 0, "Infiniband_RcvErrors": 0, "Infiniband_MBOut": 1})

    def cable(self, guid, number, system, other, other_number, other_system):
        """Between two switches."""
        self.port_of(guid, number, system, f"{other}_{other_number}", other_system, f"{other_system}:{other_number}")
        self.port_of(other, other_number, other_system, f"{guid}_{number}", system, f"{system}:{number}")

    def count(self, guid, number, **counters):
        with self._lock:
            for name, value in counters.items():
                self._counters[f"{guid}_{number}"]["Infiniband_" + name] = value

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, path, query):
        with self._lock:
            if path.endswith("/resources/ports"):
                page, size = int(query.get("page_number", ["1"])[0]), int(query.get("rpp", ["1000"])[0])
                ports = list(self._ports.values())
                return {"total_resources": len(ports), "filtered_resources": len(ports),
                        "data": ports[(page - 1) * size:page * size]}
            if path.endswith("/monitoring/session/0/data"):
                # It takes them each time that it is asked, where a real one does every 30 s.
                taken = time.strftime("%Y-%m-%d %H:%M:%S") + f".{time.monotonic_ns()}"
                return {taken: {"Port": {name: {"last_updated": taken, "statistics": dict(counters), "dname": "1"}
                                         for name, counters in self._counters.items()}}}
        return None

    def _handler(ufm):  # pylint: disable=no-self-argument
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):  # pylint: disable=invalid-name
                ufm.methods.add(self.command)
                ufm.asked.append(self.path)
                path, _, query = self.path.partition("?")
                if ufm.fault == "hang":
                    time.sleep(60)
                if self.headers.get("Authorization") != ufm._login:
                    return self.say(401, b"{}")
                answer = ufm._answer(path, urllib.parse.parse_qs(query))
                if ufm.fault == "down":
                    return self.say(503, b"")
                body = b"<html>busy" if ufm.fault == "garbage" and "monitoring" in path else json.dumps(answer).encode()
                if ufm.fault == "half":
                    body = body[:len(body) // 2]
                return self.say(404 if answer is None else 200, body)

            def do_other(self):
                ufm.methods.add(self.command)
                self.say(405, b"")
            do_POST = do_PUT = do_DELETE = do_PATCH = do_other

            def say(self, status, body):
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass
        return Handler
