// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Requests that change something: the books first, then the data plane, then the disk, then the
 * answer. If one of them refuses, all are as before.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core_private.h"
#include "common/address.h"
#include "common/name.h"

static_assert(TOKEN_RANDOM_BYTES + sizeof(((struct job *)0)->epoch) +
			      sizeof(((struct job *)0)->birth) + sizeof(((struct job *)0)->id) ==
		      CORE_RANDOM_BYTES,
	      "what a job needs");

void request_answer(struct core *c, enum core_answer kind, unsigned int tenant,
		    const struct job *job)
{
	core_act(c, ACTION(CORE_ANSWER, .connection = c->change.connection, .job = job,
			   .answer = { kind, tenant, NULL }));
}

void request_refuse(struct core *c, int error, const struct why *why)
{
	core_act(c, ACTION(CORE_ANSWER, .connection = c->change.connection, .error = error,
			   .answer.text = core_reason(why, error)));
}

/* --- jobs ------------------------------------------------------------------------------------ */

/* Where its workers send: one of the node's own addresses. */
static int service_choose(const struct core *c, const struct request_job *q,
			  struct sockaddr_storage *ret, struct why *why)
{
	char text[ADDRESS_BYTES];

	for (unsigned int i = 0; i < c->config->services; i++)
		if (!q->service.ss_family ||
		    endpoint_is_equal(&c->config->service[i], &q->service)) {
			*ret = c->config->service[i];
			return 0;
		}
	address_print(&q->service, text, sizeof(text));
	return why_say(why, -EINVAL, "service: %s is not one of those in %s (tallyctl status)",
		       text, c->path);
}

/* What was asked for, with the defaults of a job file. */
static int job_facts(struct core *c, const struct request *q, const uint8_t *random,
		     struct job *ret)
{
	const struct request_job *j = &q->job;
	struct job facts = {
		.workers = j->workers,
		.window = j->window ? j->window : RUN_WINDOW,
		.tags = j->tags,
		.sealed = j->sealed,
		.clustered = j->clustered,
	};
	int r;

	r = books_tenant_find(&c->books, *j->tenant ? j->tenant : "default", &c->why);
	if (r < 0)
		return r;
	facts.tenant = r;
	r = core_entry_check(c, &c->books.tenant[r].is, &c->why);
	if (r < 0)
		return r;
	memcpy(facts.name, j->name, sizeof(facts.name));
	r = service_choose(c, j, &facts.service, &c->why);
	if (r == 0)
		r = tree_check(&j->tree, j->workers, &facts.service, &c->why);
	if (r == 0)
		r = tree_addresses_check(&j->tree, &c->why);
	if (r == 0 && j->roots > 1)
		r = why_say(&c->why, -EINVAL,
			    "roots: only a job of the cluster has several: say cluster, too");
	if (r == 0 && j->tree.found && j->tree.nodes)
		r = why_say(&c->why, -EINVAL,
			    "find_tree: agents find the tree, so it cannot be given, too");
	if (r == 0 && j->tree.found && !j->clustered &&
	    (!*c->config->peers.secret || !c->config->peers.nodes))
		r = why_say(&c->why, -EINVAL,
			    "--tree auto: this node knows no agents that it could ask: add "
			    "peers.secret and peers.nodes to %s, then tallyctl reload",
			    c->path);
	if (r < 0)
		return r;
	job_token_make(&facts, random);
	/* A stray packet of another job that had this number must not fit. */
	memcpy(&facts.epoch, random + TOKEN_RANDOM_BYTES, sizeof(facts.epoch));
	memcpy(&facts.birth, random + TOKEN_RANDOM_BYTES + sizeof(facts.epoch),
	       sizeof(facts.birth));
	facts.birth += !facts.birth;
	if (j->clustered) {
		memcpy(facts.token, j->token, sizeof(facts.token));
		facts.birth = j->birth;
	}
	memcpy(&facts.id, random + CORE_RANDOM_BYTES - sizeof(facts.id), sizeof(facts.id));
	facts.id = q->given & REQUEST_ID ? j->id : books_job_id(&c->books, facts.id);
	facts.payload_bytes = j->payload_bytes;
	facts.fits = !j->payload_bytes;
	if (facts.fits)
		facts.payload_bytes = run_payload_default(facts.service.ss_family, facts.workers);
	*ret = facts;
	return 0;
}

