#!/usr/bin/python3
"""Changes from the page in a headless Chromium, served by the real `dtrun serve --write`.

usage: test_changes.py FILL_STORE DTRUN [TEST...]
Exits 77 where python3-selenium, Chromium or its driver is missing.
"""
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

import test_page
from test_page import Browsing, messages

try:
    from selenium import webdriver
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError:
    sys.exit(77)

DTRUN = None

NOTE = """# Result of *night 3*

A [good link](https://example.org/a?b=1), a [bad one](javascript:alert(1)), <img src=x onerror=alert(1)>
and `a < b`.

| key | loss |
|-----|-----:|
| lr  | 1.75 |

- one
  - inner **bold**
- [x] done

```
<script>alert(1)</script>
```"""


MARKDOWN = {
    "a **b *c* d** e": "<p>a <strong>b <em>c</em> d</strong> e</p>",
    "snake_case_name and _em_": "<p>snake_case_name and <em>em</em></p>",
    "2 * 3 * 4, **open": "<p>2 * 3 * 4, **open</p>",
    "***x*** ~~y~~ ~z~": "<p><strong><em>x</em></strong> <del>y</del> ~z~</p>",
    "`a*b*c` ``a`b``": "<p><code>a*b*c</code> <code>a`b</code></p>",
    "\\*no\\*": "<p>*no*</p>",
    "a  \nb\nc": "<p>a<br>b\nc</p>",
    "# A\ntext\n## B ##\n#no": "<h3>A</h3><p>text</p><h4>B</h4><p>#no</p>",
    "1. a\n2. b\n\n3. c": "<ol><li>a</li><li>b</li><li>c</li></ol>",
    "5. a": '<ol start="5"><li>a</li></ol>',
    "* a\n* b\n  * c\n    * d\n* e": "<ul><li>a</li><li>b<ul><li>c<ul><li>d</li></ul></li></ul></li><li>e</li></ul>",
    "- a\n\n  b\n- c": "<ul><li><p>a</p><p>b</p></li><li><p>c</p></li></ul>",
    "> q\n> - a": "<blockquote><p>q</p><ul><li>a</li></ul></blockquote>",
    "---\n```py\n<b>\n```": '<hr><pre class="source"><code>&lt;b&gt;</code></pre>',
    "a | b\n- | -\n1 | x \\| y": '<div class="scroll"><table class="plain"><thead><tr><th>a</th><th>b</th></tr></thead>'
                               '<tbody><tr><td>1</td><td>x | y</td></tr></tbody></table></div>',
    "<script>alert(1)</script> <b>": "<p>&lt;script&gt;alert(1)&lt;/script&gt; &lt;b&gt;</p>",
    "see https://a.b/c?d=1, (http://x.y/z).": lambda link: f"<p>see {link('https://a.b/c?d=1', 'https://a.b/c?d=1')}, ({link('http://x.y/z', 'http://x.y/z')}).</p>",
    "[a](https://x/(y)z \"t\") ![i](http://a/b.png)": lambda link: f"<p>{link('https://x/(y)z', 'a')} {link('http://a/b.png', 'i')}</p>",
    **{f"[x]({bad})": f"<p>[x]({bad})</p>" for bad in (
        "javascript:alert(1)", "JavaScript:alert(1)", "data:text/html,a", "//evil.example", "/runs/a", "file:///etc/passwd", "vbscript:x")},
}


