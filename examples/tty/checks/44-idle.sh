#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 44 "an idle minute costs less than 20 KiB"
start "sleep 1; $(film idle)"
t pipe-pane -t a "cat >'$D/bytes'"
over 90
n=$(wc -c <"$D/bytes")
saw "$n bytes"
[ "$n" -lt 20480 ] && [ "$n" -gt 1000 ] || fail "$n bytes"
clean
verdict
