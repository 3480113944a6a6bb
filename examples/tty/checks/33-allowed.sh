#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 33 "nothing is sent but what is on the list"
start "sleep 1; $(film eight)"
t pipe-pane -t a "cat >'$D/bytes'"
over
# Everything that is allowed is taken out; no escape may be left.
sed 's/\x1b\[K//g; s/\x1b\[J//g; s/\x1b\[C//g; s/\x1b\[[0-9]*A//g; s/\x1b\[?7[hl]//g; s/\x1b\[?25[hl]//g; s/\x1b\[?2026[hl]//g; s/\x1b\[\(0\|1\|2\|31\|32\|33\|35\|36\|1;33\)\{0,1\}m//g' "$D/bytes" >"$D/rest"
saw "$(wc -c <"$D/bytes") bytes"
[ "$(wc -c <"$D/bytes")" -gt 5000 ] || fail 'hardly anything was recorded'
if grep -q "$(printf '\033')" "$D/rest"; then fail "$(grep -o "$(printf '\033')....." "$D/rest" | head -n 3 | cat -v | tr '\n' ' ')"; fi
for bad in ']' 'P' 'c' '7' '[2J' '[3J' '[H' '[?1049'; do grep -qF "$(printf '\033')$bad" "$D/bytes" && fail "ESC $bad"; done
clean
verdict