static void job_created(struct core *c, int r)
{
	struct job *j = c->change.created;

	if (r < 0) {
		books_job_del(&c->books, j);
		request_refuse(c, r, &c->why);
		return;
	}
	core_log(c, LOG_LEVEL_INFO, "job created", "job=%s id=%u tenant=%s workers=%u window=%u",
		 j->name, j->id, c->books.tenant[j->tenant].is.name, j->workers, j->window);
	request_answer(c, CORE_ANSWER_CREATED, 0, j);
}

static int job_create(struct core *c, const struct request *q, const uint8_t *random)
{
	_cleanup_(job_freep) struct job *fresh = NULL;
	struct job facts;
	int r;

	r = job_facts(c, q, random, &facts);
	if (r < 0)
		return r;
	fresh = job_new(&facts);
	if (!fresh)
		return -ENOMEM;
	r = job_tree_set(fresh, &q->job.tree);
	if (r == 0)
		r = books_job_add(&c->books, fresh, &c->why);
	if (r < 0)
		return r;
	c->change.created = TAKE_PTR(fresh);
	core_await(c, ACTION(CORE_SAVE), NULL, job_created);
	return 0;
}

static void job_ended(struct core *c, int r)
{
	_cleanup_(job_freep) struct job *j = TAKE_PTR(c->change.deleted);

	members_send_away(c, j, MEMBERS_ALL, -ECANCELED, "the job was deleted");
	core_act(c, ACTION(CORE_FORGET_JOB, .id = j->id));
	core_log(c, LOG_LEVEL_INFO, "job deleted", "job=%s", j->name);
	request_answer(c, CORE_ANSWER_DONE, 0, NULL);
}

static void job_deleted(struct core *c, int r)
{
	struct why ignored;

	if (r < 0) { /* there is room: it was there */
		books_job_restore(&c->books, TAKE_PTR(c->change.deleted), &ignored);
		request_refuse(c, r, &c->why);
	} else if (c->change.deleted->run_window) {
		run_end(c, c->change.deleted, job_ended);
	} else {
		job_ended(c, 0);
	}
}

static int job_named(struct core *c, const char *name, struct job **ret)
{
	*ret = books_job_find(&c->books, name);
	if (*ret)
		return 0;
	why_say(&c->why, -ENOENT, "there is no job %s (tallyctl job list)", name);
	return -ENOENT;
}

/* What concerns its workers, who are known at its root only. */
static int job_rooted(struct core *c, const char *name, struct job **ret)
{
	int r = job_named(c, name, ret);

	return r == 0 && (*ret)->document ? job_is_inner(*ret, &c->why) : r;
}

static int job_del(struct core *c, const char *name)
{
	struct job *j;
	int r = job_named(c, name, &j);

	if (r < 0)
		return r;
	books_job_take(&c->books, j);
	c->change.deleted = j;
	core_await(c, ACTION(CORE_SAVE), NULL, job_deleted);
	return 0;
}

static void job_rotated(struct core *c, int r)
{
	struct job *j = TAKE_PTR(c->change.rotated);

	if (r < 0)
		memcpy(j->token, c->change.token, sizeof(j->token));
	else if (j->sealed || j->clustered)
		/* All ranks of a sealed run need one token: their secret follows from it. Of a job
		 * that agents share, the next run may be elsewhere, where the old one is none. */
		members_send_away(c, j, MEMBERS_WAITING, -ECANCELED, JOB_ROTATED);
	if (r == 0) {
		job_outdate(j);
		members_tell_rotated(c, j);
	}
	explicit_bzero(c->change.token, sizeof(c->change.token));
	if (r < 0)
		request_refuse(c, r, &c->why);
	else
		request_answer(c, CORE_ANSWER_CREATED, 0, j);
}

static int job_rotate(struct core *c, const struct request_rotate *q, const uint8_t *random)
{
	struct job *j;
	int r = job_rooted(c, q->name, &j);

	if (r < 0)
		return r;
	job_token_goes(j); /* also if it stays: that is the one which they joined with */
	memcpy(c->change.token, j->token, sizeof(j->token));
	if (*q->token)
		memcpy(j->token, q->token, sizeof(j->token));
	else
		job_token_make(j, random);
	c->change.rotated = j;
	core_await(c, ACTION(CORE_SAVE), NULL, job_rotated);
	return 0;
}

/* --- a job's run ----------------------------------------------------------------------------- */

static void job_restarted(struct core *c, int r)
{
	struct job *j = TAKE_PTR(c->change.restarted);

	members_send_away(c, j, MEMBERS_RUNNING, -ECANCELED, "the job was restarted: join again");
	core_log(c, LOG_LEVEL_INFO, "job restarted", "job=%s epoch=%u", j->name, j->epoch);
	request_answer(c, CORE_ANSWER_DONE, 0, NULL);
}

