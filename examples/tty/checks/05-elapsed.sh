#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 05 "the time of a call goes on, and ends with what it took"
start "$(film three)"
sample 20 0.05
over
times=$(cat "$D"/samples/* | grep -oE '▸ exec_command .* [0-9]+s' | grep -oE '[0-9]+s' | sort -u | tr '\n' ' ')
saw "live: $times"
[ "$(echo $times | wc -w)" -ge 3 ] || fail "only $times"
final=$(hist | grep '✓ exec_command' | grep -oE '[0-9.]+s$')
saw "final: $final"
case "$final" in 2.9s | 3.[0-4]s) ;; *) fail "the end says $final" ;; esac
clean
verdict
