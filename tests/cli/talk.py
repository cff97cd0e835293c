"""The agent answers one request after another over one connection, and keeps answers apart from what they contain.

    talk.py BIN_FOLDER
"""

import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

folder = pathlib.Path(tempfile.mkdtemp())
cache = folder / "cache"
(cache / "agents").mkdir(parents=True)
agent = cache / "agents" / "agent"
shutil.copy(pathlib.Path(sys.argv[1]) / "dtrun-agent", agent)
talk = subprocess.Popen([agent, "node", "talk"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def ask(*words):
    """Returns the lines of the answer, or the error as a string."""
    talk.stdin.write(b"".join(os.fsencode(word) + b"\0" for word in words) + b"\0")
    talk.stdin.flush()
    lines = []
    if words[0] == "get":
        first = talk.stdout.readline()
        if not first.startswith(b"\x1e"):
            lines.append(talk.stdout.read(int(first)))
        else:
            return first[3:].decode().rstrip("\n")
    while not (line := talk.stdout.readline()).startswith(b"\x1e"):
        assert line, "the talk ended"
        lines.append(line.rstrip(b"\n"))
    return lines if line[1:2] == b"0" else line[3:].decode().rstrip("\n")


random.seed(1)
content = bytes(random.choice(b"\x1e\n\0ab") for _ in range(300000))
file = folder / "a file\nwith 'all' of it"
file.write_bytes(content)

made = folder / "new" / "deeper"
assert ask("folder", made) == [] and made.is_dir()
assert made.stat().st_mode & 0o777 == 0o700
size = ask("size", file)[0].split()
assert size[0] == b"300000" and size[1] == str(file.stat().st_ino).encode()
assert ask("size", folder / "none") == [b"-1"]
assert "cannot" in ask("folder", file / "below")
assert ask("get", file, "0") == [content]
assert ask("get", file, "299000") == [content[299000:]]
assert ask("get", file, "400000") == [b""]
assert "cannot read" in ask("get", folder / "none", "0")
digest = ask("digest", file)[-1].removeprefix(b"is ").decode()
assert len(digest) == 32
assert ask("have", digest, "name") == [b"no"]
(cache / "data" / digest).mkdir(parents=True)
(cache / "data" / digest / "name").write_bytes(content)
assert ask("have", digest, "name") == [b"have"]
(made / "probe").write_text("token")
assert ask("same", made / "probe", "token") == [b"yes"]
assert ask("same", made / "probe", "other") == [b"no"]
assert ask("hold", made) == [b"held"]
assert subprocess.run(["flock", "-n", "-x", made, "true"]).returncode == 1
assert "no such operation" in ask("wipe", made)
assert "no such operation" in ask(*["size"] * 5)
assert ask("size", folder / "none") == [b"-1"]

talk.stdin.close()
assert talk.wait(100) == 0
assert subprocess.run(["flock", "-n", "-x", made, "true"]).returncode == 0
shutil.rmtree(folder)
