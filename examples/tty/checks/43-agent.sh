#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 43 "a sub-agent with 30 calls is one frame that names the failed one; --show agents has all"
start "$(film reviewer)"
sample 20
over
seen '▸ spawn_agent  /root/reviewer · turn 1 · exec_command review [0-9]+ +[0-9]+s' || fail 'what it does was not seen'
seen '│ [0-9]+ calls' || fail 'its counts were not seen'
once '✓ spawn_agent' 'review 17'
[ "$(hist | grep -c 'review [0-9]')" -eq 1 ] || fail 'other calls have frames'
clean
t kill-server; S=$S-b
start "$(film reviewer '--show agents')"
over
[ "$(hist | grep -cE 'exec_command  review [0-9]+ |exec_command  review 17')" -eq 30 ] || fail "$(hist | grep -c 'exec_command  review') of 30 calls are there"
clean
verdict
