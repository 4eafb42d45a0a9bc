#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# What --help says, the manual and the completion say too, and the other way round.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

build=${TALLY_BUILD:-build}
count=0 failed=0

# Names in this text, sorted: --slots, --json ...
options_in() { grep -oE '(^|[^[:alnum:]-])--[a-z][a-z-]+' | grep -oE -- '--[a-z-]+' | sort -u; }

# The options that a manual page describes or names.
options_of_page() {
	mandoc -Tascii -O width=200 "$1" | sed 's,.\x08,,g' | options_in
}

same() { # WHAT: descriptors 3 and 4 have the same lines, and there are some
	local expected actual
	mapfile -t expected <&3
	mapfile -t actual <&4
	count=$((count + 1))
	if ((${#expected[@]} > 0)) && [ "${expected[*]}" = "${actual[*]}" ]; then
		echo "ok $count - $1"
		return
	fi
	echo "not ok $count - $1"
	diff <(printf '%s\n' "${expected[@]}") <(printf '%s\n' "${actual[@]}") | sed 's/^/# /'
	failed=1
}

# "status", "tenant add" ...: from the overview.
commands() {
	"$build/tallyctl" --help | sed -nE 's/^  ([a-z]+( (add|set|del|list|create|show|token|rotate|restart|kick|place|documents))?)( .*|$)/\1/p'
}

all_help() {
	local command
	"$build/tallyctl" --help
	while read -r command; do
		# shellcheck disable=SC2086
		"$build/tallyctl" $command --help
	done < <(commands)
}

same "every option of tallyctl stands in its manual, and no other" \
	3< <(all_help | options_in) 4< <(options_of_page man/tallyctl.1)

same "every command of tallyctl stands in its manual, and no other" \
	3< <(commands | sort -u) \
	4< <(sed -nE 's/^\.It Cm ((status|reload|cordon|drain|uncordon|links|stats|top|cluster|events|topology|trace|doctor|quota|apply|help|tenant [a-z]+|job [a-z]+))( .*|$)/\1/p' \
		man/tallyctl.1 | sort -u)

for program in tallyctl tallyd tally-node tally-perf tally-sim train; do
	same "$program fails, in words, if nothing can be written to its standard output" \
		3<<<"$program: cannot write to standard output 1" \
		4< <(words=$("$build/$program" --help 2>&1 >/dev/full); echo "${words%: No space*} $?")
done

while read -r command; do
	# shellcheck disable=SC2086
	same "completion offers every option of tallyctl $command, and no other" \
		3< <("$build/tallyctl" $command --help | sed -nE 's/^  (--[a-z-]+).*/\1/p' |
			grep -vx -- --version | sort -u) \
		4< <("$build/tallyctl" __complete $command -- | sort -u)
done < <(commands)

for page in "$build/tally-node:8" "$build/tally-perf:1" "$build/tally-sim:1" "$build/tallyd:8" scripts/tally-configure:8; do
	program=${page%:*}
	name=${program##*/}
	same "every option of $name stands in its manual, and no other" \
		3< <("$program" --help | options_in) \
		4< <(options_of_page "man/$name.${page##*:}")
done

same "no page has a link as Markdown writes it" \
	3<<<none 4< <(grep -nE '\]\([^)]+\)' man/*.[1-8] || echo none)

count=$((count + 1))
# What mandoc has to say about pages of other packages is not ours to mend.
said=$(mandoc -Tlint -Wwarning man/*.[1-8] 2>&1 | grep -v 'outdated mandoc.db')
if [ -n "$said" ]; then
	echo "not ok $count - mandoc finds nothing in the manual"
	printf '# %s\n' "$said"
	failed=1
else
	echo "ok $count - mandoc finds nothing in the manual"
fi
echo "1..$count"
exit "$failed"
