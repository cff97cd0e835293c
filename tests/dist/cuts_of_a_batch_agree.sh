#!/usr/bin/env bash
# (sequences, accumulate, ranks) = (8,1,1), (2,4,1), (2,1,4) are the same step: the same gradients (the first moment
# after one step is 1 - beta1 of them), and the same losses after it.
. "$(dirname "$0")/lib.sh"
make_text 40
cut() { # name sequences accumulate ranks
    train "$4" "$1-one" batch.sequences="$2" batch.accumulate="$3" schedule.steps=1
    train "$4" "$1-ten" batch.sequences="$2" batch.accumulate="$3" schedule.steps=10
}
cut whole 8 1 1
cut micro 2 4 1
cut ranks 2 1 4
for other in micro ranks; do
    same_tensors .m whole-one $other-one 1 1e-5
    same_metric loss whole-ten $other-ten 1e-5
    same_metric gradient_norm whole-ten $other-ten 1e-5
done
# and a different step is detected as different
train 1 seed-one batch.sequences=8 schedule.steps=1 seed=2
"$bin/dist_compare" tensors .m "$work/whole-one.ck/step-00000001/optimizer-0.safetensors" \
    "$work/seed-one.ck/step-00000001/optimizer-0.safetensors" 1e-2 &&
    fail "another seed gives the same gradients"
exit 0
