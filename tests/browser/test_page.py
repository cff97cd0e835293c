#!/usr/bin/python3
"""The page in a headless Chromium, with a store that fill_store makes.

usage: test_page.py FILL_STORE SERVE_STORE [TEST...]     all tests, or those that are named: Page.test_x
DTRUN_SHOTS names a folder for screenshots.
Exits 77 where python3-selenium, Chromium or its driver is missing.
"""
import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

try:
    from selenium import webdriver
    from selenium.common.exceptions import JavascriptException, StaleElementReferenceException
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select, WebDriverWait
except ImportError:
    print("python3-selenium is missing")
    sys.exit(77)

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
FILL = SERVE = SHOTS = None
PATIENCE_SECONDS = 60


def messages(browser):
    """Returns the messages of the console, except those of Chromium about its own pages on a slow machine."""
    return [entry for entry in browser.get_log("browser") if entry["source"] != "intervention"]


class Browsing(unittest.TestCase):
    """A browser with its own filled store, and helpers of the tests."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="dtrun-page-")
        cls.server = cls.serve()
        options = Options()
        options.binary_location = BROWSER
        for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage",
                         "--disable-gpu", "--hide-scrollbars",
                         "--user-data-dir=" + os.path.join(cls.folder, "profile"),
                         "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        cls.browser = webdriver.Chrome(options=options, service=Service(DRIVER))
        cls.browser.get(cls.link)

    @classmethod
    def serve(cls):
        """Starts the server, and sets its url and the link that opens it."""
        cls.store = os.path.join(cls.folder, "store.db")
        subprocess.run([FILL, cls.store], check=True)
        server = subprocess.Popen([SERVE, cls.store], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        cls.url = server.stdout.readline().strip()
        cls.link = server.stdout.readline().strip()
        return server

    @classmethod
    def end_server(cls):
        if not cls.server.stdin.closed:
            cls.server.stdin.close()
        return cls.server.wait(PATIENCE_SECONDS)

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        code = cls.end_server()
        cls.server.stdout.close()
        for _ in range(20):  # the last processes of the browser may still write their profile
            shutil.rmtree(cls.folder, ignore_errors=True)
            if not os.path.exists(cls.folder):
                break
            time.sleep(0.2)
        assert code == 0, f"the server ended with {code}"

    def look(self, width, height, scheme="light"):
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def open(self, path, until):
        self.browser.get(self.url + path)
        self.wait(until)

    def wait(self, condition):
        """A condition that raises one of these reads what is not there yet: a chart, a row, a number in a cell."""
        WebDriverWait(self.browser, PATIENCE_SECONDS, 0.1,
                      ignored_exceptions=[StaleElementReferenceException, JavascriptException, IndexError, ValueError]
                      ).until(lambda _: condition())

    def grow(self):
        """Adds points to the active run, after those that other tests added; returns its new step."""
        with contextlib.closing(sqlite3.connect(self.store)) as store:
            step = store.execute("SELECT step FROM runs WHERE id = 'v6l1ve'").fetchone()[0] + 10
        subprocess.run([FILL, self.store, "live", str(step)], check=True)
        return step

    def read(self, what):
        """Tries again if an element was replaced between being found and being read, because the page is live."""
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return what()
            except StaleElementReferenceException:
                if time.monotonic() > end:
                    raise

    def text(self, css):
        return self.read(lambda: self.browser.find_element(By.CSS_SELECTOR, css).text)

    def texts(self, css):
        return self.read(lambda: [element.text for element in self.browser.find_elements(By.CSS_SELECTOR, css)])

    def script(self, code):
        return self.browser.execute_script(code)

    def click(self, css):
        self.read(lambda: self.browser.find_element(By.CSS_SELECTOR, css).click())

    def assert_not_wider(self, width):
        """Waits: charts take a new width a moment after the window."""
        self.wait(lambda: self.script("return document.documentElement.scrollWidth") <= width)

    def shoot(self, name):
        if SHOTS:
            self.browser.save_screenshot(os.path.join(SHOTS, name + ".png"))

    def open_run(self, run):
        self.open("runs/" + run, lambda: self.text("#state") != "" and self.text("#recipe") != "")

    def points(self, canvas, dataset=0):
        """Returns the data of the chart of a canvas."""
        return self.script(f"return Chart.getChart('{canvas}').data.datasets[{dataset}]"
                           ".data.map((p) => p.x)")


class Page(Browsing):
    def setUp(self):
        self.look(1280, 900)

    def tearDown(self):
        log = [entry for entry in messages(self.browser)
               if not entry["message"].startswith(self.url + "runs/nope")]
        self.assertEqual(log, [], "the browser's console holds errors")

    def import_a_run(self):
        """Adds the run i9mprt, and removes it when the test is over and its page is closed."""
        subprocess.run([FILL, self.store, "imported", "20"], check=True)
        self.addCleanup(subprocess.run, [FILL, self.store, "remove", "i9mprt"], check=True)
        self.addCleanup(self.browser.get, "about:blank")  # cleanups run in reverse order

    def test_the_list_shows_every_run_newest_first(self):
        self.open("", lambda: len(self.texts("#runs tbody tr")) == 6)
        self.assertEqual(self.texts("#runs tbody .pill"),
                         ["queued", "running", "failed", "finished", "stopped", "running"])
        self.assertEqual(self.texts("#runs tbody code"),
                         ["p8s6ze", "k3v9x2", "b1d5wn", "m4x9tr", "h7c2qa", "v6l1ve"])
        self.assertEqual(self.texts("#runs .steps")[3], "2,000 / 2,000")
        self.assertEqual(self.text(".heading p"), "6 in all, 3 active")
        numbers = self.texts("#runs tbody tr:nth-child(4) .number")
        self.assertEqual(numbers[1], "1.7519")
        self.assertEqual(numbers[4], "1 min 30 s")
        self.shoot("list")

    def test_a_model_on_rows_has_rows(self):
        with contextlib.closing(sqlite3.connect(self.store)) as store:
            where = "run = (SELECT run FROM runs WHERE id = 'm4x9tr')"
            before = store.execute(f"SELECT recipe_json FROM attempts WHERE {where}").fetchone()[0]
            put = lambda recipe: store.execute(f"UPDATE attempts SET recipe_json = ? WHERE {where}", (recipe,)) and store.commit()
            recipe = json.loads(before)
            recipe.setdefault("model", {})["inputs"] = 4
            put(json.dumps(recipe))
            try:
                self.open("", lambda: self.text("#runs th[data-sort=tokens_per_second]") == "Speed (last)")
                speeds = dict(self.browser.execute_script("""
                    return [...document.querySelectorAll("#runs tbody tr")].map((row) =>
                        [row.querySelector("code").innerText, row.querySelectorAll(".number")[2].innerText]);"""))
                self.assertTrue(speeds["m4x9tr"].endswith(" rows/s"), speeds)
                self.assertTrue(speeds["h7c2qa"].endswith(" tokens/s"), speeds)
                self.open("?q=m4x9tr", lambda: self.text("#runs th[data-sort=tokens_per_second]") == "Rows/s (last)")
                self.open_run("m4x9tr")
                self.wait(lambda: "Rows per second" in self.texts("#charts h2") and
                          any(label.startswith("Rows/s (") for label in self.texts("#figures dt")))
                self.assertEqual(self.text("#axis option[value=tokens]"), "rows")
                self.assertNotIn("okens", self.text("#figures") + self.text("#charts"))
                self.open("compare?runs=m4x9tr,h7c2qa", lambda: "Speed" in self.texts("#charts h2"))
                self.assertEqual(self.text("#axis option[value=tokens]"), "tokens or rows")
            finally:
                put(before)

    def test_what_looks_like_html_stays_text(self):
        self.open("", lambda: len(self.texts("#runs tbody tr")) == 6)
        self.assertEqual(self.texts("#runs strong")[2],
                         "a <img src=x onerror=alert(1)> name & more")
        self.assertEqual(self.script("return document.querySelectorAll('td img').length"), 0)
        self.open_run("b1d5wn")
        self.wait(lambda: len(self.texts("#output-tabs .tab")) == 3)
        self.browser.find_elements(By.CSS_SELECTOR, "#output-tabs .tab")[1].click()
        self.wait(lambda: "<script>alert(1)</script>" in self.text("#output"))
        self.assertIn("<b>not bold</b>", self.text("#recipe"))
        self.assertEqual(self.script("return document.querySelectorAll('main img, main script,"
                                     " #recipe b').length"), 0)

    def test_a_name_leads_to_its_run(self):
        self.open("", lambda: len(self.texts("#runs tbody tr")) == 6)
        link = self.browser.find_elements(By.CSS_SELECTOR, "#runs a")[3]
        link.send_keys(Keys.ENTER)
        self.wait(lambda: self.browser.current_url == self.url + "runs/m4x9tr")
        self.wait(lambda: self.text("#name") == "shakespeare")

    def test_a_finished_run_shows_its_curves_figures_and_checkpoints(self):
        self.open_run("m4x9tr")
        self.assertEqual(self.text("#state"), "finished")
        self.assertIn("Step 2,000 of 2,000", self.text("#steps"))
        self.assertEqual(self.text("#eta"), "took 1 min 30 s")
        self.assertIn("2 ranks on 1 node", self.text("#about"))
        self.wait(lambda: len(self.points("loss-chart")) == 201)
        self.assertEqual(len(self.points("loss-chart", 1)), 8)
        self.assertEqual(len(self.points("rate-chart")), 201)
        self.assertEqual(len(self.points("speed-chart")), 201)
        figures = dict(zip(self.texts("#figures dt"), self.texts("#figures dd")))
        self.assertEqual(figures["Validation loss"], "1.7519")
        self.assertEqual(figures["Best validation"], "1.7519")
        self.assertEqual(figures["Step time"], "45 ms")
        self.wait(lambda: len(self.texts("#checkpoints tbody tr")) == 4)
        self.assertEqual(self.texts("#checkpoints tbody tr td:first-child"),
                         ["2,000", "1,500", "1,000", "500"])
        self.assertEqual(self.texts("#checkpoints .tag"), ["best"])
        self.assertFalse(self.browser.find_element(By.ID, "reason").is_displayed())
        self.shoot("finished")

    def test_what_each_rank_has_for_itself_is_one_chart(self):
        self.open_run("m4x9tr")
        self.wait(lambda: self.browser.find_elements(By.ID, "ranks-gpu_used_bytes-chart"))
        self.script("document.getElementById('ranks-gpu_used_bytes-card').scrollIntoView({block: 'center'})")
        self.wait(lambda: self.script("return Chart.getChart('ranks-gpu_used_bytes-chart').data.datasets.length") == 2)
        self.assertEqual(len(self.points("ranks-gpu_used_bytes-chart", 1)), 8)
        self.assertEqual(self.script("return Chart.getChart('ranks-gpu_used_bytes-chart').data.datasets"
                                     ".filter((d) => !d.helper).map((d) => d.label)"), ["rank 0", "rank 1"])
        self.shoot("ranks")

    def test_a_failed_run_shows_the_reason(self):
        self.open_run("b1d5wn")
        self.assertEqual(self.text("#state"), "failed")
        self.assertIn("rank 1 on localhost was killed by signal 9", self.text("#reason"))
        self.assertIn("signal 9", self.text("#ranks"))
        self.shoot("failed")

    def test_a_running_run_is_polled_without_a_stream(self):
        alone = self.browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument",
                                             {"source": "delete globalThis.EventSource"})
        self.addCleanup(self.browser.execute_cdp_cmd, "Page.removeScriptToEvaluateOnNewDocument", alone)
        self.open_run("k3v9x2")
        self.wait(lambda: self.points("loss-chart")[-1] == 740)
        before = self.script("return document.querySelector('#figures dd').textContent")
        self.assertIn("left", self.text("#eta"))
        subprocess.run([FILL, self.store, "step", "1010"], check=True)
        self.wait(lambda: "Step 1,010 of 2,000" in self.text("#steps"))
        self.wait(lambda: self.points("loss-chart")[-1] == 1010)
        steps = self.points("loss-chart")
        self.assertEqual(steps, sorted(set(steps)), "a point is missing or doubled")
        self.assertEqual(steps[:75], list(range(0, 750, 10)))
        self.assertEqual(self.points("loss-chart", 1), [250, 500, 750, 1000])
        self.assertNotEqual(before, self.texts("#figures dd")[0])

    def asked(self, part):
        return self.script("return performance.getEntriesByType('resource').filter((e) =>"
                           f" e.name.includes('{part}')).length")

    def test_a_live_chart_follows_the_stream(self):
        """The page does not read a run again while the stream sends its changes."""
        self.open_run("v6l1ve")
        self.wait(lambda: self.asked("/live") == 1 and self.asked("/metrics") == 2)
        self.wait(lambda: self.points("loss-chart")[-1] == 740)
        subprocess.run([FILL, self.store, "live", "900"], check=True)
        self.wait(lambda: "Step 900 of 2,000" in self.text("#steps"))
        self.wait(lambda: self.points("loss-chart")[-1] == 900)
        subprocess.run([FILL, self.store, "live", "1010"], check=True)
        self.wait(lambda: self.points("loss-chart")[-1] == 1010)
        steps = self.points("loss-chart")
        self.assertEqual(len(steps), len(set(steps)))
        self.assertEqual(steps[-11:], list(range(910, 1011, 10)))
        self.assertEqual(self.asked("/metrics"), 2, "curves were asked for again")
        self.shoot("live")

    def test_the_list_follows_the_stream(self):
        self.open("", lambda: len(self.texts("#runs tbody tr")) == 6)
        self.wait(lambda: self.asked("/api/v1/runs?") == 2)  # the second request after the stream has opened
        row = "#runs tbody tr:nth-child(6) .steps"
        still = self.browser.find_element(By.CSS_SELECTOR, "#runs tbody tr:nth-child(4)")
        for _ in range(2):
            step = self.grow()
            self.wait(lambda: self.text(row) == f"{step:,} / 2,000")
        self.assertEqual(self.asked("/api/v1/runs?"), 2, "the list was asked for again")
        self.assertIn("2,000 / 2,000", still.text)  # elements that did not change stay in place
        self.browser.find_element(By.ID, "q").send_keys("v6l1ve")  # another list has another stream
        self.wait(lambda: len(self.texts("#runs tbody tr")) == 1 and self.asked("/runs?limit=100&offset=0&q=v6l1ve") >= 2)
        step = self.grow()
        self.wait(lambda: self.texts("#runs tbody .steps") == [f"{step:,} / 2,000"])

    def test_compared_runs_follow_the_stream(self):
        self.open("compare?runs=v6l1ve,m4x9tr", lambda: self.browser.find_elements(By.ID, "loss-chart"))
        self.wait(lambda: self.asked("/metrics") == 4)  # two requests after the stream has opened
        for _ in range(2):
            step = self.grow()
            self.wait(lambda: self.points("loss-chart")[-1] == step)
            self.assertEqual(len(self.points("loss-chart")), len(set(self.points("loss-chart"))))
        self.assertEqual(self.asked("/metrics"), 4, "curves were asked for again")

    def test_compared_groups_follow_the_stream(self):
        """The page requests the band of a group when a run of the group has changed, not when others change."""
        with contextlib.closing(sqlite3.connect(self.store)) as store, store:
            store.execute("UPDATE runs SET run_group = 'growing, \"<i>' WHERE id = 'v6l1ve'")
        self.open("compare?group=growing%2C%20%22%3Ci%3E&runs=m4x9tr",
                  lambda: self.browser.find_elements(By.ID, "loss-chart"))
        self.assertEqual(self.text("#summary"), "1 group, 1 run")
        self.wait(lambda: self.asked("/band") >= 3)  # again once the streams have opened
        for _ in range(2):
            before = self.asked("/band")
            step = self.grow()
            self.wait(lambda: self.points("loss-chart")[-1] == step)
            self.assertGreater(self.asked("/band"), before)
        self.assertEqual(self.points("loss-chart"), sorted(set(self.points("loss-chart"))))
        before = self.asked("/band")
        subprocess.run([FILL, self.store, "step", "1020"], check=True)
        time.sleep(3)
        self.assertLessEqual(self.asked("/band") - before, 1, "asked for what another run does")

    def test_the_loss_is_shown_on_a_logarithmic_scale_on_demand(self):
        self.open_run("m4x9tr")
        kind = "return Chart.getChart('loss-chart').scales.y.type"
        self.assertEqual(self.script(kind), "linear")
        button = self.browser.find_element(By.ID, "log-scale")
        button.send_keys(Keys.SPACE)
        self.assertEqual(self.script(kind), "logarithmic")
        self.assertEqual(button.get_attribute("aria-pressed"), "true")
        button.click()
        self.assertEqual(self.script(kind), "linear")

    def test_tabs_are_reached_with_the_keyboard(self):
        self.open_run("b1d5wn")
        self.wait(lambda: self.texts("#output-tabs .tab") == ["Events", "Rank 0", "Rank 1"])
        self.wait(lambda: "by signal SIGKILL" in self.text("#output"))
        self.assertIn("attempt 1 from step 0: no card", self.text("#output"))
        find = self.browser.find_element(By.ID, "find")
        find.send_keys("SIGKILL")
        self.wait(lambda: len(self.texts("#output li")) == 1)
        find.send_keys(" nowhere")
        self.wait(lambda: "No matching lines." in self.text("#output"))
        find.clear()
        find.send_keys(Keys.SPACE, Keys.BACKSPACE)
        self.wait(lambda: len(self.texts("#output li")) > 1)
        self.browser.find_element(By.CSS_SELECTOR, "#output-tabs [aria-selected=true]").send_keys(
            Keys.ARROW_RIGHT)
        self.wait(lambda: "evaluated 1920 sequences" in self.text("#output"))
        self.browser.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
        self.wait(lambda: "bytes that are no text red" in self.text("#output"))
        self.assertEqual(self.texts("#output-tabs [aria-selected=true]"), ["Rank 1"])
        self.browser.find_element(By.CSS_SELECTOR, "#recipe-tabs .tab:last-child").click()
        self.wait(lambda: '"bucket_mb": 25' in self.text("#recipe"))

    def test_dark_follows_the_readers_wish_while_open(self):
        ground = "return getComputedStyle(document.body).backgroundColor"
        brightness = lambda: sum(int(part) for part in
                                 self.script(ground).strip("rgb()").split(",")) / 3
        self.open_run("m4x9tr")
        light = self.script("return Chart.getChart('loss-chart').data.datasets[0].borderColor")
        self.assertGreater(brightness(), 200)
        self.look(1280, 900, "dark")
        self.wait(lambda: brightness() < 60)
        self.wait(lambda: light != self.script(
            "return Chart.getChart('loss-chart').data.datasets[0].borderColor"))
        self.shoot("dark")

    def test_nothing_is_wider_than_a_phone(self):
        self.look(390, 844)
        pages = [("", lambda: len(self.texts("#runs tbody tr")) == 6)]
        pages += [("runs/" + run, lambda: self.text("#recipe") != "")
                  for run in ("k3v9x2", "b1d5wn", "p8s6ze")]
        for path, ready in pages:
            self.open(path, ready)
            width = self.script("return document.documentElement.scrollWidth")
            self.assertLessEqual(width, 390, path or "the list")
        self.open_run("b1d5wn")
        self.shoot("phone")

    def test_a_queued_run_is_a_whole_page_too(self):
        self.open_run("p8s6ze")
        self.assertEqual(self.text("#state"), "queued")
        self.assertIn("Not started yet.", self.text("#ranks"))
        self.assertIn("None on disk yet.", self.text("#checkpoints"))
        self.assertEqual(self.texts("#output-tabs .tab"), ["Events"])

    def test_an_imported_run_is_over_and_has_its_own_names(self):
        self.import_a_run()
        self.open_run("i9mprt")
        self.assertEqual(self.text("#ranks"), "None: this run was imported.")
        self.wait(lambda: self.text("#checkpoints") == "None: this run was imported.")
        self.assertEqual(self.text("#output"), "Nothing was recorded.")
        self.assertEqual(self.text("#recipe"), "This run was imported without a recipe.")
        self.wait(lambda: "train/loss" in self.texts("#charts h2"))
        self.wait(lambda: self.browser.find_element(By.ID, "metric-train/loss-chart").get_attribute("aria-label").startswith(
            "By step: train/loss 2.62 at step 19"))

    def test_user_labels_of_a_run_are_on_its_page(self):
        self.import_a_run()
        self.open_run("i9mprt")
        self.assertEqual(self.texts("#labels .group"), ["from elsewhere"])
        self.assertEqual(self.texts("#labels .tag"), ["keep", "old"])
        self.assertTrue(self.browser.find_element(By.CSS_SELECTOR, "#labels a").get_attribute("href").endswith(
            "group?name=from%20elsewhere"))
        self.assertEqual(self.text("#note"), "imported from '/home/ada/metrics.csv'")
        self.open_run("m4x9tr")
        self.assertFalse(self.browser.find_element(By.ID, "labels").is_displayed())
        self.assertFalse(self.browser.find_element(By.ID, "note").is_displayed())

    def test_every_chart_is_drawn_wherever_it_is_and_its_ticks_differ(self):
        self.import_a_run()
        self.look(1280, 300)  # only the first chart is inside the window
        self.open_run("i9mprt")
        chart = lambda name: f"Chart.getChart('metric-{name}-chart')"
        for name in ("train/loss", "constant_bytes", "huge", "once"):
            self.wait(lambda: self.script(f"return {chart(name)}?.data.datasets.length > 0"))
            for axis in "xy":
                labels = self.script(f"return {chart(name)}.scales.{axis}.ticks.map((tick) => tick.label)")
                self.assertEqual(len(labels), len(set(labels)), (name, axis, labels))
                self.assertGreater(len(labels), 1, (name, axis))
                self.assertLess(max(map(len, labels)), 12, (name, axis, labels))
        self.assertEqual(self.script(f"return {chart('once')}.data.datasets[0].pointRadius"), [2.5])
        self.assertEqual(set(self.script(f"return {chart('train/loss')}.data.datasets[0].pointRadius")), {0})

    def test_numbers_and_ticks_are_as_long_as_they_need_to_be(self):
        self.open("", lambda: len(self.texts("#runs tbody tr")) == 6)
        called = lambda name, *arguments: self.browser.execute_async_script(
            "const done = arguments[2]; import('/text.js').then((text) => done(text[arguments[0]](...arguments[1])))",
            name, arguments)
        for kind, values, labels in (
                ("", [0, 0.5, 1], ["0", "0.5", "1.0"]), ("", [-1, -0.5, 0], ["-1.0", "-0.5", "0"]),
                ("", [0, 500000, 1000000], ["0", "0.5M", "1.0M"]), ("", [15000, 15500], ["15,000", "15,500"]),
                ("", [2e-4, 4e-4, 1e-3], ["0.0002", "0.0004", "0.0010"]), ("", [2e-5, 2.5e-5], ["2e-5", "2.5e-5"]),
                ("", [-1e308, 0, 1e308], ["-1e+308", "0", "1e+308"]), ("", [7], ["7"]),
                ("bytes", [13200000, 13200050, 13200100], ["13.20000 MB", "13.20005 MB", "13.20010 MB"]),
                ("bytes", [0, 5e8, 1e9], ["0.0 GB", "0.5 GB", "1.0 GB"]), ("bytes", [1e20, 1e25], ["1e+20 B", "1e+25 B"]),
                ("seconds", [0, 0.02, 0.04], ["0 ms", "20 ms", "40 ms"]), ("seconds", [1, 1.5], ["1.0 s", "1.5 s"]),
                ("time", [0, 0.5, 1], ["0.0 s", "0.5 s", "1.0 s"]), ("time", [0, 30, 60, 90], ["0 s", "30 s", "1 min", "1 min 30 s"]),
                ("time", [90000, 90030], ["1 d 1 h", "1 d 1 h 30 s"]), ("time", [60, 60.5], ["1 min", "1 min 0.5 s"])):
            self.assertEqual(called("tickLabels", values, kind), labels)
        self.assertEqual(called("logLabels", [0.1, 1, 10, 1e6], ""), ["0.1", "1", "10", "1M"])
        self.assertEqual(called("logLabels", [13200000, 13200100], "bytes"), ["13.2000 MB", "13.2001 MB"])
        for name, value, words in (("count", 1e308, "1e+308"), ("count", -0.2, "0"), ("compact", 1e308, "1e+308"),
                                   ("bytes", 1e308, "1e+308 B"), ("bytes", -5e9, "−5.0 GB"), ("bytes", None, "–"),
                                   ("duration", 1e308, "1e+308 s"), ("shortTime", 1e308, "1e+308 s"), ("loss", 1e308, "1.000e+308")):
            self.assertEqual(called(name, value), words)

    def test_an_unknown_run_is_a_friendly_page(self):
        self.open("runs/nope", lambda: "Nothing here" in self.text("h1"))
        self.assertEqual(self.text("main a"), "All runs")

    def test_everything_has_a_name_for_those_who_do_not_see(self):
        self.open_run("m4x9tr")
        self.wait(lambda: "validation loss 1.75 at step 2,000" in self.browser.find_element(
            By.ID, "loss-chart").get_attribute("aria-label"))
        nameless = self.script("""
          return [...document.querySelectorAll('button, a, canvas, [role=tabpanel], section.card')]
            .filter((e) => !(e.textContent.trim() || e.getAttribute('aria-label')))
            .map((e) => e.outerHTML.slice(0, 80));""")
        self.assertEqual(nameless, [])


class History(Browsing):
    """Long curves, many runs, and several of them in one chart."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        subprocess.run([FILL, cls.store, "many", "250"], check=True)
        subprocess.run([FILL, cls.store, "long", "9000"], check=True)

    def setUp(self):
        self.look(1280, 900)

    def tearDown(self):
        self.assertEqual(messages(self.browser), [], "the browser's console holds errors")

    def helpers(self, canvas):
        """Returns the highest values of the datasets other than the lines, such as the edges of bands."""
        return self.script(f"return Chart.getChart('{canvas}').data.datasets.filter((d) => d.helper)"
                           ".map((d) => Math.max(...d.data.map((p) => p.y).filter(Number.isFinite)))"
                           ".filter(Number.isFinite)")

    def open_long(self, query=""):
        self.open("runs/w2z5lg" + query, lambda: self.browser.find_elements(By.ID, "loss-chart")
                  and len(self.points("loss-chart") or []) > 10)

    def drag(self, css, start, end):
        """Drags over a chart, from one fraction of its width to another."""
        canvas = self.browser.find_element(By.CSS_SELECTOR, css)
        self.script(f"document.querySelector('{css}').scrollIntoView({{block: 'center'}})")
        width = canvas.size["width"]
        at = lambda share: int((share - 0.5) * width)
        ActionChains(self.browser, 50).move_to_element_with_offset(canvas, at(start), 0) \
            .click_and_hold().move_to_element_with_offset(canvas, at((start + end) / 2), 5) \
            .move_to_element_with_offset(canvas, at(end), 0).release().perform()

    def test_a_long_curve_keeps_its_peak_in_a_band(self):
        self.open_long()
        steps = self.points("loss-chart")
        self.assertLess(len(steps), 801)
        self.assertEqual(steps[-1], 9000)
        self.assertEqual(steps, sorted(set(steps)))
        self.assertEqual(max(self.helpers("loss-chart")), 50)
        self.assertEqual(self.texts("#charts h2"), ["Loss", "Tokens per second", "Step time",
                                                    "Memory in use"])
        self.shoot("band")

    def test_dragging_zooms_all_charts_and_changes_the_address(self):
        self.open_long()
        self.drag("#loss-chart", 0.3, 0.4)
        self.wait(lambda: "from=" in self.browser.current_url)
        zoomed = self.browser.current_url
        self.wait(lambda: self.points("loss-chart")[0] > 1500)
        steps = self.points("loss-chart")
        self.assertLess(steps[-1], 5000)
        self.assertGreater(len(steps), 200)
        self.script("document.getElementById('speed-chart').scrollIntoView({block: 'center'})")
        self.wait(lambda: self.points("speed-chart")[0] > 1500)
        self.shoot("zoomed")
        self.browser.get(zoomed)  # as a person who was sent the address
        self.wait(lambda: self.browser.find_elements(By.ID, "loss-chart")
                  and self.points("loss-chart") == steps)
        self.browser.find_element(By.ID, "loss-chart").send_keys("-")
        self.wait(lambda: self.points("loss-chart")[0] < steps[0])
        self.browser.find_element(By.ID, "whole").click()
        self.wait(lambda: self.points("loss-chart")[-1] == 9000)
        self.assertNotIn("from=", self.browser.current_url)

    def test_one_crosshair_goes_over_all_charts(self):
        self.open_long()
        canvas = self.browser.find_element(By.ID, "loss-chart")
        self.script("document.getElementById('loss-chart').scrollIntoView({block: 'start'})")
        ActionChains(self.browser, 50).move_to_element_with_offset(canvas, 30, 0).perform()
        crosses = self.browser.find_elements(By.CSS_SELECTOR, "#loss-card .cross, #speed-card .cross")
        self.wait(lambda: all(cross.is_displayed() for cross in crosses))
        self.assertIn("Loss", self.text("#loss-card .readout"))
        self.assertIn("17,000", self.text("#speed-card .readout"))
        self.shoot("crosshair")
        for width, scheme in ((1280, "light"), (390, "dark")):
            self.look(width, 900, scheme)
            self.script("document.getElementById('loss-chart').scrollIntoView({block: 'center'})")
            for side in (-0.3, 0.3):  # at the middle of the chart
                canvas = self.browser.find_element(By.ID, "loss-chart")
                ActionChains(self.browser, 50).move_to_element_with_offset(canvas, int(side * canvas.size["width"]), 0).perform()
                self.wait(lambda: self.text("#loss-card .readout") != "")
                self.assertEqual(self.script("""
                    const box = (css) => document.querySelector(`#loss-card ${css}`).getBoundingClientRect();
                    const [said, head, chart, cross] = ['.readout', '.card-head', '.chart', '.cross'].map(box);
                    return [said.top >= head.bottom, said.left >= chart.left, said.right <= chart.right,
                            said.bottom <= chart.bottom, said.right < cross.left || said.left > cross.right];"""), [True] * 5)
                self.shoot(f"crosshair-{width}-{'left' if side < 0 else 'right'}")

    def test_axes_smoothing_and_scale_are_chosen_and_kept(self):
        self.open_long()
        Select(self.browser.find_element(By.ID, "axis")).select_by_value("tokens")
        self.wait(lambda: self.points("loss-chart")[-1] == 9000 * 765)
        Select(self.browser.find_element(By.ID, "axis")).select_by_value("time")
        seconds = 9000 * 0.045 + 60 + 200 * 0.045  # undoing took time
        self.wait(lambda: abs(self.points("loss-chart")[-1] - seconds) < 0.01)
        smooth = Select(self.browser.find_element(By.ID, "smooth"))
        self.assertEqual(smooth.first_selected_option.text, "off")
        smooth.select_by_value("0.98")
        self.browser.find_element(By.ID, "log-scale").click()
        for part in ("x=time", "smooth=0.98", "log=1"):
            self.assertIn(part, self.browser.current_url)
        self.browser.refresh()
        self.wait(lambda: self.browser.find_elements(By.ID, "loss-chart")
                  and abs(self.points("loss-chart")[-1] - seconds) < 0.01)
        self.assertEqual(self.script("return Chart.getChart('loss-chart').scales.y.type"),
                         "logarithmic")
        highest = self.script("return Math.max(...Chart.getChart('loss-chart').data.datasets[0].data"
                              ".map((p) => p.y).filter(Number.isFinite))")
        self.assertLess(highest, 3)  # smoothed; the band contains the peak
        self.assertEqual(max(self.helpers("loss-chart")), 50)
        self.shoot("time")

    def test_all_runs_are_reached_by_pages_search_and_sorting(self):
        # in one script: a hundred calls to a browser take long on a busy machine
        rows = lambda: self.script("return [...document.querySelectorAll('#runs tbody code')].map((e) => e.textContent)")
        self.open("", lambda: len(rows()) == 100)
        self.assertIn("257 in all", self.text("#summary"))
        self.assertEqual(self.text("#page"), "Page 1 of 3")
        self.assertEqual(self.text("#active"), "3 active")
        self.browser.find_element(By.ID, "after").click()
        self.wait(lambda: self.text("#page") == "Page 2 of 3")
        self.assertEqual(self.text("#active"), "3 active")  # values of the store, not of this page
        self.browser.find_element(By.ID, "after").click()
        self.wait(lambda: len(rows()) == 57)
        self.assertIn("page=3", self.browser.current_url)
        self.browser.find_element(By.ID, "q").send_keys("SWEEP 24")
        self.wait(lambda: len(rows()) == 11)
        self.assertIn("11 found", self.text("#summary"))
        self.browser.find_element(By.CSS_SELECTOR, "#runs th[data-sort=loss] button").click()
        self.wait(lambda: rows()[0] == "sweep024" and rows()[-1] == "sweep249")
        self.browser.find_element(By.CSS_SELECTOR, "#runs th[data-sort=loss] button").click()
        self.wait(lambda: rows()[0] == "sweep249")
        self.browser.refresh()
        self.wait(lambda: len(rows()) == 11 and rows()[0] == "sweep249")
        Select(self.browser.find_element(By.ID, "of-state")).select_by_visible_text("failed")
        self.wait(lambda: self.browser.find_element(By.ID, "nothing").is_displayed())
        self.browser.find_element(By.ID, "active").click()
        self.wait(lambda: rows() == ["p8s6ze", "k3v9x2", "v6l1ve"])
        self.assertEqual(Select(self.browser.find_element(By.ID, "of-state")).first_selected_option.text, "active")
        # a run of another page of the list ends: the count changes although the list stays
        self.open("?page=2", lambda: len(rows()) == 100)
        self.wait(lambda: self.text("#active") == "3 active")
        with contextlib.closing(sqlite3.connect(self.store)) as store, store:
            store.execute("UPDATE attempts SET state = 'stopped', ended_ms = 1 WHERE state = 'queued'")
        self.wait(lambda: self.text("#active") == "2 active")

    def test_groups_are_compared_as_bands_and_the_address_holds_all_of_it(self):
        self.open("?q=sweep010", lambda: len(self.texts("#runs tbody code")) == 1)
        self.browser.find_element(By.CSS_SELECTOR, "#runs a.group").click()
        self.wait(lambda: self.browser.find_elements(By.ID, "loss-chart")
                  and self.points("loss-chart") == [0, 50, 100])
        self.assertEqual(self.text("#summary"), "10 runs: 10 finished")
        self.open("compare?group=rates%2C%20low", lambda: "/group?name=rates%2C%20low" in self.browser.current_url)
        self.open("compare?group=rates%2C%20low&group=rates%2C%20high&runs=sweep200&base=1&log=1",
                  lambda: self.browser.find_elements(By.ID, "loss-chart")
                  and len(self.points("loss-chart", 2) or []) == 3)
        chart = "return Chart.getChart('loss-chart').data.datasets"
        means = self.script(chart + "[0].data.map((p) => Number(p.y.toFixed(4)))")
        self.assertEqual(means, [7.5, 6.5, 6.1667])
        edges = self.script(chart + ".filter((d) => d.helper).map((d) => d.data.map((p) => Number(p.y.toFixed(4))))")
        self.assertEqual(edges[:2], [[3, 2, 1.6667], [12, 11, 10.6667]])
        self.assertEqual(self.text("#summary"), "2 groups, 1 run")
        cells = self.texts("#metrics tbody tr:first-child td")
        self.assertEqual(cells, ["loss, last", "6.1667 (−62 %)", "16.1667", "200.6667 (+1141 %)"])
        self.assertEqual(self.texts("#metrics .best"), ["6.1667 (−62 %)", "1.6667 (−86 %)"])
        self.assertEqual(self.texts("#recipes tbody td"),
                         ["optimizer.lr", "0.001, 0.002, 0.003, … (10)", "0.011, 0.012, 0.013, … (10)", "0.2"])
        Select(self.browser.find_element(By.ID, "axis")).select_by_value("time")
        self.wait(lambda: [round(x, 6) for x in self.points("loss-chart")] == [0, 0.05, 0.1])
        self.assertIn("x=time", self.browser.current_url)
        self.shoot("groups")

    def test_a_group_says_which_of_its_runs_won(self):
        self.open("group?name=rates%2C%20low", lambda: len(self.texts("#members tbody tr")) == 10)
        self.assertEqual(self.text("#winner"), "Best: optimizer.lr = 0.001 (loss 1.6667, sweep 1)")
        self.assertEqual(self.texts("#members th")[1:], ["Run", "loss, lowest", "State", "optimizer.lr", "Step"])
        self.assertEqual(self.texts("#members tbody tr:nth-child(2) td")[1:],
                         ["sweep 2 sweep002", "2.6667", "finished", "0.002", "100"])
        self.assertEqual(self.texts("#members .best"), ["1.6667"])
        self.open("compare?group=rates%2C%20low&group=rates%2C%20high", lambda: len(self.texts("#groups tbody tr")) == 20)
        self.assertEqual(self.texts("#groups .winner"), ["Best: optimizer.lr = 0.001 (loss 1.6667, sweep 1)",
                                                         "Best: optimizer.lr = 0.011 (loss 11.6667, sweep 11)"])
        self.assertEqual(self.texts("#groups .card:first-child th"), ["Run", "State", "optimizer.lr", "loss, lowest"])
        below = "return document.getElementById('groups').offsetTop > document.getElementById('charts').offsetTop"
        self.assertTrue(self.script(below))

    def test_a_comparison_begins_with_the_losses_and_folds_internal_metrics(self):
        with contextlib.closing(sqlite3.connect(self.store)) as store, store:
            for key, version in (("sweep001", 1), ("sweep002", 2)):
                store.execute("UPDATE attempts SET recipe_json = json_set(recipe_json, '$.needs', ?) WHERE run ="
                              " (SELECT run FROM runs WHERE id = ?)", (version, key))
        self.open("compare?runs=m4x9tr,w2z5lg,sweep001,sweep002,sweep003,sweep004,sweep005,sweep006",
                  lambda: len(self.texts("#metrics tbody tr")) > 5)
        labels = lambda: self.texts("#metrics tbody td:first-child")
        self.assertEqual(labels()[:4], ["loss, last", "loss, lowest", "valid_loss, last", "valid_loss, lowest"])
        self.assertEqual(self.texts("#charts h2")[:2], ["Loss", "Validation loss"])
        self.assertNotIn("held_bytes, last", labels())
        self.assertNotIn("needs", self.texts("#recipes tbody td:first-child"))
        self.assertIn("optimizer.lr", self.texts("#recipes tbody td:first-child"))
        cut = self.script("return [...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth).length")
        self.assertEqual(cut, 0)
        self.shoot("compare-eight")
        self.browser.find_element(By.ID, "internal").click()
        self.wait(lambda: "held_bytes, last" in labels() and "Memory in use" in self.texts("#charts h2"))
        self.assertIn("internal=1", self.browser.current_url)
        self.assertEqual(labels()[-1], "held_bytes, last")

    def test_texts_of_a_comparison_are_true(self):
        called = lambda file, name, *arguments: self.browser.execute_async_script(
            "const done = arguments[3]; import(arguments[0]).then((file) => done(file[arguments[1]](...arguments[2])))",
            file, name, arguments)
        self.open("", lambda: len(self.texts("#runs tbody tr")) == 100)
        words = lambda *arguments: called("/compare.js", "recipeWords", *arguments)
        self.assertEqual(words(["a", "b"], [], 0), "Their recipes are the same.")
        self.assertIsNone(words(["a", "b"], [], 3))
        self.assertEqual(words(["a"], ["b"], 0), "Only a has a recipe. Imported without a recipe: b.")
        self.assertEqual(words([], ["a", "b"], 0), "None of these runs has a recipe: they were imported.")
        self.assertEqual(words(["a", "b"], ["c"], 0), "The recipes of a, b are the same. Imported without a recipe: c.")
        self.assertEqual(words(["a", "b"], ["c"], 1), "Imported without a recipe: c.")
        self.assertEqual(called("/compare.js", "bestOf", [3, 1, None, 1], False), [1, 3])
        self.assertEqual(called("/compare.js", "bestOf", [3, 3], False), [])
        self.assertEqual(called("/compare.js", "differenceOf", 1e308, 1e-300), "")
        for values, kind, labels in (([1.75, 2, None], "", ["1.7500", "2.0000", "–"]), ([1e6, 5e5], "", ["1.00M", "0.50M"]),
                                     ([13200000, 1500000], "bytes", ["13.20 MB", "1.50 MB"]), ([0.045, 0.0451], "seconds", ["45.00 ms", "45.10 ms"]),
                                     ([1e-3, 3e-5], "", ["1.000e-3", "3.000e-5"]), ([1e308, 0], "", ["1.000e+308", "0"]),
                                     ([17000, 205485.4], "", ["17,000", "205,485"]), ([0, 0], "bytes", ["0 B", "0 B"])):
            self.assertEqual(called("/text.js", "rowLabels", values, kind), labels)

    def test_what_a_chart_shows_is_kept_as_csv(self):
        self.open_run("sweep007")
        self.wait(lambda: self.browser.find_elements(By.CSS_SELECTOR, "#loss-card .keep a"))
        fetched = lambda css: self.browser.execute_async_script(
            "const done = arguments[1]; fetch(document.querySelector(arguments[0]).href)"
            ".then((a) => a.text().then((text) => done([a.headers.get('Content-Disposition'), text])))", css)
        kept, text = fetched("#keep")
        self.assertEqual(kept, 'attachment; filename="dtrun.csv"')
        lines = text.splitlines()
        self.assertEqual(lines[0], "run,run_name,attempt,step,name,value,time")
        self.assertEqual([line.split(",")[:5] for line in lines[1:]],
                         [["sweep007", "sweep 7", "1", str(step), "loss"] for step in (0, 50, 100)])
        self.assertEqual(fetched("#loss-card .keep a")[1], text)

    def test_ticked_runs_are_compared(self):
        self.open("?q=sweep%2024", lambda: len(self.texts("#runs tbody code")) == 11)
        for box in self.browser.find_elements(By.CSS_SELECTOR, "#runs .tick input")[:3]:
            box.click()
        self.shoot("ticked")
        self.browser.find_element(By.ID, "compare").click()
        self.wait(lambda: self.browser.find_elements(By.ID, "loss-chart")
                  and len(self.points("loss-chart", 2) or []) == 3)
        self.assertIn("runs=sweep249,sweep248,sweep247", self.browser.current_url)
        self.wait(lambda: self.texts("#recipes tbody td") == ["optimizer.lr", "0.249", "0.248", "0.247"])
        cells = self.texts("#metrics tbody tr:first-child td")
        self.assertEqual(cells, ["loss, last", "249.6667", "248.6667 (−0.4 %)", "247.6667 (−0.8 %)"])
        Select(self.browser.find_element(By.ID, "base")).select_by_value("2")
        self.wait(lambda: self.texts("#metrics tbody tr:first-child td")[1] == "249.6667 (+0.8 %)")
        self.assertIn("base=2", self.browser.current_url)

    def test_a_comparison_of_what_was_recorded_for_long_and_for_short(self):
        self.open("compare?runs=w2z5lg,m4x9tr,shakespeare-bf16",
                  lambda: len(self.texts("#metrics tbody tr")) > 5)
        self.wait(lambda: self.points("loss-chart")[-1] == 9000)
        self.assertEqual(self.texts("#recipes"), ["Their recipes are the same."])
        self.shoot("compare")
        self.look(1280, 900, "dark")
        self.drag("#loss-chart", 0.1, 0.2)
        self.wait(lambda: self.points("loss-chart")[-1] < 2500)
        self.shoot("compare-dark")

    def test_a_comparison_shows_the_runs_that_are_there_and_names_the_others(self):
        self.open("compare?runs=m4x9tr,nope", lambda: "There is no run 'nope'" in self.text("#left-out"))
        self.assertEqual(self.text("#summary"), "1 run")
        self.wait(lambda: len(self.points("loss-chart") or []) == 201)
        names = ["sweep%03d" % at for at in range(1, 23)]
        self.open("compare?runs=" + ",".join(names), lambda: self.text("#summary") == "20 runs")
        self.assertEqual(self.text("#left-out"),
                         "Only 20 curves can be distinguished: 2 of 22 are left out (sweep021, sweep022).")
        subprocess.run([FILL, self.store, "imported", "20"], check=True)
        self.open("compare?runs=sweep211,i9mprt", lambda: self.text("#summary") == "2 runs")
        self.wait(lambda: len(self.points("metric-huge-chart", 1) or []) == 20)
        subprocess.run([FILL, self.store, "remove", "i9mprt"], check=True)
        self.wait(lambda: "imported i9mprt was removed" in self.text("#left-out"))
        self.assertEqual(len(self.points("metric-huge-chart", 1)), 20)  # known values stay
        self.assertEqual(self.text("#link"), "")
        self.browser.get_log("browser")  # the 404s are there

    def test_a_run_removed_while_its_page_is_open_is_reported(self):
        subprocess.run([FILL, self.store, "imported", "20"], check=True)
        self.open_run("i9mprt")
        self.wait(lambda: len(self.points("metric-huge-chart") or []) == 20)
        subprocess.run([FILL, self.store, "remove", "i9mprt"], check=True)
        self.wait(lambda: self.text("#state") == "removed")
        self.assertIn("This run was removed.", self.text("#removed"))
        self.assertEqual(len(self.points("metric-huge-chart")), 20)
        self.assertFalse(self.browser.find_element(By.ID, "link").is_displayed())
        self.browser.get_log("browser")

    def test_a_tick_too_many_is_refused_and_the_earlier_ones_stay(self):
        self.open("?q=sweep%20", lambda: len(self.texts("#runs tbody code")) == 100)
        boxes = self.browser.find_elements(By.CSS_SELECTOR, "#runs .tick input")
        for box in boxes[:21]:
            box.click()
        self.assertEqual([box.is_selected() for box in boxes[:23]], [True] * 20 + [False] * 3)
        self.assertEqual(self.text("#compare"), "Compare 20 runs")
        self.assertIn("At most 20 runs", self.text("#full"))
        boxes[0].click()
        self.assertEqual(self.text("#full"), "")
        boxes[20].click()
        self.assertEqual(self.text("#compare"), "Compare 20 runs")

    def test_a_phone_shows_them_too(self):
        self.look(390, 844)
        for path, ready in (("?q=sweep", lambda: len(self.texts("#runs tbody tr")) == 100),
                            ("runs/w2z5lg", lambda: self.text("#recipe") != ""),
                            ("compare?runs=sweep001,sweep002,w2z5lg",
                             lambda: len(self.texts("#metrics tbody tr")) > 5)):
            self.open(path, ready)
            width = self.script("return document.documentElement.scrollWidth")
            self.assertLessEqual(width, 390, path)
            self.shoot("phone-" + (path.split("?")[0].replace("/", "-") or "list"))


