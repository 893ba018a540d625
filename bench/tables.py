#!/usr/bin/python3
"""Measures again and writes the tables of docs/placement.md: bench/tables.py [quality] [growth] [kueue]; all three if
none is named. Needs the release build (tools/build release quality_bench growth_bench). About 10 minutes."""

import datetime
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "placement.md"
COMMANDS = {
    "quality": ["build/release/bin/quality_bench"],
    "growth": ["build/release/bin/growth_bench"],
    "kueue": ["/usr/bin/python3", "bench/kueue.py"],
}


def replace(page, name, text):
    pattern = re.compile(rf"(<!-- {name}: begin -->\n).*?(<!-- {name}: end -->)", re.DOTALL)
    if not pattern.search(page):
        sys.exit(f"{PAGE.name} has no place marked {name}")
    return pattern.sub(lambda match: match.group(1) + text + match.group(2), page)


def main():
    names = sys.argv[1:] or list(COMMANDS)
    for name in names:
        if name not in COMMANDS:
            sys.exit(f"{name}: one of {', '.join(COMMANDS)}")
        done = subprocess.run(COMMANDS[name], cwd=ROOT, text=True, stdout=subprocess.PIPE, check=True)
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, text=True, capture_output=True)
        head = f"`{' '.join(COMMANDS[name])}`: {os.cpu_count()} cores, release build on {commit.stdout.strip()}, " \
               f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}.\n\n"
        page = replace(PAGE.read_text(), name, head + done.stdout.strip() + "\n")
        PAGE.write_text(page)


if __name__ == "__main__":
    main()
