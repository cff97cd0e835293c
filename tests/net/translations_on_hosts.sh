#!/usr/bin/env bash
# Two hosts translate a test set, and one of them is cut off in the middle: the lines and the BLEU are those of one
# process.
. "$(dirname "$0")/lib.sh"
hosts 2 apart
python3 examples/translation_corpus.py "$net/launch"
data=(--set data.train="$net/launch/train" --set data.validation="$net/launch/valid" --set data.tokenizer="$net/launch")
wants 0 "" "$dtrun" launch examples/translation.yaml "${data[@]}" --set schedule.steps=300 --set evaluate.every=300 \
    --set evaluate.bleu=false --set checkpoint.best_by=valid_loss --wait
for side in words digits; do cat "$net/launch/valid.$side" "$net/launch/train.$side" | head -n 2000 >"$net/launch/test.$side"; done
options=(--input "$net/launch/test.words" --beam 4 --threads 1)
bleu() { python3 -c 'import json, sys; print(json.load(sys.stdin)["bleu"])'; }
wants 0 "" "$dtrun" generate translation "${options[@]}" --output "$net/one"
one=$("$dtrun" score --hypothesis "$net/one" --reference "$net/launch/test.digits" --json | bleu)
[ "${one%.*}" -gt 20 ] || fail "one process has the BLEU $one"

"$dtrun" generate translation "${options[@]}" --reference "$net/launch/test.digits" --output "$net/two" \
    --nodes host1,host2 --name lost --json >"$net/two.json" 2>"$net/out" &
command=$!
begun() { [ "$(value lost "o.get('step') or 0" 2>/dev/null || echo 0)" -ge "$1" ]; }
engines_of_host2() { "$net_sh" pids "$net" host2 | xargs -r ps -o pid=,args= -p | awk '/dtrun-engine.* train/ { print $1 }'; }
host2_computes() { [ -n "$(engines_of_host2)" ]; }
await 30 host2_computes
engines=$(engines_of_host2)
is_running() { [ "$(value lost "o['state']")" = running ]; }
kill -STOP $engines # at once, and then in slices until it is ready: a fast host2 finishes its lines within a second
until is_running; do
    kill -CONT $engines && sleep 0.02 && kill -STOP $engines || fail "host2 has ended"
done
await 30 begun 20
"$net_sh" cut "$net" host2
wait $command || fail "the command ends with $?: $(cat "$net/out"; "$dtrun" show lost)"
is "attempts" "$(value lost "o['attempt']")" 2
cmp "$net/one" "$net/two" || fail "the other host translates otherwise: $(diff "$net/one" "$net/two" | head -n 4)"
is "BLEU" "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["bleu"]["bleu"])' "$net/two.json")" "$one"
