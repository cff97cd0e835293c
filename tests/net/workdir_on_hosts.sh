#!/usr/bin/env bash
# The folder of a command on two hosts that do not have it: which files are sent, ignored, and sent again after a
# change; which content a restart and a resume use; what a launch refuses; and what remains on the hosts.
. "$(dirname "$0")/lib.sh"
hosts 2 apart
work=$net/launch/program
mkdir -p "$work/pkg/empty" "$work/data" "$work/.git" "$work/blank name"
echo secret >"$work/.git/config"
printf 'data/\n*.log\n!keep.log\n' >"$work/.gitignore"
printf '/scratch\n' >"$work/.dtrunignore"
head -c 3000000 /dev/urandom >"$work/data/big.bin"
echo 1 >"$work/x.log"
echo 2 >"$work/keep.log"
echo 3 >"$work/scratch"
echo 4 >"$work/blank name/new
line"
ln -s ../keep.log "$work/pkg/link"
ln -s /nowhere/at-all "$work/out-link"
mkfifo "$work/pipe"
printf '#!/bin/sh\necho "tool of version $1"\n' >"$work/tool.sh"
chmod 755 "$work/tool.sh"
echo "print('module 1')" >"$work/pkg/module.py"
cat >"$work/show.sh" <<'END'
set -e
echo "rank $RANK on $(hostname) in $(pwd)"
find . ! -type d | sort
[ -d pkg/empty ] && echo "the empty folder is there"
./tool.sh 7
python3 pkg/module.py
[ "$DTRUN_ATTEMPT" -eq 1 ] || ls out || true
mkdir -p out
echo "of rank $RANK" >"out/rank-$RANK-$DTRUN_ATTEMPT"
[ "${1:-}" != fail ] || [ "$DTRUN_ATTEMPT" -gt 1 ] || { touch "$2"; while [ ! -e "$3" ]; do sleep 0.1; done; exit 3; }
END
cat >"$net/launch/r.yaml" <<END
nodes: "host[1-2]"
command: sh show.sh
workdir: program
processes: 1
END
launched() { # code text name options...
    wants "$1" "$2" "$dtrun" launch --wait "$net/launch/r.yaml" --set "name=$3" "${@:4}"
}
output() { "$dtrun" logs "$1" >"$net/out"; }
says() { grep -qF -- "$1" "$net/out" || fail "no '$1' in: $(cat "$net/out")"; }
says_not() { ! grep -qF -- "$1" "$net/out" || fail "'$1' is in: $(cat "$net/out")"; }

launched 0 "workdir: 7 files" first
says "workdir: not sent by 'data/' of .gitignore: 1 file, 3.0 MB"
says "workdir: not sent by '/scratch' of .dtrunignore: 1 file"
grep -q "pipe" "$net/out" && grep -q "out-link -> /nowhere/at-all" "$net/out" || fail "no notes: $(cat "$net/out")"
output first
for text in 'rank 0 on host1' 'rank 1 on host2' './.gitignore' './keep.log' './pkg/link' './out-link' './blank name/new' \
    'the empty folder is there' 'tool of version 7' 'module 1'; do says "$text"; done
for text in big.bin ./x.log ./scratch ./.git/ ./pipe dtrun-probe; do says_not "$text"; done
# files that the command wrote stay there, files that were sent do not
kept=$(on host1 sh -c 'cd /root/.local/state/dtrun/nodes/*/workdir-*/ && find . -type f')
is "what is left on host1" "$kept" ./out/rank-0-1
wants 0 "'out/rank-0-1'; the line 'collect: [out/]' in the recipe brings them here" "$dtrun" show first
grep -qF "host2 keeps what the command wrote: 1 file" "$net/out" || fail "host2's file is not named: $(cat "$net/out")"
wants 0 "keeps files on other machines: host1 keeps what the command wrote: 1 file" "$dtrun" gc --dry-run --older 2099-01-01

# after a change of one file, only this file is sent
on host1 find /root/.cache/dtrun/files -type f | sort >"$net/before"
echo "print('module 2')" >"$work/pkg/module.py"
launched 0 "workdir: 7 files" second
on host1 find /root/.cache/dtrun/files -type f | sort >"$net/after"
is "contents that came" "$(comm -13 "$net/before" "$net/after" | wc -l)" 1
output second
says 'module 2'

# a restart has the content of the launch and the files that the command wrote; a resume has the current content of the
# folder
wants 0 "" "$dtrun" launch --detach "$net/launch/r.yaml" --set name=again --set failure.max_restarts=1 \
    --set "command=sh show.sh fail $net/reached $net/go"
rm -f "$net/reached" "$net/go"
await 20 test -e "$net/reached"
echo "print('module 3')" >"$work/pkg/module.py"
touch "$net/go"
wants 0 "" "$dtrun" wait again
output again
says 'module 2'
says_not 'module 3'
says 'rank-0-1'
launched 1 "exited with code 1" resumed --set "command=sh show.sh; exit 1" --set shell=true
echo "print('module 4')" >"$work/pkg/module.py"
wants 0 "workdir: 1 change since attempt 1: pkg/module.py" "$dtrun" resume resumed --wait \
    --set 'command=sh show.sh'
output resumed
says 'module 4'

