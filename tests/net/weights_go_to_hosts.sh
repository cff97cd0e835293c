#!/usr/bin/env bash
# The weights that a run starts from are sent to hosts that lack them: a folder of Hugging Face, and a run's newest
# checkpoint. The losses are those of this machine only. The weights are not sent twice, and the folder can be removed
# once the run has a checkpoint.
. "$(dirname "$0")/lib.sh"
hosts 2 apart
on_one() { # name options...
    launch "$1" --set 'nodes=[localhost, localhost#2]' "${@:2}"
}
cp -r tests/golden/huggingface/gpt2_parts "$net/launch/model"
python3 -c '
import array, random
draw = random.Random(1)
array.array("H", (draw.randrange(61) for _ in range(8000))).tofile(open("'"$net"'/launch/ids.bin", "wb"))'
recipe <<'END'
strategy: fsdp
model: {from: model}
data: {train: ids.bin, tokens: nanogpt}
batch: {sequences: 2}
END
launch hosts
on_one here
same_curve hosts here 82
there=$(ssh host1 'ls ~/.cache/dtrun/data/*/ | grep -c safetensors')
[ "$there" -gt 1 ] || fail "there are $there files of weights on host1"
rm -r "$net/launch/model"
wants 0 "" "$dtrun" resume hosts --wait --set schedule.steps=50
launch from-last --set model.from=run:hosts@last
on_one from-last-here --set model.from=run:hosts@last
same_curve from-last from-last-here 82
