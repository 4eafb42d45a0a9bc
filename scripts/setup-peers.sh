#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Installs what scripts/bench-peers compares Tally with, beyond what scripts/setup.sh installs:
# Debian's Open MPI and Gloo, and PyTorch, which brings a Gloo of its own, in a Python environment
# below ~/.cache. Says nothing and needs neither network nor root when all is there already.
#
#	scripts/setup-peers.sh          install what is missing
#	scripts/setup-peers.sh --python print the Python that has PyTorch, whether it is there or not
set -euo pipefail

torch=2.13.0
packages=(openmpi-bin libopenmpi-dev libgloo-dev g++ python3-venv)
environment=${XDG_CACHE_HOME:-${HOME:?}/.cache}/tally/peers-torch-$torch

die() { echo "setup-peers: $*" >&2; exit 1; }

quietly() {
	local said
	said=$("$@" 2>&1) || { echo "$said" >&2; echo "setup-peers: '$*' failed" >&2; return 1; }
}

# Those of the packages that are; it is no error that some are not.
installed() {
	dpkg-query --show --showformat '${db:Status-Status} ${Package}\n' "${packages[@]}" \
		2>/dev/null | sed -n 's/^installed //p' | sort
}

install_missing() {
	local missing
	mapfile -t missing < <(printf '%s\n' "${packages[@]}" | sort | comm -23 - <(installed))
	((${#missing[@]})) || return 0
	((EUID == 0)) || die "only root can install ${missing[*]}"
	echo "setup-peers: installing ${missing[*]}"
	export DEBIAN_FRONTEND=noninteractive
	quietly apt-get update
	quietly apt-get install --yes --no-install-recommends "${missing[@]}"
}

# The build for machines without a GPU: others bring gigabytes that nobody needs here. PyTorch has an
# index of its own for it, which pip must know. Made under another name, so that one that was
# interrupted is not taken for a whole one.
install_torch() {
	[[ ! -x $environment/bin/python ]] || return 0
	echo "setup-peers: installing PyTorch $torch in $environment"
	rm -rf "$environment.new"
	mkdir -p "${environment%/*}"
	quietly python3 -m venv "$environment.new"
	quietly "$environment.new/bin/python" -m pip install "torch==$torch+cpu" numpy || die \
		"pip finds no CPU build of PyTorch: say where its index is in PIP_EXTRA_INDEX_URL"
	mv "$environment.new" "$environment"
}

[[ ${1-} != --python ]] || { echo "$environment/bin/python"; exit; }
(($# == 0)) || { sed -n 's/^#\t//p' "$0" >&2; exit 2; }
install_missing
install_torch
