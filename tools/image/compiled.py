"""What of the distribution is inside of the programs: templates and inline functions of the headers that they were
compiled with, of which no shared library tells. Ninja's log of the build has the headers, dpkg or the sysroot whose they
are."""

import os
import subprocess
from pathlib import Path

from .sysroot import ThisMachine


def packages(binaries, root):
    """{name: (version, architecture, source package)} of the -dev packages that the programs in `binaries` were compiled
    with, or None where that folder is of no build tree, and so nobody can tell. `root`: what they were linked to."""
    build = binaries.parent
    if not (build / ".ninja_deps").exists():
        return None
    done = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True)
    found = {}
    for place, paths in by_root(headers(done.stdout, build, source_of(build)), root).items():
        found |= place.described(place.owners(paths))
    return found


def headers(log, build, source):
    """Of what `ninja -t deps` prints, the files outside of the tree that libraries and programs of ours read: tests and
    benchmarks are compiled apart."""
    found, ours = set(), False
    for line in log.splitlines():
        if not line.startswith(" "):
            ours = line.startswith("CMakeFiles/") and line.endswith("(VALID)")
        elif ours:
            found.add(os.path.normpath(Path(build, line.strip())))
    return sorted(path for path in found if not any(Path(path).is_relative_to(folder) for folder in (build, source)))


def source_of(build):
    word = "CMAKE_HOME_DIRECTORY:INTERNAL="
    lines = (build / "CMakeCache.txt").read_text().splitlines()
    return Path(next(line.removeprefix(word) for line in lines if line.startswith(word)))


def by_root(paths, root):
    """{root: paths}: a cross compiler's own headers are this machine's."""
    here = ThisMachine()
    found = {}
    for path in map(Path, paths):
        place = root if path.is_relative_to(root.folder) else here
        found.setdefault(place, []).append(path)
    return found
