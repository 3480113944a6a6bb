#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 02 "streaming arguments are shown raw, unbalanced, and to their end"
start "$(film one)"
sample 15 0.05
over
seen '~ exec_command  \{"cmd":"go te +[0-9]+ B' && saw 'seen: {"cmd":"go te' || fail 'the unbalanced beginning was not seen'
stop; D=$(mktemp -d); S=$S-b
start "$(film args)"
sample 15 0.05
over
# Each preview must be the end of what had come by then.
log='{"path":"'$(for _ in $(seq 30); do printf 0123456789; done)'"}'
n=0
for shown in $(cat "$D"/samples/* | grep -oE '~ apply_patch  …?[^ ]+' | sed 's/.*apply_patch  …\{0,1\}//' | sort -u); do
	n=$((n + 1))
	case "$log" in *"$shown"*) ;; *) fail "the preview '$shown' is not in the arguments" ;; esac
done
saw "$n previews are parts of the raw text"
[ "$n" -ge 5 ] || fail "only $n previews were seen"
verdict
