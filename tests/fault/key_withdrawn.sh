#!/usr/bin/env bash
# Logins to a node are refused for a while, and the existing connections are gone: the ranks and the run continue, and
# the run reports that the node is not reachable. A restart during this time waits; a stop reports which node it could
# not ask.
[ -n "${FAULT_FULL:-}" ] || export DTRUN_TEST_TIMES=0.5 # a node without a sign of life is lost after 8 s
. "$(dirname "$0")/hosts.sh"
if ! apart; then
    echo "skipped: several sshd on 127.0.0.1 do not tell whose connections are whose"
    exit 77
fi
withdrawn=$(scaled 30)

connections() { # host: its sshd processes except the first
    local pid
    for pid in $("$net_sh" pids "$net" "$1"); do
        tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -q '^sshd: ' && [ "$pid" != "$(<"$net/$1/sshd.pid")" ] &&
            echo "$pid"
    done
    true
}
withdraw() { # host
    mv "$net/$1/authorized_keys" "$net/$1/away"
    kill $(connections "$1") 2>/dev/null || true
}
give_back() { mv "$net/$1/away" "$net/$1/authorized_keys"; }
node_state() { value "$1" "[n['state'] for n in o['nodes'] if n['host'] == '$2'][0]"; }
node_is() { [[ $(node_state "$1" "$2") == $3 ]]; }

# During training: a node that sends the metrics, then one that does not
launch golden
await 120 past golden 600
"$dtrun" stop golden >/dev/null
launch key
for host in host1 host2; do
    await 60 past key 50
    withdraw $host
    start=$(date +%s%N)
    await 60 node_is key $host 'not reachable*'
    is "state of key" "$(value key "o['state']")" running
    [ $host = host1 ] && seconds=$(scaled 20) || seconds=$withdrawn
    while [ $(($(date +%s%N) - start)) -lt $((seconds * 1000000000)) ]; do
        is "state of key ($(value key "o['reason']"))" "$(value key "o['state']")" running
        is "attempt of key" "$(value key "o['attempt']")" 1
        sleep 1
    done
    like "what is said of $host" "$(node_state key $host)" "*refuses your ssh keys*"
    step=$(value key "o['step']")
    give_back $host
    await 60 node_is key $host running
    await 60 past key $((step + 50))
done
is "attempt of key" "$(value key "o['attempt']")" 1

# A rank dies meanwhile: the next attempt waits until the node accepts logins again
await 60 has_saved key
withdraw host2
kill -9 "$(pid_of key 0)"
await 90 in_attempt key 2
await 60 node_is key host2 '*refuses your ssh keys*'
sleep "$(scaled 15)"
is "state of key ($(value key "o['reason']"))" "$(value key "o['state']")" preparing
is "attempt of key" "$(value key "o['attempt']")" 2
give_back host2
step=$(value key "o['step']")
await 90 past key $((step + 50))
is "attempt of key" "$(value key "o['attempt']")" 2

# ... and until its login shell runs commands again; for a first attempt this is a final error
case $(getent passwd "$(id -u)") in
*bash)
    await 60 has_saved key
    "$net_sh" on "$net" host2 sh -c 'echo "exit 1" >/root/.bashrc'
    kill $(connections host2) 2>/dev/null || true
    kill -9 "$(pid_of key 0)"
    await 90 in_attempt key 3
    await 60 node_is key host2 '*its login shell ended with exit code 1*'
    is "state of key ($(value key "o['reason']"))" "$(value key "o['state']")" preparing
    "$net_sh" on "$net" host2 sh -c 'rm /root/.bashrc'
    step=$(value key "o['step']")
    await 90 past key $((step + 50))
    is "attempt of key" "$(value key "o['attempt']")" 3 ;;
esac

# No further attempt: processes that may still run are reported, also by exit code 5
"$dtrun" stop key >/dev/null
whole key
launch final --set failure.max_restarts=0
await 60 past final 20
withdraw host2
kill -9 "$(pid_of final 0)"
await 90 is_over final
is "state of final" "$(value final "o['state']")" failed
is "exit code of final" "$(value final "o['exit_code']")" 5
like "reason" "$(value final "o['reason']")" "*cannot verify that nothing is left: *host2*"
give_back host2
"$dtrun" stop final >/dev/null || fail "stop once the node lets us in: exit $?"
await 20 none_there "$id"

# A first attempt does not wait
withdraw host2
start=$(date +%s%N) code=0
"$dtrun" launch --wait "$state/tiny.yaml" --set name=refused >"$state/refused.out" 2>&1 || code=$?
is "exit code of a launch where nobody may sign in" $code 3
like "what it says" "$(<"$state/refused.out")" "*host2*refuses your ssh keys*"
