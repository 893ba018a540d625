"""Switches for tests to ask: processes, certificates and tables around `switch-peer`, which is in peer/.

    with Switches([leaf("leaf-3", ports=64)]) as switches:
        switches["leaf-3"].rates({"Ethernet48": {"SAI_PORT_STAT_IF_IN_FEC_NOT_CORRECTABLE_FRAMES": 9}})
        switches["leaf-3"].flap("Ethernet48", 41)
        switches["leaf-3"].faults(stall="answers")

What is known of what they answer, and from where, is in README.md."""

import functools
import json
import shutil
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT / "tests" / "cluster") not in sys.path:
    sys.path.append(str(ROOT / "tests" / "cluster"))

from bed.process import Process, free_port, new_run_folder, run, stop_at_exit  # noqa: E402
from bed.waiting import wait_for  # noqa: E402

DOMAIN = "switches.test"  # of the names in their certificates: leaf-3.switches.test


@functools.cache
def binaries():
    """The folder of switch-peer and gnmi_cli, built now if they are not there."""
    done = subprocess.run([ROOT / "tools" / "control-plane", "--switches"], stdout=subprocess.PIPE, text=True, check=True)
    return Path(done.stdout.split("\n")[-2])


def port(index, *, lanes=8, speed=400_000, fec="rs", mtu=9100, neighbour=None, **other):
    """One port as SONiC names it: Ethernet0, Ethernet8 … by lanes, with the alias etp1, etp2 … that is on its face.
    `neighbour`: {"system", "chassis", "port", …} as LLDP says it."""
    made = {"name": f"Ethernet{index * lanes}", "alias": f"etp{index + 1}", "speed": speed, "lanes": lanes, "fec": fec, "mtu": mtu}
    if neighbour:
        made["neighbour"] = neighbour
    return {**made, **other}


def leaf(hostname, ports=64, *, name=None, dialect="sonic", hwsku="generic", qos="azure", config=None, rows=None,
         neighbours=None, mac="", each=None, **other):
    """A switch of so many ports, or of these ones. `qos`: "azure", SONiC's generic template, or "none". `config`: tables
    as a config_db.json has them, each in the place of the whole table (what `switch render` made, for instance).
    `rows`: {"CONFIG_DB": {"PORT|Ethernet0": {"mtu": "1500"}}} on top. `neighbours`: by port. `each`: what all ports have in
    common. `other`: of peer/switch.go's SwitchConfig; `clientAuthority=True` is that of the switches themselves."""
    if isinstance(ports, int):
        ports = [port(index, **(each or {})) for index in range(ports)]
    for one in ports:
        if neighbours and one["name"] in neighbours:
            one["neighbour"] = neighbours[one["name"]]
    # Each has a chassis of its own, the same one in each run.
    mac = mac or "52:54:00:" + zlib.crc32(hostname.encode()).to_bytes(4, "big")[1:].hex(":")
    made = {"hostname": hostname, "hwsku": hwsku, "mac": mac, "ports": ports, "qos": qos}
    if config:
        made["config"] = config
    if rows:
        made["rows"] = rows
    return {"name": name or hostname, "dialect": dialect, "leaf": made, **other}


