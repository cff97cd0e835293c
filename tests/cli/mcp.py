#!/usr/bin/python3
"""`dtrun mcp` by a client of the standard library: both ways to begin, tools, errors, cancellation, and lines that are no
requests.

    tests/cli/mcp.py DTRUN FOLDER     with the history and the files that tests/cli/mcp.sh makes
    tests/cli/mcp.py DTRUN FOLDER --calls 1000 --lines 100000 --seed 7
"""

import argparse
import json
import os
import random
import select
import signal
import subprocess
import sys
import time

given = argparse.ArgumentParser()
given.add_argument("dtrun")
given.add_argument("folder")
given.add_argument("--calls", type=int, default=60)
given.add_argument("--lines", type=int, default=3000)
given.add_argument("--seed", type=int, default=1)
given = given.parse_args()

PATIENCE = float(os.environ.get("PATIENCE", 120))
META = "io.modelcontextprotocol/"
MODERN = {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": {}}
READ_TOOLS = ["list", "show", "status", "compare", "metrics", "logs", "checkpoints", "launch_dry_run"]


class Server:
    def __init__(self, *words, environment=None):
        self.process = subprocess.Popen([given.dtrun, "mcp", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env={**os.environ, **(environment or {})},
                                        cwd=given.folder)
        self.buffer = b""
        self.lines = []
        self.number = 0

    def write(self, data):
        """Writes all, and reads meanwhile: a server that waits for its reader would wait for ever."""
        data = memoryview(data)
        while data:
            ready = select.select([self.process.stdout], [self.process.stdin], [], PATIENCE)
            assert ready[0] or ready[1], "the server takes no bytes"
            if ready[0]:
                self.read()
            if ready[1]:
                data = data[os.write(self.process.stdin.fileno(), data[:4096]):]

    def read(self):
        got = os.read(self.process.stdout.fileno(), 1 << 16)
        assert got, f"the server ended: {self.process.wait()} {self.process.stderr.read()[-2000:]!r}"
        self.buffer += got
        *lines, self.buffer = self.buffer.split(b"\n")
        for line in lines:
            message = json.loads(line)
            assert message["jsonrpc"] == "2.0" and "id" in message, line
            assert ("result" in message) != ("error" in message), line
            self.lines.append(message)

    def answer(self, number):
        """Waits for the answer to a request; others stay in lines."""
        end = time.monotonic() + PATIENCE
        while True:
            for at, message in enumerate(self.lines):
                if message["id"] == number and type(message["id"]) is type(number):
                    return self.lines.pop(at)
            assert time.monotonic() < end, f"no answer to {number}: {self.lines[:5]}"
            if select.select([self.process.stdout], [], [], 0.5)[0]:
                self.read()

    def send(self, method, params=None, number=None):
        self.number += 1
        number = self.number if number is None else number
        message = {"jsonrpc": "2.0", "id": number, "method": method}
        if params is not None:
            message["params"] = params
        self.write(json.dumps(message).encode() + b"\n")
        return number

    def ask(self, method, params=None, number=None):
        return self.answer(self.send(method, params, number))

    def begin(self, version="2025-11-25"):
        result = self.ask("initialize", {"protocolVersion": version, "capabilities": {},
                                         "clientInfo": {"name": "test", "version": "1"}})["result"]
        self.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        return result

    def call(self, tool, /, **arguments):
        return self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]

    def close(self, code=0):
        self.process.stdin.close()
        assert self.process.wait(PATIENCE) == code, self.process.returncode
        errors = self.process.stderr.read()
        assert errors == b"", errors


def error(message):
    assert set(message["error"]) <= {"code", "message", "data"} and message["error"]["message"], message
    return message["error"]["code"]


def gone(pid):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            if open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] == "Z":
                return
        except FileNotFoundError:
            return
        time.sleep(0.02)
    sys.exit(f"FAILED: process {pid} is left")


