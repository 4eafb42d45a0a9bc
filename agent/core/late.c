// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "late.h"

#include <errno.h>

enum {
	NEARLY_ALONE_MAX = 4,
};

/* One look. */
struct work {
	const struct tally_job *job;
	const struct installation_role *role;
	late_read *read;
	void *context;
	unsigned int few; /* who are nearly alone */
	unsigned int slots; /* that count */
	uint8_t alone[TALLY_WORKERS_MAX]; /* in how many of them the rank is, or nearly */
};

/* --- slots ----------------------------------------------------------------------------------- */

/* Does the ring's slot for this chunk have it? */
static int has_chunk(const struct work *w, uint32_t seq, bool *ret)
{
	struct tally_slot_state s;
	int r = w->read(w->context, seq & w->job->slot_mask, &s);

	if (r == 0)
		*ret = s.phase != TALLY_SLOT_FRESH && s.seq == seq;
	return r;
}

/*
 * Behind the newest chunk the ring has chunks that are older by the whole ring. So the newest one
 * is between one that is there and another that is not, whichever the first one is. *ret is
 * the number of a chunk; -ENOENT: that slot was never used.
 */
static int newest_find(const struct work *w, uint64_t draw, uint32_t *ret)
{
	const uint32_t index = draw & w->job->slot_mask;
	uint32_t there = 0, beyond = w->job->slot_mask + 1;
	struct tally_slot_state s;
	int r = w->read(w->context, index, &s);

	if (r == 0 && s.phase == TALLY_SLOT_FRESH && index)
		r = w->read(w->context, 0, &s); /* the first lap of the ring */
	if (r == 0 && s.phase == TALLY_SLOT_FRESH)
		r = -ENOENT;
	while (r == 0 && beyond - there > 1) {
		const uint32_t middle = there + (beyond - there) / 2;
		bool is_there = false;

		r = has_chunk(w, s.seq + middle, &is_there);
		if (is_there)
			there = middle;
		else
			beyond = middle;
	}
	if (r == 0)
		*ret = s.seq + there;
	return r;
}

/* --- who is missing -------------------------------------------------------------------------- */

static struct tally_set without(const struct tally_set *a, const struct tally_set *b)
{
	struct tally_set s;

	for (unsigned int i = 0; i < TALLY_SET_WORDS; i++)
		s.word[i] = a->word[i] & ~b->word[i];
	return s;
}

/* A child node counts once, whatever ranks come through it. */
static unsigned int children(const struct installation_role *role, const struct tally_set *ranks)
{
	struct tally_set rest = *ranks;
	unsigned int count = 0;

	for (unsigned int i = 0; i < role->vias; i++) {
		count += !tally_set_is_disjoint(&role->via[i].ranks, &rest);
		rest = without(&rest, &role->via[i].ranks);
	}
	return count + tally_set_count(&rest);
}

/* Of two children one is alone, of eight two may be nearly alone. */
static unsigned int few_of(const struct tally_job *job, const struct installation_role *role)
{
	const unsigned int fourth = children(role, &job->below) / 4;

	if (fourth > NEARLY_ALONE_MAX)
		return NEARLY_ALONE_MAX;
	return fourth ? fourth : 1;
}

static void slot_count(struct work *w, const struct tally_slot_state *s)
{
	const struct tally_set missing = without(&w->job->below, &s->set);

	w->slots++;
	if (s->phase != TALLY_SLOT_GATHERING || tally_set_is_empty(&s->set) ||
	    children(w->role, &missing) > w->few)
		return;
	for (unsigned int rank = 0; rank < TALLY_WORKERS_MAX; rank++)
		w->alone[rank] += tally_set_has(&missing, rank);
}

static int slots_count(struct work *w, uint32_t newest, const uint64_t draw[LATE_SLOTS])
{
	const uint32_t window = (w->job->slot_mask + 1) / 2;
	uint64_t call = 0;
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < LATE_SLOTS; i++) {
		const uint32_t seq = newest - (i ? (uint32_t)(draw[i] % window) : 0);
		struct tally_slot_state s;

		r = w->read(w->context, seq & w->job->slot_mask, &s);
		if (r == 0 && i == 0)
			call = s.call;
		if (r == 0 && s.phase != TALLY_SLOT_FRESH && s.call == call)
			slot_count(w, &s);
	}
	return r;
}

/* --- looks ----------------------------------------------------------------------------------- */

static unsigned int percent(const struct late *l, unsigned int rank)
{
	return l->count ? l->looks[rank] * 100u / l->count : 0;
}

/* In place of the oldest one. */
static void look_put(struct late *l, const struct tally_set *missing)
{
	struct tally_set *at = &l->missing[l->next];

	for (unsigned int rank = 0; rank < TALLY_WORKERS_MAX; rank++)
		l->looks[rank] += tally_set_has(missing, rank) - tally_set_has(at, rank);
	*at = *missing;
	l->next = (l->next + 1) % LATE_LOOKS;
	l->count += l->count < LATE_LOOKS;
}

/* The median of the parts of these ranks; of an even number, the lower one. */
static unsigned int median(const struct late *l, const struct tally_set *ranks)
{
	unsigned int with[101] = { 0 }, left = (tally_set_count(ranks) + 1) / 2, at = 0;

	for (unsigned int rank = 0; rank < TALLY_WORKERS_MAX; rank++)
		if (tally_set_has(ranks, rank))
			with[percent(l, rank)]++;
	while (at < 100 && with[at] < left)
		left -= with[at++];
	return at;
}

static struct tally_set judge(struct late *l, const struct tally_set *ranks)
{
	const unsigned int usual = median(l, ranks);
	const struct tally_set before = l->late;

	l->late = (struct tally_set){ 0 };
	for (unsigned int rank = 0; l->count >= LATE_LOOKS_MIN && rank < TALLY_WORKERS_MAX; rank++)
		if (percent(l, rank) >=
		    usual + (tally_set_has(&before, rank) ? LATE_ENDS : LATE_BEGINS))
			tally_set_add(&l->late, rank);
	return without(&l->late, &before);
}

int late_look(struct late *l, const struct tally_job *job, const struct installation_role *role,
	      const uint64_t draw[LATE_SLOTS], late_read *read, void *context,
	      struct tally_set *ret_late)
{
	struct work w = { .job = job, .role = role, .read = read, .context = context };
	struct tally_set missing = { 0 };
	uint32_t newest = 0;
	int r = newest_find(&w, draw[0], &newest);

	w.few = few_of(job, role);
	if (r == 0)
		r = slots_count(&w, newest, draw);
	if (r < 0 && r != -ENOENT)
		return r;
	for (unsigned int rank = 0; rank < TALLY_WORKERS_MAX; rank++)
		if (3 * w.alone[rank] > w.slots)
			tally_set_add(&missing, rank);
	look_put(l, &missing);
	*ret_late = judge(l, &job->below);
	return 0;
}

unsigned int late_ranks(const struct late *l, struct late_rank ret[LATE_RANKS_MAX])
{
	unsigned int count = 0;

	for (unsigned int rank = 0; rank < TALLY_WORKERS_MAX && count < LATE_RANKS_MAX; rank++)
		if (tally_set_has(&l->late, rank))
			ret[count++] = (struct late_rank){ (uint16_t)rank,
							   (uint8_t)percent(l, rank) };
	return count;
}
