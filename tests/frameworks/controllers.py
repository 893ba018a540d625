"""The controllers of training frameworks as they are released, beside a bed's control plane: their own CRDs, their own
webhooks, one process each."""

import base64
import dataclasses
import functools
import ssl
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import yaml
from bed import REPOSITORY, ApiError, path
from bed.process import Process, free_port, run

TOOL = REPOSITORY / "tools" / "control-plane"
CONFIGURATIONS = {"MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
                  "ValidatingWebhookConfiguration": "validatingwebhookconfigurations"}


@dataclasses.dataclass(frozen=True)
class Framework:
    crds: tuple                  # under its sources
    webhooks: str = ""           # the manifest of them, where they are installed
    config: str = ""             # apiVersion of its configuration file; "" where it takes flags
    arguments: tuple = ()        # {health}, {port}, {folder} are filled in
    sections: dict = dataclasses.field(default_factory=dict)  # of the file, beside addresses
    serves_health: bool = True
    namespace: str = ""          # which it expects to be there
    secret: str = ""             # in it: the one that its certificate rotation insists on
    private_certificates: bool = False  # looks for them in a fixed folder of /tmp


FRAMEWORKS = {
    "jobset": Framework(("config/components/crd/bases/*.yaml",), "config/components/webhook/manifests.yaml",
                        "config.jobset.x-k8s.io/v1alpha1",
                        sections={"internalCertManagement": {"enable": False}}),
    "lws": Framework(("config/crd/bases/*.yaml",), "config/webhook/manifests.yaml", "config.lws.x-k8s.io/v1alpha1",
                     sections={"internalCertManagement": {"enable": False}}),
    "trainer": Framework(("manifests/base/crds/trainer*.yaml",), "manifests/base/webhook/manifests.yaml",
                         "config.trainer.kubeflow.org/v1alpha1", sections={"certManagement": {"enable": False}}),
    "kueue": Framework(("config/components/crd/bases/*.yaml",), "config/components/webhook/manifests.yaml",
                       "config.kueue.x-k8s.io/v1beta1", arguments=("--feature-gates=VisibilityOnDemand=false",),
                       namespace="kueue-system", secret="kueue-webhook-server-cert",
                       sections={"namespace": "kueue-system", "resources": {"excludeResourcePrefixes": ["heddle.dev/fabric"]},
                                 "integrations": {"frameworks": ["batch/job", "jobset.x-k8s.io/jobset", "pod"]}}),
    "kuberay": Framework(("config/crd/bases/*.yaml",),
                         arguments=("--metrics-addr=0", "--health-probe-bind-address=:{health}",
                                    "--enable-leader-election=false")),
    # It has no way to lead without a Lease, nor another port than 8080 for its health.
    "mpi-operator": Framework(("manifests/base/kubeflow.org_mpijobs.yaml",), serves_health=False,
                              namespace="mpi-operator", arguments=("--kube-api-qps=100", "--kube-api-burst=200")),
    "training-operator": Framework(("manifests/base/crds/kubeflow.org_pytorchjobs.yaml",), namespace="kubeflow",
                                   secret="training-operator-webhook-cert", private_certificates=True,
                                   arguments=("--enable-scheme=pytorchjob", "--metrics-bind-address=0",
                                              "--health-probe-bind-address=:{health}",
                                              "--webhook-server-port={port}")),
}


@functools.cache
def binaries():
    """The folder of the controllers, built now if they are not there."""
    done = subprocess.run([TOOL, "--frameworks"], stdout=subprocess.PIPE, text=True, check=True)
    return Path(done.stdout.split("\n")[-2])


@functools.cache
def sources():
    """The sources of each framework, as the module proxy gave them."""
    done = subprocess.run([TOOL, "--frameworks", "--sources"], stdout=subprocess.PIPE, text=True, check=True)
    return {name: Path(folder) for name, folder in (line.split() for line in done.stdout.splitlines())}


def documents(file):
    return [document for document in yaml.load_all(file.read_text(), Loader=yaml.CSafeLoader) if document]


