// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "standing.h"

#include <string.h>

const struct report *standing_root(const struct shared_job *j, const struct picture *p)
{
	const int at = shared_is_placed(j) ? picture_place(p, j->place.root) : -1;

	return at < 0 ? NULL : p->report[at];
}

const struct report_job *standing_at(const struct shared_job *j, const struct report *r)
{
	for (unsigned int i = 0; r && i < r->jobs; i++)
		if (r->job[i].id == j->job.id && !r->job[i].inner)
			return &r->job[i];
	return NULL;
}

const struct report_job *standing_there(const struct shared_job *j, const struct picture *p)
{
	return standing_at(j, standing_root(j, p));
}

const struct report *standing_elsewhere(const struct shared_job *j, const struct picture *p)
{
	const struct report *root = standing_root(j, p);
	const struct report_job *there = standing_at(j, root);

	if (!shared_is_placed(j) || (there && there->runs))
		return NULL;
	for (unsigned int i = 0; i < p->nodes; i++) {
		there = p->report[i] == root ? NULL : standing_at(j, p->report[i]);
		if (there && there->runs)
			return p->report[i];
	}
	return NULL;
}

enum standing standing_of(const struct shared_job *j, const struct picture *p)
{
	const struct report_job *there = standing_there(j, p);

	if (!shared_is_placed(j))
		return j->workers < j->job.workers ? STANDING_FORMING : STANDING_DUE;
	if ((there && there->runs) || standing_elsewhere(j, p))
		return STANDING_RUNNING;
	if (standing_is_refused(j, j->place.root))
		return standing_is_due(j, p) ? STANDING_DUE : STANDING_FORMING;
	return standing_root(j, p) ? STANDING_PLACED : STANDING_SILENT;
}

const char *standing_refused_why(const struct shared_job *j, const char *node)
{
	for (unsigned int i = 0; i < j->refusals; i++)
		if (!strcmp(j->refusal[i].node, node))
			return j->refusal[i].why;
	return NULL;
}

bool standing_is_refused(const struct shared_job *j, const char *node)
{
	return standing_refused_why(j, node);
}

bool standing_is_due(const struct shared_job *j, const struct picture *p)
{
	const struct report *root = standing_root(j, p);
	const struct report_job *there = standing_at(j, root);

	if (j->revision && shared_is_placed(j) && j->place.workers == j->job.workers &&
	    (standing_is_refused(j, j->place.root) ||
	     (root && root->cordoned && standing_elsewhere(j, p))))
		return true; /* also if a run of it is on elsewhere: its workers are known */
	if (!j->revision || j->workers < j->job.workers)
		return false;
	if (!shared_is_placed(j) || !root || standing_is_refused(j, j->place.root))
		return true;
	return root->cordoned && !(there && there->runs);
}
