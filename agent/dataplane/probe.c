// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane.h"
#include "pins.h"
#include "probe.h"
#include "common/util.h"

int dataplane_probe_broadcast(void)
{
	_cleanup_(closep) int map = bpf_map_create(BPF_MAP_TYPE_DEVMAP_HASH, "tally_probe",
						   sizeof(uint32_t), sizeof(struct bpf_devmap_val),
						   1, NULL);
	const struct bpf_insn ask[] = {
		{ .code = BPF_LD | BPF_DW,
		  .dst_reg = BPF_REG_1,
		  .src_reg = BPF_PSEUDO_MAP_FD,
		  .imm = map },
		{ 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K,
		  .dst_reg = BPF_REG_3,
		  .imm = BPF_F_BROADCAST },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect_map },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	char frame[64] = { 0 };
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = frame, .data_size_in = sizeof(frame));
	_cleanup_(closep) int program = -1;

	if (map < 0)
		return errno == EINVAL ? -EOPNOTSUPP : -errno;
	program = bpf_prog_load(BPF_PROG_TYPE_XDP, "tally_probe", "GPL", ask,
				sizeof(ask) / sizeof(*ask), NULL);
	if (program < 0 || bpf_prog_test_run_opts(program, &run) < 0)
		return -errno;
	return run.retval == XDP_REDIRECT ? 0 : -EOPNOTSUPP;
}

int dataplane_copies_read(const char *pin, struct dataplane_copy **ret, unsigned int *ret_count,
			  struct why *why)
{
	uint32_t count = 2 * TALLY_CHILDREN_MAX, copies = 0, behind;
	_cleanup_(freep) struct tally_child_key *keys = calloc(count, sizeof(*keys));
	_cleanup_(freep) struct tally_child *children = calloc(count, sizeof(*children));
	_cleanup_(freep) struct dataplane_copy *all = calloc(count, sizeof(*all));
	_cleanup_(closep) int map = -1;
	int r = dataplane_layout_check(pin, why);

	if (r < 0)
		return r;
	if (!keys || !children || !all)
		return -ENOMEM;
	map = bpf_obj_get(pin_path(pin, pin_name[PIN_CHILDREN], ""));
	if (map < 0)
		return why_say(why, map, "%s/%s: %s", pin, pin_name[PIN_CHILDREN], strerror(-map));
	r = bpf_map_lookup_batch(map, NULL, &behind, keys, children, &count, NULL);
	if (r < 0 && r != -ENOENT) /* which says that these were all */
		return why_say(why, r, "%s/%s: %s", pin, pin_name[PIN_CHILDREN], strerror(-r));
	for (uint32_t i = 0; i < count; i++)
		if (!keys[i].ifindex) /* the other entry of each copy is for its port */
			all[copies++] = (struct dataplane_copy){ keys[i].job, children[i] };
	*ret = TAKE_PTR(all);
	*ret_count = copies;
	return 0;
}

/* These are in this file so that tallyctl, which needs no more, links no data plane. */
int dataplane_native(uint32_t ifindex)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	int r = bpf_xdp_query(ifindex, 0, &query);

	return r < 0 ? r : query.attach_mode == XDP_ATTACHED_DRV;
}

bool dataplane_is_native(uint32_t ifindex) { return dataplane_native(ifindex) > 0; }

uint32_t dataplane_other_program(uint32_t ifindex)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	struct bpf_prog_info info = { 0 };
	__u32 length = sizeof(info);
	_cleanup_(closep) int fd = -1;

	if (bpf_xdp_query(ifindex, 0, &query) < 0 || query.attach_mode == XDP_ATTACHED_NONE)
		return 0;
	fd = bpf_prog_get_fd_by_id(query.prog_id);
	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &length) < 0 ||
	    !strncmp(info.name, "tally_", strlen("tally_")) || !strcmp(info.name, "xdp_dispatcher"))
		return 0;
	return query.prog_id;
}

unsigned int dataplane_cpus(void)
{
	int n = libbpf_num_possible_cpus();

	return n > 0 ? n : 1;
}
