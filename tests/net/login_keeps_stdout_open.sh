#!/usr/bin/env bash
# A program that ~/.bashrc starts in the background keeps stdout and stderr of every login open. A command there has
# ended when it reports its end: nothing waits until its output is closed.
. "$(dirname "$0")/lib.sh"
case $(getent passwd "$(id -u)") in
*bash) ;;
*)
    echo "skipped: the login shell is not bash, which reads .bashrc under sshd"
    exit 77 ;;
esac
hosts 2 apart
for host in host1 host2; do on "$host" sh -c 'echo "sleep 3600 &" >/root/.bashrc'; done
recipe <<'END'
nodes: [host1, host2]
schedule: {steps: 30}
checkpoint: {every: 15}
evaluate: 0
END
wants 0 good "$dtrun" doctor "$net/launch/r.yaml"
launch held
is "attempts" "$(value held 'o["attempt"]')" 1
[ "$(find "$net"/launch/state/dtrun/runs/*/checkpoints -name complete | wc -l)" -ge 1 ] || fail "no checkpoint is here"
wants 2 "MB of memory are free" "$dtrun" launch --wait "$net/launch/r.yaml" --set batch.sequences=60000 \
    --set batch.tokens=2048 --set data.split=0

# Output that looks like the mark of the end, of any length.
printf 'a\036dtrun-ends-here-0123456789abcdef 0\nb\036' >"$net/launch/marks"
wants 0 "" bash -c '"$1" host1 /bin/cat <"$2" >"$3"' bash "$DTRUN_BIN/dtrun-reach" "$net/launch/marks" "$net/marks"
cmp "$net/launch/marks" "$net/marks" || fail "bytes that look like the mark are changed"
wants 7 "no such" "$DTRUN_BIN/dtrun-reach" host1 /bin/sh -c 'echo no such >&2; exit 7'

# Reaching a silent node proves that a command ran there.
"$DTRUN_BIN/dtrun-reach" --probe host1 /bin/true
is "exit code of a probe" $? 0

# A run whose supervisor was killed is stopped through its nodes.
wants 0 "" "$dtrun" launch --detach "$net/launch/r.yaml" --set name=long --set schedule.steps=10000000 --set checkpoint.every=0
trains() { [ "$(value long 'o["step"] or 0')" -gt 0 ]; }
await 60 trains
wants 0 "" "$dtrun" stop --now long
