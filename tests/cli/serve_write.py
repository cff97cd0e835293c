"""The requests of serve_write.sh: serve_write.py SERVED READONLY RUNS ACTIVE, files with the JSON of two servers and of a list."""
import http.client
import json
import socket
import sys
import threading
import time

served, readonly, runs = (json.load(open(name)) for name in sys.argv[1:4])
active = sys.argv[4]
ids = {run["name"]: run["run"] for run in runs["runs"]}
host = served["url"].split("/")[2]
port = host.rpartition(":")[2]
WRITE, READ = (served[key].rpartition("=")[2] for key in ("link", "read_link"))
JSON = "application/json"


def ask(method, path, body=None, headers=None, token=WRITE, where=host):
    """Returns the status and the parsed answer, or its bytes."""
    connection = http.client.HTTPConnection(where, timeout=60)
    given = {"Authorization": f"Bearer {token}"} if token else {}
    given.update(headers or {})
    connection.request(method, path, body if body is None or isinstance(body, bytes) else json.dumps(body).encode(), given)
    answer = connection.getresponse()
    text = answer.read()
    got = (answer.status, json.loads(text) if (answer.headers["Content-Type"] or "").startswith(JSON) else text, dict(answer.headers))
    connection.close()
    return got


def change(run, what, body, headers=None, **more):
    status, answer, _ = ask("POST", f"/api/v1/runs/{run}/{what}", body, {"Content-Type": JSON, **(headers or {})}, **more)
    while status == 202:
        status, answer, _ = ask("GET", f"/api/v1/changes/{answer['change']}")
    return status, answer


def message(answer):
    return answer["error"]["message"]


first = ids["first"]

# --- who may change anything
cookie = {"Cookie": f"dtrun-{port}={WRITE}"}
own = f"http://{host}"
renames = lambda headers, token=None, name="x": change(first, "name", {"name": name}, headers, token=token)[0]
assert renames({}) == 401
assert renames({}, "0" * 32) == 403
status, answer = change(first, "name", {"name": "x"}, token=READ)
assert status == 403 and "only reads" in message(answer), (status, answer)
assert renames({"Cookie": f"dtrun-{port}={READ}", "Origin": own}) == 403
assert renames(cookie) == 403  # no Origin
for origin in ("http://evil.example", "null", f"https://{host}", f"http://127.0.0.1:{int(port) + 1}", "http://127.0.0.1",
               f"http://{host}.evil.example", f"http://evil.example:{port}", ""):
    assert renames({**cookie, "Origin": origin}) == 403, origin
    assert renames({"Origin": origin}, WRITE) == 403, origin
for site in ("cross-site", "same-site", "none", "", "Same-Origin"):
    assert renames({**cookie, "Origin": own, "Sec-Fetch-Site": site}) == 403, site
    assert renames({"Sec-Fetch-Site": site}, WRITE) == 403, site
for rebound in (f"evil.example:{port}", "evil.example", f"127.0.0.1:{int(port) + 1}", "127.0.0.1"):
    assert renames({"Host": rebound, **cookie, "Origin": f"http://{rebound}"}) == 403, rebound
for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json; charset=utf-8",
             "application/JSON", "text/json", ""):
    status, answer, _ = ask("POST", f"/api/v1/runs/{first}/name", {"name": "x"}, {"Content-Type": kind, **cookie, "Origin": own}, token=None)
    assert status == 415, (kind, status)
