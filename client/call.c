// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lanes.h"

/* Where an entry's elements lie and whose they are. */
struct span {
	size_t in_at;  /* index into `in` */
	size_t out_at;  /* index into `out` */
	uint32_t count; /* elements */
	uint16_t owner; /* rank, see `verbs` */
};

static const enum tally_dtype guessed[GUESS_TYPES] = {
	TALLY_FLOAT32, TALLY_BFLOAT16, TALLY_FLOAT16, TALLY_FLOAT64, TALLY_FLOAT32_HALVED,
};

void guesses_init(struct guesses *g)
{
	for (int type = 0; type < GUESS_TYPES; type++)
		memset(g->scale[type], lane_at(lane_of_dtype(guessed[type], 1))->scale_first,
		       sizeof(g->scale[type]));
}

/* A chunk has an owner: the rank whose part it is, or the call's root. */
static const struct {
	bool parted;
	bool from_owner; /* who alone has a payload */
	bool to_owner; /* who alone gets it */
} verbs[] = {
	[CALL_REDUCE] = { .to_owner = true },
	[CALL_BROADCAST] = { .from_owner = true },
	[CALL_REDUCE_SCATTER] = { .parted = true, .to_owner = true },
	[CALL_ALL_GATHER] = { .parted = true, .from_owner = true },
	[CALL_OPENING] = { false },
};

static bool is_barrier(const struct call_options *o)
{
	return o->verb == CALL_BARRIER || o->verb == CALL_CLOSING;
}

/* The lane that all chunks are sent in first. */
static enum tally_lane first_lane(const struct call_options *o, uint16_t workers)
{
	if (is_barrier(o))
		return TALLY_LANE_NONE;
	return verbs[o->verb].from_owner ? TALLY_LANE_BYTES : lane_of_dtype(o->dtype, workers);
}

static uint8_t *guess_of_shape(struct guesses *g, const struct call_options *o)
{
	uint64_t hash = (o->count * 8 + o->verb) * 0x9e3779b97f4a7c15u;

	for (int type = 0; call_reduces(o->verb) && type < GUESS_TYPES; type++)
		if (guessed[type] == o->dtype)
			return g->scale[type][hash >> 60 & (GUESS_KINDS - 1)];
	return NULL;
}

int8_t call_point(const struct call_options *o)
{
	return o->dtype & TALLY_FIXED_FLAG ? (int8_t)(uint8_t)(o->dtype >> 16) : 0;
}

size_t call_element_bytes(const struct call_options *o)
{
	const struct lane *elements = lane_at(lane_of_dtype(o->dtype, 1));

	return elements ? elements->element_bytes : 1;
}

uint32_t call_chunk_elements(uint16_t payload_bytes, uint16_t workers, const struct call_options *o)
{
	const struct lane *first = lane_at(first_lane(o, workers));
	size_t bytes = payload_bytes;

	if (first)
		bytes = bytes * 8 / first->bits * first->element_bytes;
	return bytes / call_element_bytes(o);
}

/* The wide form of a chunk takes several packets, all but the last with so many elements. */
static uint32_t piece_elements(const struct call *c)
{
	const struct lane *first = lane_at(c->lane);

	return first && first->wide ? c->chunk_elements * first->bits / lane_at(first->wide)->bits
				    : c->chunk_elements;
}

int call_init(struct call *c, const struct call_member *member, const struct call_options *options,
	      struct guesses *guesses)
{
	size_t part_chunks, parts;

	*c = (struct call){ .member = *member, .options = *options, .guesses = guesses };
	if (options->count >> CALL_COUNT_BITS)
		return -EFBIG;
	c->guess = guess_of_shape(guesses, options);
	c->lane = first_lane(options, member->workers);
	c->element_bytes = call_element_bytes(options);
	c->chunk_elements = call_chunk_elements(member->payload_bytes, member->workers, options);
	c->piece_elements = piece_elements(c);
	parts = verbs[options->verb].parted ? member->workers : 1;
	part_chunks = (options->count + c->chunk_elements - 1) / c->chunk_elements;
	if (is_barrier(options))
		part_chunks = 1;
	if (part_chunks * parts > INT32_MAX)
		return -EFBIG;
	c->part_chunks = part_chunks;
	c->chunks = part_chunks * parts;
	c->entries = c->chunks;

