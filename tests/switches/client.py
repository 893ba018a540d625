"""gnmi_cli of openconfig/gnmi, which nobody here wrote: what it says of a switch."""

import json
import os
import queue
import re
import subprocess
import threading

from switches import binaries


class Refused(Exception):
    """What it printed instead of an answer."""


def path_text(path):
    """PORT/Ethernet0 or interfaces/interface[name=Ethernet0]/state as protobuf's text."""
    text = ""
    for element in re.findall(r"(?:[^/\[]|\[[^\]]*\])+", path):
        name, keyed, rest = element.partition("[")
        text += f' elem: {{ name: "{name}"'
        if keyed:
            key, _, value = rest.rstrip("]").partition("=")
            text += f' key: {{ key: "{key}" value: "{value}" }}'
        text += " }"
    return text


def unquote(text):
    """A string as protobuf's text form writes it."""
    raw = re.sub(rb"\\(?:([0-7]{1,3})|x([0-9a-f]{1,2})|(.))",
                 lambda m: bytes([int(m[1], 8)]) if m[1] else bytes([int(m[2], 16)]) if m[2] else
                 {b"n": b"\n", b"t": b"\t", b"r": b"\r"}.get(m[3], m[3]), text.encode())
    return raw


def values(text):
    """The values in a printed answer, in their order: objects of JSON, strings, numbers, or bytes that are no JSON."""
    found = []
    for kind, quoted, number in re.findall(r'\b(json_ietf_val|string_val|uint_val):\s*(?:"((?:[^"\\]|\\.)*)"|(\d+))', text):
        if kind == "uint_val":
            found.append(int(number))
            continue
        raw = unquote(quoted)
        if kind == "string_val":
            found.append(raw.decode())
            continue
        try:
            found.append(json.loads(raw))
        except ValueError:
            found.append(raw)
    return found


class Client:
    def __init__(self, switch, authority, *, user="", password="", identity=None, server_name=None):
        self._environment = {**os.environ, "GNMI_USER": user or "-", "GNMI_PASS": password or "-"}
        self._command = [str(binaries() / "gnmi_cli"), "-address", switch.address, "-ca_crt", str(authority.certificate),
                         "-server_name", server_name or switch.server_name, "-timeout", "3s"]
        if user:
            self._command += ["-with_user_pass"]
        if identity:
            self._command += ["-client_crt", identity["certificate"], "-client_key", identity["key"]]

    def _run(self, *arguments, timeout=15):
        try:
            done = subprocess.run([*self._command, *arguments], capture_output=True, text=True, timeout=timeout,
                                  env=self._environment)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"no answer in {timeout} s") from None
        if done.returncode != 0:
            raise Refused(done.stdout + done.stderr)
        return done.stdout

    def capabilities(self):
        return self._run("-capabilities")

    def get_text(self, target, *paths, **how):
        asked = "".join(f" path: {{{path_text(path)} }}" for path in paths)
        return self._run("-get", "-proto", f'prefix: {{ target: "{target}" }}{asked} encoding: JSON_IETF', **how)

    def get(self, target, path, **how):
        found = values(self.get_text(target, path, **how))
        return found[0] if len(found) == 1 else found

    def once(self, target, path, patience=1.0):
        """What comes until the sync, and whether the switch then ends the stream itself, within `patience` seconds."""
        request = f'subscribe: {{ prefix: {{ target: "{target}" }} mode: ONCE subscription: {{ path: {{{path_text(path)} }} }} }}'
        found = []
        with Stream([*self._command, "-proto", request, "-dt", "shortproto"], self._environment) as stream:
            while (value := stream.next()) not in ("sync", None):
                found.append(value)
            try:
                ended = stream.next(timeout=patience) is None
            except TimeoutError:
                ended = False
        return found, ended

    def stream(self, target, *paths, mode="ON_CHANGE", interval_ms=1000, more=""):
        asked = "".join(f" subscription: {{ path: {{{path_text(path)} }} mode: {mode} sample_interval: {interval_ms * 1_000_000} }}"
                        for path in paths)
        request = f'subscribe: {{ prefix: {{ target: "{target}" }} mode: STREAM {more}{asked} }}'
        return Stream([*self._command, "-proto", request, "-dt", "shortproto"], self._environment)


def verified(switch, authority):
    """What OpenSSL finds wrong with the certificate that a switch shows: "ok", or its words for it. gnmi_cli tries again
    until its time is over, and does not say why."""
    done = subprocess.run(["openssl", "s_client", "-connect", switch.address, "-CAfile", authority.certificate, "-alpn", "h2",
                           "-verify_hostname", switch.server_name, "-servername", switch.server_name],
                          input="", capture_output=True, text=True, timeout=15)
    found = re.findall(r"Verify return code: \d+ \((.*)\)", done.stdout)
    return found[0] if found else done.stderr


class Stream:
    """A subscription under way, line by line."""

    def __init__(self, command, environment):
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
        self._lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self._process.stdout:
            if line.strip():
                self._lines.put(line)
        self._lines.put(None)

    def next(self, timeout=5.0):
        """The next value, "sync", or at the end what the client says of it, then None."""
        try:
            line = self._lines.get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError(f"the switch has said nothing for {timeout} s") from None
        if line is None:
            return None
        if "sync_response" in line:
            return "sync"
        if line.startswith("update:"):
            return values(line)[0]
        said = [line]
        while (line := self._lines.get(timeout=timeout)) is not None:
            said.append(line)
        self._lines.put(None)
        return "".join(said)

    def close(self):
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
