#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 32 "through a pipe JSON lines, on a dumb terminal and in CI rows without a region"
cmd=$(script "$(runs 'echo hello; exit 3')" '{"text":"Done."}')
start "($cmd --yolo go) | cat >$D/piped; (export TERM=dumb; $cmd --yolo go); (export CI=1; $cmd --yolo go)"
t pipe-pane -t a "cat >'$D/bytes'"
over
grep -v '^{.*}$' "$D/piped" && fail 'not JSON lines'
grep -q "$(printf '\033')" "$D/piped" && fail 'an escape in the pipe'
saw "$(wc -l <"$D/piped") JSON lines"
sed 's/\x1b\[[0-9;]*m//g' "$D/bytes" | grep -q "$(printf '\033')" && fail 'a control sequence in lines'
[ "$(hist | grep -cE '^✗ exec_command  echo hello; exit 3 .*exit 3')" -eq 2 ] || fail 'not the same frames'
clean
verdict
