#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 46 "the picture of the manual is what a terminal shows"
printf 'clear; %s' "$(film picture '--from 98s500ms')" >"$D/pane.sh"
golden=$(dirname "$0")/../testdata/screen.ansi
shot() { t capture-pane -p -e -t a | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}'; }
for try in 1 2 3; do
	t start-server \; set -g exit-empty off \; set -g status off \; new-session -d -s a -x 80 -y 24 "sh $D/pane.sh; sleep 9"
	for _ in $(seq 20); do
		sleep 0.05
		if [ "${UPDATE:-}" ] && shot | grep -q 'turn 2'; then sleep 0.2; shot >"$golden"; fi
		shot | diff -q - "$golden" >/dev/null && { saw "at try $try"; verdict; }
	done
	shot | diff - "$golden" >"$D/diff"
	t kill-server
done
fail "$(cat "$D/diff")"
verdict
