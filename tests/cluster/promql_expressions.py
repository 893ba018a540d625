"""The expressions of the chart's alerts and dashboard, what Prometheus' own parser says of them, and the metrics that our
daemons have, by their sources."""

import json
import re
import subprocess
from dataclasses import dataclass
from functools import cache

import yaml

from bed.control_plane import REPOSITORY
from bed.heddle import CHART

RULES = CHART / "rules" / "heddle.yaml"
DASHBOARD = CHART / "dashboards" / "heddle.json"
SOURCES = ("extender/metrics.cc", "operator/metrics.cc", "nodeagent/publish/metrics.cc")
# What a scrape adds: Prometheus itself, and the chart's PodMonitors.
OF_SCRAPES = {"instance", "job", "namespace", "pod", "container", "endpoint", "node"}
OF_HISTOGRAMS = ("_bucket", "_sum", "_count")


@dataclass
class Expression:
    where: str
    text: str
    error: str
    selectors: list  # (metric, {label: (operator, value)})
    grouping: set


def alerts():
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def panels():
    return json.loads(DASHBOARD.read_text())["panels"]


@cache
def expressions():
    found = [(f"alert {rule['alert']}", rule["expr"]) for rule in alerts()]
    found += [(f"panel {panel['title']}", target["expr"]) for panel in panels() for target in panel.get("targets", [])]
    return read(found)


@cache
def promql_binary():
    """tests/cluster/promql, built now if it is not there."""
    folder = subprocess.run([REPOSITORY / "tools" / "control-plane", "--promql"], stdout=subprocess.PIPE, text=True,
                            check=True).stdout.split("\n")[-2]
    return f"{folder}/promql"


def read(found):
    """[(where, text)] as Expressions."""
    said = json.loads(subprocess.run([promql_binary()], input=json.dumps([text for _, text in found]),
                                     capture_output=True, text=True, check=True).stdout)
    return [Expression(where, text, one["error"], [
        (selector["metric"], {match["label"]: (match["type"], match["value"]) for match in selector["matchers"]})
        for selector in one["selectors"]], set(one["grouping"])) for (where, text), one in zip(found, said)]


def family_of(metric):
    """heddle_x_seconds of heddle_x_seconds_bucket, where that is a histogram."""
    for ending in OF_HISTOGRAMS:
        if metric.endswith(ending) and metric.removesuffix(ending) in exported():
            return metric.removesuffix(ending)
    return metric


@cache
def exported():
    """{name of a metric that a daemon registers}."""
    return {name for source in SOURCES for name in re.findall(r'"(heddle_[a-z0-9_]+)"', (REPOSITORY / source).read_text())}


def words_of(matcher):
    """The values that a label has to have to be chosen, or not: a|b of a pattern are two."""
    operator, value = matcher
    return value.split("|") if operator in ("=~", "!~") else [value]
