#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 12 "a call without a result is incomplete at the end of its turn, also before a finished one"
start "$(film orphan)"
over
order '! exec_command  never ends' '✓ exec_command  ends'
once 'never ends'
clean
verdict
