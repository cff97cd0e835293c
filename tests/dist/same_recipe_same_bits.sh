#!/usr/bin/env bash
# The same recipe on the same number of ranks gives the same bits, run after run.
. "$(dirname "$0")/lib.sh"
make_text 40
for ranks in 1 2 3; do
    for run in a b; do
        train $ranks $ranks$run model.dropout=0.1
    done
    same_metric loss ${ranks}a ${ranks}b 0
    same_bits ${ranks}a ${ranks}b 20
done
