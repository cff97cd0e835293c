#!/usr/bin/env bash
# A wrong recipe: the message has file, line, column and remedy, the exit code is 2, and there is no run.
. "$(dirname "$0")/lib.sh"
make_tiny

refused() { # name texts...  (the recipe on stdin)
    local name=$1 text
    shift
    cat >"$work/$name.yaml"
    for how in validate "launch --wait"; do
        expect 2 $how "$work/$name.yaml"
        one_line
        for text; do says "$text"; done
    done
}
with() { # tiny.yaml with an additional line
    cat "$work/tiny.yaml"
    printf "$1\n"
}

with 'batchsize: 4' | refused unknown_key "unknown_key.yaml:12:1: unknown key 'batchsize'" \
    "did you mean 'batch.sequences'?"
sed 's/embed: 16/embed: wide/' "$work/tiny.yaml" | refused wrong_type "wrong_type.yaml:4:" "embed" \
    "wide"
sed 's/layers: 1/layers: 0/' "$work/tiny.yaml" | refused range "range.yaml:4:" "layers"
sed 's/lr: 3e-3/lr: -1/' "$work/tiny.yaml" | refused negative_rate "negative_rate.yaml:7:" "lr"
with 'name: again' | refused duplicate "duplicate.yaml:12:1:" "name"
with 'log:\n\tevery: 1' | refused tabs "tabs.yaml:13:" "tab"
with 'seed: 1 # \xff\xfe' | refused utf8 "utf8.yaml:12:" "UTF-8"
with 'clip: !!python/object:os.system x' | refused tag "tag.yaml:12:"
sed 's/heads: 2/heads: 3/' "$work/tiny.yaml" | refused heads "heads.yaml:4:" "heads" "embed"
sed '/^data/d' "$work/tiny.yaml" | refused no_data "data"
printf '' | refused empty "empty.yaml"
with 'nodes: [gpu-a, gpu-a]' | refused same_node "same_node.yaml:12:" "gpu-a"

# A pattern of blocks is compared as it repeats over the blocks of the weights, which are two here: w, f.
cp -r tests/golden/families/gemma3_text "$work/gemma"
printf '\0\0%.0s' $(seq 400) >"$work/ids.bin"
cat >"$work/pattern.yaml" <<YAML
model: {from: gemma, window_layers: wfwwf}
data: {train: ids.bin, tokens: nanogpt}
batch: {sequences: 1, tokens: 8}
schedule: {steps: 1}
YAML
expect 0 validate "$work/pattern.yaml"
expect 2 validate "$work/pattern.yaml" --set model.window_layers=wwwwwf
says "'model.window_layers' is \"wwwwwf\"" "('layer_types'): leave it out"

# Anchors that multiply are refused, not expanded.
{
    echo 'a: &a [x,x,x,x,x,x,x,x,x,x]'
    for pair in b:a c:b d:c e:d f:e g:f h:g i:h; do
        echo "${pair%:*}: &${pair%:*} [*${pair#*:},*${pair#*:},*${pair#*:},*${pair#*:},*${pair#*:},*${pair#*:}]"
    done
} | refused anchor_bomb "anchor_bomb.yaml:"

# A large file is refused by its size, without reading it.
cp "$work/tiny.yaml" "$work/large.yaml"
truncate -s 1T "$work/large.yaml"
expect 2 launch "$work/large.yaml"
one_line
says "large.yaml" "1 MiB"

# --set is checked like the file.
expect 2 launch "$work/tiny.yaml" --set optimizer.learning=1
one_line
says "--set" "optimizer.learning"
expect 2 launch "$work/tiny.yaml" --set schedule.steps=soon
one_line
says "--set" "soon"
expect 2 launch "$work/tiny.yaml" --set nonsense
one_line
says "--set"
for command in "launch $work/tiny.yaml" "resume last"; do
    expect 2 $command --set schedule.steps 100
    one_line
    says "--set schedule.steps: expected KEY=VALUE in one word: --set schedule.steps=100"
done

# The recipe of `dtrun run` is not a file: messages have no position and no line of it.
expect 2 run --nodes 'gpu[01-' -- true
one_line
says "dtrun run: node 'gpu[01-': expected numbers"
lacks " | "

# A recipe that does not exist, or is not a file.
expect 2 launch "$work/missing.yaml"
one_line
says "missing.yaml" "No such file"
expect 2 validate "$work"
one_line
mkfifo "$work/pipe" # no process writes to it
expect 2 validate "$work/pipe"
says "not a regular file"

# One wrong recipe does not hide the next one.
expect 2 validate "$work/heads.yaml" "$work/tiny.yaml" --json
json "[r['valid'] for r in o['recipes']] == [False, True]" \
    "'heads.yaml:4:' in o['recipes'][0]['message']" "o['recipes'][1]['ranks'] == 2"
expect 2 validate "$work/heads.yaml" "$work/tiny.yaml"
says "tiny.yaml: good"
expect 0 validate "$work/tiny.yaml"
(cd "$work" && "$dtrun" validate /dev/stdin <tiny.yaml >/dev/null) || fail "stdin is a file too"

# As SARIF, with the rule and the place.
expect 2 validate --sarif "$work/heads.yaml" "$work/tiny.yaml" "$work/missing.yaml"
python3 - "$work/out" "$work/heads.yaml" <<'PY' || fail "SARIF"
import json, sys
document = json.load(open(sys.argv[1]))
run = document["runs"][0]
assert document["version"] == "2.1.0" and run["tool"]["driver"]["name"] == "dtrun"
rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
first, second = run["results"]
assert first["ruleId"] == "heads-divide-embed" and first["ruleId"] in rules and first["level"] == "error"
assert first["message"]["text"].startswith("'model.heads' 3")
place = first["locations"][0]["physicalLocation"]
assert place["artifactLocation"]["uri"] == "file://" + sys.argv[2]
assert place["region"] == {"startLine": 4, "startColumn": 39}
assert second["ruleId"] == "read" and "missing.yaml" in second["message"]["text"]
PY

# The recipe may be for another machine, but this machine does not have enough memory for it.
sed 's/layers: 1/layers: 900/; s/embed: 16/embed: 16384/' "$work/tiny.yaml" >"$work/huge.yaml"
expect 0 validate "$work/huge.yaml"
says "huge.yaml: warning" "does not fit into the memory" "TB"
expect 0 validate "$work/huge.yaml" --json
json "o['recipes'][0]['rank_bytes'] > 1e12" "len(o['recipes'][0]['warnings']) == 1"
nothing_half_made
