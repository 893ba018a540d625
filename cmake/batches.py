#!/usr/bin/python3
"""Puts several sources of one room into one file for the compiler: cmake/batches.py OUT SIZE

Nearly all the time of our compiling goes into headers and templates that each source reads and makes anew: eight sources
in one file take little more than two. This writes to the folder OUT files that include up to SIZE sources each, and
batches.cmake, which says of each source where it went: set(BATCH_<source> <file>).

Sources that cannot share a file get different ones: what one keeps to itself (in an unnamed namespace) may not be mentioned
by its neighbour, nor declared by the headers of that. Which batch a source is in follows from its own name,
so a new source changes one or two batches, and ccache still knows the others. The compiler has the last word: where this
reads a name too little it says "redefinition" or "ambiguous", and the better name in one of the two is soon found."""

import functools
import re
import sys
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUCKET = 32  # sources that are dealt out among themselves: a new one moves no others

SPOKEN = re.compile(r'(?<!^} {2})//[^\n]*|R"(\w*)\(.*?\)\1"|(?<!#include )"(?:\\.|[^"\\\n])*"', re.DOTALL | re.MULTILINE)
INCLUDED = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
MENTIONED = re.compile(r"(?<![.\w])(?<!->)[A-Za-z_]\w*")
MACRO = re.compile(r"^#\s*define\s+(\w+)", re.MULTILINE)
TEST = re.compile(r"^(?:TEST|TEST_F|TEST_P|TYPED_TEST|RC_GTEST_PROP)\((\w+),\s*(\w+)")
DECLARED = [
    re.compile(r"^(?:class|struct|union|enum(?: class| struct)?)\s+(\w+)"),
    re.compile(r"^using\s+(\w+)\s*="),
    re.compile(r"^[A-Z][A-Z0-9_]+\((\w+)"),  # MATCHER_P(IsGpu, …)
    re.compile(r"^[A-Za-z_:][\w:&*\s\[\]]*?(?<![:\w])(\w+)\s*(?:\(|\{|=|;|\[)"),
]
NOTHING_NEW = ("namespace", "using namespace", "return", "public:", "private:", "protected:", "extern")


class Source:
    """A source or header. own: the names that it keeps to itself; declared: [(namespace, name)] of what it shows to others;
    mentioned: every name that is no member's."""

    def __init__(self, path):
        self.path = path
        text = SPOKEN.sub(" ", path.read_text())
        self.mentioned = set(MENTIONED.findall(text))
        self.includes = INCLUDED.findall(text)
        self.own, self.declared, self.namespaces = set(MACRO.findall(text)), set(), {""}
        inside = []  # namespaces, "" for an unnamed one
        for line in text.splitlines():  # what our style does not indent stands outside of every class and function
            if line.startswith("}  //"):
                inside = inside[:-1]
            elif match := re.match(r"namespace ([\w:]*) ?\{", line):
                inside.append(match[1])
                self.namespaces.add("::".join(inside).rstrip(":"))
            elif re.match(r"[A-Za-z_:]", line) and not line.startswith(NOTHING_NEW):
                self.read(line, inside)
        self.mentioned |= self.own

    def read(self, line, inside):
        while (shorter := re.sub(r"<[^<>]*>", "", line)) != line:  # types of templates
            line = shorter
        if match := TEST.match(line):
            self.own.add(f"{match[1]}_{match[2]}_Test")
            return
        match = next((match for pattern in DECLARED if (match := pattern.match(line))), None)
        if match and ("" in inside or line.startswith("static ")):
            self.own.add(match[1])
        elif match:
            self.declared.add(("::".join(inside), match[1]))

    def visible_here(self, shown):
        """Those of [(namespace, name)] that this file would find without naming their namespace."""
        return {name for where, name in shown if any((mine + "::").startswith(where + "::") for mine in self.namespaces)}


class Tree:
    def __init__(self):
        self.read = functools.cache(Source)

    @functools.cache
    def shown(self, path):
        """[(namespace, name)] of what our headers that a file includes declare, theirs too."""
        seen, left = set(), [path]
        while left:
            path = left.pop()
            for name in self.read(path).includes:
                at = self.place(name, path.parent)
                if at and at not in seen:
                    seen.add(at)
                    left.append(at)
        return frozenset().union(*(self.read(header).declared for header in seen))

    @functools.cache
    def place(self, name, beside):
        """Where a header lies: tests have some of a whole room in their topmost folder."""
        folders = [ROOT, beside, *beside.parents[:1], ROOT / "tests"]
        return next((folder / name for folder in folders if (folder / name).exists()), None)

    def may_share(self, one, other):
        """Whether the two may stand in one file: nothing that one keeps to itself is in the other or in its headers."""
        for mine, theirs in ((one, other), (other, one)):
            own = self.read(mine).own
            if own & self.read(theirs).mentioned:
                return False
            if own & self.read(mine).visible_here(self.shown(theirs) - self.shown(mine)):
                return False
        return True

    def batches(self, sources, size):
        """Lists of at most `size` sources for one file each."""
        buckets = 1
        while buckets * BUCKET < len(sources):
            buckets *= 2
        for bucket in range(buckets):
            made = []
            for source in sources:
                if zlib.crc32(str(source.relative_to(ROOT)).encode()) % buckets != bucket:
                    continue
                fits = (batch for batch in made
                        if len(batch) < size and all(self.may_share(other, source) for other in batch))
                if (batch := next(fits, None)) is not None:
                    batch.append(source)
                else:
                    made.append([source])
            yield from made


def room(source):
    """What is linked as one: a folder of the top, of tests/unit, or another one of tests."""
    parts = source.relative_to(ROOT).parts
    return "/".join(parts[:3] if parts[:2] == ("tests", "unit") else parts[:-1] if parts[0] == "tests" else parts[:1])


def write(path, text):
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main():
    out, size = Path(sys.argv[1]), int(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    rooms = {}
    for top in sorted(path for path in ROOT.iterdir() if path.is_dir() and path.name != "build"):
        for source in sorted(top.rglob("*.cc")):
            if source.name != "main.cc":
                rooms.setdefault(room(source), []).append(source)
    tree, lines = Tree(), []
    for name, sources in rooms.items():
        for number, batch in enumerate(tree.batches(sources, size)):
            if len(batch) > 1:
                names = [str(source.relative_to(ROOT)) for source in batch]
                made = out / f"{name.replace('/', '_')}_{number}.cc"
                write(made, "".join(f'#include "{each}"\n' for each in names))
                lines += [f'set(BATCH_{each} "{made}")\n' for each in names]
    write(out / "batches.cmake", "".join(lines))


if __name__ == "__main__":
    main()
