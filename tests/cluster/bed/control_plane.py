"""A real Kubernetes control plane on loopback, with KWOK in the place of kubelets."""

import base64
import json
import os
import shutil
import ssl
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .process import Process, free_port, new_run_folder, run, stop_at_exit
from .rest import ApiError, Rest, path
from .waiting import wait_for

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
# KWOK looks after the nodes with this label. By an annotation it would select, too, but for itself: it never hears that a
# node has lost it, and does not look after one that has it again.
KWOK_LABEL, KWOK_VALUE = "type", "kwok"

# One static token each, so that the audit log names the writer. Only kubectl and KWOK are administrators.
USERS = {
    "admin": ("heddle:bed", "system:masters"),
    "kwok": ("kwok", "system:masters"),
    "controller-manager": ("system:kube-controller-manager", ""),
    "scheduler": ("system:kube-scheduler", ""),
}


def control_plane_binaries():
    """The folder of the binaries, built now if they are not there (tools/control-plane says what it does on stderr)."""
    done = subprocess.run([REPOSITORY / "tools" / "control-plane"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError("tools/control-plane failed; its last lines above say why")
    return Path(done.stdout.split("\n")[-2])


class ControlPlane:
    """etcd, kube-apiserver, kube-controller-manager, the stock kube-scheduler and KWOK.

        with ControlPlane("smoke") as cluster:
            cluster.rest.list(path("nodes"))
            cluster.kubectl("get", "nodes")

    COMPONENTS are the names that start, stop, restart and kill9 take.
    """

    COMPONENTS = ("etcd", "apiserver", "controller-manager", "scheduler", "kwok")

    def __init__(self, name="bed", binaries=None, folder=None, components=COMPONENTS, progress=None,
                 users=None, arguments=None, port=None):
        self.name = name
        self.binaries = Path(binaries) if binaries else control_plane_binaries()
        self.folder = Path(folder) if folder else new_run_folder(name)
        self.logs = self.folder / "logs"
        self.audit_log = self.logs / "audit.log"
        self._wanted = tuple(components)
        self._arguments = dict(arguments or {})  # further ones by component, as features that are off by default
        self._port = port  # of the apiserver; one that is free where nobody says it
        self._users = USERS | (users or {})  # `users` as in USERS: {kubeconfig: (name, group)}
        self._progress = progress or (lambda sentence: None)
        self._own_folder = folder is None
        self._processes = {}
        self._stopped = False
        self._before_stop = []
        self.logs.mkdir(parents=True, exist_ok=True)
        self._keep = stop_at_exit(self.stop)

    # Life

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_):
        self.stop()

    def start(self):
        started = time.monotonic()
        self._prepare()
        for component in self._wanted[:2]:
            self._processes[component].start()
            self.wait_ready(component)
        for component in self._wanted[2:]:
            self._launch(component)
        for component in self._wanted[2:]:
            self.wait_ready(component)
        if "controller-manager" in self._wanted:
            # Without its account the ServiceAccount admission refuses every pod of the namespace.
            self.wait_for_account("default", "default")
        self._progress(f"control plane ready in {time.monotonic() - started:.1f} s")
        return self

    def stop(self):
        """Nothing of it is kept, so nothing gets time to shut down. Safe to call again."""
        if self._stopped:
            return
        self._stopped = True
        for stop in reversed(self._before_stop):
            stop()
        for process in reversed(list(self._processes.values())):
            process.kill9()
        self._keep()
        if self._own_folder:
            kept = os.environ.get("HEDDLE_KEEP_LOGS")
            if kept:
                self.copy_logs(Path(kept) / self.folder.name)
            shutil.rmtree(self.folder, ignore_errors=True)

    def before_stop(self, stop):
        """For what runs against this control plane and ends more quietly before it."""
        self._before_stop.append(stop)

    def copy_logs(self, target):
        shutil.copytree(self.logs, target, dirs_exist_ok=True)
        return target

    def process(self, component):
        return self._processes[component]

    def start_component(self, component, renew_clients=True):
        """Starts what kill9() ended.

        After the apiserver, its stock clients are started anew too: left alone, they back off for up to a minute once
        it went away twice in two minutes, which tells nothing of Heddle. `renew_clients=False` leaves them alone.
        """
        self._launch(component)
        self.wait_ready(component)
        if component == "apiserver" and renew_clients:
            clients = [name for name in self._wanted[2:] if self._processes[name].running()]
            for name in clients:
                self._processes[name].kill9()
                self._launch(name)
            for name in clients:
                self.wait_ready(name)

    def _launch(self, component):
        if component == "kwok" and self.rest.find("/api/v1/namespaces/kube-node-lease"):
            # A new KWOK has a new name, and would wait until what the old one held has run out.
            self.rest.delete(path("leases", "kube-node-lease"))
        self._processes[component].start()

    def restart(self, component, renew_clients=True):
        """Ends it as an administrator would and waits until it serves again, on the same port, with the same state."""
        self._processes[component].stop()
        self.start_component(component, renew_clients)

    def kill9(self, component):
        """Ends it as a crash would; it stays down until start_component()."""
        self._processes[component].kill9()

    def died(self):
        """A sentence on the first component that ended by itself, else None."""
        return next((sentence for sentence in (p.died() for p in self._processes.values()) if sentence), None)

    def wait_for(self, predicate, what, timeout=30.0):
        """wait_for that gives up as soon as a component has died."""
        return wait_for(predicate, what, timeout, failed=self.died)

    # Making

    def _prepare(self):
        state = self.folder
        self._etcd_port, self._etcd_peer_port = free_port(), free_port()
        self._apiserver_port = self._port or free_port()
        self._manager_port, self._scheduler_port = free_port(), free_port()
        self.server = f"https://127.0.0.1:{self._apiserver_port}"
        certificates = state / "certificates"
        certificates.mkdir(exist_ok=True)
        # The apiserver writes its serving certificate here, signed by itself, and reads it again when restarted.
        self.certificate_authority = certificates / "apiserver.crt"
        account_key = state / "service-account.key"
        account_public_key = state / "service-account.pub"
        run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", account_key])
        run(["openssl", "pkey", "-in", account_key, "-pubout", "-out", account_public_key])

        self._tokens = {user: os.urandom(24).hex() for user in self._users}
        token_file = state / "tokens.csv"
        token_file.write_text("".join(
            ",".join(column for column in (self._tokens[user], name, user, group) if column) + "\n"
            for user, (name, group) in self._users.items()))
        token_file.chmod(0o600)
        self.rest = Rest(self.server, self.certificate_authority, self._tokens["admin"])
        self.kubeconfigs = state / "kubeconfigs"
        self.kubeconfigs.mkdir(exist_ok=True)
        self.kubeconfig = self.kubeconfigs / "admin"

        client_url, peer_url = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{self._etcd_peer_port}"
        commands = {
            "etcd": [
                "etcd", f"--data-dir={state / 'etcd'}", "--name=bed", "--log-level=warn",
                # The data does not outlive the bed.
                "--unsafe-no-fsync",
                f"--listen-client-urls={client_url}", f"--advertise-client-urls={client_url}",
                f"--listen-peer-urls={peer_url}", f"--initial-advertise-peer-urls={peer_url}",
                f"--initial-cluster=bed={peer_url}"],
            "apiserver": [
                "kube-apiserver", f"--etcd-servers={client_url}",
                "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
                f"--secure-port={self._apiserver_port}", f"--cert-dir={certificates}",
                # Nobody reaches it through the Service, and a loopback address is refused as an endpoint.
                "--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.96.0.0/16",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-key-file={account_public_key}",
                f"--service-account-signing-key-file={account_key}",
                "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
                f"--token-auth-file={token_file}", "--allow-privileged=true",
                f"--audit-log-path={self.audit_log}", f"--audit-policy-file={HERE / 'audit-policy.yaml'}",
                "--audit-log-maxsize=1024",
                # Without it open watches keep a terminated server for a minute.
                "--shutdown-watch-termination-grace-period=1s"],
            "controller-manager": [
                "kube-controller-manager", f"--kubeconfig={self.kubeconfigs / 'controller-manager'}",
                "--bind-address=127.0.0.1", f"--secure-port={self._manager_port}", f"--cert-dir={state / 'manager'}",
                f"--service-account-private-key-file={account_key}", f"--root-ca-file={self.certificate_authority}",
                # Each controller under its own account: RBAC as on a real cluster, and names in the audit log.
                "--use-service-account-credentials=true", "--leader-elect=false",
                "--kube-api-qps=1000", "--kube-api-burst=2000", "--concurrent-job-syncs=20",
                # On a machine that also compiles, a fake kubelet's heartbeat may be late without its node being lost.
                "--node-monitor-grace-period=300s"],
            "scheduler": ["kube-scheduler", f"--config={state / 'scheduler.yaml'}",
                          "--bind-address=127.0.0.1", f"--secure-port={self._scheduler_port}",
                          f"--cert-dir={state / 'scheduler'}"],
            "kwok": [
                "kwok", f"--kubeconfig={self.kubeconfigs / 'kwok'}", f"--config={HERE / 'kwok.yaml'}",
                # Not all nodes: it would also answer for the node of a real kubelet.
                "--manage-all-nodes=false", f"--manage-nodes-with-label-selector={KWOK_LABEL}={KWOK_VALUE}",
                "--cidr=10.244.0.0/16", "--node-ip=10.0.0.1", "--node-lease-duration-seconds=40"],
        }
        # JSON is YAML, and needs no care with indentation.
        (state / "scheduler.yaml").write_text(json.dumps({
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(self.kubeconfigs / "scheduler"), "qps": 1000, "burst": 2000}}))
        for component in self._wanted:
            program, *arguments = commands[component]
            arguments += self._arguments.get(component, ())
            self._processes[component] = Process(
                component, [self.binaries / program, *arguments], self.logs / f"{component}.log")

    def _healthy(self, url):
        # Components make their own certificates, which nobody can check; nothing secret goes there.
        context = ssl._create_unverified_context()
        with urllib.request.urlopen(url, timeout=5, context=context) as answer:
            return answer.status == 200

    def wait_ready(self, component, timeout=60.0):
        """Until it serves. KWOK has nothing to ask: its nodes become Ready."""
        checks = {
            "etcd": lambda: self._healthy(f"http://127.0.0.1:{self._etcd_port}/health"),
            "apiserver": self._apiserver_ready,
            "controller-manager": lambda: self._healthy(f"https://127.0.0.1:{self._manager_port}/healthz"),
            "scheduler": lambda: self._healthy(f"https://127.0.0.1:{self._scheduler_port}/healthz"),
        }
        if component in checks:
            self.wait_for(checks[component], f"{component} to serve", timeout)

    def _apiserver_ready(self):
        if not self.certificate_authority.exists():
            return False
        if self.rest.request("GET", "/readyz") != "ok":
            return False
        # Not sooner: the server makes the file, and then fills it.
        if not self.kubeconfig.exists():
            for user in self._users:
                self.write_kubeconfig(user, self._tokens[user])
        return True

    # Users

    def write_kubeconfig(self, name, token, folder=None, server=None):
        """A kubeconfig file for a bearer token; everything that it needs is inside. `server`: another way there."""
        authority = base64.b64encode(self.certificate_authority.read_bytes()).decode()
        file = Path(folder or self.kubeconfigs) / name
        content = json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "bed",
            "clusters": [{"name": "bed", "cluster": {
                "server": server or self.server, "certificate-authority-data": authority}}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": name}}]}, indent=1)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as out:
            out.write(content)
        return file

    def account_token(self, namespace, account, node=None, seconds=24 * 3600):
        """A token as a kubelet would ask for it. With `node` it is bound to that Node, and so carries its name."""
        spec = {"expirationSeconds": seconds}
        if node:
            uid = self.rest.get(path("nodes", name=node))["metadata"]["uid"]
            spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        answer = self.rest.create(path("serviceaccounts", namespace, account, "token"), request)
        return answer["status"]["token"]

    def account_kubeconfig(self, namespace, account, node=None, server=None):
        name = f"{namespace}.{account}" + (f".{node}" if node else "") + (".proxied" if server else "")
        return self.write_kubeconfig(name, self.account_token(namespace, account, node), server=server)

    def account_rest(self, namespace, account, node=None):
        """A Rest that is this ServiceAccount, by a real token."""
        return Rest(self.server, self.certificate_authority, self.account_token(namespace, account, node))

    def wait_for_account(self, namespace, account, timeout=30.0):
        self.wait_for(lambda: self.rest.find(path("serviceaccounts", namespace, account)),
                      f"the ServiceAccount {namespace}/{account}", timeout)

    def create_namespace(self, name, labels=None):
        """A namespace in which pods can be made at once."""
        self.rest.create(path("namespaces"), {
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels or {}}})
        self.wait_for_account(name, "default")
        return name

    # Looking

    def kubectl(self, *arguments, stdin=None, check=True, kubeconfig=None, timeout=120):
        """What kubectl prints. Failing, it raises with what kubectl said."""
        done = run([self.binaries / "kubectl", *arguments], timeout=timeout, check=check, stdin=stdin,
                   environment=self.tool_environment(kubeconfig))
        return done.stdout

    def tool_environment(self, kubeconfig=None):
        # HOME: kubectl and helm keep caches there, which would outlive the bed and mix clusters on one address.
        return {"KUBECONFIG": str(kubeconfig or self.kubeconfig), "HOME": str(self.folder),
                "HELM_CACHE_HOME": str(self.folder / "helm"), "HELM_CONFIG_HOME": str(self.folder / "helm"),
                "HELM_DATA_HOME": str(self.folder / "helm")}

    def audit(self, **wanted):
        """Audit events in order, as small dicts, that equal `wanted` in every key it names.

        Keys: user, verb, resource ("pods", "pods/status", ...), namespace, name, code, body, uri; time and ended are the
        server's clock when it had the request and when it had answered.
        """
        found = []
        for line in self.audit_log.read_text().splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                continue  # The line being written right now.
            about = event.get("objectRef") or {}
            resource = "/".join(part for part in (about.get("resource"), about.get("subresource")) if part)
            small = {
                "user": event["user"]["username"], "verb": event["verb"], "resource": resource,
                "namespace": about.get("namespace", ""), "name": about.get("name", ""),
                "code": (event.get("responseStatus") or {}).get("code"), "body": event.get("requestObject"),
                "time": event["requestReceivedTimestamp"],
                "ended": event["stageTimestamp"], "uri": event["requestURI"]}
            if all(small[key] == value for key, value in wanted.items()):
                found.append(small)
        return found

    def forget_history(self):
        """Makes every watch from an old resourceVersion end with 410.

        Compacting etcd alone does not: the apiserver goes on answering from its watch cache, which only a restart
        empties.
        """
        self.compact_etcd()
        self.restart("apiserver")

    def compact_etcd(self):
        """Drops all history from etcd; returns the revision that is left."""
        def etcd(where, body):
            request = urllib.request.Request(f"http://127.0.0.1:{self._etcd_port}{where}", json.dumps(body).encode(),
                                             {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.loads(answer.read())
        revision = etcd("/v3/maintenance/status", {})["header"]["revision"]
        etcd("/v3/kv/compaction", {"revision": revision, "physical": True})
        return int(revision)

    def resident_bytes(self):
        return {name: process.resident_bytes() for name, process in self._processes.items() if process.running()}

    # Work

    def create_all(self, where, bodies, workers=8):
        """Creates many objects at once, over a few connections; those that exist already stay as they are."""
        def create(body):
            try:
                return self.rest.create(where, body)
            except ApiError as problem:
                if problem.reason != "AlreadyExists":
                    raise
                return None
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(create, bodies))

    def pods(self, namespace, selector=None):
        parameters = {"labelSelector": selector} if selector else {}
        return self.rest.list(path("pods", namespace), **parameters)

    def finish_pod(self, namespace, name, how="succeeded"):
        """Tells KWOK that a running pod ended: `succeeded` or `failed`."""
        self.rest.patch(path("pods", namespace, name), {"metadata": {"annotations": {"bed.heddle.dev/finish": how}}})


def progress_to_stderr(sentence):
    print(sentence, file=sys.stderr, flush=True)
