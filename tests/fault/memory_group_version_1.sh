#!/usr/bin/env bash
# The kernel kills a rank at the limit of a version 1 memory group: the count of this group shows it, as that of version
# 2 does. Skipped where no such group can be made.
. "$(dirname "$0")/lib.sh"
tree=$(awk '$0 ~ / - cgroup / && $NF ~ /(^|,)memory(,|$)/ {print $5; exit}' /proc/self/mountinfo)
group=$tree/dtrun-test-$$
if [ -z "$tree" ] || ! mkdir "$group" 2>/dev/null; then
    echo "skipped: no memory group of version 1 can be made here"
    exit 77
fi
clean_more() {
    local pid
    while read -r pid; do echo "$pid" >"$tree/cgroup.procs" 2>/dev/null || true; done <"$group/cgroup.procs"
    rmdir "$group" || true
}
echo $$ >"$group/cgroup.procs"
FAKE_STEPS=100000 FAKE_STEP_MS=50 "$driver" launch oom$$ 1
await 20 has_step oom$$ 3
rank=$(processes fake_engine)
echo 1000 >"/proc/$rank/oom_score_adj"
echo $((128 << 20)) >"$group/memory.limit_in_bytes"
# An endless line: first the kernel kills the rank, whose oom_score_adj is 1000, then the program that keeps the line.
head -c 300M /dev/zero | tail -n 1 >/dev/null || true
end_is oom$$ failed 1
journal=("$runs/oom$$"/attempt-1/node-0/journal.jsonl)
grep -q 'the count oom_kill of the memory cgroup went from [0-9]* to [0-9]* (out of memory)' "${journal[0]}" ||
    fail "the journal does not say that memory was short: $(grep '"exited"' "${journal[0]}")"
