# Shared code of the fault tests. Each has its own state folder; a process belongs to a test if its environment names
# this folder. No process is left when the test ends, however it ends.
set -euo pipefail

XDG_STATE_HOME=$(mktemp -d "${TMPDIR:-/tmp}/dtrun-fault.XXXXXX")
export DTRUN_KEEP_ENV="FAKE_*,FAULT_*" # the settings of the fake engine stay with its run
export XDG_STATE_HOME DTRUN_ENGINE=$DTRUN_BIN/fake_engine DTRUN_AGENT=$DTRUN_BIN/dtrun-agent
driver=$DTRUN_BIN/fault_driver
dtrun=$DTRUN_BIN/dtrun
runs=$XDG_STATE_HOME/dtrun/runs

# pids of this test's living processes whose command line matches the pattern (default: all)
processes() { # [pattern]
    local file pid stat
    for file in $(grep -lzsxF "XDG_STATE_HOME=$XDG_STATE_HOME" /proc/[0-9]*/environ); do
        pid=${file//[!0-9]/}
        read -r stat 2>/dev/null <"/proc/$pid/stat" || continue
        [[ ${stat##*) } != Z* ]] || continue
        [ $# -eq 0 ] || tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -q -- "$1" || continue
        echo "$pid"
    done
}

clean() {
    local status=$? pid
    for pid in $(processes); do kill -9 "$pid" 2>/dev/null || true; done
    if grep -rlsE 'Sanitizer|runtime error|this is a bug' --include='*.log' "$runs"; then
        status=1 # a detached process printed an error
    fi
    if [ $status -ne 0 ] && [ $status -ne 77 ]; then
        tail -n 20 "$runs"/*/supervisor.log "$runs"/*/attempt-*/node-*/agent.log 2>/dev/null || true
    fi
    if declare -F clean_more >/dev/null; then clean_more; fi # cleanup that a test has to do
    rm -rf "$XDG_STATE_HOME" 2>/dev/null || { # a process that was just killed may still have created a file
        sleep 1
        rm -rf "$XDG_STATE_HOME"
    }
    exit $status
}
trap clean EXIT

# Records a figure: the number of the test in ten.sh, what was done, the limit ("-": none), what was measured. A figure
# over its limit does not fail the test: the machine may have been busy.
figure() { # number what limit seen
    printf '%s: %s (limit %s)\n' "$2" "$4" "$3"
    [ -z "${FAULT_FIGURES:-}" ] || printf '%s\t%s\t%s\t%s\n' "$@" >>"$FAULT_FIGURES"
}
scaled() { # seconds under the real limits of runner/times.h: returns them multiplied by DTRUN_TEST_TIMES
    awk -v seconds="$1" -v factor="${DTRUN_TEST_TIMES:-1}" 'BEGIN { print seconds * factor }'
}
seconds_since() { # a result of `date +%s%N`
    awk -v ns=$(($(date +%s%N) - $1)) 'BEGIN { printf "%.1f s", ns / 1e9 }'
}

fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }
is() { # what got wanted
    [ "$2" = "$3" ] || fail "$1 is '$2', expected '$3'"
}
like() { # what got pattern
    [[ "$2" == $3 ]] || fail "$1 is '$2', expected something like '$3'"
}
get() { "$driver" get "$1" "$2"; }

# waits until the command succeeds; the limit is in seconds
await() { # limit command... (in seconds of an idle machine with two cores; a busy one gets three times that)
    local limit=$((3 * $1)) start
    shift
    start=$(date +%s%N)
    until "$@"; do
        [ $(($(date +%s%N) - start)) -lt $((limit * 1000000000)) ] || fail "not within $limit s: $*"
        sleep 0.05
    done
}
state_is() { [ "$(get "$1" state)" = "$2" ]; }
has_ended() { case $(get "$1" state) in finished | failed | stopped) true ;; *) false ;; esac; }
has_step() { [ "$(get "$1" step)" -ge "$2" ]; }
no_supervisor() { [ -z "$(processes "supervise $1")" ]; }
nothing_left() { [ -z "$(processes)" ]; }
is_dead() { # pid: true once everything that it held is released
    local stat threads
    read -r stat 2>/dev/null <"/proc/$1/stat" || return 0
    threads=("/proc/$1/task"/*) # the first may be a zombie while another one, in a sync, still holds everything open
    [[ ${stat##*) } == Z* ]] && [ ${#threads[@]} -le 1 ]
}

end_is() { # run state exit_code
    await 30 has_ended "$1"
    is "state ($(get "$1" reason))" "$(get "$1" state)" "$2"
    is "exit code" "$(get "$1" exit_code)" "$3"
}

# --- tests of the real engine, through the commands

real_engine() { # and a text for training, corpus.txt in the state folder
    unset DTRUN_ENGINE
    export OMP_NUM_THREADS=1
    seq 1 4000 | sed 's/.*/line & of a text that can be learned/' >"$XDG_STATE_HOME/corpus.txt"
}
value() { # run expression over the object o
    "$dtrun" status "$1" --json | python3 -c "import json, sys; o = json.load(sys.stdin); print($2)"
}
past() { [ "$(value "$1" "o['step']")" -ge "$2" ]; }
in_attempt() { [ "$(value "$1" "o['attempt']")" -ge "$2" ]; }
is_over() { [[ $(value "$1" "o['state']") =~ ^(finished|failed|stopped)$ ]]; }
losses() { "$dtrun" metrics "$1" --name loss | tail -n +2 | cut -d, -f2,4; }
