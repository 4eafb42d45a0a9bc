// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sums.h"

#include <stdlib.h>
#include <string.h>
#include <tally/maps.h>

#include "common/address.h"
#include "sums_private.h"

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
	slot_link(s, slot, &before, offer->now_ms);
	return TALLY_GO_ON;
}

/* Which job is it of, and may it come in here? As the data plane asks: bpf/gate.bpf.h. */
static enum tally_outcome gate_pass(struct spill *s, const struct tally_header *h,
				    const struct sockaddr_storage *service,
				    const struct spill_way *way, struct spill_job **ret)
{
	*ret = *job_link(s, tally_le32_get(h->job));
	if (!*ret)
		return TALLY_UNKNOWN_JOB;
	if (!service_is(*ret, service))
		return TALLY_OTHER_ADDRESS;
	return (*ret)->points ? spill_points_ask((*ret)->points, way) : TALLY_GO_ON;
}

/* A worker of another version of the protocol hears of this one, if there is time. */
static enum tally_outcome answer_version(struct spill *s, const struct tally_header *h,
					 size_t length, const struct sockaddr_storage *service,
					 const struct spill_way *way, uint64_t now_ns,
					 struct spill_reply *ret)
{
	struct tally_bucket bytes = { 0 };
	struct tally_header out;
	struct spill_job *j;

	if (length < sizeof(*h) || h->kind != TALLY_CONTRIBUTION)
		return TALLY_OTHER_VERSION;
	if (gate_pass(s, h, service, way, &j) != TALLY_GO_ON ||
	    !tally_buckets_take(&s->answers, &bytes, 0, now_ns))
		return TALLY_OTHER_VERSION;
	out = tally_reply_version(h);
	ret->job = j;
	ret->to = TALLY_TO_SENDER;
	ret->header_bytes = sizeof(out);
	memcpy(ret->header, &out, sizeof(out));
	return TALLY_OLD_VERSION;
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
	if (ret->to == TALLY_TO_SENDER && slot->job->key)
		header_retag(out, &slot->job->key[tally_le16_get(h->sender)]);
	if (!r->blocks)
		return;
	ret->word = slot->word;
	ret->payload_bytes = r->blocks * TALLY_BLOCK_BYTES;
	slot->unsent = s->turn;
}

/* Of the frame that has a datagram of this length. */
static uint32_t frame_bytes(const struct sockaddr_storage *service, size_t length)
{
	return 14 + (service->ss_family == AF_INET ? 20 : 40) + 8 + length;
}

/* May this message come in, and is it paid for? As the data plane asks: bpf/tenant.bpf.h. */
static enum tally_outcome pay(struct spill_limits *l, uint32_t bytes, uint64_t now_ns)
{
	bool paid;

	if (!l || !l->is.limited)
		return TALLY_GO_ON;
	pthread_mutex_lock(&l->lock);
	paid = tally_buckets_take(&l->is.packets, &l->is.bytes, bytes, now_ns);
	pthread_mutex_unlock(&l->lock);
	return paid ? TALLY_GO_ON : TALLY_OVER_RATE;
}

/* What leaves is paid for, and never held back. */
static void pay_reply(const struct spill_reply *r, uint64_t now_ns)
{
	const struct tally_header *h = (const struct tally_header *)r->header;
	struct spill_limits *l = r->job->limits;
	uint32_t copies = r->to == TALLY_TO_GROUP ? r->job->children : 1;
	bool everyone = tally_le16_get(h->recipient) == TALLY_EVERYONE;
	uint64_t bytes = (uint64_t)copies * frame_bytes(&r->job->service, r->header_bytes) +
			 (everyone ? copies : 1) * (uint64_t)r->payload_bytes;

	if (!l || !l->is.limited)
		return;
	pthread_mutex_lock(&l->lock);
	tally_buckets_charge(&l->is.packets, &l->is.bytes, copies, bytes, now_ns);
	pthread_mutex_unlock(&l->lock);
}

