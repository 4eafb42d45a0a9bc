// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "explain.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <tally/wire.h>

#include "shape.h"

/* "rank 3", "ranks 0, 2, 5": as many as fit. */
static void name_ranks(const struct tally_set *set, char *text, size_t size)
{
	size_t used = snprintf(text, size, "rank%s", tally_set_is_single(set) ? "" : "s");
	const char *separator = " ";

	for (uint32_t rank = 0; rank < TALLY_WORKERS_MAX && used + 10 < size; rank++) {
		if (!tally_set_has(set, rank))
			continue;
		used += snprintf(text + used, size - used, "%s%u", separator, rank);
		separator = ", ";
	}
}

/* "rank 3 calls A, ranks 0, 2 call B": this rank among them, or behind them. */
static void explain_mismatch(const struct window_news *news, const struct situation *s, char *text,
			     size_t size)
{
	char ranks[64], own[SHAPE_TEXT_BYTES], other[SHAPE_TEXT_BYTES], call[SHAPE_TEXT_BYTES];
	bool is_other = news->other == s->job->rank;
	bool is_caller = tally_set_has(&news->callers, s->job->rank);
	bool single = tally_set_is_single(&news->callers);
	size_t used;

	name_ranks(&news->callers, ranks, sizeof(ranks));
	shape_print(news->other_call, news->call, other, sizeof(other));
	shape_print(news->call, news->other_call, call, sizeof(call));
	shape_print(s->shape, s->shape == news->call ? news->other_call : news->call, own,
		    sizeof(own));
	used = snprintf(text, size, "ranks make different calls: rank %u%s calls %s, %s%s %s %s",
			news->other, is_other ? " (this one)" : "", other, ranks,
			!is_caller ? ""
			: single   ? " (this one)"
				   : " (this one included)",
			single ? "calls" : "call", call);
	if (!is_other && !is_caller && used < size)
		used += snprintf(text + used, size - used, ", this rank %s", own);
	/* Nothing of a call alone can make that difference. */
	if (news->call == news->other_call && used < size)
		snprintf(text + used, size - used,
			 ": the same call, but the lane, recipient or length of a chunk differs: "
			 "do all ranks run the same version of the library?");
}

int explain_used_epoch(const struct situation *s, uint16_t rank, char *text, size_t size)
{
	snprintf(text, size,
		 "epoch %u of job %u was used before, or another process runs as rank %u: give the "
		 "job a new epoch on all ranks",
		 s->job->epoch, s->job->job, rank);
	return -ESTALE;
}

int explain_news(const struct window_news *news, const struct situation *s, char *text, size_t size)
{
	/* No rank makes two calls at a time: the others are of an earlier run. */
	if (news->mismatch && news->other < TALLY_WORKERS_MAX &&
	    tally_set_has(&news->callers, news->other))
		return explain_used_epoch(s, news->other, text, size);
	if (news->mismatch) {
		explain_mismatch(news, s, text, size);
		return -EPROTO;
	}
	if (news->overtaken)
		return explain_used_epoch(s, s->job->rank, text, size);
	if (news->spoiled && s->job->sealed) {
		snprintf(text, size,
			 "the node added wrong: sums from %s were wrong again and again, and the "
			 "job has a secret. Either that node or a machine on the way there changes "
			 "sums, or not all ranks have the same secret",
			 s->service);
		return -EBADMSG;
	}
	if (news->spoiled) {
		snprintf(text, size,
			 "%u sums of one chunk were wrong, one after the other: some rank has "
			 "another state of the run than this one, or a machine on the way to %s "
			 "changes packets",
			 (unsigned int)WINDOW_WRONG_MAX, s->service);
		return -EBADMSG;
	}
	if (news->other_version && !news->heard_ns) {
		snprintf(text, size, "the node at %s speaks version %u, this library version %u",
			 s->service, news->other_version, (unsigned int)TALLY_VERSION);
		return -EPROTONOSUPPORT;
	}
	return 0;
}

/* Results come back by the same way, or a part of the ranks' packets arrive: so this is told even
 * where something was heard. */
static void explain_too_large(const struct situation *s, char *text, size_t size)
{
	const size_t headers = strchr(s->service, ':') ? 48 : 28;
	const size_t header = tally_header_bytes(
		s->job->workers > TALLY_SMALL_WORKERS_MAX ? TALLY_LARGE : 0);
	const size_t before = headers + header;
	const size_t room = s->mtu > before
				    ? (s->mtu - before) / TALLY_BLOCK_BYTES * TALLY_BLOCK_BYTES
				    : 0;

	snprintf(text, size,
		 "packets of up to %zu bytes are too large for the way to %s, which takes %u, as a "
		 "machine on it says: no result for %.1f s. Raise the MTU there, or give the job a "
		 "payload of %zu (tallyctl job create --payload)",
		 before + s->job->payload_bytes, s->service, s->mtu, s->waited_ns / 1e9, room);
}

void explain_timeout(const struct window_news *news, const struct situation *s, char *text,
		     size_t size)
{
	double seconds = s->waited_ns / 1e9;
	char ranks[128];

	if (s->mtu &&
	    (news->heard_ns <= s->progress_ns ||
	     (news->asked_ns >= s->progress_ns && tally_set_has(&news->missing, s->job->rank)))) {
		explain_too_large(s, text, size);
	} else if (news->heard_ns <= s->progress_ns) {
		snprintf(text, size, "no node answered at %s for %.1f s: %s", s->service, seconds,
			 s->unreachable
				 ? "port unreachable: is the job added there, with this epoch, "
				   "and does the node speak version 2?"
				 : "tallyctl doctor on the node says whether results are lost on "
				   "the way back, as on a veth without an XDP program at its "
				   "other end; or the way there is closed, or the epoch is over");
	} else if (news->asked_ns >= s->progress_ns &&
		   tally_set_has(&news->missing, s->job->rank)) {
		snprintf(text, size,
			 "the node at %s has got no contribution from rank %u, this one, for %.1f "
			 "s: are packets lost on the way there, perhaps only large ones, or "
			 "refused there, as outside the tenant's ingress points? tallyctl doctor "
			 "on the node says which are refused",
			 s->service, s->job->rank, seconds);
	} else if (news->asked_ns >= s->progress_ns) {
		name_ranks(&news->missing, ranks, sizeof(ranks));
		snprintf(text, size, "%s missing: no contribution for %.1f s", ranks, seconds);
	} else {
		snprintf(text, size,
			 "the node at %s is there but did not answer for %.1f s: is another run "
			 "going on in epoch %u?",
			 s->service, seconds, s->job->epoch);
	}
}
