#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 23 "a paragraph of 300 characters is one line of the history at every width"
start "$(film prose)"
until_screen 'A paragraph' 10
for w in 40 120 77 80; do
	resize $w 24
	sleep 0.5
	n=$(hist | grep '^A paragraph' | head -n 1 | awk '{print length($0)}')
	saw "at $w columns it is one line of $n"
	[ "$n" -eq 300 ] || fail "the line has $n characters at $w columns"
done
over
clean
verdict
