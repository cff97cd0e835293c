#!/usr/bin/env bash
# An adapter on two hosts that do not have its base: the losses are those of this machine, before and after a resume.
# Ranks that generate and score get the base too, and a folder of PEFT is trained further there.
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
lora: {rank: 2, alpha: 4}
data: {train: ids.bin, tokens: nanogpt}
batch: {sequences: 2}
END
launch hosts
on_one here
same_curve hosts here 82
wants 0 "" "$dtrun" resume hosts --wait --set schedule.steps=90
wants 0 "" "$dtrun" resume here --wait --set schedule.steps=90
same_curve hosts here 185

printf '1 2 3\n4 5\n6 7 8 9\n' >"$net/launch/lines"
for where in host1,host2 localhost; do
    wants 0 "" "$dtrun" generate hosts --input "$net/launch/lines" --output "$net/launch/$where.txt" --temperature 0 --tokens 5 --nodes "$where"
    wants 0 "" "$dtrun" score hosts --input "$net/launch/lines" --output "$net/launch/$where.scores" --nodes "$where"
done
cmp "$net/launch/host1,host2.txt" "$net/launch/localhost.txt" || fail "hosts generate other tokens"
cmp "$net/launch/host1,host2.scores" "$net/launch/localhost.scores" || fail "hosts compute other scores"

wants 0 "" "$dtrun" export hosts --to peft "$net/launch/adapter"
launch further --set "lora.from=$net/launch/adapter"
on_one further-here --set "lora.from=$net/launch/adapter"
same_curve further further-here 82
