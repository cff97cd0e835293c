#!/usr/bin/env bash
# A run that is stopped by SIGTERM in the middle and resumed ends with the bits of the uninterrupted one:
# losses with 17 digits, parameters and both moments. With dropout and accumulation, fp32 and bf16,
# on one rank and on two; ddp and fsdp.
. "$(dirname "$0")/lib.sh"
make_text 12 # so short that the resumed run crosses into the next epoch
check() { # name ranks precision FIELD=VALUE...
    local common=(schedule.steps=60 model.dropout=0.1 batch.accumulate=2 precision.kind="$3"
                  checkpoint.keep=0 "${@:4}")
    train "$2" "$1" "${common[@]}"
    plan "$1-cut" "ranks=$2" "${common[@]}"
    DTRUN_FAULT="hang 0@12" ranks "$2" "$1-cut" --signal -1:15:11 || fail "a stopped run exits 0, not $?"
    grep -q '"reason":"stopped"' "$work/$1-cut.0" || fail "the run was not stopped"
    cp "$work/$1-cut.0" "$work/$1-first.0"
    local saved=("$work/$1-cut.ck"/step-*)
    [ ${#saved[@]} = 1 ] || fail "a stop leaves one checkpoint, not ${#saved[@]}"
    [[ ${saved[0]} != *step-00000060 ]] || fail "the stop came too late to test anything"
    plan "$1-cut" "ranks=$2" "${common[@]}" "resume=${saved[0]}"
    ranks "$2" "$1-cut" || fail "the resumed run failed"
    same_metric loss "$1" "$1-first" 0
    same_metric loss "$1" "$1-cut" 0
    same_metric gradient_norm "$1" "$1-cut" 0
    same_bits "$1" "$1-cut" 60
    [ "$(grep -h '"learning_rate"' "$work/$1-first.0" "$work/$1-cut.0" | wc -l)" = 60 ] ||
        fail "not each step exactly once"
}
check one 1 fp32
check two 2 fp32
check two-bf16 2 bf16
check fsdp 2 bf16 strategy.kind=fsdp
check moments 2 bf16 strategy.kind=fsdp optimizer.moments=bf16
check muon 2 fp32 strategy.kind=fsdp optimizer.kind=muon optimizer.momentum=0.9
