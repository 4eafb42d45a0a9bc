/* SPDX-License-Identifier: GPL-2.0-only */
/* A sender of TCP cubic (RFC 9438) that always has something to send, as far as its window goes. */
#ifndef TALLY_TESTS_UNIT_CUBIC_H
#define TALLY_TESTS_UNIT_CUBIC_H

#include <stdbool.h>
#include <stdint.h>

#define CUBIC_C 0.4
#define CUBIC_KEPT 0.7
#define CUBIC_RENO 0.529 /* what a window grows in a round trip beside Reno's */

enum {
	CUBIC_NUMBERS = 4096, /* more packets than fly */
	CUBIC_RISE_NS = 4 * 1000 * 1000, /* of round trips, which ends the slow start (HyStart) */
};

struct cubic {
	double window, slow; /* packets; below `slow` it doubles */
	double before, reno; /* the window before the latest loss; as Reno's would be since */
	uint64_t since_ns; /* that loss */
	uint64_t base_ns;
	uint64_t next, acked,
		edge; /* packets: behind the last one sent, acknowledged; at the loss */
	uint64_t sent_ns[CUBIC_NUMBERS];
	uint64_t delivered, cuts;
};

static inline void cubic_init(struct cubic *c) { *c = (struct cubic){ .window = 10, .slow = 1e9 }; }

static inline bool cubic_may_send(const struct cubic *c) { return c->next - c->acked < c->window; }

/* The number of the packet. */
static inline uint64_t cubic_send(struct cubic *c, uint64_t now_ns)
{
	c->sent_ns[c->next % CUBIC_NUMBERS] = now_ns;
	return c->next++;
}

static inline double cubic_root(double x)
{
	double y = 1;

	for (int i = 0; i < 60; i++)
		y -= (y * y * y - x) / (3 * y * y);
	return y;
}

/* Once for what flies at a time. */
static inline void cubic_cut(struct cubic *c, uint64_t now_ns)
{
	if (c->acked < c->edge)
		return;
	c->before = c->window;
	c->window = c->window * CUBIC_KEPT > 2 ? c->window * CUBIC_KEPT : 2;
	c->slow = c->reno = c->window;
	c->since_ns = now_ns;
	c->edge = c->next;
	c->cuts++;
}

static inline void cubic_grow(struct cubic *c, uint64_t now_ns)
{
	double t = (now_ns - c->since_ns + c->base_ns) / 1e9, k, target;

	if (c->window < c->slow) {
		c->window++;
		return;
	}
	k = c->before ? cubic_root(c->before * (1 - CUBIC_KEPT) / CUBIC_C) : 0;
	target = CUBIC_C * (t - k) * (t - k) * (t - k) + c->before;
	c->reno += CUBIC_RENO / c->reno;
	target = target > c->reno ? target : c->reno;
	if (target > c->window)
		c->window += (target - c->window) / c->window;
}

/* Packets come in order: what lies between was lost. */
static inline void cubic_ack(struct cubic *c, uint64_t number, bool marked, uint64_t now_ns)
{
	uint64_t rtt_ns = now_ns - c->sent_ns[number % CUBIC_NUMBERS];
	bool lost = number > c->acked;

	c->base_ns = !c->base_ns || rtt_ns < c->base_ns ? rtt_ns : c->base_ns;
	if (lost || marked)
		cubic_cut(c, now_ns);
	c->acked = number + 1;
	c->delivered++;
	if (c->window < c->slow && rtt_ns > c->base_ns + CUBIC_RISE_NS) {
		c->slow = c->before = c->reno = c->window;
		c->since_ns = now_ns;
	}
	cubic_grow(c, now_ns);
}

#endif
