"""A proxy before the apiserver that holds one chosen request, so that a write lands late and all else goes on."""

import re
import select
import socket
import ssl
import threading
from urllib.parse import urlsplit

from .process import free_port

LONGEST = 1 << 16


class Held:
    """One request that waits in the proxy. It lands by release(), whether its sender still waits for the answer or not."""

    def __init__(self, method, pattern, word):
        self.method, self.pattern, self.word = method, re.compile(pattern), word
        self.arrived, self.released, self.landed = threading.Event(), threading.Event(), threading.Event()
        self.target = self.body = self.status = None

    def release(self):
        self.released.set()


class HoldingProxy:
    """Speaks TLS with the apiserver's own certificate, so that a kubeconfig needs only another port.

        held = proxy.hold("PUT", r"/gangs/.*/status$", b"placement")   # the next such request with that in its body
        ... held.arrived ... held.release() ... held.landed, held.status
    """

    def __init__(self, plane):
        self._upstream = urlsplit(plane.server)
        authority = plane.certificate_authority
        self._serve = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._serve.load_cert_chain(authority, authority.with_suffix(".key"))
        self._trust = ssl.create_default_context(cafile=str(authority))
        self._lock = threading.Lock()
        self._wanted = []
        port = free_port()
        self.server = f"https://127.0.0.1:{port}"
        self._listener = socket.create_server(("127.0.0.1", port), backlog=64)
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()
        plane.before_stop(self.stop)

    def stop(self):
        with self._lock:
            for held in self._wanted:
                held.release()
            self._wanted.clear()
        # close() alone leaves accept() waiting in the other thread.
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listener.close()

    def hold(self, method, pattern, word=b""):
        held = Held(method, pattern, word)
        with self._lock:
            self._wanted.append(held)
        return held

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connection, args=(client,), daemon=True).start()

    def _connection(self, raw):
        try:
            with self._serve.wrap_socket(raw, server_side=True) as client, \
                    socket.create_connection((self._upstream.hostname, self._upstream.port)) as plain, \
                    self._trust.wrap_socket(plain, server_hostname=self._upstream.hostname) as server:
                self._pump(client, server)
        except OSError:
            pass  # either end has gone, which the other is shown by closing

    def _pump(self, client, server):
        asked, held, ends = b"", None, [client, server]
        while True:
            ready = [one for one in ends if one.pending()] or select.select(ends, [], [])[0]
            data = self._receive(server) if server in ready else None
            if data is not None:
                if held and not held.landed.is_set():
                    held.status = int(data.split(b" ", 2)[1]) if data else None
                    held.landed.set()
                if not data or client not in ends:
                    return
                client.sendall(data)
            data = self._receive(client) if client in ready else None
            if data is not None:
                if not data and (held is None or held.landed.is_set()):
                    return
                if not data:
                    ends.remove(client)  # it waits no more for the answer to what was held; we do
                asked += data
                while True:
                    request, asked = self._cut(asked)
                    if request is None:
                        break
                    held = self._wait(request) or held
                    server.sendall(request)

    @staticmethod
    def _receive(end):
        """What is there; None where only TLS itself had something to say."""
        end.setblocking(False)
        try:
            return end.recv(LONGEST)
        except ssl.SSLWantReadError:
            return None
        finally:
            end.setblocking(True)

    @staticmethod
    def _cut(asked):
        """The first whole request and what follows it; (None, asked) while it is not whole."""
        head, end, _ = asked.partition(b"\r\n\r\n")
        if not end:
            return None, asked
        length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
        whole = len(head) + 4 + (int(length[1]) if length else 0)
        return (asked[:whole], asked[whole:]) if len(asked) >= whole else (None, asked)

    def _wait(self, request):
        head, _, body = request.partition(b"\r\n\r\n")
        method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ", 2)
        with self._lock:
            held = next((one for one in self._wanted
                         if one.method == method and one.pattern.search(target.split("?")[0]) and one.word in body), None)
            if held is None:
                return None
            self._wanted.remove(held)
        held.target, held.body = target, body
        held.arrived.set()
        held.released.wait()
        return held
