#!/usr/bin/python3
"""Samples of a run, and the confusion of its classes, on its page, in a headless Chromium.

usage: test_samples.py FILL_STORE SERVE_STORE [TEST...]     as test_page.py
"""
import contextlib
import json
import os
import sqlite3
import sys
import time
import unittest

from selenium.webdriver.common.keys import Keys

import test_page
from test_page import By

RUN = "m4x9tr"
PROMPTS = ["Once upon a time", "", "<b>bold</b> & \u202ereversed"]


class Samples(test_page.Browsing):
    def setUp(self):
        self.look(1280, 900)

    def tearDown(self):
        self.assertEqual(test_page.messages(self.browser), [], "the browser's console holds errors")

    def add(self, run, kind, step, **values):
        """Adds an event of rank 0."""
        with contextlib.closing(sqlite3.connect(self.store, timeout=30)) as store, store:
            store.execute("INSERT INTO events (run, attempt, node, sequence, rank, time_ms, kind, json) SELECT run, 1, -1, 0, 0, ?,"
                          " ?, ? FROM runs WHERE id = ?",
                          (int(time.time() * 1000), kind, json.dumps({"event": kind, "step": step, **values}), run))

    def sample(self, run, step):
        texts = [f"text {at} of step {step}\n<script>alert(1)</script> \u001b[31mred" for at in range(len(PROMPTS))]
        ends = ["tokens", "end_of_text", "not_finite"]
        self.add(run, "samples", step, samples=[{"index": at, "prompt": prompt, "text": texts[at], "tokens": 12, "ended": ends[at]}
                                                for at, prompt in enumerate(PROMPTS)])

    def rows(self):
        return self.script("return [...document.querySelectorAll('#samples tbody tr')].map((r) =>"
                           " [...r.cells].map((c) => c.innerText.trim()))")

    def step(self):
        return self.text("#samples-step output")

    def shoot_card(self, card, name):
        self.script(f"document.getElementById('{card}').scrollIntoView()")
        self.shoot(name)

    def test_a_slider_shows_the_samples_of_each_step(self):
        self.open_run("h7c2qa")
        self.assertFalse(self.browser.find_element(By.ID, "samples-card").is_displayed())
        for step in (200, 400, 600, 1600):
            self.sample(RUN, step)
        self.open_run(RUN)
        self.wait(lambda: len(self.rows()) == 3)
        self.assertEqual(self.step(), "step 1,600")
        rows = self.rows()
        self.assertEqual(rows[0], ["Once upon a time", "text 0 of step 1600\n<script>alert(1)</script> red\n12 tokens, cut at the limit"])
        self.assertEqual(rows[1][0], "(empty)")
        self.assertIn("<b>bold</b> & reversed", rows[2][0])
        self.assertIn("the outputs were not finite", rows[2][1])
        slider = self.browser.find_element(By.CSS_SELECTOR, "#samples-step input")
        self.assertEqual(slider.get_attribute("aria-label"), "Step of the samples")
        self.shoot_card("samples-card", "samples")
        slider.send_keys(Keys.ARROW_LEFT)
        self.wait(lambda: "text 0 of step 600" in self.rows()[0][1])
        self.assertEqual((self.step(), slider.get_attribute("aria-valuetext")), ("step 600", "step 600"))
        slider.send_keys(Keys.HOME)
        self.wait(lambda: "text 0 of step 200" in self.rows()[0][1])
        self.assertEqual(self.texts("#samples thead th"), ["Prompt", "Text at step 200"])
        self.look(390, 844, "dark")
        self.open_run(RUN)
        self.wait(lambda: len(self.rows()) == 3)
        self.assert_not_wider(390)
        self.shoot_card("samples-card", "samples-phone")

    def test_a_live_run_gets_its_next_samples_unless_the_reader_looks_at_others(self):
        run = "v6l1ve"
        self.sample(run, 100)
        self.open_run(run)
        self.wait(lambda: self.step() == "step 100")
        self.sample(run, 200)
        self.grow()
        self.wait(lambda: self.step() == "step 200" and "text 1 of step 200" in self.rows()[1][1])
        self.browser.find_element(By.CSS_SELECTOR, "#samples-step input").send_keys(Keys.ARROW_LEFT)
        self.wait(lambda: "text 1 of step 100" in self.rows()[1][1])
        self.sample(run, 300)
        self.grow()
        self.wait(lambda: self.script("return document.querySelector('#samples-step input').max") == "2")
        self.assertEqual(self.step(), "step 100")
        self.assertIn("text 1 of step 100", self.rows()[1][1])

    def test_a_slider_shows_the_confusion_of_each_step(self):
        run = "p8s6ze"
        self.open_run(run)
        self.assertFalse(self.browser.find_element(By.ID, "confusion-card").is_displayed())
        self.add(run, "confusion", 10, counts=[[3, 7, 0], [5, 5, 0], [0, 0, 0]])
        self.add(run, "confusion", 20, counts=[[9, 1, 0], [2, 8, 0], [0, 0, 0]])
        self.open_run(run)
        cells = lambda: self.script("return [...document.querySelectorAll('#confusion tbody tr')].map((r) =>"
                                    " [...r.cells].map((c) => c.innerText))")
        self.wait(lambda: len(cells()) == 3)
        self.assertEqual(cells(), [["0", "9", "1", "", "90.0 %"], ["1", "2", "8", "", "80.0 %"], ["2", "", "", "", "–"]])
        self.assertIn("20 rows, 85.0 % right", self.text("#confusion p"))
        first = self.browser.find_elements(By.CSS_SELECTOR, "#confusion tbody td")[0]
        self.assertEqual(first.get_attribute("title"), "9 of 10 rows of class 0 predicted as 0 (90.0 %)")
        self.shoot_card("confusion-card", "confusion")
        self.browser.find_element(By.CSS_SELECTOR, "#confusion-step input").send_keys(Keys.ARROW_LEFT)
        self.wait(lambda: cells()[0] == ["0", "3", "7", "", "30.0 %"])
        many = [[60 if a == b else (a * b) % 7 for a in range(100)] for b in range(100)]
        self.add(run, "confusion", 30, counts=many)
        self.add(run, "confusion", 25, counts=[[1, 2], ["x"]])  # by another program
        for width, scheme, name in ((1280, "light", "confusion-many"), (390, "dark", "confusion-phone")):
            self.look(width, 844, scheme)
            self.open_run(run)
            self.wait(lambda: len(cells()) == 100)
            self.assert_not_wider(width)
            self.shoot_card("confusion-card", name)
        self.browser.find_element(By.CSS_SELECTOR, "#confusion-step input").send_keys(Keys.ARROW_LEFT)
        self.wait(lambda: self.text("#confusion") == "not readable")


if __name__ == "__main__":
    if test_page.BROWSER is None or test_page.DRIVER is None:
        print("Chromium or its driver is missing")
        sys.exit(77)
    test_page.FILL, test_page.SERVE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    test_page.SHOTS = os.environ.get("DTRUN_SHOTS")
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
