#!/usr/bin/env bash
# One bit is flipped in the input, in gradients before and after they are summed, in parameters or in moments, at a
# random place that the record covers in a random step of a random rank: the record shows rank, step and place, and
# nothing else.
# flips_are_found.sh COUNT: this many flips. What is drawn depends on the number alone.
. "$(dirname "$0")/lib.sh"
count=${1:?number of flips}
steps=12
make_text 12
common=(schedule.steps=$steps checkpoint.every=0 checkpoint.keep=1)

# name, ranks, and the fields of a plan
arrangements=(
    "ddp 2"
    "fsdp 2 strategy.kind=fsdp batch.accumulate=2"
    "tensor 2 tensor.size=2"
    "bf16 2 strategy.kind=fsdp precision.kind=bf16 model.dropout=0.1"
    "dp 2 strategy.kind=dp"
    "one 1 optimizer.kind=muon optimizer.momentum=0.9 batch.accumulate=3"
)
[ "$count" -ge 100 ] || arrangements=("${arrangements[@]:0:3}") # within the time of the gate
kinds=(weight moment gradient sent input)

processes() { # of an arrangement: dp has one
    if [ "$1" = dp ]; then echo 1; else echo "$2"; fi
}

for entry in "${arrangements[@]}"; do
    read -r name ranks fields <<< "$entry"
    read -ra fields <<< "$fields"
    for twice in a b; do
        plan "$name-$twice" "ranks=$ranks" "${common[@]}" "${fields[@]}"
        ranks "$(processes "$name" "$ranks")" "$name-$twice" || fail "$name has failed"
    done
    "$bin/dist_records" "$(processes "$name" "$ranks")" "$work/$name-a" "$work/$name-b" ||
        fail "$name: the record of the same run differs"
done

# Deterministic numbers below $1.
drawn=12345
draw() {
    drawn=$(((drawn * 1103515245 + 12345) % 2147483648))
    result=$(((drawn / 65536) % $1))
}

declare -A found
flip() { # number
    local entry name ranks fields kind rank step seed text place
    draw ${#arrangements[@]}
    entry=${arrangements[$result]}
    read -r name ranks fields <<< "$entry"
    read -ra fields <<< "$fields"
    draw ${#kinds[@]}
    kind=${kinds[$result]}
    case "$kind $name" in # gradients that are sent: of ranks that add theirs
    sent\ tensor | sent\ dp | sent\ one) kind=gradient ;;
    esac
    ranks=$(processes "$name" "$ranks")
    draw "$ranks"
    rank=$result
    draw $((steps - 1))
    step=$((result + 1))
    draw 32768
    seed=$(($1 * 32768 + result))
    plan flipped "ranks=${entry:${#name}+1:1}" "${common[@]}" "${fields[@]}"
    rm -f "$work"/flipped.[0-9]*
    # the ranks may notice that they have drifted apart, or diverge
    DTRUN_TEST_FLIP="$kind $rank@$step $seed" ranks "$ranks" flipped || true
    grep -qh "flipped: $kind of rank $rank in step $step:" "$work"/flipped*.err "$work"/flipped.[0-9]* ||
        fail "nothing was flipped: $kind $rank@$step $seed in $name"
    text=$("$bin/dist_records" "$ranks" "$work/$name-a" "$work/flipped") && fail "not found: $kind $rank@$step $seed in $name"
    [[ $text = "step $step, rank $rank: "* ]] || fail "$kind $rank@$step $seed in $name was found as '$text'"
    place=$(sed -n 's/.*flipped: .* of element [0-9]* of \(.*\)/\1/p' "$work"/flipped*.err | head -n 1)
    case "$kind $text" in
    weight*": the value of '$place'"* | moment*": a moment "*" of '$place'"* | gradient*": the summed gradient of '$place'"* | \
        sent*": a gradient that this rank computed and sent" | input*": the input") ;;
    *) fail "$kind of '$place' in $name was found as '$text'" ;;
    esac
    found[$kind]=$((${found[$kind]:-0} + 1))
}
for ((i = 0; i < count; i++)); do
    flip "$i"
done
for kind in "${kinds[@]}"; do
    echo "$kind: ${found[$kind]:-0} flips found"
done
echo "$count of $count flips found"
