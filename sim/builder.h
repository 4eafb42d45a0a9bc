/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How networks are put together: machine after machine, cable after cable. Pure. What goes wrong
 * (no memory, too many) is kept, and said once, by builder_end().
 */
#ifndef TALLY_SIM_BUILDER_H
#define TALLY_SIM_BUILDER_H

#include "topology.h"

enum {
	BUILDER_WAYS_MAX = 1 << 22,
};

/* What a text says; one way for each cable to `next` comes of it. */
struct builder_way {
	uint32_t at, to, next;
	unsigned int line;
};

struct builder {
	struct topology_defaults defaults;
	struct graph_machine *machine;
	char (*name)[TOPOLOGY_NAME_BYTES];
	struct graph_link *link;
	struct builder_way *way;
	size_t machines, links, ways;
	size_t machine_room, name_room, link_room, way_room; /* elements that there is memory for */
	int error;
};

/* Their number; 0 after an error. Names are cut to TOPOLOGY_NAME_BYTES. */
__attribute__((format(printf, 3, 4))) uint32_t builder_machine(struct builder *b,
							       enum graph_kind kind,
							       const char *format, ...);

/* Two links; rate in bytes a second, 0: the default. */
void builder_cable(struct builder *b, uint32_t from, uint32_t to, double rate);

/* Packets for `to` go from `at` to `next`, by all cables between them. False: there is none yet. */
bool builder_way(struct builder *b, const struct builder_way *way);

/* 0, or the first error: -ENOMEM, -E2BIG, -EINVAL. The builder is empty in any case. */
int builder_end(struct builder *b, struct topology **ret);

void builder_free(struct builder *b);

#endif
