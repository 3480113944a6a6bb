#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 24 "nothing is drawn while the size changes, and half a second later the region is back"
start "$(film busy)" 100 24
until_screen '▸ exec_command' 10
until=$((SECONDS + 3)) i=0 drawn=0
resize 99 24; sleep 0.2
while [ "$SECONDS" -lt "$((until - 1))" ]; do
	i=$((i + 1))
	resize $((98 - i % 30)) 24
	screen | grep -qE '^ +(▸|│)' && drawn=$((drawn + 1))
	sleep 0.03
done
saw "$i steps, $drawn of them with a region"
[ "$drawn" -le 1 ] || fail "it is drawn while the size changes"
sleep 0.7
screen | grep -qE '^ +(▸|│|✓)|turn [0-9]' && saw 'back' || fail 'the region is not back'
over
clean
verdict
