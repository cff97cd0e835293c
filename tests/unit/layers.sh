#!/usr/bin/env bash
# Checks that no folder includes one above it: base <- recipes <- engine; base <- store <- web; runner on top.
# Also: every C file gets base/banned.h, no source file grown past 25 KB.
set -uo pipefail
cd "$(dirname "$0")/../.."
failed=0
complain() { printf '%s\n' "$*"; failed=1; }

# folder: the folders whose headers it may include, itself among them
check() { # folder allowed...
    local folder=$1 allowed hits
    shift
    allowed=$(IFS='|'; echo "$*")
    hits=$(grep -rnE '^#include "(base|recipes|engine|store|web|runner)/' --include='*.[ch]' \
        --include='*.cc' --include='*.cu' --include='*.cuh' "$folder" |
        grep -vE "#include \"($allowed)/")
    [ -z "$hits" ] || complain "$folder may include only ${allowed//|/, }:"$'\n'"$hits"
}
check base base
check recipes base recipes
check engine base recipes/fields recipes/architecture recipes/cost recipes/foreign recipes/plan engine
check store base store
check web base store web
check runner base recipes engine/bleu engine/chat engine/data engine/tokens engine/checkpoint engine/evaluation engine/strategy engine/weights store web runner

# Inside recipes/, engine/ and runner/, folder by folder; files next to the folders are for all of them.
inside() { # part folder allowed...
    local part=$1 folder=$2 allowed hits
    shift 2
    allowed=$(IFS='|'; echo "$folder|$*")
    hits=$(grep -rnE "^#include \"$part/[a-z_]+/" --include='*.[ch]' --include='*.cc' --include='*.cu' \
        --include='*.cuh' "$part/$folder" | grep -vE "#include \"$part/($allowed)/")
    [ -z "$hits" ] || complain "$part/$folder may include only ${allowed//|/, } of $part/:"$'\n'"$hits"
    known+=" $part/$folder/"
}
known=
inside recipes fields
inside recipes architecture fields
inside recipes cost fields architecture
inside recipes foreign fields architecture
inside recipes plan fields cost foreign
inside recipes read fields architecture foreign
inside recipes rules fields architecture plan read
inside recipes doc fields read rules
inside engine bleu
inside engine ops device
inside engine device ops
inside engine model device ops
inside engine optim device ops
inside engine channel
inside engine tokens
inside engine chat tokens
inside engine data chat tokens
inside engine comm channel device ops
inside engine strategy comm device model ops optim
inside engine checkpoint comm data model strategy
inside engine record channel checkpoint device model strategy
inside engine weights checkpoint data model ops strategy
inside engine evaluation data device model tokens
inside engine gguf ops tokens
inside engine search data device model
inside engine train bleu evaluation generate search channel checkpoint comm data device model ops optim record strategy tokens weights
inside engine task channel generate tokens
inside engine generate chat checkpoint data device evaluation model search tokens weights
inside runner term
inside runner channel
inside runner predict
inside runner corpus node_setup term
inside runner fetch
inside runner transport
inside runner node_setup transport
inside runner supervisor channel node_setup transport
inside runner agent channel node_setup/remote_helper
inside runner cli term
inside runner view cli predict supervisor term
inside runner export cli fetch launch supervisor term view
inside runner gc node_setup/remote_helper node_setup/workdir supervisor sweep
inside runner import cli export fetch launch supervisor term
inside runner convert cli term
inside runner launch cli corpus fetch node_setup predict supervisor term transport
inside runner benchmarks corpus
inside runner verify cli launch supervisor term
inside runner stop channel cli node_setup supervisor transport
inside runner init cli corpus launch term
inside runner smoke cli corpus launch node_setup/workdir supervisor term
inside runner queue channel cli launch node_setup supervisor term view
inside runner sweep channel cli launch queue stop supervisor term view
inside runner relay cli term
inside runner mcp cli
inside runner top cli queue supervisor term view
inside runner commands benchmarks cli convert corpus export gc import init launch mcp queue relay smoke stop sweep top verify view supervisor term
for folder in recipes/*/ engine/*/ runner/*/; do
    case $known in *" $folder"*) ;; *) complain "$folder has no rule here: say what it may include" ;; esac
done

# A header that ends in _int.h is for its own folder. A device and its ops are one backend, and
# collectives add 16-bit numbers as the ops do.
while IFS=: read -r file _ line; do
    header=${line#*\"} header=${header%\"*}
    case "$file $header" in
    "${header%/*}"/* | engine/device/*\ engine/ops/* | engine/comm/sum.c\ */half_int.h | engine/weights/*\ */half_int.h | engine/gguf/*\ */half_int.h) ;;
    *) complain "$file includes $header, which is private to ${header%/*}/" ;;
    esac
done < <(grep -rnE '^#include "[a-z_/0-9]+_int\.(h|cuh)"' base recipes engine store web runner)

