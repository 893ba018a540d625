"""What sriov-network-device-plugin makes of its config.json, written down from its sources: no Go module of it is to be had
that could be asked, as tests/cluster/plugin_config asks the other plugin. The facts are those of v3.11.0, and of its
master of June 2026:

  pkg/types/types.go                    ResourceConfList, ResourceConfig and the selectors: names and types
  cmd/sriovdp/main.go                   where the file is, and the prefix of names where an entry has none
  cmd/sriovdp/manager.go                readConfig, validConfigs: what it ends of, and which entries it leaves out
  pkg/factory/factory.go                parseObjectOrSlice: one object of selectors, or a list of one at least
  pkg/utils/utils.go                    ValidResourceName
  pkg/netdevice/netDeviceProvider.go, pkg/auxnetdevice/auxNetDeviceProvider.go    ValidConfig of each type of devices
  pkg/resources/deviceSelectors.go      isSelected: virtual functions behind the name of a physical one
  pkg/resources/server.go               NewResourceServer: the socket of each resource

Stricter than the plugin in what it passes over in silence, since it never is meant: a key that it does not know or that
stands twice, null, another case of a key, an entry that it leaves out, a text that no device can have."""

import json
import re

FILE = "/etc/pcidp/config.json"
PREFIX = "intel.com"
# Of the host, by their own names: it is registered with the kubelet in one of both.
SOCKETS = "/var/lib/kubelet/plugins_registry"
OLD_SOCKETS = "/var/lib/kubelet/device-plugins"
LONGEST_PATH = 107  # sun_path, without its end

NAME = re.compile(r"[a-zA-Z0-9_-]+")
# As the kernel names them in /sys/bus/pci/devices; selectors are compared with that letter by letter.
PCI_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
FUNCTIONS = r"(#\d+(-\d+)?(,\d+(-\d+)?)*)?"
# An interface, or the address of a physical function, and which of its functions: eth0#0-3,5.
INTERFACE = re.compile(r"[^/:#\s]{1,15}" + FUNCTIONS)
ROOT_DEVICE = re.compile(PCI_ADDRESS.pattern + FUNCTIONS)


class Refused(Exception):
    """Why it would end, or do less than what is written there."""


def text(value, where):
    if not isinstance(value, str):
        raise Refused(f"{where} is no text")


def flag(value, where):
    if not isinstance(value, bool):
        raise Refused(f"{where} is neither true nor false")


def texts(value, where):
    if not isinstance(value, list) or not value:
        raise Refused(f"{where} is no list of texts")
    for one in value:
        text(one, f"an entry of {where}")


def anything(value, where):
    if value is None:
        raise Refused(f"{where} is null")


def matching(form):
    def check(value, where):
        texts(value, where)
        for one in value:
            if not form.fullmatch(one):
                raise Refused(f"{where}: no device is called {one!r}")
    return check


def one_of(*words):
    def check(value, where):
        if value not in words:
            raise Refused(f"{where} is {value!r}, and none of {', '.join(words)}")
    return check


def of_each_device(value, where):
    """Texts by name, by device, or by * for all of them."""
    for device, facts in members(value, where).items():
        for key, fact in members(facts, f"{where}.{device}").items():
            text(fact, f"{where}.{device}.{key}")


DEVICE = {"vendors": texts, "devices": texts, "drivers": texts}
OF_PCI = {"pciAddresses": matching(PCI_ADDRESS)}
OF_NET = {"pfNames": matching(INTERFACE), "rootDevices": matching(ROOT_DEVICE), "linkTypes": texts, "isRdma": flag,
          "acpiIndexes": texts, "needVhostNet": flag}
# By deviceType, which is netDevice where it is absent.
SELECTORS = {
    "netDevice": DEVICE | OF_PCI | OF_NET | {"ddpProfiles": texts, "vdpaType": one_of("virtio", "vhost"), "pKeys": texts},
    "accelerator": DEVICE | OF_PCI,
    "auxNetDevice": DEVICE | OF_NET | {"auxTypes": texts},
}
LIST = {"resourceList": anything}
RESOURCE = {"resourcePrefix": text, "resourceName": text, "deviceType": one_of(*SELECTORS), "excludeTopology": flag,
            "selectors": anything, "additionalInfo": of_each_device}


def members(value, where):
    if not isinstance(value, dict):
        raise Refused(f"{where} is no object")
    return value


def known(value, keys, where):
    """An object that has none but these keys, each of which checks its value."""
    for key, member in members(value, where).items():
        if key not in keys:
            raise Refused(f"{where}: unknown field {key!r}")
        keys[key](member, f"{where}.{key}")
    return value


def once(pairs):
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise Refused(f"{key!r} stands twice in an object")
    return dict(pairs)


def selectors_of(entry, kind, where):
    if "selectors" not in entry:
        raise Refused(f"{where} has no selectors")  # the plugin reads them through a null pointer
    given = entry["selectors"]
    listed = given if isinstance(given, list) else [given]
    if not listed:
        raise Refused(f"{where}.selectors is empty")
    for number, selector in enumerate(listed):
        place = f"{where}.selectors[{number}]"
        known(selector, SELECTORS[kind], place)
        if selector.get("isRdma") and "vdpaType" in selector:
            raise Refused(f"{place}: isRdma and vdpaType exclude each other")
        if kind == "auxNetDevice" and set(selector.get("auxTypes", [])) != {"sf"}:
            raise Refused(f"{place}: auxTypes has to be sf")
    return listed


def resource_of(entry, where):
    known(entry, RESOURCE, where)
    name = entry.get("resourceName", "")
    if not NAME.fullmatch(name):
        raise Refused(f"{where}: resource name {name!r} contains invalid characters")
    prefix = entry.get("resourcePrefix") or PREFIX
    if len(f"{SOCKETS}/{prefix}_{name}.sock") > LONGEST_PATH:
        raise Refused(f"{where}: the socket of {prefix}/{name} has too long a path")
    kind = entry.get("deviceType", "netDevice")
    return {"name": f"{prefix}/{name}", "deviceType": kind, "selectors": selectors_of(entry, kind, where)}


def read(config):
    """The resources of the file's text, in its order: the whole name, the type of the devices, and a list of selectors of
    which a device has to meet one. Raises Refused."""
    try:
        whole = json.loads(config, object_pairs_hook=once)
    except ValueError as problem:
        raise Refused(f"the file is no JSON: {problem}") from problem
    entries = known(whole, LIST, "the file").get("resourceList")
    if not isinstance(entries, list) or not entries:
        raise Refused("resourceList has no resource")
    resources = [resource_of(entry, f"resourceList[{number}]") for number, entry in enumerate(entries)]
    names = [one["name"] for one in resources]
    for name in names:
        if names.count(name) > 1:
            raise Refused(f"resource name {name!r} already exists")
    return resources
