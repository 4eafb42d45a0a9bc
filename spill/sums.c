// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sums.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/address.h"
#include "common/owned.h"

enum {
	BUCKETS = 1024, /* of jobs by number */
	STALLED_MS = 1000, /* a sum that has not grown for so long may make room */
};

/* Slots with memory: those whose sums are finished, and the others; oldest first. */
struct links {
	struct links *older, *newer;
};

struct slot {
	struct links links; /* alone without memory */
	uint32_t grown_ms; /* when the sum grew last; of sums that are not finished */
	struct tally_slot_state state;
	struct spill_job *job;
	uint64_t *word; /* NULL: no payload so far */
	uint64_t unsent; /* == spill.turn: a reply that was not sent yet points to `word` */
};

struct spill_job {
	struct spill_job *next; /* in its bucket */
	struct tally_set everyone;
	struct sockaddr_storage service;
	uint32_t id;
	uint16_t epoch;
	size_t payload_bytes;
	uint32_t slots; /* a power of two */
	struct slot *slot;
	unsigned int children;
	struct spill_child *child;
	struct spill_counter counter[TALLY_OUTCOME_COUNT];
};

struct spill {
	struct spill_memory memory;
	struct links finished, gathering; /* rings: .newer is the oldest slot */
	struct spill_job *bucket[BUCKETS];
	unsigned int jobs;
	uint16_t boot;
	uint64_t turn; /* of replies between two spill_settled() */
	spill_settle_function settle;
	void *context;
	struct spill_counter counter[TALLY_OUTCOME_COUNT]; /* of no job */
};

/* --- memory of sums */

static void links_alone(struct links *l) { l->older = l->newer = l; }

static void links_remove(struct links *l)
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

static void settle_if_unsent(struct spill *s, const struct slot *slot)
{
	if (slot->unsent == s->turn)
		s->settle(s->context);
}

static void slot_drop_words(struct spill *s, struct slot *slot)
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

/* Room for the words of this slot's sum. */
static bool slot_has_words(struct spill *s, struct slot *slot, const struct tally_offer *o)
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

/* After an offer; `grown`: the slot has taken it. */
static void slot_link(struct spill *s, struct slot *slot, bool grown, uint32_t now_ms)
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

/* --- jobs */

static struct spill_job **bucket_of(struct spill *s, uint32_t id)
{
	return &s->bucket[id * 0x9e3779b1u >> 22 & (BUCKETS - 1)];
}

/* Where the job hangs, or would hang. */
static struct spill_job **job_link(struct spill *s, uint32_t id)
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

/* --- messages */

static void words_move(uint64_t *sum, const uint64_t *word, size_t words, enum tally_words move)
{
	if (move == TALLY_WORDS_STORE) {
		memcpy(sum, word, words * sizeof(*sum));
		return;
	}
	for (size_t i = 0; i < words; i += TALLY_BLOCK_WORDS)
		for (size_t k = i; k < i + TALLY_BLOCK_WORDS; k++)
			sum[k] += word[k];
}

static struct slot *slot_of(const struct spill_job *j, uint32_t seq)
{
	return &j->slot[seq & (j->slots - 1)];
}

/* Is this a whole message of this version? Then *ret_job has its number. */
static enum tally_outcome parse(const struct tally_header *h, size_t length)
{
	if (length < 2 || h->magic != TALLY_MAGIC)
		return TALLY_FOREIGN;
	if (h->version != TALLY_VERSION)
		return TALLY_OTHER_VERSION;
	if (length < sizeof(*h) || length < tally_header_bytes(h->flags))
		return TALLY_TRUNCATED;
	if (h->blocks > TALLY_BLOCKS_MAX)
		return TALLY_OVERSIZED;
	if (length != tally_header_bytes(h->flags) + h->blocks * (size_t)TALLY_BLOCK_BYTES)
		return TALLY_BAD_LENGTH;
	if (h->flags & TALLY_LARGE && tally_more_of(h)->reserved)
		return TALLY_UNKNOWN_FLAG;
	return TALLY_GO_ON;
}

static bool service_is(const struct spill_job *j, const struct sockaddr_storage *service)
{
	return endpoint_is_equal(&j->service, service);
}

/* The message is offered to its slot, and its words with it. */
static enum tally_outcome gather(struct spill *s, struct slot *slot, const struct tally_role *role,
				 const struct tally_header *h, struct tally_offer *offer,
				 struct tally_verdict *ret)
{
	struct tally_slot_state before;

