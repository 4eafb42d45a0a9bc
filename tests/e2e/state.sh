#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What tallyd remembers: the state file, whose it is, and what becomes of jobs when it cannot be
# read or written.
#
#   w0 ──┬── n0 (tallyd)
#   w1 ──┘
# shellcheck source=tests/e2e/agent_lib.sh
source "$(dirname "$0")/agent_lib.sh"

pair() {
	agent_network <<-END
		host w0 w1
		node n0
		link w0 n0 rate 1gbit
		link w1 n0 rate 1gbit
	END
}

small=(-d int32 --int-wild -b 4 -e 64K -f 256 -n 3 -w 0)

reloaded() { (($(grep -c 'configuration reloaded' "$work/tallyd.log") == $1)); }

# A suspended job gives its slots back: a result that one worker still lacks then is asked for later.
jobs_whose_tenant_left_the_configuration_come_back_with_it() {
	local loses_slots=yes
	pair
	cp "$work/tallyd.yaml" "$work/without.yaml"
	echo 'tenants: [{name: red, slots: 256}]' >>"$work/tallyd.yaml"
	start_agent
	create_job train 2 --tenant red
	create_job other 2
	join_all train w0 w1 -- -d float32 -b 256K -e 256K -n 8 -w 0 -s $((8 * slow))
	another train 100
	end_agent KILL
	cp "$work/tallyd.yaml" "$work/with.yaml"
	cp "$work/without.yaml" "$work/tallyd.yaml"
	start_agent
	state_is train suspended
	state_is other waiting
	ctl job list | has -E '^train .* red .*suspended'
	grep 'job suspended.* job=train tenant=red' "$work/tallyd.log"
	[[ $(ctl --json status | jq .slots.used) == 0 ]]
	on w1 python3 tests/e2e/joiner.py join "$(bed addr n0 4)" train "$work/train.token" |
		has 'suspended: the configuration of tallyd has no tenant red'
	# And an agent that found it so, and wrote the books.
	end_agent TERM
	start_agent
	state_is train suspended
	cp "$work/with.yaml" "$work/tallyd.yaml"
	kill -HUP "$daemon"
	until_true reloaded 1
	state_is train running
	another train 100
	joined_end
	ctl job del other
}

# What it cannot read it neither takes for a new node nor writes over.
a_state_file_that_cannot_be_read_is_left_alone() {
	local what
	pair
	start_agent
	create_job train 2
	end_agent TERM
	start_agent
	end_agent TERM
	cp "$work/state.json" "$work/good.json"
	for what in 0 10 "$(($(stat -c %s "$work/good.json") - 3))"; do
		head -c "$what" "$work/good.json" >"$work/state.json"
		refuses "put $work/state.json.old in its place" on n0 "$build/tallyd" --config "$work/tallyd.yaml"
		[[ $(stat -c %s "$work/state.json") == "$what" ]]
	done
	cp -p "$work/state.json.old" "$work/state.json"
	start_agent
	state_is train waiting
	join_all train w0 w1 -- "${small[@]}"
	joined_end
}

a_second_agent_is_refused() { # FILE: that is the first one's
	sed "s,^pin: .*,pin: $pin-other,; s,$control,$work/c,; s,$join,$work/j,; s,9464,9465,; s,^state: .*,state: $1," \
		"$work/tallyd.yaml" >"$work/second.yaml"
	refuses "is another tallyd's, process $daemon: give each tallyd a file of its own" \
		on n0 timeout 20 "$build/tallyd" --config "$work/second.yaml"
}

two_agents_have_no_state_file_in_common() {
	pair
	start_agent
	create_job train 2
	a_second_agent_is_refused "$work/state.json"
	join_all train w0 w1 -- "${small[@]}"
	joined_end
}

# As after `cp`, and as where the file is to be on another disk.
a_state_file_that_somebody_put_there_is_closed_to_others_and_a_link_followed() {
	pair
	start_agent
	create_job train 2
	end_agent TERM
	chmod 644 "$work/state.json"
	start_agent
	grep 'others could read the state file' "$work/tallyd.log"
	[[ $(stat -c %a "$work/state.json" "$work/state.json.old") == $'600\n600' ]]
	end_agent TERM
	mkdir "$work/real"
	mv "$work/state.json" "$work/real/books.json"
	ln -s real/books.json "$work/state.json"
	start_agent
	create_job other 2
	a_second_agent_is_refused "$work/real/books.json"
	ctl reload
	[[ -L $work/state.json ]]
	has other "$work/real/books.json"
	end_agent TERM
	mv "$work/real" "$work/away" # as when it is not mounted
	refuses "is its disk mounted?" on n0 timeout 20 "$build/tallyd" --config "$work/tallyd.yaml"
	mv "$work/away" "$work/real"
	start_agent
	state_is train waiting
	state_is other waiting
}

does_not_fit() { # WORDS
	local option
	for option in --check --verbose; do
		refuses "$1: raise slots: in tallyd.yaml to" \
			on n0 timeout 20 "$build/tallyd" --config "$work/tallyd.yaml" "$option"
		[[ $(<"$work/words") != *state.json.old* && $(<"$work/words") != *"move it away"* ]]
	done
}

books_that_no_longer_fit_are_left_alone_and_the_key_to_raise_is_named() {
	pair
	start_agent
	ctl quota default --slots 3000 >/dev/null
	create_job train 2
	end_agent TERM
	cp "$work/tallyd.yaml" "$work/first.yaml"
	sed -i 's/^slots: .*/slots: 300/' "$work/tallyd.yaml"
	does_not_fit "tenants keep 3000 slots, by quota or in running jobs (default 3000), and the node has 300"
	cp "$work/first.yaml" "$work/tallyd.yaml"
	echo 'tenants: [{name: huge, slots: 2000}]' >>"$work/tallyd.yaml"
	does_not_fit "tenants keep 5000 slots, by quota or in running jobs (default 3000, huge 2000), and the node has 4096"
	sed -i 's/^slots: .*/slots: 5000/' "$work/tallyd.yaml"
	start_agent
	state_is train waiting
}

