#!/usr/bin/python3
"""CPU and memory of one agent: bench/agent.py [--seconds S] [--machine SHAPE] [--bin DIR].

First one look and one pass over the counters of a recorded machine. Then an agent at rest, twice, on a real API
server: on that machine, and on this one with the test driver of an HGX H100 in the agent's child process, as on a GPU
node. The first minute (start and publication) does not count; the time after it holds whole looks, one a minute."""

import argparse
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "cluster"), str(ROOT / "tests" / "support")]

import machines  # noqa: E402: the path above comes first
from bed import ControlPlane, Heddle, Nodes, path  # noqa: E402
from bed.process import Process  # noqa: E402

# What mlx5 has in sysfs and, by eight priorities, in ethtool.
COUNTERS = {
    "counters": """excessive_buffer_overrun_errors link_downed link_error_recovery local_link_integrity_errors
        multicast_rcv_packets multicast_xmit_packets port_rcv_constraint_errors port_rcv_data port_rcv_errors
        port_rcv_packets port_rcv_remote_physical_errors port_rcv_switch_relay_errors port_xmit_constraint_errors
        port_xmit_data port_xmit_discards port_xmit_packets port_xmit_wait symbol_error unicast_rcv_packets
        unicast_xmit_packets VL15_dropped""",
    "hw_counters": """duplicate_request implied_nak_seq_err lifespan local_ack_timeout_err np_cnp_sent
        np_ecn_marked_roce_packets out_of_buffer out_of_sequence packet_seq_err req_cqe_error req_cqe_flush_error
        req_remote_access_errors req_remote_invalid_request req_transport_retries_exceeded resp_cqe_error
        resp_cqe_flush_error resp_local_length_error resp_remote_access_errors rnr_nak_retry_err roce_adp_retrans
        roce_adp_retrans_to roce_slow_restart roce_slow_restart_cnps roce_slow_restart_trans rp_cnp_handled
        rp_cnp_ignored rx_atomic_requests rx_icrc_encapsulated rx_read_requests rx_write_requests"""}
STATISTICS = [f"{way}_prio{priority}_{what}" for way in ("rx", "tx") for priority in range(8)
              for what in ("bytes", "packets", "pause", "pause_duration", "pause_transition", "discards")] + [
    "rx_global_pause", "tx_global_pause", "tx_pause_storm_warning_events", "tx_pause_storm_error_events",
    "rx_discards_phy", "rx_pcs_symbol_err_phy", "rx_crc_errors_phy"] + [
    f"{way}{queue}_{what}" for way in ("rx", "tx") for queue in range(64)
    for what in ("packets", "bytes", "recover", "csum_none", "stopped", "wake")]


def add_counters(machine):
    """The generator's machines have none."""
    for port in Path(machine).glob("sys/class/infiniband/*/ports/*"):
        for folder, names in COUNTERS.items():
            (port / folder).mkdir()
            for name in names.split():
                (port / folder / name).write_text("123456\n")
        driver = port.parents[1] / "device" / "driver"
        if not driver.is_symlink():
            driver.symlink_to("../../../../../../bus/pci/drivers/mlx5_core")
    (Path(machine) / "ethtool").mkdir()
    for netdev in Path(machine).glob("sys/class/net/*"):
        (netdev / "carrier_changes").write_text("2\n")
        (Path(machine) / "ethtool" / netdev.name).write_text(
            "NIC statistics:\n" + "".join(f"     {name}: 123456\n" for name in STATISTICS))


def processes(pid):
    """The agent and its children."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (task / "children").read_text().split()]
    return found


def cpu_ms(pid):
    """By the scheduler's nanoseconds: ticks of 10 ms are too coarse for what an agent uses in minutes."""
    return sum(int((task / "schedstat").read_text().split()[0])
               for task in Path(f"/proc/{pid}/task").iterdir()) / 1e6


def memory_mb(pid):
    """Resident, and its share of it: a page that agent and child both map counts half for each."""
    fields = {line.split(":")[0]: line.split()[1] for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]}
    return int(fields["Rss"]) / 1e3, int(fields["Pss"]) / 1e3


def measure(name, daemon, seconds):
    before = {pid: cpu_ms(pid) for pid in processes(daemon.pid)}
    started = time.monotonic()
    time.sleep(seconds)
    passed = time.monotonic() - started
    for number, pid in enumerate(processes(daemon.pid)):
        used = cpu_ms(pid) - before.get(pid, 0)
        resident, share = memory_mb(pid)
        print(f"| {name}, {'the child' if number else 'the agent'} | {used / passed * 60:.0f} ms a minute "
              f"| {used / passed / 10:.3f} % | {resident:.1f} MB | {share:.1f} MB |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=180)
    parser.add_argument("--machine", default="dgx-a100", help="a shape of tests/support/machines.py")
    parser.add_argument("--bin", default=str(ROOT / "build" / "release" / "bin"))
    parser.add_argument("--nvml", default=str(ROOT / "build" / "dev" / "nvml" / "libnvidia-ml.so.1"),
                        help="the test driver, which the release preset does not build")
    arguments = parser.parse_args()
    binaries = Path(arguments.bin)
    with ControlPlane("agent", components=("etcd", "apiserver")) as plane:
        heddle = Heddle(plane, binaries)
        # Made here: install() would wait for the default account, which no controller-manager makes.
        plane.rest.create(path("namespaces"), {"metadata": {"name": heddle.namespace}})
        heddle.install(wait=False)
        for name in ("recorded", "live"):
            plane.create_all(path("nodes"), [Nodes.body(name)])
            plane.create_all(path("nodetopologies"), [
                {"apiVersion": "heddle.dev/v1alpha1", "kind": "NodeTopology", "metadata": {"name": name}, "spec": {}}])
        machine = machines.write({"nodes": [{"name": "recorded", "shape": arguments.machine},
                                            {"name": "live", "shape": "hgx-h100"}]}, str(plane.folder / "machines"))
        add_counters(machine["recorded"])
        print(arguments.machine, flush=True)
        subprocess.run([binaries / "agents_bench", "look", machine["recorded"]], check=True)
        account = {name: plane.account_kubeconfig("heddle-system", "heddle-nodeagent", name) for name in machine}
        agents = {
            f"recorded {arguments.machine}": Process(
                "recorded", [binaries / "heddle-nodeagent", "--kubeconfig", account["recorded"], "--node", "recorded",
                             "--machine", machine["recorded"]], plane.logs / "recorded.log"),
            "this host with an HGX H100's driver": Process(
                "live", [binaries / "heddle-nodeagent", "--kubeconfig", account["live"], "--node", "live", "--nvml",
                         arguments.nvml], plane.logs / "live.log",
                {"HEDDLE_TEST_NVML": f"{machine['live']}/nvml.yaml"})}
        print(f"\n| at rest, {arguments.seconds} s | CPU | of a core | resident | proportional (PSS) |\n|---|---|---|---|---|")
        for name, daemon in agents.items():
            daemon.start()
            heddle.wait_published([daemon.name])
            time.sleep(60)
            measure(name, daemon, arguments.seconds)
            daemon.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
