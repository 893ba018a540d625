"""A cluster to type into: the bed of a release with a person's shell, or with a script, and no test."""

import subprocess
import sys
import time
from pathlib import Path

import quickstart
from release_bed import FAKE, REAL, ReleaseBed

ROOT = Path(__file__).resolve().parents[2]
PROMPT = "PS1='(heddle) \\w \\$ '\n"
WELCOME = """
Kubernetes with nothing of Heddle's but its image. {real} has a real kubelet and containers, and its eight GPUs are names;
{fakes} are KWOK's, whose pods are names, too. kubectl, helm and `kubectl heddle` are those of this checkout.
The quickstart (docs/quickstart.md) goes on at its step 3:

{next}
--values "$VALUES" stands for its two --set: it says where the machine lies that {real}'s agent plays. Logs come from {real}
alone: kubectl logs --ignore-errors. `exit` ends all of it.
"""


class ShellBed(ReleaseBed):
    BED = "shell"


def say(sentence):
    print(f"shell: {sentence}", file=sys.stderr, flush=True)


def run(script=None):
    """The exit code of `script` (a text); without one, of a person's shell, which has none worth telling: 0."""
    try:
        started = time.monotonic()
        say("starting a control plane, a kubelet with the images and three played nodes: about half a minute")
        ShellBed.setUpClass()
        ShellBed.start_fake_agents_once_installed()
        environment = ShellBed.environment()
        say(f"ready after {time.monotonic() - started:.0f} s")
        file = ShellBed.plane.folder / "commands"
        if script is None:
            first = "".join(f"  {line}\n" for line in quickstart.blocks()[0].text.splitlines())
            print(WELCOME.format(real=REAL, fakes=f"{FAKE[0]} to {FAKE[-1]}", next=first), flush=True)
            file.write_text(PROMPT)
            subprocess.run(["bash", "--noprofile", "--rcfile", file, "-i"], env=environment, cwd=ROOT, check=False)
            return 0
        file.write_text(script)
        started = time.monotonic()
        code = subprocess.run(["bash", file], env=environment, cwd=ROOT, stdin=subprocess.DEVNULL, check=False).returncode
        say(f"the script ended with {code} after {time.monotonic() - started:.0f} s")
        return code
    finally:
        ShellBed.doClassCleanups()
        for _, problem, _ in ShellBed.tearDown_exceptions:
            say(f"while it ended: {problem}")
