#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 34 "what a command prints does not reach the terminal but as text"
start "$(film hostile)"
before=$(t display-message -p -t a '#{pane_title}')
sample 20
over
[ -z "$(t list-buffers 2>/dev/null)" ] || fail "a clipboard was written: $(t list-buffers)"
[ "$(t display-message -p -t a '#{pane_title}')" = "$before" ] || fail 'the title was changed'
hist | grep '^┃' | sed 's/^/   /'
for text in ab cd ef gh ij kl mn op qr st uv; do seen "│ $text$" || hist | grep -q "^┃ $text$" || fail "the rest of '$text' is not shown"; done
clean
verdict
