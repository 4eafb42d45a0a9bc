#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Installs what vm-testbed/ needs on Debian 12, beyond what scripts/setup.sh installs. Says
# nothing and needs neither network nor root when all is there already.
set -euo pipefail

packages=(
	qemu-system-x86 qemu-system-arm				# emulators
	busybox-static cpio kmod xz-utils zstd binutils		# guests are packed with
	gcc-aarch64-linux-gnu					# programs for arm64
	gpgv mawk diffutils systemd xdp-tools			# kernels of other suites; in guests
)

die() { echo "setup-vm: $*" >&2; exit 1; }

quietly() {
	local said
	said=$("$@" 2>&1) || { echo "$said" >&2; die "'$*' failed"; }
}

# Those of the packages that are; it is no error that some are not.
installed() {
	dpkg-query --show --showformat '${db:Status-Status} ${Package}\n' "${packages[@]}" \
		2>/dev/null | sed -n 's/^installed //p' | sort
}

"$(dirname "$0")/setup.sh"
mapfile -t missing < <(printf '%s\n' "${packages[@]}" | sort | comm -23 - <(installed))
((${#missing[@]})) || exit 0
((EUID == 0)) || die "only root can install ${missing[*]}"
echo "setup-vm: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
quietly apt-get update
quietly apt-get install --yes --no-install-recommends "${missing[@]}"
