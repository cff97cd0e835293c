#!/usr/bin/env bash
# A wrong command line: one clear message, a hint to the help, exit code 2.
. "$(dirname "$0")/lib.sh"

refused() { # text arguments...
    local text=$1
    shift
    expect 2 "$@"
    one_line
    says "$text"
}

expect 2
says "Usage: dtrun COMMAND"
refused "unknown command 'lanch' (did you mean 'launch'?)" lanch
says "see 'dtrun help'"
refused "unknown command 'stat' (did you mean 'status'?)" stat
refused "unknown command 'frobnicate'" frobnicate
refused "unknown option '--wait': options come after the command" --wait launch x
refused "unknown command 'lgs' (did you mean 'logs'?)" help lgs

refused "RECIPE is missing" launch
says "see 'dtrun help launch'"
refused "unexpected argument 'b.yaml'" launch a.yaml b.yaml
refused "unknown option '--detatch' (did you mean '--detach'?)" launch a.yaml --detatch
refused "unknown option '-Z'" launch a.yaml -Z
refused "option '--set' needs a value" launch a.yaml --set
refused "option '--wait' takes no value" launch a.yaml --wait=yes
refused "--wait and --detach cannot be combined" launch a.yaml --wait --detach
refused "--limit: expected a whole number, got 'many'" list --limit many
refused "--limit: -1 is out of range" list --limit=-1
refused "--state: unknown value 'runing' (one of waiting, queued, preparing," list --state runing
refused "--format: unknown value 'xml' (one of csv, jsonl, wide)" metrics last --format xml
refused "--top-p: 0 is out of range" generate last --top-p 0
refused "--temperature: expected a number, got 'hot'" generate last --temperature hot
refused "unexpected argument 'x'" list x
refused "RECIPE... is missing" validate

# With --json the message is an object too, and stderr has it as well.
expect 2 launch --json
json "o['error']['status'] == 'usage'" "'RECIPE is missing' in o['error']['message']"
says "dtrun launch: RECIPE is missing"
expect 2 status $'no\xffrun' --json
json "o['error']['message'].startswith(\"unknown run 'no\")"
expect 2 validate $'no\xff.yaml' --json
json "o['recipes'][0]['path'] == 'no\ufffd.yaml'" "'no\ufffd.yaml' in o['recipes'][0]['message']"
expect 2 logs last --follow --json
json "'cannot be combined' in o['error']['message']"

# A reader that closes early causes no crash; a full stdout is an error.
expect 0 list
if [ -w /dev/full ]; then
    subject="dtrun --help to a full device"
    "$dtrun" help launch >/dev/full 2>"$work/err"
    [ $? -eq 3 ] || fail "exit code is not 3"
    says "cannot write to stdout"
fi
[ ! -e "$work/state/dtrun/runs" ] || fail "wrong command lines made a runs folder"