static bool is_forged(const struct spill_job *j, const struct tally_header *h,
		      const struct tally_set *set)
{
	uint32_t key = tally_node_signer(h->kind, tally_le16_get(h->sender), set);

	return j->key && (key >= TALLY_NODE_KEY + (uint32_t)j->node_key ||
			  !tally_node_is_from(h, set, &j->key[key]));
}

static enum tally_outcome job_message(struct spill *s, struct spill_job *j,
				      const struct tally_header *h, uint32_t bytes, bool marked,
				      uint64_t now_ns, struct spill_reply *ret)
{
	const struct tally_role role = { .everyone = &j->everyone,
					 .below = &j->everyone,
					 .epoch = j->epoch,
					 .blocks_max = j->payload_bytes / TALLY_BLOCK_BYTES,
					 .root = true,
					 .keyed = j->key };
	struct tally_set set = tally_header_set(h);
	struct tally_offer offer = tally_offer_read(h, &set);
	struct slot *slot = slot_of(j, offer.seq);
	enum tally_outcome out = tally_node_admit(&role, h, &set);
	struct tally_slot_state books;
	struct tally_verdict verdict;
	struct tally_reply reply;

	offer.now_ms = now_ns / 1000000;
	offer.flags |= marked ? TALLY_MARKED : 0;
	if (out == TALLY_GO_ON && is_forged(j, h, &set))
		out = TALLY_FORGED;
	if (out == TALLY_GO_ON)
		out = pay(j->limits, bytes, now_ns);
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
	if (ret->to != TALLY_TO_NOBODY)
		pay_reply(ret, now_ns);
	return reply.outcome;
}

enum tally_outcome spill_message(struct spill *s, const void *datagram, size_t length,
				 const struct sockaddr_storage *service,
				 const struct spill_way *way, uint64_t now_ns,
				 struct spill_reply *ret)
{
	const struct tally_header *h = datagram;
	enum tally_outcome out = parse(h, length);
	struct tally_counter *counter = s->counter;
	uint32_t bytes = frame_bytes(service, length);
	struct spill_job *j;

	ret->to = TALLY_TO_NOBODY;
	ret->word = NULL;
	ret->payload_bytes = 0;
	if (out == TALLY_OTHER_VERSION) {
		out = answer_version(s, h, length, service, way, now_ns, ret);
	} else if (out == TALLY_GO_ON) {
		out = gate_pass(s, h, service, way, &j);
		if (out == TALLY_GO_ON) {
			out = job_message(s, j, h, bytes, way && way->marked, now_ns, ret);
			if (out != TALLY_FORGED) /* that is none of the job's */
				counter = j->counter;
		}
	}
	counter[out].packet++;
	counter[out].byte += bytes;
	return out;
}

void spill_settled(struct spill *s) { s->turn++; }

const struct tally_counter *spill_counters(const struct spill *s, const uint32_t *id)
{
	const struct spill_job *j;

	if (!id)
		return s->counter;
	j = *job_link((struct spill *)s, *id);
	return j ? j->counter : NULL;
}

struct spill_memory spill_memory(const struct spill *s) { return s->memory; }

void spill_answers_share(struct spill *s, unsigned int parts)
{
	s->answers.rate = TALLY_ANSWERS_PER_SECOND / parts;
	s->answers.burst = TALLY_ANSWERS_AT_ONCE / parts;
}

struct spill *spill_new(size_t bytes_max, uint16_t boot, spill_settle_function settle,
			void *context)
{
	struct spill *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->memory.bytes_max = bytes_max;
	s->boot = boot;
	s->turn = 1;
	spill_answers_share(s, 1);
	s->settle = settle;
	s->context = context;
	for (unsigned int i = 0; i < TALLY_TENANTS_MAX; i++) {
		links_alone(&s->share[i].finished);
		links_alone(&s->share[i].gathering);
	}
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
