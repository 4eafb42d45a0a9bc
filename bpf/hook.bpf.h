/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The hook that a program is for. The stages are the same for both: a program names its hook in
 * its first line, and hook_xdp.bpf.h or hook_tc.bpf.h has what differs. A header that serves one
 * hook alone includes that one.
 */
#ifndef TALLY_HOOK_BPF_H
#define TALLY_HOOK_BPF_H

#ifndef TALLY_HOOK
#error "define TALLY_HOOK first: \"hook_xdp.bpf.h\" or \"hook_tc.bpf.h\""
#endif
#include TALLY_HOOK

#endif
