#!/usr/bin/env bash
# Text from a checkpoint: of the requested length, also beyond the context; the same for a seed;
# bad arguments are refused with exit code 2, bad checkpoints with 1.
. "$(dirname "$0")/lib.sh"
make_text 40
train 2 run schedule.steps=60
generate() { "$bin/dtrun-engine" generate --checkpoint "$work/run.ck/step-00000060" --threads 1 "$@"; }
refused() { # code message arguments...
    local code=0 wanted=$1 message=$2
    shift 2
    "$bin/dtrun-engine" "$@" > "$work/out" 2> "$work/refused.err" || code=$?
    [ $code = "$wanted" ] || fail "'$*' exits $code, not $wanted"
    grep -q -- "$message" "$work/refused.err" || fail "'$*' does not say '$message'"
    [ ! -s "$work/out" ] || fail "'$*' prints something"
}
[ "$(generate --tokens 100 | wc -c)" = 101 ] || fail "not 100 characters and a line break"
[ "$(generate --tokens 1 --temperature 0 | wc -c)" = 2 ] || fail "not one character"
[[ $(generate --prompt "the ship" --tokens 10) == "the ship"* ]] || fail "no prompt"
[ "$(generate --prompt "the ship" --tokens 10 | wc -c)" -ge 19 ] || fail "nothing after the prompt"
generate --tokens 200 --seed 5 > "$work/a"
generate --tokens 200 --seed 5 > "$work/b"
generate --tokens 200 --seed 6 > "$work/c"
cmp "$work/a" "$work/b" || fail "a seed does not repeat"
cmp -s "$work/a" "$work/c" && fail "another seed gives the same text"
generate --tokens 50 --top-k 1 > "$work/a"
generate --tokens 50 --temperature 0 > "$work/b"
cmp "$work/a" "$work/b" || fail "the likeliest of 1 is not the likeliest"
grep -q '"step":60,"prompt":"the","text":".*","tokens":40' <<<"$(generate --json --prompt "the" --tokens 40)" ||
    fail "no JSON"
generate --tokens 100 --seed 5 --json > "$work/a"
generate --tokens 100 --seed 5 --json --stop e --stop zq > "$work/b"
python3 - "$work/a" "$work/b" << 'PY' || fail "a stop text does not stop"
import json, sys
whole, stopped = (json.load(open(path)) for path in sys.argv[1:])
assert whole["ended"] == "tokens" and whole["tokens"] == 100, whole
assert stopped["ended"] == "stop" and stopped["text"] == whole["text"].split("e")[0], stopped
assert stopped["tokens"] == len(stopped["text"]) + 1, stopped
PY
generate --tokens 50 --top-p 0.000001 > "$work/a"
generate --tokens 50 --temperature 0 > "$work/b"
cmp "$work/a" "$work/b" || fail "the likeliest alone is not the likeliest"
generate --tokens 8 --temperature 0 --prompt "the sh" > "$work/a"
generate --tokens 8 --temperature 0 --prompt "the sh" --precision bf16 > "$work/c" # rounded differently, by 1 in 256
cmp "$work/a" "$work/c" || fail "bf16 takes other letters than fp32 where the text is clear"
generate --tokens 50 --temperature 0 --repetition-penalty 50 > "$work/a"
cmp -s "$work/a" "$work/b" && fail "a penalty changes nothing"
generate --tokens 5 --seed 5 --prompt "the ship" > "$work/a"
printf 'the ship\n' > "$work/prompt"
generate --tokens 5 --seed 5 --prompt-file "$work/prompt" | cmp - "$work/a" || fail "not the prompt of the file"
generate --tokens 5 --seed 5 --prompt - < "$work/prompt" | cmp - "$work/a" || fail "not the prompt of stdin"
train 1 bytes data.tokens=byte schedule.steps=1
"$bin/dtrun-engine" generate --checkpoint "$work/bytes.ck/step-00000001" --tokens 300 --json \
    --temperature 5 --threads 1 | iconv -f UTF-8 -t UTF-8 > "$work/a" || fail "JSON that is not UTF-8"
grep -q $'\xef\xbf\xbd' "$work/a" || fail "300 random bytes without a broken character"
checkpoint=$work/run.ck/step-00000060
refused 2 "--checkpoint is missing" generate
refused 2 "'--tokens' needs a value" generate --tokens
refused 2 "--tokens is '0'" generate --checkpoint "$checkpoint" --tokens 0
refused 2 "--temperature is 'nan'" generate --checkpoint "$checkpoint" --temperature nan
refused 2 "--stop is empty" generate --checkpoint "$checkpoint" --stop ""
refused 2 "cannot be combined" generate --checkpoint "$checkpoint" --prompt a --prompt-file "$work/prompt"
refused 1 "$work/nowhere" generate --checkpoint "$checkpoint" --prompt-file "$work/nowhere"
refused 2 "--top-p is '1.5'" generate --checkpoint "$checkpoint" --top-p 1.5
refused 2 "--precision is 'fp8'" generate --checkpoint "$checkpoint" --precision fp8
refused 2 "unknown argument '--what'" generate --checkpoint "$checkpoint" --what
refused 2 "unknown argument 'more'" generate --checkpoint "$checkpoint" more
refused 2 "unknown command 'dance'" dance
refused 2 "a command is missing"
refused 2 "Z" generate --checkpoint "$checkpoint" --prompt "Z"
refused 1 "$work/none" generate --checkpoint "$work/none"
: > "$checkpoint/complete"
refused 1 "$checkpoint" generate --checkpoint "$checkpoint"