	c->misfit_at = SIZE_MAX;
	if (!c->chunks || !lane_asks(lane_at(c->lane)))
		return 0;
	c->chunk = calloc(c->chunks, sizeof(*c->chunk));
	if (!c->chunk)
		return -ENOMEM;
	for (uint32_t k = 0; c->guess && k < c->chunks && k < member->window; k++)
		c->chunk[k].scale = c->guess[k];
	return 0;
}

void call_done(struct call *c)
{
	free(c->chunk);
	free(c->entry);
	c->chunk = NULL;
	c->entry = NULL;
}

static struct call_entry entry_at(const struct call *c, uint32_t e)
{
	if (c->round)
		return c->entry[e];
	/* Known ahead to need it: one piece of it now, the others in the next round. */
	if (c->chunk && c->chunk[e].wide)
		return (struct call_entry){ .chunk = e, .form = FORM_WIDE };
	return (struct call_entry){ .chunk = e, .form = FORM_NARROW };
}

static inline __attribute__((always_inline)) struct span span_of(const struct call *c,
								 uint32_t chunk)
{
	size_t offset = (size_t)(chunk % c->part_chunks) * c->chunk_elements;
	uint16_t part = chunk / c->part_chunks;
	size_t left = c->options.count - offset;
	size_t stride = c->options.whole ? c->options.whole : c->options.count;
	size_t whole = part * stride + offset;

	/* An all_gather's input and a reduce_scatter's output are one part, not all of them. */
	return (struct span){
		.in_at = c->options.verb == CALL_ALL_GATHER ? offset : whole,
		.out_at = c->options.verb == CALL_REDUCE_SCATTER ? offset : whole,
		.count = left < c->chunk_elements ? left : c->chunk_elements,
		.owner = verbs[c->options.verb].parted ? part : c->options.root,
	};
}

/* This entry's share of its chunk. */
static struct span span_of_entry(const struct call *c, struct call_entry entry)
{
	struct span s = span_of(c, entry.chunk);
	uint32_t before;

	if (entry.form == FORM_NARROW)
		return s;
	before = (entry.form - FORM_WIDE) * c->piece_elements;
	s.in_at += before;
	s.out_at += before;
	s.count -= before;
	if (s.count > c->piece_elements)
		s.count = c->piece_elements;
	return s;
}

/* The rank that the payload of a sum goes to, or everyone. */
static uint16_t recipient_of(const struct call *c, const struct span *s)
{
	return verbs[c->options.verb].to_owner ? s->owner : TALLY_EVERYONE;
}

static bool contributes_payload(const struct call *c, const struct span *s)
{
	return !verbs[c->options.verb].from_owner || c->member.rank == s->owner;
}

static uint8_t lane_of(const struct call *c, struct call_entry entry)
{
	return entry.form == FORM_NARROW ? c->lane : lane_at(c->lane)->wide;
}

/* A span's elements as the lane counts them: bytes of any type go as bytes. */
static size_t lane_count(const struct call *c, const struct lane *lane, const struct span *s)
{
	return s->count * (c->element_bytes / lane->element_bytes);
}

static struct lane_terms terms_of(const struct call *c, uint32_t chunk)
{
	return (struct lane_terms){
		.scale = c->chunk ? c->chunk[chunk].scale : 0,
		.workers = c->member.workers,
		.divisor = c->options.op == TALLY_AVG ? c->member.workers : 1,
		.point = call_point(&c->options),
	};
}

static const void *input_of(const struct call *c, const struct span *s)
{
	return (const uint8_t *)c->options.in + s->in_at * c->element_bytes;
}

/* What the rank has beside its input of the span; NULL: nothing. */
static const float *kept_of(const struct call *c, const struct span *s)
{
	return c->options.kept ? c->options.kept + s->in_at : NULL;
}

/* What does not fit at all asks for the wide form, which there is none of. */
static struct lane_need inspect(struct call *c, uint32_t chunk)
{
	struct lane_terms terms = terms_of(c, chunk);
	const struct lane *lane = lane_at(c->lane);
	struct span s = span_of(c, chunk);
	size_t at;

