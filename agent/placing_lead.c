// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The leader's hands: agent/cluster/lead.h decides where roots are, and here that is written. */
#include <errno.h>
#include <string.h>

#include "agent/edge/log.h"
#include "common/clock.h"
#include "common/owned.h"
#include "placing_private.h"

static struct lead_view view(const struct placing *p)
{
	return (struct lead_view){ clock_now_ns(), &p->shared, sharing_picture(p->sharing),
				   core_config(placing_core(p))->cluster.finds_ways, NULL };
}

static void on_decided(void *context, int error, uint64_t revision, const char *why)
{
	struct placing *p = context;

	lead_decided(&p->lead, error, revision);
	if (error < 0 && error != -ESTALE)
		log_say(LOG_LEVEL_WARNING, "decision not stored", "reason=\"%s\"", why);
	placing_wake(p);
}

static void decision_say(struct placing *p, const struct lead_decision *d)
{
	for (unsigned int i = 0; i < d->jobs; i++) {
		const struct shared_job *j = d->job[i];
		const struct wanted_place *place = &d->place[i];
		const bool is_new = !shared_is_placed(j);
		const bool moves = !is_new && strcmp(j->place.root, place->root) != 0;

		p->counts.placed += is_new;
		p->counts.moved += moves;
		log_say(LOG_LEVEL_INFO, is_new || moves ? "job placed" : "shares changed",
			"job=%s node=%s share=%u why=\"%s\"", j->name, place->root, place->share,
			place->why);
	}
	for (unsigned int i = 0; i < d->leds; i++) {
		p->counts.ways++;
		log_say(LOG_LEVEL_INFO, d->ways ? "ways found" : "ways given up",
			"job=%s share=%u why=\"%s\"", d->led[i]->name,
			d->ways && d->leds > 1 ? d->share[i] : d->led[i]->place.share, d->why.text);
	}
}

static void decision_write(struct placing *p, const struct lead_decision *d)
{
	int r = store_write(p->store, &d->write, on_decided, p);

	if (r < 0)
		lead_decided(&p->lead, r, 0); /* we decide again at the next look */
	*p->unplaced = '\0';
	decision_say(p, d);
}

/* Once for each reason. */
static void unplaced_say(struct placing *p, const struct lead_without *w)
{
	char text[sizeof(p->unplaced)];

	snprintf(text, sizeof(text), "%s %.250s", w->job->name, w->why.text);
	if (!strcmp(text, p->unplaced))
		return;
	snprintf(p->unplaced, sizeof(p->unplaced), "%s", text);
	log_say(LOG_LEVEL_WARNING, "job not placed", "job=%s reason=\"%s\"", w->job->name,
		w->why.text);
}

void placing_lead(struct placing *p)
{
	_cleanup_(lead_decision_freep) struct lead_decision *d = NULL;
	const struct lead_view v = view(p);
	struct store_seen leads;

	if (lead_look(&p->lead, &v, leader_seen(p->leader, &leads) ? &leads : NULL, &d) < 0 || !d)
		return;
	for (unsigned int i = 0; i < d->withouts; i++)
		unplaced_say(p, &d->without[i]);
	if (d->write.changes)
		decision_write(p, d);
}

void placing_goes(struct placing *p, const struct store_item *item)
{
	const bool is_job = !strncmp(item->key, WANTED_JOBS, strlen(WANTED_JOBS));
	const struct shared_job *j = is_job && !item->value
					     ? shared_find(&p->shared,
							   item->key + strlen(WANTED_JOBS))
					     : NULL;
	const struct lead_view v = view(p);

	if (j)
		lead_job_goes(&p->lead, &v, j);
}

int placing_outlook(const struct placing *p, const struct shared_job *j, struct why *ret)
{
	struct lead_view v = view(p);

	if (*p->leader_name && strcmp(p->leader_name, p->node) != 0)
		v.leader = p->leader_name;
	return lead_outlook(&p->lead, &v, j, ret);
}
