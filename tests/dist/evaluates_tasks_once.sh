#!/usr/bin/env bash
# evaluate.tasks: each step is evaluated once, with the results of an uninterrupted run, also if a stop (of a person, or of the
# queue) interrupts the tasks, the validation before them, or the evaluation of the last step.
. "$(dirname "$0")/lib.sh"
make_text 8
head -c 3000 "$work/text.txt" > "$work/valid.txt"
mkdir "$work/short" "$work/long"
for i in 1 2 3 4 5; do
    echo '{"prompt": "the s", "choices": ["hip", "ong", "aaa"], "answer": '$((i % 3))', "delimiter": ""}'
done > "$work/short/words.jsonl"
for _ in $(seq 20000); do # more than ten seconds
    echo '{"prompt": "the s", "choices": ["hip", "ong under the moon again"], "answer": 0, "delimiter": ""}'
done > "$work/long/words.jsonl"
common=(ranks=2 evaluate.sequences=8 evaluate.every=4 schedule.steps=10 checkpoint.every=4 checkpoint.keep=0)
valid() { echo "data.validation=[\"$work/$1.txt\"]"; }
tasks() { echo "evaluate.tasks=[\"$work/$1/words.jsonl\"]"; }
evaluated() { # NAME: the steps, in one line
    grep -o '"event":"evaluation","step":[0-9]*' "$work/$1.0" | tr -dc '0-9\n' | xargs
}
is() { # NAME STEPS
    [ "$(evaluated "$1")" = "$2" ] || fail "$1 evaluated the tasks after the steps '$(evaluated "$1")', not '$2'"
}
missing() { # NAME STEP
    grep -o '"missing":\[[^]]*\]' "$work/$1.ck/$(printf 'step-%08d' "$2")/index.json" || true
}
resume() { # NAME FROM STEP [FIELD=VALUE...]
    plan "$1" "${common[@]}" "$(valid valid)" "$(tasks short)" "resume=$work/$2.ck/$(printf 'step-%08d' "$3")" "${@:4}"
    ranks 2 "$1" || fail "$1: exit $?"
    grep -q '"event":"finished".*"reason":"steps"' "$work/$1.0" || fail "$1 has not finished"
}
same_results() { # NAME: as the uninterrupted run, for the steps that it evaluated
    grep '"event":"evaluation"' "$work/$1.0" > "$work/results"
    grep -Ff - <(grep '"event":"evaluation"' "$work/whole.0") < "$work/results" > "$work/same"
    cmp "$work/results" "$work/same" || fail "$1 has other results"
}

train 2 whole "${common[@]}" "$(valid valid)" "$(tasks short)"
is whole "4 8 10"
[ -z "$(missing whole 4)" ] || fail "$(missing whole 4)"

# during the tasks
only=(evaluate.every=0 evaluate.tasks_every=4)
plan stopped "${common[@]}" "${only[@]}" "$(valid valid)" "$(tasks long)"
ranks 2 stopped --signal -1:15:4 || fail "exit $?"
is stopped ""
[ "$(missing stopped 4)" = '"missing":["tasks"]' ] || fail "step 4: $(missing stopped 4)"
resume continued stopped 4 "${only[@]}"
is continued "4 8 10"
same_results continued

# during the validation before them
for _ in $(seq 300); do cat "$work/text.txt"; done > "$work/long.txt"
plan earlier "${common[@]}" "$(valid long)" evaluate.sequences=0 "$(tasks long)"
ranks 2 earlier --signal -1:15:4 || fail "exit $?"
[ "$(missing earlier 4)" = '"missing":["validation","tasks"]' ] || fail "step 4: $(missing earlier 4)"
resume afterwards earlier 4
is afterwards "4 8 10"
same_results afterwards
same_metric valid_loss whole afterwards 0

# during those of the last step: the run has not finished, and its resume makes them
plan cut "${common[@]}" "$(valid valid)" "$(tasks long)" "resume=$work/whole.ck/step-00000008"
ranks 2 cut --signal -1:15:2 || fail "exit $?"
grep -q '"event":"finished","step":10,.*"reason":"stopped"' "$work/cut.0" || fail "the run has finished without them"
resume last cut 10
is last 10
same_results last