def _rows_of(operation):
    """What one operation of a JSON Patch sets in the switch's own tables."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:]]
    value = operation.get("value")
    if len(steps) == 1:
        return {f"{steps[0]}|{key}": fields for key, fields in (value or {}).items()}
    if len(steps) == 2:
        return {f"{steps[0]}|{steps[1]}": value}
    return {f"{steps[0]}|{steps[1]}": {steps[2]: value}}


def rendered_rows(data, policy):
    """What the parts of a ConfigMap set, as its text has them run: config load, then config apply-patch."""
    load = json.loads(data.get(f"{policy}.load.json", "{}"))
    for table, entries in load.items():
        yield {f"{table}|{key}": fields for key, fields in entries.items()}
    for operation in json.loads(data[f"{policy}.patch.json"]):
        yield _rows_of(operation)


class Authority:
    """An authority of its own, by openssl, and what it signs: `issue` gives the files of a certificate and its key."""

    def __init__(self, folder, name="switches"):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.certificate, self._key = self.folder / "ca.crt", self.folder / "ca.key"
        run(["openssl", "req", "-x509", *self._new_key(self._key), "-out", self.certificate, "-days", "2",
             "-subj", f"/CN={name} authority", "-addext", "basicConstraints=critical,CA:TRUE"])
        (self.folder / "index.txt").touch()
        (self.folder / "ca.conf").write_text(
            f"[ca]\ndefault_ca = own\n[own]\nnew_certs_dir = {self.folder}\ndatabase = {self.folder}/index.txt\n"
            "rand_serial = yes\ndefault_md = sha256\npolicy = any\nunique_subject = no\ncopy_extensions = copy\n"
            "[any]\ncommonName = supplied\n")

    @staticmethod
    def _new_key(file):
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", file]

    def issue(self, label, names, *, expired=False):
        certificate, key, request = (self.folder / f"{label}{end}" for end in (".crt", ".key", ".csr"))
        if not certificate.exists():
            said = ",".join(f"IP:{name}" if name[0].isdigit() else f"DNS:{name}" for name in names)
            run(["openssl", "req", *self._new_key(key), "-out", request, "-subj", f"/CN={label}",
                 "-addext", f"subjectAltName={said}", "-addext", "extendedKeyUsage=serverAuth,clientAuth"])
            ends = ["-startdate", "20200101000000Z", "-enddate", "20200201000000Z"] if expired else ["-days", "2"]
            run(["openssl", "ca", "-batch", "-notext", "-config", self.folder / "ca.conf", "-cert", self.certificate,
                 "-keyfile", self._key, "-in", request, "-out", certificate, *ends])
        return {"certificate": str(certificate), "key": str(key)}


class Redis:
    """A redis-server of one's own, in memory, as SONiC has it."""

    def __init__(self, folder):
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.process = Process("redis-server", [
            "redis-server", "--port", self.port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
            "--dir", folder, "--databases", 16], Path(folder) / "redis.log")

    def start(self):
        self.process.start()
        wait_for(lambda: self.cli("PING") == "PONG", "redis-server to answer", failed=self.process.died)

    def cli(self, *words, database=0):
        """What Debian's own redis-cli prints."""
        return run(["redis-cli", "-p", self.port, "-n", database, *words]).stdout.rstrip("\n")


class Switch:
    """One of the switches: what happens to it, from outside."""

    def __init__(self, owner, name, number):
        self._owner, self.name, self.port = owner, name, number
        self.address = f"127.0.0.1:{number}"
        self.server_name = f"{name}.{DOMAIN}"

    def _tell(self, what, value=None, method="POST"):
        self._owner.ask(method, f"/switches/{self.name}/{what}", value)

    def faults(self, **faults):
        """Sets what is wrong; all else is mended. The words are those of Faults in peer/faults.go, as with_out → withOut."""
        self._tell("faults", {_camel(word): value for word, value in faults.items()}, "PUT")

    def mend(self):
        self._tell("faults", method="DELETE")

    def wrong_certificate(self, kind):
        """`kind`: "name" of another host, "expired", "authority" of somebody else."""
        self.faults(**self._owner.wrong_certificate(kind))

    def counters(self, values):
        """{"Ethernet48": {field: number}, "Ethernet48:3": {…}}: they are so from now on."""
        self._tell("counters", {name: {field: str(value) for field, value in fields.items()} for name, fields in values.items()})

    def rates(self, values):
        """The same: so much is added each second. {} for a port or a queue stops all of it."""
        self._tell("rates", values)

    def flap(self, name, times=1):
        self._tell("flaps", {name: times})

    def link(self, name, up):
        self._tell("links", {name: up})

    def rows(self, database, rows):
        """{"PORT|Ethernet0": {"mtu": "1500"}}; None deletes a row."""
        self._tell("rows", {database: rows})

    def restart(self, away_ms=100):
        self._tell("restart", {"awayMs": away_ms})

    def close_streams(self):
        self._tell("closeStreams", {})

    def row(self, database, key):
        return self._owner.ask("GET", f"/switches/{self.name}/row?" + urllib.parse.urlencode({"database": database, "key": key}))

    def asked(self):
        """What clients did: connections, capabilities, gets, paths, subscribes, streams, refusedLogins."""
        return next(one for one in self._owner.ask("GET", "/switches") if one["name"] == self.name)


