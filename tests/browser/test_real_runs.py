#!/usr/bin/python3
"""What the page shows of real runs: the queue, and why a step takes its time. Real dtrun, real server, headless Chromium.

usage: test_real_runs.py DTRUN [TEST...]
Exits 77 where python3-selenium, Chromium or its driver is missing.
"""
import json
import os
import re
import subprocess
import sys
import unittest

import test_page
from test_page import Browsing, messages

DTRUN = None
RECIPE = """
model: {kind: gpt2, layers: 2, heads: 1, embed: 16}
data: {train: text.txt}
batch: {sequences: 2, tokens: 16}
schedule: {kind: constant, steps: 100000000}
checkpoint: {every: 0}
evaluate: {every: 0}
"""


class Real(Browsing):
    @classmethod
    def serve(cls):
        state = os.path.join(cls.folder, "state")
        cls.environment = {**os.environ, "XDG_STATE_HOME": state, "XDG_CACHE_HOME": cls.folder + "/cache",
                           "XDG_CONFIG_HOME": cls.folder + "/config", "OMP_NUM_THREADS": "1",
                           "DTRUN_TEST_TIMES": "0.25", "DTRUN_KEEP_ENV": "DTRUN_TEST_SLOW"}
        os.makedirs(state + "/dtrun", mode=0o700)
        with open(cls.folder + "/text.txt", "w") as text:
            text.write(" ".join(map(str, range(3000))))
        with open(cls.folder + "/own.yaml", "w") as recipe:
            recipe.write(RECIPE)
        cls.dtrun("list")  # makes the store
        server = subprocess.Popen([DTRUN, "serve", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True, env=cls.environment)
        cls.link = re.search(r"http://\S+", server.stdout.readline()).group()
        cls.url = cls.link.split("?")[0]
        return server

    @classmethod
    def end_server(cls):
        for run in json.loads(cls.dtrun("list", "--json"))["runs"]:
            if run["state"] not in ("finished", "failed", "stopped"):
                cls.dtrun("stop", "--now", run["run"])
        cls.server.terminate()
        return 0 if cls.server.wait(test_page.PATIENCE_SECONDS) in (0, -15) else 1

    @classmethod
    def dtrun(cls, *words, **environment):
        return subprocess.run([DTRUN, *words], check=True, stdout=subprocess.PIPE, text=True, cwd=cls.folder,
                              env={**cls.environment, **environment}, stderr=subprocess.DEVNULL).stdout.strip()

    def setUp(self):
        self.look(1280, 900)

    def tearDown(self):
        self.assertEqual(messages(self.browser), [], "the browser's console holds errors")

    def shown(self, css):
        return self.script(f"return document.querySelector({json.dumps(css)})?.offsetHeight > 0")


class Queue(Real):
    def launch(self, name, *words):
        return self.dtrun("launch", "own.yaml", "--queue", "--detach", "--name", name,
                          "--set", f"threads={os.cpu_count()}", *words)

    def rows(self):
        return [[cell.split("\n")[0] for cell in row] for row in self.read(lambda: self.script(
            "return [...document.querySelectorAll('#queue tbody tr')].map((r) => [...r.cells].map((c) => c.innerText))"))]

    def waits_for(self, rows):
        self.wait(lambda: [row[:4] for row in self.rows()] == rows)

    def test_what_waits_is_shown_in_its_order_with_a_reason(self):
        self.dtrun("queue", "guarantee", "1d")
        first = self.launch("first")
        self.dtrun("wait", first, "--until", "running")
        self.open("", lambda: len(self.texts("#runs tbody tr")) == 1)
        self.assertFalse(self.shown("#queue"))  # nothing waits
        second = self.launch("second")
        self.launch("urgent", "--priority", "7")
        self.open("", lambda: self.shown("#queue"))
        self.waits_for([["–", "first", "running", "0"], ["1", "urgent", "waiting", "7"], ["2", "second", "waiting", "0"]])
        self.assertIn("2 waiting", self.text("#queue .quiet"))
        self.wait(lambda: "first" in self.rows()[1][6] and "urgent" in self.rows()[2][6])
        self.shoot("queue")
        self.look(390, 844)
        self.assert_not_wider(390)
        self.look(1280, 900)
        self.dtrun("queue", "priority", second, "9")  # the open page follows
        self.waits_for([["–", "first", "running", "0"], ["1", "second", "waiting", "9"], ["2", "urgent", "waiting", "7"]])
        for run in ("urgent", "second"):
            self.dtrun("stop", run)
        self.wait(lambda: not self.shown("#queue") or len(self.rows()) < 2)


class Why(Real):
    def test_the_parts_of_a_step_and_the_rank_that_slows_it_down(self):
        run = self.dtrun("launch", "own.yaml", "--detach", "--name", "slow", "--set", "ranks=2", "--set", "threads=1",
                         "--set", "log.every=1", DTRUN_TEST_SLOW="1 backward.1 0.4")
        self.open("runs/" + run, lambda: self.shown("#why .why-finding"))
        self.wait(lambda: any("rank 1" in text and "in the backward pass" in text for text in self.texts(".why-finding")))
        self.assertIn("Evidence: ", self.text(".why-finding .quiet"))
        self.assertIn("a step at", self.text("#why .card-head .quiet"))
        shares = self.script("return [...document.querySelectorAll('#why tbody tr')].map((r) => parseFloat(r.cells[2].innerText))")
        self.assertLess(abs(sum(shares) - 100), 3)
        self.assertTrue(self.script("return document.querySelector('.why-bar').getAttribute('aria-label')")
                        .startswith("A step's time: "))
        self.shoot("why")
        self.look(390, 844)
        self.assert_not_wider(390)


if __name__ == "__main__":
    if test_page.BROWSER is None or test_page.DRIVER is None:
        print("Chromium or its driver is missing")
        sys.exit(77)
    DTRUN = os.path.abspath(sys.argv[1])
    test_page.SHOTS = os.environ.get("DTRUN_SHOTS")
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
