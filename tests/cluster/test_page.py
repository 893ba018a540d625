"""The operator's fabric page on a real control plane: with the account that the chart gives it, in a real browser."""

import json
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import scenario
from bed import REPOSITORY, Heddle, h100, path
from bed.process import free_port
from bed.testing import BedTestCase, indexed_job, options
from scenario import TEAM


class PageTest(BedTestCase):
    cluster = h100(nodes_per_unit=4)

    @classmethod
    def set_up_bed(cls):
        cls.heddle = Heddle(cls.plane, Path(options.binaries).resolve())
        cls.nodes.add(cls.cluster)
        cls.heddle.install(operator={"page": {"enabled": True}})
        scenario.make_namespaces(cls.plane)
        cls.heddle.start(cls.cluster)
        scenario.declare_fabric(cls.plane, cls.cluster)
        scenario.wait_fabric(cls.heddle, cls.cluster)
        cls.port = free_port()
        cls.heddle.stop_daemon("operator")
        cls.heddle.start_operator("--page", f"127.0.0.1:{cls.port}")

    def get(self, where, host=None, method="GET"):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{where}", method=method, headers={"Host": host} if host else {})
        with urllib.request.urlopen(request, timeout=40) as answer:
            return json.loads(answer.read())

    def refusal(self, *arguments, **keywords):
        with self.assertRaises(urllib.error.HTTPError) as refused:
            self.get(*arguments, **keywords)
        with refused.exception as error:
            return error.code, error.read().decode()

    def view(self):
        def whole():
            view = self.get("/fabric/view.json")
            if len(view["nodes"]) != len(self.cluster.nodes):
                raise AssertionError(view)
            return view
        return self.heddle.wait_for(whole, "the page to show all nodes", 60)

    def test_only_localhost_reads_and_nobody_writes(self):
        self.view()
        status, sentence = self.refusal("/fabric/view.json", host="evil.example")
        self.assertEqual((status, "http://localhost:PORT" in sentence), (403, True))
        self.assertEqual(self.refusal("/fabric/view.json", method="POST")[0], 405)

    def test_a_browser_sees_a_gang_and_a_link_that_fails(self):
        node = self.view()["nodes"][0][0]
        job = indexed_job("llama", 4, 8, backoff_limit=0, annotations={"heddle.dev/parallelism": "tp=8,dp=4"})
        self.plane.rest.create(path("jobs", TEAM), job)
        self.addCleanup(scenario.remove, self.plane, TEAM, "llama")
        scenario.wait_bound(self.plane, TEAM, 4, "llama")
        command = ["tools/page", "--python", "tests/page/real_operator.py", f"http://localhost:{self.port}"]
        with subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as browser:
            def look(press=(), **shows):
                browser.stdin.write(json.dumps({"press": list(press), **shows}) + "\n")
                browser.stdin.flush()
                line = browser.stdout.readline()
                self.assertTrue(line, "the browser did not see what it waited for; its words are above")
                answer = json.loads(line)
                self.assertEqual(answer["said"], [])
                return answer["panel"]

            shots = self.plane.logs
            panel = look(["g", "ArrowDown", "Enter"], shows={"#panel h2": f"{TEAM}/llama", "#panel table": "dp", "#panel": "Why here"}, shot=str(shots / "gang.png"))
            self.assertIn("tp=8,dp=4", panel)
            look(["Escape", "n"], shows={"#states label[data-state=degraded] .count": "0"})
            self.break_link(node)
            panel = look(shows={"#states label[data-state=degraded] .count": "1", "#list .row": node})
            panel = look(["Home", "Enter"], shows={"#panel h2": node, "#panel": "LinksUp"}, shot=str(shots / "node.png"))
            self.assertIn("7 of 8 links at full rate", panel)
            look(["Escape", "f"], shows={"#facts": "Leaves with links that are not whole"})
            browser.stdin.close()
            self.assertEqual(browser.wait(30), 0)

    def break_link(self, node):
        """Writes the node's machine anew, with a rail down, and has its agent look."""
        import machines  # Of tests/support, which Heddle.write_machines put into the path.
        described = next(one for one in self.cluster.machines({node: {"down": [2]}})["nodes"] if one["name"] == node)
        host = machines.Host(**described)
        host.leaves = {str(key): value for key, value in host.leaves.items()}
        host.down, host.half = [str(key) for key in host.down], [str(key) for key in host.half]
        folder = self.heddle.machines[node]
        machines.write_host(host, machines.SHAPES[host.shape](), str(folder), str(folder.parent / ".common" / host.shape))
        self.heddle.restart(f"agent:{node}")
