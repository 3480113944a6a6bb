#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 14 "text after a running call is in the history after that call"
start "$(film text)"
until_screen 'and more' 10
hist | grep -q '^text that comes' && fail 'the text overtook the call'
over
order '✓ exec_command  slow' 'text that comes behind' 'and more'
once 'text that comes behind'
clean
verdict
