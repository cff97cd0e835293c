#!/usr/bin/env bash
# A run that changes strategy and number of ranks at its checkpoints continues like an unchanged one: losses within
# 1e-6. From ddp on 2 ranks to each sharding of fsdp on 3 to one process; and back through dp and 4 ranks.
. "$(dirname "$0")/lib.sh"
make_text 40
common=(batch.accumulate=2 schedule.warmup_steps=5 schedule.period_steps=45)
train 1 one "${common[@]}" batch.sequences=12 schedule.steps=50
leg() { # name ranks first-step last-step FIELD=VALUE...
    local name=$1 ranks=$2 first=$3 last=$4
    shift 4
    train "$ranks" "$name" "${common[@]}" batch.sequences=$((12 / ranks)) schedule.steps="$last" "$@"
    [ "$(grep -c '"learning_rate"' "$work/$name.0")" = $((last - first)) ] ||
        fail "$name did not continue from step $first"
    same_metric loss one "$name" 1e-6
    at="$work/$name.ck/$(printf 'step-%08d' "$last")"
}
leg ddp 2 0 10
start=$at
for shard in full gradients optimizer; do
    leg $shard 3 10 20 strategy.kind=fsdp strategy.shard=$shard "resume=$start"
    leg $shard-one 1 20 30 "resume=$at"
done
leg dp 2 30 35 strategy.kind=dp "resume=$at"
leg kept 4 35 40 strategy.kind=fsdp strategy.reshard_after_forward=false "resume=$at"
leg whole 3 40 45 strategy.kind=fsdp strategy.reduce_each_micro_step=false "resume=$at"
leg last 2 45 50 "resume=$at"
