#!/usr/bin/python3
"""The pages of a long history in a headless Chromium: many metrics, groups, and the list with filters and columns.

usage: test_history.py FILL_STORE SERVE_STORE FILL_HISTORY [TEST...]
Exits 77 where python3-selenium, Chromium or its driver is missing.
"""
import json
import os
import subprocess
import sys
import unittest

import test_page
from test_page import Browsing, messages

try:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select
except ImportError:
    sys.exit(77)

HISTORY = None


class Filled(Browsing):
    words = ()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for words in cls.words:
            cls.fill(*words)

    @classmethod
    def fill(cls, *words):
        subprocess.run([HISTORY, cls.store, *words], check=True)

    def setUp(self):
        self.look(1280, 900)

    def tearDown(self):
        self.assertEqual(messages(self.browser), [], "the browser's console holds errors")

    def asked(self, part):
        return self.script("return performance.getEntriesByType('resource').filter((e) =>"
                           f" e.name.includes('{part}')).length")

    def find(self, css):
        return self.browser.find_element(By.CSS_SELECTOR, css)

    def count(self, css):
        return self.script(f"return document.querySelectorAll({json.dumps(css)}).length")

    def drawn(self, name):
        return self.script(f"return (globalThis.Chart && Chart.getChart('{name}')?.data.datasets[0]?.data.length) ?? 0") > 10


class Metrics(Filled):
    words = (("metrics", "160"),)

    def section(self, name):
        return self.find(f"[data-section={name}] > summary")

    def test_metrics_are_in_sections_that_are_folded_but_for_the_first(self):
        self.open("runs/m0metr", lambda: self.drawn("loss-chart"))
        self.assertLess(self.script("return document.documentElement.scrollHeight"), 3000)
        self.assertEqual([text.split() for text in self.texts("#charts .metric-section > summary")],
                         [["Metrics", "13"], ["eval", "36"], ["gpu", "37"], ["layers", "37"], ["train", "37"]])
        self.assertEqual(self.count("#charts .card"), 7)
        self.section("gpu").click()
        self.wait(lambda: self.count("[data-section=gpu] .card") == 37)
        self.assertIn("open=gpu", self.browser.current_url)
        self.wait(lambda: self.drawn("metric-gpu/000/a_value_of_it-chart") or self.script(
            "document.querySelector('[data-section=gpu]').scrollIntoView()"))
        self.assertLess(self.count("[data-section=gpu] canvas"), 37)  # those in view
        self.script("document.querySelector('[data-section=gpu] .card:last-child').scrollIntoView()")
        self.wait(lambda: self.drawn("metric-gpu/036/a_value_of_it-chart"))
        self.wait(lambda: self.script("dispatchEvent(new Event('beforeprint')); return [...document.querySelectorAll("
                                      "'[data-section=gpu] canvas')].filter((c) => Chart.getChart(c)"
                                      "?.data.datasets[0]?.data.length > 10).length") == 37)
        self.browser.refresh()
        self.wait(lambda: self.count("[data-section=gpu] .card") == 37)
        self.section("gpu").send_keys(Keys.ENTER)  # by the keyboard
        self.wait(lambda: self.count("[data-section=gpu] .card") == 0)
        self.assertLess(self.asked("/metrics"), 6)

    def test_metrics_are_found_pinned_and_hidden_and_the_address_holds_it(self):
        self.open("runs/m0metr", lambda: self.drawn("loss-chart"))
        self.find("#find-metrics").send_keys("TRAIN/03 value")
        self.wait(lambda: self.texts("#charts h2") == [f"train/03{at}/a_value_of_it" for at in range(7)])
        self.click("[aria-label='Pin train/033/a_value_of_it']")
        self.click("[aria-label='Hide train/034/a_value_of_it']")
        self.find("#find-metrics").clear()
        self.find("#find-metrics").send_keys(Keys.SPACE, Keys.BACKSPACE)
        self.wait(lambda: self.texts("#charts h2")[:2] == ["train/033/a_value_of_it", "Loss"])
        for part in ("pin=train%2F033%2Fa_value_of_it", "hide=train%2F034%2Fa_value_of_it"):
            self.assertIn(part, self.browser.current_url)
        self.browser.refresh()
        self.wait(lambda: self.texts("#charts h2")[:2] == ["train/033/a_value_of_it", "Loss"]
                  and self.drawn("metric-train/033/a_value_of_it-chart"))
        self.find("#find-metrics").send_keys("train/03")
        self.wait(lambda: len(self.texts("#charts h2")) == 6)
        self.click("#hidden-metrics")
        self.wait(lambda: len(self.texts("#charts h2")) == 7)
        nameless = self.script("return [...document.querySelectorAll('button, summary, input')].filter((e) =>"
                               " !(e.textContent.trim() || e.getAttribute('aria-label'))).length")
        self.assertEqual(nameless, 0)
        self.find("#find-metrics").send_keys("nowhere")
        self.wait(lambda: self.find("#no-metrics").is_displayed())

    def test_the_newest_part_of_a_live_chart_has_the_buckets_of_the_rest(self):
        loss = "return Chart.getChart('loss-chart').data.datasets[0].data.map((p) => [p.x, p.y])"
        self.open("runs/m0metr", lambda: self.drawn("loss-chart") and self.asked("/live") == 1 and self.asked("/metrics") > 1)
        for step in (1100, 1333):
            self.fill("live", "m0metr", str(step))
            self.wait(lambda: self.script(loss)[-1][0] == step)
        live = self.script(loss)
        self.browser.refresh()
        self.wait(lambda: self.drawn("loss-chart") and self.script(loss)[-1][0] == 1333)
        again = self.script(loss)
        self.assertEqual([x for x, _ in live], [x for x, _ in again])
        for (_, a), (_, b) in zip(live, again):
            self.assertAlmostEqual(a, b, 9)


