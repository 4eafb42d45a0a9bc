// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Slots on loan are given back: their runs go on in software, and a run that begins has the slots.
 */
#include <errno.h>
#include <string.h>

#include "agent/policy/quota.h"
#include "core_private.h"

static void recall_next(struct core *c, int r);

static struct job *recalled(const struct core *c) { return c->recall.job[c->recall.at - 1]; }

static void removed(struct core *c, int r)
{
	if (r < 0 && r != -ENOENT)
		core_doubt_maps(c); /* it goes when they are read */
	recall_next(c, 0);
}

static void sampled(struct core *c, int r) { mirror_remove(c, recalled(c)->id, removed); }

/* Its messages come to the spill as soon as the maps do not have it any more. */
static void spilled(struct core *c, int r)
{
	struct job *j = recalled(c);

	if (r < 0) {
		core_log(c, LOG_LEVEL_ERROR, "cannot recall slots on loan", "job=%s reason=\"%s\"",
			 j->name, core_reason(&c->why, r));
		recall_next(c, 0);
		return;
	}
	core_log(c, LOG_LEVEL_INFO, "slots on loan recalled: the run goes on in software",
		 "job=%s slots=%u for=%s", j->name, job_slots(j), c->recall.begins->name);
	j->spilled = true;
	refill_later(c, j);
	c->counts.loans_recalled++;
	core_save_soon(c);
	/* its last packets are counted as its own */
	core_await(c, ACTION(CORE_SAMPLE), NULL, sampled);
}

static void recall_next(struct core *c, int r)
{
	if (r < 0 || c->recall.at == c->recall.count) {
		free(TAKE_PTR(c->recall.job));
		c->recall.then(c, r);
		return;
	}
	c->recall.at++;
	run_spill(c, recalled(c), 0, spilled);
}

/* Slots that no run uses, once the one before this job's next run is over. */
static uint32_t slots_free(const struct books *b, const struct job *begins)
{
	uint32_t used = 0;

	for (unsigned int i = 0; i < b->jobs; i++)
		used += b->job[i] == begins ? 0 : job_slots(b->job[i]);
	return used < b->slots ? b->slots - used : 0;
}

/* What is known of each tenant. */
static void use_of(const struct core *c, struct quota_use ret[TALLY_TENANTS_MAX])
{
	memcpy(ret, c->measured, sizeof(c->measured));
	for (unsigned int i = 0; i < c->books.jobs; i++) {
		const struct job *j = c->books.job[i];

		ret[j->tenant].held += job_slots(j);
		ret[j->tenant].in_software += j->run_window && j->spilled ? 2u * j->run_window : 0;
	}
}

static int recall(const struct core *c, struct quota_loan *loan, unsigned int count,
		  const struct quota_want *want)
{
	const enum config_quotas quotas = c->config->quotas;
	struct quota_use use[TALLY_TENANTS_MAX];

	use_of(c, use);
	return quota_recall(&QUOTA_POLICIES[quotas == CONFIG_QUOTAS_FIXED ? 0 : quotas - 1], use,
			    loan, count, want);
}

void lend_recall(struct core *c, const struct job *begins, uint32_t slots, bool own,
		 core_step *then)
{
	const struct books *b = &c->books;
	_cleanup_(freep) struct quota_loan *loan = calloc(b->jobs + 1, sizeof(*loan));
	_cleanup_(freep) struct job **job = calloc(b->jobs + 1, sizeof(*job));
	const struct quota_want want = { begins->tenant, slots, slots_free(b, begins), own };
	unsigned int count = 0, recalls = 0;
	int r = -ENOMEM;

	for (unsigned int i = 0; loan && job && i < b->jobs; i++)
		if (b->job[i] != begins && job_is_lent(b->job[i]) &&
		    books_may_spill(b, b->job[i])) {
			loan[count] = (struct quota_loan){ .tenant = b->job[i]->tenant,
							   .slots = job_slots(b->job[i]) };
			job[count++] = b->job[i];
		}
	if (loan && job)
		r = recall(c, loan, count, &want);
	for (unsigned int i = 0; r > 0 && i < count; i++)
		if (loan[i].recalled)
			job[recalls++] = job[i];
	c->recall.begins = begins;
	c->recall.job = TAKE_PTR(job);
	c->recall.count = recalls;
	c->recall.at = 0;
	c->recall.then = then;
	recall_next(c, r < 0 ? r : 0);
}

void core_measured(struct core *c, unsigned int tenant, const struct quota_use *rates)
{
	c->measured[tenant] = *rates;
	c->measured[tenant].held = c->measured[tenant].in_software = 0;
}
