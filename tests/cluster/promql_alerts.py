"""Made-up scrapes, and what Prometheus' own engine makes of the chart's alerts on them."""

import json
import re
import subprocess
from dataclasses import dataclass, field

from promql_expressions import RULES, promql_binary

STEP = 30  # seconds between two scrapes, and between two evaluations: monitoring.podMonitors.interval
MINUTE, HOUR = 60, 3600

# Two replicas of the extender, two of the operator, agents of two nodes; all is well.
PLANNER = 'instance="10.0.0.1:8011",node="infra-0"'
SPARE = 'instance="10.0.0.2:8011",node="infra-1"'
RAIL = 'instance="10.0.1.17:9559",node="gpu-017",nic="mlx5_3",port="1",rail="3",leaf="su1-r3"'
STORAGE = 'instance="10.0.1.18:9559",node="gpu-018",nic="mlx5_3",port="1"'
HEALTHY = {
    f"heddle_extender_leading{{{PLANNER}}}": 1,
    f"heddle_extender_leading{{{SPARE}}}": 0,
    # The time of the last key, and of one that never led.
    f"heddle_extender_last_reconcile_timestamp_seconds{{{PLANNER}}}": "now",
    f"heddle_extender_last_reconcile_timestamp_seconds{{{SPARE}}}": 0,
    f'heddle_extender_watch_age_seconds{{{PLANNER},resource="pods"}}': 55,
    f'heddle_extender_watch_age_seconds{{{PLANNER},resource="nodes"}}': 12,
    f'heddle_extender_gangs{{{PLANNER},state="running"}}': 7,
    f'heddle_extender_gangs{{{PLANNER},state="waiting"}}': 0,
    f'heddle_extender_gangs{{{PLANNER},state="stalled"}}': 0,
    f'heddle_extender_gangs{{{PLANNER},state="degraded"}}': 0,
    f"heddle_extender_fragmentation_ratio{{{PLANNER}}}": 0.2,
    f'heddle_extender_gangs_that_fit{{{PLANNER},nodes="1"}}': 40,
    f'heddle_extender_gangs_that_fit{{{PLANNER},nodes="8"}}': 3,
    f'heddle_extender_unusable_nodes{{{PLANNER},reason="Cordoned"}}': 4,
    f'heddle_extender_unusable_nodes{{{PLANNER},reason="Excluded"}}': 2,
    f'heddle_extender_unusable_nodes{{{PLANNER},reason="NotReady"}}': 0,
    # Ten verbs a second, each below 0.1 s.
    f'heddle_extender_request_seconds_bucket{{{PLANNER},verb="filter",le="0.1"}}': "10/s",
    f'heddle_extender_request_seconds_bucket{{{PLANNER},verb="filter",le="3"}}': "10/s",
    f'heddle_extender_request_seconds_bucket{{{PLANNER},verb="filter",le="+Inf"}}': "10/s",
    'heddle_operator_leading{instance="10.0.0.3:8081"}': 0,
    'heddle_operator_leading{instance="10.0.0.4:8081"}': 1,
    'heddle_nodes_stale{instance="10.0.0.4:8081"}': 0,
    'heddle_fabric_cabling_faults{fabric="infiniband"}': 0,
    'heddle_fabric_suspects{instance="10.0.0.4:8081",fabric="roce",symptom="Flap"}': 0,
    'heddle_fabric_suspects{instance="10.0.0.4:8081",fabric="roce",symptom="Errors"}': 0,
    'heddle_switches{instance="10.0.0.4:8081",answers="true"}': 12,
    'heddle_switches{instance="10.0.0.4:8081",answers="false"}': 0,
    'heddle_ufm_answers{instance="10.0.0.4:8081",fabric="infiniband"}': 1,
    'heddle_cables{instance="10.0.0.4:8081",verdict="Lossless"}': 96,
    'heddle_cables{instance="10.0.0.4:8081",verdict="Contradiction"}': 0,
    'heddle_cables{instance="10.0.0.4:8081",verdict="Unproved"}': 0,
    f'heddle_link_verdict{{{RAIL},verdict="Healthy"}}': 1,
    f'heddle_link_verdict{{{RAIL},verdict="Degraded"}}': 0,
    f'heddle_link_verdict{{{RAIL},verdict="Flapping"}}': 0,
    f'heddle_link_verdict{{{RAIL},verdict="Down"}}': 0,
    f'heddle_link_info{{{RAIL},netdev="ibp3",role="compute",transport="InfiniBand",leaf_port="17"}}': 1,
    # A second port for storage, which nobody cabled; on the other node that name is a rail's.
    f'heddle_link_verdict{{{STORAGE},verdict="Down"}}': 1,
    f'heddle_link_info{{{STORAGE},role="storage",transport="InfiniBand"}}': 1,
    'heddle_gpu_healthy{node="gpu-017",gpu="2",pci="0000:3b:00.0"}': 1,
    'heddle_gpu_healthy{node="gpu-018",gpu="2",pci="0000:3b:00.0"}': 1,
    'heddle_lossless_ports{node="gpu-017",state="Compliant"}': 8,
    'heddle_lossless_ports{node="gpu-017",state="Drifted"}': 0,
    'heddle_lossless_ports{node="gpu-017",state="Pending"}': 0,
}


