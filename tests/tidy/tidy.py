#!/usr/bin/python3
"""The rules of the house that a machine can check: who may include whom, what only the edge may call, and how long
files and functions may be. Runs first and in under a second."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A folder may include itself and these.
MAY_INCLUDE = {
    "base": [],
    "topology": ["base"],
    "placement": ["base", "topology"],
    "sizing": ["base", "topology", "placement"],
    "lossless": ["base", "topology"],
    "formats": ["base", "topology", "lossless"],
    "crds": ["base", "topology", "placement", "lossless"],
    "switches": ["base", "topology", "lossless", "formats", "crds"],
    "kube": ["base"],
    "gnmi": ["base"],
    "nodeagent": ["base", "topology", "formats", "crds", "kube", "lossless"],
    "operator": ["base", "topology", "placement", "formats", "crds", "kube", "lossless", "switches", "gnmi"],
    "extender": ["base", "topology", "placement", "crds", "kube"],
    "cli": ["base", "topology", "placement", "sizing", "formats", "crds", "kube", "lossless", "switches"],
}
# A room of nodeagent/ may include itself, these, and the folders that nodeagent/ may. What lies in no room (the loops,
# main.cc) may include every room.
ROOMS = {
    "nodeagent": {
        "pci": [],
        "gpu": ["pci"],
        "nic": ["pci"],
        "leaf": ["nic"],
        "assembly": ["pci", "gpu", "nic", "leaf"],
        "nccl": ["assembly", "pci", "nic"],
        "recording": ["assembly", "gpu", "nic", "leaf"],
        "health": ["assembly", "pci", "gpu", "nic", "leaf"],
        "discovery": ["assembly", "nccl", "recording", "health", "gpu", "leaf", "nic", "qos"],
        "monitor": ["assembly", "pci", "health", "discovery", "leaf"],
        "grants": ["pci"],
        "qos": ["assembly", "nic", "health", "pci"],
        "devices": ["assembly", "nccl", "nic", "grants"],
        "publish": ["assembly", "health", "grants", "monitor", "qos", "devices"],
    },
    # The page reads what the operator has found, and nothing of the operator needs the page but the daemon.
    "operator": {"page": ["assembly", "pace", "view"]},
}
PURE = ["topology", "placement", "sizing", "lossless", "formats", "crds", "switches"]

# (what, pattern, files where it is right)
ONLY_AT_THE_EDGE = [
    ("reads the real clock", r"(system|steady|high_resolution)_clock::now\b", ["base/clock.cc"]),
    ("sleeps", r"\b(sleep_for|sleep_until|usleep|nanosleep)\s*\(", []),
    ("reads the environment", r"\b(getenv|environ)\b", ["*/main.cc", "kube/config.h"]),
    ("uses an unseeded random source", r"\b(random_device|mt19937|rand\s*\(\s*\))", ["*/main.cc"]),
    ("throws", r"\bthrow\b(?!\s*\()", []),
]
IN_PURE_CODE = [
    ("does I/O", r"\b(std::cout|std::cerr|std::ifstream|std::ofstream|fopen\s*\(|printf\s*\()", []),
    ("starts a thread", r"\bstd::j?thread\b", []),
    # wiring.cc: leaf names are only looked up there, 131,072 of them for 16,384 nodes; suspect_links.cc: names of links.
    ("keeps an unordered container, whose order may reach the output", r"\bstd::unordered_(map|set)\b", ["topology/wiring.cc", "topology/suspect_links.cc"]),
]
# Words of Kubernetes in code that writes conditions.
NO_REASONS = {"PersistentVolume", "PersistentVolumeClaim", "Secret", "Succeeded"}
NOT_OURS = {".git", ".cache", "build", "__pycache__"}  # as .gitignore has it
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 70
MAX_COLUMNS = 120
MAX_MAIN_LINES = 160


def code_of(text):
    """The text without comments and string contents, line by line, so that patterns see code alone."""
    text = re.sub(r'R"(\w*)\((?:.|\n)*?\)\1"', lambda m: '""' + "\n" * m.group(0).count("\n"), text)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r"/\*(?:.|\n)*?\*/", lambda m: "\n" * m.group(0).count("\n"), text)


def allowed(path, patterns):
    return any(pathlib.PurePath(path).match(p) for p in patterns)


def check_file(path, text):
    folder = path.split("/")[0]
    lines = text.split("\n")
    code = code_of(text)
    rooms, room = ROOMS.get(folder, {}), path.split("/")[1]
    for number, line in enumerate(lines, 1):
        if match := re.match(r'#include "([a-z]+)/([a-z_]+)', line):
            other, part = match.groups()
            if other != folder and other in MAY_INCLUDE and other not in MAY_INCLUDE[folder]:
                yield number, f"{folder}/ may not include {other}/ (see MAY_INCLUDE in tests/tidy/tidy.py)"
            if other == folder and room in rooms and part != room and part not in rooms[room]:
                yield number, f"{folder}/{room}/ may not include {folder}/{part} (see ROOMS in tests/tidy/tidy.py)"
        if len(line) > MAX_COLUMNS:
            yield number, f"is {len(line)} columns wide; {MAX_COLUMNS} at most"
    rules = ONLY_AT_THE_EDGE + (IN_PURE_CODE if folder in PURE else [])
    banned = [(what, pattern) for what, pattern, right in rules if not allowed(path, right)]
    for number, line in enumerate(code.split("\n"), 1):
        for what, pattern in banned:
            if re.search(pattern, line):
                yield number, f"{what}; only the edge may (see tests/tidy/tidy.py)"
    limit = MAX_MAIN_LINES if path.endswith("/main.cc") else MAX_FILE_LINES
    if len(lines) > limit:
        yield len(lines), f"has {len(lines)} lines; {limit} at most: split it by what it is about"
    if "cpprest/" in text and path.endswith(".h"):
        yield 1, "includes cpprestsdk in a header: 11 s for each file that sees it"
    yield from long_functions(lines)


def long_functions(lines):
    """A function body is what stands between a line at column 0 that ends in `{` and the next `}` at column 0."""
    start = None
    for number, line in enumerate(lines, 1):
        if re.match(r"[A-Za-z].*\)[^;]*\{$", line) and not re.match(r"(namespace|class|struct|enum|union)\b", line):
            start = number
        elif line == "}" and start is not None:
            if number - start - 1 > MAX_FUNCTION_LINES:
                yield start, f"is a function of {number - start - 1} lines; {MAX_FUNCTION_LINES} at most"
            start = None


def check_words(path, text):
    for number, line in enumerate(text.split("\n"), 1):
        if match := re.search(r"\b(TODO|FIXME|XXX)\b", line):
            yield number, f"{match.group(1)} without an end: finish it or file it"
        if re.search(r"\b(class|struct)\s+\w*(Manager|Helper|Util)\b", line):
            yield number, "is named for nothing in particular: name what it is"


def check_links(path, text):
    for number, line in enumerate(text.split("\n"), 1):
        for target in re.findall(r"\]\(([^)#\s]+)", line):
            if "://" in target or target.startswith("mailto:"):
                continue
            if not (ROOT / path).parent.joinpath(target).exists():
                yield number, f"links to {target}, which is not there"


def check_claims():
    """Sentences that are about the tree: in docs/security.md that no call changes a switch, and every fuzzer; in
    docs/testing.md the test for each bug of other projects."""
    calls = set(re.findall(r"\brpc (\w+)", (ROOT / "gnmi/gnmi.proto").read_text()))
    if calls != {"Capabilities", "Get", "Subscribe"}:
        yield "gnmi/gnmi.proto", 1, f"has the calls {', '.join(sorted(calls))}: a switch is read and never set"
    page = (ROOT / "docs/security.md").read_text()
    for corpus in sorted((ROOT / "tests/fuzz/corpus").iterdir()):
        if f"`{corpus.name}`" not in page:
            yield "docs/security.md", 1, f"does not say whose bytes the fuzzer {corpus.name} plays"
    page = (ROOT / "docs/testing.md").read_text().split("\n## Bugs of other projects\n")[-1].split("\n## ")[0]
    unit = "\n".join(file.read_text() for file in sorted((ROOT / "tests/unit").rglob("*_test.cc")))
    lab = "\n".join(file.read_text() for file in sorted((ROOT / "tests/lab").glob("test_*.py")))
    for suite, name in re.findall(r"`([A-Z]\w*)\.([A-Z]\w*)`", page):
        if not re.search(rf"\bTEST(_F|_P)?\({suite}, {name}\)", unit):
            yield "docs/testing.md", 1, f"names the test {suite}.{name}, which is not there"
    for name in re.findall(r"`(test_\w+)`", page):
        if f"def {name}(" not in lab:
            yield "docs/testing.md", 1, f"names the test {name}, which is not there"


def check_one_definition(headers):
    """One name, two values in two headers of one namespace: the linker takes either for both, and says nothing."""
    first = {}
    for path, text in headers:
        spaces = []
        for number, line in enumerate(text.split("\n"), 1):
            if opened := re.match(r"namespace (\w[\w:]*) \{", line):
                spaces.append(opened[1])
            elif line.startswith("}  // namespace") and spaces:
                spaces.pop()
            elif found := re.match(r"(?:inline constexpr [^=;{(]*\b(k[A-Z]\w*)|(?:struct|class|enum class) (\w+)\b(?!::)[^;]*\{)", line):
                key = ("::".join(spaces), found[1] or found[2])
                if first.setdefault(key, path) != path:
                    yield path, number, f"defines {key[0]}::{key[1]}, as {first[key]} does: one of both is everybody's"


def check_index():
    """docs/README.md calls itself the list of the pages, and people look for theirs there."""
    index = ROOT / "docs/README.md"
    linked = {(index.parent / target).resolve() for target in re.findall(r"\]\(([^)#\s]+)", index.read_text())}
    for page in sorted((ROOT / "docs").rglob("*.md")):
        if page != index and page not in linked:
            yield "docs/README.md", 1, f"does not list {page.relative_to(index.parent)}"


def check_reasons():
    """A person who meets a reason finds it in docs/conditions.md, or on a page that this one names."""
    page = ROOT / "docs/conditions.md"
    named = {page.parent / target for target in re.findall(r"\]\(([\w.-]+\.md)", page.read_text())}
    told = set(re.findall(r"`(\w+)`", "".join(one.read_text() for one in [page, *sorted(named)])))
    word = r'"([A-Z][a-z]+(?:[A-Z0-9][a-z0-9]*)*)"'
    sources = [ROOT / "placement/plan.cc"] + [file for folder in ("operator", "nodeagent", "extender")
                                              for file in sorted((ROOT / folder).rglob("*.cc"))]
    for file in sources:
        text = file.read_text()
        conditions = re.search(r"\bCondition (\w+|\w+\(.*)(\{|;|\))|SetCondition|SwitchTrouble TroubleOf|RefusalReasonName\(", text)
        for number, line in enumerate(text.split("\n"), 1):
            for reason in re.findall(word if conditions else rf"(?:InputRefusal\{{|blame\(|return \{{){word},", line):
                if reason not in told and reason not in NO_REASONS:
                    yield (str(file.relative_to(ROOT)), number,
                           f"the reason {reason} stands neither in docs/conditions.md nor on a page that it names")


def check_conditions():
    """docs/conditions.md lists each kind's condition types at its head, and explains those and no others below."""
    head, *sections = (ROOT / "docs/conditions.md").read_text().split("\n## ")
    listed = {kind: set(re.findall(r"`(\w+)`", types))
              for kind, types in re.findall(r"^\| \[(\w+)\]\(#\w+\) \| ([^|]*) \|", head, re.M)}
    nodes = (ROOT / "docs/nodeagent.md").read_text().split("\n## Conditions\n")[-1].split("\n## ")[0]
    for section in sections:
        kind = section.split("\n", 1)[0]
        tables = re.findall(r"^\| condition \|.*\n(?:\|.*\n)+", section.split("\n### ")[0], re.M)
        told = set(re.findall(r"^\| `(\w+)`", "".join(tables), re.M))
        if told and told != listed.get(kind):
            yield ("docs/conditions.md", 1,
                   f"lists and explains different conditions of {kind}: {', '.join(sorted(told ^ listed.get(kind, set())))}")
    for condition in sorted(listed.get("NodeTopology", set())):
        if f"| `{condition}`" not in nodes:
            yield "docs/nodeagent.md", 1, f"does not say what to do about the condition {condition}"


