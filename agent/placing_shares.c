// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Jobs with several roots: what their workers hear of shares. */
#include "placing_private.h"

/* What all its roots have; the revision of the newest of these. 0: not all are known. */
static uint64_t shares_find(const struct placing *p, const struct shared_job *s, uint16_t *ret)
{
	uint64_t newest = 0;

	for (unsigned int i = 0; i < s->job.roots; i++) {
		const struct shared_job *root = shared_root(&p->shared, s, i + 1);

		if (!root || !shared_is_placed(root) || !root->place.share)
			return 0;
		ret[i] = root->place.share;
		newest = root->place_revision > newest ? root->place_revision : newest;
	}
	return newest;
}

void placing_shares_say(struct placing *p)
{
	const struct books *b = core_books(placing_core(p));
	uint16_t share[JOINING_ROOTS_MAX];

	for (unsigned int i = 0; i < b->jobs; i++) {
		const struct job *j = b->job[i];
		const struct shared_job *s = j->clustered ? shared_find(&p->shared, j->name) : NULL;
		uint64_t revision;

		if (!s || s->job.birth != j->birth || s->job.which != 1 || !placing_is_ours(p, s) ||
		    !j->run_window)
			continue;
		revision = shares_find(p, s, share);
		if (!revision || placing_is_told(p, s, revision))
			continue;
		for (unsigned int rank = 0; rank < j->workers; rank++)
			if (j->rank[rank].connection && j->rank[rank].presence == JOB_RUNNING)
				driver_say_shares(j->rank[rank].connection, share, s->job.roots);
	}
}
