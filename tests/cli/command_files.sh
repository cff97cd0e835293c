#!/usr/bin/env bash
# setup and collect of a command on this machine: a setup runs once for each content; it fails, is stopped, is killed,
# and is used by two runs at once. Which files are copied into the run's folder.
. "$(dirname "$0")/lib.sh"
program=$work/program
mkdir -p "$program"
printf 'made\nout/\nlog.txt\n' >"$program/.gitignore"
recipe() { # name and lines of a recipe
    printf '%s\n' "${@:2}" 'workdir: program' 'gpus: 0' >"$work/$1.yaml"
}
run_folder() { echo "$work/state/dtrun/runs/$(field "o['run']")"; }

# A setup runs once for each content, with the variables of the recipe; the next launch finds it done.
recipe set 'command: sh -c "cat made; echo key=$KEY"' 'setup: echo "setting up $KEY"; date +%N >made; echo x >>log.txt' \
    'env: {KEY: "${env:DT_TEST_KEY}"}'
export DT_TEST_KEY=hush-hush-hush
expect 0 launch --wait --json "$work/set.yaml"
folder=$(run_folder)
grep -q "setting up hush" "$folder/attempt-1/node-0/setup.log" || fail "no log of the setup"
expect 0 launch --wait --json "$work/set.yaml"
[ "$(wc -l <"$program/log.txt")" -eq 1 ] || fail "the setup ran $(wc -l <"$program/log.txt") times"
grep -q "setting up hush" "$(run_folder)/attempt-1/node-0/setup.log" || fail "no log of the setup that was done before"
echo more >"$program/new.txt"
expect 0 launch --wait --json "$work/set.yaml"
[ "$(wc -l <"$program/log.txt")" -eq 2 ] || fail "the setup did not run after a change"
unset DT_TEST_KEY

# A failing setup: its last lines, no start, no restart; it does not count as done.
recipe bad 'command: touch started' 'setup: echo first; echo "the reason" >&2; exit 7' 'failure: {max_restarts: 3}'
for i in 1 2; do
    expect 3 launch --wait "$work/bad.yaml"
    says "the setup ended with exit code 7" "first | the reason" "setup.log"
done
[ ! -e "$program/started" ] || fail "the command was started"
expect 0 list --json
json "o['runs'][0]['attempt'] == 1"

# `activate` changes the environment of setup and program, in a shell that becomes the program.
printf 'export FROM_FILE="of $1 it"\ntold() { echo "told $*"; }\n' >"$program/env.sh"
printf '%s\n' 'echo "program $1 $2 has $FROM_FILE"' 'tr "\0" " " </proc/$$/cmdline' >"$program/show.sh"
recipe act 'activate: . ./env.sh all && told here' 'setup: echo "setup has $FROM_FILE" && told setup' \
    "command: [sh, show.sh, one, 'two  words']"
expect 0 launch --wait --json "$work/act.yaml"
folder=$(run_folder)
grep -q "setup has of" "$folder/attempt-1/node-0/setup.log" || fail "setup: $(cat "$folder/attempt-1/node-0/setup.log")"
grep -q "told setup" "$folder/attempt-1/node-0/setup.log" || fail "a function of activate is missing in setup"
expect 0 logs last
says "told here" "program one two  words has of" "sh show.sh one two  words"
recipe act 'activate: "false"' 'command: touch started'
expect 1 launch --wait "$work/act.yaml"
says "'activate' ended with code 1"
[ ! -e "$program/started" ] || fail "the command was started"
recipe act 'activate: exit 3' 'setup: touch started' 'command: "true"'
expect 3 launch --wait "$work/act.yaml"
says "the setup ended with exit code 3"
recipe act 'activate: "a\nb"' 'command: "true"'
expect 2 validate "$work/act.yaml"
says "'activate' has several lines"
recipe act 'activate: export A=1' 'command: echo "$A end" >&2; exec sleep 98764.'$$ 'shell: true' 'grace_seconds: 20'
expect 0 launch --detach --json "$work/act.yaml"
within 60 pgrep -xf "sleep 98764.$$" >/dev/null
expect 0 stop last
pgrep -xf "sleep 98764.$$" && fail "the program is left"
expect 0 logs last
says "1 end"

# A stop ends the setup with everything that it started, and so does the death of the process that watches it.
recipe slow 'command: "true"' 'setup: echo $$ >made; setsid sleep 98765.'$$' & setsid sleep 98765.'$$'; touch log2.txt'
expect 0 launch --detach --json "$work/slow.yaml"
run=$(field "o['run']")
sleeps() { [ "$(pgrep -xfc "sleep 98765.$$")" -eq "$1" ]; }
within 60 sleeps 2
expect 0 stop "$run"
says "none of its processes are left"
within 60 sleeps 0
expect 0 launch --detach --json "$work/slow.yaml"
run=$(field "o['run']")
within 60 sleeps 2
for pid in $(pgrep -f 'dtrun-agent node setup'); do
    ! tr '\0' '\n' <"/proc/$pid/environ" | grep -qx "XDG_STATE_HOME=$XDG_STATE_HOME" || kill -9 "$pid"
done
expect 3 wait "$run"
within 60 sleeps 0
recipe slow 'command: "true"' 'setup: echo again >>log.txt; test ! -e made.lock || exit 1; touch made.lock; sleep 1; rm made.lock; echo done >>log.txt'
: >"$program/log.txt"
echo '*.lock' >>"$program/.gitignore"
for i in 1 2; do
    expect 0 launch --detach --json "$work/slow.yaml" --set name=both-$i
done
expect 0 wait both-1
expect 0 wait both-2
[ "$(tr '\n' ' ' <"$program/log.txt")" = "again done " ] || fail "two at once: $(cat "$program/log.txt")"

# collect
mkdir -p "$program/out/deep"
recipe take 'command: [sh, -c, "echo result >out/deep/r.txt; chmod 750 out/deep/r.txt; ln -sf r.txt out/deep/last; ln -sf /etc/passwd out/away; exit $1", x, "0"]' \
    'collect: [out/, missing.txt]'
expect 0 launch --wait --json "$work/take.yaml"
folder=$(run_folder)
[ "$(cat "$folder/collected/out/deep/r.txt")" = result ] || fail "not collected: $(find "$folder")"
[ "$(readlink "$folder/collected/out/deep/last")" = r.txt ] || fail "not the link"
[ ! -e "$folder/collected/out/away" ] || fail "a link that leads out was collected"
grep -q "collected 1 file (0.0 MB) from localhost" "$folder/supervisor.log" || fail "$(cat "$folder/supervisor.log")"
grep -q "'missing.txt' does not exist" "$folder/supervisor.log" || fail "missing.txt is not reported"
grep -q "'out/away' it is a link that leads out" "$folder/supervisor.log" || fail "out/away is not reported"
expect 1 launch --wait --json "$work/take.yaml" --set 'command[4]=5'
[ "$(cat "$(run_folder)/collected/out/deep/r.txt")" = result ] || fail "not collected after a failure"
rm "$program/out/away"
ln -s /etc "$program/out2"
expect 0 launch --wait --json "$work/take.yaml" --set 'collect=[out2/hostname]'
[ ! -e "$(run_folder)/collected/out2" ] || fail "a folder that leads out was collected"
