#!/usr/bin/env bash
# Runs the checks of frames in a real terminal, which is tmux: all of them, or
# those whose numbers are given.
#
#   examples/tty/run.sh            all, four at a time
#   examples/tty/run.sh 19 22      these two
#
# Each check is a script in the folder checks that prints what it saw. The logs
# that they play are made by the program in the folder logs. A check that depends
# on the moment gets a second try, and that is told.
set -u
cd "$(dirname "$0")" || exit 1
command -v tmux >/dev/null || { echo 'tmux is missing: install it, such as with apt-get install tmux' >&2; exit 2; }

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
if [ -z "${DROVER:-}" ]; then
	export DROVER=$out/drover
	go build -o "$DROVER" ../../cmd/drover || exit 1
fi
if [ -z "${LOGS:-}" ]; then
	export LOGS=$out/logs
	go build -o "$LOGS" ./logs || exit 1
fi
export out

# one runs a check, up to twice.
one() {
	local file=$1 name try
	name=$(basename "$file" .sh)
	for try in 1 2; do
		if bash "$file" >"$out/$name.$try" 2>&1; then
			cp "$out/$name.$try" "$out/$name.log"
			[ "$try" -eq 1 ] || echo "     at the second try; the first said: $(grep -h WRONG "$out/$name.1" | head -n 1)" >>"$out/$name.log"
			return
		fi
	done
	cat "$out/$name.1" >"$out/$name.log"
	tail -n 1 "$out/$name.2" >>"$out/$name.log"
}
# storm runs the check of random sizes ten times: nine of them must leave
# nothing behind, and the tenth six rows at most.
storm() {
	local i bad=0
	for i in $(seq 10); do
		SEED=$((RANDOM + i)) bash checks/22-storm.sh >"$out/22.$i" 2>&1 && continue
		bad=$((bad + 1))
		cat "$out/22.$i"
		if ! grep -q 'WRONG: [1-6] stale rows' "$out/22.$i" || [ "$(grep -c WRONG "$out/22.$i")" -ne 1 ] || [ "$bad" -gt 1 ]; then
			echo "FAIL 22 sixty random sizes: run $i of 10"
			return
		fi
	done >"$out/22-storm.log"
	[ -s "$out/22-storm.log" ] && grep -q FAIL "$out/22-storm.log" || echo "ok   22 sixty random sizes, ten times, $bad of them with rows left behind" >>"$out/22-storm.log"
}
export -f one storm

# Those that measure time get the machine for themselves.
alone='05 24 45'
list=() last=()
for file in checks/*.sh; do
	number=$(basename "$file" | cut -c1-2)
	if [ $# -gt 0 ] && [[ " $* " != *" $number "* ]]; then continue; fi
	case " $alone " in
	*" $number "*) last+=("$file") ;;
	*) list+=("$file") ;;
	esac
done
for file in "${list[@]}"; do
	case "$file" in *22-storm*) echo storm ;; *) echo "one $file" ;; esac
done | xargs -d '\n' -P "${JOBS:-4}" -I{} bash -c '{}'
for file in "${last[@]}"; do one "$file"; done

cat "$out"/*.log
! grep -q '^FAIL' "$out"/*.log
