/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Print tallyd's results for people, to `out`. They fail with -ENOMEM only. */
#ifndef TALLY_CTL_SHOW_H
#define TALLY_CTL_SHOW_H

#include "ctl.h"
#include "table.h"

int show_status(const struct ctl *ctl, const json_t *result, FILE *out, struct why *why);
/* One tenant, or a list of them. */
int show_tenants(const struct ctl *ctl, const json_t *result, FILE *out, struct why *why);
int show_jobs(const struct ctl *ctl, const json_t *result, FILE *out, struct why *why);
int show_job(const struct ctl *ctl, const json_t *result, FILE *out, struct why *why);
/* Ranks of a job that the others wait for, a line each; nothing, if there are none. */
void show_late(const json_t *job, FILE *out);
int show_stats(const struct ctl *ctl, const json_t *result, FILE *out, struct why *why);
int show_links(const struct ctl *ctl, const json_t *result, FILE *out, struct why *why);

/* Tenants of the cluster; and where their slots are not held, or are the node's own. */
int show_shared_tenants(const struct ctl *ctl, const json_t *result, FILE *out);
void show_not_held(const json_t *tenants, FILE *out);

/* A frame of `top --cluster`: {"jobs", "topology"}, as the requests give them. */
int show_cluster_frame(const struct ctl *ctl, const struct style *style, const json_t *frame,
		       FILE *out, struct why *why);
int show_events(const struct ctl *ctl, const json_t *result, FILE *out, struct why *why);
int show_topology(const struct ctl *ctl, const json_t *result, FILE *out, struct why *why);

/* "tally, as node n0, of 3; etcd heard 0.3 s ago": what the key `cluster` says, if this node is in
 * one. */
void show_cluster(const json_t *cluster, FILE *out);

/* Ends that line: what is wrong with the store or the node's name, so that an empty list behind it
 * is not taken for all there is, and an empty line. */
void show_cluster_troubles(const json_t *cluster, FILE *out);

/* top uses these, too. show_slots(): a bar of `columns`, at most 24, and the numbers of slots. */
void show_slots(FILE *out, const struct style *style, const json_t *result, unsigned int columns);
void cell_state(const json_t *row, const char *key, struct cell *ret); /* of a job or a member */
void cell_link_state(const json_t *row, const char *key, struct cell *ret);
void cell_sum(const json_t *row, const char *key, struct cell *ret); /* of both directions */

#endif
