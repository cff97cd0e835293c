#!/usr/bin/python3
"""What the nodes of a run were used for, on its page, in a headless Chromium.

usage: test_nodes.py FILL_STORE SERVE_STORE [TEST...]     as test_page.py
"""
import os
import subprocess
import sys
import unittest

import test_page
from test_page import Browsing, By, Keys, messages

CURVES = {"cpu_percent": 2, "memory_used_bytes": 2, "received_bytes_per_second": 2, "gpu_power_watts": 1}


class Nodes(Browsing):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.fill("nodes", 60)

    @classmethod
    def fill(cls, what, count):
        subprocess.run([test_page.FILL, cls.store, what, str(count)], check=True)

    def tearDown(self):
        self.assertEqual(messages(self.browser), [])

    def curves(self, subject):
        """The labels and the numbers of points of the curves of a chart that was drawn."""
        return self.script(f"""const chart = Chart.getChart('system-{subject}-chart');
            return chart ? chart.data.datasets.filter((set) => !set.helper).map((set) => [set.label, set.data.length]) : [];""")

    def test_a_section_has_a_chart_for_each_subject_and_a_curve_for_each_node(self):
        for width, scheme in ((1280, "light"), (390, "dark")):
            self.look(width, 900, scheme)
            self.open("runs/n4odes", lambda: self.text("#system summary .quiet") == "13")
            self.assertEqual(self.script("return document.querySelectorAll('#system canvas').length"), 0)  # folded
            self.browser.find_element(By.CSS_SELECTOR, "#system summary").send_keys(Keys.ENTER)
            self.wait(lambda: all(len(self.curves(subject)) == count for subject, count in CURVES.items())
                      and self.curves("cpu_percent")[0][1] == 60)
            self.assertEqual([label for label, _ in self.curves("cpu_percent")], ["gpu-a", "spare"])
            self.assertEqual([label for label, _ in self.curves("memory_used_bytes")], ["gpu-a of 64.0 GB", "spare of 64.0 GB"])
            self.assertEqual(self.curves("cpu_percent")[1][1], 41)  # it began later
            self.assertEqual(self.text("#system-gpu_used_bytes-title"), "GPU memory: gpu-a GPU 0 of 85.0 GB")
            self.assertIn("nodes=1", self.browser.current_url)
            self.assertLessEqual(self.script("return document.documentElement.scrollWidth"), width)
            self.assertIn("gpu-a", self.browser.find_element(By.ID, "system-cpu_percent-chart").get_attribute("aria-label"))
            self.shoot(f"nodes-{width}-{scheme}")
        self.browser.refresh()  # the address holds that it is open
        self.wait(lambda: len(self.curves("cpu_percent")) == 2)

    def test_the_curves_go_on_while_the_run_does(self):
        self.look(1280, 900)
        self.open("runs/n4odes?nodes=1", lambda: len(self.curves("cpu_percent")) == 2)
        before = self.curves("cpu_percent")[0][1]
        self.fill("nodes", before + 5)
        self.wait(lambda: self.curves("cpu_percent")[0][1] == before + 5)

    def test_other_runs_and_charts_are_as_before(self):
        self.look(1280, 900)
        self.open_run("m4x9tr")
        self.assertFalse(self.browser.find_element(By.ID, "system").is_displayed())
        self.open("runs/n4odes", lambda: self.text("#system summary .quiet") == "13")
        titles = self.texts("#charts .card h2")
        self.assertFalse([title for title in titles if "node" in title or "Processors" in title], titles)


if __name__ == "__main__":
    if test_page.BROWSER is None or test_page.DRIVER is None:
        print("Chromium or its driver is missing")
        sys.exit(77)
    test_page.FILL, test_page.SERVE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    test_page.SHOTS = os.environ.get("DTRUN_SHOTS")
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
