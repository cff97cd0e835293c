# lib: shared code of the tests of several ranks. Source it; it makes $work, which is removed when the test ends.
set -euo pipefail
bin=${DTRUN_BIN:?set DTRUN_BIN to the bin folder of a build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} DTRUN_LOG=warn

fail() {
    echo "FAILED: $*"
    for log in "$work"/*.err; do
        [ -s "$log" ] && { echo "--- ${log##*/}"; tail -n 20 "$log"; }
    done
    exit 1
}

# Prints a text of about $1 kilobytes: words drawn by its own generator, so that the text is the same everywhere.
make_text() {
    awk -v bytes=$(($1 * 1024)) 'BEGIN {
        count = split("the a ship sea wind captain and or of sailed over under bright dark storm " \
                      "moon slowly never home again light sang told old young harbour", word, " ")
        for (x = 7; length(line) + total < bytes;) {
            x = (x * 1103515245 + 12345) % 2147483648
            line = line word[int(x / 65536) % count + 1]
            if (x % 13 == 0 || length(line) > 70) { print line "."; total += length(line) + 2; line = "" }
            else line = line " "
        }
    }' > "$work/text.txt"
}

# pairs_file NAME COUNT SEED WORDS: sentence pairs as 'dtrun data prepare' writes them (engine/data/sentences.h), in
# $work. The target is the source backwards, without some words. Uses awk and printf, because a borrowed machine may
# have no Python.
pairs_file() {
    # shellcheck disable=SC2059 # the bytes are the format
    printf "$(awk -v count="$2" -v x="$3" -v most="$4" '
        function draw(n) { x = x * 16807 % 2147483647; return int(x / 64) % n }
        function bytes(value, width,    i) {
            for (i = 0; i < width; i++) { printf "\\%03o", value % 256; value = int(value / 256) }
        }
        BEGIN {
            for (i = 0; i < count; i++) {
                words = 1 + draw(13)
                for (j = 0; j < words; j++) source[s++] = 4 + draw(most)
                for (j = s - 1; j >= s - words; j--) if (source[j] % 7) target[t++] = source[j] + 1
                source[s++] = target[t++] = 2 # ends a sentence
                from[i + 1] = s; to[i + 1] = t
            }
            printf "DTPAIRS"; bytes(1, 1)
            bytes(count, 8); bytes(s, 8); bytes(t, 8); bytes(2, 4); bytes(0, 28)
            for (i = 0; i <= count; i++) bytes(from[i] + 0, 8)
            for (i = 0; i <= count; i++) bytes(to[i] + 0, 8)
            for (i = 0; i < s; i++) bytes(source[i], 2)
            for (i = 0; i < t; i++) bytes(target[i], 2)
        }')" > "$work/$1.pairs"
}

# dictionary LETTER COUNT: COUNT words, as a string of JSON
dictionary() {
    awk -v letter="$1" -v count="$2" 'BEGIN {
        printf "\""
        for (i = 0; i < count; i++) printf "%s%d 9\\n", letter, i
        printf "\""
    }'
}

# make_pairs [WORDS]: sentence pairs $work/train.pairs and $work/valid.pairs of this many words (40), with their
# dictionaries; ${pairs[@]}: a small model on them.
make_pairs() {
    local words=${1:-40}
    pairs_file train 300 9 "$words"
    pairs_file valid 45 77 "$words"
    printf '{"version": 1, "source": {"dictionary": %s}, "target": {"dictionary": %s}}\n' "$(dictionary s "$words")" \
        "$(dictionary t $((words + 1)))" > "$work/translation.json"
    pairs=(model.kind=transformer model.ffn=40 model.decoder_layers=1 model.source_vocab=$((words + 4))
        model.label_smoothing=0.1
        "data.train=[\"$work/train.pairs\"]" "data.validation=[\"$work/valid.pairs\"]" data.tokens=pairs
        data.tokenizer="$work/translation.json" data.source=s data.target=t
        batch.sequences=1 batch.tokens=16 batch.max_tokens=64)
}

# plan NAME FIELD=VALUE...: a small model on that text; checkpoints go to $work/NAME.ck
plan() {
    local name=$1
    shift
    "$bin/dist_make_plan" "$work/$name.json" "$work/$name.ck" "data.train=[\"$work/text.txt\"]" \
        model.layers=2 model.heads=4 model.embed=32 batch.sequences=4 batch.tokens=32 \
        schedule.warmup_init_lr=0 schedule.steps=20 optimizer.lr=3e-3 schedule.warmup_steps=5 \
        evaluate.every=0 log.every=1 threads=1 "$@"
}

# ranks W NAME [OPTION OF SPAWN...]: trains $work/NAME.json; events go to $work/NAME.RANK. The exit
# code is that of the worst rank.
ranks() {
    local world=$1 name=$2
    shift 2
    "$bin/dist_spawn" --ranks "$world" --events "$work/$name" --timeout 300 "$@" -- \
        "$bin/dtrun-engine" train --plan "$work/$name.json"
}

# train W NAME FIELD=VALUE...: plan, then run; it must end well. With strategy.kind=dp there is one process with W
# replicas. If per_node is set, this many ranks share a node.
train() {
    local world=$1 name=$2 processes=$1
    shift 2
    [[ " $* " = *" strategy.kind=dp "* ]] && processes=1
    plan "$name" "ranks=$world" "$@"
    ranks "$processes" "$name" ${per_node:+--per-node "$per_node"} || fail "$name on $world ranks: exit $?"
    grep -q '"event":"finished"' "$work/$name.0" || fail "$name has not finished"
}

# same_metric METRIC A B RELATIVE
same_metric() {
    "$bin/dist_compare" metrics "$1" "$work/$2.0" "$work/$3.0" "$4" ||
        fail "$1 of $2 and $3 differ"
}

# same_tensors SUFFIX A B STEP RELATIVE: moments (.m, .v) of the checkpoints of A and B after STEP
same_tensors() {
    local file
    file=$(printf 'step-%08d/optimizer-0.safetensors' "$4")
    "$bin/dist_compare" tensors "$1" "$work/$2.ck/$file" "$work/$3.ck/$file" "$5" ||
        fail "tensors '$1' of $2 and $3 differ after step $4"
}

# same_bits A B STEP: parameters and moments of all ranks
same_bits() {
    local step file
    step=$(printf 'step-%08d' "$3")
    for file in "$work/$1.ck/$step"/*.safetensors; do
        cmp "$file" "$work/$2.ck/$step/${file##*/}" || fail "$1 and $2 differ after step $3"
    done
}
