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
			      sizeof(((struct job *)0)->id) ==
		      CORE_RANDOM_BYTES,
	      "what a job needs");

static void answer(struct core *c, enum core_answer kind, unsigned int tenant,
		   const struct job *job)
{
	core_act(c, ACTION(CORE_ANSWER, .connection = c->change.connection, .job = job,
			   .answer = { kind, tenant, NULL }));
}

static void refuse(struct core *c, int error, const struct why *why)
{
	core_act(c, ACTION(CORE_ANSWER, .connection = c->change.connection, .error = error,
			   .answer.text = core_reason(why, error)));
}

/* --- tenants --------------------------------------------------------------------------------- */

/* Ingress points must be at ports of this node. */
static int points_check(const struct core *c, const struct tenant *t, struct why *why)
{
	for (unsigned int i = 0; i < t->points; i++) {
		unsigned int k = 0;

		while (k < c->ports_count && strcmp(c->ports[k].name, t->point[i].port) != 0)
			k++;
		if (k == c->ports_count)
			return why_say(
				why, -EINVAL,
				"ingress: %s is not one of the node's ports (tallyctl links)",
				t->point[i].port);
	}
	return 0;
}

/* Its index, if it is not the configuration's. */
static int tenant_ours(struct core *c, const char *name)
{
	int index = books_tenant_find(&c->books, name, &c->why);

	if (index >= 0 && c->books.tenant[index].configured)
		return why_say(&c->why, -EPERM,
			       "tenant %s is in %s: change it there, and then: tallyctl reload",
			       name, c->path);
	return index;
}

static void tenant_undone(struct core *c, int r)
{
	if (r < 0)
		core_doubt_maps(c);
	refuse(c, c->change.error, &c->change.why);
}

static void tenant_agree_back(struct core *c, int r) { runs_agree(c, tenant_undone); }

/* The books go back, and what stands in the maps follows them. */
static void tenant_undo(struct core *c, int error)
{
	_cleanup_(freep) struct books_tenant *before = TAKE_PTR(c->change.tenant);
	const unsigned int index = c->change.index;

	c->change.error = error;
	c->change.why = c->why;
	c->books.tenant[index] = *before;
	books_settle(&c->books);
	if (*before->is.name)
		runs_agree(c, tenant_undone);
	else
		core_await(c, ACTION(CORE_DROP_TENANT, .id = index), NULL, tenant_agree_back);
}

static void tenant_saved(struct core *c, int r)
{
	_cleanup_(freep) struct books_tenant *before = NULL;
	const unsigned int index = c->change.index;
	const struct tenant *t = &c->books.tenant[index].is;

	if (r < 0) {
		tenant_undo(c, r);
		return;
	}
	before = TAKE_PTR(c->change.tenant);
	if (!*before->is.name) {
		core_log(c, LOG_LEVEL_INFO, "tenant added", "tenant=%s slots=%u", t->name,
			 t->slots);
	} else if (*t->name) {
		core_log(c, LOG_LEVEL_INFO, "tenant changed",
			 "tenant=%s slots=%u held=%u packets_per_second=%llu bytes_per_second=%llu",
			 t->name, books_quota(&c->books, index), books_held(&c->books, index),
			 (unsigned long long)t->packets_per_second,
			 (unsigned long long)t->bytes_per_second);
	} else {
		core_act(c, ACTION(CORE_FORGET_TENANT, .id = index));
		core_log(c, LOG_LEVEL_INFO, "tenant deleted", "tenant=%s", before->is.name);
	}
	answer(c, *t->name ? CORE_ANSWER_TENANT : CORE_ANSWER_DONE, index, NULL);
}

static void tenant_agreed(struct core *c, int r)
{
	if (r < 0)
		tenant_undo(c, r);
	else
		core_await(c, ACTION(CORE_SAVE), NULL, tenant_saved);
}

static int tenant_keep(struct core *c, unsigned int index)
{
	c->change.index = index;
	c->change.tenant = malloc(sizeof(*c->change.tenant));
	if (!c->change.tenant)
		return -ENOMEM;
	*c->change.tenant = c->books.tenant[index];
	return 0;
}

