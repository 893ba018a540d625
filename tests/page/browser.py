"""Debian's chromium for the tests of the page: one process for all of them, a fresh profile for each."""

import atexit
import os
import types
import unittest

from playwright.sync_api import expect, sync_playwright

CHROMIUM = "/usr/bin/chromium"
SMALL, LARGE = {"width": 1280, "height": 720}, {"width": 2560, "height": 1440}
options = types.SimpleNamespace(shots=None)
expect.set_options(timeout=15_000)
_started = {}


def chromium():
    if not _started:
        playwright = sync_playwright().start()
        atexit.register(playwright.stop)
        # Its own sandbox is not to be had by root in a container; what it opens is ours alone.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        _started["browser"] = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        atexit.register(_started["browser"].close)
    return _started["browser"]


class PageTestCase(unittest.TestCase):
    """`self.open(address)` gives a page whose console must stay silent to the end of the test."""

    def open(self, address, viewport=SMALL, scheme="light", allowed=()):
        context = chromium().new_context(viewport=viewport, color_scheme=scheme)
        self.addCleanup(context.close)
        page = context.new_page()
        said, elsewhere = [], []
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(f"error: {error}"))
        page.on("request", lambda request: elsewhere.append(request.url) if not request.url.startswith(address) else None)
        self.addCleanup(lambda: self.assertEqual([line for line in said if not any(word in line for word in allowed)], []))
        self.addCleanup(lambda: self.assertEqual(elsewhere, [], "the page asked another host"))
        page.goto(address)
        return page

    def shoot(self, page, name):
        if options.shots:
            options.shots.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=options.shots / f"{name}.png")
