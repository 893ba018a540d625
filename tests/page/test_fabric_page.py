"""The page on a made-up fabric: what a person sees and does. The same on the real operator: tests/cluster/test_page.py."""

import json
import re

from browser import LARGE, SMALL, PageTestCase, expect
from made_up import Fabric, Server


def contrast(one, other):
    """WCAG 2's, of two colours like "#1b2126"."""
    def luminance(colour):
        parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
        return sum(weight * (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4)
                   for weight, part in zip((0.2126, 0.7152, 0.0722), parts))
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


class Small(PageTestCase):
    """32 nodes in two units."""

    def setUp(self):
        self.fabric = Fabric(32, per_unit=16)
        self.server = Server(self.fabric)
        self.addCleanup(self.server.close)

    def open_live(self, **how):
        page = self.open(self.server.address, **how)
        expect(page.locator("#live")).to_have_attribute("data-state", "live")
        return page

    def names(self, page):
        return page.locator("#list .row b").all_inner_texts()

    def test_it_loads_and_shows_the_worst_first(self):
        page = self.open_live()
        expect(page.locator("#summary")).to_contain_text("infiniband · 32 nodes · 248 GPUs")
        self.assertEqual(self.names(page)[:4], ["node-30", "node-08", "node-16", "node-31"])
        expect(page.locator("#list .row").first).to_contain_text("no rail can be used")
        expect(page.locator("#states label[data-state=degraded] .count")).to_have_text("1")

    def test_a_link_that_fails_is_seen_without_a_reload(self):
        page = self.open_live()
        before = page.locator("#base").screenshot()
        self.fabric.fail_link("node-05", 3)
        expect(page.locator("#states label[data-state=degraded] .count")).to_have_text("2")
        row = page.locator("#list .row", has_text="node-05")
        expect(row).to_contain_text("rail 3: mlx5_3: is down")
        expect(row).to_contain_text("7/8 rails")
        self.assertNotEqual(page.locator("#base").screenshot(), before, "the map shows nothing of it")

    def test_an_open_panel_follows_what_happens(self):
        page = self.open_live()
        page.locator("#list .row", has_text="node-05").click()
        expect(page.locator("#panel")).to_contain_text("8 of 8 links at full rate")
        expect(page.locator("#panel")).to_contain_text("GPU – NIC – rail – leaf")
        self.fabric.fail_link("node-05", 3)
        expect(page.locator("#panel")).to_contain_text("7 of 8 links at full rate")
        expect(page.locator("#panel table").first).to_contain_text("down")
        # Its leaf shows it, though the port no longer says where it ends.
        page.keyboard.press("f")
        expect(page.locator("#facts")).to_contain_text("su0-r3")

    def test_an_open_panel_keeps_the_focus_and_the_selected_text(self):
        page = self.open_live()
        page.locator("#list .row", has_text="node-05").click()
        expect(page.locator("#panel")).to_contain_text("GPU – NIC – rail – leaf")
        page.locator("#panel button.link", has_text="team-1/train-1-0").focus()
        page.evaluate("""() => {
          getSelection().selectAllChildren(document.querySelector("#panel dl"));
          window.kept = document.activeElement;
        }""")
        chosen = page.evaluate("getSelection().toString()")
        self.assertIn("8 of 8 links at full rate", chosen)
        # Another node: nothing in the panel is new.
        self.fabric.fail_link("node-20", 3)
        expect(page.locator("#states label[data-state=degraded] .count")).to_have_text("2")
        self.assertTrue(page.evaluate("window.kept.isConnected && window.kept === document.activeElement"))
        self.assertEqual(page.evaluate("getSelection().toString()"), chosen)
        # This one: what is new takes the place of what was, and the focus stays where it leads to.
        self.fabric.fail_link("node-05", 3)
        expect(page.locator("#panel")).to_contain_text("7 of 8 links at full rate")
        expect(page.locator("#panel button.link", has_text="team-1/train-1-0")).to_be_focused()

    def test_the_focus_follows_a_link_whose_table_is_made_anew(self):
        page = self.open_live()
        page.keyboard.press("f")
        leaf = page.locator("#facts button.link", has_text="su0-r1")
        leaf.last.focus()
        self.fabric.fail_link("node-05", 3)
        expect(page.locator("#facts table")).to_contain_text("su0-r3")
        expect(leaf.last).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("#panel h2")).to_have_text("su0-r1")
        expect(page.locator("#panel")).to_contain_text("15 full, 0 slow, 1 down")
        page.locator("#panel button.link", has_text="node-12").focus()
        self.fabric.fail_link("node-07", 1)
        expect(page.locator("#panel")).to_contain_text("14 full, 0 slow, 2 down")
        expect(page.locator("#panel button.link", has_text="node-12")).to_be_focused()

    def test_a_selected_leaf_stays_the_same_when_another_comes_before_it(self):
        page = self.open_live()
        page.keyboard.press("f")
        page.locator("#facts button.link", has_text="su0-r1").last.click()
        expect(page.locator("#panel h2")).to_have_text("su0-r1")
        self.fabric.add_leaf("a-leaf", 0)
        self.fabric.fail_link("node-05", 1)
        expect(page.locator("#states label[data-state=degraded] .count")).to_have_text("2")
        expect(page.locator("#panel h2")).to_have_text("su0-r1")
        expect(page.locator("#panel")).to_contain_text("14 full, 0 slow, 2 down")

    def test_a_click_counts_though_news_come_while_the_button_is_down(self):
        page = self.open_live()
        self.assertEqual(self.names(page)[0], "node-30")
        box = page.locator("#list .row").first.bounding_box()
        page.mouse.move(box["x"] + 60, box["y"] + 15)
        page.mouse.down()
        self.fabric.fail_link("node-05", 3)
        expect(page.locator("#list .row", has_text="node-05")).to_contain_text("7/8 rails")
        page.mouse.up()
        expect(page.locator("#panel h2")).to_contain_text("node-30")

    def test_an_answer_with_nothing_in_it_draws_nothing(self):
        page = self.open_live()
        page.wait_for_function("() => document.getElementById('map').dataset.drawMs !== undefined")
        page.evaluate("""async () => {
          await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
          window.draws = 0;
          new MutationObserver(() => { window.draws += 1; }).observe(document.getElementById("map"), { attributeFilter: ["data-draw-ms"] });
        }""")
        for _ in range(2):
            with page.expect_response(lambda response: "view.json" in response.url):
                with self.fabric.lock:
                    self.fabric.revision += 1
                    self.fabric.lock.notify_all()
        # The first of both has been read by now: it is asked again once that is done.
        self.assertEqual(page.evaluate("window.draws"), 0)
        self.fabric.fail_link("node-05", 3)
        expect(page.locator("#states label[data-state=degraded] .count")).to_have_text("2")
        page.wait_for_function("() => window.draws > 0")

    def test_a_node_that_goes_is_gone_from_list_and_panel(self):
        page = self.open_live()
        page.locator("#list .row", has_text="node-31").click()
        expect(page.locator("#panel")).to_contain_text("no agent has reported yet")
        self.fabric.remove_node("node-31")
        expect(page.locator("#panel")).to_be_hidden()
        expect(page.locator("#tab-nodes")).to_have_text("Nodes 31")

    def test_filters_by_words_states_gang_and_rail(self):
        page = self.open_live()
        page.locator("#text").fill("su-0 r1")
        expect(page.locator("#tab-nodes")).to_have_text("Nodes 16")
        page.locator("#states label[data-state=degraded]").click()
        expect(page.locator("#tab-nodes")).to_have_text("Nodes 1")
        self.assertEqual(self.names(page), ["node-08"])
        page.locator("#clear").click()
        expect(page.locator("#tab-nodes")).to_have_text("Nodes 32")
        page.locator("#gang").select_option("team-0/train-0-0")
        expect(page.locator("#tab-nodes")).to_have_text("Nodes 2")
        page.locator("#gang").select_option("-")
        expect(page.locator("#tab-nodes")).to_have_text("Nodes 13")
        page.locator("#clear").click()
        # By its rail 0 node-08, whose rail 1 is down, is well.
        page.locator("#rail").select_option("0")
        expect(page.locator("#states label[data-state=degraded] .count")).to_have_text("0")
        page.locator("#rail").select_option("1")
        expect(page.locator("#states label[data-state=down] .count")).to_have_text("2")
        page.locator("#text").fill("no such node")
        expect(page.locator("#list .none")).to_have_text("No node is like that.")

    def test_a_gang_shows_its_axes_and_costs(self):
        page = self.open_live()
        page.locator("#tab-gangs").click()
        page.locator("#list .row", has_text="team-0/train-0-0").click()
        panel = page.locator("#panel")
        for words in ("tp=8,dp=2", "812 ms", "1,302 ms", "0/16", "2 nodes in su-0", "su-0 has room for all of it"):
            expect(panel).to_contain_text(words)
        page.keyboard.press("Escape")
        expect(panel).to_be_hidden()
        page.locator("#list .row", has_text="Waiting").click()
        expect(panel).to_contain_text("64 hosts needed in one scalable unit, best has 12")

    def test_it_says_how_many_gangs_it_is_not_told_of_and_which_cannot_be_read(self):
        self.fabric.left_out = 1234
        self.fabric.gangs["lab/odd"] = {"key": "lab/odd", "title": "odd", "ns": "lab", "owner": "", "state": "degraded", "summary": "Cannot be read", "pods": 0, "gpus": 0,
                                        "message": "it cannot be read: Gang odd: spec.pods: must be an integer"}
        page = self.open_live()
        expect(page.locator("#tab-gangs")).to_contain_text(", 1,234 left out")
        page.locator("#tab-gangs").click()
        page.locator("#list .row").first.click()
        expect(page.locator("#panel")).to_contain_text("it cannot be read: Gang odd: spec.pods: must be an integer")

    def test_everything_by_keyboard(self):
        page = self.open_live()
        page.keyboard.press("n")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(page.locator("#panel h2")).to_contain_text("node-08")
        page.keyboard.press("Escape")
        expect(page.locator("#list")).to_be_focused()
        page.keyboard.press("End")
        expect(page.locator("#list")).to_have_attribute("aria-activedescendant", "row-31")
        page.keyboard.press("/")
        expect(page.locator("#text")).to_be_focused()
        page.keyboard.type("node-1")
        page.keyboard.press("Enter")
        expect(page.locator("#tab-nodes")).to_have_text("Nodes 10")
        page.keyboard.press("Escape")
        expect(page.locator("#tab-nodes")).to_have_text("Nodes 32")
        page.locator("#list").focus()
        page.keyboard.press("Home")  # node-30, in the last row of su-1
        page.keyboard.press("m")
        for key in ("ArrowUp", "ArrowLeft", "ArrowLeft"):
            page.keyboard.press(key)
        expect(page.locator("#spoken")).to_contain_text("node-23, ok, su-1")
        page.keyboard.press("Enter")
        expect(page.locator("#panel h2")).to_contain_text("node-23")
        page.keyboard.press("f")
        expect(page.locator("#facts")).to_contain_text("leaves count as 1:1")
        expect(page.locator("#facts")).to_contain_text("41 flaps in 10 min, 3 gangs cross it; drain or reseat it")
        page.keyboard.press("?")
        expect(page.locator("#help")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("#help")).to_be_hidden()

    def test_the_map_is_clicked_zoomed_and_dragged(self):
        page = self.open_live()
        page.keyboard.press("m")
        page.keyboard.press("ArrowRight")
        box = page.locator("#map").bounding_box()
        found = set()
        for y in range(20, int(box["height"]), 24):
            page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + y)
            if page.locator("#tip").is_visible():
                found.add(page.locator("#tip b").inner_text())
        self.assertGreater(len(found), 3, found)
        name = page.locator("#tip b").inner_text()
        before = page.locator("#base").screenshot()
        page.mouse.wheel(0, -600)
        page.mouse.down()
        page.mouse.move(box["x"] + 60, box["y"] + 60, steps=5)
        page.mouse.up()
        expect(page.locator("#panel")).to_be_hidden()
        self.assertNotEqual(page.locator("#base").screenshot(), before, name)
        page.keyboard.press("0")
        page.wait_for_function("() => document.getElementById('map').dataset.drawMs !== undefined")

    def test_a_page_of_another_version_loads_itself_anew_once(self):
        page = self.open_live()
        page.evaluate("window.old = true")
        self.server.version = "0.2.0"
        self.fabric.fail_link("node-05", 3)
        page.wait_for_function("() => !window.old")
        expect(page.locator("#live")).to_have_attribute("data-state", "live")
        page.evaluate("window.old = true")
        self.fabric.fail_link("node-06", 3)
        expect(page.locator("#states label[data-state=degraded] .count")).to_have_text("3")
        self.assertTrue(page.evaluate("window.old"))

    def test_what_is_pressed_before_there_is_a_map_moves_nothing(self):
        page = self.open_live()
        page.wait_for_function("() => document.getElementById('map').dataset.drawMs !== undefined")
        whole = page.locator("#base").screenshot()
        page.close()
        self.server.unread = True
        page = self.open(self.server.address, allowed=["Failed to load resource"])
        expect(page.locator("#empty")).to_contain_text("has not read the cluster yet")
        for key in ("m", "0", "+", "-"):
            page.keyboard.press(key)
        page.mouse.move(300, 300)
        page.mouse.wheel(0, -600)
        page.mouse.down()
        page.mouse.move(360, 360, steps=5)
        page.mouse.up()
        page.mouse.move(1, 1)
        page.locator("#list").focus()
        self.server.unread = False
        expect(page.locator("#live")).to_have_attribute("data-state", "live")
        page.wait_for_function("() => document.getElementById('map').dataset.drawMs !== undefined")
        self.assertEqual(page.locator("#base").screenshot(), whole)

    def test_what_the_pointer_is_at_is_told_as_it_is_now(self):
        page = self.open_live()
        page.wait_for_function("() => document.getElementById('map').dataset.drawMs !== undefined")
        box = page.locator("#map").bounding_box()
        name = ""
        for y in range(20, int(box["height"]), 16):
            page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + y)
            if page.locator("#tip").is_visible() and "ok" in page.locator("#tip").inner_text():
                name = page.locator("#tip b").inner_text()
                break
        self.assertRegex(name, "^node-")
        self.fabric.fail_link(name, 3)
        expect(page.locator("#tip")).to_contain_text("rail 3: mlx5_3: is down")

    def test_details_that_cannot_be_read_any_more_and_those_of_before_are_not_shown(self):
        page = self.open_live(allowed=["Failed to load resource"])
        page.locator("#list .row", has_text="node-05").click()
        expect(page.locator("#panel")).to_contain_text("GPU – NIC – rail – leaf")
        held = []
        page.route("**/fabric/about.json*", lambda route: held.append(route))
        for rail in (3, 4):
            self.fabric.fail_link("node-05", rail)
            expect(page.locator("#panel")).to_contain_text(f"{10 - rail} of 8 links at full rate")
        while len(held) < 2:
            page.wait_for_timeout(20)
        old, new = held[0], held[-1]
        answer = {**self.fabric.about_node("node-05"), "machine": "the newer"}
        new.fulfill(json=answer)
        expect(page.locator("#panel")).to_contain_text("the newer")
        with page.expect_event("requestfinished"):
            old.fulfill(json={**answer, "machine": "the older"})
        page.evaluate("() => new Promise((done) => setTimeout(done, 100))")
        expect(page.locator("#panel")).to_contain_text("the newer")
        page.unroute("**/fabric/about.json*")
        self.server.unreadable.add("node-05")
        self.fabric.fail_link("node-05", 5)
        expect(page.locator("#panel")).to_contain_text("more cannot be read: NodeTopology cannot be read: status.gpus")
        expect(page.locator("#panel")).not_to_contain_text("GPU – NIC – rail – leaf")

    def test_it_says_that_it_is_alone_and_comes_back(self):
        page = self.open_live(allowed=["net::ERR_", "Failed to load resource"])
        self.server.away = True
        with self.fabric.lock:
            self.fabric.lock.notify_all()
        expect(page.locator("#live")).to_have_attribute("data-state", "reconnecting")
        expect(page.locator("#live")).to_contain_text("last heard")
        self.assertEqual(self.names(page)[0], "node-30", "what was known stays")
        self.server.away = False
        self.fabric.fail_link("node-05", 3)
        expect(page.locator("#live")).to_have_attribute("data-state", "live")
        expect(page.locator("#states label[data-state=degraded] .count")).to_have_text("2")

    def test_what_the_operator_cannot_read_is_called_stale(self):
        document = self.fabric.document()
        since = "2026-11-23T10:00:00Z"
        document["sources"] = [{"kind": "NodeTopology", "error": "not read yet", "since": since}, {"kind": "Fabric", "error": "not read yet", "since": since},
                               {"kind": "Gang", "error": "gangs.heddle.dev is forbidden", "since": since}]
        self.fabric.document = lambda since=0: document
        page = self.open(self.server.address)
        expect(page.locator("#live")).to_have_attribute("data-state", "stale")
        expect(page.locator("#live")).to_contain_text("NodeTopologies, Fabrics, Gangs stale since 2026-11-2")
        expect(page.locator("#live")).to_have_attribute("title", re.compile("\nGang: gangs.heddle.dev is forbidden$"))

    def test_hostile_names_are_text(self):
        bad = "<img src=x onerror=alert(1)>"
        self.fabric.nodes["node-05"][8] = [bad]
        self.fabric.nodes["node-05"][2] = 1
        gang = json.loads(json.dumps(self.fabric.gangs["team-0/train-0-0"]))
        self.fabric.gangs[bad] = {**gang, "key": bad, "title": bad, "summary": bad, "message": bad, "places": [99999, 0, 1, 0]}
        page = self.open_live()
        page.locator("#list .row", has_text="node-05").click()
        expect(page.locator("#panel ul").first).to_contain_text(bad)
        page.locator("#tab-gangs").click()
        page.locator("#list .row", has_text="onerror").first.click()
        expect(page.locator("#panel h2")).to_contain_text(bad)
        self.assertEqual(page.locator("aside img").count(), 0)

    def test_no_fabric_says_what_is_missing(self):
        empty = {"revision": "made-1", "full": True, "sources": [], "fabrics": [], "nodes": [], "gangs": []}
        self.fabric.document = lambda since=0: empty
        page = self.open_live()
        expect(page.locator("#empty")).to_contain_text("No node has a NodeTopology yet")
        page.keyboard.press("f")
        expect(page.locator("#facts")).to_contain_text("No fabric yet")

    def test_a_narrow_window_has_the_map_above_the_lists(self):
        page = self.open_live(viewport={"width": 320, "height": 640})
        for part in ("#map", "#list"):
            page.locator(part).scroll_into_view_if_needed()
            box = page.locator(part).bounding_box()
            self.assertEqual(box["width"], 320, part)
            self.assertGreater(box["height"], 200, part)
        self.assertEqual(page.evaluate("document.documentElement.scrollWidth"), 320)
        page.locator("#list .row", has_text="node-05").click()
        expect(page.locator("#panel")).to_contain_text("8 of 8 links at full rate")
        self.shoot(page, "32-320-light")

    def test_names_of_leaves_are_read_on_every_colour_of_theirs(self):
        for scheme in ("light", "dark"):
            page = self.open_live(scheme=scheme)
            paint = page.evaluate("async () => (await import('/palette.mjs')).colours()")
            for ground in ("link", "slow", "bad"):
                with self.subTest(scheme=scheme, ground=ground):
                    self.assertGreaterEqual(contrast(paint["halo"], paint[ground]), 4.5)

    def test_both_sizes_and_both_themes(self):
        for viewport in (SMALL, LARGE):
            for scheme in ("light", "dark"):
                with self.subTest(viewport=viewport, scheme=scheme):
                    page = self.open_live(viewport=viewport, scheme=scheme)
                    expect(page.locator("#list .row").first).to_be_visible()
                    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                    high = page.evaluate("document.documentElement.scrollHeight - innerHeight")
                    self.assertEqual((wide, high), (0, 0), "the page itself scrolls")
                    self.shoot(page, f"32-{viewport['width']}-{scheme}")
                    page.locator("#list .row").nth(1).click()
                    expect(page.locator("#panel")).to_contain_text("Machine")
                    self.shoot(page, f"32-{viewport['width']}-{scheme}-node")


