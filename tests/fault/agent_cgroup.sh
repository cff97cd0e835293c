#!/usr/bin/env bash
# A grandchild that called setsid and emptied its environment, and whose agent is then killed, is neither a descendant
# nor marked. The cgroup still holds it. Skipped where no cgroup can be made.
. "$(dirname "$0")/lib.sh"
cgroups() { find /sys/fs/cgroup -maxdepth 12 -type d -name "dtrun-$1-*" 2>/dev/null; }
sleepers() { # processes in the run's cgroup: their environment does not name this test
    local folder pid
    for folder in $(cgroups "$1"); do
        while read -r pid; do
            tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -q 'sleep 600' && echo "$pid"
        done <"$folder/cgroup.procs"
    done
    true
}

FAKE_MODE=grandchild FAKE_ESCAPE=all FAKE_STEPS=1000 FAKE_STEP_MS=50 "$driver" launch cg$$ 2
await 20 has_step cg$$ 3
journal=("$runs/cg$$"/attempt-1/node-0/journal.jsonl)
if grep -q 'no cgroup for the ranks' "${journal[0]}"; then
    "$driver" kill cg$$
    end_is cg$$ stopped 4
    echo "skipped: $(grep -o 'no cgroup for the ranks ([^)]*)' "${journal[0]}")"
    exit 77
fi
[ "$(cgroups cg$$ | wc -l)" -eq 1 ] || fail "there is no cgroup of the run, or several"
have_escaped() { [ "$(sleepers cg$$ | wc -l)" -eq 2 ]; }
await 20 have_escaped
agent=$(processes 'dtrun-agent serve')
[ "$(wc -w <<<"$agent")" -eq 1 ] || fail "there is not one agent: $agent"
kill -9 "$agent"
end_is cg$$ failed 3
is "the cgroup after the run" "$(cgroups cg$$)" ""