static int tenant_add(struct core *c, const struct tenant *t)
{
	const struct books_tenant nobody = { 0 };
	int r, index;

	r = points_check(c, t, &c->why);
	if (r < 0)
		return r;
	index = books_tenant_add(&c->books, t, &c->why);
	if (index < 0)
		return index;
	r = tenant_keep(c, index);
	if (r < 0) {
		c->books.tenant[index] = nobody;
		books_settle(&c->books);
		return r;
	}
	*c->change.tenant = nobody;
	runs_agree(c, tenant_agreed);
	return 0;
}

static int tenant_change(struct core *c, unsigned int index, const struct tenant *t,
			 bool configured)
{
	int r = points_check(c, t, &c->why);

	if (r == 0 && books_promised(&c->books, index))
		r = core_ingress_check(c, c->config, t, &c->why);
	if (r == 0)
		r = tenant_keep(c, index);
	if (r == 0)
		r = books_tenant_set(&c->books, index, t, &c->why);
	if (r < 0) {
		free(TAKE_PTR(c->change.tenant));
		return r;
	}
	c->books.tenant[index].configured = configured;
	runs_agree(c, tenant_agreed);
	return 0;
}

static int tenant_set(struct core *c, const struct request *q)
{
	int index = tenant_ours(c, q->tenant.name);
	struct tenant t;

	if (index < 0)
		return index;
	t = request_tenant(q, &c->books.tenant[index].is);
	return tenant_change(c, index, &t, false);
}

/* Its jobs are out of the maps. */
static void tenant_drop(struct core *c, int r)
{
	if (r < 0)
		tenant_undo(c, r);
	else
		core_await(c, ACTION(CORE_DROP_TENANT, .id = c->change.index), NULL, tenant_agreed);
}

static int tenant_del(struct core *c, const char *name)
{
	const struct tenant *of_file = core_tenant_of_file(c->config, name);
	int r, index = tenant_ours(c, name);

	if (index < 0)
		return index;
	if (of_file) /* which it has hidden; the file's has its jobs from now on */
		return tenant_change(c, index, of_file, true);
	r = tenant_keep(c, index);
	if (r == 0)
		r = books_tenant_del(&c->books, index, &c->why);
	if (r < 0)
		free(TAKE_PTR(c->change.tenant));
	else
		runs_agree(c, tenant_drop);
	return r;
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
	};
	int r;

	r = books_tenant_find(&c->books, *j->tenant ? j->tenant : "default", &c->why);
	if (r < 0)
		return r;
	facts.tenant = r;
	r = core_ingress_check(c, c->config, &c->books.tenant[r].is, &c->why);
	if (r < 0)
		return r;
	memcpy(facts.name, j->name, sizeof(facts.name));
	r = service_choose(c, j, &facts.service, &c->why);
	if (r < 0)
		return r;
	job_token_make(&facts, random);
	/* A stray packet of another job that had this number must not fit. */
	memcpy(&facts.epoch, random + TOKEN_RANDOM_BYTES, sizeof(facts.epoch));
	memcpy(&facts.id, random + CORE_RANDOM_BYTES - sizeof(facts.id), sizeof(facts.id));
	facts.id = q->given & REQUEST_ID ? j->id : books_job_id(&c->books, facts.id);
	facts.payload_bytes = j->payload_bytes;
	if (!facts.payload_bytes)
		facts.payload_bytes = run_payload_default(facts.service.ss_family, facts.workers);
	*ret = facts;
	return 0;
}

static void job_created(struct core *c, int r)
{
	struct job *j = c->change.created;

	if (r < 0) {
		books_job_del(&c->books, j);
		refuse(c, r, &c->why);
		return;
	}
	core_log(c, LOG_LEVEL_INFO, "job created", "job=%s id=%u tenant=%s workers=%u window=%u",
		 j->name, j->id, c->books.tenant[j->tenant].is.name, j->workers, j->window);
	answer(c, CORE_ANSWER_CREATED, 0, j);
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
	answer(c, CORE_ANSWER_DONE, 0, NULL);
}

static void job_deleted(struct core *c, int r)
{
	struct why ignored;

	if (r < 0) { /* there is room: it was there */
		books_job_restore(&c->books, TAKE_PTR(c->change.deleted), &ignored);
		refuse(c, r, &c->why);
	} else if (c->change.deleted->run_window) {
		run_end(c, c->change.deleted, job_ended);
	} else {
		job_ended(c, 0);
	}
}

