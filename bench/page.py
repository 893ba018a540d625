"""What the fabric page takes of a browser with 10,000 nodes: tools/page --python bench/page.py [--nodes N] [--seconds S]

It is loaded from a made-up operator into Debian's headless Chromium, which has no GPU, so that a processor paints, too;
then the wheel moves the map, and then links fail, one after the other. By the clock, what else wants the processors counts, and the page's own drawing is counted by
the processor's time, too."""

import argparse
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "page"))

from browser import LARGE, SMALL, chromium, expect  # noqa: E402: the path above comes first
from made_up import DEGRADED, OK, Fabric, Server  # noqa: E402

# The times between frames while the wheel moves the map, and the page's own part of them, that of each drawing.
FRAMES = """(milliseconds) => new Promise((done) => {
  const times = [], draws = [];
  new MutationObserver(() => draws.push(Number(document.getElementById("map").dataset.drawMs)))
    .observe(document.getElementById("map"), { attributeFilter: ["data-draw-ms"] });
  let last = performance.now();
  const end = last + milliseconds;
  const tick = (now) => {
    times.push(now - last);
    last = now;
    const map = document.getElementById("map");
    map.dispatchEvent(new WheelEvent("wheel", { deltaY: Math.sin(now / 300) * 40, clientX: 400, clientY: 400, cancelable: true }));
    now < end ? requestAnimationFrame(tick) : done({ times: times.slice(1), draws });
  };
  requestAnimationFrame(tick);
})"""


class Processor:
    """What the page's own code takes of one from here on, without the waits for it."""

    def __init__(self, page):
        self._session = page.context.new_cdp_session(page)
        self._session.send("Performance.enable", {"timeDomain": "threadTicks"})
        self._begun = self._now()

    def _now(self):
        metrics = self._session.send("Performance.getMetrics")["metrics"]
        return next(one["value"] for one in metrics if one["name"] == "ScriptDuration")

    def script_ms(self):
        return (self._now() - self._begun) * 1000


def share(values, part):
    return sorted(values)[int(len(values) * part)]


def update_ms(page, fabric, times=20):
    """Of a processor, for each answer with one link that failed: the piece read, everything joined, sorted and drawn."""
    whole = [name for name, node in fabric.nodes.items() if node[2] == OK][:times]
    count = page.locator("#states label[data-state=degraded] .count")
    took = Processor(page)
    for name in whole:
        fabric.fail_link(name, 0)
        expect(count).to_have_text(f"{sum(node[2] == DEGRADED for node in fabric.nodes.values()):,}")
    return took.script_ms() / len(whole)


def measure(server, nodes, viewport, seconds):
    begun = time.monotonic()
    context = chromium().new_context(viewport=viewport)
    page = context.new_page()
    page.goto(server.address)
    expect(page.locator("#tab-nodes")).to_have_text(f"Nodes {nodes:,}")
    expect(page.locator("#list .row").first).to_be_visible()
    loaded = time.monotonic() - begun
    took = Processor(page)
    seen = page.evaluate(FRAMES, seconds * 1000)
    each = took.script_ms() / len(seen["draws"])
    update = update_ms(page, server.fabric)
    context.close()
    return (f"{viewport['width']} × {viewport['height']}", f"{loaded:.1f} s", f"{each:.1f} ms",
            f"{share(seen['draws'], 0.5):.1f}, {share(seen['draws'], 0.95):.1f} ms", f"{share(seen['times'], 0.5):.0f} ms",
            f"{update:.1f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=5, help="of moving, for each size of the window")
    arguments = parser.parse_args()
    server = Server(Fabric(arguments.nodes))
    try:
        size = len(server.view({}))
        columns = [measure(server, arguments.nodes, viewport, arguments.seconds) for viewport in (SMALL, LARGE)]
    finally:
        server.close()
    rows = ("", f"loaded ({size / 1e6:.1f} MB)", "the page's own drawing, of a processor",
            "the same by the clock, median and 95 of 100", "between two frames, median", "a link that fails, of a processor")
    for number, row in enumerate(rows):
        print(f"| {row} | " + " | ".join(column[number] for column in columns) + " |")
        if number == 0:
            print("|---" * (1 + len(columns)) + "|")
    return 0


if __name__ == "__main__":
    sys.exit(main())
