"""Lets a test program in another language disturb the control plane that it runs against.

One POST each on loopback, answered when it is done: /restart/apiserver, /kill9/etcd, /start/etcd, /forget-history,
/token/NAMESPACE/ACCOUNT[/NODE] (whose answer is the token).
"""

import http.server
import threading


class ControlServer:

    def __init__(self, plane):
        actions = {
            "restart": plane.restart,
            "kill9": plane.kill9,
            "start": plane.start_component,
            "forget-history": plane.forget_history,
            "compact": plane.compact_etcd,
            "token": plane.account_token,
        }

        class Handler(http.server.BaseHTTPRequestHandler):

            def do_POST(self):
                action, *arguments = self.path.strip("/").split("/")
                try:
                    answer, status = actions[action](*arguments), 200
                except Exception as problem:
                    answer, status = f"{self.path}: {type(problem).__name__}: {problem}", 500
                body = ("" if answer is None else str(answer)).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        # Nothing of a control plane is made to be restarted by two at once.
        self._server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, name="control", daemon=True).start()

    def stop(self):
        self._server.shutdown()
        self._server.server_close()