# Zooms the map about one place, sixty frames in and out, and counts what each of its drawings asks of the canvas.
COUNT_CALLS = """() => new Promise((done) => {
  const map = document.getElementById("map"), canvas = CanvasRenderingContext2D.prototype;
  let calls = 0, before = 0, frames = 0;
  for (const name of ["fillRect", "strokeRect", "fillText", "strokeText", "measureText", "fill", "stroke", "drawImage"]) {
    const real = canvas[name];
    canvas[name] = function (...all) { calls += 1; return real.apply(this, all); };
  }
  const draws = [];
  new MutationObserver(() => { draws.push(calls - before); before = calls; }).observe(map, { attributeFilter: ["data-draw-ms"] });
  const tick = () => {
    for (let twice = 0; twice < 2; twice += 1)
      map.dispatchEvent(new WheelEvent("wheel", { deltaY: Math.sin(frames / 10) * 40, clientX: 400, clientY: 400, cancelable: true }));
    frames += 1;
    frames < 60 ? requestAnimationFrame(tick) : requestAnimationFrame(() => done({ frames, draws }));
  };
  requestAnimationFrame(tick);
})"""


class TenThousand(PageTestCase):
    @classmethod
    def setUpClass(cls):
        cls.fabric = Fabric(10_000)
        cls.server = Server(cls.fabric)
        cls.addClassCleanup(cls.server.close)

    def test_ten_thousand_nodes_load_and_a_frame_draws_once_what_is_seen(self):
        """What a frame asks of the canvas, which is the same on every machine; how long it takes is bench/page.py's."""
        self.assertLess(len(self.server.view({})), 3 << 20)
        for viewport, scheme in ((SMALL, "light"), (LARGE, "dark")):
            with self.subTest(viewport=viewport):
                page = self.open(self.server.address, viewport=viewport, scheme=scheme)
                expect(page.locator("#tab-nodes")).to_have_text("Nodes 10,000")
                expect(page.locator("#list .row").first).to_be_visible()
                self.shoot(page, f"10000-{viewport['width']}-{scheme}")
                seen = page.evaluate(COUNT_CALLS)
                self.assertGreater(len(seen["draws"]), 0, "the wheel moves nothing")
                self.assertLessEqual(len(seen["draws"]), seen["frames"] + 1, "it draws more than once a frame")
                self.assertLessEqual(max(seen["draws"]), 3 * 10_000, "a node takes more than three calls")

    def test_lists_hold_only_what_is_seen_and_reach_the_end(self):
        page = self.open(self.server.address)
        expect(page.locator("#tab-nodes")).to_have_text("Nodes 10,000")
        page.keyboard.press("n")
        page.keyboard.press("End")
        expect(page.locator("#list .row.at")).to_have_attribute("aria-posinset", "10000")
        self.assertLess(page.locator("#list .row").count(), 60)
        page.locator("#text").fill("node-77")
        expect(page.locator("#tab-nodes")).to_have_text("Nodes 100")

    def test_one_link_of_eighty_thousand_is_a_small_answer(self):
        page = self.open(self.server.address)
        expect(page.locator("#tab-nodes")).to_have_text("Nodes 10,000")
        count = page.locator("#states label[data-state=degraded] .count")
        before = int(count.inner_text())
        with page.expect_response(lambda response: "since=" in response.url) as answer:
            self.fabric.fail_link("node-4000", 2)
        self.assertLess(len(answer.value.body()), 2000)
        expect(count).to_have_text(str(before + 1))