	if (c->options.kept)
		return lane->feedback->inspect(input_of(c, &s), kept_of(c, &s), s.count,
					       c->member.workers);
	if (lane->inspect)
		return lane->inspect(input_of(c, &s), s.count, c->member.workers);
	at = lane->misfit(input_of(c, &s), s.count, &terms);
	if (at < s.count && s.in_at + at < c->misfit_at)
		c->misfit_at = s.in_at + at;
	return (struct lane_need){ .wide = at < s.count };
}

/* What its values need. They are looked at once, mostly a window ahead. */
static struct lane_need need_of(struct call *c, uint32_t chunk)
{
	struct call_chunk *k = &c->chunk[chunk];

	if (!k->inspected)
		k->own = inspect(c, chunk);
	k->inspected = true;
	return k->own;
}

/* Announce what this chunk needs, and what the one that follows it in its slot will. */
static void announce(struct call *c, uint32_t chunk, struct lane_need own, struct tally_header *h)
{
	h->scale = own.scale;
	h->flags |= own.wide ? TALLY_WIDE : 0;
	if (c->chunks - chunk <= c->member.window)
		return;
	own = need_of(c, chunk + c->member.window);
	h->scale_ahead = own.scale;
	h->flags |= own.wide ? TALLY_WIDE_AHEAD : 0;
}

static uint64_t vote_of(struct lane_need own, uint8_t scale, uint8_t form)
{
	if (own.scale > scale || (own.wide && form == FORM_NARROW))
		return CALL_VOTE_MORE;
	return own.scale && own.scale == scale ? CALL_VOTE_EXACT : 0;
}

/* Does this rank get the sum of the span? */
static bool gets_payload(const struct call *c, const struct span *s)
{
	uint16_t recipient = recipient_of(c, s);

	return recipient == TALLY_EVERYONE || recipient == c->member.rank;
}

static void pack(const struct call *c, const struct lane *lane, const struct span *s,
		 const struct lane_terms *terms, uint64_t *word)
{
	if (c->options.kept)
		lane->feedback->pack(input_of(c, s), kept_of(c, s), s->count, terms, word);
	else
		lane->pack(input_of(c, s), lane_count(c, lane, s), terms, word);
}

uint8_t call_fill(struct call *c, uint32_t e, struct tally_header *h, uint64_t *ret_vote)
{
	struct call_entry entry = entry_at(c, e);
	struct lane_terms terms = terms_of(c, entry.chunk);
	struct span s = span_of_entry(c, entry);
	uint64_t *word = tally_payload(h);
	struct lane_need own = { 0 };
	const struct lane *lane;
	uint8_t blocks;
	size_t words;

	if (c->chunk)
		own = need_of(c, entry.chunk);
	*ret_vote = vote_of(own, terms.scale, entry.form);
	h->call = tally_le64(c->shape);
	h->lane = lane_of(c, entry);
	h->recipient = tally_le16(recipient_of(c, &s));
	lane = lane_at(h->lane);
	if (!lane)
		return 0;
	if (c->chunk && !c->round)
		announce(c, entry.chunk, own, h);

	words = lane_words(lane, lane_count(c, lane, &s));
	blocks = (words + TALLY_BLOCK_WORDS - 1) / TALLY_BLOCK_WORDS;
	if (contributes_payload(c, &s)) {
		h->blocks = blocks;
		/* What does not fit might carry into other numbers, which a seal counts one by one.
		 */
		if (c->member.sealed && *ret_vote == CALL_VOTE_MORE) {
			memset(word, 0, blocks * (size_t)TALLY_BLOCK_BYTES);
			return blocks;
		}
		/* Padding first, from the last word on: bytes may fill only half of it. */
		for (size_t i = words ? words - 1 : 0; i < (size_t)blocks * TALLY_BLOCK_WORDS; i++)
			word[i] = 0;
		pack(c, lane, &s, &terms, word);
	}
	return blocks;
}

uint64_t call_place(const struct call *c, uint32_t e)
{
	struct call_entry entry = entry_at(c, e);

	return (uint64_t)e << 32 | (uint64_t)(c->round & 0xffff) << 16 |
	       (uint64_t)terms_of(c, entry.chunk).scale << 8 | entry.form;
}

