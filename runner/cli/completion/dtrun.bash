# Completion of dtrun for bash. Gets the candidates from `dtrun complete`.
#   source <(dtrun completion bash)
_dtrun() {
    local line=${COMP_LINE:0:COMP_POINT} cur candidate cut out
    local -a words=()
    COMPREPLY=()
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    [ ${#words[@]} -gt 1 ] || return 0
    cur=${words[-1]}
    out=$("${words[0]/#\~/$HOME}" complete -- "${words[@]:1}" 2>/dev/null) || return 0
    # What readline calls the word begins after the last '=' or ':', where these break words.
    cut=""
    [[ $COMP_WORDBREAKS != *=* || $cur != *=* ]] || cut=${cur%"${cur##*=}"}
    [[ $COMP_WORDBREAKS != *:* || $cur != *:* ]] || cut=${cur%"${cur##*:}"}
    while IFS=$'\t' read -r candidate _; do
        if [ "$candidate" = :files ]; then
            cur=${cur#"$cut"}
            compopt -o filenames 2>/dev/null
            while IFS= read -r candidate; do COMPREPLY+=("$candidate"); done < <(
                compgen -f -X '!*.yaml' -- "$cur"
                compgen -f -X '!*.yml' -- "$cur"
                compgen -d -- "$cur")
        elif [ -n "$candidate" ]; then
            COMPREPLY+=("${candidate#"$cut"}")
        fi
    done <<<"$out"
    [[ ${#COMPREPLY[@]} -ne 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace 2>/dev/null
}
complete -F _dtrun dtrun
