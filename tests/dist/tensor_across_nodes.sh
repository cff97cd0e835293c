#!/usr/bin/env bash
# tensor_across_nodes: ranks that divide layers and are on several nodes ('tensor.across_nodes') agree with one process,
# 20 steps: a group on two nodes, two groups of which one is on two nodes, and with ranks that share key heads. Without
# the field the run is refused.
. "$(dirname "$0")/lib.sh"
make_text 40
llama=(model.kind=llama model.heads=4 model.kv_heads=2 model.embed=33 model.head_width=6 model.ffn=20)

# two_nodes NAME RANKS_OF_A_NODE TENSOR FIELD=VALUE...: prints the exit code
two_nodes() {
    local name=$1 per_node=$2 tensor=$3
    shift 3
    plan "$name" 'nodes=["a","b"]' ranks="$per_node" tensor="{\"size\": $tensor, \"across_nodes\": $across}" \
        batch.sequences=$((6 * tensor / per_node)) "$@"
    ranks $((2 * per_node)) "$name" --per-node "$per_node"
}

# check ONE NAME RANKS_OF_A_NODE TENSOR FIELD=VALUE...
check() {
    local one=$1 name=$2
    shift
    two_nodes "$@" || fail "$name: exit $?"
    same_metric loss "$one" "$name" 1e-5
    same_metric gradient_norm "$one" "$name" 1e-5
}

across=true
train 1 one batch.sequences=12
check one two-by-one 1 2
check one two-by-two 2 4 strategy.kind=fsdp
check one two-by-three 3 2
train 1 llama batch.sequences=12 "${llama[@]}"
check llama llama-two-by-two 2 4 "${llama[@]}"

across=false
two_nodes refused 1 2 2> "$work/refused" && fail "a group on two nodes is not refused"
grep -q "'a' has 1 rank, not a multiple of 'tensor' 2.*'tensor.across_nodes: true'" "$work"/refused* ||
    fail "the refusal says: $(cat "$work"/refused*)"
