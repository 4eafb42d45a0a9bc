#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# tally-sim as people use it: what it prints, what it writes, and how it refuses.
# shellcheck source=tests/ctl/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

sim() { "$build/tally-sim" "$@"; }
run() { sim run --network "${network:-tapina}" --workload "$work/jobs" "$@"; }

cat >"$work/jobs" <<-END
	job a workers=h1,h2 root=h3 bytes=125M compute=0 iterations=10
	jobs b count=5 every=1 model=resnet50,vgg19 workers=3..5 iterations=5
END

# Without a node, the root's link has both contributions: 250 MB at 1.25 GB/s, ten times.
the_text_has_each_job_beside_each_policy() {
	run --placement none,tapina-mg >"$work/text"
	cat "$work/text"
	grep -E '^a +2 +0\.000 s +[23]\.[0-9]+ s +[12]\.[0-9]+ s$' "$work/text" &&
		grep -E '^bytes on links +[0-9.]+ GB +[0-9.]+ GB$' "$work/text"
}

json_and_csv_say_the_same() {
	diff <(run --placement none,tapina --json |
		jq -r '.policies[] | .policy as $p | .jobs[] | "\($p),\(.job),\(.workers)"') \
		<(run --placement none,tapina --csv | awk -F, 'NR > 1 { print $1 "," $2 "," $4 }')
}

a_seed_repeats_a_run() {
	run --placement tapina-mg --seed 5 --json >"$work/one"
	run --placement tapina-mg --seed 5 --json | diff "$work/one" - &&
		! run --placement tapina-mg --seed 6 --json | diff -q "$work/one" -
}

# The trees that are shown for the job: the one that it got is marked, and its terms are its cost.
an_explanation_has_numbers_that_add_up() {
	run --placement tapina-mg --explain b.2 >"$work/text"
	cat "$work/text"
	awk '/what each tree would cost/ { on = 1 } on && $1 == "*" { sub(/^\*/, "", $0); n++
		sum = $2 + $3 + $4 + $5 + $6 + $7; if (sum - $1 > 0.001 || $1 - sum > 0.001) exit 1 }
		END { exit n != 2 }' "$work/text"
}

refused() { # WORDS PART-OF-ERROR
	# shellcheck disable=SC2086
	sim $1 >"$work/out" 2>"$work/errors"
	(($? == 2)) && grep -F -- "$2" "$work/errors" && [[ ! -s $work/out ]]
}
what_is_wrong_is_named() {
	local w="--workload $work/jobs --placement none" bad=$work/bad
	printf 'host h1 h2\nlink h1 hx\n' >"$bad.topo"
	printf '<graphml>\n<graph>\n<node/>' >"$bad.graphml"
	printf '\njob a bytes=1\n' >"$bad"
	: >"$bad.empty"
	: >"$bad.empty.graphml"
	refused "run --netwerk tapina" "is --network meant?" &&
		refused "run $w --network ring" "--network: no network 'ring': there are fat-tree" &&
		refused "run $w --network starnet" "a dot or a slash in its name, such as './starnet'" &&
		refused "run $w --network $bad.topo" "$bad.topo:2: 'hx': no host, node or switch" &&
		refused "run $w --network $bad.graphml" "$bad.graphml:3: '': an id of a node" &&
		refused "run $w --network $bad.none" "$bad.none: No such file" &&
		refused "run $w --network fat-tree:rate=2.5gbit" "whole numbers, such as 2500mbit" &&
		refused "run $w --network $bad.empty" "$bad.empty:1: the file is empty" &&
		refused "run $w --network $bad.empty.graphml" "$bad.empty.graphml:1: the file is empty" &&
		refused "run --network tapina --workload $bad.empty --placement none" \
			"$bad.empty: the file is empty" &&
		refused "run --network tapina --workload $bad --placement none" \
			"$bad:2: job: no workers=..., which is needed" &&
		refused "run $w --network tapina --explain c" "no job of that name"
}

# A live network may look so for a moment: it is said, and paths are the shortest ones there.
ways_that_lead_round_are_warned_of() {
	local round=$work/round.topo
	{
		printf 'host h1 h2\nnode a b c\nlink a b\nlink b c\nlink c a\nlink h1 a\nlink h2 b\n'
		printf 'way a h2 c\nway c h2 a\n'
	} >"$round"
	echo "job j workers=h1 root=h2 bytes=1M iterations=1" >"$work/short"
	sim run --network "$round" --workload "$work/short" --placement none >"$work/out" 2>"$work/errors" &&
		grep -F "$round:8: packets for h2 come round again to a: shortest paths" "$work/errors" &&
		(($(wc -l <"$work/errors") == 1)) && grep "bytes on links" "$work/out"
}

