#!/usr/bin/env bash
# Names, paths and values full of characters that are special to a shell arrive unchanged, on hosts whose own folders
# have such names too, and nothing in them is executed.
. "$(dirname "$0")/lib.sh"
hosts 2 apart
cd "$net/launch" || exit 1
lines=$'new\nline'
nasty="-rf it's \"\$(touch pwned)\" \`touch pwned\` $lines ;touch pwned; &|<>~#%!{a,b}"
export XDG_STATE_HOME="$net/launch/state/$nasty*?\\["
mkdir -p "$XDG_STATE_HOME" "$net/launch/$nasty"
mv corpus.txt "./$nasty/$nasty.txt"

# The hosts' own folders (sshd reads \" inside quotes, and no newline).
theirs="/tmp/dtrun-words.$$ -x it's \\\"\$(touch pwned)\\\" \`touch pwned\`;*"
for host in host1 host2; do
    keys="environment=\"XDG_CACHE_HOME=$theirs/cache $host\",environment=\"XDG_STATE_HOME=$theirs/state $host\""
    printf '%s %s\n' "$keys" "$(cat "$net/id.pub")" >"$net/$host/authorized_keys"
    ssh -O exit "$host" 2>/dev/null
done
drop_masters
theirs=${theirs//\\/}

recipe </dev/null
python3 - "$nasty" "$net/launch/r.yaml" <<'END'
import json, sys
name, path = sys.argv[1:]
text = open(path).read().replace("{train: corpus.txt, tokens: char}", json.dumps({"train": f"{name}.txt", "tokens": "char"}))
open(path, "w").write(text)
END
mv r.yaml "./$nasty/$nasty.yaml"
launch_nasty() { "$dtrun" launch --wait "$net/launch/$nasty/$nasty.yaml" "$@" >"$net/out" 2>&1; }
launch_nasty --set name=words || fail "launch: $(cat "$net/out")"
id=$(value words "o['run']")
[ -d "$XDG_STATE_HOME/dtrun/runs/$id" ] || fail "the run is not below '$XDG_STATE_HOME'"
[ -e "$XDG_STATE_HOME/dtrun/runs/$id/checkpoints/step-00000040/complete" ] || fail "its checkpoint is not here"
place=$XDG_STATE_HOME/dtrun/runs/$id/attempt-1/node-0/place.json
is "the host's own folder" "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["folder"])' "$place")" \
    "$theirs/state host1/dtrun/nodes/$id/attempt-1/node-0"
is "what is left in it" "$(ssh host1 'ls "$XDG_STATE_HOME/dtrun/nodes"')" ""
"$dtrun" resume words --wait --set schedule.steps=45 >"$net/out" 2>&1 || fail "resume: $(cat "$net/out")"

# A value that cannot be a node name is refused before ssh gets it.
for node in '-oProxyCommand=touch pwned' '$(touch pwned)' 'a;touch pwned' '`touch pwned`' "a'b" $'a\nb' 'me@-oX'; do
    got=0
    launch_nasty --set "nodes=[$(python3 -c 'import json, sys; print(json.dumps(sys.argv[1]))' "$node")]" || got=$?
    [ $got -eq 2 ] || fail "node '$node': code $got: $(cat "$net/out")"
done
launch_nasty --set name=words --set 'network.interface="$(touch pwned)"' && fail "an interface of that name is found"
grep -qF "has no address on '\$(touch pwned)'" "$net/out" || fail "interface: $(cat "$net/out")"

found=$(find "$net/launch" -name pwned; for host in host1 host2; do ssh "$host" 'find ~ /tmp -xdev -name pwned 2>/dev/null'; done)
is "what was run" "$found" ""
on host1 rm -rf "$theirs"
on host2 rm -rf "$theirs"
