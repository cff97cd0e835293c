#!/usr/bin/env bash
# A run that cannot be started fails with the reason and leaves nothing.
. "$(dirname "$0")/lib.sh"
export DTRUN_TEST_TIMES=0.25 # a new agent that does not answer within 2.5 s is given up
DTRUN_ENGINE=$XDG_STATE_HOME/none "$driver" launch engine 2
end_is engine failed 3
is reason "$(get engine reason)" \
    "cannot run '$XDG_STATE_HOME/none': No such file or directory"

printf 'not a program' >"$XDG_STATE_HOME/text" && chmod +x "$XDG_STATE_HOME/text"
DTRUN_ENGINE=$XDG_STATE_HOME/text "$driver" launch text 2
end_is text failed 3
is reason "$(get text reason)" \
    "rank 0 on localhost could not be started: cannot run '$XDG_STATE_HOME/text': Exec format error"

cp /bin/false "$XDG_STATE_HOME/false"
DTRUN_AGENT=$XDG_STATE_HOME/false "$driver" launch agent 2
await 40 has_ended agent
end_is agent failed 3
like reason "$(get agent reason)" "the agent on localhost is unavailable: *"

# a message of ssh may be in any character set, and is still the reason
printf '#!/bin/sh\nprintf "Zugriff f\\374r niemanden\\n" >&2; exit 1\n' >"$XDG_STATE_HOME/latin"
chmod +x "$XDG_STATE_HOME/latin"
DTRUN_AGENT=$XDG_STATE_HOME/latin "$driver" launch latin 2
await 40 has_ended latin
end_is latin failed 3
like reason "$(get latin reason)" "the agent on localhost is unavailable: Zugriff *"

# an agent that refuses `start` is reported, not waited for
cat >"$XDG_STATE_HOME/refuses" <<'END'
#!/usr/bin/env bash
while read -r line; do
    case $line in
    *'"command":"attach"'*) echo '{"event":"hello","protocol":1,"version":"0","next_sequence":0,"state":"idle"}' ;;
    *'"command":"start"'*) echo '{"event":"error","message":"start: not today","refused":true}' ;;
    esac
done
END
chmod +x "$XDG_STATE_HOME/refuses"
DTRUN_AGENT=$XDG_STATE_HOME/refuses "$driver" launch refused 2
await 20 has_ended refused
end_is refused failed 3
is reason "$(get refused reason)" "the agent on localhost cannot start its ranks: start: not today"

# an agent whose good line is followed by garbage, and which does not answer again: the store stays free
cat >"$XDG_STATE_HOME/babbles" <<'SH'
#!/bin/sh
mkdir "$XDG_STATE_HOME/spoke" 2>/dev/null || exit 1
read -r _
echo '{"event":"hello","protocol":1,"version":"0","next_sequence":0,"state":"idle"}'
read -r _
printf '%s\n' '{"event":"started","sequence":0,"time_ms":1,"rank":0,"local_rank":0,"pid":1,"device":"cpu"}' 'no JSON'
SH
chmod +x "$XDG_STATE_HOME/babbles"
DTRUN_AGENT=$XDG_STATE_HOME/babbles "$driver" launch babbles 1
await 20 grep -qs "not JSON" "$runs/babbles/supervisor.log"
sqlite3 "$XDG_STATE_HOME/dtrun/store.db" ".timeout 10000" "BEGIN IMMEDIATE; ROLLBACK" || fail "the store is held"
kill -9 $(processes "supervise babbles")

# lines that are not part of the protocol become log lines
FAKE_MODE=garbage FAKE_STEPS=3 "$driver" launch garbage 2
end_is garbage finished 0
grep -q "cannot parse a line on the event channel" "$runs/garbage/logs/rank-0.log"
is points "$(get garbage points)" 3

# and very many of them are only many log lines
FAKE_MODE=flood FAKE_STEPS=10 "$driver" launch flood 2
end_is flood finished 0
is "lines" "$(grep -c talkative "$runs/flood/logs/rank-1.log")" 20000
await 10 nothing_left