assert ask("POST", f"/api/v1/runs/{first}/name?token={WRITE}", {"name": "x"}, {"Content-Type": JSON}, token=None)[0] == 401
for method in ("PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "post"):
    status, answer, headers = ask(method, f"/api/v1/runs/{first}/name", None, {"Content-Type": JSON})
    assert status in (405, 501) or method == "post", (method, status)
assert [name for name in ids if ids[name] == first] == ["first"]
status, answer, headers = ask("GET", f"/api/v1/runs/{first}/name")
assert status == 405 and headers["Allow"] == "POST"
status, answer, headers = ask("POST", "/api/v1/runs", {}, {"Content-Type": JSON})
assert status == 405 and headers["Allow"] == "GET, HEAD"
assert "Access-Control-Allow-Origin" not in headers
only = readonly["url"].split("/")[2]
for token in (WRITE, READ):  # without --write everything is as before
    status, answer, headers = ask("POST", f"/api/v1/runs/{first}/name", {"name": "x"}, {"Content-Type": JSON}, token=token, where=only)
    assert status == 405 and headers["Allow"] == "GET, HEAD" and headers["Connection"] == "close", (status, headers)
    assert ask("GET", "/api/v1/rights", token=token, where=only)[1]["write"] is False
    assert ask("GET", f"/api/v1/runs/{first}/name", token=token, where=only)[0] == 404
assert ask("GET", "/api/v1/rights")[1]["write"] is True
assert ask("GET", "/api/v1/rights", token=READ)[1]["write"] is False
assert ask("GET", f"/api/v1/runs/{first}")[1]["run"]["name"] == "first"  # none of these has changed it

# --- links: each sets its cookie, and a link that reads does not take the right to write away
status, _, headers = ask("GET", f"/?token={WRITE}", token=None)
assert status == 303 and WRITE in headers["Set-Cookie"] and "SameSite=Strict" in headers["Set-Cookie"]
assert READ in ask("GET", f"/?token={READ}", token=None)[2]["Set-Cookie"]
assert WRITE in ask("GET", f"/?token={READ}", None, cookie, token=None)[2]["Set-Cookie"]
assert ask("GET", f"/?token={'0' * 32}", token=None)[0] == 403

# --- bodies
for body in (b"", b"{", b"[]", b"1", b"null", b'"x"', b'{"name": 1}', b'{"name": null}', b"{}", b'{"name": "a", "name": "b"}',
             b'{"name": "a", "other": 1}', b'{"name": "a\\u0000b"}', b'{"name": "\xff"}', b"[" * 100000, b'{"name": "a"} x', b'{"a":' * 5000):
    status, answer = change(first, "name", body)
    assert status == 400, (body[:40], status, answer)


def head(*lines):
    """Sends a head without its body, and returns the status: these are refused before a body comes."""
    with socket.create_connection((host.rpartition(":")[0], int(port)), timeout=60) as plain:
        plain.sendall("\r\n".join([f"POST /api/v1/runs/{first}/name HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {WRITE}",
                                    f"Content-Type: {JSON}", *lines, "", ""]).encode())
        return int(plain.makefile("rb").readline().split()[1])


assert head(f"Content-Length: {192 * 1024 + 1}") == 413
for length in ("-1", "99999999999999999999", "x", "1, 2"):
    assert head(f"Content-Length: {length}") in (400, 411, 413), length
assert head() == 411
assert head("Content-Length: 2", "Content-Length: 3") == 400
assert head("Transfer-Encoding: chunked") == 400
assert head("Content-Length: 2", "Content-Type: text/plain") == 400

# --- names and tags: the checks and the messages of the commands
for name in ("../x", "", "--json", "-h", "a" * 200, "a\nb"):
    status, answer = change(first, "name", {"name": name})
    assert status == 400 and message(answer), (name, status, answer)
for run in ("first", "last", first[:4], "nosuch", "..%2f..", "--json"):
    status, answer = change(run, "name", {"name": "y"})
    assert status == (405 if "%" in run else 404), (run, status, answer)  # %2f ends a segment
assert change(active, "name", {"name": "renamed"})[0] == 200
status, answer = change(active, "tags", {"add": ["a", "b"]})
assert status == 200 and answer["result"]["tags"] == ["a", "b"] and answer["done"] is True, answer
assert change(active, "tags", {"remove": ["a", "nosuch"]})[0] == 200
for tags in ({}, {"add": "a"}, {"add": [1]}, {"add": ["two words"]}, {"add": ["+x"]}, {"remove": ["-help", "--json"]}, {"add": ["x"] * 33}):
    assert change(active, "tags", tags)[0] == 400, tags

# --- notes: two people write at once
note = "# Result\n\n- *good*, \"quoted\" \\ <b>\n"
assert change(first, "note", {"note": note})[0] == 200
versions = ask("GET", f"/api/v1/runs/{first}/notes")[1]
assert versions["note"] == note.rstrip("\n") and versions["notes"][-1]["version"] == versions["version"], versions
results = []
both = [threading.Thread(target=lambda at=at: results.append(change(first, "note", {"note": f"of {at}", "replaces": versions["version"]})))
        for at in range(2)]
for one in both:
    one.start()
for one in both:
    one.join()
assert sorted(status for status, _ in results) == [200, 409], results
assert any("changed meanwhile" in message(answer) for status, answer in results if status == 409)
now = ask("GET", f"/api/v1/runs/{first}/notes")[1]
assert now["note"] in ("of 0", "of 1") and [n["note"] for n in now["notes"]][-2:] == [note.rstrip("\n"), now["note"]], now
assert change(first, "note", {"note": "x" * 20001})[0] == 400
assert change(first, "note", {"note": "x", "replaces": "--json"})[0] == 400
assert change(first, "note", {"note": "--help"})[0] == 200
assert ask("GET", f"/api/v1/runs/{first}")[1]["run"]["note"] == "--help"
kinds = [event["event"] for event in ask("GET", f"/api/v1/runs/{first}/events")[1]["events"]]
assert kinds.count("noted") >= 3, kinds

# --- archive: lists leave it out, unless they are asked
count = lambda query="": ask("GET", f"/api/v1/runs{query}")[1]["total"]
before = count()
assert change(ids["second"], "archive", {"archived": True})[0] == 200
assert (count(), count("?archived=1"), count("?tag=archived")) == (before - 1, before, 1)
assert change(ids["second"], "archive", {"archived": "yes"})[0] == 400

# --- stop: the state is shown until it has ended; a second stop is told
status, answer = change(active, "remove", {"name": "renamed"})
assert status == 400 and "stop it first" in message(answer), answer
status, answer = change(active, "stop", {})
assert status == 200 and answer["result"]["state"] == "stopped" and answer["exit_code"] == 0, answer
assert change(active, "stop", {"now": True})[1]["result"]["already_ended"] is True

# --- remove: shows what would be removed, and needs the name
third = ids["third"]
status, answer = change(third, "remove", {"dry_run": True})
assert status == 200 and answer["result"]["removed"][0]["run"] == third and answer["result"]["dry_run"] is True, answer
for body in ({}, {"name": "other"}, {"name": ""}, {"dry_run": False}, {"name": "thir"}):
    assert change(third, "remove", body)[0] == 400, body
assert change(third, "remove", {"name": "third"})[0] == 200
assert ask("GET", f"/api/v1/runs/{third}")[0] == 404
assert change(third, "remove", {"name": "third"})[0] == 404
assert ask("GET", "/api/v1/changes/1")[0] == 404 and ask("GET", "/api/v1/changes/x")[0] == 404

# --- many at once: some are told to wait, none is lost, and reading goes on
results = []
many = [threading.Thread(target=lambda at=at: results.append(change(first, "tags", {"add": [f"t{at}"]})[0])) for at in range(12)]
for one in many:
    one.start()
began = time.monotonic()
assert ask("GET", "/healthz", token=None)[0] == 200
for one in many:
    one.join()
assert set(results) <= {200, 503}, results
tags = ask("GET", f"/api/v1/runs/{first}")[1]["run"]["tags"].split()
assert len(tags) == results.count(200), (tags, results)
