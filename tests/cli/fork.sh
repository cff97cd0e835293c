#!/usr/bin/env bash
# A run that starts from a checkpoint of another: without a change it has the same losses, bit for bit, and the other's
# history as its past; it does not depend on the other run. resume --from goes back in the same run.
. "$(dirname "$0")/lib.sh"
make_tiny

losses() { # run, metric
    "$dtrun" metrics "$1" --name "$2" | cut -d, -f2,4
}
expect 0 launch --wait --json "$work/tiny.yaml" --tag base
parent=$(field "o['run']")
end=$(field "(o['loss'], o['valid_loss'])")

expect 0 fork "$parent@20" --wait --json --tag again --note "the same"
fork=$(field "o['run']")
mean=$(field "o['mean_tokens_per_second']")
subject="mean speed of the fork, of its own steps"
"$dtrun" metrics "$fork" | python3 -c '
import csv, sys
own = [float(v) for _, step, name, v in (row[:4] for row in list(csv.reader(sys.stdin))[1:]) if name == "tokens_per_second" and int(step) > 20]
mean = len(own) / sum(1 / v for v in own)
sys.exit(abs(mean - float(sys.argv[1])) > 1e-9 * mean)' "$mean" || fail "it is $mean"
json "o['parent'] == {'run': '$parent', 'step': 20}" "o['tags'] == ['again']" "o['name'] == 'tiny'" \
    "o['state'] == 'finished'" "o['steps'] == 60"
[ "$(field "(o['loss'], o['valid_loss'])")" = "$end" ] || fail "the fork ends elsewhere than $end"
for metric in loss valid_loss learning_rate gradient_norm; do
    subject="$metric of the fork"
    diff <(losses "$parent" $metric) <(losses "$fork" $metric) >"$work/err" || fail "it is another"
done
expect 0 show "$fork" --json
json "[a['start_step'] for a in o['attempts']] == [20]" "o['provenance'][0]['command'][1] == 'fork'"
expect 0 show "$fork"
says "forked from" "$parent at step 20" "tokens/s (mean)"

expect 0 checkpoints "$fork" --json
json "[c for c in o['checkpoints'] if c['step'] == 20][0]['valid_loss'] > 0" \
    "[c for c in o['checkpoints'] if c['step'] == 20][0]['bytes'] > 1000"

expect 0 launch --detach "$work/tiny.yaml" --set schedule.steps=1000000000 --set name=cut
within 20 step_reached cut 10
expect 0 stop cut
expect 2 fork cut --set schedule.steps=6
says "the checkpoint of run" "and the recipe has 6 steps" "--set schedule.steps="
lacks "has completed"

# With a change, from the best checkpoint, and of a fork; changes name the run that they are relative to.
expect 0 fork "$fork@best" --wait --json --set schedule.steps=80 --set name=longer
longer=$(field "o['run']")
json "o['steps'] == 80" "o['name'] == 'longer'" "o['parent'] == {'run': '$fork', 'step': 60}"
expect 0 show "$longer" --json
json "[c['key'] for c in o['changes']] == ['name', 'schedule.steps']" "o['changes'][1]['old'] == 60"
diff <(losses "$parent" loss) <(losses "$longer" loss | head -61) >"$work/err" || fail "its past is another"

# The copy shares its bytes but is independent: the original can be removed.
subject="the checkpoint of the fork"
file=$(cd "$work/state/dtrun/runs/$parent/checkpoints/step-00000020" && ls | grep -m1 safetensors)
[ "$work/state/dtrun/runs/$parent/checkpoints/step-00000020/$file" -ef \
    "$work/state/dtrun/runs/$fork/checkpoints/step-00000020/$file" ] || fail "is no link"
rm -r "$work/state/dtrun/runs/$parent"
expect 0 fork "$fork@20" --wait --json --set schedule.steps=30
json "o['steps'] == 30"
expect 0 resume "$fork" --wait --json --from 20
json "o['attempt'] == 2" "o['steps'] == 60" "(o['loss'], o['valid_loss']) == $end"
expect 0 show "$fork" --json
json "[a['start_step'] for a in o['attempts']] == [20, 20]"
expect 0 resume "$fork" --from best --wait --json --set schedule.steps=70
json "o['steps'] == 70" "o['attempt'] == 3"

# A crash before the fork's first checkpoint restarts from the copied checkpoint.
expect 0 resume "$fork" --from 40 --detach --set schedule.steps=100000000 --set checkpoint.every=50000000 \
    --set evaluate.every=50000000 --set log.every=100
within 20 step_reached "$fork" 200 || exit 1
subject="a rank of the resumed run is killed"
pid=$("$dtrun" status "$fork" --json | python3 -c 'import json, sys
print(json.load(sys.stdin)["nodes"][0]["ranks"][0]["pid"])')
kill -9 "$pid"
restarted() { "$dtrun" show "$fork" --json | python3 -c 'import json, sys
sys.exit(len(json.load(sys.stdin)["attempts"]) < 5)'; }
within 60 restarted || exit 1
expect 0 show "$fork" --json
json "o['attempts'][4]['start_step'] == 40"
expect 0 stop "$fork"

# A checkpoint from before the run went back has no history: it can generate text, but cannot be resumed or forked.
for command in resume fork; do
    if [ $command = resume ]; then expect 2 resume "$fork" --from 60; else expect 2 fork "$fork@60"; fi
    one_line
    says "the checkpoint of step 60 is from before run '$fork' went back" "restarted at step 40" "model.from: run:$fork@60"
done
expect 0 generate "$fork" --checkpoint 60 --tokens 2

expect 2 fork "$fork@33"
one_line
says "has no checkpoint of step 33 (it has "
expect 2 fork "$fork@soon"
says "'soon' is neither a step nor 'best'"
expect 2 fork nosuch@20
expect 2 fork "$longer" --set model.embed=32
expect 2 fork "$longer" --set optimizer.lrr=1
expect 2 fork "$longer"
says "'dtrun fork $longer --set schedule.steps="
expect 0 list --json
json "all(r['state'] in ('finished', 'stopped') for r in o['runs'])"
