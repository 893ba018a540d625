"""A small JSON client of the Kubernetes API over one kept-alive TLS connection per thread."""

import http.client
import json
import select
import ssl
import threading
from urllib.parse import urlencode, urlsplit

# resource: the prefix of its API and whether it lives in a namespace
RESOURCES = {
    "namespaces": ("/api/v1", False),
    "nodes": ("/api/v1", False),
    "pods": ("/api/v1", True),
    "events": ("/api/v1", True),
    "configmaps": ("/api/v1", True),
    "secrets": ("/api/v1", True),
    "serviceaccounts": ("/api/v1", True),
    "daemonsets": ("/apis/apps/v1", True),
    "deployments": ("/apis/apps/v1", True),
    "jobs": ("/apis/batch/v1", True),
    "jobsets": ("/apis/jobset.x-k8s.io/v1alpha2", True),
    "leases": ("/apis/coordination.k8s.io/v1", True),
    "customresourcedefinitions": ("/apis/apiextensions.k8s.io/v1", False),
    "mutatingadmissionpolicies": ("/apis/admissionregistration.k8s.io/v1", False),
    "validatingadmissionpolicies": ("/apis/admissionregistration.k8s.io/v1", False),
    "nodetopologies": ("/apis/heddle.dev/v1alpha1", False),
    "fabrics": ("/apis/heddle.dev/v1alpha1", False),
    "gangs": ("/apis/heddle.dev/v1alpha1", True),
    "losslesspolicies": ("/apis/heddle.dev/v1alpha1", False),
    "rdmadevicepolicies": ("/apis/heddle.dev/v1alpha1", False),
    "fabricswitches": ("/apis/heddle.dev/v1alpha1", False),
}

PATCH_TYPES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


def path(resource, namespace=None, name=None, sub=None):
    """path("pods", "default", "p0", "status"); of a namespaced resource without namespace: all of them."""
    prefix, namespaced = RESOURCES[resource]
    parts = [prefix]
    if namespaced and namespace:
        parts += ["namespaces", namespace]
    parts.append(resource)
    parts += [part for part in (name, sub) if part]
    return "/".join(parts)


class ApiError(Exception):
    """What the apiserver refused, with its Status."""

    def __init__(self, verb, where, status, body):
        self.status = status
        self.body = body
        self.reason = body.get("reason", "") if isinstance(body, dict) else ""
        self.message = body.get("message", "") if isinstance(body, dict) else str(body)
        super().__init__(f"{verb} {where}: {status} {self.reason}: {self.message}")


class Rest:
    """As one user (a bearer token; with `impersonate`, headers on top) of one apiserver."""

    def __init__(self, server, certificate_authority, token, headers=None, timeout=30.0):
        self._address = urlsplit(server)
        self._token = token
        self._headers = dict(headers or {})
        self._timeout = timeout
        self._authority = str(certificate_authority)
        self._local = threading.local()

    def as_user(self, username, groups=(), extra=None):
        """The same connection details, impersonating: only for what an administrator may do (tests of policies)."""
        headers = {"Impersonate-User": username}
        if groups:
            headers["Impersonate-Group"] = list(groups)
        for key, value in (extra or {}).items():
            # Header names cannot hold a slash; the apiserver decodes percent signs in them.
            headers["Impersonate-Extra-" + key.replace("/", "%2F")] = value
        return Rest(self._address.geturl(), self._authority, self._token, headers, self._timeout)

    def _connection(self):
        connection = getattr(self._local, "connection", None)
        if connection is not None and connection.sock is not None:
            # A server that restarted has closed its end: noticed here, no request needs to be sent twice.
            readable, _, _ = select.select([connection.sock], [], [], 0)
            if not readable:
                return connection
            connection.close()
        context = ssl.create_default_context(cafile=self._authority)
        connection = http.client.HTTPSConnection(self._address.hostname, self._address.port, timeout=self._timeout,
                                                 context=context)
        self._local.connection = connection
        return connection

    def request(self, verb, where, body=None, content_type="application/json"):
        """The decoded answer. Raises ApiError for a refusal, OSError where there is no answer."""
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection = self._connection()
        try:
            connection.putrequest(verb, where)
            connection.putheader("Accept", "application/json")
            connection.putheader("Authorization", f"Bearer {self._token}")
            for key, value in self._headers.items():
                for one in value if isinstance(value, list) else [value]:
                    connection.putheader(key, one)
            if data is not None:
                connection.putheader("Content-Type", content_type)
                connection.putheader("Content-Length", str(len(data)))
            connection.endheaders(data)
            response = connection.getresponse()
            text = response.read()
        except http.client.HTTPException as problem:
            connection.close()
            raise ConnectionError(f"{verb} {where}: {type(problem).__name__} {problem}") from problem
        except OSError:
            connection.close()
            raise
        try:
            answer = json.loads(text) if text else {}
        except ValueError:
            answer = text.decode(errors="replace")
        if response.status >= 400:
            raise ApiError(verb, where, response.status, answer)
        return answer

    @staticmethod
    def _with(where, parameters):
        return f"{where}?{urlencode(parameters)}" if parameters else where

    def get(self, where, **parameters):
        return self.request("GET", self._with(where, parameters))

    def find(self, where):
        """The object, or None where there is none."""
        try:
            return self.get(where)
        except ApiError as problem:
            if problem.status == 404:
                return None
            raise

    def list(self, where, **parameters):
        """All items, page after page."""
        items = []
        while True:
            answer = self.get(where, **parameters)
            items += answer.get("items") or []
            more = answer.get("metadata", {}).get("continue")
            if not more:
                return items
            parameters["continue"] = more

    def stream(self, where, **parameters):
        """What a watch tells, line by line, over a connection of its own. Ends with the stream; OSError where it breaks."""
        context = ssl.create_default_context(cafile=self._authority)
        # Bookmarks come once a minute.
        connection = http.client.HTTPSConnection(self._address.hostname, self._address.port, timeout=150, context=context)
        try:
            connection.request("GET", self._with(where, parameters), headers={
                "Accept": "application/json", "Authorization": f"Bearer {self._token}", **self._headers})
            response = connection.getresponse()
            if response.status >= 400:
                raise ApiError("GET", where, response.status, json.loads(response.read() or b"{}"))
            for line in response:
                yield json.loads(line)
        finally:
            connection.close()

    def create(self, where, body, **parameters):
        return self.request("POST", self._with(where, parameters), body)

    def replace(self, where, body, **parameters):
        return self.request("PUT", self._with(where, parameters), body)

    def patch(self, where, body, kind="merge", **parameters):
        """`kind` is merge, json, strategic, or apply (which needs fieldManager=...; force=True to take fields over)."""
        shown = {key: ("true" if value is True else value) for key, value in parameters.items()}
        return self.request("PATCH", self._with(where, shown), body, PATCH_TYPES[kind])

    def delete(self, where, **options):
        return self.request("DELETE", where, options or None)
