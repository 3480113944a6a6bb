#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 45 "a call that prints 100 MB: few paints, little memory, little time"
cmd=$(script "$(runs "yes 0123456789012345678901234567890123456789012345678901234567890123456789012345678 | head -c 100000000")" '{"text":"Done."}')
measure() { /usr/bin/env bash -c "TIMEFORMAT=%R; time ($1)" 2>&1 >/dev/null | tail -n 1; }
for i in 1 2 3; do measure "$cmd --yolo --format jsonl go"; done | sort -n | head -n 1 >"$D/jsonl"
cat >"$D/timed.sh" <<-X
	TIMEFORMAT=%R
	for i in 1 2 3; do { time ($cmd --yolo go); } 2>>$D/frames; done
X
start "bash $D/timed.sh"
t pipe-pane -t a "cat >'$D/bytes'"
peak=0
until hist | grep -qF "$END"; do
	for p in $(pgrep -f "drover run --model script:$D/model.jsonl"); do
		now=$(awk '/VmRSS/ {print $2}' /proc/$p/status 2>/dev/null || echo 0)
		[ "${now:-0}" -gt "$peak" ] && peak=$now
	done
	sleep 0.1
done
paints=$(grep -o '?2026h' "$D/bytes" | wc -l)
total=$(awk '{s+=$1} END {print s}' "$D/frames")
best=$(sort -n "$D/frames" | head -n 1)
[ -n "$best" ] || fail 'nothing was measured'
saw "$paints paints in $total s; resident $((peak / 1024)) MiB; $best s, JSON lines $(cat "$D/jsonl") s"
awk -v p="$paints" -v t="$total" 'BEGIN {exit !(p <= 11 * t + 6)}' || fail 'more than 11 paints a second'
[ "$peak" -gt 1000 ] && [ "$peak" -lt 102400 ] || fail "$peak KiB"
# A busy machine makes small times uncertain: what counts is the best of three.
awk -v f="$best" -v j="$(cat "$D/jsonl")" 'BEGIN {exit !(f <= 1.1 * j + 0.15)}' || fail 'more than 10 % longer'
verdict
