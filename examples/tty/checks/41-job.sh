#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 41 "a job of a thousand rows is one frame: 7 rows at most, 20 failures, counts that add up"
start "$(film job)" 80 36
sample 40
over 60
n=$(most_rows); saw "at most $n rows"
[ "$n" -le 7 ] || fail "$n rows"
[ "$(hist | grep -cE '^✗ row [0-9]+ acme-')" -eq 20 ] || fail "$(hist | grep -cE '^✗ row') failures are there"
once '✗ job tickets.csv' 'failed rows:'
hist | grep -q '^[^ ] exec_command' && fail 'a call of a row has a frame'
hist | grep -A2 '✗ job' | sed 's/^/   /'
sum=$(hist | grep '✗ job' | grep -oE '[0-9]+ (ok|failed)' | awk '{s+=$1} END {print s}')
[ "$sum" -eq 1000 ] || fail "the counts add up to $sum"
clean
verdict
