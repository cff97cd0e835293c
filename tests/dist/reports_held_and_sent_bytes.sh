#!/usr/bin/env bash
# The values that the ranks report are those of the formulas, within 5 %: the bytes that a rank
# holds (in the event `memory` of each rank, which its log has too, and in the metric held_bytes), the
# bytes that it sends in a step (sent_bytes), and the FLOPs of a step of all ranks (their rate times
# the least time of it), for every strategy and sharding, on 2 to 4 ranks.
. "$(dirname "$0")/lib.sh"
make_text 40
# Parameters: embeddings of 128 (padded) tokens and 32 positions, final norm, L blocks of 12 C^2 + 13 C.
L=6 C=32
V=$(($(grep -o . "$work/text.txt" | LC_ALL=C sort -u | wc -l) + 1)) # and the line break
all_flops=$((4 * 32 * (6 * (12 * L * C * C + V * C) + 12 * L * C * 32))) # 4 x 32 tokens of a rank
flops=$all_flops
block=$((12 * C * C + 13 * C)) elems=$(((128 + 32 + 2) * C + L * (12 * C * C + 13 * C)))

# check NAME WORLD HELD SENT FIELD=VALUE...: HELD and SENT are bytes, as expressions of awk in W, N
# (elements of the model), B (of a block) and L
check() {
    local name=$1-$2 world=$2 held=$3 sent=$4
    shift 4
    DTRUN_LOG=info train "$world" "$name" model.layers=$L model.heads=4 model.embed=$C schedule.steps=3 "$@"
    for rank in $(cd "$work" && ls | sed -nE "s/^$name\.([0-9])$/\1/p"); do
        awk -v W="$world" -v N=$elems -v B=$block -v L=$L -v F=$flops -v name="$name, rank $rank" '
            function of(key) {
                return match($0, "\"" key "\":[0-9.e+-]+") ? substr($0, RSTART + length(key) + 3) + 0 : -1
            }
            function near(what, is, should) {
                if (is < 0.95 * should || is > 1.05 * should) {
                    printf "%s: %s is %.0f, not %.0f\n", name, what, is, should
                    bad = 1
                }
            }
            /"event":"memory"/ {
                seen = 1
                near("held", of("parameters_bytes") + of("gradients_bytes") + of("optimizer_bytes"), '"$held"')
                if (of("activations_bytes") <= 0 || of("buffers_bytes") <= 0 || of("free_bytes") <= 0)
                    bad = 1
            }
            /"learning_rate"/ {
                steps++
                near("held_bytes", of("held_bytes"), '"$held"')
                near("sent_bytes", of("sent_bytes"), '"$sent"')
                near("FLOPs", of("matmul_flops_per_second") * of("least_step_seconds"), W * F)
            }
            END { exit bad || !seen || steps != ('"$rank"' == 0 ? 3 : 0) }' "$work/$name.$rank" ||
            fail "$name, rank $rank: $(head -n 1 "$work/$name.$rank")"
        grep -q 'memory in MB: parameters .*; free' \
            "$work/$name.$rank.err" || fail "$name, rank $rank: its log does not say what it holds"
    done
}

fsdp=strategy.kind=fsdp
for world in 2 3 4; do
    check ddp $world '16 * N' '2 * (W-1)/W * 4 * N' strategy.kind=ddp
    # the root and the two blocks that the forward pass left gathered are not gathered again
    check full $world '16 * N / W' '(W-1)/W * 4 * (3 * N - (N - (L-2) * B))' $fsdp
    check kept $world '16 * N / W' '(W-1)/W * 4 * 2 * N' $fsdp strategy.reshard_after_forward=false
    check gradients $world '(4 + 12 / W) * N' '(W-1)/W * 4 * 2 * N' $fsdp strategy.shard=gradients
    check optimizer $world '(8 + 8 / W) * N' '(W-1)/W * 4 * 2 * N' $fsdp strategy.shard=optimizer
    check dp $world '(16 + 8 * (W-1)) * N' '(W-1) * 8 * N' strategy.kind=dp
done
# Ranks that divide layers hold the norms, the positions and two of four biases (R), and an equal part of everything
# else. W in the formulas is all ranks, of which D read different samples. Sums within layers: 4 for each block, and 2.
R=$(((32 + 2) * C + L * 6 * C))
for tensor in 2 4; do
    D=$((4 / tensor)) H="($elems - $R) / $tensor + $R"
    sums="2 * ($tensor-1)/$tensor * 4 * 128 * $C * (4 * L + 2)"
    flops=$((all_flops / tensor)) # all ranks of a group compute the FLOPs of 4 x 32 tokens
    check ddp-tensor-$tensor 4 "16 * ($H)" "2 * ($D-1)/$D * 4 * ($H) + $sums" strategy.kind=ddp tensor=$tensor
    check optimizer-tensor-$tensor 4 "(8 + 8 / $D) * ($H)" "($D-1)/$D * 8 * ($H) + $sums" $fsdp \
        strategy.shard=optimizer tensor=$tensor
done
flops=$all_flops
bf16=precision.kind=bf16
check ddp-bf16 3 '18 * N' '2 * (W-1)/W * 4 * N' $bf16
check full-bf16 3 '16 * N / W' '(W-1)/W * (2 * (N + (L-2) * B) + 4 * N)' $fsdp $bf16
check gradients-bf16 3 '(2 + 16 / W) * N' '(W-1)/W * 6 * N' $fsdp $bf16 strategy.shard=gradients
check optimizer-bf16 3 '(6 + 12 / W) * N' '(W-1)/W * 6 * N' $fsdp $bf16 strategy.shard=optimizer
check dp-bf16 3 '(18 + 6 * (W-1)) * N' '(W-1) * 6 * N' strategy.kind=dp $bf16
check ddp-sent-bf16 2 '16 * N' '2 * (W-1)/W * 2 * N' strategy.reduce_dtype=bf16
check moments 2 '12 * N' '2 * (W-1)/W * 4 * N' optimizer.moments=bf16
check momentum 2 '12 * N' '2 * (W-1)/W * 4 * N' optimizer.kind=sgd optimizer.momentum=0.9
check sgd 2 '8 * N' '2 * (W-1)/W * 4 * N' optimizer.kind=sgd optimizer.momentum=0
