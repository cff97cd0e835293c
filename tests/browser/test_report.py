#!/usr/bin/python3
"""`dtrun export --to html` in a headless Chromium without any network: charts alive, names still text.

usage: test_report.py FILL_STORE DTRUN [FOLDER_FOR_SCREENSHOTS]
Exits 77 where python3-selenium, Chromium or its driver is missing.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    print("python3-selenium is missing")
    sys.exit(77)
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
if not BROWSER or not DRIVER:
    print("Chromium or its driver is missing")
    sys.exit(77)

fill, dtrun = map(os.path.abspath, sys.argv[1:3])
shots = sys.argv[3] if len(sys.argv) > 3 else None
folder = tempfile.mkdtemp(prefix="dtrun-report-")
state = os.path.join(folder, "state")
os.makedirs(state + "/dtrun", mode=0o700)
subprocess.run([fill, state + "/dtrun/store.db"], check=True)
environment = {**os.environ, "XDG_STATE_HOME": state, "XDG_CACHE_HOME": folder + "/cache"}


def report(name, *runs):
    path = f"{folder}/{name}.html"
    subprocess.run([dtrun, "export", *runs, "--to", "html", path], check=True, env=environment,
                   stderr=subprocess.DEVNULL)
    text = open(path, encoding="utf-8").read()
    answers = text.split('id="answers">')[1].split("</script>")[0]
    assert "<" not in answers, "what comes from runs could end the script"
    assert text.count("</script>") == 3 and "http://" not in text.split("<script>")[0]
    return "file://" + path


options = Options()
options.binary_location = BROWSER
for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--window-size=1280,900",
                 "--user-data-dir=" + folder + "/profile", "--host-resolver-rules=MAP * ~NOTFOUND"):
    options.add_argument(argument)
options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
browser = webdriver.Chrome(options=options, service=Service(DRIVER))


def wait(condition):
    WebDriverWait(browser, 20, 0.1).until(lambda _: condition())


def text(css):
    return browser.find_element(By.CSS_SELECTOR, css).text


def points(canvas):
    return browser.execute_script(f"const c = Chart.getChart('{canvas}');"
                                  "return c && c.data.datasets.length ? c.data.datasets[0].data.map((p) => p.x) : []")


def no_errors():
    log = [entry for entry in browser.get_log("browser") if entry["source"] != "intervention"]  # of Chromium's own pages
    assert log == [], log
    assert browser.find_element(By.CSS_SELECTOR, "#link").get_attribute("hidden"), text("#link")


try:
    for note in ("an earlier note", "# Result\n\nA [link](https://example.org/), <img src=x>, **good**"):
        subprocess.run([dtrun, "note", "m4x9tr", note], check=True, env=environment, stdout=subprocess.DEVNULL)
    browser.get(report("one", "m4x9tr"))
    wait(lambda: len(points("loss-chart")) > 100)
    assert text("#steps").startswith("Step 2,000 of 2,000"), text("#steps")
    whole = points("loss-chart")
    browser.execute_script("document.getElementById('axis').value = 'time';"
                           "document.getElementById('axis').dispatchEvent(new Event('change'))")
    wait(lambda: points("loss-chart") != whole)  # the axis is in seconds now
    browser.execute_script("document.getElementById('axis').value = 'step';"
                           "document.getElementById('axis').dispatchEvent(new Event('change'))")
    browser.find_element(By.ID, "loss-chart").send_keys("+")
    wait(lambda: 0 < len(points("loss-chart")) < len(whole))
    browser.find_element(By.ID, "whole").click()
    wait(lambda: len(points("loss-chart")) == len(whole))
    assert "name: shakespeare" in text("#recipe")
    assert text("#note h3") == "Result" and text("#note strong") == "good" and "<img src=x>" in text("#note")
    wait(lambda: text("#note-card button") == "1 earlier version")
    browser.find_element(By.CSS_SELECTOR, "#note-card button").click()
    assert len(browser.find_elements(By.CSS_SELECTOR, ".versions details")) == 1
    assert not browser.find_element(By.ID, "actions").is_displayed()
    browser.find_elements(By.CSS_SELECTOR, "#output-tabs .tab")[1].click()
    no_errors()
    if shots:
        browser.save_screenshot(shots + "/report.png")

    browser.get(report("hostile", "b1d5wn"))
    wait(lambda: text("#name") == "a <img src=x onerror=alert(1)> name & more")
    browser.find_elements(By.CSS_SELECTOR, "#output-tabs .tab")[1].click()
    wait(lambda: "<script>alert(1)</script>" in text("#output"))
    assert browser.execute_script("return document.querySelectorAll('main img').length") == 0
    no_errors()

    browser.get(report("several", "m4x9tr", "h7c2qa", "b1d5wn", "k3v9x2"))
    wait(lambda: len(points("loss-chart")) > 100)
    assert browser.execute_script("return Chart.getChart('loss-chart').data.datasets.filter((d) => !d.helper).length") == 4
    assert len(browser.find_elements(By.CSS_SELECTOR, "#metrics tbody tr")) > 3
    browser.execute_script("document.querySelector('#metrics a').click()")
    browser.find_element(By.ID, "log-scale").click()
    assert browser.execute_script("return document.querySelectorAll('main img').length") == 0
    wait(lambda: browser.find_element(By.ID, "log-scale").get_attribute("aria-pressed") == "true")
    no_errors()
    if shots:
        browser.save_screenshot(shots + "/report_several.png")
finally:
    browser.quit()
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            break
        time.sleep(0.2)
print("good")
