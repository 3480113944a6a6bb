#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 01 "a call is pending, streams, runs and is done, on one row"
start "$(film one)"
sample 20 0.05
over
for want in '◌ exec_command +pending' '~ exec_command  .*go te' '▸ exec_command  go test ./... +[0-9]+s'; do
	seen "$want" && saw "seen: $want" || fail "never seen: $want"
done
for f in "$D"/samples/*; do
	n=$(grep -c exec_command "$f")
	[ "$n" -le 1 ] || fail "exec_command is on $n rows at a time"
done
once '✓ exec_command'
clean
verdict
