#!/usr/bin/env bash
# A file on a node with the same path and size but other content is not used, whatever its time; a file with the same
# content is used, and is read once.
. "$(dirname "$0")/lib.sh"
hosts 1 apart
data=$net/launch/data.txt digests=/root/.cache/dtrun/digests
seq 100000 199999 >"$data"
touch -d "1 hour ago" "$data"
plan() { # ship
    python3 - "$data" "$1" >"$net/plan.json" <<'PY'
import json, sys
print(json.dumps({"nodes": [{"name": "host1"}],
                  "recipe": {"data": {"train": [sys.argv[1]], "validation": [], "ship": sys.argv[2]}}}))
PY
}
used() { # the content that the ranks of host1 read, or the error
    "$DTRUN_BIN/prepare_node" host1 run1 "$net/launch/host1" "$net/plan.json" >"$net/out" 2>"$net/err" ||
        { tail -n 1 "$net/err"; return; }
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["paths"].get(sys.argv[2], [sys.argv[2]])[0])' "$net/out" "$data"
}
is_other() { # what
    local there
    plan auto
    there=$(used)
    [ "$there" != "$data" ] || { fail "$1 is taken for ours"; return; }
    ssh host1 cat "$there" | cmp -s - "$data" || fail "$1: what is used is not ours either: $there"
    plan never
    [[ $(used) == *"is a different file"* ]] || fail "$1, where nothing may be shipped: $(cat "$net/err")"
}
on_host() { on host1 sh -c "$1" sh "$data"; }

on_host 'seq 200000 299999 >"$1"'
is "sizes" "$(on_host 'stat -c %s "$1"')" "$(stat -c %s "$data")"
is_other "a file of the same size"
on_host "touch -d @$(stat -c %.9Y "$data") \"\$1\""
is "times" "$(on_host 'stat -c %.9Y "$1"')" "$(stat -c %.9Y "$data")"
is_other "a file of the same size and time"

# The same content counts as the same file. Its digest is remembered once the file has not changed for a while.
ssh host1 "rm $digests/* && cat >'$data'" <"$data"
remembered() {
    [ "$(used)" = "$data" ] || { fail "a file with our content is not taken: $(cat "$net/err")"; exit 1; }
    grep -q . <<<"$(on_host "cat $digests/*")"
}
await 20 remembered
on_host "sed -i 's/....\$/0000/' $digests/*" # a wrong digest, to see that the memory is used
is_other "what is remembered to be another file"
on_host 'touch "$1"'
is "a file that was touched is read again:" "$(used)" "$data"

# Every possible file name: the ranks get the name of the file that was sent.
for name in .hidden.txt 'back\slash.txt' '.both\of them.txt' 'star*[1]\.txt'; do
    data=$net/launch/$name
    seq 5000 >"$data"
    plan auto
    pattern=$(used)
    there=$pattern
    [[ "$name" != *'*'* ]] || there=$(python3 -c 'import re, sys; print(re.sub(r"\\(.)", r"\1", sys.argv[1]))' "$pattern")
    is "the name there" "$(basename "$there")" "$name"
    ssh host1 "cat $(printf %q "$there")" | cmp -s - "$data" || fail "'$name' is not there: $(cat "$net/err")"
done
