#!/usr/bin/env bash
# `dtrun init` writes a recipe for the data at hand that validates and can be launched; files that are not data are
# refused by name, and nothing is overwritten.
. "$(dirname "$0")/lib.sh"
make_tiny
cd "$work" || exit 1
mkdir -p folder/deeper none mixed
cp corpus.txt folder/train.txt && head -n 200 corpus.txt >folder/my-val.txt
cp corpus.txt folder/README.md && cp corpus.txt "odd \"name\".txt"
python3 - <<'PY'
import json, random, struct
random.seed(1)
with open('classes.csv', 'w') as out:
    print('a,b,class', file=out)
    for i in range(600):
        print(f'{i % 3 + random.random():.3f},{random.random():.3f},{i % 3}', file=out)
with open('numbers.csv', 'w') as out:
    for i in range(300):
        print(f'{i / 7:.3f},{i * 1.5:.2f}', file=out)
with open('ids.bin', 'wb') as out:
    out.write(b''.join(struct.pack('<H', i % 500) for i in range(20000)))
with open('stories.jsonl', 'w') as out:
    for i in range(400):
        print(json.dumps({'id': str(i), 'story': f'the story number {i} of many'}), file=out)
header = "{'descr': '<f4', 'fortran_order': False, 'shape': (200, 3), }".ljust(117) + '\n'
with open('rows.npy', 'wb') as out:
    out.write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header.encode())
    out.write(b''.join(struct.pack('<3f', i, -i, i % 2) for i in range(200)))
PY
repo=$OLDPWD

written() { # NAME TEXT...: init wrote these lines, and validate takes it
    local name=$1 text
    shift
    cp out "$name.yaml"
    for text; do grep -qF -- "$text" "$name.yaml" || fail "$name.yaml lacks '$text'"; done
    expect 0 validate --strict "$name.yaml"
}
expect 0 init corpus.txt
head -n 1 out | grep -q '^# yaml-language-server: \$schema=' || fail "no schema in the first line"
written text "recipe: 1" 'train: "corpus.txt"' "split: 0.1" "tokens: char" "# time" "# data      text: 1 file of"
expect 0 init folder
written folder 'train: "folder/train.txt"' 'validation: "folder/my-val.txt"'
expect 0 init 'odd "name".txt'
written odd 'train: "odd \"name\".txt"'
expect 0 init classes.csv
written classes "kind: mlp" "inputs: 2" "outputs: 3 "
expect 0 init numbers.csv
written numbers "inputs: 1 " "outputs: 1 " "loss: squared_error"
expect 0 init rows.npy
written npy "inputs: 2 " "outputs: 2 "
expect 0 init ids.bin
written ids "of 500 ids"
expect 0 init stories.jsonl --tokenizer "$repo/tests/golden/tokens/gpt2.json"
written stories 'field: "story"' "tokenizer: "
(cd folder && expect 0 init && grep -q 'train: "train.txt"' "$work/out") || fail "not of this folder"

# Other nodes, and cards that are not present: none of them is asked.
expect 0 init corpus.txt --nodes far-a,far-b
grep -q '^nodes: \["far-a", "far-b"\]' out || fail "no nodes"
written nodes "not contacted"
expect 0 init corpus.txt --nodes 'gpu[01-02]' --gpus-as a100:4
grep -q "^strategy: fsdp" out || fail "no strategy"
says "4 a100 each" "precision: bf16"
expect 2 init corpus.txt --gpus-as b1
says "--gpus-as is 'b1'"

# Writes to a file, whose folder is where its paths begin; existing files stay.
expect 0 init folder/train.txt -o none/r.yaml
grep -q "train: \"$(realpath folder)/train.txt\"" none/r.yaml || fail "paths do not begin at the recipe"
expect 0 validate none/r.yaml
cp none/r.yaml before
expect 2 init corpus.txt -o none/r.yaml
says "exists; name another file"
cmp -s before none/r.yaml || fail "it was written over"
expect 0 init corpus.txt --json
json "o['path'] is None" "'tokens: char' in o['recipe']"
expect 0 launch --wait --json text.yaml --set schedule.steps=2 --set schedule.warmup_steps=0 --set evaluate=0

# Files that are not data.
refused() { # TEXT ARGUMENTS...
    local text=$1
    shift
    expect 2 init "$@"
    one_line
    says "$text"
}
: >empty.txt
head -c 3000 /dev/urandom >noise.txt
echo hi >short.txt
printf '[\n1,\n2]\n' >array.json
echo '{"n": [1]}' >none.jsonl
printf 'name,age\nada,36\n' >people.csv
cp corpus.txt ids.bin mixed
refused "cannot read 'missing.txt'" missing.txt
refused "'empty.txt' is empty" empty.txt
refused "'noise.txt' is not text: byte" noise.txt
refused "too little data" short.txt
refused "'array.json' line 1 is not a JSON object" array.json
refused "has no text" none.jsonl
refused "neither rows of numbers nor a column" people.csv
refused "a recipe needs data of one kind" mixed
refused "a recipe needs data of one kind" corpus.txt classes.csv
refused "has 3 columns, but" classes.csv numbers.csv
refused "has no data files" "$work/folder/deeper"
refused "documents need a tokenizer" stories.jsonl
refused "is given twice" corpus.txt corpus.txt
printf 'text of a name\n%.0s' {1..20} >$'a\033b'
refused "a control character in its name" $'a\033b'
refused "--nodes is empty" corpus.txt --nodes ""
refused "neither a file nor a folder" /dev/null
