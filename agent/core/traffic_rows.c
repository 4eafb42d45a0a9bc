// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "traffic_private.h"

enum {
	ROW_GONE = 1, /* of those apart */
};

static int row_order(const struct traffic_row *a, const struct traffic_row *b)
{
	if (a->job != b->job)
		return a->job < b->job ? -1 : 1;
	if (a->ifindex != b->ifindex)
		return a->ifindex < b->ifindex ? -1 : 1;
	return a->again - b->again;
}

static bool is_apart(const struct traffic_row *row) { return !row->job && !row->ifindex; }

static int row_order_of_pointers(const void *a, const void *b)
{
	return row_order(*(const struct traffic_row *const *)a,
			 *(const struct traffic_row *const *)b);
}

/* Rows of jobs and ports into t->sorted, each once. How many. */
static size_t rows_sort(struct traffic *t, const struct traffic_row *rows, size_t n)
{
	size_t count = 0, kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (i < APART && is_apart(&rows[i]))
			continue;
		if (is_apart(&rows[i]) || count == TRAFFIC_ROWS_MAX)
			t->stats.rows_ignored++;
		else
			t->sorted[count++] = &rows[i];
	}
	qsort(t->sorted, count, sizeof(*t->sorted), row_order_of_pointers);
	for (size_t i = 0; i < count; i++) {
		if (kept && row_order(t->sorted[kept - 1], t->sorted[i]) == 0)
			t->stats.rows_ignored++;
		else
			t->sorted[kept++] = t->sorted[i];
	}
	return kept;
}

/* What a row has counted since it was `before` (NULL: since ever). False: it began anew. */
static bool row_difference(const struct traffic_row *now, const struct traffic_row *before,
			   struct tally_counter *ret)
{
	memcpy(ret, now->outcome, sizeof(now->outcome));
	if (!before)
		return true;
	for (unsigned int i = 0; i < TALLY_OUTCOME_COUNT; i++)
		if (now->outcome[i].packet < before->outcome[i].packet ||
		    now->outcome[i].byte < before->outcome[i].byte)
			return false;
	for (unsigned int i = 0; i < TALLY_OUTCOME_COUNT; i++) {
		ret[i].packet -= before->outcome[i].packet;
		ret[i].byte -= before->outcome[i].byte;
	}
	return true;
}

/* Takes away the flow that was silent for longest, if it is not of this sample. */
static bool flow_evict(struct traffic *t, struct index *x)
{
	const struct flow *silent = traffic_index_at(x, 0);
	unsigned int oldest = 0;

	for (unsigned int i = 1; i < x->count; i++) {
		const struct flow *f = traffic_index_at(x, i);

		if (f->seen < silent->seen)
			silent = f, oldest = i;
	}
	if (silent->seen == t->stats.samples)
		return false;
	traffic_index_remove(x, oldest);
	t->stats.evicted++;
	return true;
}

/* The flow of a job, tenant or port; a new one may need another's place. NULL: all are in use. */
static struct flow *flow_of(struct traffic *t, struct index *x, uint32_t id)
{
	struct flow *f = traffic_index_find(x, id);

	if (f || (x->count == x->max && !flow_evict(t, x)))
		return f;
	f = traffic_index_add(x, id);
	traffic_flow_begin(f);
	return f;
}

static void flow_count(struct traffic *t, struct flow *f, const struct tally_counter *counted)
{
	traffic_count(f->shown.total, counted);
	f->seen = t->stats.samples;
}

/* What the row had will be in row 1, if it was counted for the node. */
static void row_moves(struct traffic *t, const struct traffic_row *before)
{
	if (!before->again)
		traffic_count(t->moving, before->outcome);
}

/* In the tenant or port; there may be no room for it. */
static void row_count_in(struct traffic *t, struct index *x, uint32_t id,
			 const struct tally_counter *counted)
{
	struct flow *f = flow_of(t, x, id);

	if (f)
		flow_count(t, f, counted);
	else
		t->stats.rows_ignored++;
}

/* One row, with the one of the last sample. False: there is no room for its job. */
static bool row_count(struct traffic *t, const struct traffic_row *row,
		      const struct traffic_row *before)
{
	struct flow *job = row->job ? flow_of(t, &t->jobs, row->job) : NULL;
	struct tally_counter counted[TALLY_OUTCOME_COUNT];

	if (row->job && !job)
		return false;
	if (!row_difference(row, before, counted) && before)
		row_moves(t, before);
	if (!row->again)
		flow_count(t, &t->node, counted);
	if (row->ifindex)
		row_count_in(t, &t->ports, row->ifindex, counted);
	if (!job)
		return true;
	flow_count(t, job, counted);
	row_count_in(t, &t->tenants, row->tenant, counted);
	return true;
}

/* Both lists are in order: each row meets the one it was. */
static void rows_count(struct traffic *t, size_t count)
{
	struct traffic_row *swap = t->last;
	size_t l = 0;

	t->next_count = 0;
	for (size_t i = 0; i < count; i++) {
		const struct traffic_row *row = t->sorted[i], *before = NULL;

		while (l < t->last_count && row_order(&t->last[l], row) < 0)
			row_moves(t, &t->last[l++]);
		if (l < t->last_count && row_order(&t->last[l], row) == 0)
			before = &t->last[l++];
		if (row_count(t, row, before))
			t->next[t->next_count++] = *row;
		else
			t->stats.rows_ignored++;
	}
	while (l < t->last_count)
		row_moves(t, &t->last[l++]);
	t->last = t->next;
	t->last_count = t->next_count;
	t->next = swap;
}

static __u64 take_up_to(__u64 *from, __u64 most)
{
	__u64 taken = *from < most ? *from : most;

	*from -= taken;
	return taken;
}

/*
 * Packets of no job and port, and what row 1 has beyond what was counted when those that have gone
 * were still there: their last moments.
 */
static void apart_count(struct traffic *t, const struct traffic_row *rows, size_t n)
{
	struct tally_counter counted[TALLY_OUTCOME_COUNT];

	for (size_t i = 0; i < n && i < APART; i++) {
		if (!is_apart(&rows[i]))
			continue;
		if (!row_difference(&rows[i], &t->apart[i], counted) && i == ROW_GONE)
			memset(t->moving, 0, sizeof(t->moving));
		for (unsigned int k = 0; i == ROW_GONE && k < TALLY_OUTCOME_COUNT; k++) {
			counted[k].packet -= take_up_to(&t->moving[k].packet, counted[k].packet);
			counted[k].byte -= take_up_to(&t->moving[k].byte, counted[k].byte);
		}
		flow_count(t, &t->node, counted);
		t->apart[i] = rows[i];
	}
}

/* Before new ones come, so that a new one takes no entry that is still in use. */
static void jobs_mark(struct traffic *t, size_t count)
{
	for (size_t k = 0; k < count; k++) {
		struct job_series *j = traffic_index_find(&t->jobs, t->sorted[k]->job);

		if (j)
			j->flow.seen = t->stats.samples;
	}
}

void traffic_rows(struct traffic *t, const struct traffic_row *rows, size_t n)
{
	size_t count = rows_sort(t, rows, n);

	jobs_mark(t, count);
	rows_count(t, count);
	apart_count(t, rows, n);
}
