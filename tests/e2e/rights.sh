#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Who may see and change what at a node, by the groups of its operators and tenants, and what the
# log says of who did.
#
#   w0 ──┐
#        ├── n0 (tallyd, tallyctl)
#   w1 ──┘
# shellcheck source=tests/e2e/agent_lib.sh
source "$(dirname "$0")/agent_lib.sh"

# A user who is in no group but this one.
as() { # GROUP tallyctl-arguments...
	setpriv --reuid 65534 --regid 65534 --groups "$(getent group "$1" | cut -d : -f 3)" \
		"$work/tallyctl" --socket "$control" "${@:2}"
}
# The names that this group sees in a list, such as "mine" or "red default".
seen_by() { as "$1" --json "${@:2}" | jq -r 'map(.name) | join(" ")'; }

groups_and_tenants() {
	two_hosts 200mbit
	chmod 711 "$work"
	cp "$build/tallyctl" "$work/tallyctl"
	sed -i "s|^control: .*|control: {socket: $control, group: adm}|" "$work/tallyd.yaml"
	echo 'tenants: [{name: red, slots: 1024, group: games}]' >>"$work/tallyd.yaml"
	start_agent
	ctl tenant add blue --slots 1024 --group audio >/dev/null
	ctl job create theirs --workers 1 --tenant blue >/dev/null
	ctl job create common --workers 1 >/dev/null
}

a_tenants_group_sees_and_changes_its_own_jobs_and_no_others() {
	local command id
	groups_and_tenants
	as games job create mine --workers 1 --tenant red >/dev/null
	as games job token mine >/dev/null
	[[ $(seen_by games job list) == mine && $(seen_by games tenant list) == red ]]
	[[ $(as games --json top --once | jq -c '[.jobs[].name, .tenants[].name]') == '["mine","red"]' ]]
	as games stats --job mine >/dev/null
	refuses "there is no job theirs" as games stats --job theirs
	refuses "there is no job theirs" as games job show theirs
	refuses "there is no tenant blue that you may see" as games stats --tenant blue
	refuses "there is no tenant gray that you may see" as games tenant list gray
	for command in "token theirs" "del theirs" "rotate theirs" "restart theirs" "kick theirs --rank 0" "token nowhere" \
		"create x --workers 1 --tenant blue" "create x --workers 1" "create x --workers 1 --tenant gray"; do
		# shellcheck disable=SC2086
		refuses "only root and members of the group adm may do that, and the group of the job's tenant" \
			as games job $command
	done
	refuses "the name theirs is taken" as games job create theirs --workers 1 --tenant red
	id=$(ctl --json job list theirs | jq '.[0].id')
	refuses "number $id is taken" as games job create also --workers 1 --tenant red --id "$id"
	if grep theirs "$work/words"; then return 1; fi
	for command in "tenant set red --slots 8" "tenant del red" trace cordon drain reload; do
		# shellcheck disable=SC2086
		refuses "only root and members of the group adm may do that" as games $command
	done
	[[ $(seen_by adm job list) == "common mine theirs" && -z $(seen_by staff job list) ]]
	[[ $(seen_by audio job list) == theirs ]]
	refuses "there is no group nobody-has" ctl tenant set blue --group nobody-has
	ctl tenant set blue --group none >/dev/null
	[[ -z $(seen_by audio job list) ]]
	as games job del mine
	[[ $(seen_by adm job list) == "common theirs" ]]
	# Also after a restart; and no reload takes a group that is not there.
	ctl tenant set blue --group audio >/dev/null
	end_agent TERM
	start_agent
	[[ $(seen_by audio job list) == theirs ]]
	sed -i 's/group: games/group: nobody-has/' "$work/tallyd.yaml"
	refuses "tenants: group: there is no group nobody-has" ctl reload
}

