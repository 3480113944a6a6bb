#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 26 "lines of exactly 80 and 160 cells at 80 columns get no blank row behind them"
start "$(film exact)"
over
at=$(rows | grep -n '^x\{80\}' | cut -d: -f1)
rows | sed -n "$at,$((at + 4))p" | cut -c1-20 | sed 's/^/   /'
[ "$(rows | sed -n "$((at + 1))p")" = short ] || fail 'a blank row after 80 cells'
[ "$(rows | sed -n "$((at + 4))p")" = last ] || fail 'a blank row after 160 cells'
clean
verdict