static struct job *job_named(struct core *c, const char *name)
{
	struct job *j = books_job_find(&c->books, name);

	if (!j)
		why_say(&c->why, -ENOENT, "there is no job %s (tallyctl job list)", name);
	return j;
}

static int job_del(struct core *c, const char *name)
{
	struct job *j = job_named(c, name);

	if (!j)
		return -ENOENT;
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
	else if (j->sealed) /* all ranks of a run need one token: their secret follows from it */
		members_send_away(c, j, MEMBERS_WAITING, -ECANCELED,
				  "the job has a new token: join again with the new one");
	explicit_bzero(c->change.token, sizeof(c->change.token));
	if (r < 0)
		refuse(c, r, &c->why);
	else
		answer(c, CORE_ANSWER_CREATED, 0, j);
}

static int job_rotate(struct core *c, const char *name, const uint8_t *random)
{
	struct job *j = job_named(c, name);

	if (!j)
		return -ENOENT;
	memcpy(c->change.token, j->token, sizeof(j->token));
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
	answer(c, CORE_ANSWER_DONE, 0, NULL);
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
	refuse(c, r, &c->why);
}

static int job_restart(struct core *c, const char *name)
{
	struct job *j = job_named(c, name);

	if (!j)
		return -ENOENT;
	if (!j->run_window)
		return why_say(&c->why, -ESRCH, "job %s has no run that could be restarted", name);
	c->change.ranks = malloc(j->workers * sizeof(*j->rank));
	if (!c->change.ranks)
		return -ENOMEM;
	memcpy(c->change.ranks, j->rank, j->workers * sizeof(*j->rank));
	c->change.restarted = j;
	c->change.window = j->run_window;
	c->change.draw = j->draw;
	job_end(j);
	core_await(c, ACTION(CORE_SAVE), NULL, restart_saved);
	return 0;
}

static int job_kick(struct core *c, const struct request_rank *q)
{
	struct job *j = job_named(c, q->job);

	if (!j)
		return -ENOENT;
	if (q->rank >= j->workers)
		return why_say(&c->why, -ERANGE, "rank %u: job %s has ranks 0 to %u", q->rank,
			       j->name, j->workers - 1);
	if (!j->rank[q->rank].waiting && !job_is_at(j, q->rank, j->epoch))
		return why_say(&c->why, -ESRCH, "nobody is rank %u of job %s", q->rank, j->name);
	core_log(c, LOG_LEVEL_INFO, "worker sent away", "job=%s rank=%u", j->name, q->rank);
	answer(c, CORE_ANSWER_DONE, 0, NULL);
	members_kick(c, j, q->rank);
	return 0;
}

/* --- the node -------------------------------------------------------------------------------- */

static void cordon_saved(struct core *c, int r)
{
	if (r < 0) {
		c->books.cordoned = !c->books.cordoned;
		refuse(c, r, &c->why);
		return;
	}
	core_log(c, LOG_LEVEL_INFO, c->books.cordoned ? "node cordoned" : "node uncordoned", "%s",
		 "");
	answer(c, CORE_ANSWER_DONE, 0, NULL);
}

static int cordon(struct core *c, bool cordoned)
{
	if (c->books.cordoned == cordoned) {
		answer(c, CORE_ANSWER_DONE, 0, NULL);
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
		r = tenant_add(c, &q->tenant);
	else if (q->verb == REQUEST_TENANT_SET)
		r = tenant_set(c, q);
	else if (q->verb == REQUEST_TENANT_DEL)
		r = tenant_del(c, q->name);
	else if (q->verb == REQUEST_JOB_CREATE)
		r = job_create(c, q, e->asked.random);
	else if (q->verb == REQUEST_JOB_ROTATE)
		r = job_rotate(c, q->name, e->asked.random);
	else if (q->verb == REQUEST_JOB_DEL)
		r = job_del(c, q->name);
	else if (q->verb == REQUEST_JOB_RESTART)
		r = job_restart(c, q->name);
	else if (q->verb == REQUEST_JOB_KICK)
		r = job_kick(c, &q->kick);
	else if (q->verb == REQUEST_CORDON || q->verb == REQUEST_UNCORDON)
		r = cordon(c, q->verb == REQUEST_CORDON);
	if (r < 0)
		refuse(c, r, &c->why);
}
