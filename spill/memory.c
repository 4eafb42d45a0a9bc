// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Words of sums, within the limit. */
#include <stddef.h>
#include <stdlib.h>

#include "sums_private.h"

enum {
	STALLED_MS = 1000, /* a sum that nobody has used for so long may make room */
};

void links_alone(struct links *l) { l->older = l->newer = l; }

void links_remove(struct links *l)
{
	l->older->newer = l->newer;
	l->newer->older = l->older;
	links_alone(l);
}

/* As the newest of the ring. */
static void links_append(struct links *ring, struct links *l)
{
	links_remove(l);
	l->older = ring->older;
	l->newer = ring;
	l->older->newer = l->newer->older = l;
}

void settle_if_unsent(struct spill *s, const struct slot *slot)
{
	if (slot->unsent == s->turn)
		s->settle(s->context);
}

static void count_bytes(struct spill *s, const struct spill_job *j, ssize_t sign)
{
	s->memory.bytes += sign * (ssize_t)j->payload_bytes;
	s->memory.tenant_bytes[j->tenant] += sign * (ssize_t)j->payload_bytes;
}

void slot_drop_words(struct spill *s, struct slot *slot)
{
	if (!slot->word)
		return;
	settle_if_unsent(s, slot);
	free(slot->word);
	slot->word = NULL;
	links_remove(&slot->links);
	links_remove(&slot->begun);
	count_bytes(s, slot->job, -1);
}

static struct slot *oldest(struct links *ring)
{
	return ring->newer == ring ? NULL : (struct slot *)ring->newer; /* links come first */
}

static struct slot *begun_last(const struct links *ring)
{
	return ring->older == ring
		       ? NULL
		       : (struct slot *)((char *)ring->older - offsetof(struct slot, begun));
}

static struct slot *if_idle(struct slot *slot, uint32_t now_ms)
{
	return slot && now_ms - slot->used_ms >= STALLED_MS ? slot : NULL;
}

/* Of anybody: what nobody has used for a second. */
static struct slot *idle_of_any(struct spill *s, uint32_t now_ms)
{
	struct slot *slot = NULL;

	for (unsigned int i = 0; i < TALLY_TENANTS_MAX && !slot; i++) {
		slot = if_idle(oldest(&s->share[i].finished), now_ms);
		slot = slot ? slot : if_idle(oldest(&s->share[i].gathering), now_ms);
	}
	return slot;
}

/* Which tenant has most, if `own` has so many bytes? If another one has as many, that one. */
static uint16_t largest(const struct spill *s, uint16_t own, size_t bytes)
{
	uint16_t largest = own;

	for (unsigned int i = 0; i < TALLY_TENANTS_MAX; i++)
		if (i != own && s->memory.tenant_bytes[i] >= bytes) {
			bytes = s->memory.tenant_bytes[i];
			largest = i;
		}
	return largest;
}

/* That of the latest chunk in the job whose sum grew last: the ranks there want others before. */
static struct slot *latest_of(const struct share *share)
{
	const struct slot *last = (const struct slot *)share->gathering.older;

	return begun_last(&last->job->begun);
}

/*
 * Whose sum is forgotten for that of the offer's chunk? One of the tenant that has most: the one
 * that was finished first; or one that has stalled, as what late repetitions began does for ever.
 * Then anybody's that is idle. Then one that is alive, the latest chunk's, where the tenant still
 * has no less than this one afterwards. Otherwise this one gives way: with what it has finished, or
 * a later chunk of the same job: ranks cannot finish that before they have the result of this one.
 */
static struct slot *victim(struct spill *s, const struct spill_job *j, const struct tally_offer *o)
{
	const size_t *bytes_of = s->memory.tenant_bytes;
	const size_t want = bytes_of[j->tenant] + j->payload_bytes;
	const uint16_t most = largest(s, j->tenant, want);
	struct share *share = &s->share[most];
	struct slot *slot = oldest(&share->finished);

	slot = slot ? slot : if_idle(oldest(&share->gathering), o->now_ms);
	slot = slot ? slot : idle_of_any(s, o->now_ms);
	if (!slot && bytes_of[most] > want)
		return latest_of(share);
	slot = slot ? slot : oldest(&s->share[j->tenant].finished);
	if (slot)
		return slot;
	slot = begun_last(&j->begun);
	return slot && (int32_t)(slot->state.seq - o->seq) > 0 ? slot : NULL;
}

/* Its slot goes on as that of a root which lost it. */
static void evict(struct spill *s, struct slot *slot)
{
	slot_drop_words(s, slot);
	tally_slot_empty(&slot->state, slot->state.seq);
	s->memory.evicted++;
}

bool slot_has_words(struct spill *s, struct slot *slot, const struct tally_offer *o)
{
	size_t bytes = slot->job->payload_bytes;
	struct slot *other;

	if (slot->word)
		return true;
	while (s->memory.bytes + bytes > s->memory.bytes_max) {
		other = victim(s, slot->job, o);
		if (!other)
			return false;
		evict(s, other);
	}
	slot->word = aligned_alloc(TALLY_BLOCK_BYTES, bytes);
	if (!slot->word)
		return false;
	count_bytes(s, slot->job, 1);
	return true;
}

/* In which rings, and where, is the slot after an offer? */
void slot_link(struct spill *s, struct slot *slot, const struct tally_slot_state *before,
	       uint32_t now_ms)
{
	const struct tally_slot_state *now = &slot->state;
	struct share *share = &s->share[slot->job->tenant];
	bool is_new = now->seq != before->seq || slot->begun.newer == &slot->begun;

	if (!slot->word)
		return;
	if (now->phase == TALLY_SLOT_DONE) {
		links_remove(&slot->begun);
		links_append(&share->finished, &slot->links);
		slot->used_ms = now_ms;
		return;
	}
	if (is_new)
		links_append(&slot->job->begun, &slot->begun);
	if (is_new || !tally_set_is_equal(&before->set, &now->set)) {
		links_append(&share->gathering, &slot->links);
		slot->used_ms = now_ms;
	}
}
