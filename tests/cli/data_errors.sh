#!/usr/bin/env bash
# Data that is missing, empty, too short or unreadable: reported before anything starts.
. "$(dirname "$0")/lib.sh"
make_tiny

refused() { # file texts...
    local file=$1 text
    shift
    for how in validate "launch --wait"; do
        expect 2 $how "$work/tiny.yaml" --set "data.train=$file"
        one_line
        for text; do says "$text"; done
    done
}

refused "$work/missing.txt" "missing.txt"
: >"$work/empty.txt"
refused "$work/empty.txt" "empty.txt" "empty"
echo "short" >"$work/short.txt"
refused "$work/short.txt" "short.txt"
mkdir "$work/folder.txt"
refused "$work/folder.txt" "folder.txt"
ln -s "$work/nowhere" "$work/dangling.txt"
refused "$work/dangling.txt" "dangling.txt"
refused "$work/no*match.txt" "no*match.txt"
if [ "$(id -u)" -ne 0 ]; then # root can read everything
    cp "$work/corpus.txt" "$work/secret.txt"
    chmod 000 "$work/secret.txt"
    refused "$work/secret.txt" "secret.txt" "Permission denied"
fi
sed "s|^data:.*|data: [corpus.txt, empty.txt]|" "$work/tiny.yaml" >"$work/two.yaml"
line=$(grep -n "^data:" "$work/two.yaml" | cut -d: -f1)
for how in validate "launch --wait" doctor; do
    expect 2 $how "$work/two.yaml"
    says "two.yaml:$line:20: data.train"
done

# --- text for a tokenizer's file, and sentence pairs: validate reads their beginning, and refuses the same data as a
# launch
python3 - "$work" <<'PY'
import sys
write = lambda name, data: open(f"{sys.argv[1]}/{name}", "wb").write(data)
write("latin.txt", "caf\u00e9 ".encode("latin-1") * 100)
write("little.txt", b"a few words")
write("other.jsonl", b'{"body": "text"}\n' * 50)
write("blank.jsonl", b'{"text": ""}\n' * 5)
write("column.csv", b"id,body\n1,text\n")
write("dict.de.txt", b"ein 9\n")
write("dict.en.txt", b"a 9\n")
write("uneven.de", b"ein\n" * 20)
write("uneven.en", b"a\n" * 19)
write("bare.csv", b"x,y\nein,a\n")
write("hollow.jsonl", b'{"de": "ein"}\n' * 30)
write("broken.jsonl", b'{"de": "ein", "en": "\xe9"}\n')
write("words.tsv", b"de\ten\n" + b"ein\ta\n" * 20)
PY
cat >"$work/words.yaml" <<YAML
model: {layers: 1, heads: 2, embed: 16}
data: {train: x, tokenizer: $PWD/tests/golden/tokens/gpt2.json}
batch: {sequences: 2, tokens: 32}
schedule: {steps: 3}
YAML
cat >"$work/pairs.yaml" <<YAML
model: {kind: transformer, layers: 1, heads: 2, embed: 16, ffn: 32}
data: {train: x, source: de, target: en, tokenizer: $work}
batch: {max_tokens: 64, tokens: 20}
schedule: {steps: 3, warmup_steps: 1}
YAML
same_verdict() { # recipe, file, text
    for how in validate "launch --wait"; do
        expect 2 $how "$work/$1.yaml" --set "data.train=$work/$2"
        says "$3"
    done
}
same_verdict words latin.txt "byte 3"
same_verdict words little.txt "little.txt') has 9 tokens"
same_verdict words other.jsonl "50 of 50 lines have no text under 'text'"
same_verdict words blank.jsonl "all documents are empty"
same_verdict words column.csv "has no column 'text'"
same_verdict pairs uneven "has 20 lines and"
same_verdict pairs bare.csv "has no column 'de'"
same_verdict pairs hollow.jsonl "30 of 30 pairs have an empty or missing side"
same_verdict pairs broken.jsonl "is not UTF-8"
expect 0 validate "$work/pairs.yaml" --set "data.train=$work/words.tsv"
nothing_half_made
