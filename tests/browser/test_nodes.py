#!/usr/bin/python3
"""What the nodes of a run were used for, and the files of a command, on its page, in a headless Chromium.

usage: test_nodes.py FILL_STORE SERVE_STORE [TEST...]     as test_page.py
"""
import os
import struct
import subprocess
import sys
import unittest
import zlib

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
            self.assert_not_wider(width)
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


def png(path, shade):
    """Writes an image with a gradient."""
    part = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes((x * 2 % 256, y * 2 % 256, shade)[c] for x in range(120) for c in range(3)) for y in range(80))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", 120, 80, 8, 2, 0, 0, 0))
                   + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b""))


class Files(Browsing):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        subprocess.run([test_page.FILL, cls.store, "nodes", "1"], check=True)
        folder = os.path.join(cls.folder, "runs", "n4odes", "collected", "out")
        os.makedirs(folder)
        for at in range(15):
            png(os.path.join(folder, f"epoch-{at:02}.png"), at * 16)
            os.utime(os.path.join(folder, f"epoch-{at:02}.png"), (1700000000 + at, 1700000000 + at))
        with open(os.path.join(folder, "eval <b>bold.csv"), "w") as file:
            file.write('step,words,loss\n' + "".join(f'{at},"a ""word"", <i>{at}</i>",{at / 8}\n' for at in range(300)))
        with open(os.path.join(folder, "pairs.tsv"), "w") as file:
            file.write("left\tright\n1\t2\n")

    def tearDown(self):
        self.assertEqual(messages(self.browser), [])

    def test_images_and_tables_of_a_command_are_shown(self):
        for width, scheme, first in ((1280, "light", 12), (390, "dark", 4)):
            self.look(width, 900, scheme)
            self.open("runs/n4odes", lambda: len(self.browser.find_elements(By.CSS_SELECTOR, "#files img")) == first)
            self.assertTrue(self.text("#files figcaption").startswith("out/epoch-14.png"))  # the newest
            self.script("document.getElementById('files-card').scrollIntoView()")
            self.wait(lambda: self.script("return document.querySelector('#files img').naturalWidth") == 120)
            tables = self.browser.find_elements(By.CSS_SELECTOR, "#files details summary")
            self.assertEqual(len(tables), 2)
            csv, = [one for one in tables if "eval" in one.text]
            self.assertIn("eval <b>bold.csv", csv.text)
            csv.send_keys(Keys.ENTER)
            self.wait(lambda: len(self.browser.find_elements(By.CSS_SELECTOR, "#files tbody tr")) == 200)
            self.assertEqual(self.texts("#files tbody tr:first-child td"), ["0", 'a "word", <i>0</i>', "0.0"])
            self.assertIn("the first 200 rows", self.text("#files details[open]"))
            self.assertEqual(self.script("return document.querySelectorAll('#files td i, #files summary b').length"), 0)
            self.assert_not_wider(width)
            self.shoot(f"files-{width}-{scheme}")
        self.script("document.querySelector('#files .more').click()")
        self.wait(lambda: len(self.browser.find_elements(By.CSS_SELECTOR, "#files img")) == 15)

    def test_another_run_has_no_such_section(self):
        self.open_run("m4x9tr")
        self.assertFalse(self.browser.find_element(By.ID, "files-card").is_displayed())

    def test_rows_of_a_table(self):
        rows = lambda text, sign=",", most=9, whole="true": self.browser.execute_async_script(
            "const done = arguments[arguments.length - 1]; import('/files.js').then((m) => done(m.rowsOf(arguments[0], arguments[1], arguments[2],"
            f" {whole})));", text, sign, most)
        self.open_run("m4x9tr")
        self.assertEqual(rows("a,b\r\n1,2\r\n"), [["a", "b"], ["1", "2"]])
        self.assertEqual(rows('a,"b,\n""c"""\n\n,\n'), [["a", 'b,\n"c"'], ["", ""]])
        self.assertEqual(rows("a\n1\n2", most=2), [["a"], ["1"]])
        self.assertEqual(rows("a\n1\n2"), [["a"], ["1"], ["2"]])
        self.assertEqual(rows("a\n1\n2", whole="false"), [["a"], ["1"]])  # the last line may go on
        self.assertEqual(rows('a\t"b\n', "\t"), [["a", '"b']])
        self.assertEqual(rows(""), [])


if __name__ == "__main__":
    if test_page.BROWSER is None or test_page.DRIVER is None:
        print("Chromium or its driver is missing")
        sys.exit(77)
    test_page.FILL, test_page.SERVE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    test_page.SHOTS = os.environ.get("DTRUN_SHOTS")
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
