// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How a worker comes into a job through agents: at each of those that it names, or, where a cluster
 * has the job, at each of the roots that the cluster has given it.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "error.h"
#include "open_private.h"
#include "sized.h"

_Static_assert((int)JOINING_ROOTS_MAX == SHARDS_MAX, "all roots that an agent may say");
_Static_assert((int)JOINING_SHARE_MAX == SHARE_MAX, "any share that an agent may say");

struct joined {
	struct tally_join_options options;
	struct roots *roots;
	struct joining_answer *place[SHARDS_MAX]; /* have the keys that options of roots point to */
};

static void joined_close(struct joined *j)
{
	for (unsigned int i = 0; i < SHARDS_MAX; i++) {
		if (j->place[i])
			explicit_bzero(j->place[i], sizeof(*j->place[i]));
		free(j->place[i]);
	}
	roots_freep(&j->roots);
}

static int place_make(struct joined *j, unsigned int which)
{
	j->place[which] = calloc(1, sizeof(*j->place[which]));
	return j->place[which] ? 0 : error_set(-ENOMEM, "out of memory");
}

static void root_fill(struct joined *j, unsigned int which, uint16_t share)
{
	const struct joining_answer *place = j->place[which];
	struct root *root = &j->roots->root[which];

	root->options = run_options(&place->job, place->rank);
	root->options.timeout_ms = j->options.timeout_ms;
	root->options.progress = j->options.progress;
	root->options.progress_threads = j->options.progress_threads;
	root->options.late_rank_timeout_ms = j->options.late_rank_timeout_ms;
	root->options.congestion = j->options.congestion;
	root->options.share = share;
	root->options.spin_us = j->options.spin_us;
	root->service = place->job.service;
	root->nonce = place->job.nonce;
}

/* --- at each agent that the options name ----------------------------------------------------- */

static int named_join(struct joined *j, unsigned int which, uint16_t share)
{
	struct root *root = &j->roots->root[which];
	int r = place_make(j, which);

	if (r == 0)
		r = join_open(&j->options, which, j->roots->count, &root->join, &root->channel,
			      j->place[which]);
	if (r < 0)
		return r;
	root_fill(j, which, share);
	j->options.rank = root->options.rank; /* as at the first root */
	return 0;
}

static int named_join_all(struct joined *j)
{
	const unsigned int count = j->roots->count;
	uint16_t share[SHARDS_MAX];
	int r = join_shares(&j->options, count, share);

	for (unsigned int i = 0; r == 0 && i < count; i++)
		r = root_blame(named_join(j, i, share[i]), i, count);
	return r;
}

/* --- at each root that a cluster has chosen -------------------------------------------------- */

/* A job of several roots is not one among several, and is joined by the name of the first. */
static int check_first(const struct joined *j)
{
	const struct joining_answer *first = j->place[0];

	assert(first);
	for (unsigned int i = 0; i < j->roots->count && j->place[i]; i++)
		if (j->place[i]->roots && j->roots->count > 1)
			return error_set(
				-EINVAL,
				"agent: the job at agent %u of %u is one of a cluster with "
				"%u roots of its own: name one agent of that cluster",
				i + 1, j->roots->count, j->place[i]->roots);
	if (first->which > 1)
		return error_set(-EINVAL,
				 "job: this is root %u of a job with %u roots: join the job by its "
				 "own name, without the number behind it",
				 first->which, first->roots);
	if (first->roots && join_has_shares(&j->options))
		return error_set(-EINVAL,
				 "shares: the cluster says those of the job's %u roots: leave "
				 "them out, also in $TALLY_SHARES",
				 first->roots);
	return 0;
}

static int chosen_join(struct joined *j, unsigned int which)
{
	const struct joining_answer *first = j->place[0];
	struct root *root = &j->roots->root[which];
	char name[NAME_BYTES];
	int r = place_make(j, which);

	if (r == 0 && joining_root_name(join_job(j->roots->root[0].join), which + 1, name) < 0)
		r = error_set(-EPROTO, "the job's name is too long for one with several roots");
	if (r < 0)
		return r;
	root->join = join_beside(j->roots->root[0].join, name);
	if (!root->join)
		return error_set(-ENOMEM, "out of memory");
	r = join_again(root->join, j->options.join_timeout_ms, &root->channel, j->place[which]);
	if (r < 0)
		return r;
	if (j->place[which]->roots != first->roots || j->place[which]->which != which + 1)
		return error_set(-EPROTO, "job %s is not that root of this job", name);
	root_fill(j, which, j->place[which]->share);
	return 0;
}

static int chosen_join_all(struct joined *j)
{
	const struct joining_answer *first = j->place[0];
	int r = check_first(j);

	if (r < 0 || !first->roots)
		return r;
	j->roots->count = first->roots;
	j->roots->root[0].options.share = first->share;
	for (unsigned int i = 1; r == 0 && i < j->roots->count; i++)
		r = root_blame(chosen_join(j, i), i, j->roots->count);
	return r;
}

int tally_join_sized(const struct tally_join_options *options, size_t size, struct tally **ret)
{
	_cleanup_(joined_close) struct joined j = { .options.rank = JOINING_RANK_ANY };
	int count, r = 0;

	if (!ret)
		return error_set(-EINVAL, "ret must not be NULL");
	if (options)
		r = sized_take(&j.options, sizeof(j.options), options, size);
	if (r == 0)
		r = check_progress(j.options.progress);
	if (r == 0)
		r = check_congestion(j.options.congestion);
	if (r == 0)
		r = join_congestion(&j.options, &j.options.congestion);
	if (r < 0)
		return r;
	count = join_roots(&j.options);
	if (count < 0)
		return count;
	j.roots = roots_new(count);
	if (!j.roots)
		return -ENOMEM;
	r = named_join_all(&j);
	if (r == 0)
		r = chosen_join_all(&j);
	if (r == 0)
		j.roots->follows = j.place[0]->roots;
	return r < 0 ? r : roots_open(j.roots, ret);
}
