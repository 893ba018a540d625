"""Of which commit this tree is. git says so, or in a release's archive what `git archive` has written into this file."""

import os
import subprocess

ARCHIVED = "$Format:%H %ct$"  # by .gitattributes


def commit(root, say):
    """(hash, seconds since 1970), of the environment where that names a time, as reproducible builds have it."""
    known = [] if "$" in ARCHIVED else ARCHIVED.split()
    try:
        # An archive may lie unpacked in somebody's repository of other things, whose commit says nothing of it.
        said = _git(root, "ls-files", "--error-unmatch", "LICENSE")
        if said.returncode == 0:
            said = _git(root, "log", "-1", "--format=%H %ct")
            known = said.stdout.split() or known
        why = said.stderr.partition("\n")[0]
    except FileNotFoundError:
        why = "git is not installed"
    if not known:
        say(f"of which commit this tree is nobody knows here ({why}); SOURCE_DATE_EPOCH may name its time, else it is 1970")
    revision, seconds = known or ("unknown", "0")
    return revision, int(os.environ.get("SOURCE_DATE_EPOCH", seconds))


def _git(root, *arguments):
    return subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True, check=False)
