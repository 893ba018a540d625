"""A network of the bed's own, for pods that reach the API server as on any cluster: by the address of the Service
`kubernetes` and by its name.

Everything lies in one network namespace that ends with the test: the control plane, a bridge that the real node's pods
hang on, the addresses of the two Services that matter (in place of kube-proxy), and a DNS server that knows one name.
"""

import ctypes
import os
import socket
import struct
import threading

from bed.process import run

CLONE_NEWNET = 0x40000000
BRIDGE = "pods0"
NODE_ADDRESS = "10.245.0.1"       # the bridge's, and so the way out of every pod
PODS = NODE_ADDRESS.rpartition(".")[0]
KUBERNETES = "10.96.0.1"          # of the Service, whose port is 443
DNS = "10.96.0.10"
DOMAIN = "cluster.local"

# As a CNI plugin: a pair of interfaces for each pod, one end on the bridge. It ends with the pod's namespace.
PLUGIN = f"""#!/bin/sh
set -eu
case $CNI_COMMAND in
  VERSION) echo '{{"cniVersion": "0.4.0", "supportedVersions": ["0.3.0", "0.3.1", "0.4.0"]}}' ;;
  ADD)
    exec 9>>"$(dirname "$0")/given"
    flock 9
    number=$(($(wc -l <"$(dirname "$0")/given") + 2))
    echo "$CNI_CONTAINERID" >&9
    ip link add "pod$number" type veth peer name "in$number" 1>&2
    ip link set "in$number" netns "$CNI_NETNS" name "$CNI_IFNAME" 1>&2
    ip link set "pod$number" master {BRIDGE} up 1>&2
    nsenter --net="$CNI_NETNS" sh -euc "
      ip link set lo up
      ip address add {PODS}.$number/24 dev $CNI_IFNAME
      ip link set $CNI_IFNAME up
      ip route add default via {NODE_ADDRESS}" 1>&2
    echo '{{"cniVersion": "0.4.0", "interfaces": [{{"name": "'$CNI_IFNAME'", "sandbox": "'$CNI_NETNS'"}}],
           "ips": [{{"version": "4", "interface": 0, "address": "{PODS}.'$number'/24"}}]}}' ;;
esac
"""


def enter():
    """This process and all that it starts from here on are in a network of their own. Before any thread starts."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "no network namespace of its own: " + os.strerror(ctypes.get_errno()))
    run(["ip", "link", "set", "lo", "up"])
    # An address of its own: else it takes the lowest of its ports', and with a pod that goes all others lose their way out
    # for the half minute in which they believe in the old one.
    run(["ip", "link", "add", BRIDGE, "address", "02:00:00:00:00:01", "type", "bridge"])
    run(["ip", "address", "add", f"{NODE_ADDRESS}/24", "dev", BRIDGE])
    run(["ip", "link", "set", BRIDGE, "up"])
    for address in (KUBERNETES, DNS):
        run(["ip", "address", "add", f"{address}/32", "dev", "lo"])


class ClusterDns:
    """Answers for kubernetes.default.svc; every other name does not exist."""

    NAME = f"kubernetes.default.svc.{DOMAIN}"

    def __init__(self):
        self.asked = []  # names, in order
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((DNS, 53))
        self._ended = False
        self._thread = threading.Thread(target=self._serve, name="dns", daemon=True)
        self._thread.start()

    def close(self):
        """The address is another's from here on."""
        self._ended = True
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as waker:  # who waits on the socket holds the address
            waker.sendto(b"", (DNS, 53))
        self._thread.join(10)
        self._socket.close()

    def _serve(self):
        while not self._ended:
            query, sender = self._socket.recvfrom(4096)
            try:
                self._socket.sendto(self._answer(query), sender)
            except (IndexError, struct.error, UnicodeDecodeError):
                continue  # no query; whoever sent it asks again

    def _answer(self, query):
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode())
            at += 1 + query[at]
        kind = struct.unpack_from("!H", query, at + 1)[0]
        name = ".".join(labels).lower()
        self.asked.append(name)
        known = name == self.NAME
        address = known and kind == 1  # A
        # An authoritative answer; 3: there is no such name.
        header = query[:2] + struct.pack("!HHHHH", 0x8580 | (0 if known else 3), 1, 1 if address else 0, 0, 0)
        record = struct.pack("!HHHIH", 0xC00C, 1, 1, 30, 4) + socket.inet_aton(KUBERNETES) if address else b""
        return header + query[12:at + 5] + record