trouble_is() { [[ $(ctl --json status | jq -r '.troubles | join(" ")') == *"$1"* ]]; }
no_trouble() { [[ $(ctl --json status | jq '.troubles | length') == 0 ]]; }
red_is() { [[ $(ctl --json tenant list red | jq -c '.[0] | [.from, .slots, .bytes_per_second, .ingress]') == "$1" ]]; }

a_tenant_that_tallyctl_made_counts_before_one_of_the_file() {
	local made='["runtime",600,1000000000,["w0","w1"]]'
	pair
	start_agent
	ctl tenant add red --slots 600 --ingress w0 --ingress w1 --bytes-per-second 1G >/dev/null
	create_job train 2 --tenant red
	cp "$work/tallyd.yaml" "$work/first.yaml"
	echo 'tenants: [{name: red, slots: 300}]' >>"$work/tallyd.yaml"
	cp "$work/tallyd.yaml" "$work/second.yaml"
	refuses "tenant red exists already, created by tallyctl" ctl reload
	end_agent TERM
	on n0 "$build/tallyd" --config "$work/tallyd.yaml" --check | has "tenant red of $work/tallyd.yaml does not count"
	start_agent
	red_is "$made"
	until_true trouble_is "tallyctl tenant del red puts that of the file in its place"
	(($(grep -c 'tenant of the configuration does not count' "$work/tallyd.log") == 1))
	refuses "does not count" ctl doctor w0
	end_agent TERM
	cp "$work/first.yaml" "$work/tallyd.yaml"
	start_agent # as if nobody had tried
	red_is "$made"
	state_is train waiting
	end_agent KILL
	cp "$work/second.yaml" "$work/tallyd.yaml"
	start_agent
	join_all train w0 w1 -- -d float32 -b 256K -e 256K -n 8 -w 0 -s $((4 * slow))
	another train 50
	ctl tenant del red
	red_is '["config",300,0,[]]'
	until_true no_trouble
	another train 50
	joined_end
}

metric_is() { on n0 curl -s http://127.0.0.1:9464/metrics | has -x "tally_$1 $2"; }
epoch_of() { ctl --json job list "$1" | jq '.[0].epoch'; }

# What changes the books needs the disk. A run does not; and if tallyd dies meanwhile, the epoch of
# a run that no disk knows is not used again.
a_full_disk_refuses_changes_and_no_runs() {
	local epoch
	pair
	mkdir "$work/disk"
	mount -t tmpfs -o size=64k "tally-$$" "$work/disk"
	trap 'umount -l "$work/disk"; tear_down' EXIT
	sed -i "s,^state: .*,state: $work/disk/state.json," "$work/tallyd.yaml"
	start_agent
	create_job train 2
	metric_is state_saved 1
	head -c 64K /dev/zero >"$work/disk/full" 2>/dev/null || true
	refuses "cannot write the state file $work/disk/state.json: No space left" \
		ctl job create more --workers 2
	until_true metric_is state_saved 0
	join_all train w0 w1 -- "${small[@]}"
	joined_end
	refuses "cannot write the state file" ctl doctor w0
	join_all train w0 w1 -- -d float32 -b 256K -e 256K -n 8 -w 0 -s $((30 * slow)) --timeout 2000
	another train 50
	epoch=$(epoch_of train)
	end_agent KILL
	start_agent
	grep 'the state file does not know them: runs=1 job=train' "$work/tallyd.log"
	[[ $(epoch_of train) == "$epoch" ]]
	kill "${worker[@]}" 2>/dev/null || true
	join_all train w0 w1 -- "${small[@]}"
	joined_end
	rm "$work/disk/full"
	until_true metric_is state_saved 1
	create_job more 2
}

# As after a package's upgrade: the maps are another version's, whose tallyd is not there any more.
a_node_of_another_layout_is_made_anew_and_its_runs_go_on() {
	local loses_slots=1
	pair
	start_agent
	create_job train 2
	join_all train w0 w1 -- -d float32 -b 256K -e 256K -n 8 -w 0 -s $((6 * slow))
	another train 50
	end_agent KILL
	rm "$pin-n0/constants"
	bpftool map create "$pin-n0/constants" type array key 4 value 64 entries 1 name forged
	on n0 "$build/tallyd" --config "$work/tallyd.yaml" --check | has "has maps of layout 1,"
	mv "$work/state.json" "$work/away.json"
	refuses "may run jobs, but their state file" on n0 "$build/tallyd" --config "$work/tallyd.yaml"
	mv "$work/away.json" "$work/state.json"
	start_agent
	grep 'node created.* instead_of="another layout"' "$work/tallyd.log"
	state_is train running
	another train 50
	joined_end
}

facts jobs_whose_tenant_left_the_configuration_come_back_with_it \
	a_state_file_that_cannot_be_read_is_left_alone \
	two_agents_have_no_state_file_in_common \
	a_state_file_that_somebody_put_there_is_closed_to_others_and_a_link_followed \
	books_that_no_longer_fit_are_left_alone_and_the_key_to_raise_is_named \
	a_tenant_that_tallyctl_made_counts_before_one_of_the_file \
	a_full_disk_refuses_changes_and_no_runs \
	a_node_of_another_layout_is_made_anew_and_its_runs_go_on
