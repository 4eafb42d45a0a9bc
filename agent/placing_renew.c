// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Where the workers of this node's runs are: others weigh by that. */
#include <stdlib.h>
#include <string.h>

#include "common/address.h"
#include "common/owned.h"
#include "placing_private.h"

static bool has_workers(const struct wanted_place *place, const struct job *j)
{
	if (place->workers != j->workers)
		return false;
	for (unsigned int rank = 0; rank < j->workers; rank++)
		if (!endpoint_is_equal(&place->worker[rank], &j->rank[rank].address))
			return false;
	return true;
}

/* Of the run that is on: whoever leads weighs by that. */
static void renew(struct placing *p, const struct shared_job *s, const struct job *j)
{
	_cleanup_(freep) struct wanted_place *place = malloc(sizeof(*place));
	_cleanup_(freep) char *text = NULL;
	char key[STORE_KEY_BYTES];
	const struct store_seen seen = { key, s->place_revision };
	struct store_change change = { key, NULL, false };

	if (!place)
		return;
	*place = s->place;
	place->workers = j->workers;
	for (unsigned int rank = 0; rank < j->workers; rank++)
		place->worker[rank] = j->rank[rank].address;
	text = wanted_print(&wanted_place_keys, place);
	if (!text)
		return;
	change.value = text;
	snprintf(key, sizeof(key), WANTED_PLACES "%s", s->name);
	placing_write(p, &seen, 1, &change, 1);
}

void placing_renew(struct placing *p)
{
	const struct books *b = core_books(placing_core(p));

	for (unsigned int i = 0; i < b->jobs; i++) {
		const struct job *j = b->job[i];
		const struct shared_job *s = j->clustered ? shared_find(&p->shared, j->name) : NULL;

		if (s && s->job.birth == j->birth && placing_is_ours(p, s) && j->run_window &&
		    !has_workers(&s->place, j))
			renew(p, s, j);
	}
}
