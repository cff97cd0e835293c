#!/usr/bin/env bash
# Files that a command changed or made in its folder on a host belong to it: a restart, a resume and the end of the run
# neither replace nor remove them. If both sides changed a file, the resume is refused with its name.
. "$(dirname "$0")/lib.sh"
hosts 2 apart
work=$net/launch/program
mkdir -p "$work/sub" "$work/gone" "$work/becomes"
on host1 mkdir -p /root/elsewhere
for name in same changed removed untouched sub/changed gone/here becomes/inner; do echo "sent $name" >"$work/$name"; done
ln -s untouched "$work/link"
cat >"$work/run.sh" <<'END'
set -e
[ "${DTRUN_ATTEMPT:-1}" -eq 1 ] || exec sh later.sh
echo "by the run" >changed
echo "by the run" >sub/changed
echo "by the run" >made
rm -r becomes && ln -s /root/elsewhere becomes && echo precious >becomes/inner
rm link && ln -s same link
mkdir -p __pycache__ && echo 1 >__pycache__/x.cpython-311.pyc && echo 2 >__pycache__/model.pt
exit 7
END
cat >"$work/later.sh" <<'END'
for file in changed sub/changed made becomes/inner __pycache__/model.pt same untouched removed; do
    echo "has $file: $(cat "$file" 2>&1)"
done
echo "link $(readlink link)"
END
cat >"$net/launch/r.yaml" <<END
nodes: host1
command: sh run.sh
workdir: program
processes: 1
END
resumed() { wants "$1" "$2" "$dtrun" resume "$3" --wait "${@:4}"; }
begun() { wants 1 "exited with code 7" "$dtrun" launch --wait "$net/launch/r.yaml" --set "name=$1" "${@:2}"; }
there() { on host1 sh -c "cd /root/.local/state/dtrun/nodes/$(value "$1" "o['run']")/workdir-*[0-9] && $2"; }
shows() { # run text
    "$dtrun" logs "$1" >"$net/out"
    grep -qF -- "$2" "$net/out" || fail "'$1' does not show '$2': $(cat "$net/out")"
}
kept() { for file in changed sub/changed made; do shows "$1" "has $file: by the run"; done; }

# A restart and a resume continue with the files of the run; a file that only this machine changed is sent.
wants 0 "" "$dtrun" launch --wait "$net/launch/r.yaml" --set name=again --set failure.max_restarts=1
kept again
begun first
is "what the end leaves" "$(there first 'find . ! -type d | sort | tr "\n" " "')" \
    "./__pycache__/model.pt ./becomes ./changed ./link ./made ./sub/changed "
echo "sent again" >"$work/untouched"
rm "$work/removed"
resumed 0 "" first
kept first
for text in 'has becomes/inner: precious' 'has __pycache__/model.pt: 2' 'has same: sent same' 'has untouched: sent again' \
    'link same' 'has removed: cat:'; do shows first "$text"; done
is "what is elsewhere" "$(on host1 cat /root/elsewhere/inner)" precious

# Both sides changed a file: the resume is refused before anything starts, and nothing changes.
begun both
echo "by hand" >"$work/changed"
echo "by hand" >"$work/made"
resumed 2 "'changed', 'made'" both
is "the attempts" "$(value both "o['attempt']")" 1
is "the files" "$(there both 'cat changed made' | sort -u)" "by the run"
printf '/changed\n/made\n' >"$work/.dtrunignore"
resumed 0 "" both
kept both
rm "$work/.dtrunignore" "$work/made"
echo "sent changed" >"$work/changed"

# The same content on both sides is not a conflict; a file in place of a folder, and the reverse, are conflicts.
begun equal
echo "by the run" >"$work/changed"
resumed 0 "" equal
rm "$work/changed"
mkdir "$work/changed"
echo 1 >"$work/changed/file"
begun turned --set 'command=sh -c "rm -r changed sub; echo by the run >changed; echo mine >sub; exit 7"'
echo 2 >"$work/changed/file"
echo 2 >"$work/sub/changed"
resumed 2 "'changed/file', 'sub/changed'" turned
is "the files" "$(there turned 'cat changed sub' | tr '\n' ' ')" "by the run mine "

# A disk that is too small names the ended runs that have files there. Removing a run removes them, unless its host does
# not answer.
rm -r "$work/changed" "$work/sub"
fill=$(($(on host1 df --output=avail -B1 /root | tail -n 1) - 30000000))
on host1 sh -c "head -c $fill /dev/zero >/root/fill"
head -c 60000000 /dev/zero | tr '\0' x >"$work/large"
first=$(value first "o['run']") both=$(value both "o['run']")
wants 3 "ended runs have files in '/root/.local/state/dtrun/nodes': " "$dtrun" launch --wait "$net/launch/r.yaml" \
    --set name=large
grep -q "$first ([0-9.]* MB)" "$net/out" || fail "the first run is not named: $(cat "$net/out")"
on host1 rm /root/fill
wants 0 "removed run '$first'" "$dtrun" rm first --yes
is "what is left of it" "$(on host1 sh -c "ls -d /root/.local/state/dtrun/nodes/$first* 2>/dev/null")" ""
drop_masters
"$net_sh" cut "$net" host1
wants 1 "files of run '$both' are left on 'host1'" timeout 100 "$dtrun" rm both --yes
wants 0 "files of run '$both' are left on 'host1'" timeout 100 "$dtrun" rm both --yes --force
"$net_sh" heal "$net" host1
is "what is left of it" "$(on host1 ls /root/.local/state/dtrun/nodes | grep -c "$both")" 1