def paths_of_the_tree():
    """What git knows or was not told to ignore; all that is there where no git knows this tree, as in a release's archive."""
    try:
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
        paths = set(listed.stdout.split("\n"))
    except FileNotFoundError:
        paths = set()
    # An archive may lie unpacked where somebody's repository of other things ignores it.
    if "tests/tidy/tidy.py" not in paths:
        for folder, folders, files in os.walk(ROOT):
            folders[:] = [name for name in folders if name not in NOT_OURS]
            paths |= {os.path.relpath(os.path.join(folder, name), ROOT) for name in files}
    return sorted(paths)


def main():
    faults, checked, headers = [], 0, []
    for path in paths_of_the_tree():
        file = ROOT / path
        if not path or not file.is_file():
            continue
        if path.endswith((".h", ".cc")):
            text = file.read_text()
            checked += 1
            if path.split("/")[0] in MAY_INCLUDE:
                faults += [(path, *f) for f in check_file(path, text)]
                if path.endswith(".h"):
                    headers.append((path, text))
            faults += [(path, *f) for f in check_words(path, text)]
        elif path.endswith(".md"):
            checked += 1
            faults += [(path, *f) for f in check_links(path, file.read_text())]
    faults += [*check_claims(), *check_one_definition(headers), *check_index(), *check_reasons(), *check_conditions()]
    for path, number, what in faults:
        print(f"{path}:{number}: {what}")
    print(f"tidy: {checked} files, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
