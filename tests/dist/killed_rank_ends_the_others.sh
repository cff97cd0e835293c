#!/usr/bin/env bash
# A killed rank ends the others within seconds, each with the reason: the communicator is dead. No rank hangs, and none
# ends well.
. "$(dirname "$0")/lib.sh"
make_text 40
check() { # killed world FIELD=VALUE...
    local name=killed-$1-of-$2
    plan "$name" "ranks=$2" schedule.steps=100000 evaluate.every=0 "${@:3}"
    ranks "$2" "$name" ${per_node:+--per-node "$per_node"} --signal "$1:9:5" && fail "a run with a killed rank ends well"
    while read -r rank code seconds; do
        awk -v s="$seconds" 'BEGIN { exit !(s < 30) }' || fail "rank $rank lived $seconds s"
        if [ "$rank" = "$1" ]; then
            [ "$code" = 137 ] || fail "rank $rank was not killed: $code"
        else
            [ "$code" = 1 ] || fail "rank $rank exits $code"
            grep -q '"event":"failed","status":"comm"' "$work/$name.$rank" ||
                fail "rank $rank does not say why"
            # over sockets the message names its own place, in shared memory the dead rank
            grep -Eq "rank $rank of $2|rank [0-9]+ (\(process [0-9]+\) is dead|has closed)" "$work/$name.$rank.err" ||
                fail "rank $rank is silent"
        fi
    done < "$work/$name.exits"
}
check 1 2
check 0 2
check 1 3
check 1 2 strategy.kind=fsdp
check 0 3 strategy.kind=fsdp strategy.shard=optimizer
check 3 4 tensor=2 strategy.kind=fsdp # most likely during a sum within a layer
# On two nodes that each hold all parameters: the ranks of both nodes end.
per_node=2 check 3 4 'nodes=["a","b"]' ranks=2 strategy.kind=fsdp strategy.within=node
