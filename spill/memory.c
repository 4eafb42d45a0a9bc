// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Words of sums, within the limit. */
#include <stdlib.h>

#include "sums_private.h"

enum {
	STALLED_MS = 1000, /* a sum that has not grown for so long may make room */
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

void slot_drop_words(struct spill *s, struct slot *slot)
{
	if (!slot->word)
		return;
	settle_if_unsent(s, slot);
	free(slot->word);
	slot->word = NULL;
	s->memory.bytes -= slot->job->payload_bytes;
}

static struct slot *oldest(struct links *ring)
{
	return ring->newer == ring ? NULL : (struct slot *)ring->newer; /* links come first */
}

static struct slot *slot_of_latest(const struct spill_job *j, uint32_t than)
{
	struct slot *latest = NULL;

	for (uint32_t i = 0; i < j->slots; i++)
		if (j->slot[i].word && (int32_t)(j->slot[i].state.seq - than) > 0) {
			than = j->slot[i].state.seq;
			latest = &j->slot[i];
		}
	return latest;
}

/*
 * Whose sum is forgotten for that of the offer's chunk? The one that was finished first; or one
 * that has stalled, as what late repetitions began does for ever; or that of a later chunk of the
 * same job: ranks cannot finish that before they have the result of this one.
 */
static struct slot *victim(struct spill *s, const struct spill_job *j, const struct tally_offer *o)
{
	struct slot *slot = oldest(&s->finished);

	if (slot)
		return slot;
	slot = oldest(&s->gathering);
	if (slot && o->now_ms - slot->grown_ms >= STALLED_MS)
		return slot;
	return slot_of_latest(j, o->seq);
}

/* Its slot goes on as that of a root which lost it. */
static void evict(struct spill *s, struct slot *slot)
{
	slot_drop_words(s, slot);
	links_remove(&slot->links);
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
	s->memory.bytes += slot->word ? bytes : 0;
	return slot->word;
}

void slot_link(struct spill *s, struct slot *slot, bool grown, uint32_t now_ms)
{
	if (!slot->word) {
		links_remove(&slot->links);
	} else if (slot->state.phase == TALLY_SLOT_DONE) {
		links_append(&s->finished, &slot->links);
	} else if (grown || slot->links.newer == &slot->links) {
		links_append(&s->gathering, &slot->links);
		slot->grown_ms = now_ms;
	}
}
