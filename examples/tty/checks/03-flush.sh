#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 03 "a result is in the history after a second at the latest, although nothing follows"
start "$(film one)"
until_screen '✓ exec_command' 20
sleep 1.3
# The region's rows begin with a blank, those of the history do not.
hist | grep -qE '^✓ exec_command' && saw 'in the history before the text came' || fail 'it is not in the history a second later'
over
order '✓ exec_command' 'All is well.'
clean
verdict