# Of a node that is a cluster by itself, which no other one disturbs.
events_are_those_of_jobs_that_one_may_see() {
	sees() { # GROUP JOBS
		[[ $(as "$1" --json events | jq -r '[.events[].job] | unique | map(select(. != "")) | join(" ")') == "$2" ]]
	}
	groups_and_tenants
	end_agent TERM
	echo "cluster: {node: n0, file: $work/n0.cluster}" >>"$work/tallyd.yaml"
	start_agent
	ctl job create ours --workers 1 --cluster >/dev/null
	as games job create mine --workers 1 --cluster --tenant red >/dev/null
	ctl job create hidden --workers 1 --cluster --tenant blue >/dev/null
	sees adm "hidden mine ours"
	sees games mine
	sees audio hidden
	as games --json events | jq -e '[.events[] | select(.kind == "came" and .node == "n0")] | length == 1' >/dev/null
}

troubles_of() { as "$1" --json status | jq -r '.troubles | join(" ")'; }

troubles_name_nobody_whom_the_asker_may_not_see() {
	groups_and_tenants
	as games job create mine --workers 1 --tenant red >/dev/null
	sed -i '/^tenants: /d' "$work/tallyd.yaml"
	printf 'tenants:\n- {name: red, slots: 1024, group: games}\n- {name: blue, slots: 8}\n' >>"$work/tallyd.yaml"
	end_agent TERM
	start_agent
	until_true trouble_has "tenant blue of $work/tallyd.yaml does not count"
	[[ $(troubles_of adm) == *"tenant blue of"* && $(troubles_of audio) == *"tenant blue of"* ]]
	[[ -z $(troubles_of games) && -z $(troubles_of staff) ]]
	end_agent TERM
	sed -i '/name: red/d' "$work/tallyd.yaml"
	start_agent
	until_true trouble_has "1 suspended, such as mine"
	[[ $(troubles_of audio) != *mine* && $(troubles_of audio) != *red* && -z $(troubles_of staff) ]]
}

who_changed_what_is_in_the_log_and_no_secret_is() {
	local token
	groups_and_tenants
	token=$(as games job create mine --workers 1 --tenant red)
	as games job token mine >/dev/null
	logged 'request: uid=65534 pid=[0-9]+ result=done request=.*job-create.*mine.*red'
	# However the request is written, its beginning says what was asked for.
	python3 - "$control" <<-'END' >/dev/null
		import socket, sys
		with socket.socket(socket.AF_UNIX) as s:
		    s.connect(sys.argv[1])
		    s.sendall(b"{" + 1100 * b" " + b'"name": "mine", "do": "job-token"}\n')
		    print(s.recv(4096))
	END
	logged 'uid=0 pid=[0-9]+ result=done request=\{"do":"job-token","name":"mine"\}'
	logged "request: uid=$(id -u) pid=[0-9]+ result=done request=.*tenant-add.*blue"
	refuses "only root" as games job del theirs
	logged 'request refused: uid=65534 pid=[0-9]+ times=1 request=.*job-del.*theirs'
	refuses "there is no job nowhere" ctl job del nowhere
	logged 'result=ENOENT request=.*job-del.*nowhere'
	# Looking is nobody's business, and whoever is refused fills no disk.
	as games job list >/dev/null
	if grep 'request.*job-list' "$work/tallyd.log"; then return 1; fi
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		refuses "only root" as games job del theirs >/dev/null
	done
	(($(grep -c 'request refused' "$work/tallyd.log") < 8))
	((${#token} == 48))
	if grep -F "$token" "$work/tallyd.log"; then return 1; fi
	kill -HUP "$daemon"
	until_true logged "reload by signal: uid=$(id -u) pid=[0-9]+"
}

facts a_tenants_group_sees_and_changes_its_own_jobs_and_no_others \
	events_are_those_of_jobs_that_one_may_see \
	troubles_name_nobody_whom_the_asker_may_not_see \
	who_changed_what_is_in_the_log_and_no_secret_is
