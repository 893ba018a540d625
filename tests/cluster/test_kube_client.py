"""kube/ against a real apiserver: the C++ suite kube_client_cluster_test, which restarts the server and compacts etcd."""

import os
import re
import subprocess
import sys
from pathlib import Path

from bed.control_server import ControlServer
from bed.testing import BedTestCase, options

POST = "import urllib.request as u; u.urlopen(u.Request('{url}', method='POST'), timeout=120)"


class KubeClient(BedTestCase):
    def test_the_client_keeps_its_contract_also_through_a_restart_and_a_compaction(self):
        program = Path(options.binaries).resolve() / "kube_client_cluster_test"
        control = ControlServer(self.plane)

        def post(what):
            return f'{sys.executable} -c "{POST.format(url=control.url + what)}"'
        done = subprocess.run([program, "--gtest_brief=1"], capture_output=True, text=True, check=False, timeout=240, env={
            **os.environ, "KUBECONFIG": str(self.plane.kubeconfig),
            "HEDDLE_RESTART_COMMAND": post("/restart/apiserver"), "HEDDLE_COMPACT_COMMAND": post("/forget-history")})
        self.assertEqual(done.returncode, 0, done.stdout[-6000:] + done.stderr[-2000:])
        self.assertRegex(done.stdout, r"PASSED\s+\]\s+\d+ tests?")
        self.assertFalse(re.search(r"SKIPPED", done.stdout), "a test was skipped: " + done.stdout[-2000:])
