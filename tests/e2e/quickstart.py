#!/usr/bin/python3
"""The commands of docs/quickstart.md, in order, as the bed of a release takes them.

  tests/e2e/quickstart.py                                    prints them as one script
  tests/e2e/run --script <(tests/e2e/quickstart.py)          and what they do
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "quickstart.md"
# Step 1 is a table of what there has to be, step 2 makes the image and brings it to a registry: here it is on the node.
FIRST = 3
NODES = 4  # of the bed
# What is other than on the page. Each has to be there once, or this list is older than the page.
ADAPTED = [
    # No registry; and the agents look at a machine that is played.
    (" \\\n  --set image.registry=registry.example/ai --set scheduler.image.registry=registry.k8s.io", ' --values "$VALUES"'),
    # "A line for each node, within a minute."
    ("kubectl get nt  ", f'until [[ $(kubectl get nt --no-headers 2>/dev/null | grep -c True) == {NODES} ]]; do sleep 0.5; done\n'
                         "kubectl get nt  "),
    # A person looks on until it runs, and stops it.
    ("kubectl get gangs -n team -w ", "until kubectl get gangs -n team | grep 'Running 2/2'; do sleep 0.5; done "),
    # Containers of KWOK's nodes are names and have no logs; that of the real one has begun a moment later.
    ("kubectl logs -n team ", "kubectl wait -n team pod -l batch.kubernetes.io/job-name=first-gang --for=condition=Ready --timeout=60s\n"
                              "kubectl logs --ignore-errors -n team "),
]


@dataclass
class Block:
    step: str  # "5. A Job"
    text: str


def blocks(page=None):
    page = PAGE.read_text() if page is None else page
    found = []
    for part in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        number = re.match(r"(\d+)\. ", title)
        if number and int(number[1]) >= FIRST:
            found += [Block(title, text) for text in re.findall(r"^```sh\n(.*?)^```$", body, re.MULTILINE | re.DOTALL)]
    for written, here in ADAPTED:
        holding = [block for block in found if written in block.text]
        if len(holding) != 1 or holding[0].text.count(written) != 1:
            raise ValueError(f"docs/quickstart.md has not once what tests/e2e/quickstart.py takes otherwise: {written.strip()}")
        holding[0].text = holding[0].text.replace(written, here)
    return found


def script():
    return "set -euo pipefail\n" + "".join(
        f"echo \"== $SECONDS s: {block.step}\"\n{block.text}" for block in blocks()) + 'echo "== $SECONDS s: all of it"\n'


if __name__ == "__main__":
    sys.stdout.write(script())
