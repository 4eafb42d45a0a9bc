/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The reliable half of a worker, pure: chunks go out, results come in, and what is lost on
 * the way is sent again. It knows sequence numbers and datagrams, not numbers or calls.
 * Time is an argument in nanoseconds and never goes back.
 *
 * Every chunk has an identity (tally/check.h), so that a result of another run, chunk or call, or
 * one that lacks a rank, is found wrong. A worker that gets a wrong result sends its contribution
 * again, and rejects that sum.
 *
 * There are two frames for each chunk in flight, indexed seq mod 2W. A frame is composed,
 * sent, sent again, and then keeps what repair may need until seq + 2W takes it: the result
 * or, where the payload went to another rank, the contribution itself. A window that `keeps` has
 * both, so that another run may begin where this one was broken off.
 */
#ifndef TALLY_CLIENT_WINDOW_H
#define TALLY_CLIENT_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tally/siphash.h>
#include <tally/tally.h>
#include <tally/wire.h>

#include "recovery.h"

enum {
	WINDOW_RTO_FIRST_NS = RECOVERY_RTO_FIRST_NS,
	WINDOW_RTO_MAX_NS = RECOVERY_RTO_MAX_NS,
	WINDOW_WRONG_MAX = 16, /* so many wrong sums of one chunk end the run */
	WINDOW_SEALED_WRONG_MAX = 256, /* and so many of a sealed job's run: each may be a guess */
};

struct window_options {
	uint32_t job;
	uint16_t epoch;
	uint16_t rank;
	uint16_t workers;
	uint16_t window; /* a power of two */
	uint16_t payload_bytes;
	uint64_t nonce; /* of the run, the same for all ranks; 0: window_begin_run() says it */
	bool keyed; /* the job has rank keys, and this is the rank's: */
	struct tally_key key;
	bool follows; /* fewer chunks fly than `window` where the network has no room (congestion.h)
		       */
	bool keeps; /* contributions too, when their results have come: for window_repost() */
	bool sealed; /* the job has a secret, which all its ranks know, and no node: */
	struct tally_key secret;
};

/* What the network last let us know, for a timeout's explanation. */
struct window_news {
	uint64_t heard_ns; /* any message of our job from the node; 0: never */
	uint64_t asked_ns; /* an ask for a chunk that we wait for; 0: never */
	struct tally_set missing; /* the ranks that it lacked */
	uint8_t other_version; /* a node that speaks this one instead; 0: none */

	/* The rest ends the run. Ranks of `callers` call `call`, and rank `other` `other_call`. */
	bool mismatch;
	uint64_t call, other_call;
	uint16_t other;
	struct tally_set callers;
	bool overtaken; /* the node is further than this worker can be: others use the epoch */
	bool spoiled; /* a chunk's sum was wrong again and again */
};

struct datagram {
	const void *bytes; /* valid until the next call into the window */
	uint16_t length;
	bool fresh; /* sent for the first time */
	bool marked; /* of what was received: it met congestion on its way (ECN) */
	bool *in_run; /* of what is fresh: who sends it says here whether others went with it */
};

/* Of the chunks with results: how many were sent in a run at first, and of them, on one try. */
struct window_runs {
	uint64_t chunks, first_tries;
};

struct window;

int window_new(const struct window_options *options, struct window **ret);
void window_free(struct window *w);

/*
 * The frame of a new chunk: its header is filled but for what the caller knows (recipient,
 * blocks, lane, scales, sticky flags, call); its payload is at tally_payload(). The result of
 * seq - W must have been taken. window_post() queues it for sending; `place`: which chunk of which
 * call this is, and in which form, the same for all ranks; `vote`: how this rank's values fit that
 * (call.h); `sum_blocks`: what its sum has. A node
 * makes what it sends out of what it was sent, so a contribution without payload that has to be
 * sent again takes as many blocks of zeros along.
 */
struct tally_header *window_compose(struct window *w, uint32_t seq);
void window_post(struct window *w, uint32_t seq, uint64_t place, uint64_t vote, uint8_t sum_blocks);

/* Of the last two chunks of each stream (seq mod W): is this one there, and its result, too? */
bool window_has_result(const struct window *w, uint32_t seq);
bool window_lacks_result(const struct window *w, uint32_t seq); /* it is there, without */

/* The contribution that `from`, which keeps them, has or had as `was` is posted here as `seq`. */
void window_repost(struct window *w, uint32_t seq, struct window *from, uint32_t was);

/* Of the frames that are composed from now on. */
void window_priority_set(struct window *w, uint8_t priority);

/* From now on chunks are of the run of this nonce. None may be in flight. */
void window_begin_run(struct window *w, uint64_t nonce);

/* Up to `max` datagrams that are to be sent now. Fewer than `max`: that was all. */
size_t window_output(struct window *w, uint64_t now_ns, struct datagram *ret, size_t max);

/* There was no room for these, the last ones of window_output(): it will give them again. */
void window_unsent(struct window *w, const struct datagram *d, size_t n);

/*
 * A datagram from the network. True: it is the first result of chunk ret_seq and stands in
 * `bytes` (header, then header->blocks blocks), checked.
 */
bool window_input(struct window *w, const void *bytes, size_t length, uint64_t now_ns,
		  uint32_t *ret_seq);

/*
 * This datagram, which is for window_input(), met congestion on its way: all ranks hear it by the
 * next contribution. Not of what is none of the run's: a mark has no key, and the message has.
 */
void window_marked(struct window *w, const void *bytes, size_t length);

/* Nothing more is sent of chunks that have no result yet; repairs are still answered. */
void window_drop(struct window *w);

/* When window_output() may have something to send again; UINT64_MAX: never. */
uint64_t window_wakeup(const struct window *w);

uint64_t window_rtt(const struct window *w);
uint64_t window_rto(const struct window *w);

/* So many chunks may be in flight now. */
uint32_t window_room(const struct window *w);

const struct tally_stats *window_stats(const struct window *w);
const struct window_runs *window_runs(const struct window *w);
const struct window_news *window_news(const struct window *w);

#endif
