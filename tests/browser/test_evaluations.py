#!/usr/bin/python3
"""Results of evaluation tasks on the page of a run and in a comparison, in a headless Chromium.

usage: test_evaluations.py FILL_STORE SERVE_STORE [TEST...]     as test_page.py
"""
import contextlib
import json
import os
import sqlite3
import sys
import time
import unittest

import test_page
from test_page import By

TASKS = {"arc": ("choice", 200, 3, {"acc": (0.245, 0.0305), "acc_norm": (0.255, 0.0309), "acc_bytes": (0.255, None)}),
         "a <b>task</b> & more": ("answer", 12345, 0, {"exact_match": (0.0, 0.0)}),
         "wiki": ("text", 62, 0, {"word_perplexity": (6195509.87, 12000.4), "byte_perplexity": (31.154, 1.02),
                                  "bits_per_byte": (4.96, None)})}


def results(change, names=tuple(TASKS)):
    """Returns results of the tasks: shares grow with `change`, perplexities fall."""
    out = {}
    for name in names:
        kind, rows, cut, metrics = TASKS[name]
        moved = {m: {"value": v + change if kind != "text" else v * (1 - change), "stderr": e} for m, (v, e) in metrics.items()}
        out[name] = {"kind": kind, "rows": rows, "cut": cut, "metrics": moved}
    return out