class Groups(Filled):
    words = (("group", "60"), ("history", "70"))

    def test_a_group_has_a_curve_for_each_run_its_keys_and_links_to_compare(self):
        self.open("group?name=seeds", lambda: self.drawn("loss-chart") and self.count("#members tbody tr") == 50)
        self.assertEqual(self.text("#summary"), "60 runs: 57 finished, 3 diverged")
        self.assertIn("Best: optimizer.lr = 0.001, model.embed = 256", self.text("#winner"))
        lines = "return Chart.getChart('loss-chart').data.datasets.filter((d) => !d.helper)"
        self.assertEqual(self.script(lines + ".length"), 21)  # the best 20, and the mean of all with its band
        self.assertEqual(self.script(lines + ".length") + 2, self.script("return Chart.getChart('loss-chart').data.datasets.length"))
        self.assertEqual(self.count("#parallel path"), 60)
        self.assertEqual(self.texts("#parallel .name"), ["optimizer.lr", "model.embed", "batch.sequences", "valid_loss"])
        self.assertLess(self.script("return document.getElementById('charts').getBoundingClientRect().bottom"),
                        self.script("return document.getElementById('members').getBoundingClientRect().top"))
        best = self.text("#members tbody tr:first-child code")
        link = self.script("return document.querySelector('#parallel a:not(.first)').getAttribute('href')")
        self.assertTrue(link.startswith(f"/compare?runs={best},"), link)
        before = self.script(lines + ".map((d) => d.borderColor)")
        Select(self.find("#colour")).select_by_value("model.embed")
        self.wait(lambda: self.script(lines + ".map((d) => d.borderColor)") != before)
        self.assertEqual(self.texts("#key > span"), ["64", "128", "256"])
        self.click("#more-members")
        self.wait(lambda: self.count("#members tbody tr") == 60)
        self.assertEqual(self.texts("#members tbody tr:last-child .pill"), ["diverged"])
        self.click("#members th[data-sort='optimizer.lr'] button")
        self.wait(lambda: self.text("#members tbody tr:first-child td:nth-child(5)") == "1e-4")
        for part in ("colour=model.embed", "sort=optimizer.lr"):
            self.assertIn(part, self.browser.current_url)
        for box in self.browser.find_elements(By.CSS_SELECTOR, "#members .tick input")[:2]:
            box.click()
        self.assertEqual(self.text("#compare"), "Compare 2 runs")
        self.assertLess(self.asked("/api/"), 20)
        self.look(390, 844)
        self.assert_not_wider(390)
        for metric in ("#members tbody .number", "#parallel .axis:last-child .name"):  # both are visible without scrolling
            self.wait(lambda: self.script(f"return document.querySelector('{metric}').getBoundingClientRect().right") <= 390)

    def test_twenty_runs_are_compared_in_colours_and_dashes(self):
        ids = [f"g{at:05}" for at in range(20)]
        self.open(f"compare?runs={','.join(ids)}", lambda: self.drawn("loss-chart") and self.text("#summary") == "20 runs")
        strokes = self.script("return Chart.getChart('loss-chart').data.datasets.map((d) => [d.borderColor, ...d.borderDash].join())")
        self.assertEqual(len(set(strokes)), 20)
        self.assertEqual([text.split()[-1] for text in self.texts("#legend a")], ids)
        self.assertFalse(self.script("return Chart.getChart('loss-chart').legend.options.display"))
        swatches = self.script("return [...document.querySelectorAll('#metrics thead .swatch')].map((s) =>"
                               " [s.className, s.style.getPropertyValue('--ink')].join())")
        self.assertEqual(len(set(swatches)), 20)
        self.browser.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", **self.script(
            "const b = document.getElementById('loss-chart').getBoundingClientRect(); return {x: b.left + 300, y: b.top + 100}")})
        self.wait(lambda: self.text("#loss-card .readout").count("seeds-") == 1)  # the nearest
        for width in (1280, 390):
            self.look(width, 844)  # the charts take the new width a moment later; the table scrolls in its own box
            self.wait(lambda: self.script("const box = document.getElementById('metrics'); return box.scrollWidth > box.clientWidth"
                                          f" && document.documentElement.scrollWidth <= {width}"))
        streams = [self.browser.execute_async_script(  # twenty in one stream, and one too many
            "const stop = new AbortController(); fetch('/api/v1/live?runs=' + arguments[0], {signal: stop.signal})"
            ".then((a) => { arguments[1](a.status); stop.abort(); }).catch(() => {})", ",".join(names))
            for names in (ids, [*ids, "g00020"])]
        self.assertEqual(streams, [200, 400])
        self.browser.get_log("browser")

    def test_a_small_group_draws_every_run_and_says_when_there_is_none(self):
        self.open("group?name=baselines", lambda: self.drawn("loss-chart"))
        runs = self.count("#members tbody tr")
        self.assertGreater(runs, 2)
        self.assertEqual(self.script("return Chart.getChart('loss-chart').data.datasets.length"), runs)
        self.open("group?name=nowhere", lambda: self.find("#none").is_displayed())
        self.assertFalse(self.find("#loading").is_displayed())