class Changes(Browsing):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="dtrun-state-")
        os.environ.update({name: folder for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")})
        os.makedirs(os.path.join(folder, "dtrun"), mode=0o700)
        wrapper = os.path.join(folder, "serve")
        with open(wrapper, "w") as script:  # prints what serve_store prints, and ends with its stdin
            script.write(f"""#!/bin/bash
rm -f {folder}/dtrun/store.db && mv "$1" {folder}/dtrun/store.db
{DTRUN} serve --write --listen 127.0.0.1:0 --json >{folder}/served &
until [ -s {folder}/served ]; do sleep 0.05; done
python3 -c 'import json; o = json.load(open("{folder}/served")); print(o["url"]); print(o["link"], flush=True)'
cat >/dev/null; kill %1; wait %1
""")
        os.chmod(wrapper, 0o700)
        test_page.SERVE = wrapper
        super().setUpClass()
        cls.state = folder
        with open(os.path.join(folder, "served")) as served:
            cls.served = json.load(served)
        cls.addClassCleanup(subprocess.run, ["rm", "-r", "--", folder], check=True)

    def setUp(self):
        self.look(1280, 900)

    def tearDown(self):
        self.assertEqual([entry for entry in messages(self.browser) if "409" not in entry["message"] and "400" not in entry["message"]], [])

    def ask(self, path, body=None):
        token = self.served["link"].rpartition("=")[2]
        request = urllib.request.Request(self.url + path[1:], None if body is None else json.dumps(body).encode(),
                                         {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def find(self, css):
        return self.browser.find_element(By.CSS_SELECTOR, css)

    def press(self, words, within="#actions"):
        """Clicks the button by a script: WebDriver reports a button that its own click has removed as missing."""
        self.wait(lambda: self.browser.execute_script(
            "const [at] = [...document.querySelectorAll(arguments[0])].filter((b) => b.textContent === arguments[1] && !b.disabled"
            " && b.checkVisibility()); at?.click(); return Boolean(at)", f"{within} button", words))

    def type(self, css, words):
        self.find(css).clear()
        self.find(css).send_keys(words)

    def test_a_run_is_renamed_tagged_and_archived_and_other_pages_see_it(self):
        rows = lambda: len(self.browser.find_elements(By.CSS_SELECTOR, "#runs tbody tr"))
        self.open("", lambda: rows() > 4)
        count = rows()
        listed = self.browser.current_window_handle
        self.browser.switch_to.new_window("tab")
        self.addCleanup(lambda: (self.browser.close(), self.browser.switch_to.window(listed)))
        self.open_run("h7c2qa")
        run = self.browser.current_window_handle
        self.press("Rename")
        self.find("dialog input").send_keys(Keys.ESCAPE)
        self.wait(lambda: not self.browser.find_elements(By.CSS_SELECTOR, "dialog"))
        self.press("Rename")
        self.type("dialog input", "../x")
        self.press("Rename", "dialog")
        self.wait(lambda: "the name '../x'" in self.text("dialog .reason"))  # what the command says
        self.type("dialog input", "better")
        self.find("dialog input").send_keys(Keys.ENTER)
        self.wait(lambda: self.text("#name") == "better")
        self.press("Tags")
        self.type("dialog input", "keep night/1")
        self.press("Save", "dialog")
        self.wait(lambda: self.texts("#labels .tag") == ["keep", "night/1"])
        self.wait(lambda: "renamed" in self.text("#output") and "night/1" in self.text("#output"))
        self.browser.switch_to.window(listed)
        self.wait(lambda: "better" in self.texts("#runs strong"))
        self.browser.switch_to.window(run)
        self.press("Archive")
        self.wait(lambda: "lists leave it out" in self.text("#done"))
        self.browser.switch_to.window(listed)
        self.wait(lambda: rows() == count - 1)
        self.browser.switch_to.window(run)
        self.press("Unarchive")
        self.browser.switch_to.window(listed)
        self.wait(lambda: rows() == count)
        self.browser.switch_to.window(run)
        self.shoot("actions")

    def test_a_note_is_markdown_and_two_who_edit_it_lose_nothing(self):
        self.open_run("m4x9tr")
        self.press("Add a note")
        self.find("#note-card textarea").send_keys(NOTE)
        self.press("Preview", "#note-card")
        self.wait(lambda: self.text("#note-card .preview h3") == "Result of night 3")
        self.press("Write", "#note-card")
        self.find("#note-card textarea").send_keys(Keys.CONTROL, Keys.ENTER)
        self.wait(lambda: self.texts("#note h3") == ["Result of night 3"])
        self.assertEqual(self.ask("/api/v1/runs/m4x9tr/notes")["note"], NOTE)
        self.assertEqual(self.script("return [...document.querySelectorAll('#note a')].map((a) => [a.href, a.rel, a.target].join(' '))"),
                         ["https://example.org/a?b=1 noopener noreferrer nofollow _blank"])
        self.assertIn("[bad one](javascript:alert(1))", self.text("#note"))
        self.assertIn("<img src=x onerror=alert(1)>", self.text("#note"))
        self.assertEqual(self.script("return document.querySelectorAll('#note img, #note script').length"), 0)
        self.assertEqual(self.texts("#note td"), ["lr", "1.75"])
        self.assertEqual(self.text("#note li li"), "inner bold")
        self.assertEqual(self.text("#note pre code"), "<script>alert(1)</script>")
        self.shoot("note")
        self.press("Edit", "#note-card")
        area = self.find("#note-card textarea")
        self.assertEqual(area.get_attribute("value"), NOTE)
        area.clear()
        area.send_keys("mine")
        self.ask("/api/v1/runs/m4x9tr/note", {"note": "# theirs"})  # somebody else is faster
        self.wait(lambda: self.texts("#note-card .newer h3") == ["theirs"])
        self.assertEqual(area.get_attribute("value"), "mine")
        self.shoot("note-conflict")
        area.send_keys(Keys.ESCAPE)
        self.wait(lambda: "Not saved yet" in self.text("#note-card .editor"))
        area.send_keys(Keys.ESCAPE)
        self.wait(lambda: self.texts("#note h3") == ["theirs"])
        self.press("Edit", "#note-card")  # the text is still there
        self.assertEqual(self.find("#note-card textarea").get_attribute("value"), "mine")
        # both save at the same moment: the second is refused, sees the newer text, and keeps its own
        self.script("const send = fetch; globalThis.fetch = async (...given) => { if (given[1]?.method === 'POST') {"
                    " globalThis.fetch = send; await send('/api/v1/runs/m4x9tr/note', {method: 'POST', headers:"
                    " {'Content-Type': 'application/json'}, body: JSON.stringify({note: '# faster'})}); } return send(...given); }")
        self.press("Save", "#note-card")
        self.wait(lambda: "Not saved: see below." in self.text("#note-card .editor") and self.texts("#note-card .newer h3") == ["faster"])
        self.assertEqual(self.find("#note-card textarea").get_attribute("value"), "mine")
        self.press("Save", "#note-card")
        self.wait(lambda: self.text("#note") == "mine")
        self.press("3 earlier versions", "#note-card")
        self.wait(lambda: len(self.browser.find_elements(By.CSS_SELECTOR, ".versions details")) == 3)
        self.find(".versions details:last-child summary").click()
        self.wait(lambda: self.text(".versions details:last-child h3") == "Result of night 3")
        self.assertEqual([note["note"] for note in self.ask("/api/v1/runs/m4x9tr/notes")["notes"]], [NOTE, "# theirs", "# faster", "mine"])
        for scheme in ("light", "dark"):
            self.look(390, 844, scheme)
            self.assert_not_wider(390)
            self.shoot(f"note-phone-{scheme}")

    def test_ticked_runs_are_tagged_and_archived_and_shown_on_demand(self):
        ids = lambda: self.script("return [...document.querySelectorAll('#runs tbody code')].map((e) => e.textContent)")
        tick = lambda run: self.script(f"document.querySelector('#runs input[aria-label$=\"{run}\"]').click()")
        self.open("", lambda: len(ids()) > 3)
        before = ids()
        self.assertFalse(self.find("#bulk").is_displayed())
        chosen = ["m4x9tr", "h7c2qa"]
        for run in chosen:
            tick(run)
        self.press("Tag 2", "#bulk")
        self.type("dialog input", "pair -night")
        self.press("Save", "dialog")
        self.wait(lambda: self.text("#full") == "Tagged 2 runs.")
        self.wait(lambda: self.texts("#runs .labels").count("pair") + sum("pair" in t.split() for t in self.texts("#runs .labels")) >= 2)
        self.shoot("list-ticked")
        self.press("Archive 2", "#bulk")
        self.wait(lambda: ids() == [run for run in before if run not in chosen])
        self.find("#choose").click()
        self.find("#archived").click()
        self.wait(lambda: ids() == before and "archived=1" in self.browser.current_url)
        self.press("Unarchive 2", "#bulk")
        self.wait(lambda: self.text("#full") == "Unarchived 2 runs.")
        self.find("#archived").click()
        self.wait(lambda: ids() == before and "archived" not in self.browser.current_url)
        self.press("Tag 2", "#bulk")
        self.type("dialog input", "@bad")
        self.press("Save", "dialog")
        self.wait(lambda: "2 of 2 refused" in self.text("#full") and "tag '@bad'" in self.text("#full"))
        for width in (390, 1280):
            self.look(width, 844)
            self.assert_not_wider(width)

    def test_a_page_of_another_port_changes_nothing(self):
        """The cookie is sent to another port of the same host: the checks of the origin have to refuse."""
        address = f"{self.url}api/v1/runs/h7c2qa/"
        attacks = f"""<!doctype html><title>evil</title><script>
            const json = JSON.stringify({{name: 'stolen'}});
            const send = (more) => fetch('{address}name', {{method: 'POST', credentials: 'include', body: json, ...more}}).then((a) => a.status, (e) => 'blocked');
            Promise.all([send({{mode: 'no-cors', headers: {{'Content-Type': 'text/plain'}}}}), send({{mode: 'no-cors'}}),
              send({{headers: {{'Content-Type': 'application/json'}}}}), send({{headers: {{'Content-Type': 'application/x-www-form-urlencoded'}}}}),
              fetch('{address}archive', {{method: 'POST', mode: 'no-cors', credentials: 'include', body: new Blob(['{{"archived": true}}'])}}).then((a) => a.status, () => 'blocked'),
              Promise.resolve(navigator.sendBeacon('{address}stop', '{{}}'))]).then((all) => {{ document.title = 'sent ' + all.join(' '); }});
            </script>
            <form method="post" enctype="text/plain" action="{address}name"><input name='{{"name": "stolen", "x": "' value='"}}'></form>"""

        class Evil(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(attacks.encode())

            def log_message(self, *_):
                pass

        evil = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Evil)
        threading.Thread(target=evil.serve_forever, daemon=True).start()
        self.addCleanup(evil.server_close)
        self.addCleanup(evil.shutdown)
        self.open("", lambda: self.texts("#runs tbody tr") != [])
        run = lambda: {key: self.ask("/api/v1/runs/h7c2qa")["run"][key] for key in ("name", "tags", "state")}
        before = run()
        self.browser.get(f"http://127.0.0.1:{evil.server_address[1]}/")
        self.wait(lambda: self.browser.title.startswith("sent "))
        self.script("document.forms[0].submit()")
        self.wait(lambda: self.browser.current_url.startswith(address))
        self.assertEqual(run(), before)
        self.browser.get(self.url)
        self.browser.get_log("browser")  # what was refused

    def test_markdown_becomes_these_elements(self):
        self.open("", lambda: True)
        out = self.browser.execute_async_script(
            "const [texts, done] = arguments; import('/markdown.js').then(({rendered}) => done(texts.map((text) => {"
            " const box = document.createElement('div'); box.append(...rendered(text)); return box.innerHTML; })))", list(MARKDOWN))
        link = lambda address, words: f'<a href="{address}" rel="noopener noreferrer nofollow" target="_blank">{words}</a>'
        for (text, wanted), got in zip(MARKDOWN.items(), out):
            self.assertEqual(got.replace(' class=""', ""), wanted(link) if callable(wanted) else wanted, text)

    def test_a_run_is_deleted_by_its_name_and_a_link_that_reads_shows_no_buttons(self):
        self.open_run("b1d5wn")
        self.press("Delete")
        name = self.text("#name")
        self.wait(lambda: "Checkpoints" in self.text("dialog .facts"))
        button = lambda: next(one for one in self.browser.find_elements(By.CSS_SELECTOR, "dialog button") if one.text == "Delete")
        self.assertFalse(button().is_enabled())
        self.type("dialog input", name[:-1])
        self.assertFalse(button().is_enabled())
        self.shoot("delete")
        self.find("dialog input").send_keys(name[-1])
        button().click()
        self.wait(lambda: self.browser.current_url == self.url and "k3v9x2" in self.texts("#runs tbody code"))
        self.assertNotIn("b1d5wn", self.texts("#runs tbody code"))
        self.browser.delete_all_cookies()
        self.browser.get(self.served["read_link"])
        self.addCleanup(self.browser.get, self.link)
        self.open_run("h7c2qa")
        self.wait(lambda: self.script("return performance.getEntriesByType('resource').some((e) => e.name.includes('/rights') && e.responseEnd > 0)"))
        self.assertFalse(self.find("#actions").is_displayed())
        self.assertEqual(self.texts("#note-card button"), [])
        answer = self.browser.execute_async_script(
            "fetch('/api/v1/runs/h7c2qa/name', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: '{\"name\": \"x\"}'})"
            ".then((a) => arguments[0](a.status))")
        self.assertEqual(answer, 403)
        self.browser.get_log("browser")


if __name__ == "__main__":
    if not (test_page.BROWSER and test_page.DRIVER):
        print("Chromium or its driver is missing")
        sys.exit(77)
    test_page.FILL, DTRUN = sys.argv[1], os.path.abspath(sys.argv[2])
    test_page.SHOTS = os.environ.get("DTRUN_SHOTS")
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
