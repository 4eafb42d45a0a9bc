/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The keys of a tenant: the same in the configuration, in requests and in the state file. */
#ifndef TALLY_AGENT_TENANT_KEYS_H
#define TALLY_AGENT_TENANT_KEYS_H

#include "common/keys.h"
#include "dataplane_state.h"
#include "tenant.h"

extern const struct key_type key_port; /* the name of an interface */
extern const struct key_type key_point; /* an ingress point */
extern const struct key_type key_tenant_place; /* one at a node of the cluster */
extern const struct key_type key_group; /* the name of a group of users */

/*
 * Takes a list of ingress points into a struct tenant; where a list of one needs no list, a point
 * may also be a mapping of tenant_point_keys. Each is given to the key's check.
 */
int tenant_take_points(struct reading *r, const struct place *at, void *into);

extern const struct keys tenant_point_keys;

#define TENANT_NAME_ROW                                                       \
	{ "name", &key_name, KEY_MEMBER(struct tenant, name), .needed = true, \
	  .meaning = "The tenant's name." }

/* What agents share of a tenant, and what they cannot: ports are those of each node. */
#define TENANT_LIMIT_ROWS                                                                        \
	{ "slots",                                                                               \
	  &key_number,                                                                           \
	  KEY_MEMBER(struct tenant, slots),                                                      \
	  .max = DATAPLANE_SLOTS_MAX,                                                            \
	  .otherwise = "needed, but for `default`: what nobody else reserves",                   \
	  .meaning = "Slots that are reserved for it; 0: its jobs have none of their own, and "  \
		     "are refused where software may not sum them." },                           \
		{ "packets_per_second",                                                          \
		  &key_rate,                                                                     \
		  KEY_MEMBER(struct tenant, packets_per_second),                                 \
		  .max = TENANT_RATE_MAX,                                                        \
		  .initial = "0",                                                                \
		  .meaning = "Packets from and to its workers each second, all together; 0: no " \
			     "limit." },                                                         \
		{ "bytes_per_second",                                                            \
		  &key_rate,                                                                     \
		  KEY_MEMBER(struct tenant, bytes_per_second),                                   \
		  .max = TENANT_RATE_MAX,                                                        \
		  .initial = "0",                                                                \
		  .meaning = "The same in bytes of whole frames." },                             \
		{ "priority",                                                                    \
		  &key_number,                                                                   \
		  KEY_MEMBER(struct tenant, priority),                                           \
		  .max = TENANT_PRIORITY_MAX,                                                    \
		  .initial = "0",                                                                \
		  .meaning = "Of the priority that a worker gives its message, "                 \
			     "(this + 1) / 256 counts for borrowed slots "                       \
			     "(`pool.policy: esa`); 0: none of it." },                           \
		{ "group",                                                                       \
		  &key_group,                                                                    \
		  KEY_MEMBER(struct tenant, group),                                              \
		  .word = "none",                                                                \
		  .brief = true,                                                                 \
		  .later = true,                                                                 \
		  .otherwise = "none",                                                           \
		  .meaning = "Group of users who may see and change the tenant's jobs, and "     \
			     "nobody else's." }

#define TENANT_POINTS_ROW(point_check)            \
	{ "ingress",                              \
	  &key_point,                             \
	  KEY_LIST(struct tenant, point, points), \
	  .take = tenant_take_points,             \
	  .check = (point_check),                 \
	  .brief = true,                          \
	  .otherwise = "anywhere",                \
	  .meaning = "List of up to 16 ingress points: where its messages may come in." }

#define TENANT_QUOTA_ROWS(point_check) TENANT_LIMIT_ROWS, TENANT_POINTS_ROW(point_check)

extern const struct keys tenant_keys; /* of struct tenant */

#endif
