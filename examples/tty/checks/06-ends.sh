#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 06 "each end has its icon and its words"
start "$(film ends)"
over
for row in '⊘ exec_command  git push --force origin main .*denied by no-force-push' '⧗ exec_command  ./e2e.sh .*timed out · 2.0s' \
	'- exec_command  npm run dev .*cancelled · ' '! spawn_agent  /root/reviewer .*incomplete · ' '✗ view_image  missing.png .*error · ' \
	'✗ exec_command  go test ./runner/... .*exit 1 · ' '✓ exec_command  go build ./... .*exit 0 · '; do
	hist | grep -qE -- "^$row" && saw "$row" || fail "no row '$row'"
done
clean
verdict