class Lists(Filled):
    words = (("history", "70"),)

    def rows(self):
        return self.script("return [...document.querySelectorAll('#runs tbody code')].map((e) => e.textContent)")

    def add(self, which, words):
        self.find(f"#{which}").clear()
        self.find(f"#{which}").send_keys(words, Keys.ENTER)

    def test_columns_and_filters_are_chosen_and_kept_in_the_address(self):
        self.open("", lambda: len(self.rows()) == 76)
        self.click("#choose")
        self.wait(lambda: self.count("#column-keys option[value='optimizer.lr']") == 1)
        self.assertEqual(self.count("#filter-keys option[value='valid_loss.min']"), 1)
        self.add("filter", "optimizer.lr")
        self.wait(lambda: "a filter is a key" in self.text("#problem"))
        self.add("filter", "optimiser.lr<1")
        self.wait(lambda: "no run has 'optimiser.lr'" in self.text("#problem"))
        self.add("filter", "optimizer.lr=1e-3")
        self.add("filter", "valid_loss.min<1.95")
        self.wait(lambda: 0 < len(self.rows()) < 12)
        self.assertFalse(self.find("#problem").is_displayed())
        few = self.rows()
        for key in ("optimizer.lr", "valid_loss.min", "loss@1000"):
            self.add("column", key)
            self.wait(lambda: self.count(f"#runs th[data-sort='{key}']") == 1)
        self.wait(lambda: self.texts("#runs tbody tr:first-child .extra")[:1] == ["0.001"])
        self.click("#usual label:nth-of-type(6) input")  # without "Took"
        self.wait(lambda: self.count("#runs tbody td[data-title=Took]") == 0)
        self.click("#runs th[data-sort='valid_loss.min'] button")
        self.wait(lambda: "sort=valid_loss.min" in self.browser.current_url and self.rows() != [])
        values = lambda: [float(text) for text in self.texts("#runs tbody .extra:nth-last-child(3)")]
        self.wait(lambda: values() == sorted(values()) and set(self.rows()) == set(few))
        link = self.browser.current_url
        self.browser.get("about:blank")
        self.browser.get(link)
        self.wait(lambda: set(self.rows()) == set(few) and values() == sorted(values()))
        self.assertEqual(self.texts("#chips .words"), ["optimizer.lr=1e-3", "valid_loss.min<1.95", "optimizer.lr", "valid_loss.min", "loss@1000"])
        for name in ("filter optimizer.lr=1e-3", "filter valid_loss.min<1.95"):
            self.click(f"[aria-label='Remove {name}']")
        self.wait(lambda: len(self.rows()) == 76)

    def test_tags_and_groups_lead_to_their_runs_and_long_names_stay_inside(self):
        self.open("?tag=keep", lambda: 0 < len(self.rows()) < 20)
        self.assertEqual({"keep" in text for text in self.texts("#runs tbody .labels")}, {True})
        look = lambda css: self.script(f"const s = getComputedStyle(document.querySelector('{css}')); return [s.borderRadius, s.borderWidth]")
        self.open("?q=a-name-of-sixty-four", lambda: len(self.rows()) > 1)
        self.assertNotEqual(look("#runs .tag"), look("#runs .group"))
        for width in (1280, 1920, 390):
            self.look(width, 844)
            self.assert_not_wider(width)
        metric = "#runs tbody tr:nth-child(2) td[data-title=Loss]"
        box = self.script(f"const b = document.querySelector('{metric}').getBoundingClientRect(); return [b.left, b.right]")
        self.assertTrue(0 <= box[0] < box[1] <= 390, box)
        self.click("#runs .group")
        self.wait(lambda: "/group?name=" in self.browser.current_url and self.drawn("loss-chart"))
        self.assert_not_wider(390)

    def test_a_diverged_run_is_red_and_says_so(self):
        self.open("?state=active", lambda: "running, diverged" in self.texts("#runs .pill"))
        self.open("runs/h00065", lambda: self.drawn("loss-chart") and self.text("#reason") != "")
        self.assertEqual(self.text("#state"), "diverged")
        self.assertEqual(self.text("#reason"), "Diverged: the loss is not a number since step 1,010.")
        self.assertIn("failed", self.find("#state .pill").get_attribute("class"))
        self.wait(lambda: "not a number at step 1,010" in self.find("#loss-chart").get_attribute("aria-label"))


if __name__ == "__main__":
    if not (test_page.BROWSER and test_page.DRIVER):
        print("Chromium or its driver is missing")
        sys.exit(77)
    test_page.FILL, test_page.SERVE, HISTORY = sys.argv[1:4]
    test_page.SHOTS = os.environ.get("DTRUN_SHOTS")
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:])