/* Of a chunk's wide form, all but the first. */
static uint8_t other_pieces(const struct call *c, uint32_t chunk)
{
	uint32_t pieces = (span_of(c, chunk).count + c->piece_elements - 1) / c->piece_elements;
	uint8_t todo = 0;

	for (uint32_t piece = 1; piece < pieces; piece++)
		todo |= 1 << (FORM_WIDE + piece);
	return todo;
}

/*
 * What all ranks learn from the result of a chunk of round 0, with or without its payload. What is
 * due follows from the form that the chunk was sent in: a rank may announce what does not come.
 * True: its sum is good.
 */
static bool conclude(struct call *c, uint32_t chunk, const struct tally_header *h)
{
	struct call_chunk *k = &c->chunk[chunk];
	bool is_wide = h->flags & TALLY_WIDE;
	bool sealed = c->member.sealed; /* then no sum of another scale tells that all is zero */
	bool guessed_right = k->scale == h->scale || (!h->scale && !sealed);
	bool good = guessed_right && (k->wide || !is_wide);

	if (c->chunks - chunk > c->member.window) {
		k[c->member.window].scale = h->scale_ahead;
		k[c->member.window].wide = h->flags & TALLY_WIDE_AHEAD && lane_at(c->lane)->wide;
	}
	if (c->guess && chunk < c->member.window && (h->scale || sealed))
		c->guess[chunk] = h->scale;
	k->scale = h->scale;

	if (is_wide && !lane_at(c->lane)->wide) {
		c->misfit = true;
		return false;
	}
	if (!good)
		k->todo = is_wide ? 1 << FORM_WIDE : 1 << FORM_NARROW;
	if (good ? k->wide : is_wide)
		k->todo |= other_pieces(c, chunk);
	return good;
}

void call_take(struct call *c, uint32_t e, const struct tally_header *h)
{
	struct call_entry entry = entry_at(c, e);
	struct span s = span_of_entry(c, entry);
	const struct lane *lane = lane_at(h->lane);
	struct lane_terms terms;
	bool good = true;

	c->taken++;
	if (c->chunk && !c->round)
		good = conclude(c, entry.chunk, h);
	terms = terms_of(c, entry.chunk);
	/* Before the sum takes the place of what it is made of. */
	if (good && lane && c->options.lost)
		lane->feedback->lose(input_of(c, &s), kept_of(c, &s), s.count, &terms,
				     c->options.lost + s.in_at);
	/* Copies are everyone's; only the broadcast's root has its data already. */
	if (!good || !lane || !gets_payload(c, &s) ||
	    (c->options.verb == CALL_BROADCAST && c->member.rank == c->options.root))
		return;
	lane->unpack(tally_payload_of(h), lane_count(c, lane, &s), &terms,
		     (uint8_t *)c->options.out + s.out_at * c->element_bytes);
}

void call_print_misfit(const struct call *c, char *text, size_t size)
{
	int below = lane_fixed_below(c->member.workers, call_point(&c->options));

	if (c->misfit_at == SIZE_MAX)
		snprintf(text, size,
			 "another rank has a value that does not fit: |x| must be below 2^%d, with "
			 "point %d and %u ranks",
			 below, call_point(&c->options), c->member.workers);
	else
		snprintf(text, size,
			 "in[%zu] does not fit: |x| must be below 2^%d, with point %d and %u ranks",
			 c->options.first + c->misfit_at, below, call_point(&c->options),
			 c->member.workers);
}

int call_next_round(struct call *c)
{
	struct call_entry *entry;
	uint32_t entries = 0;

	for (uint32_t k = 0; c->chunk && k < c->chunks; k++)
		entries += __builtin_popcount(c->chunk[k].todo);
	if (!entries)
		return false;

	entry = calloc(entries, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	free(c->entry);
	c->entry = entry;
	c->entries = entries;
	c->redone += entries;
	c->taken = 0;
	c->round++;
	for (uint32_t k = 0; k < c->chunks; k++) {
		for (int form = FORM_NARROW; form <= FORM_WIDE_LAST; form++) {
			if (c->chunk[k].todo & 1 << form)
				*entry++ = (struct call_entry){ .chunk = k, .form = form };
		}
		c->chunk[k].todo = 0;
	}
	return true;
}