# A picture is XML; gnuplot's are made where it is installed, and what is missing is said elsewhere.
pictures_are_written() {
	run --placement none --picture "$work/net.svg" >/dev/null &&
		(($(grep -c '<line ' "$work/net.svg") == 28 + 3)) &&
		(($(grep -c '<circle ' "$work/net.svg") == 22 + 3)) &&
		tail -n1 "$work/net.svg" | grep '^</svg>$'
}
# Each node that was in some job's tree at some time, and says in how many.
a_picture_shows_all_that_summed() {
	local nodes
	nodes=$(run --placement tapina-mg --json --picture "$work/net.svg" | jq '.policies[0].nodes')
	((nodes > 1)) && (($(grep -c 'in [1-9][0-9]* trees' "$work/net.svg") == nodes)) || return 1
	sed -n 's/.*: in \([0-9]*\) trees.*/\1/p' "$work/net.svg" | awk '{ n += $1 } END { exit n != 6 }'
}
# `traffic` decides anew whenever a job comes; `online` moves a job only if that pays.
who_runs_moves_only_if_that_pays() {
	echo "jobs b count=40 every=2 model=resnet50,vgg19 workers=3..8 iterations=20" >"$work/many"
	sim run --network fat-tree:k=4 --workload "$work/many" --placement traffic,online --moves --json |
		jq -c '[.policies[].jobs_moved]' | tee "$work/moved"
	jq -e '.[1] > 0 and 2 * .[1] < .[0]' "$work/moved"
}
# What others send takes time away; who looks at it loses less of it.
others_use_the_network_too() {
	echo "jobs b count=20 every=2 model=resnet50 workers=6 iterations=20" >"$work/busy"
	local load
	for load in 0 0.9; do
		sim run --network leaf-spine:leaves=8,spines=4 --workload "$work/busy" --json \
			--placement tapina-mg,traffic --background "$load" |
			jq '.policies[].completion_mean_s'
	done | tee "$work/means" | paste -sd' '
	paste -sd' ' "$work/means" | awk '{ exit !($3 > 1.2 * $1 && $4 > $2 && $4 / $2 < $3 / $1) }'
}
# Packet by packet; with slots for all it does not matter who gets them.
slots_are_shared_as_policies_say() {
	echo "jobs b count=4 bytes=140800 workers=3..5 iterations=3 compute=0.0001" >"$work/few"
	slots() { sim slots --network tapina --workload "$work/few" --spread 100 "$@"; }
	slots --slots 8,8192 --policy static,fcfs,ranges >"$work/text" || return 1
	cat "$work/text"
	awk '/^(static|fcfs|ranges) / { n++; time[$1] = $2; plenty[$1] = $5 }
		END { exit !(n == 3 && 2 * time["fcfs"] < time["static"] &&
			plenty["fcfs"] == plenty["static"] && plenty["ranges"] == plenty["static"]) }' "$work/text" || return 1
	diff <(slots --slots 8 --policy esa --json | jq -r '.results[] | .policy as $p |
			.jobs[] | "\($p),\(.job),\(.workers)"') \
		<(slots --slots 8 --policy esa --csv | awk -F, 'NR > 1 { print $1 "," $3 "," $4 }') ||
		return 1
	slots --slots 7 --policy static,esa --json >"$work/text" 2>"$work/errors"
	(($? == 1)) && [[ $(jq -r '.results[].policy' "$work/text") == esa ]] &&
		grep "7 slots: static needs two for each of 4 jobs" "$work/errors"
}
# Simulations take minutes: where they cannot be written is said before.
outputs_are_opened_first() {
	local w="--workload $work/jobs --placement none --network"
	: >"$work/file"
	grep '^jobs' "$work/jobs" >"$work/anywhere"
	refused "run $w tapina --picture $work/no/net.svg" "--picture: $work/no/net.svg: No such file" &&
		refused "run $w tapina --plot $work/file" "--plot: $work/file: Not a directory" &&
		refused "run ${w/jobs/anywhere} fat-tree:k=32 --picture $work/net.svg" \
			"a picture at most 5000"
}
# Jobs without a root have none to make their results where nobody sums on the way.
a_policy_that_fails_takes_nothing_along() {
	echo "job a workers=h1,h2 root=none bytes=1M iterations=2" >"$work/any"
	sim run --network tapina --workload "$work/any" --placement none,tapina-mg --json \
		>"$work/text" 2>"$work/errors"
	(($? == 1)) && [[ $(jq -r '.policies[].policy' "$work/text") == tapina-mg ]] &&
		(($(grep -c 'job a: policy none gives it no node' "$work/errors") == 1)) || return 1
	sim run --network tapina --workload "$work/any" --placement none >"$work/text" 2>&1
	(($? == 1)) && ! grep -v '^tally-sim: job a: policy none' "$work/text"
}
plots_are_written_where_gnuplot_is() {
	local plot
	command -v gnuplot || { echo "SKIP gnuplot is not installed"; return 0; }
	run --placement none,tapina --plot "$work/plots" >/dev/null || return 1
	for plot in completion links traffic fairness; do
		grep -c '</svg>' "$work/plots/$plot.svg" || return 1
	done
}
it_is_said_where_gnuplot_is_not() {
	PATH=$work run --placement none --plot "$work/data" >/dev/null 2>"$work/errors" || return 1
	grep "gnuplot is not installed: $work/data has data and plots.gp, and no plots" "$work/errors" &&
		[[ -s $work/data/completion.dat && ! -e $work/data/completion.svg ]]
}

the_commands_of_the_document_work() {
	local commands bin
	bin=$(realpath "$build")
	# shellcheck disable=SC2016
	commands=$(sed -n '/^```sh$/,/^```$/p' docs/simulator.md | grep -v '^```')
	(mkdir "$work/doc" && cd "$work/doc" && PATH=$bin:$PATH bash -euc "$commands") >"$work/text"
	cat "$work/text"
	grep '^job j.7 under tapina-mg, at' "$work/text"
}

# The network of the document has two hosts and a node that sums.
the_network_of_the_document_is_one() {
	awk '/^```/ { inside = /xml/; next } inside' docs/simulator.md >"$work/net.graphml"
	echo "job a workers=w0,w1 root=none bytes=1M iterations=1" >"$work/two"
	sim run --network "$work/net.graphml" --workload "$work/two" --placement tapina-mg |
		grep "net.graphml: 2 hosts, 1 node, 2 cables"
}

# Each key of JSON and each column of CSV stands in the document's table.
the_document_has_all_keys() {
	local keys key
	keys=$({ run --placement none --json | jq -r '.. | objects | keys[]' &&
		run --placement none --csv | head -n1 | tr , '\n'
		sim slots --network tapina --workload "$work/few" --slots 8 --json | jq -r '.. | objects | keys[]'
	} | sort -u) || return 1
	(($(wc -w <<<"$keys") > 30)) || return 1
	for key in $keys; do
		grep "^| .*\`$key\`.* |" docs/simulator.md ||
			{ echo "docs/simulator.md has no $key"; return 1; }
	done
}

it_says_its_version() {
	local name version
	read -r name version < <(sim --version)
	[[ $name == tally-sim && "tallyd $version" == "$("$build/tallyd" --version)" ]]
}

a_bar_shows_how_far_it_is() {
	run --placement none --progress 2>"$work/bar" >/dev/null
	tr '\r' '\n' <"$work/bar" | grep -E 'none +\[#+\.*\] +[0-9]+ %  [1-5] of 6 jobs'
}

check "the text has each job beside each policy" the_text_has_each_job_beside_each_policy
check "JSON and CSV say the same" json_and_csv_say_the_same
check "a seed repeats a run" a_seed_repeats_a_run
check "an explanation has numbers that add up" an_explanation_has_numbers_that_add_up
check "what is wrong is named, with file and line" what_is_wrong_is_named
check "ways that lead round are warned of" ways_that_lead_round_are_warned_of
check "a picture is written" pictures_are_written
check "a picture shows all that summed" a_picture_shows_all_that_summed
check "who runs moves only if that pays" who_runs_moves_only_if_that_pays
check "others use the network, too" others_use_the_network_too
check "slots are shared as policies say" slots_are_shared_as_policies_say
check "outputs are opened first" outputs_are_opened_first
check "a policy that fails takes nothing along" a_policy_that_fails_takes_nothing_along
check "plots are written where gnuplot is" plots_are_written_where_gnuplot_is
check "it is said where gnuplot is not" it_is_said_where_gnuplot_is_not
check "the commands of the document work" the_commands_of_the_document_work
check "the network of the document is one" the_network_of_the_document_is_one
check "the document has all keys" the_document_has_all_keys
check "it says its version" it_says_its_version
check "a bar shows how far it is" a_bar_shows_how_far_it_is
finish
