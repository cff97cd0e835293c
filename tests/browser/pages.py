#!/usr/bin/python3
"""Measures the pages of a history of 300 runs in Chromium, and takes screenshots of them.

    tests/browser/pages.py [--build build/test] [--shots FOLDER] [--height 1600] [--rounds 3] [--only shots|times]

Builds nothing: `cmake --build BUILD --target fill_history serve_store` first. The history has 300 runs in every state,
a sweep of 60 runs, a group of 300 runs, and a run with 500 metrics. A time begins with the navigation and ends when the
page has what is named; the server runs on the same machine. Screenshots are taken at 1280, 1920 and 390 px, light and
dark.
"""

import argparse
import base64
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

ROOT = pathlib.Path(__file__).resolve().parents[2]
WIDTHS = {1280: 900, 1920: 1080, 390: 844}

drawn = "(globalThis.Chart && Chart.getChart('loss-chart')?.data.datasets[0]?.data.length > 10)"
rows = "document.querySelectorAll('{} tbody tr').length >= {}"
# page -> (its address, what it needs to be usable)
PAGES = {
    "list": ("", rows.format("#runs", 100)),
    "metrics": ("runs/m0metr", drawn),
    "sweep": ("compare?group=width%20and%20rate", drawn + " && (" + rows.format("#groups", 60)
              + " || " + rows.format("#members", 50) + ")"),
    "group": ("compare?group=seeds", drawn + " && (" + rows.format("#groups", 100) + " || "
              + rows.format("#members", 50) + ")"),
}
# of screenshots only
MORE = {
    "columns": ("?columns=optimizer.lr,model.embed,valid_loss.min,loss@1000&filter=loss%3C3&sort=valid_loss.min",
                rows.format("#runs", 20)),
    "diverged": ("runs/h00295", drawn),
    "failed": ("runs/h00296", drawn),
    "running": ("runs/h00297", drawn),
    "compare": ("compare?runs=h00150,h00153,h00160,h00180", drawn),
}


def find(build, name):
    for path in sorted(pathlib.Path(build).rglob(name)):
        if path.is_file() and os.access(path, os.X_OK):
            return path
    sys.exit(f"{name} is not in {build}: build it first")


class Pages:
    def __init__(self, fill, serve, folder):
        store = os.path.join(folder, "store.db")
        begun = time.monotonic()
        for words in (("group", "300"), ("metrics", "500"), ("history", "300")):
            subprocess.run([fill, store, *words], check=True)
        self.filled = time.monotonic() - begun
        self.server = subprocess.Popen([serve, store], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.server.stdout.readline().strip()
        link = self.server.stdout.readline().strip()
        options = Options()
        options.binary_location = shutil.which("chromium") or shutil.which("google-chrome")
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                         "--hide-scrollbars", "--user-data-dir=" + os.path.join(folder, "profile")):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.browser = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.browser.get(link)
        # how long the page kept its thread busy, in tasks of 50 ms and more
        self.browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": """
            globalThis.busy = 0;
            new PerformanceObserver((list) => { for (const task of list.getEntries()) busy += task.duration; })
              .observe({type: 'longtask', buffered: true});
            globalThis.soon = (test, done) => {
              const look = () => { if (test()) done(performance.now()); else requestAnimationFrame(look); };
              look();
            };"""})

    def close(self):
        self.browser.quit()
        self.server.stdin.close()
        self.server.wait(20)

    def look(self, width, scheme="light"):
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": WIDTHS[width], "deviceScaleFactor": 1, "mobile": width < 600})
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def usable(self, address, condition):
        """Opens a page; returns the milliseconds from the navigation until it is usable."""
        self.browser.get("about:blank")
        self.browser.set_script_timeout(60)
        self.browser.get(self.url + address)
        return self.browser.execute_async_script(f"soon(() => {condition}, arguments[0])")

    def settled(self):
        """Waits until the page makes no requests and no long tasks; returns (busy ms, height px, requests)."""
        before = None
        while True:
            now = self.browser.execute_script(
                "return [busy, document.documentElement.scrollHeight,"
                " performance.getEntriesByType('resource').filter((e) => e.name.includes('/api/')).length]")
            if now == before:
                return now
            before = now
            time.sleep(0.7)

    def messages(self):
        return [entry["message"] for entry in self.browser.get_log("browser") if entry["source"] != "intervention"]

    def shoot(self, path, most):
        height = min(most, self.browser.execute_script("return document.documentElement.scrollHeight"))
        width = self.browser.execute_script("return innerWidth")
        data = self.browser.execute_cdp_cmd("Page.captureScreenshot", {
            "captureBeyondViewport": True, "clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}})
        path.write_bytes(base64.b64decode(data["data"]))


def times(pages, rounds):
    print(f"history of 600 runs and 500 metrics written in {pages.filled:.1f} s\n")
    print("| page | usable | thread busy in long tasks | requests | height at 1280 px |\n|---|---|---|---|---|")
    for name, (address, condition) in PAGES.items():
        pages.look(1280)
        usable, busy = [], []
        for _ in range(rounds):
            usable.append(pages.usable(address, condition))
            state = pages.settled()
            busy.append(state[0])
        print(f"| {name} | {statistics.median(usable):.0f} ms ({min(usable):.0f} to {max(usable):.0f}) |"
              f" {statistics.median(busy):.0f} ms | {state[2]} | {state[1]:,} px |", flush=True)


def shots(pages, folder, height):
    folder.mkdir(parents=True, exist_ok=True)
    wide = []
    for name, (address, condition) in {**PAGES, **MORE}.items():
        for width in WIDTHS:
            for scheme in ("light", "dark"):
                pages.look(width, scheme)
                pages.usable(address, condition)
                pages.settled()
                pages.shoot(folder / f"{name}-{width}-{scheme}.png", height)
                if pages.browser.execute_script("return document.documentElement.scrollWidth > innerWidth"):
                    wide.append(f"{name} at {width} px")
    print("wider than the window:", ", ".join(dict.fromkeys(wide)) or "none")
    print("console messages:", pages.messages() or "none")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=ROOT / "build" / "test")
    parser.add_argument("--shots", type=pathlib.Path)
    parser.add_argument("--height", type=int, default=1600, help="of a screenshot, at most, in px")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("shots", "times"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dtrun-pages-", ignore_cleanup_errors=True) as folder:
        pages = Pages(find(options.build, "fill_history"), find(options.build, "serve_store"), folder)
        try:
            if options.only != "shots":
                times(pages, options.rounds)
            if options.shots and options.only != "times":
                shots(pages, options.shots, options.height)
        finally:
            pages.close()


if __name__ == "__main__":
    main()
