# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What the scripts of the VM testbed share: the list of kernels, and apt for other machines.
# Functions answer in variables of theirs.
# shellcheck disable=SC2034

here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
root=$(dirname "$here")
cache=$root/build/vm

die() { echo "vm-testbed: $*" >&2; exit 1; }
skip() { echo "vm-testbed: SKIP $*" >&2; exit 77; }

# name, arch, from, package, rungs, cpu: globals, set to what the list says of a kernel.
kernel_find() { # NAME
	while read -r name arch from package rungs cpu; do
		[[ $name == "$1" ]] && return
	done < <(kernels)
	die "no kernel '$1'; there are: $(kernels | cut -d ' ' -f 1 | paste -sd ' ')"
}

kernels() { sed 's/#.*//; /^[[:space:]]*$/d; s/[[:space:]]\+/ /g' "$here/kernels"; }

# triplet, qemu, machine, console, cpu: globals, by arch.
arch_facts() {
	case $arch in
	amd64)
		# Without no_timer_check, a guest that a busy host lets wait panics: it counts ticks.
		triplet=x86_64-linux-gnu qemu=qemu-system-x86_64 console="ttyS0 no_timer_check"
		machine=q35 cpu=${cpu:-max}
		;;
	arm64) # the cores of a BlueField-2
		triplet=aarch64-linux-gnu qemu=qemu-system-aarch64 console=ttyAMA0
		machine=virt,gic-version=3 cpu=${cpu:-cortex-a72}
		;;
	*) die "kernel $name: unknown architecture '$arch'" ;;
	esac
}

is_native() { [[ $arch == "$(dpkg --print-architecture)" ]]; }

# Where programs and their libraries are: this machine, or unpacked packages of another.
sysroot() { if is_native; then echo ""; else echo "$cache/sysroot-$arch"; fi; }

# Where our own programs of that architecture are.
build_folder() { if is_native; then echo "$root/build"; else echo "$cache/build-$arch"; fi; }

# An apt of its own: sources of another suite or architecture, nothing is ever installed.
# Sets `apt`, the options, and fetches the lists if they are not there.
apt_prepare() { # FROM
	local state=$cache/apt/$1-$arch archive
	mkdir -p "$state"/{lists,archives}/partial
	apt=(-o "APT::Architecture=$arch" -o "APT::Architectures=$arch" -o "Dir::State=$state"
		-o "Dir::State::Lists=$state/lists" -o "Dir::State::status=/dev/null"
		-o "Dir::Cache=$state" -o "Dir::Cache::archives=$state/archives"
		-o "Acquire::Languages=none" -o "Acquire::Retries=2" -o "APT::Sandbox::User=root"
		-o "Debug::NoLocking=1" -o "Dir::Etc::preferencesparts=/dev/null")
	if [[ $1 != here ]]; then
		# Another suite, from where this machine has its own.
		archive=$(apt-get indextargets --format '$(REPO_URI)' \
			'Created-By: Packages' 'Label: Debian' | sort -u | head -n 1)
		echo "deb $archive $1 main" >"$state/sources.list"
		apt+=(-o "Dir::Etc::SourceList=$state/sources.list" -o "Dir::Etc::SourceParts=/dev/null")
	fi
	[[ -e $state/lists.done ]] && return
	apt-get "${apt[@]}" -qq update >"$state/log" 2>&1 || skip "no package lists of $1: $(tail -1 "$state/log")"
	touch "$state/lists.done"
}

# Lists get old, and what they name disappears.
apt_forget() { rm -f "$cache/apt/$1-$arch/lists.done"; }
