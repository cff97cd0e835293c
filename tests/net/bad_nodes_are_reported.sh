#!/usr/bin/env bash
# Every fault of a node: doctor reports each with a remedy, for all nodes at once, and a launch ends with it before
# anything starts.
. "$(dirname "$0")/lib.sh"
hosts 3 apart
doctor() { "$dtrun" doctor "$net/launch/r.yaml" "$@" >"$net/out" 2>&1 </dev/null; }
told() { # code text options...: runs doctor
    local code=$1 text=$2 got=0
    shift 2
    doctor "$@" || got=$?
    [ $got -eq "$code" ] || fail "doctor $*: code $got, wanted $code: $(cat "$net/out")"
    grep -qF -- "$text" "$net/out" || fail "doctor $*: does not say '$text': $(cat "$net/out")"
}
refused() { # code text options...: runs doctor and launch
    told 3 "$2" "${@:3}"
    wants "$1" "$2" "$dtrun" launch --wait "$net/launch/r.yaml" "${@:3}"
}
port() { sed -n "/^Host $1\$/,/^Host /s/ *Port //p" "$net/ssh_config" | head -n 1; }

# --- nodes that cannot be reached, all in one recipe

begin_closer
cat >>"$net/ssh_config" <<END
Host stranger
    HostName $(address host1)
    Port $(port host1)
    HostKeyAlias never-seen
Host closes
    HostName 127.0.0.1
    Port $closed
Host deaf
    HostName 127.0.0.1
    Port 1
Host silent
    HostName 192.0.2.77
END
mv "$net/host2/authorized_keys" "$net/host2/nobody"
mv "$net/host3/authorized_keys" "$net/host3/nobody"
sed -i 's/^PasswordAuthentication no/PasswordAuthentication yes/' "$net/host3/sshd_config"
kill -HUP "$(cat "$net/host3/sshd.pid")"
listens_again() { [ "$(grep -c '^Server listening' "$net/host3/sshd.log")" -ge 2 ]; }
await 20 listens_again
drop_masters
recipe <<'END'
nodes: [host1, host2, host3, stranger, closes, deaf, silent, no-such-host.invalid]
END
start=$(date +%s%N)
told 3 "'host2': it refuses your ssh keys"
echo "doctor, eight nodes, seven of them bad: $((($(date +%s%N) - start) / 1000000)) ms"
cp "$net/out" "$net/table"
for text in "ssh-copy-id host2" "'host3': it refuses your ssh keys" "dtrun never asks for a password" "(publickey,password)" \
    "'stranger': its host key is not known here" "'ssh stranger'" "'closes': its sshd closes the connection" \
    "'deaf': nothing listens on its ssh port" "'no-such-host.invalid': its name cannot be resolved" \
    "node 'silent': "; do
    grep -qF -- "$text" "$net/table" || fail "doctor does not say '$text': $(cat "$net/table")"
done
is "nodes that are good" "$(awk '$2 == "good"' "$net/table" | wc -l)" 1
wants 3 "and 6 more: 'dtrun doctor" "$dtrun" launch "$net/launch/r.yaml"
kill $closer_pid
mv "$net/host2/nobody" "$net/host2/authorized_keys"
mv "$net/host3/nobody" "$net/host3/authorized_keys"

# --- faults of a node that is reached

recipe <<'END'
nodes: [host1, host2]
END
told 0 "good"
cp "$DTRUN_BIN/dtrun-engine" "$net/launch/engine"
printf 'GLIBC_2.99' >>"$net/launch/engine"
DTRUN_ENGINE=$net/launch/engine refused 3 "but this dtrun needs 2.99"
refused 2 "MB of memory are free: lower" --set batch.sequences=60000 --set batch.tokens=2048 --set data.split=0

# An agent whose bytes are damaged, or that is for another machine, is sent again.
on host1 sh -c 'cd ~/.cache/dtrun/agents && for agent in *; do printf "\367" | dd of=$agent bs=1 seek=18 conv=notrunc 2>/dev/null; done'
told 0 "good"
on host1 sh -c 'cd ~/.cache/dtrun/agents && for agent in *; do cp /bin/true small && truncate -s $(stat -c %s $agent) small && mv small $agent; done'
told 0 "good"
launch after-damage --set schedule.warmup_steps=0 --set schedule.steps=2

# A login shell that prints something is fine; other output is noise.
case $(getent passwd "$(id -u)") in
*bash)
    on host1 sh -c 'printf "%s\n" "echo Welcome; echo dtrun; echo noise >&2" >~/.bashrc'
    told 0 "good"
    launch banner --set schedule.warmup_steps=0 --set schedule.steps=2
    on host1 rm -f /root/.bashrc ;;
esac

# This machine's clock is an hour behind theirs (the agents there are not preloaded).
if command -v faketime >/dev/null; then
    behind() { faketime -f -1h "$dtrun" "$@"; }
    behind doctor "$net/launch/r.yaml" >"$net/out" 2>&1 || fail "a clock an hour off is fatal: $(cat "$net/out")"
    grep -q "its clock is 1h.* ahead" "$net/out" || fail "a clock an hour off is not told: $(cat "$net/out")"
    behind launch --wait "$net/launch/r.yaml" --set name=hour --set schedule.warmup_steps=0 --set schedule.steps=3 \
        --set failure.hang_seconds=5 >"$net/out" 2>&1 || fail "a clock an hour off: $(cat "$net/out")"
    is "minutes between the run's first point and its beginning" "$("$dtrun" status hour --json >"$net/status"
        "$dtrun" metrics hour --format jsonl --name loss | head -n 1 | python3 -c '
import datetime, json, sys
when = lambda text: datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
point, run = json.load(sys.stdin), json.load(open(sys.argv[1]))
print(int((when(point["time"]) - when(run["created"])).total_seconds() / 60))' "$net/status")" 0
else
    echo "no faketime here: clocks are not tried"
fi

empty() { on host1 sh -c 'umount -l /root; mount -t tmpfs -o "$1",mode=0700 tmpfs /root' sh "$1"; }
empty size=1m
refused 3 "is there free space"
empty size=20m
refused 3 "the engine takes"
empty noexec
refused 3 "noexec"
empty ro
refused 3 "is ~/.cache writable"
empty size=512m
printf '#!/bin/sh\n[ "$1" = -s ] && echo Linux || echo riscv64\n' >"$net/uname"
chmod 755 "$net/uname"
on host1 mount --bind "$net/uname" /usr/bin/uname
refused 3 "is a riscv64 machine"
on host1 umount /usr/bin/uname
launch well-again --set schedule.warmup_steps=0 --set schedule.steps=2
# The engine exists, and there is hardly any free space next to it.
on host1 sh -c 'mount -o remount,size=$(($(df -k --output=used /root | tail -n 1) + 8192))k /root'
refused 3 "checkpoints and logs take"
[ "$("$dtrun" list --json | python3 -c 'import json, sys; print(sum(r["state"] != "finished" for r in json.load(sys.stdin)["runs"]))')" = 0 ] ||
    fail "a launch that was refused leaves a run: $("$dtrun" list)"