class Controller:
    """One framework's controller. It may do everything, under an account of its own, so that the audit log names it."""

    NAMESPACE = "frameworks"

    def __init__(self, plane, name, arguments=()):
        self.plane, self.name, self.framework = plane, name, FRAMEWORKS[name]
        self.arguments = (*self.framework.arguments, *arguments)
        self.health, self.port = free_port(), free_port()
        self.folder = plane.folder / name
        self.certificates = self.folder / "k8s-webhook-server" / "serving-certs"
        self.certificates.mkdir(parents=True)
        self.user = f"system:serviceaccount:{self.NAMESPACE}:{name}"
        self.process = None

    def install(self):
        """Its CRDs, its account, and the namespace and Secret that it expects."""
        where = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        made = [document for pattern in self.framework.crds for file in sorted(sources()[self.name].glob(pattern))
                for document in documents(file) if document["kind"] == "CustomResourceDefinition"]
        if not made:
            raise RuntimeError(f"no CRDs in {sources()[self.name]}")
        for crd in made:
            self.plane.rest.create(where, crd)
        for crd in made:
            self.plane.wait_for(lambda at=f"{where}/{crd['metadata']['name']}": self._established(at),
                                f"{crd['metadata']['name']} to be served")
        if not self.plane.rest.find(path("namespaces", name=self.NAMESPACE)):
            self.plane.create_namespace(self.NAMESPACE)
        self.plane.rest.create(path("serviceaccounts", self.NAMESPACE), {"metadata": {"name": self.name}})
        self.plane.rest.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
            "metadata": {"name": f"framework-{self.name}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "namespace": self.NAMESPACE, "name": self.name}]})
        if self.framework.namespace:
            self.plane.create_namespace(self.framework.namespace)
        if self.framework.secret:
            self.plane.rest.create(path("secrets", self.framework.namespace), {"metadata": {"name": self.framework.secret}})

    def _established(self, at):
        conditions = self.plane.rest.get(at).get("status", {}).get("conditions", [])
        return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)

    def start(self):
        run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
             "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
             "-keyout", self.certificates / "tls.key", "-out", self.certificates / "tls.crt"])
        fields = {"health": self.health, "port": self.port, "folder": self.folder}
        command = [binaries() / self.name, *(argument.format(**fields) for argument in self.arguments)]
        if self.framework.config:
            file = self.folder / "config.yaml"
            file.write_text(yaml.safe_dump({
                "apiVersion": self.framework.config, "kind": "Configuration", "leaderElection": {"leaderElect": False},
                "metrics": {"bindAddress": "0"}, "health": {"healthProbeBindAddress": f"127.0.0.1:{self.health}"},
                "webhook": self._webhook_section()} | self.framework.sections))
            command.append(f"--config={file}")
        if self.framework.private_certificates:
            fixed = "/tmp/k8s-webhook-server/serving-certs"
            command = ["unshare", "--mount", "sh", "-ec", f'mkdir -p {fixed}; mount --bind "$0" {fixed}; exec "$@"',
                       self.certificates, *command]
        self.process = Process(self.name, command, self.plane.logs / f"{self.name}.log", {
            "KUBECONFIG": str(self.plane.account_kubeconfig(self.NAMESPACE, self.name)), "TMPDIR": str(self.folder), "HOME": str(self.folder)})
        self.plane.before_stop(self.process.kill9)
        self.process.start()

    def _webhook_section(self):
        section = {"port": self.port, "host": "127.0.0.1"}
        # The trainer's file has no word for the folder; TMPDIR says it.
        return section if self.name == "trainer" else section | {"certDir": str(self.certificates)}

    def wait(self, timeout=60.0):
        """Until it works, its webhooks too."""
        def healthy():
            if sentence := self.process.died():
                raise AssertionError(sentence)
            with urllib.request.urlopen(f"http://127.0.0.1:{self.health}/healthz", timeout=5) as answer:
                return answer.status == 200
        if self.framework.serves_health:
            self.plane.wait_for(healthy, f"{self.name} to be healthy", timeout)
        if self.framework.webhooks:
            self._install_webhooks()

    def _install_webhooks(self):
        """As its release has them, with this process in the place of the Service."""
        authority = base64.b64encode((self.certificates / "tls.crt").read_bytes()).decode()
        for made in documents(sources()[self.name] / self.framework.webhooks):
            for hook in made["webhooks"]:
                url = f"https://127.0.0.1:{self.port}{hook['clientConfig']['service']['path']}"
                self.plane.wait_for(lambda asked=url: self._served(asked), f"{self.name} to serve {url}", 60)
                hook["clientConfig"] = {"url": url, "caBundle": authority}
            made["metadata"] = {"name": f"{self.name}-of-the-bed"}
            self.plane.rest.create(f"/apis/admissionregistration.k8s.io/v1/{CONFIGURATIONS[made['kind']]}", made)

    def _served(self, url):
        # Handlers come after the server: until then there is a 404.
        context = ssl.create_default_context(cafile=self.certificates / "tls.crt")
        try:
            urllib.request.urlopen(urllib.request.Request(url, b"", method="POST"), timeout=5, context=context).close()
        except urllib.error.HTTPError as problem:
            return problem.code != 404
        return True

    def died(self):
        return self.process.died() if self.process else None


def refused_or_made(create):
    """For dry runs that ask whether a webhook is in force: what was made, or None where nobody allowed it yet."""
    try:
        return create()
    except ApiError:
        return None
