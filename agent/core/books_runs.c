// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Where a job's runs may be summed, by what its tenant's ingress points ask for. */
#include <errno.h>

#include "books.h"

static bool names_vlan(const struct tenant *t)
{
	for (unsigned int i = 0; i < t->points; i++)
		if (t->point[i].vlan > 0)
			return true;
	return false;
}

bool books_may_spill(const struct books *b, const struct job *j)
{
	return b->spills && !j->document && !names_vlan(&b->tenant[j->tenant].is);
}

uint32_t books_kept(const struct books *b, unsigned int index)
{
	const bool lends = b->lends && b->spills && !names_vlan(&b->tenant[index].is);
	const uint32_t quota = books_quota(b, index), promised = books_promised(b, index);
	uint32_t left = promised < quota ? quota - promised : 0, used = 0;

	for (unsigned int i = 0; i < b->jobs; i++)
		used += job_slots(b->job[i]);
	if (lends && used < b->slots && b->slots - used > left)
		left = b->slots - used;
	return left < b->slots ? b->slots - left : 0;
}

bool books_may_borrow(const struct books *b, const struct job *j)
{
	return b->pool && tenant_is_anywhere(&b->tenant[j->tenant].is) && books_may_spill(b, j);
}

int books_run_check(const struct tenant *t, const struct job *j, struct why *why)
{
	const bool is_in_software = j->spilled && !job_is_suspended(j);

	if (j->document || !j->run_window || !names_vlan(t) || (!is_in_software && !job_is_lent(j)))
		return 0;
	return why_say(why, -EBUSY,
		       "job %s: its run %s, and software cannot tell by which VLAN a message came, "
		       "as an ingress point of tenant %s asks: end the run first (tallyctl job "
		       "restart %s), or name no VLAN",
		       j->name,
		       is_in_software ? "is summed in software"
				      : "has slots on loan, and goes on in software when these are "
					"needed",
		       t->name, j->name);
}

int books_runs_check(const struct books *b, unsigned int index, const struct tenant *before,
		     struct why *why)
{
	struct why ignored;
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < b->jobs; i++)
		if (b->job[i]->tenant == index && books_run_check(before, b->job[i], &ignored) == 0)
			r = books_run_check(&b->tenant[index].is, b->job[i], why);
	return r;
}
