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

# Each version of a note is kept, also in the folder of the run; a note that others have changed is not overwritten.
expect 0 note better --history
says "the first try" "steers"
printf '# Result\n\n- good\n' >"$work/note.md"
expect 0 note better --file "$work/note.md"
expect 0 note better --history --json
json "o['run'] == '$run'" "o['notes'][-1]['note'] == '# Result\n\n- good'" "o['notes'][-1]['version'] == o['note_version']" \
    "[n['note'] for n in o['notes']][:2] == ['the first try', 'went well, but slowly']" "len(o['notes']) == 5"
version=$(field "o['note_version']")
echo second | "$dtrun" note better --replaces "$version" --file - >/dev/null || fail "stdin is not read"
expect 3 note better --replaces "$version" third
one_line
says "was changed meanwhile" "$version" "--history"
expect 0 note better
[ "$(cat "$work/out")" = "second" ] || fail "the note was overwritten"
expect 0 note better --history
says "== " "version $version" "went well, but slowly" "(removed)" ", the present note"
expect 2 note better --file "$work/note.md" words
expect 2 note better --replaces "$version"
printf 'a\xff' >"$work/note.md"
expect 2 note better --file "$work/note.md"
says "UTF-8"
head -c 20001 /dev/zero | tr '\0' x >"$work/note.md"
expect 2 note better --file "$work/note.md"
says "at most 20000 bytes"
rm "$work/state/dtrun/store.db"*
expect 0 note better --history --json
json "[n['note'] for n in o['notes']][0] == 'the first try'" "o['notes'][-1]['note'] == 'second'" "len(o['notes']) == 6"
