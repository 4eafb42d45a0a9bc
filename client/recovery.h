/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is sent again, and when: what a window concludes from the results that come, from those
 * that do not, and from news. Pure; time is an argument in nanoseconds and never goes back.
 *
 * A chunk that others overtook is a suspect: some rank's contribution is lost, or this rank's copy
 * of the result. Contributions that leave ask about it, and the result of one of them brings the
 * set of ranks that are there. Whom it lacks sends again; who is in it waits; and where all are in
 * it, whoever misses the result sends again to be answered. Where no contribution leaves any more,
 * ranks probe by turns: one flushes, and the node asks the group, which is news for all.
 *
 * Silence is rarely loss, mostly a late rank. So one rank after the other probes with one chunk.
 */
#ifndef TALLY_CLIENT_RECOVERY_H
#define TALLY_CLIENT_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>

enum {
	RECOVERY_RTO_MIN_NS = 2 * 1000 * 1000,
	RECOVERY_RTO_FIRST_NS = 20 * 1000 * 1000, /* before the first result */
	RECOVERY_RTO_MAX_NS = 250 * 1000 * 1000,
	RECOVERY_STEP_MIN_NS = 400 * 1000, /* between the turns of ranks */
	RECOVERY_STEP_MAX_NS = 1000 * 1000,
	RECOVERY_TURNS_MAX_NS = 20 * 1000 * 1000,
	RECOVERY_REORDER_MIN_NS = 200 * 1000, /* results this much out of order are not losses */
	RECOVERY_PATIENCE_MIN_NS = 4 * 1000 * 1000,
	RECOVERY_PATIENCE_FIRST_NS = 20 * 1000 * 1000,
	RECOVERY_PATIENCE_MAX_NS = 40 * 1000 * 1000,
	RECOVERY_TAIL_FLIGHTS = 4, /* so few without a result may be what a burst has lost */
};

enum recovery_news {
	RECOVERY_NO_NEWS = 0,
	RECOVERY_OTHERS_MISS, /* this rank is there, others are not */
	RECOVERY_COPY_LOST, /* all are there: it is finished */
};

/* What is known of a chunk that flies. */
struct fate {
	uint64_t sent_ns; /* the last time */
	uint64_t overtaken_ns; /* it was found overtaken; 0: not since then */
	uint64_t asked_ns; /* a contribution left that asks about it; 0: not since then */
	uint64_t heard_ns; /* the latest news; 0: none since then */
	uint32_t seq;
	uint8_t tries; /* times sent, saturating */
	uint8_t news; /* enum recovery_news */
	bool probe; /* the last time it went because nobody knew better */
	bool lost; /* to be sent again at once */
	bool group_asked; /* by a flush: a node below the root may have emptied its slot */
};

struct recovery {
	uint16_t rank, workers;
	uint8_t silences; /* probes since the latest result, by any rank */
	bool learning; /* the first result after a probe of `probed` is to come */
	uint32_t probed;
	uint64_t srtt_ns, rttvar_ns, rto_ns, min_rtt_ns;
	uint64_t quick_ns; /* the shortest round trip of late: without waiting for late ranks */
	uint64_t reorder_ns; /* results so much out of order are not losses */
	uint64_t newest_ns; /* sent_ns of the latest-sent chunk with a result */
	uint64_t newest_rtt_ns; /* and how long that took */
	uint32_t newest_seq;
	uint64_t quiet_ns; /* since then nothing has come or gone */
	uint64_t patience_ns; /* so late are ranks */
};

void recovery_init(struct recovery *r, uint16_t rank, uint16_t workers);

/* A chunk leaves, for the first time or again. */
void recovery_sent(struct recovery *r, struct fate *f, uint64_t now_ns);

/* Its result has come. True: others may be overtaken now. */
bool recovery_result(struct recovery *r, const struct fate *f, uint64_t now_ns);

/* What was sent before has come to the root by now, or is lost. */
uint64_t recovery_settled(const struct recovery *r, uint64_t now_ns);

/*
 * News of a chunk that flies: `mine`: this rank was there; `all`: everyone was. What was sent later
 * than `since_ns` may not have been there yet.
 */
void recovery_hear(struct recovery *r, struct fate *f, bool mine, bool all, uint64_t since_ns,
		   uint64_t now_ns);

/* The group was asked about a chunk that was sent; this rank was there. `flying`: chunks. */
void recovery_probed(struct recovery *r, const struct fate *f, uint32_t flying, uint64_t now_ns);

/*
 * When a chunk that flies is to be sent again; UINT64_MAX: not without more news. `is_tail`: no
 * contribution may leave that could ask about it.
 */
uint64_t recovery_due(struct recovery *r, struct fate *f, bool is_tail, uint64_t now_ns);

/* Is it to carry FLUSH then? */
bool recovery_flushes(const struct fate *f);

/* Is it to be asked about? */
bool recovery_asks(const struct recovery *r, const struct fate *f, uint64_t now_ns);

/* When silence has lasted so long that `newest`, the last of so many that fly, is to be probed. */
uint64_t recovery_silence(const struct recovery *r, const struct fate *newest, uint32_t flying);

#endif