# A run of many files takes over the folder of the run before, with a file that changed, one that the command changed
# and one that is not sent any more. What the command made stays with its run.
mkdir "$net/launch/many"
for i in $(seq 150); do echo "content $i" >"$net/launch/many/f$i"; done
cat >"$net/launch/many/run.sh" <<'END'
set -e
echo "sum $(cat f* | md5sum)"
echo "inode $(stat -c %i f5)"
[ "$1" = quiet ] || { echo "by the run" >f7; echo mine >made; }
END
many() { # name how
    launched 0 "" "$1" --set workdir="$net/launch/many" --set "command=sh run.sh $2" --set nodes=host1
    output "$1"
    inode=$(sed -n 's/.*inode //p' "$net/out")
    is "the files of '$1'" "$(sed -n 's/.*sum //p' "$net/out")" "$(cd "$net/launch/many" && cat f* | md5sum)"
}
many one quiet
first=$inode
echo changed >"$net/launch/many/f3"
rm "$net/launch/many/f4"
many two writes
is "the file that stayed" "$inode" "$first"
two=$(value two "o['run']")
is "what is left" "$(on host1 sh -c "cd /root/.local/state/dtrun/nodes/$two/workdir-*[0-9] && cat f7 made")" "by the run
mine"
many three quiet
is "the file that stayed" "$inode" "$first"

# files that cannot be sent are refused before anything starts
mv "$work/.gitignore" "$net/gitignore"
launched 2 "the largest file is 'data/big.bin' with 3.0 MB: put the line /data/big.bin into" large --set workdir.max_mb=1
mv "$net/gitignore" "$work/.gitignore"
launched 1 "cannot run in the folder '$work' of this node" never --set workdir.ship=never

# A setup runs once on each host for each content; its files are available to later runs, and files that the command
# writes are copied here.
cat >"$net/launch/r.yaml" <<END
nodes: "host[1-2]"
command: sh -c 'cat venv/made pkg/made; echo by \$NODE_RANK >out/by-\$NODE_RANK; echo same >out/same'
workdir: program
processes: 1
setup: mkdir venv out; date +%N >venv/made; hostname >pkg/made; echo "set up on \$(hostname)"
collect: [out/]
END
launched 0 "" made
output made
cp "$net/out" "$net/made"
folder=$(echo "$net/launch/state/dtrun/runs/$(value made "o['run']")")
grep -q "set up on host2" "$folder/attempt-1/node-1/setup.log" || fail "no log of the setup"
is "what node 0 wrote" "$(cat "$folder/collected/out/by-0" "$folder/collected/out/same")" "by 0
same"
is "what node 1 wrote" "$(cd "$folder/collected-node-1" && find . -type f)" ./out/by-1
launched 0 "" made-again
output made-again
is "what the setup made" "$(awk '/\[rank/ {print $NF}' "$net/out" | sort)" "$(awk '/\[rank/ {print $NF}' "$net/made" | sort)"
[ -z "$(on host1 find /root/.local/state/dtrun/nodes -type l)" ] || fail "links to a setup are left"
# A file that only one host has is not missing; a file that no host has is named. If the disk here is too small, the run
# fails and names the files that are not here, with their hosts.
launched 0 "" some --set 'command=sh -c "mkdir -p out; echo $RANK >out/only-$RANK"' --set 'setup=exit 0' \
    --set 'collect=[out/only-1, nowhere]'
is "what was collected" "$(cat "$net/launch/state/dtrun/runs/$(value some "o['run']")"/collected*/out/only-1)" 1
"$dtrun" show some >"$net/out"
says "not collected: 'nowhere' does not exist on any node"
says_not "only-1' does not exist"
small=$net/launch/state
cp -a "$small" "$net/state.before"
mount -t tmpfs -o size=90m tmpfs "$small" && cp -a "$net/state.before/." "$small/"
launched 3 "not collected: 'out/large' is not here but in '/root/.local/state/dtrun/nodes/" full --set 'setup=exit 0' \
    --set 'command=sh -c "mkdir out; head -c 150000000 /dev/urandom >out/large"' --set nodes=host1
says "not enough free space"
is "the state" "$(value full "o['state']")" failed
cp -a "$small/." "$net/state.before/"
umount "$small" && cp -a "$net/state.before/." "$small/"
launched 3 "the setup ended with exit code 9: no compiler here" unmade --set 'setup=echo no compiler here; exit 9'

# Files that a rule leaves out and the program misses; tracked files are sent even if ignored; the commit.
rm -rf "$work/.git"
git -C "$work" init -q
echo 5 >"$work/data/small" && echo 6 >"$work/local.txt"
git -C "$work" add -f data/small show.sh && git -C "$work" -c user.name=x -c user.email=x@y commit -q -m x
echo local.txt >>"$work/.git/info/exclude"
printf 'open("data/big.bin")\n' >"$work/reads.py"
printf 'set -e\necho "commit $DTRUN_GIT_COMMIT $(cat data/small)"\n[ ! -e local.txt ]\npython3 reads.py\n' >"$work/lacks.sh"
launched 1 "No such file or directory: 'data/big.bin'; 'data/big.bin' was not sent to the nodes: it is left out by 'data/' of .gitignore" lacks --set 'command=sh lacks.sh'
says "workdir: not sent by 'local.txt' of .git/info/exclude: 1 file"
output lacks
says "commit $(git -C "$work" rev-parse HEAD) 5"
"$dtrun" show lacks >"$net/out"
says "but 'lacks.sh' is not tracked"
