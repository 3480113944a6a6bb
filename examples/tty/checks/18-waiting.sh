#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 18 "while only the model is awaited the region is one row, and afterwards none"
start "$(film waiting)"
sleep 2
screen >"$D/now"; grep -v OLD "$D/now" | grep . | sed 's/^/   /'
[ "$(region "$D/now")" -eq 1 ] || fail "the region has $(region "$D/now") rows"
grep -qE 'waiting for the model  [0-9]+s' "$D/now" || fail 'it does not say what is awaited'
over
hist | grep . | tail -n 3 | sed 's/^/   /'
order 'Done.' '✓ success' "$END"
[ "$(hist | grep -nF '✓ success' | cut -d: -f1)" -eq $(($(hist | grep -nF "$END" | cut -d: -f1) - 1)) ] || fail 'the prompt does not follow directly'
clean
verdict
