"""The quickstart, block by block as it stands on its page, on a cluster that has never seen Heddle, and how long it takes."""

import subprocess
import time
import unittest

import quickstart
import release_bed
from bed.testing import bound_to
from quickstart import blocks
from release_bed import REAL, TEAM, ReleaseBed

MINUTES = 10  # that the page promises, reading it included


class QuickstartPageTest(unittest.TestCase):

    def test_its_blocks_are_found_in_order(self):
        steps = [block.step for block in blocks()]
        self.assertEqual(sorted(steps), steps)
        self.assertEqual({int(step.split(".")[0]) for step in steps}, {3, 4, 5, 6})
        self.assertIn(release_bed.QUICKSTART_IMAGE.rpartition("/")[2], "".join(block.text for block in blocks()))

    def test_a_page_that_says_something_else_is_told(self):
        for written, _ in quickstart.ADAPTED:
            with self.assertRaises(ValueError):
                blocks(quickstart.PAGE.read_text().replace(written, "something else"))


class Quickstart(ReleaseBed):
    BED = "quickstart"

    def type(self, block):
        """What a person reads who types a block."""
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", block.text], env=self.environment(), cwd=quickstart.PAGE.parents[1],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, check=False,
                              timeout=300)
        self.assertEqual(done.returncode, 0, f"{block.text}\n{done.stdout}")
        return done.stdout

    def test_it_works_as_it_is_written(self):
        self.start_fake_agents_once_installed()
        said = {}
        for block in blocks():
            began = time.monotonic()
            said[block.step] = said.get(block.step, "") + self.type(block)
            self.say(f"step {block.step}: {time.monotonic() - began:.1f} s")
        took = time.monotonic() - self.started
        self.say(f"the quickstart from its step 3 on took {took:.0f} s, without reading it")
        self.assertLess(took, MINUTES * 60)
        self.assertRegex(said["3. Install"], rf"(?m)^{REAL} +True +8/8 +8 ")
        look = said["6. Look"]
        self.assertIn("Running 2/2", look)
        self.assertIn("TP groups inside one NVLink domain", look)
        self.assertRegex(look, rf"(?m)^rank [01]: GPUs 0,1,2,3,4,5,6,7 of {REAL}$")
        self.assertRegex(look, r"(?m)^NCCL_IB_HCA=")
        self.wait(lambda: not [bound_to(pod) for pod in self.plane.pods(TEAM)], "the pods of the quickstart to be gone")
