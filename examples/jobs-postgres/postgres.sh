#!/bin/sh
# Starts and stops a PostgreSQL server of its own on loopback, for a trial or a
# test. Usage: postgres.sh start|stop|url DIR [PORT]
#
# It needs PostgreSQL's server programs (Debian: apt-get install postgresql) and
# nothing that runs already. The server listens on 127.0.0.1 only, keeps its data
# in DIR, and is gone with DIR.
set -eu

action=${1:?start, stop or url} dir=${2:?the folder of the server} port=${3:-54329}
data=$dir/data

bin=$(pg_config --bindir 2>/dev/null || true)
for b in "$bin" /usr/lib/postgresql/*/bin; do
	[ -x "$b/initdb" ] && bin=$b
done
[ -x "$bin/initdb" ] || { echo "postgres.sh: PostgreSQL's initdb is not here; apt-get install postgresql" >&2; exit 1; }

# PostgreSQL refuses to run as root.
as() {
	if [ "$(id -u)" != 0 ]; then
		"$@"
	elif id postgres >/dev/null 2>&1; then
		setpriv --reuid postgres --regid postgres --clear-groups "$@"
	else
		setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
	fi
}

case $action in
start)
	if [ ! -d "$data" ]; then
		mkdir -p "$data"
		if [ "$(id -u)" = 0 ]; then
			if id postgres >/dev/null 2>&1; then chown postgres "$dir" "$data"; else chown 65534 "$dir" "$data"; fi
		fi
		chmod 700 "$data"
		(cd "$dir" && as "$bin/initdb" -D "$data" -U drover --auth=trust --no-sync >"$dir.initdb.log" 2>&1) ||
			{ cat "$dir.initdb.log" >&2; exit 1; }
	fi
	(cd "$dir" && as "$bin/pg_ctl" -D "$data" -w -t 60 -l "$data/server.log" \
		-o "-c listen_addresses=127.0.0.1 -c port=$port -c unix_socket_directories='' -c max_connections=200" start >/dev/null) ||
		{ tail -20 "$data/server.log" >&2; exit 1; }
	echo "postgres://drover@127.0.0.1:$port/postgres"
	;;
stop)
	# Like a failing machine: connections are cut.
	(cd "$dir" && as "$bin/pg_ctl" -D "$data" -w -m immediate stop >/dev/null)
	;;
url)
	echo "postgres://drover@127.0.0.1:$port/postgres"
	;;
*)
	echo "postgres.sh: $action is not start, stop or url" >&2
	exit 2
	;;
esac
