#!/usr/bin/env bash
# The live view in a terminal: drawn in place, within the width, with the cursor restored.
. "$(dirname "$0")/lib.sh"
make_tiny

is_drawn() { [ "$(grep -aoE $'\x1b\\[[0-9]+A' "$work/screen" | wc -l)" -ge 3 ]; }

follow() { # columns, environment...
    local columns=$1
    shift
    [ "$1" = TERM=dumb ] || halted_until is_drawn &
    subject="the live view in $columns columns, $*"
    env "$@" python3 - "$columns" "$dtrun" launch "$work/tiny.yaml" \
        --set schedule.steps=1200 --set evaluate.every=300 --set checkpoint.every=600 >"$work/screen" <<'PY'
import fcntl, os, pty, struct, sys, termios
columns, command = int(sys.argv[1]), sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    os.execv(command[0], command)
while True:
    try:
        data = os.read(terminal, 65536)
    except OSError:
        break
    if not data:
        break
    os.write(1, data)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PY
    [ $? -eq 0 ] || fail "the launch did not end well"
    wait
    cp "$work/screen" "$work/out"
    : >"$work/err"
}

drawn() { # columns: checks what a terminal makes of the output
    python3 - "$work/screen" "$1" <<'PY' || fail "the screen is not as it should be"
import re, sys
text = open(sys.argv[1], newline="").read().replace("\r\n", "\n")
width = int(sys.argv[2])
lines, row, shown, frames = [""], 0, True, 0
for token in re.findall(r"\x1b\[\??[0-9;]*[A-Za-z]|\n|\r|[^\x1b\r\n]+", text):
    if token == "\n":
        row += 1
        if row == len(lines):
            lines.append("")
    elif token == "\r":
        pass
    elif re.fullmatch(r"\x1b\[\d+A", token):
        row -= int(token[2:-1])
        frames += 1
        lines[row] = ""
    elif token == "\x1b[K":
        pass
    elif token == "\x1b[J":
        lines = lines[:row] + [""]
    elif token in ("\x1b[?25l", "\x1b[?25h"):
        shown = token.endswith("h")
    elif token.startswith("\x1b"):
        pass
    else:
        if lines[row] and lines[row].endswith("\0"):
            lines[row] = ""
        lines[row] += token
    if token == "\n" and row < len(lines):
        lines[row] = ""
screen = "\n".join(lines)
assert frames >= 3, frames
assert shown, "the cursor stays hidden"
count = screen.count("validation loss ")
assert count == 5, (count, screen)                    # four evaluations, once in the summary
assert "Ctrl-C" not in screen, screen                 # the block is gone at the end
assert "finished at step 1,200" in screen, screen
for line in re.sub(r"\x1b\[\?[0-9]*[lh]|\x1b\[[0-9;]*[AmJ]|\r", "", text).split("\x1b[K\n")[:-1]:
    assert len(line) < width, line
PY
}

follow 100 TERM=xterm LANG=C.UTF-8
says "━" "running" "tokens/s" "elapsed" $'\x1b[36m'
drawn 100
follow 44 TERM=xterm NO_COLOR=1 LC_ALL=C
lacks $'\x1b[3'
lacks "━"
says "##" "Ctrl-C detaches, the run continues"
drawn 44
follow 80 TERM=dumb
lacks $'\x1b['
says "step " "finished at step 1,200"
