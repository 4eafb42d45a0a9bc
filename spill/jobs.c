// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Jobs of the spill, and the copies for their workers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "sums_private.h"

static struct spill_job **bucket_of(struct spill *s, uint32_t id)
{
	return &s->bucket[id * 0x9e3779b1u >> 22 & (BUCKETS - 1)];
}

/* Where the job hangs, or would hang. */
struct spill_job **job_link(struct spill *s, uint32_t id)
{
	struct spill_job **link = bucket_of(s, id);

	while (*link && (*link)->id != id)
		link = &(*link)->next;
	return link;
}

static void job_free(struct spill_job *j)
{
	free(j->slot);
	free(j->child);
	free(j);
}

int spill_job_remove(struct spill *s, uint32_t id)
{
	struct spill_job **link = job_link(s, id), *j = *link;

	if (!j)
		return -ENOENT;
	s->settle(s->context);
	for (uint32_t i = 0; i < j->slots; i++) {
		slot_drop_words(s, &j->slot[i]);
		links_remove(&j->slot[i].links);
	}
	*link = j->next;
	s->jobs--;
	job_free(j);
	return 0;
}

static bool is_sound(const struct spill_job_options *o)
{
	struct tally_set served = { { 0 } };

	for (unsigned int i = 0; i < o->children; i++) {
		if (!tally_set_is_disjoint(&o->child[i].below, &served))
			return false;
		tally_set_join(&served, &o->child[i].below);
	}
	return o->children && tally_set_is_equal(&served, &o->everyone) && o->window &&
	       !(o->window & (o->window - 1)) && o->window <= TALLY_WINDOW_MAX &&
	       o->payload_bytes && o->payload_bytes % TALLY_BLOCK_BYTES == 0 &&
	       o->payload_bytes <= TALLY_PAYLOAD_MAX;
}

static struct spill_job *job_new(const struct spill_job_options *o)
{
	struct spill_job *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	*j = (struct spill_job){ .everyone = o->everyone,
				 .service = o->service,
				 .id = o->id,
				 .epoch = o->epoch,
				 .payload_bytes = o->payload_bytes,
				 .slots = 2 * o->window };
	j->slot = calloc(j->slots, sizeof(*j->slot));
	for (uint32_t i = 0; j->slot && i < j->slots; i++) {
		j->slot[i].job = j;
		links_alone(&j->slot[i].links);
	}
	return j;
}

static struct spill_child *children_copy(const struct spill_job_options *o)
{
	struct spill_child *child = calloc(o->children, sizeof(*child));

	if (child)
		memcpy(child, o->child, o->children * sizeof(*child));
	return child;
}

int spill_job_put(struct spill *s, const struct spill_job_options *o)
{
	struct spill_job *j = *job_link(s, o->id);
	struct spill_child *child;

	if (!is_sound(o))
		return -EINVAL;
	child = children_copy(o);
	if (!child)
		return -ENOMEM;
	if (!j || j->epoch != o->epoch || j->slots != 2u * o->window ||
	    j->payload_bytes != o->payload_bytes) {
		j = job_new(o);
		if (!j || !j->slot) {
			free(child);
			if (j)
				job_free(j);
			return -ENOMEM;
		}
		spill_job_remove(s, o->id);
		*job_link(s, o->id) = j;
		s->jobs++;
	}
	s->settle(s->context);
	free(j->child);
	j->child = child;
	j->children = o->children;
	return 0;
}

unsigned int spill_jobs(const struct spill *s) { return s->jobs; }

const struct spill_child *spill_children(const struct spill_job *j, unsigned int *ret_count)
{
	*ret_count = j->children;
	return j->child;
}
