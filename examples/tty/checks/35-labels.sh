#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 35 "odd characters in arguments are spelt out"
start "$(film labels)"
sample 10
over
hist | grep exec_command | sed 's/^/   /'
has 'x\u202ey\u200bz\nw\e[2Jv'
seen '▸ exec_command  x\\u202ey\\u200bz\\nw\\e' || fail 'not while it runs'
clean
verdict
