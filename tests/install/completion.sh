#!/usr/bin/env bash
# Shell completion offers what the help lists: in bash, in zsh and fish if installed, and asked directly.
. "$(dirname "$0")/../cli/lib.sh"
export LC_ALL=C PATH=$(dirname "$dtrun"):$PATH
make_tiny
expect 0 launch --wait "$work/tiny.yaml" --set name=shining
id=$("$dtrun" list --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["runs"][0]["run"])')

offered() { "$dtrun" complete -- "$@" | cut -f 1; }
same() { # what got wanted
    subject="completion of $1"
    [ "$2" = "$3" ] || { diff <(echo "$2") <(echo "$3"); fail "it differs from the help"; }
}

# Commands and options, one by one, compared with the help texts.
expect 0 --help
commands=$(sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' "$work/out")
same commands "$(offered "")" "$commands"
for command in $commands; do
    expect 0 help "$command"
    same "the options of $command" "$(offered "$command" - | sort)" \
        "$(sed -nE 's/^  (-., |    )(--[a-z-]+).*/\2/p' "$work/out" | sort)"
done
same "a command that is still being typed" "$(offered stop)" stop
same "a run" "$(offered stop "" | sort)" "$(printf '%s\n' last shining "$id" | sort)"
same "a run by its name" "$(offered show shi)" shining
same "a second run" "$(offered stop last "")" ""
same "a state" "$(offered list --state st)" $'starting\nstopping\nstopped'
same "a state in one word" "$(offered list --state=stoppe)" --state=stopped
same "a recipe" "$(offered launch "")" :files
same "a field's name" "$(offered launch --set optimizer.beta)" $'optimizer.beta1=\noptimizer.beta2='
same "a field's value" "$(offered launch --set strategy.kind=)" $'strategy.kind=dp\nstrategy.kind=ddp\nstrategy.kind=fsdp'
same "every field" "$(offered launch --set "" | tr -d = | sort)" "$("$DTRUN_BIN/field_list" | python3 -c '
import json, sys
print(*sorted(field["path"] for field in json.load(sys.stdin)), sep="\n")')"
same "an option that was given" "$(offered stop --now --no)" --node
same "an option that may be given again" "$(offered launch --set a=b --se)" --set
same "a shell" "$(offered completion "")" $'bash\nzsh\nfish'
same "what is hidden" "$(offered supervise "")$(offered nonsense "")" ""
subject="completion where there was never a run"
XDG_STATE_HOME=$work/none "$dtrun" complete -- stop "" >"$work/out" 2>"$work/err" || fail "exit $?"
[ ! -e "$work/none" ] || fail "it made a folder"

# as readline calls bash's completion
in_bash() { # line
    "${BASH:-bash}" --norc --noprofile -c '
        source <(dtrun completion bash)
        COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9 COMP_KEY=9
        _dtrun
        printf "%s\n" "${COMPREPLY[@]}"' bash "$1"
}
cd "$work" || exit 1
mkdir -p folder
same "'dtrun st' in bash" "$(in_bash "dtrun st")" $'stop\nstatus\nstore'
same "'dtrun stop shi' in bash" "$(in_bash "dtrun stop shi")" shining
same "'dtrun store ' in bash" "$(in_bash "dtrun store ")" $'check\nrepair\nbackup'
same "'dtrun launch t' in bash" "$(in_bash "dtrun launch t")" tiny.yaml
same "'dtrun launch fo' in bash" "$(in_bash "dtrun launch fo")" folder
same "a value behind '=' in bash" "$(in_bash "dtrun launch tiny.yaml --set strategy.kind=f")" fsdp
same "an option in bash" "$(in_bash "dtrun list --li")" --limit

if command -v fish >/dev/null; then
    in_fish() {
        HOME=$work fish --no-config -c 'dtrun completion fish | source; complete -C "$argv[1]"' "$1" 2>/dev/null | cut -f 1
    }
    same "'dtrun st' in fish" "$(in_fish "dtrun st" | sort)" $'status\nstop\nstore'
    same "'dtrun stop shi' in fish" "$(in_fish "dtrun stop shi")" shining
    same "'dtrun launch ti' in fish" "$(in_fish "dtrun launch ti")" tiny.yaml
    same "an option in fish" "$(in_fish "dtrun list --li")" --limit
else
    echo "without fish: not tried there"
fi
if command -v zsh >/dev/null; then
    # compadd works only inside the line editor: what would be added is printed
    in_zsh() { # words..., the last being typed
        zsh -f -c '
            compdef() { :; }
            source <(dtrun completion zsh)
            compadd() { local name=${@[-1]}; print -l -- "${(@P)name}"; }
            _files() { print :files; }
            words=("$@") CURRENT=$# PREFIX=${@[-1]}
            _dtrun' zsh "$@"
    }
    same "'dtrun st' in zsh" "$(in_zsh dtrun st)" $'stop\nstatus\nstore'
    same "'dtrun stop shi' in zsh" "$(in_zsh dtrun stop shi)" shining
    same "'dtrun launch ' in zsh" "$(in_zsh dtrun launch "")" :files
    same "a value behind '=' in zsh" "$(in_zsh dtrun launch --set strategy.kind=f)" strategy.kind=fsdp
    same "a field in zsh" "$(in_zsh dtrun launch --set optimizer.beta)" $'optimizer.beta1=\noptimizer.beta2='
else
    echo "without zsh: not tried there"
fi
