#!/usr/bin/python3
"""Kueue's own benchmark of topology-aware assignment beside ours, one after the other on this machine:
2,304 pods of one gang on 2,500 nodes in blocks of 16 racks of 16. Needs `go` and what it fetches from the module proxy
(about 1 GB in its cache, minutes the first time); nothing of it stays in the tree."""

import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "kueue"
VERSION = "v0.19.2"
BENCHMARK = "BenchmarkTASFlavorAssignment/nodes=2500/workersOnly"


def run(*command, cwd):
    done = subprocess.run(command, cwd=cwd, text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
    return done.stdout


def build_kueue():
    binary = WORK / "tas.test"
    if binary.exists():
        return binary
    WORK.mkdir(parents=True, exist_ok=True)
    fetch = WORK / "fetch"
    fetch.mkdir(exist_ok=True)
    (fetch / "go.mod").write_text("module fetch\n")
    listed = run("go", "mod", "download", "-json", f"sigs.k8s.io/kueue@{VERSION}", cwd=fetch)
    source = WORK / "source"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(re.search(r'"Dir": "([^"]+)"', listed).group(1), source)
    subprocess.run(["chmod", "-R", "u+w", source], check=True)
    run("go", "test", "-c", "-mod=mod", "-o", str(binary), "./pkg/cache/scheduler", cwd=source)
    return binary


def main():
    binary = build_kueue()
    out = run(str(binary), "-test.run=XXX", f"-test.bench={BENCHMARK}", "-test.benchtime=2s", "-test.count=5",
              cwd=WORK / "source" / "pkg" / "cache" / "scheduler")
    nanoseconds = sorted(int(n) for n in re.findall(r"\s(\d+) ns/op", out))
    if not nanoseconds:
        sys.exit("Kueue's benchmark printed no time")
    kueue = nanoseconds[len(nanoseconds) // 2] / 1e6
    ours = run(str(ROOT / "build/release/bin/growth_bench"), "--kueue", cwd=ROOT)
    print(ours.strip() + "\n")
    planned = float(re.search(r"\| plan, [^|]*\| ([0-9.]+) ms", ours).group(1))
    print(f"Kueue {VERSION}, {BENCHMARK}: {kueue:.2f} ms (median of {len(nanoseconds)} runs of 2 s); "
          f"ours {planned:.3f} ms: {kueue / planned:.0f} times")


if __name__ == "__main__":
    main()