# The engine knows no YAML, no SQL, no ssh; ops and models know no strategy.
hits=$(grep -rnE '#include <(yaml|sqlite3|microhttpd|curl/)' base recipes/{fields,architecture,cost,foreign,plan} engine)
[ -z "$hits" ] || complain "the engine's side includes what only the runner may:"$'\n'"$hits"
hits=$(grep -rnE '#include "engine/(strategy|comm|checkpoint|data)/' engine/ops engine/device engine/model)
[ -z "$hits" ] || complain "ops and models see tensors only:"$'\n'"$hits"

# Inside the supervisor each folder includes only those below it (docs/architecture.md); decisions have no side effects,
# make no requests, and use no clock.
room() { # folder of runner/supervisor, and what it may include of it: itself and folders below it
    local folder=runner/supervisor/$1 allowed hits
    shift
    allowed=$(IFS='|'; echo "$*")
    hits=$(grep -rnE '^#include "runner/supervisor/' --include='*.[ch]' "$folder" |
        grep -vE "#include \"runner/supervisor/($allowed)[/\"]")
    [ -z "$hits" ] || complain "$folder may include only ${allowed//|/, } of runner/supervisor:"$'\n'"$hits"
}
room protocol protocol
room folder folder
room policy protocol policy
room connection protocol policy connection
room collect protocol folder policy collect
room cleanup folder policy connection cleanup
room client folder client supervisor.h
room rebuild protocol folder policy collect rebuild
room session protocol folder policy connection collect cleanup rebuild session supervisor.h
# The same inside the views.
for rule in 'runs runs' 'recipe recipe' 'compare compare|runs' 'follow follow|compare|runs'; do
    hits=$(grep -rnE '^#include "runner/view/' --include='*.[ch]' "runner/view/${rule% *}" |
        grep -vE "#include \"runner/view/(${rule#* })/")
    [ -z "$hits" ] || complain "runner/view/${rule% *} may include only ${rule#* } of runner/view:"$'\n'"$hits"
done
hits=$(grep -rnE 'dt_clock_|<uv.h>|<time.h>|<unistd.h>|"runner/[a-z]*/' runner/supervisor/policy |
    grep -v '"runner/supervisor/')
[ -z "$hits" ] || complain "runner/supervisor/policy is given facts and a time:"$'\n'"$hits"
# Code that models share, and code that uses models, knows no kind: only a table and two folders do.
kinds=$(for file in engine/model/*/kind.c; do basename "$(dirname "$file")"; done | grep -vx decoder | paste -sd'|')
[[ $kinds == *'|'* ]] || complain "no kinds were found in engine/model"
hits=$(grep -rnE "[gG][pP][tT]2|(dt_($kinds)|MODEL_(${kinds^^}))(_|\\b)" --include='*.[ch]' engine recipes/{fields,cost,foreign,plan,read,rules,doc} |
    grep -vE "^(engine/model/($kinds)/|engine/tokens/|engine/gguf/|recipes/(fields/(model_table\\.h|recipe\\.h|presets\\.[ch])|read/derive\\.c|doc/doc\\.c):)")
[ -z "$hits" ] || complain "only folders of engine/model and recipes/architecture know one model from another:"$'\n'"$hits"

# The training loop does not ask which strategy it has.
hits=$(grep -rnE 'DT_STRATEGY_|dt_strategy_(dp|ddp|fsdp)\b' --include='*.[ch]' engine |
    grep -v '^engine/strategy/')
[ -z "$hits" ] || complain "only engine/strategy knows one strategy from another:"$'\n'"$hits"

# Text that a person sees passes base/display.h, in runner/cli/report.c and runner/term.
hits=$(grep -nE '\b(v?f?printf|f?puts|putchar|fputc|fwrite|v?dprintf)\(|(STDOUT|STDERR)_FILENO, [a-z]' \
    runner/{commands,cli,convert,export,gc,import,launch,relay,stop,top,view/*}/*.c | grep -v '^runner/cli/report.c:' | grep -v 'adddup2')
[ -z "$hits" ] || complain "commands print through runner/cli/report.h:"$'\n'"$hits"
hits=$(grep -nE 'innerHTML|outerHTML|insertAdjacentHTML|document\.write' web/page/*.js)
[ -z "$hits" ] || complain "the page makes text by textContent alone:"$'\n'"$hits"

grep -q -- '-include;[^;>]*base/banned.h' CMakeLists.txt || complain "CMakeLists.txt does not force base/banned.h into C files"
for file in $(git ls-files '*.c' '*.h' '*.cc' '*.cu' '*.js'); do
    size=$(stat -c %s "$file")
    [ "$size" -le 25600 ] || complain "$file has $size bytes: look for the second noun in it"
done
[ $failed -eq 0 ] && echo "layers hold"
exit $failed
