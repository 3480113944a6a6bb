#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 09 "calls that end the other way round are in the history as they began"
start "$(film reverse)"
over
order 'task 1 ' 'task 2 ' 'task 3 ' 'task 4 ' 'task 5 ' 'task 6 '
once 'task 1 ' 'task 2 ' 'task 3 ' 'task 4 ' 'task 5 ' 'task 6 '
clean
verdict
