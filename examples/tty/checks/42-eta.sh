#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 42 "rate and time left are there after the first row, and not before"
start "$(film job)" 80 36
sample 6 0.05
grep -hE '%  +–   eta –' "$D"/samples/* | head -n 1 | sed 's/^/   /'
seen '0%  +–   eta –' || fail 'not seen without a rate'
seen '%  +[0-9.]+/min   eta [0-9]+' || fail 'not seen with a rate'
over 60
verdict
