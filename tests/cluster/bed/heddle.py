"""Heddle on a bed: its chart applied by helm, its daemons as local processes, each under its own account."""

import datetime
import json
import socket
import sys
import time
import uuid
from pathlib import Path

from .control_plane import REPOSITORY
from .process import Process, free_port, run
from .rest import ApiError, path
from .waiting import wait_for

NAMESPACE = "heddle-system"
CHART = REPOSITORY / "charts" / "heddle"
# Labelled heddle.dev/scope=enabled by install(), so that tests have a namespace to start Jobs in.
TRAINING_NAMESPACE = "training"


class Heddle:
    """The daemons by name: "operator", "extender", "scheduler", and "agent:NODE" of each node.

        heddle = Heddle(plane, REPOSITORY / "build/dev/bin")
        heddle.install()
        heddle.start(cluster)          # all of them; waits until every node has published and the extender answers
        heddle.kill9("extender"); heddle.start_daemon("extender")
    """

    def __init__(self, plane, binaries, environment=None):
        self.plane = plane
        self.binaries = Path(binaries).resolve()
        self.namespace = TRAINING_NAMESPACE
        self.environment = dict(environment or {})
        self.daemons = {}
        self.machines = {}
        self.extender_port = free_port()
        self.extender_ports = {}  # by host, of replicas
        self.operator_port = free_port()
        self.scheduler_port = free_port()
        self._stopped = False
        plane.before_stop(self.stop)

    # Installing

    def install(self, wait=True, **values):
        """Applies the chart without its Deployments. `values` are the chart's: install(mode="observe")."""
        values = {"components": {"run": False}} | values
        self._helm("upgrade", "--install", "heddle", CHART, "--create-namespace", "--values", "-",
                   stdin=json.dumps(values))
        for resource in ("nodetopologies", "fabrics", "gangs", "losslesspolicies", "rdmadevicepolicies",
                         "fabricswitches"):
            self.plane.wait_for(lambda: self._served(resource), f"the apiserver to serve {resource}.heddle.dev")
        if not self.plane.rest.find(path("namespaces", name=self.namespace)):
            self.plane.create_namespace(self.namespace, {"heddle.dev/scope": "enabled"})
        if wait:
            self.wait_in_force(values.get("mode", "place"))

    def uninstall(self):
        self._helm("uninstall", "heddle")

    def _helm(self, *arguments, stdin=None):
        return run([self.plane.binaries / "helm", *arguments, "--namespace", NAMESPACE], stdin=stdin,
                   environment=self.plane.tool_environment()).stdout

    def _served(self, resource):
        return self.plane.rest.list(path(resource)) is not None

    def wait_in_force(self, mode="place"):
        """Policies work a moment after they were made: asks with dry runs until each one answers as it should."""
        rest = self.plane.rest
        pods = path("pods", self.namespace) + "?dryRun=All"

        def pod(annotations):
            return {"metadata": {"generateName": "probe-", "annotations": annotations}, "spec": {"containers": [
                {"name": "probe", "image": "probe", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}

        def refused(create):
            try:
                create()
            except ApiError as problem:
                return problem.status in (403, 422) and "ValidatingAdmissionPolicy" in problem.message
            return False

        def gated():
            made = rest.create(pods, pod({"heddle.dev/parallelism": "tp=1"}))
            return [gate["name"] for gate in made["spec"].get("schedulingGates", [])] == ["heddle.dev/gang"]

        stranger = rest.as_user(
            f"system:serviceaccount:{NAMESPACE}:heddle-nodeagent", groups=[f"system:serviceaccounts:{NAMESPACE}"],
            extra={"authentication.kubernetes.io/node-name": "probe"})
        lease = {"metadata": {"name": "heddle-node-somebody-else"}}
        if mode == "place":
            self.plane.wait_for(gated, "the policy heddle-gang to be in force")
        self.plane.wait_for(lambda: refused(lambda: rest.create(pods, pod({"heddle.dev/rank": "0"}))),
                            "the policy heddle-plan to be in force")
        self.plane.wait_for(
            lambda: refused(lambda: stranger.create(path("leases", NAMESPACE) + "?dryRun=All", lease)),
            "the policy heddle-own-node to be in force")

    # Starting

    def start(self, cluster, faults=None, scheduler=True):
        """Everything, in an order in which nothing waits for long. The cluster's Nodes must be there."""
        self.write_machines(cluster, faults)
        self.start_operator()
        self.start_agents()
        self.start_extender()
        if scheduler:
            self.start_scheduler()
        self.wait_published(self.machines)
        return self

    def write_machines(self, cluster, faults=None):
        """A recorded machine for each node of the cluster; `faults` as in Cluster.machines."""
        written = _machines().write(cluster.machines(faults), str(self.plane.folder / "machines"))
        self.machines |= {node: Path(folder) for node, folder in written.items()}
        return self.machines

    def write_machine(self, cluster, node, **faults):
        """Writes the node's machine anew, with these faults or none, as one that has booted since: what ended the use of a
        GPU is forgotten by a boot only. Its agent reads it when it starts again."""
        machines = _machines()
        described = next(m for m in cluster.machines({node: faults})["nodes"] if m["name"] == node)
        host = machines.Host(**described)
        host.leaves = {str(key): value for key, value in host.leaves.items()}
        host.down, host.half = [str(key) for key in host.down], [str(key) for key in host.half]
        shape = machines.SHAPES[host.shape]()
        folder = self.machines[node]
        machines.write_host(host, shape, str(folder), str(folder.parent / ".common" / host.shape))
        boot = folder / "proc/sys/kernel/random/boot_id"
        boot.parent.mkdir(parents=True, exist_ok=True)
        boot.write_text(f"{uuid.uuid4()}\n")

    def is_whole(self, node):
        """Whether its agent publishes no fault of a GPU or of a compute NIC's port."""
        status = self.plane.rest.get(path("nodetopologies", name=node))["status"]
        return all(gpu["health"] == "Healthy" for gpu in status["gpus"]) and \
            all(port["state"] == "Active" for nic in status["nics"] if nic["role"] == "Compute" for port in nic["ports"])

    def _daemon(self, name, program, arguments, host=None):
        # A host name of its own, as two pods have: kube-scheduler holds its Lease under it.
        named = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', host] if host else []
        daemon = Process(name, [*named, program, *arguments], self.plane.logs / (name.replace(":", "-") + ".log"),
                         self.environment)
        self.daemons[name] = daemon
        daemon.start()
        return daemon

    def _account(self, component, node=None):
        return self.plane.account_kubeconfig(NAMESPACE, f"heddle-{component}", node)

    def start_operator(self, *arguments):
        return self._daemon("operator", self.binaries / "heddle-operator", [
            "--kubeconfig", self._account("operator"), "--listen", f"127.0.0.1:{self.operator_port}", *arguments])

    def start_extender(self, *arguments, host=None, kubeconfig=None):
        """With `host`, one of several replicas, "extender@HOST"; it follows the scheduler of the same host."""
        port = self.extender_ports.setdefault(host, free_port()) if host else self.extender_port
        daemon = self._daemon(_of("extender", host), self.binaries / "heddle-extender", [
            "--kubeconfig", kubeconfig or self._account("extender"), "--listen", f"127.0.0.1:{port}", *arguments], host)
        self.wait_extender(host)
        return daemon

    def wait_extender(self, host=None, timeout=30.0):
        def listening():
            with socket.create_connection(("127.0.0.1", self.extender_ports.get(host, self.extender_port)), 1):
                return True
        self.wait_for(listening, f"the {_of('extender', host)} to listen", timeout)

    def start_agents(self, nodes=None, *arguments):
        """One agent for each of `nodes` (default: all that have a recorded machine)."""
        for node in nodes or self.machines:
            self.start_agent(node, *arguments)

    def start_agent(self, node, *arguments):
        return self._daemon(f"agent:{node}", self.binaries / "heddle-nodeagent", [
            "--kubeconfig", self._account("nodeagent", node), "--node", node, "--machine", self.machines[node],
            *arguments])

    def start_scheduler(self, host=None, lease=None):
        """A second kube-scheduler, with the chart's own configuration; only addresses and files are the bed's.

        With `host` it is one of several replicas, "scheduler@HOST", and need not lead. `lease` changes leaderElection.
        """
        made = self.plane.rest.get(path("configmaps", NAMESPACE, "heddle-scheduler"))
        config = json.loads(made["data"]["config.json"])
        config["extenders"][0]["urlPrefix"] = f"http://127.0.0.1:{self.extender_ports.get(host, self.extender_port)}"
        config["leaderElection"] |= lease or {}
        kubeconfig = self._account("scheduler")
        config["clientConnection"]["kubeconfig"] = str(kubeconfig)
        name = _of("scheduler", host)
        file = self.plane.folder / f"heddle-{name}.json"
        file.write_text(json.dumps(config, indent=1))
        port = free_port() if host else self.scheduler_port
        daemon = self._daemon(name, self.plane.binaries / "kube-scheduler", [
            f"--config={file}", f"--authentication-kubeconfig={kubeconfig}", f"--authorization-kubeconfig={kubeconfig}",
            "--bind-address=127.0.0.1", f"--secure-port={port}",
            f"--cert-dir={self.plane.folder / f'heddle-{name}'}"], host)
        if not host:
            self.wait_scheduler()
        return daemon

    def lease_holder(self):
        """The host name of the scheduler that holds the Lease; "" where nobody does."""
        lease = self.plane.rest.find(path("leases", NAMESPACE, "heddle-scheduler")) or {"spec": {}}
        return (lease["spec"].get("holderIdentity") or "").partition("_")[0]

    def forget_lease(self):
        """What a dead scheduler left would keep the next one waiting for 15 s, which one test shows once."""
        self.plane.rest.delete(path("leases", NAMESPACE, "heddle-scheduler"))

    def wait_scheduler(self, timeout=60.0):
        """Until it leads. After a kill -9 that takes until the Lease of the one before has run out (15 s)."""
        started = time.time()

        def leads():
            lease = self.plane.rest.find(path("leases", NAMESPACE, "heddle-scheduler"))
            if not lease or not lease["spec"].get("holderIdentity"):
                return False
            renewed = _seconds(lease["spec"]["renewTime"])
            # Renewed since, or it is the Lease that a dead one left.
            return renewed >= started and self.daemons["scheduler"].running()
        self.wait_for(leads, "kube-scheduler `heddle` to hold its Lease", timeout)

    # Waiting

    def wait_for(self, predicate, what, timeout=30.0):
        """wait_for that gives up as soon as a component or a daemon has died by itself."""
        return wait_for(predicate, what, timeout, failed=lambda: self.plane.died() or self.died())

    def wait_published(self, nodes, timeout=120.0):
        """Until the agent of each node has written its NodeTopology's status."""
        wanted = set(nodes)

        def published():
            there = {item["metadata"]["name"] for item in self.plane.rest.list(path("nodetopologies"))
                     if (item.get("status") or {}).get("hash")}
            missing = sorted(wanted - there)
            if missing:
                raise AssertionError(f"{len(missing)} have not, the first of them {', '.join(missing[:3])}")
            return True
        self.wait_for(published, f"the agents of {len(wanted)} nodes to publish", timeout)

    def died(self):
        return next((sentence for sentence in (d.died() for d in self.daemons.values()) if sentence), None)

    # Disturbing

    def daemon(self, name):
        return self.daemons[name]

    def kill9(self, name):
        self.daemons[name].kill9()

    def start_daemon(self, name):
        """Starts again what kill9() or stop_daemon() ended, with the same arguments."""
        self.daemons[name].start()
        kind, _, host = name.partition("@")
        if kind == "extender":
            self.wait_extender(host or None)
        if name == "scheduler":
            self.wait_scheduler()

    def skew_clock(self, name, seconds):
        """From its next start on, that daemon's wall clock is so many seconds ahead (below 0: behind)."""
        library = self.plane.folder / "skewed_clock.so"
        if not library.exists():
            run(["cc", "-shared", "-fPIC", "-O1", "-o", library, Path(__file__).with_name("skewed_clock.c")])
        environment = self.daemons[name].environment
        environment.pop("LD_PRELOAD", None)
        if seconds:
            environment |= {"LD_PRELOAD": str(library), "SKEWED_CLOCK_SECONDS": str(seconds)}

    def stop_daemon(self, name):
        """Asks it to end; returns its exit code."""
        return self.daemons[name].stop()

    def restart(self, name):
        self.stop_daemon(name)
        self.start_daemon(name)

    def stop(self):
        """Ends all daemons. Returns {name: exit code} of those that did not end with 0, as they should when asked."""
        if self._stopped:
            return {}
        self._stopped = True
        asked = [daemon for daemon in self.daemons.values() if daemon.running()]
        bad = {daemon.name: daemon.exit_code() for daemon in self.daemons.values() if daemon.died()}
        for daemon in asked:
            daemon.terminate()
        for daemon in asked:
            code = daemon.stop()
            if code != 0:
                bad[daemon.name] = code
        return bad

    def resident_bytes(self):
        return {name: daemon.resident_bytes() for name, daemon in self.daemons.items() if daemon.running()}


def _machines():
    """The generator of the C++ tests' fixtures; not part of this package."""
    support = str(REPOSITORY / "tests" / "support")
    if support not in sys.path:
        sys.path.insert(0, support)
    import machines
    return machines


def _of(daemon, host):
    return f"{daemon}@{host}" if host else daemon


def _seconds(micro_time):
    """Seconds since 1970 of a MicroTime such as 2026-01-02T03:04:05.678901Z."""
    return datetime.datetime.fromisoformat(micro_time.replace("Z", "+00:00")).timestamp()
