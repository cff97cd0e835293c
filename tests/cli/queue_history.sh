#!/usr/bin/env bash
# A history that is lost: runs that wait come back as such, also those that never started, and one that was preempted
# continues.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/queue_lib.sh"

expect 0 queue guarantee 0s
victim=$(queue victim $endless)
within 60 state_is victim running
never=$(queue never --priority -1)
urgent=$(queue urgent2 --priority 3 $endless)
within 60 state_is urgent2 running
within 60 state_is victim waiting
rm -f state/dtrun/store.db*
lists "order == ['victim', 'never'] and r['urgent2']['run'] == '$urgent'"
expect 0 stop "$urgent"
within 60 state_is "$victim" running
expect 0 stop "$victim"
within 60 state_is "$never" finished
