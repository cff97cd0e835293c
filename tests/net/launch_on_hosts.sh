#!/usr/bin/env bash
# A recipe with node names, launched on hosts with nothing installed: it reaches exactly the losses of the same recipe
# on this machine only, with ddp and with fsdp. A second launch copies nothing.
. "$(dirname "$0")/lib.sh"
hosts 2 apart
on_one() { # name options...
    launch "$1" --set 'nodes=[localhost, localhost#2]' "${@:2}"
}
first_step_ms() { # run: seconds from `created` to the journal's first metrics
    "$dtrun" metrics "$1" --format jsonl --name loss | head -n 1 >"$net/first"
    "$dtrun" status "$1" --json >"$net/status"
    python3 - "$net/first" "$net/status" <<'END'
import datetime, json, sys
when = lambda text: datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
point, run = (json.load(open(name)) for name in sys.argv[1:])
print(round((when(point["time"]) - when(run["created"])).total_seconds() * 1000))
END
}

recipe </dev/null
is "what is on a host before" "$(ssh host1 'ls -A ~ | grep -v "^\.bash\|^\.profile\|^\.ssh"')" ""
launch ddp-hosts
echo "launch to first step, nothing on the hosts: $(first_step_ms ddp-hosts) ms"
is nodes "$(value ddp-hosts "[n['host'] for n in o['nodes']]")" "['host1', 'host2']"
on_one ddp-here
same_curve ddp-hosts ddp-here 82
launch fsdp-hosts --set strategy=fsdp
echo "launch to first step, all on the hosts: $(first_step_ms fsdp-hosts) ms"
on_one fsdp-here --set strategy=fsdp
same_curve fsdp-hosts fsdp-here 82
log=$(cat "$net"/launch/state/dtrun/runs/"$(value fsdp-hosts "o['run']")"/supervisor.log)
! grep -q copying <<<"$log" || fail "a second launch copies: $log"

# The files there can be read only by their owner.
open=$(ssh host1 'find ~/.local/state/dtrun ~/.cache/dtrun -perm /077 ! -path "*/step-*"')
is "what others may enter on a host" "$open" ""
open=$(find "$net/launch/state/dtrun/runs" -maxdepth 2 -perm /077 ! -path '*/checkpoints')
is "what others may enter here" "$open" ""
