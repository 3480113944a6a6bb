# What every check begins with: a tmux of its own, and words to say what must be
# seen in it. A check says `check NUMBER TITLE`, then what it wants; it prints
# what it saw, and ends with one line: ok or FAIL.
#
# DROVER and LOGS are the binaries of drover and of the folder logs.
set -u
export LC_ALL=C.UTF-8
unset CI NO_COLOR DROVER_SANDBOX 2>/dev/null || true

D=$(mktemp -d)
S=drover-tty-$$
END=END-OF-RUN
failures=0

t() { tmux -L "$S" -f /dev/null -u "$@"; }
stop() {
	local s
	for s in "$S" "$S-b"; do tmux -L "$s" kill-server 2>/dev/null; done
	rm -rf "$D" 2>/dev/null || { sleep 0.5; rm -rf "$D"; } # somebody was still writing
}
trap stop EXIT
# A config and a state of nobody.
export XDG_CONFIG_HOME=$D/config XDG_STATE_HOME=$D/state HOME=$D

check() { number=$1 title=$2; }
saw() { printf '   %s\n' "$*"; }
fail() {
	failures=$((failures + 1))
	printf '   WRONG: %s\n' "$*"
}
# verdict is the last line of a check.
verdict() {
	if [ "$failures" -eq 0 ]; then
		printf 'ok   %s %s\n' "$number" "$title"
		exit 0
	fi
	printf -- '--- screen\n'
	screen | sed 's/^/   /'
	printf 'FAIL %s %s\n' "$number" "$title"
	exit 1
}

# film NAME writes a stream and prints the command that plays it.
film() {
	[ -s "$D/$1.jsonl" ] || "$LOGS" "$1" >"$D/$1.jsonl"
	printf '%s events render --play %s %s' "$DROVER" "$D/$1.jsonl" "${2:-}"
}

# start runs a command in a terminal of so many columns and rows, below forty
# lines of older output.
start() {
	printf 'seq -f OLD%%02g 1 40\n%s\necho %s rc=$?\nexec sleep 600\n' "$1" "$END" >"$D/pane.sh"
	t start-server \; set -g exit-empty off \; set -g history-limit 50000 \; set -g status off \; \
		new-session -d -s a -x "${2:-80}" -y "${3:-24}" "sh $D/pane.sh"
}
# shell runs a shell with job control in the terminal instead.
shell() {
	t start-server \; set -g exit-empty off \; set -g history-limit 50000 \; set -g status off \; \
		new-session -d -s a -x "${1:-80}" -y "${2:-24}" "env PS1='PROMPT ' bash --norc --noprofile -i"
	until_screen PROMPT 10
}
type_() { t send-keys -t a "$@"; }
hist() { t capture-pane -p -J -S - -t a; }
rows() { t capture-pane -p -S - -t a; }
screen() { t capture-pane -p -t a; }
colours() { t capture-pane -p -e -S - -t a; }
resize() { t resize-window -t a -x "$1" -y "$2"; }

# until_screen TEXT SECONDS waits for a text on the screen.
until_screen() {
	local i
	for i in $(seq $((${2:-10} * 20))); do
		screen | grep -qF -- "$1" && return 0
		sleep 0.05
	done
	fail "'$1' was not seen within ${2:-10} s"
	return 1
}
# over waits for the end of the run.
over() {
	local i
	for i in $(seq $((${1:-30} * 10))); do
		hist | grep -qF "$END" && return 0
		sleep 0.1
	done
	fail "the run did not end within ${1:-30} s"
}
# sample keeps what the screen shows, again and again, until the run is over or
# so many seconds have passed.
sample() {
	local i=0 until=$((SECONDS + ${1:-30}))
	mkdir -p "$D/samples"
	while [ "$SECONDS" -lt "$until" ]; do
		i=$((i + 1))
		screen >"$D/samples/$(printf %05d $i)"
		grep -qF "$END" "$D/samples/$(printf %05d $i)" && return 0
		sleep "${2:-0.08}"
	done
}
# seen tells whether some sample holds a line that matches.
seen() { grep -qE -- "$1" "$D"/samples/*; }

count() { hist | grep -cF -- "$1"; }
once() {
	local text n
	for text in "$@"; do
		n=$(count "$text")
		[ "$n" -eq 1 ] || fail "'$text' is there $n times, not once"
	done
}
has() { hist | grep -qF -- "$1" || fail "'$1' is not in the history"; }
hasnt() { ! hist | grep -qF -- "$1" || fail "'$1' is in the history"; }
# order wants texts in the history, one after the other.
order() {
	local last=0 text at
	for text in "$@"; do
		at=$(hist | grep -nF -- "$text" | head -n 1 | cut -d: -f1)
		if [ -z "$at" ]; then
			fail "'$text' is missing"
		elif [ "$at" -le "$last" ]; then
			fail "'$text' comes too early"
		else
			last=$at
		fi
	done
}

# live is how a row looks that must never stay behind.
live='^ *(◌|~|▸) |^ {2,}(turn [0-9]+ ·|waiting for the model|[0-9]+ running ·)'
stale() { hist | grep -cE "$live"; }
# clean wants the history as it has to be after any run: the older output as it
# was, and nothing that was meant to be drawn over.
clean() {
	local n olds
	n=$(stale)
	if [ "$n" -gt "${1:-0}" ]; then
		fail "$n stale rows"
		hist | grep -E "$live" | sed 's/^/      /'
	fi
	olds=$(hist | grep -oE '^OLD[0-9]{2}$' | tr '\n' ' ')
	[ "$olds" = "$(seq -f OLD%02g 1 40 | tr '\n' ' ')" ] || fail "the older output is damaged: $olds"
}
# region counts the rows of the region in a sample: from its first live row on.
region() { awk -v live="$live|^ (✓|✗|⊘|│|┃|…|\\?) | (│|…)" '$0 ~ /^ / && NF {n++} END {print n+0}' "$1"; }
most_rows() {
	local f n most=0
	for f in "$D"/samples/*; do
		grep -qF "$END" "$f" && continue
		n=$(region "$f")
		[ "$n" -gt "$most" ] && most=$n
	done
	echo "$most"
}

# script makes a folder to work in, with a model that answers with the given
# lines, one after the other, and prints the beginning of a command that runs
# it. The policy asks for what touches a file named asked, and for git push.
script() {
	mkdir -p "$D/work"
	printf '%s\n' "$@" >"$D/model.jsonl"
	cat >"$D/ask.yaml" <<-'Y'
		version: 1
		default: allow
		rules:
		  - {id: touching, effect: ask, argv: [touch], reason: Files are touched by people.}
		  - {id: push-asks, effect: ask, argv: [git, push], reason: Pushes are reviewed.}
	Y
	printf 'cd %s && %s run --model script:%s' "$D/work" "$DROVER" "$D/model.jsonl"
}
# runs is a response that runs commands, all at once.
runs() {
	local c list=
	for c in "$@"; do list="$list,{\"name\":\"exec_command\",\"args\":{\"cmd\":\"$c\"}}"; done
	printf '{"tool_calls":[%s]}' "${list#,}"
}
