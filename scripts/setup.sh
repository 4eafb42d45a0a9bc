#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Installs what building and testing Tally needs on Debian 12; `setup.sh build` leaves out what is
# for tests and the demo, `setup.sh client` all but what workers need. Says nothing and needs neither
# network nor root when all is there already.
set -euo pipefail

packages=(
	# to build the library and tally-perf; programs are built with pkg-config
	make gcc libc6-dev pkg-config
)
[[ ${1-} == client ]] || packages+=(
	# to build the rest, and to run a node
	clang-19 llvm-19 bpftool
	libbpf-dev libxdp-dev libelf-dev zlib1g-dev libnl-3-dev libnl-route-3-dev
	libsystemd-dev libyaml-dev libjansson-dev libmicrohttpd-dev libcap-ng-dev
	libglpk-dev libexpat1-dev libcurl4-openssl-dev
	iproute2
)
[[ ${1-} == @(build|client) ]] || packages+=(
	# to test: units, fuzzers, analysers
	libcmocka-dev libclang-rt-19-dev clang-format-19 clang-tidy-19
	sparse cppcheck shellcheck universal-ctags git prometheus curl mandoc
	strace systemd spin etcd-server etcd-client openssl
	# to run: testbed, demo
	ethtool gnuplot-nox iperf3 iputils-ping jq procps util-linux dataset-fashion-mnist
)

die() { echo "setup: $*" >&2; exit 1; }

must_be_root() { ((EUID == 0)) || die "only root can $1"; }

install_missing() {
	local missing
	command -v apt-get dpkg-query >/dev/null ||
		die "this is not Debian: install these packages by hand: ${packages[*]}"
	mapfile -t missing < <(printf '%s\n' "${packages[@]}" | sort | comm -23 - <(installed))
	((${#missing[@]})) || return 0
	must_be_root "install ${missing[*]}"
	echo "setup: installing ${missing[*]}"
	export DEBIAN_FRONTEND=noninteractive
	quietly apt-get update
	without_services quietly apt-get install --yes --no-install-recommends "${missing[@]}"
}

# Some packages bring a daemon; the tests start their own. Where a policy is set it stays.
without_services() {
	policy=/usr/sbin/policy-rc.d
	[[ ! -e $policy ]] || { "$@"; return; }
	trap 'rm -f "$policy"' EXIT
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod +x "$policy"
	"$@"
	rm "$policy"
}

# Those of the packages that are; it is no error that some are not.
installed() {
	dpkg-query --show --showformat '${db:Status-Status} ${Package}\n' "${packages[@]}" \
		2>/dev/null | sed -n 's/^installed //p' | sort
}

quietly() {
	local said
	said=$("$@" 2>&1) || { echo "$said" >&2; die "'$*' failed"; }
}

# Pinned maps live there, and libxdp's dispatcher; containers and plain machines come without.
mount_bpffs() {
	[[ $(stat -f -c %T /sys/fs/bpf) != bpf_fs ]] || return 0
	must_be_root "mount /sys/fs/bpf"
	mount -t bpf bpf /sys/fs/bpf || die "cannot mount /sys/fs/bpf"
}

install_missing
[[ ${1-} == client ]] || mount_bpffs
