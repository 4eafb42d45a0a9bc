# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Completion of tallyctl for bash. What may come next, tallyctl itself knows; the names of
# tenants, jobs and ports it asks tallyd for.

_tallyctl() {
	local current=${COMP_WORDS[COMP_CWORD]} program=${COMP_WORDS[0]/#\~/$HOME} candidates
	mapfile -t candidates < <("$program" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
	[[ $current != = ]] || current=
	if [[ ${candidates[0]-} == :files ]]; then
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
	else
		mapfile -t COMPREPLY < <(compgen -W "${candidates[*]}" -- "$current")
	fi
}

complete -F _tallyctl tallyctl