def series_of(part):
    """The names in HEALTHY of which `part` is a part; for a story that changes them."""
    found = [name for name in HEALTHY if part in name]
    if not found:
        raise KeyError(f"no series of HEALTHY has {part} in its name")
    return found


@dataclass
class Story:
    """A few hours of scrapes: as HEALTHY, but where `changes` says otherwise.

    changes: [(from second, until second, {series, or a part of its name: value})]; None: it is not scraped.
    """

    lasts: int
    changes: list = field(default_factory=list)

    def values(self, name):
        """Of each scrape in Prometheus' notation."""
        steps = self.lasts // STEP + 1
        chosen = [HEALTHY.get(name)] * steps
        for since, until, changed in self.changes:
            for part, value in changed.items():
                if part == name or (part not in HEALTHY and part in name):
                    chosen[since // STEP:until // STEP] = [value] * len(chosen[since // STEP:until // STEP])
        points, count, stamp = [], 0.0, 0
        for step, value in enumerate(chosen):
            if value == "now":
                stamp = value = step * STEP
            elif value == "stuck":
                value = stamp
            elif isinstance(value, str):
                count += float(value.removesuffix("/s")) * STEP
                value = count
            points.append("stale" if value is None else f"{value:g}")
        return _runs(points)

    def load(self):
        names = list(HEALTHY)
        for _, _, changed in self.changes:
            for part in changed:
                if part.endswith("}") and part not in names:
                    names.append(part)  # one that healthy clusters do not have
                elif part not in names:
                    series_of(part)
        return f"load {STEP}s\n" + "".join(f"  {name} {self.values(name)}\n" for name in names)


def _runs(points):
    """Equal ones as one word: 5x3 is four of them."""
    words, at = [], 0
    while at < len(points):
        length = next((n for n in range(at, len(points)) if points[n] != points[at]), len(points)) - at
        single = points[at] == "stale"
        words += [points[at]] * length if single or length == 1 else [f"{points[at]}x{length - 1}"]
        at += length
    return " ".join(words)


@dataclass
class Fired:
    alert: str
    labels: dict
    summary: str
    pending: int
    firing: int  # -1: it never did
    resolved: int  # -1: it was not until the end


def tell(stories, rules=RULES):
    """For each story the alerts that were pending or fired on it, in the order of their coming."""
    asked = [{"rules": str(rules), "load": one.load(), "seconds": one.lasts, "step": STEP} for one in stories]
    said = json.loads(subprocess.run([promql_binary(), "--alerts"], input=json.dumps(asked), capture_output=True,
                                     text=True, check=True).stdout)
    for one in said:
        if one["error"]:
            raise ValueError(one["error"])
    return [[Fired(alert["alert"], alert["labels"], alert["annotations"]["summary"], alert["pending"], alert["firing"],
                   alert["resolved"]) for alert in one["alerts"]] for one in said]


def seconds(text):
    """10m, 6h."""
    number, unit = re.fullmatch(r"(\d+)([smh])", text).groups()
    return int(number) * {"s": 1, "m": MINUTE, "h": HOUR}[unit]