def last_ssh(count):
    """Waits until `count` of the stand-ins for ssh have started, and returns the newest."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            pids = open(f"{given.folder}/ssh.pids").read().split("\n")[:-1]
            if len(pids) >= count:
                return int(pids[-1]), len(pids)
        except FileNotFoundError:
            pass
        time.sleep(0.02)
    sys.exit("FAILED: no ssh was started")


def negotiation():
    s = Server()
    assert error(s.ask("tools/list")) == -32602  # not begun, and no _meta
    assert s.ask("ping")["result"] == {}
    assert error(s.ask("initialize", {})) == -32602
    result = s.begin("2025-11-25")
    assert result["protocolVersion"] == "2025-11-25" and result["serverInfo"]["name"] == "dtrun"
    assert result["capabilities"] == {"tools": {}}
    legacy = s.ask("tools/list")["result"]
    assert list(legacy) == ["tools"]
    assert [tool["name"] for tool in legacy["tools"]] == READ_TOOLS
    assert error(s.ask("server/discover")) == -32602  # it has no session: _meta is missing
    for asked, agreed in ("2025-06-18", "2025-06-18"), ("2024-11-05", "2025-11-25"), ("2026-07-28", "2025-11-25"), \
            ("x" * 1000, "2025-11-25"):
        assert s.begin(asked)["protocolVersion"] == agreed
    s.close()

    s = Server()
    result = s.ask("server/discover", {"_meta": MODERN})["result"]
    assert result["supportedVersions"] == ["2026-07-28", "2025-11-25", "2025-06-18"]
    assert result["resultType"] == "complete" and result["ttlMs"] >= 0 and result["cacheScope"] == "private"
    assert result["_meta"][META + "serverInfo"]["name"] == "dtrun"
    result = s.ask("tools/list", {"_meta": MODERN})["result"]
    assert result["tools"] == legacy["tools"] and result["resultType"] == "complete" and "ttlMs" in result
    result = s.ask("tools/call", {"_meta": MODERN, "name": "list", "arguments": {"limit": 1}})["result"]
    assert result["resultType"] == "complete" and len(result["structuredContent"]["runs"]) == 1
    message = s.ask("tools/list", {"_meta": {**MODERN, META + "protocolVersion": "1900-01-01"}})
    assert error(message) == -32022 and message["error"]["data"]["requested"] == "1900-01-01"
    assert "2026-07-28" in message["error"]["data"]["supported"]
    assert error(s.ask("tools/list", {"_meta": {META + "protocolVersion": "2026-07-28"}})) == -32602
    assert error(s.ask("tools/list", {"_meta": {**MODERN, META + "protocolVersion": 7}})) == -32602
    assert error(s.ask("ping", {"_meta": MODERN})) == -32601  # removed in this revision
    s.close()
    return legacy["tools"]


def schemas(tools):
    """Options of the command line are arguments; what follows a run or changes the form of output is not."""
    by_name = {tool["name"]: tool for tool in tools}
    for tool in tools:
        schema = tool["inputSchema"]
        assert schema["type"] == "object" and schema["additionalProperties"] is False
        assert not {"json", "help", "server", "watch", "follow", "format", "csv", "detach"} & set(schema["properties"])
        assert all(value["description"] for value in schema["properties"].values())
        assert tool["outputSchema"]["required"] == ["version"] and tool["annotations"]["readOnlyHint"] is True
        assert tool["title"] and len(tool["description"]) > 20
    listing = by_name["list"]["inputSchema"]["properties"]
    assert listing["limit"] == {"type": "integer", "minimum": 0, "maximum": 1000000000, "default": 20,
                                "description": "at most N runs; 0 for all"}
    assert "finished" in listing["state"]["enum"] and listing["tag"]["type"] == "array"
    assert listing["filters"]["items"] == {"type": "string"}
    assert by_name["show"]["inputSchema"]["required"] == ["run"]
    assert by_name["metrics"]["inputSchema"]["required"] == ["runs"]
    assert "required" not in by_name["status"]["inputSchema"]
    assert by_name["launch_dry_run"]["inputSchema"]["required"] == ["recipe"]


def answers():
    s = Server()
    s.begin()
    for words, name, arguments in (
            (["list", "--limit", "3", "--sort", "name"], "list", {"limit": 3, "sort": "name"}),
            (["list", "--limit", "3", "loss<2", "name=point*"], "list", {"limit": 3.0, "filters": ["loss<2", "name=point*"]}),
            (["show", "point-3"], "show", {"run": "point-3", "origins": False}),
            (["compare", "--metric", "loss", "point-1", "point-2"], "compare", {"runs": ["point-1", "point-2"], "metric": ["loss"]}),
            (["metrics", "--name", "loss", "point-1"], "metrics", {"runs": ["point-1"], "name": "loss"}),
            (["checkpoints", "point-1"], "checkpoints", {"run": "point-1"}),
            (["logs", "point-1"], "logs", {"run": "point-1", "rank": None}),
            (["status", "point-1"], "status", {"run": "point-1"})):
        printed = subprocess.run([given.dtrun, *words, "--json"], capture_output=True, check=True).stdout
        result = s.call(name, **arguments)
        assert result["structuredContent"] == json.loads(printed), (name, result)
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"] and result["isError"] is False

    for name, arguments, words in (
            ("list", {"limits": 3}, "did you mean 'limit'"), ("list", {"limit": "3"}, "'limit': expected a whole number"),
            ("list", {"limit": 1.5}, "whole number"), ("list", {"tag": "a"}, "an array of texts"),
            ("list", {"filters": [1]}, "an array of texts"), ("list", {"filters": "loss<2"}, "an array of texts"),
            ("list", {"state": "lost"}, "finished"), ("list", {"json": True}, "unknown argument 'json'"),
            ("list", {"server": "http://x"}, "unknown argument"), ("show", {}, "argument 'run' is missing"),
            ("show", {"run": 3}, "expected a text"), ("show", {"run": "nobody"}, "unknown run 'nobody'"),
            ("show", {"run": "--help"}, "unknown run '--help'"), ("show", {"run": ""}, "run"),
            ("show", {"run": "point-1", "origins": "yes"}, "true or false"), ("metrics", {"runs": []}, "'runs' is missing"),
            ("launch_dry_run", {"recipe": "nothing.yaml"}, "nothing.yaml"), ("list", {"limit": 10**18}, "out of range"),
            ("show", {"run": "x" * 200000}, "")):
        result = s.call(name, **arguments)
        assert result["isError"] is True and "structuredContent" not in result, (name, arguments, result)
        assert words in result["content"][0]["text"] and result["content"][0]["text"], (name, arguments, result)

    for params, code in (({"name": "nothing"}, -32602), ({}, -32602), ({"name": 5}, -32602), ({"name": "stop"}, -32602),
                         ({"name": "launch", "arguments": {"recipe": "waits.yaml"}}, -32602),
                         ({"name": "list", "arguments": [1]}, -32602), ([1], -32602), ("x", -32602)):
        assert error(s.ask("tools/call", params)) == code, params
    assert "dtrun mcp --write" in s.ask("tools/call", {"name": "stop"})["error"]["message"]
    assert error(s.ask("tools/list", {"cursor": "2"})) == -32602
    assert error(s.ask("resources/list")) == -32601
    s.ask("ping", number="a text")
    s.close()

    s = Server("--answer-bytes", "4000")
    s.begin()
    result = s.call("list", limit=0)["structuredContent"]
    assert len(result["runs"]) + result["left_out"]["runs"] == 30 and "limit" in result["left_out"]["note"], result
    result = s.call("metrics", runs=["point-1", "point-2"], name="loss")
    points = result["structuredContent"]["metrics"]
    assert len(json.dumps(result["structuredContent"], separators=(",", ":"))) <= 4000
    assert [point["step"] for point in points].count(100) == 2, points  # the last of each run stays
    assert len(points) + result["structuredContent"]["left_out"]["metrics"] == 200
    result = s.call("compare", runs=[f"point-{run}" for run in range(30)])
    assert result["isError"] and "the limit is 4000: ask with metric" in result["content"][0]["text"], result
    s.close()


def bad_lines():
    s = Server()
    s.begin()
    for line, code in ((b"{", -32700), (b"not json", -32700), (b"5", -32600), (b"[]", -32600),
                       (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600), (b'{"a":"\xff\xfe"}', -32700),
                       (b'"text"', -32600), (b"{}", -32600), (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
                       (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
                       (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', -32600), (b"[" * 100000, -32700),
                       (b'{"a":' * 50000, -32700), (b'{"a":"\\u0000"}', -32700), (b"\x00", -32700),
                       (b"x" * (5 << 20), -32700), (b'{"a":"' + b"y" * (9 << 20) + b'"}', -32700)):
        s.write(line + b"\n")
        message = s.answer(None)
        assert error(message) == code, (line[:50], message)
    for line, code in ((b'{"id":7,"method":"ping"}', -32600), (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', -32600),
                       (b'{"jsonrpc":"2.0","id":7}', -32600), (b'{"jsonrpc":"2.0","id":7,"method":5}', -32600),
                       (b'{"jsonrpc":"2.0","id":7,"method":"ping/all"}', -32601),
                       (b'{"jsonrpc":"2.0","id":7,"method":"tools/list","params":[]}', -32602)):
        s.write(line + b"\n")
        assert error(s.answer(7)) == code, line
    # lines that get no answer: notifications, answers, empty lines
    s.write(b'\n  \n\r\n{"jsonrpc":"2.0","method":"notifications/unknown"}\n{"jsonrpc":"2.0","method":"tools/list"}\n'
            b'{"jsonrpc":"2.0","id":3,"result":{}}\n{"jsonrpc":"2.0","method":"notifications/cancelled"}\n'
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}\n'
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}\n')
    assert s.ask("ping", number="last")["result"] == {} and s.lines == []
    s.write(b'{"jsonrpc":"2.0","id":11,"method":"pi')  # one line in pieces, and the last one without its end
    s.write(b'ng"}\r\n{"jsonrpc":"2.0","id":12,"method":"ping"}')
    s.answer(11)
    s.process.stdin.close()
    s.answer(12)
    assert s.process.wait(PATIENCE) == 0


def mutated(generator, seeds):
    line = bytearray(generator.choice(seeds))
    for _ in range(generator.randint(1, 4)):
        at, kind = generator.randrange(len(line) + 1), generator.randrange(6)
        if kind == 0:
            line[at:at + generator.randint(1, 8)] = b""
        elif kind == 1:
            line[at:at] = generator.choice([b"{", b"}", b"[", b"]", b'"', b",", b":", b"null", b"\xff", b"\\u0000",
                                            b"-1e999", b"9" * 30, b"\xe2\x82", b"true", b"\\ud800"])
        elif kind == 2:
            line[at:at + 1] = bytes([generator.randrange(256)])
        elif kind == 3:
            other = generator.choice(seeds)
            line[at:] = other[generator.randrange(len(other)):]
        elif kind == 4:
            line[at:at] = line[at:at + generator.randint(1, 40)]
        else:
            line = line[:at]
    return bytes(line).replace(b"\n", b" ")


def fuzz():
    generator = random.Random(given.seed)
    seeds = [json.dumps(seed).encode() for seed in (
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": "a", "method": "tools/list", "params": {"_meta": MODERN, "cursor": "x"}},
        {"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}},
        {"jsonrpc": "2.0", "id": 3, "method": "server/discover", "params": {"_meta": MODERN}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}},
        {"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "list", "arguments": {"limit": -1}}},
        {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "metrics", "arguments": {"runs": []}}},
        {"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": {"name": "show", "arguments": {"run": 1, "o": []}}})]
    s = Server()
    for batch in range(0, given.lines, 100):
        s.write(b"".join(mutated(generator, seeds) + b"\n" for _ in range(100)))
        assert "result" in s.ask("ping", number=f"batch {batch}")
        s.lines.clear()
    s.close()


def many_calls():
    s = Server()
    s.begin()
    numbers = []
    for at in range(given.calls):  # all at once: more than run at a time, and more than wait
        numbers.append(s.send("tools/call", {"name": "list", "arguments": {"limit": 1}}))
    for number in numbers:
        assert len(s.answer(number)["result"]["structuredContent"]["runs"]) == 1
    assert s.lines == []
    s.close()


def cancellation():
    s = Server(environment={"PATH": f"{given.folder}/bin:" + os.environ["PATH"]})
    s.begin()
    number = s.send("tools/call", {"name": "launch_dry_run", "arguments": {"recipe": "far.yaml"}}, number="slow")
    pid, count = last_ssh(1)
    waits = [s.send("tools/call", {"name": "launch_dry_run", "arguments": {"recipe": "far.yaml"}}) for _ in range(20)]
    assert "result" in s.ask("ping")  # it answers while calls run
    for each in (number, *waits):
        s.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled",
                            "params": {"requestId": each, "reason": "test"}}).encode() + b"\n")
    gone(pid)
    assert len(s.call("list", limit=1)["structuredContent"]["runs"]) == 1
    assert s.lines == [], s.lines  # a cancelled call gets no answer
    s.close()

    for ending in "closes stdin", "closes all", "is killed", "gets SIGTERM":  # in the middle of a call
        s = Server(environment={"PATH": f"{given.folder}/bin:" + os.environ["PATH"]})
        s.begin()
        count = len(open(f"{given.folder}/ssh.pids").readlines())
        s.send("tools/call", {"name": "launch_dry_run", "arguments": {"recipe": "far.yaml"}})
        pid, count = last_ssh(count + 1)
        if ending == "closes all":
            s.process.stdout.close()
        if ending == "is killed":
            s.process.kill()
        elif ending == "gets SIGTERM":
            s.process.send_signal(signal.SIGTERM)
        else:
            s.process.stdin.close()
        code = s.process.wait(PATIENCE)
        assert code == {"is killed": -9, "gets SIGTERM": -15}.get(ending, 0), (ending, code)
        gone(pid)


def writes():
    s = Server("--write")
    s.begin()
    tools = {tool["name"]: tool for tool in s.ask("tools/list")["result"]["tools"]}
    assert list(tools) == [*READ_TOOLS, "launch", "stop"]
    assert tools["stop"]["annotations"] == {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True,
                                            "openWorldHint": False}
    assert set(tools["stop"]["inputSchema"]["properties"]) == {"run", "now"}
    result = s.call("launch_dry_run", recipe="waits.yaml")
    assert not result["isError"] and s.call("list", filters=["name=waits"])["structuredContent"]["runs"] == []
    result = s.call("launch", recipe="waits.yaml", set=["name=mine"], tag=["by-a-tool"])
    assert not result["isError"], result
    run = result["structuredContent"]["run"]
    s.close()  # the run continues without the server

    s = Server("--write")
    s.begin()
    state = s.call("list", filters=["name=mine"], tag=["by-a-tool"])["structuredContent"]["runs"]
    assert len(state) == 1 and state[0]["run"] == run and state[0]["state"] not in ("failed", "stopped"), state
    s.send("tools/call", {"name": "stop", "arguments": {"run": run}})
    s.process.stdin.close()  # a stop is not interrupted by its client's end
    assert s.process.wait(PATIENCE) == 0
    end = time.monotonic() + PATIENCE
    while True:
        shown = subprocess.run([given.dtrun, "status", run, "--json"], capture_output=True, check=True).stdout
        if json.loads(shown)["state"] == "stopped":
            break
        assert time.monotonic() < end, shown
        time.sleep(0.1)


schemas(negotiation())
answers()
bad_lines()
fuzz()
many_calls()
cancellation()
writes()
