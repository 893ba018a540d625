"""Looks at the page of a running operator for tests/cluster/test_page.py: tools/page --python tests/page/real_operator.py ADDRESS

Opens it, says what it shows as one line of JSON, waits for a line on its input, and says it again."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from browser import chromium, expect, SMALL  # noqa: E402


def main():
    page = chromium().new_context(viewport=SMALL).new_page()
    said = []
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.goto(sys.argv[1])
    expect(page.locator("#live")).to_have_attribute("data-state", "live", timeout=30_000)
    expect(page.locator("#list .row").first).to_be_visible()
    # First a node, so that its panel is there; then what each line of input waits for, and at the end the gang.
    for line in sys.stdin:
        wait = json.loads(line)
        for key in wait.get("press", []):
            page.keyboard.press(key)
        for selector, text in wait["shows"].items():
            expect(page.locator(selector).first).to_contain_text(text, timeout=60_000)
        if "shot" in wait:
            page.screenshot(path=wait["shot"])
        print(json.dumps({"said": said, "panel": page.locator("#panel").inner_text()}), flush=True)


if __name__ == "__main__":
    main()