/* First the disk, so that no later agent brings the run back. */
static void restart_saved(struct core *c, int r)
{
	_cleanup_(freep) struct job_rank *ranks = TAKE_PTR(c->change.ranks);
	struct job *j = c->change.restarted;

	if (r == 0) {
		run_end(c, j, job_restarted);
		return;
	}
	memcpy(j->rank, ranks, j->workers * sizeof(*j->rank));
	j->run_window = c->change.window;
	j->draw = c->change.draw;
	memcpy(j->run_token_key, c->change.run_token_key, sizeof(j->run_token_key));
	request_refuse(c, r, &c->why);
}

static int job_restart(struct core *c, const char *name)
{
	struct job *j;
	int r = job_rooted(c, name, &j);

	if (r < 0)
		return r;
	if (!j->run_window)
		return why_say(&c->why, -ESRCH, "job %s has no run that could be restarted", name);
	c->change.ranks = malloc(j->workers * sizeof(*j->rank));
	if (!c->change.ranks)
		return -ENOMEM;
	memcpy(c->change.ranks, j->rank, j->workers * sizeof(*j->rank));
	c->change.restarted = j;
	c->change.window = j->run_window;
	c->change.draw = j->draw;
	memcpy(c->change.run_token_key, j->run_token_key, sizeof(j->run_token_key));
	job_end(j);
	core_await(c, ACTION(CORE_SAVE), NULL, restart_saved);
	return 0;
}

static int job_kick(struct core *c, const struct request_rank *q)
{
	struct job *j;
	int r = job_rooted(c, q->job, &j);

	if (r < 0)
		return r;
	if (q->rank >= j->workers)
		return why_say(&c->why, -ERANGE, "rank %u: job %s has ranks 0 to %u", q->rank,
			       j->name, j->workers - 1);
	if (!j->rank[q->rank].waiting && !job_is_at(j, q->rank, j->epoch))
		return why_say(&c->why, -ESRCH, "nobody is rank %u of job %s", q->rank, j->name);
	core_log(c, LOG_LEVEL_INFO, "worker sent away", "job=%s rank=%u", j->name, q->rank);
	request_answer(c, CORE_ANSWER_DONE, 0, NULL);
	members_kick(c, j, q->rank);
	return 0;
}

/* --- the node -------------------------------------------------------------------------------- */

static void cordon_saved(struct core *c, int r)
{
	if (r < 0) {
		c->books.cordoned = !c->books.cordoned;
		request_refuse(c, r, &c->why);
		return;
	}
	core_log(c, LOG_LEVEL_INFO, c->books.cordoned ? "node cordoned" : "node uncordoned", "%s",
		 "");
	request_answer(c, CORE_ANSWER_DONE, 0, NULL);
}

static int cordon(struct core *c, bool cordoned)
{
	if (c->books.cordoned == cordoned) {
		request_answer(c, CORE_ANSWER_DONE, 0, NULL);
		return 0;
	}
	c->books.cordoned = cordoned;
	core_await(c, ACTION(CORE_SAVE), NULL, cordon_saved);
	return 0;
}

void request_handle(struct core *c, const struct core_event *e)
{
	const struct request *q = e->asked.request;
	int r = -EINVAL;

	core_retry_soon(c);
	c->change.connection = e->connection;
	if (q->verb == REQUEST_TENANT_ADD)
		r = request_tenant_add(c, &q->tenant);
	else if (q->verb == REQUEST_TENANT_SET)
		r = request_tenant_set(c, q);
	else if (q->verb == REQUEST_TENANT_DEL)
		r = request_tenant_del(c, &q->tenant);
	else if (q->verb == REQUEST_JOB_CREATE)
		r = job_create(c, q, e->asked.random);
	else if (q->verb == REQUEST_APPLY)
		r = inner_apply(c, &q->apply);
	else if (q->verb == REQUEST_JOB_ROTATE)
		r = job_rotate(c, &q->rotate, e->asked.random);
	else if (q->verb == REQUEST_JOB_DEL)
		r = job_del(c, q->name);
	else if (q->verb == REQUEST_JOB_RESTART)
		r = job_restart(c, q->name);
	else if (q->verb == REQUEST_JOB_KICK)
		r = job_kick(c, &q->kick);
	else if (q->verb == REQUEST_CORDON || q->verb == REQUEST_UNCORDON)
		r = cordon(c, q->verb == REQUEST_CORDON);
	if (r < 0)
		request_refuse(c, r, &c->why);
}
