#compdef dtrun
# Completion of dtrun for zsh. Gets the candidates from `dtrun complete`.
#   source <(dtrun completion zsh)
_dtrun() {
    local line value
    local -a lines values shown more more_shown
    lines=("${(@f)$(${(e)words[1]/#\~/$HOME} complete -- "${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
    for line in $lines; do
        value=${line%%$'\t'*}
        if [[ $value == :files ]]; then
            _files -g '*.(yaml|yml)(-.)'
        elif [[ $value == *= ]]; then
            more+=("$value")
            more_shown+=("${line/$'\t'/  }")
        elif [[ -n $value ]]; then
            values+=("$value")
            shown+=("${line/$'\t'/  }")
        fi
    done
    (( ! ${#values} )) || compadd -l -d shown -a values
    (( ! ${#more} )) || compadd -l -S '' -d more_shown -a more
}
if [ "$funcstack[1]" = _dtrun ]; then _dtrun "$@"; else compdef _dtrun dtrun; fi
