#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 30 "the modes of the terminal are the same before, during and after, also after a kill"
shell
cmd=$(script "$(runs 'sleep 3; echo late')" '{"text":"Done."}')
tty=$(t display-message -p -t a '#{pane_tty}')
type_ "stty -a >$D/before; $cmd --yolo go; stty -a >$D/after" Enter
until_screen '▸ exec_command' 15
stty -a <"$tty" >"$D/during"
until_screen '✓ success' 20
sleep 0.5
type_ "$cmd --yolo go; stty -a >$D/killed" Enter
sleep 2
pkill -9 -f "drover run --model script:$D/model.jsonl"
until_screen 'Killed' 10
sleep 0.5
# While a command of its own runs, a shell reads lines and not keys.
for which in after killed; do diff "$D/before" "$D/$which" >"$D/d" && saw "$which: the same" || fail "$which: $(cat "$D/d")"; done
diff "$D/before" "$D/during" >"$D/d" && saw 'during: the same' || fail "during: $(cat "$D/d")"
verdict
