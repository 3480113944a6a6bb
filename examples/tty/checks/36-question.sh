#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 36 "a question shows the whole command, also at 40 columns"
long="touch asked-$(printf 'abcdefghi-%s' $(seq 30) | tr -d ' ')"
start "$(script "$(runs "$long")" '{"text":"Done."}') --policy $D/ask.yaml go" 40 30
until_screen '[N]o:' 15
hist | grep -qF -- "$long" && saw "${#long} characters" || fail 'the command is not there as it is'
has 'rule     touching: Files are touched by people.'
type_ n Enter
over
verdict
