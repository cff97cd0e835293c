#!/usr/bin/env bash
# Tags, notes, names and groups: added, removed, shown, and still there after the history was deleted.
. "$(dirname "$0")/lib.sh"
make_tiny

expect 0 launch --wait --json "$work/tiny.yaml" --set schedule.steps=20 --tag night --tag base/1 \
    --group sweep-1 --note "the first try"
run=$(field "o['run']")
json "o['tags'] == ['base/1', 'night']" "o['group'] == 'sweep-1'" "o['note'] == 'the first try'"
expect 0 tag "$run" +good -night plain
[ "$(cat "$work/out")" = "base/1 good plain" ] || fail "not these tags"
expect 0 tag "$run" -plain --json +good
json "o['tags'] == ['base/1', 'good']"
expect 0 tag "$run" -- -nosuch
expect 0 tag "$run"
[ "$(cat "$work/out")" = "base/1 good" ] || fail "tags are not read"
expect 2 tag "$run" "+two words"
one_line
says "two words" "expected 1 to 64 letters"
expect 2 tag "$run" --jsn
says "did you mean '--json'"
expect 2 launch "$work/tiny.yaml" --tag 'a b'
expect 2 launch "$work/tiny.yaml" --group ''
expect 0 note "$run" went well, "but slowly"
expect 0 note "$run"
[ "$(cat "$work/out")" = "went well, but slowly" ] || fail "not this note"
expect 0 note "$run" $'steers \e[31m the terminal'
expect 0 show "$run"
lacks $'\e[31m'
says "steers ?[31m the terminal" "base/1 good" "sweep-1"
expect 0 note "$run" ""
expect 0 rename "$run" better
says "from tiny to better"
expect 2 rename "$run" "../x"
one_line
expect 0 status better --json
json "o['run'] == '$run'" "o['note'] == ''"
expect 2 rename nosuch x
expect 2 tag nosuch +x

# Any number of commands at once: each change is kept.
for n in 1 2 3 4 5 6 7 8; do
    "$dtrun" tag "$run" "+t$n" >/dev/null &
done
wait
expect 0 tag "$run" --json
json "o['tags'] == ['base/1', 'good'] + [f't{n}' for n in range(1, 9)]"

rm "$work/state/dtrun/store.db"*
expect 0 status better --json
json "o['run'] == '$run'" "o['group'] == 'sweep-1'" "'t8' in o['tags']"
