// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Jobs that leave this node: their workers hear where to go. */
#include <stdlib.h>

#include "common/clock.h"
#include "placing_private.h"
#include "rendezvous.h"

enum {
	AGAIN_MS =
		90000, /* workers whose move came to nothing are told once more: joins have ended */
	TOLDS_MAX = 4 * SHARED_JOBS_MAX, /* what is forgotten is told once more, and does no harm */
};

bool placing_is_told(struct placing *p, const struct shared_job *s, uint64_t revision)
{
	struct told *more;

	for (unsigned int i = 0; i < p->tolds; i++)
		if (p->told[i].birth == s->job.birth) {
			struct told *t = &p->told[i];
			const bool told = t->revision == revision &&
					  clock_now_ns() - t->at_ns < AGAIN_MS * 1000000ull;

			if (!told)
				*t = (struct told){ s->job.birth, revision, clock_now_ns() };
			return told;
		}
	p->tolds = p->tolds < TOLDS_MAX ? p->tolds : 0;
	more = reallocarray(p->told, p->tolds + 1, sizeof(*more));
	if (!more)
		return true; /* another time */
	p->told = more;
	more[p->tolds++] = (struct told){ s->job.birth, revision, clock_now_ns() };
	return false;
}

static unsigned int connected(const struct job *j)
{
	unsigned int here = 0;

	for (unsigned int rank = 0; rank < j->workers; rank++)
		here += j->rank[rank].connection && !j->rank[rank].outdated;
	return here;
}

/*
 * Are workers of the run to be told now? It moves with all of them, or not at all: who was
 * connected to an agent before this one comes back within seconds, and so does who does not know
 * the job's token yet, as it opens nothing at the new root. Since when nobody is here is
 * noted as if they were told of nothing: who has gone on elsewhere does not come back.
 */
static bool is_to_be_told(struct placing *p, const struct job *j, const struct shared_job *s)
{
	const unsigned int here = connected(j);

	if (!here)
		placing_is_told(p, s, 0);
	return here == j->workers && !placing_is_told(p, s, s->place_revision);
}

/* Who is at the run moves with it; who waits for the next one waits there. */
static void send_away(struct placing *p, const struct job *j, const struct shared_job *s)
{
	const bool tells = is_to_be_told(p, j, s);

	for (unsigned int rank = 0; rank < j->workers; rank++) {
		const struct job_rank *r = &j->rank[rank];

		if (r->connection && r->waiting)
			driver_say_elsewhere(r->connection, &s->place.address, true);
		else if (r->connection && r->presence == JOB_RUNNING && tells)
			driver_say_elsewhere(r->connection, &s->place.address, false);
	}
}

void placing_send_away(struct placing *p)
{
	const struct books *b = core_books(placing_core(p));

	for (unsigned int i = 0; i < b->jobs; i++) {
		const struct job *j = b->job[i];
		const struct shared_job *s = j->clustered ? shared_find(&p->shared, j->name) : NULL;

		if (s && s->job.birth == j->birth && shared_is_placed(s) &&
		    !placing_is_ours(p, s) && rendezvous_is_there(p->rendezvous, s))
			send_away(p, j, s);
	}
}
