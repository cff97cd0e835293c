# Shared code of the fault tests over real sshd, in addition to lib.sh: two hosts of tests/net, a recipe of two ranks on
# each, and the real engine. $state is the state folder on this machine's disk, which the hosts see too. The learning
# rate is constant: runs of different lengths have the same losses.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
real_engine
net_sh=$(cd "$(dirname "${BASH_SOURCE[0]}")/../net" && pwd)/net.sh
net=$("$net_sh" up 2) || exit $?
clean_more() { "$net_sh" down "$net"; }
state=$XDG_STATE_HOME
. "$net/env"
export XDG_STATE_HOME=$state
cat >"$state/tiny.yaml" <<YAML
nodes: [host1, host2]
ranks: 2
threads: 1
strategy: ddp
model: {kind: gpt2, layers: 1, heads: 2, embed: 16}
data: {train: corpus.txt}
batch: {sequences: 2, tokens: 16}
schedule: {kind: constant, warmup_steps: 5, steps: 1000000}
checkpoint: {every: 50, keep: 2}
log: {every: 1}
grace_seconds: 2
YAML

apart() { [ "$net_kind" = namespace ]; } # hosts that can be cut off, and whose processes can be found
launch() { # name options...: sets id
    id=$("$dtrun" launch --detach --json "$state/tiny.yaml" --set "name=$1" "${@:2}" |
        python3 -c "import json, sys; print(json.load(sys.stdin)['run'])")
}
has_saved() { [[ $("$dtrun" checkpoints "$1" --json) == *'"step"'* ]]; } # as often as the disk allows
pid_of() { # run rank: the process id on this machine of this rank, on its host
    local node pid
    read -r node pid <<<"$(value "$1" "*[(n['host'], r['pid']) for n in o['nodes'] for r in n['ranks'] if r['rank'] == $2][0]")"
    "$net_sh" pid "$net" "$node" "$pid"
}

# pids, on all hosts, of the processes of the run with this id that match the pattern
there() { # id pattern
    local file pid
    for file in $(grep -lsF "$1" /proc/[0-9]*/cmdline); do
        pid=${file//[!0-9]/}
        tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -q -- "$2" && echo "$pid"
    done
    true
}
none_there() { [ -z "$(there "$1" "dtrun-engine\|dtrun-agent serve")" ]; }
no_ranks() { [ -z "$(there "$1" dtrun-engine)" ]; }

# Every step once, from the first one, with the same bits as the run `golden` as far as both go.
whole() { # run [steps]
    local steps both
    losses "$1" >"$state/losses"
    steps=$(wc -l <"$state/losses")
    is "steps of $1" "$(cut -d, -f1 "$state/losses" | tr '\n' ' ')" "$(seq "$steps" | tr '\n' ' ')"
    [ $# -eq 1 ] || is "how many steps $1 has" "$steps" "$2"
    losses golden >"$state/golden"
    both=$(wc -l <"$state/golden")
    [ "$both" -le "$steps" ] || both=$steps
    cmp -s <(head -n "$both" "$state/golden") <(head -n "$both" "$state/losses") ||
        fail "other losses in $1 than undisturbed"
}
