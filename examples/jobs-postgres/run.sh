#!/bin/sh
# A list job on PostgreSQL: a server on loopback, two workers, one coordinator.
# Usage: run.sh [DROVER]  (DROVER is the binary; built if absent)
#
# The coordinator brings the rows into the database and writes the result; it
# works on none itself. Workers may run on any machine that reaches the database.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
chmod 755 "$tmp"
workers=
end() {
	[ -z "$workers" ] || kill $workers 2>/dev/null || true
	wait 2>/dev/null || true
	"$here/postgres.sh" stop "$tmp/server" "$port" 2>/dev/null || true
	rm -rf "$tmp"
}
port=${PORT:-54331}
trap end EXIT INT TERM

drover=${1:-}
if [ -z "$drover" ]; then
	drover=$tmp/drover
	(cd "$here/../.." && go build -o "$drover" ./cmd/drover)
fi
mkdir "$tmp/server"
engine=$("$here/postgres.sh" start "$tmp/server" "$port")

for n in 1 2; do
	"$drover" jobs worker --engine "$engine" --format lines >"$tmp/worker-$n.log" 2>&1 &
	workers="$workers $!"
done
code=0
"$drover" jobs run -f "$here/../jobs-csv/task.yaml" --engine "$engine" --coordinator -o "$tmp/triaged.csv" || code=$?
echo "the result:" >&2
cat "$tmp/triaged.csv" >&2
exit "$code"