def _camel(word):
    first, *rest = word.split("_")
    return first + "".join(part.capitalize() for part in rest)


class Switches:
    """Switches in one process, and their redis-server if they have one. Tables are in memory without `redis`; with it each
    switch has its name as prefix of its keys, or none if it is alone: then its redis is that of a switch."""

    def __init__(self, switches, *, redis=False, tick_ms=1000, folder=None):
        self.folder = Path(folder) if folder else new_run_folder("switches")
        self._own_folder = folder is None
        self.authority = Authority(self.folder / "authority")
        self.redis = Redis(self.folder) if redis else None
        self._config = {"tickMs": tick_ms, "redis": self.redis.address if redis else "", "switches": [
            self._complete(one, len(switches)) for one in switches]}
        self.process = Process("switch-peer", [binaries() / "switch-peer", "--config", self.folder / "peer.json"],
                               self.folder / "peer.log")
        self._by_name, self._control = {}, None

    def _complete(self, one, count):
        # One certificate for many: making each costs 30 ms.
        names = [f"{one['name']}.{DOMAIN}"] if count <= 16 else [f"*.{DOMAIN}"]
        label = one["name"] if count <= 16 else "all"
        made = {**self.authority.issue(label, [*names, "localhost", "127.0.0.1"]), **one}
        if made.get("clientAuthority") is True:
            made["clientAuthority"] = str(self.authority.certificate)
        if self.redis and count > 1:
            made.setdefault("redisPrefix", one["name"] + "/")
        return made

    def wrong_certificate(self, kind):
        if kind == "name":
            return self.authority.issue("another", [f"another.{DOMAIN}"])
        if kind == "expired":
            return self.authority.issue("expired", [f"*.{DOMAIN}", "localhost", "127.0.0.1"], expired=True)
        if kind == "authority":
            return Authority(self.folder / "stranger", "stranger").issue("stranger", [f"*.{DOMAIN}", "localhost", "127.0.0.1"])
        raise ValueError(f"{kind!r} is no way for a certificate to be wrong")

    def start(self):
        self._uninstall = stop_at_exit(self.close)
        if self.redis:
            self.redis.start()
        (self.folder / "peer.json").write_text(json.dumps(self._config))
        self.process.start()
        wait_for(self._listening, "the switches to listen", timeout=60, failed=self.process.died)
        return self

    def _listening(self):
        lines = [json.loads(line) for line in self.process.log.read_text().splitlines() if line.startswith("{")]
        for line in lines:
            if "name" in line:
                self._by_name[line["name"]] = Switch(self, line["name"], line["port"])
            else:
                self._control = line["control"]
        return self._control

    def ask(self, method, path, value=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self._control}{path}", method=method,
                                         data=None if value is None else json.dumps(value).encode())
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                text = answer.read()
        except urllib.error.HTTPError as problem:
            raise ValueError(f"{method} {path}: {problem.read().decode()}") from None
        return json.loads(text) if text else None

    def __getitem__(self, name):
        return self._by_name[name]

    def __iter__(self):
        return iter(self._by_name.values())

    def close(self):
        self._uninstall()
        self.process.stop()
        if self.redis:
            self.redis.process.stop()
        if self._own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.close()
