#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 07 "colours are those of the table; without them and without UTF-8 the rest is the same"
start "$(film ends)"
over
colour() { colours | grep -F -- "$2" | grep -qE "^.{0,4}$(printf '\033')\[${1}m" && saw "$2: $1" || fail "$2 is not $1: $(colours | grep -F -- "$2" | head -n1 | cat -v | cut -c1-40)"; }
colour 35 'git push'; colour 31 'e2e.sh'; colour 2 'npm run'; colour 33 '/root/reviewer'; colour 31 'missing.png'; colour 33 'runner/...'; colour 32 'go build'
hist | grep -v "$END" >"$D/coloured"
stop2() { t kill-server; S=$S-b; }
stop2
start "NO_COLOR=1 $(film ends)"
over
colours | grep -q "$(printf '\033')\[" && fail 'there are colours with NO_COLOR'
hist | grep -v "$END" | diff - "$D/coloured" && saw 'NO_COLOR: the same text' || fail 'NO_COLOR changes the text'
stop2
start "$(film ends --ascii)"
over
hist | grep -v OLD | grep -nP '[^\x00-\x7F]' && fail 'there is more than ASCII' || saw '--ascii: nothing beyond ASCII'
verdict