class Evaluations(test_page.Browsing):
    def setUp(self):
        self.look(1280, 900)

    def tearDown(self):
        self.assertEqual(test_page.messages(self.browser), [], "the browser's console holds errors")

    def evaluate(self, run, step, tasks, attempt=1):
        """Adds an event as `dtrun evaluate` does."""
        text = json.dumps({"event": "evaluation", "step": step, "tasks": tasks})
        with contextlib.closing(sqlite3.connect(self.store, timeout=30)) as store, store:
            store.execute("INSERT INTO events (run, attempt, node, sequence, rank, time_ms, kind, json) SELECT run, ?, -1, 0, -1, ?,"
                          " 'evaluation', ? FROM runs WHERE id = ?", (attempt, int(time.time() * 1000), text, run))

    def heads(self):
        return self.texts("#evaluations thead th")

    def rows(self):
        return self.script("return [...document.querySelectorAll('#evaluations tbody tr')].map((r) =>"
                           " [...r.cells].map((c) => c.innerText.trim()))")

    def test_a_run_without_evaluations_has_no_table(self):
        self.open_run("h7c2qa")
        self.assertFalse(self.browser.find_element(By.ID, "evaluations-card").is_displayed())

    def test_a_run_shows_its_newest_steps_and_the_first(self):
        for at in range(1, 9):
            self.evaluate("m4x9tr", 200 * at, results(at / 100, ("arc", "a <b>task</b> & more") if at == 1 else tuple(TASKS)))
        self.evaluate("m4x9tr", 1600, results(0.09, ("arc",)))  # again: the newest counts
        self.open_run("m4x9tr")
        self.wait(lambda: len(self.heads()) == 7)
        self.assertEqual(self.heads(), ["Metric", "step 1,600", "step 1,400", "step 1,200", "step 1,000", "step 800", "step 200"])
        rows = self.rows()
        self.assertEqual(len(rows), 3 + 7)
        self.assertEqual(sorted(line[0] for line in rows if len(line) == 1),
                         ["a <b>task</b> & more 12,345 rows", "arc 200 rows, 3 cut", "wiki 62 rows"])
        acc, = [line for line in rows if line[0] == "acc"]
        self.assertEqual(acc[1], "0.3350 ± 0.0305")
        self.assertEqual(acc[-1], "0.2550 ± 0.0305")
        word, = [line for line in rows if line[0] == "word_perplexity"]
        self.assertEqual(word[1], "5,699,869 ± 12,000")
        self.assertEqual(word[-1], "–")  # not evaluated at the first step
        best = self.script("return [...document.querySelectorAll('#evaluations tr:not(.task)')].slice(1).map((r) =>"
                           " [...r.cells].findIndex((c) => c.querySelector('.best')))")
        self.assertEqual(best, [1] * 7)  # highest shares, lowest perplexities
        self.assertIn("and 2 more steps", self.text("#evaluations p"))
        self.assertEqual(self.script("return document.querySelectorAll('#evaluations b b').length"), 0)
        self.assertIn("step 1,600: arc acc 0.335", self.text("#output"))
        self.shoot_card("evaluations")
        self.look(390, 844)
        self.open_run("m4x9tr")
        self.wait(lambda: len(self.heads()) == 7)
        self.assert_not_wider(390)
        shown = self.script("const s = document.getElementById('evaluations').getBoundingClientRect();"
                            "const c = document.querySelector('#evaluations tr:not(.task) td.number').getBoundingClientRect();"
                            "return c.right <= s.right + 1")
        self.assertTrue(shown, "the newest values are not visible without scrolling")
        self.shoot_card("evaluations-phone")
        self.look(1280, 900, "dark")
        self.open_run("m4x9tr")
        self.wait(lambda: len(self.heads()) == 7)
        self.shoot_card("evaluations-dark")

    def test_a_live_run_gets_its_next_evaluation(self):
        self.evaluate("v6l1ve", 100, results(0.01))
        self.open_run("v6l1ve")
        self.wait(lambda: self.heads() == ["Metric", "step 100"])
        self.evaluate("v6l1ve", 700, results(0.02, ("arc",)))
        self.grow()
        self.wait(lambda: self.heads() == ["Metric", "step 700", "step 100"])

    def test_a_comparison_shows_the_newest_results_of_each_run(self):
        self.evaluate("b1d5wn", 500, results(0.05))
        self.evaluate("b1d5wn", 1000, results(0.1, ("arc",)))
        self.evaluate("k3v9x2", 740, results(0.02))
        with contextlib.closing(sqlite3.connect(self.store, timeout=30)) as store, store:
            for run, value in (("b1d5wn", 0.345), ("k3v9x2", 0.265)):
                store.execute("INSERT INTO series (run, name) SELECT run, 'arc/acc' FROM runs WHERE id = ?", (run,))
                store.execute("INSERT INTO metrics (series, attempt, step, value, time_ms) SELECT s.series, 1, 700, ?, 1 FROM series s"
                              " JOIN runs r USING (run) WHERE r.id = ? AND s.name = 'arc/acc'", (value, run))
        self.open("compare?runs=b1d5wn,k3v9x2,h7c2qa", lambda: len(self.heads()) == 4)
        acc, = [line for line in self.rows() if line[0] == "acc"]
        self.assertEqual(acc[1:], ["0.3450 ± 0.0305 @1000", "0.2650 ± 0.0305 @740", "–"])
        word, = [line for line in self.rows() if line[0] == "word_perplexity"]
        self.assertEqual(word[1], "5,885,734 ± 12,000 @500")
        self.assertEqual(self.script("return document.querySelectorAll('#evaluations .swatch').length"), 3)
        self.assertNotIn("arc/acc, last", self.texts("#metrics td:first-child"))  # once on the page
        self.shoot_card("evaluations-compare")
        self.look(390, 844)
        self.open("compare?runs=b1d5wn,k3v9x2,h7c2qa", lambda: len(self.heads()) == 4)
        self.assert_not_wider(390)
        self.shoot_card("evaluations-compare-phone")
        self.open("compare?runs=h7c2qa,p8s6ze", lambda: self.text("#summary") == "2 runs")
        self.assertFalse(self.browser.find_element(By.ID, "evaluations-card").is_displayed())

    def shoot_card(self, name):
        self.script("document.getElementById('evaluations-card').scrollIntoView()")
        self.shoot(name)


if __name__ == "__main__":
    if test_page.BROWSER is None or test_page.DRIVER is None:
        print("Chromium or its driver is missing")
        sys.exit(77)
    test_page.FILL, test_page.SERVE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    test_page.SHOTS = os.environ.get("DTRUN_SHOTS")
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
