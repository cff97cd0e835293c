# Completion of dtrun for fish. Gets the candidates from `dtrun complete`.
#   dtrun completion fish | source
function __dtrun_complete
    set -l words (commandline -opc)
    set -l program $words[1]
    set -e words[1]
    set -l lines ($program complete -- $words (commandline -ct) 2>/dev/null)
    if test "$lines[1]" = :files
        __fish_complete_suffix .yaml
        __fish_complete_suffix .yml
    else
        printf '%s\n' $lines
    end
end
complete -c dtrun -f -a '(__dtrun_complete)'
