#!/usr/bin/env bash
# Images and tables that a command has written: what the server lists and sends of them, with which headers, and that
# nothing else of this machine is sent, whatever the path says.
. "$(dirname "$0")/lib.sh"
mkdir -p "$work/here"
cat >"$work/here/write.py" <<'PY'
import os, struct, zlib
os.makedirs("out/deep/er")
def png(path, shade):
    part = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes([shade, 200 - shade, x % 256][x % 3] for x in range(3 * 64)) for _ in range(48))
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", 64, 48, 8, 2, 0, 0, 0)) + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b""))
png("out/loss.png", 10)
png("out/deep/er/UPPER.PNG", 90)
open("out/photo.jpg", "wb").write(b"\xff\xd8\xff\xe0 a photo")
open("out/eval.csv", "w").write('step,"a ""name"", quoted"\n1,2\n')
open("out/wide.tsv", "w").write("a\tb\n1\t2\n")
open("out/page.svg", "w").write("<svg onload='alert(1)'/>")
open("out/notes.txt", "w").write("a text")
for at, name in enumerate(["out/deep/er/UPPER.PNG", "out/wide.tsv", "out/eval.csv", "out/photo.jpg", "out/loss.png"]):
    os.utime(name, (1700000000 + at, 1700000000 + at))
PY
cat >"$work/files.yaml" <<END
name: files
command: python3 write.py
workdir: $work/here
processes: 1
gpus: none
collect: [out]
END
echo 'a secret' >"$work/secret.csv"
expect 0 launch --wait --json "$work/files.yaml"
run=$(field "o['run']")
folder=$XDG_STATE_HOME/dtrun/runs/$run
# what another program of this account could put there
ln -s "$work/secret.csv" "$folder/collected/out/link.csv"
ln -s "$work" "$folder/collected/out/folder"
ln -s out "$folder/collected/again"
ln -s "$work" "$folder/collected-node-7"
mkfifo "$folder/collected/out/fifo.csv"
mkdir "$folder/collected/out/folder.png" "$folder/collected-evil" "$folder/collected-node-2" "$folder/collected-node-2x"
cp "$work/secret.csv" "$folder/collected-evil/secret.csv"
cp "$work/secret.csv" "$folder/collected-node-2x/secret.csv"
cp "$work/secret.csv" "$folder/secret.csv"
touch -d @1600000000 "$folder/collected-node-2/old.csv"
truncate -s 40M "$folder/collected/out/large.png"
touch -d @1500000000 "$folder/collected/out/large.png"
"$dtrun" serve --listen 127.0.0.1:0 --json >"$work/served" 2>"$work/err" &
server=$!
within 60 test -s "$work/served"
subject="the server"
python3 - "$work/served" "$run" "$folder" <<'PY' || fail "what the server says of files"
import json, sys, urllib.error, urllib.parse, urllib.request
served, run, folder = json.load(open(sys.argv[1])), sys.argv[2], sys.argv[3]
url, token = served["url"].rstrip("/"), served["link"].rpartition("=")[2]

def get(path, token=token):
    request = urllib.request.Request(url + path, headers={"Authorization": "Bearer " + token})
    try:
        with urllib.request.urlopen(request, timeout=100) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()

base = f"/api/v1/runs/{run}/"
file = lambda path, more="": get(base + "file?path=" + urllib.parse.quote(path, safe="") + more)
status, _, text = get(base + "files")
listed = json.loads(text)
assert status == 200 and listed["left_out"] == 0, text
assert [one["path"] for one in listed["files"]] == [f"collected/{name}" for name in (
    "out/loss.png", "out/photo.jpg", "out/eval.csv", "out/wide.tsv", "out/deep/er/UPPER.PNG")] + ["collected-node-2/old.csv", "collected/out/large.png"], listed
assert [one["kind"] for one in listed["files"]] == ["image", "image", "table", "table", "image", "table", "image"]
assert listed["files"][0]["time_ms"] == 1700000004000
for one in listed["files"][:-1]:
    status, headers, content = file(one["path"])
    wanted = {"png": "image/png", "jpg": "image/jpeg", "csv": "text/csv; charset=utf-8", "tsv": "text/tab-separated-values; charset=utf-8"}
    assert status == 200 and headers["Content-Type"] == wanted[one["path"].rpartition(".")[2].lower()], headers
    assert headers["X-Content-Type-Options"] == "nosniff" and "default-src 'none'" in headers["Content-Security-Policy"], headers
    assert ("attachment" in (headers["Content-Disposition"] or "")) == (one["kind"] == "table"), headers
    assert content == open(f"{folder}/{one['path']}", "rb").read() and len(content) == one["bytes"]
assert file("collected/out/eval.csv", "&most=4")[2] == b"step"
assert file("collected/out/large.png")[0] == 400, file("collected/out/large.png")[0]
for path in ("collected/out/link.csv", "collected/again/eval.csv", "collected/out/folder/secret.csv", "collected-node-7/secret.csv",
             "collected/out/fifo.csv", "collected/out/folder.png", "collected-evil/secret.csv", "collected-node-2x/secret.csv", "secret.csv",
             "collected/../secret.csv", "collected/out/../../secret.csv", "collected/./out/eval.csv", "collected//out/eval.csv",
             f"/{folder}/secret.csv", "../secret.csv", "collected/none.csv", "collected/out/eval.csv/", "collected/.csv", "collected/" + "a" * 5000 + ".csv",
             "collected/out/eval.csv\0.csv"):
    status, headers, content = file(path)
    assert status in (400, 404, 414), (path, status, content[:99])
    assert b"secret\n" not in content and headers["Content-Type"].startswith("application/json") or status == 414, (path, headers["Content-Type"])
for path in ("collected/out/page.svg", "collected/out/notes.txt", "store.db", ""):
    assert file(path)[0] == 400, (path, file(path))
assert get(base + "file")[0] == 400
assert get(base + "files", "wrong")[0] in (401, 403) and get("/api/v1/runs/none/files")[0] == 404
PY
kill $server