class Access(Browsing):
    """From the login page through the link to the page, as a person does it."""

    def test_the_link_opens_the_page_and_nothing_else_does(self):
        self.look(1280, 900)
        self.browser.delete_all_cookies()
        self.open("runs/m4x9tr", lambda: "opens with its link" in self.text("h1"))
        self.assertIn("dtrun serve --link", self.text("main"))
        self.assertNotIn("shakespeare", self.browser.page_source)
        self.shoot("locked")
        self.open("?token=" + 32 * "0", lambda: "opens with its link" in self.text("h1"))

        self.browser.get(self.link)
        self.wait(lambda: len(self.texts("#runs tbody tr")) == 6)
        self.assertEqual(self.browser.current_url, self.url)  # the token is no longer in the address
        self.shoot("opened")
        cookie, = self.browser.get_cookies()
        self.assertTrue(cookie["httpOnly"])
        self.assertEqual(cookie["sameSite"], "Strict")
        self.assertEqual(self.script("return document.cookie"), "")
        self.assertNotIn("token", self.script("return document.referrer"))
        self.open_run("m4x9tr")
        self.browser.get(self.link.replace("/?", "/runs/m4x9tr?"))
        self.wait(lambda: self.browser.current_url == self.url + "runs/m4x9tr")

    def test_a_page_whose_token_expired_reports_it(self):
        self.browser.get(self.link)
        self.wait(lambda: len(self.texts("#runs tbody tr")) == 6)
        self.browser.delete_all_cookies()
        note = self.browser.find_element(By.ID, "link")
        self.wait(note.is_displayed)
        self.assertIn("dtrun serve --link", note.text)


class ServerLost(Browsing):
    def test_a_lost_server_is_reported(self):
        self.open("", lambda: len(self.texts("#runs tbody tr")) == 6)
        note = self.browser.find_element(By.ID, "link")
        self.assertFalse(note.is_displayed())
        self.server.stdin.close()
        self.assertEqual(self.server.wait(10), 0)
        self.wait(note.is_displayed)
        self.assertIn("No answer from the server", note.text)
        self.assertEqual(len(self.texts("#runs tbody tr")), 6)  # known values stay


if __name__ == "__main__":
    if BROWSER is None or DRIVER is None:
        print("Chromium or its driver is missing")
        sys.exit(77)
    FILL, SERVE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    SHOTS = os.environ.get("DTRUN_SHOTS")
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