	if (offer->blocks && !slot_has_words(s, slot, offer)) {
		s->memory.full++;
		return TALLY_NO_MEMORY;
	}
	settle_if_unsent(s, slot);
	before = slot->state;
	*ret = tally_node_gather(role, h->kind, &slot->state, offer);
	if (ret->words != TALLY_WORDS_KEEP)
		words_move(slot->word, tally_payload_of(h), offer->blocks * TALLY_BLOCK_WORDS,
			   ret->words);
	slot_link(s, slot,
		  before.seq != slot->state.seq ||
			  !tally_set_is_equal(&before.set, &slot->state.set),
		  offer->now_ms);
	return TALLY_GO_ON;
}

static void reply_write(struct spill *s, struct slot *slot, struct tally_reply *r,
			struct tally_slot_state *books, const struct tally_header *h,
			struct spill_reply *ret)
{
	struct tally_header *out = (struct tally_header *)ret->header;
	uint16_t about = tally_reply_about(r, books, h);
	uint32_t older = tally_le32_get(h->seq) - about;

	if (about)
		tally_reply_news(r, books, about, &slot_of(slot->job, older)->state, older,
				 &slot->job->everyone);
	books->flags |= TALLY_SPILLED;
	ret->header_bytes = tally_header_bytes(h->flags);
	memcpy(ret->header, h, ret->header_bytes);
	tally_reply_write(r, books, s->boot, out);
	tally_header_set_put(out, &books->set);
	if (!r->blocks)
		return;
	ret->word = slot->word;
	ret->payload_bytes = r->blocks * TALLY_BLOCK_BYTES;
	slot->unsent = s->turn;
}

static enum tally_outcome job_message(struct spill *s, struct spill_job *j,
				      const struct tally_header *h, uint32_t now_ms,
				      struct spill_reply *ret)
{
	const struct tally_role role = { .everyone = &j->everyone,
					 .below = &j->everyone,
					 .epoch = j->epoch,
					 .blocks_max = j->payload_bytes / TALLY_BLOCK_BYTES,
					 .root = true };
	struct tally_set set = tally_header_set(h);
	struct tally_offer offer = tally_offer_read(h, &set);
	struct slot *slot = slot_of(j, offer.seq);
	enum tally_outcome out = tally_node_admit(&role, h, &set);
	struct tally_slot_state books;
	struct tally_verdict verdict;
	struct tally_reply reply;

	offer.now_ms = now_ms;
	if (out == TALLY_GO_ON)
		out = gather(s, slot, &role, h, &offer, &verdict);
	if (out != TALLY_GO_ON)
		return out;
	books = slot->state;
	reply = tally_reply_make(verdict, &books, &set);
	ret->job = j;
	ret->to = tally_outcome_to(reply.outcome);
	if (reply.kind)
		reply_write(s, slot, &reply, &books, h, ret);
	return reply.outcome;
}

enum tally_outcome spill_message(struct spill *s, const void *datagram, size_t length,
				 const struct sockaddr_storage *service, uint32_t now_ms,
				 struct spill_reply *ret)
{
	const struct tally_header *h = datagram;
	enum tally_outcome out = parse(h, length);
	struct spill_counter *counter = s->counter;
	struct spill_job *j;

	ret->to = TALLY_TO_NOBODY;
	ret->word = NULL;
	ret->payload_bytes = 0;
	if (out == TALLY_GO_ON) {
		j = *job_link(s, tally_le32_get(h->job));
		out = !j			? TALLY_UNKNOWN_JOB
		      : !service_is(j, service) ? TALLY_OTHER_ADDRESS
						: TALLY_GO_ON;
		if (out == TALLY_GO_ON) {
			counter = j->counter;
			out = job_message(s, j, h, now_ms, ret);
		}
	}
	counter[out].messages++;
	counter[out].bytes += length;
	return out;
}

void spill_settled(struct spill *s) { s->turn++; }

const struct spill_counter *spill_counters(const struct spill *s, const uint32_t *id)
{
	const struct spill_job *j;

	if (!id)
		return s->counter;
	j = *job_link((struct spill *)s, *id);
	return j ? j->counter : NULL;
}

struct spill_memory spill_memory(const struct spill *s) { return s->memory; }

struct spill *spill_new(size_t bytes_max, uint16_t boot, spill_settle_function settle,
			void *context)
{
	struct spill *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->memory.bytes_max = bytes_max;
	s->boot = boot;
	s->turn = 1;
	s->settle = settle;
	s->context = context;
	links_alone(&s->finished);
	links_alone(&s->gathering);
	return s;
}

void spill_free(struct spill *s)
{
	if (!s)
		return;
	for (int i = 0; i < BUCKETS; i++)
		while (s->bucket[i])
			spill_job_remove(s, s->bucket[i]->id);
	free(s);
}
