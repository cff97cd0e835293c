# Samples of runs, for the scripts that compare them; after lib.sh.
make_tiny
cat >"$work/samples.yaml" <<'YAML'
extends: tiny.yaml
evaluate:
  samples: ["the qu", "", "over a lazy dog and then it sleeps until the morning over a lazy dog"]
  samples_tokens: 24
YAML
common=(launch --wait --json "$work/samples.yaml")
drawn=(--set evaluate.samples_temperature=0.9 --set evaluate.samples_top_k=12 --set evaluate.samples_top_p=0.9
    --set evaluate.samples_seed=7 --set schedule.steps=40)
options=(--temperature 0.9 --top-k 12 --top-p 0.9)
losses() { "$dtrun" metrics "$1" --format csv | grep -E ',(loss|valid_loss),' | cut -d, -f2-4; }
texts() { # run [step]: a line for each sample
    "$dtrun" show "$1" --samples --json | python3 -c '
import json, sys
for s in json.load(sys.stdin)["samples"]:
    if len(sys.argv) < 2 or s["step"] == int(sys.argv[1]):
        print(json.dumps([s["step"], s["index"], s["prompt"], s["text"], s["tokens"], s["ended"]]))' "${@:2}"
}

# like_generate RUN STEP SEED OPTION...: the texts of the step are those of `dtrun generate` with its checkpoint
like_generate() {
    local run=$1 step=$2 seed=$3 i=0 line
    shift 3
    texts "$run" "$step" >"$work/during"
    : >"$work/after"
    while read -r line; do
        expect 0 generate "$run@$step" -n 24 --seed $((seed + i)) --json "$@" \
            --prompt "$(python3 -c 'import json, sys; print(json.loads(sys.argv[1])[2])' "$line")"
        field "json.dumps([$step, $i] + [o[key] for key in ('prompt', 'text', 'tokens', 'ended')])" >>"$work/after"
        i=$((i + 1))
    done <"$work/during"
    [ $i -eq 3 ] || fail "$run: $i samples of step $step"
    cmp "$work/during" "$work/after" || fail "$run, step $step: $(diff "$work/during" "$work/after")"
}
