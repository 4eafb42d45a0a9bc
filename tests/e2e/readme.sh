#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What README says under "Use it", done as it stands there: its commands on a node, its
# environment and its C on two workers.
#
#   eth1 ──┐
#          ├── n0 (tallyd)        hosts are called as the node's ports to them
#   eth2 ──┘
#
# `make install` may write where it likes: all this runs on a machine's file system of which
# writes go to memory, with a BPF file system and a /run of its own.
if [[ -z ${README_OWN-} ]]; then
	README_OWN=1 exec unshare --mount --propagation private "$0" "$@"
fi
unset README_OWN MAKEFLAGS MAKELEVEL

# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

layers=$(mktemp -d)
mount -t tmpfs layers "$layers"
for place in /usr /etc /var "$PWD"; do
	upper=$(mktemp -d -p "$layers") worked=$(mktemp -d -p "$layers")
	mount -t overlay overlay -o "lowerdir=$place,upperdir=$upper,workdir=$worked" "$place" || exit
done
mount -t tmpfs run /run && mount -t bpf bpf /sys/fs/bpf || exit
cd "$PWD" || exit # what is mounted there now
umount -l "$layers"
rmdir "$layers"

detach=--detach # or tallyd leaves the node as it is

# The lines of README's blocks of this language under "Use it": block NUMBER, from 1.
block() { # LANGUAGE NUMBER
	sed -n '/^## Use it/,/^## Find/p' README.md |
		awk -v begin="\`\`\`$1" -v wanted="$2" '
			/^```/ && inside { inside = 0; next }
			$0 == begin { inside = ++seen == wanted; next }
			inside'
}

# There is no systemd here: what it would do with the unit that is installed.
systemctl() {
	local command
	case $* in
	"enable --now tallyd")
		read -ra command < <(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/tallyd.service)
		# shellcheck disable=SC2086
		scripts/testbed exec n0 "${command[@]}" $detach 2>"$work/tallyd.log" &
		daemon=$!
		until_true on n0 tallyctl status >/dev/null || { cat "$work/tallyd.log"; return 1; }
		;;
	"disable --now tallyd") kill "$daemon" && wait "$daemon" ;;
	*) echo "systemctl $*: not known here"; return 1 ;;
	esac
}

# One command of README, on n0; make is the machine's.
type_command() {
	echo "# $*"
	case $* in
	make* | systemctl*) eval "$*" ;;
	*) on n0 bash -c "$*" ;;
	esac
}

# A machine that has never seen Tally.
fresh_machine() {
	rm -rf /sys/fs/bpf/tally # as a fact that failed may have left it
	make --no-print-directory -s uninstall
	rm -rf /etc/tally /var/lib/tally resnet.token
	if command -v tallyd; then return 1; fi
	bed up /dev/stdin <<-END
		host eth1 eth2
		node n0
		link eth1 n0 rate 1gbit
		link eth2 n0 rate 1gbit
	END
}

start_as_readme_says() {
	local line typed=0
	fresh_machine
	while read -r line; do
		type_command "$line"
		typed=$((typed + 1))
	done < <(block sh 1)
	((typed == 5))
}

# COMMAND on both workers with the environment that README sets; output in $work/HOST.
on_workers() {
	local host code=0 pids=()
	for host in eth1 eth2; do
		on "$host" bash -c "$(block sh 2 | grep '^export '); $*" >"$work/$host" 2>&1 &
		pids+=($!)
	done
	for host in "${pids[@]}"; do
		wait "$host" || code=1
	done
	((code == 0)) || { head -n 50 "$work/eth1" "$work/eth2" "$work/tallyd.log"; return 1; }
}

node_summed() { (($(on n0 tallyctl --json stats --job resnet | jq .COMPLETED.packets) > $1)); }

five_commands_make_a_node_and_two_workers_get_their_sums() {
	start_as_readme_says
	on_workers "$(block sh 2 | sed '/^export /d; s/ *#.*//') --end 64K"
	grep -hE '^ *[0-9]' "$work/eth1" "$work/eth2"
	node_summed 100
}

the_program_in_readme_builds_against_what_is_installed_and_runs() {
	start_as_readme_says
	{
		printf '#include %s\n' '<err.h>' '<stdio.h>' '<tally/tally.h>'
		echo 'int main(void) { float gradient[1000]; const size_t count = 1000;'
		echo 'for (int i = 0; i < 1000; i++) gradient[i] = i;'
		block c 1 | sed 's|^tally_close|printf("rank %u of %u\\n", tally_rank(t), tally_workers(t));&|'
		echo 'for (int i = 0; i < 1000; i++) if (gradient[i] != i) errx(1, "wrong"); }'
	} >"$work/program.c"
	# shellcheck disable=SC2046
	gcc -o "$work/program" "$work/program.c" $(pkg-config --cflags --libs libtally)
	readelf -d "$work/program" | grep -F 'libtally.so.0'
	on_workers "$work/program"
	[[ $(sort "$work/eth1" "$work/eth2") == "rank 0 of 2"$'\n'"rank 1 of 2" ]]
	node_summed 0
}

files() { find /usr /etc ! -type d -name '*tally*' | sort; }

uninstall_leaves_nothing_but_the_configuration() {
	fresh_machine
	files >"$work/before"
	make --no-print-directory -s install
	files | comm -13 "$work/before" - >"$work/brought"
	for file in sbin/tallyd bin/tallyctl lib/libtally.so.0 share/man/man8/tallyd.8; do
		grep -x "/usr/$file" "$work/brought"
	done
	echo "# mine" >>/etc/tally/tallyd.yaml
	make --no-print-directory -s install
	make --no-print-directory -s uninstall
	grep -x '# mine' /etc/tally/tallyd.yaml
	rm /etc/tally/tallyd.yaml
	cmp "$work/before" <(files)
}

# shellcheck disable=SC2016 # marks of the page
files_of_page() { sed -n '/^## What stays/,/^## /s/^| `\([^`]*\)`.*/\1/p' docs/out-of-service.md; }

# shellcheck disable=SC2016
commands_of_page() { sed -n '/^```sh$/,/^```$/{/^```/d;p}' docs/out-of-service.md; }

a_node_is_taken_out_of_service_as_the_page_says() {
	local line typed=0 detach='' file
	start_as_readme_says
	refuses_uninstall
	systemctl disable --now tallyd
	refuses_uninstall # sums go on without tallyd
	systemctl enable --now tallyd
	while read -r line; do
		type_command "$line"
		typed=$((typed + 1))
	done < <(commands_of_page)
	((typed == 4))
	[[ ! -e /sys/fs/bpf/tally ]]
	if on n0 ip -d link | grep xdp || command -v tallyd tallyctl tally-node tally-perf; then return 1; fi
	for file in $(files_of_page); do
		[[ -e $file ]] || { echo "$file is not there any more"; return 1; }
	done
	id -u tally
	# Who comes back finds jobs, and the node as it was left.
	make --no-print-directory -s install
	detach=--detach
	systemctl enable --now tallyd
	on n0 tallyctl status | grep 'cordoned'
	on n0 tallyctl uncordon
	on n0 tallyctl job token resnet | cmp - resnet.token
}
refuses_uninstall() {
	local words='Do first: tallyctl drain; systemctl disable --now tallyd; tally-node detach --pin /sys/fs/bpf/tally'
	if make --no-print-directory -s uninstall >"$work/words" 2>&1; then
		return 1
	fi
	grep -F "$words" "$work/words" && command -v tallyd tally-node
}

a_package_is_made_in_destdir_alone() {
	fresh_machine
	files >"$work/before"
	make --no-print-directory -s install DESTDIR="$work/root" PREFIX=/usr/local
	cmp "$work/before" <(files)
	grep -x 'ExecStart=/usr/local/sbin/tallyd .*' "$work/root/usr/local/lib/systemd/system/tallyd.service"
	"$work/root/usr/local/sbin/tallyd" --check --config "$work/root/etc/tally/tallyd.yaml"
	make --no-print-directory -s uninstall DESTDIR="$work/root" PREFIX=/usr/local
	[[ $(find "$work/root" ! -type d) == "$work/root/etc/tally/tallyd.yaml" ]]
}

tally_configure_changes_what_it_understands_or_nothing() {
	local file=/etc/tally/tallyd.yaml
	fresh_machine
	make --no-print-directory -s install
	echo "slots: 512 # mine" >>"$file"
	on n0 tally-configure eth2 --service fd77::1
	grep -x 'ports: \[eth2\]' "$file"
	grep -x 'service: "fd77::1"' "$file"
	grep -x 'slots: 512 # mine' "$file"
	on n0 tally-configure eth1 # whose address it finds
	grep -x 'service: "10.77.1.254"' "$file"

	refused "eth9: there is no such interface" eth9
	refused "10.9.9.9 is not an address of this machine" eth1 --service 10.9.9.9
	printf 'service: 10.77.0.1\nports:\n  - eth1\n' >"$file"
	refused "$file:3: " eth2
	rm "$file"
	on n0 tally-configure eth1 eth2 --service 10.77.0.1
	tallyd --check
}

refused() { # WORDS ARGUMENTS...: and the file is as it was
	local words=$1
	shift
	cp "$file" "$work/config"
	if on n0 tally-configure "$@" 2>"$work/words"; then
		return 1
	fi
	grep -F -- "$words" "$work/words" || { cat "$work/words"; return 1; }
	cmp "$file" "$work/config"
}

facts five_commands_make_a_node_and_two_workers_get_their_sums \
	the_program_in_readme_builds_against_what_is_installed_and_runs \
	uninstall_leaves_nothing_but_the_configuration \
	a_node_is_taken_out_of_service_as_the_page_says \
	a_package_is_made_in_destdir_alone \
	tally_configure_changes_what_it_understands_or_nothing
