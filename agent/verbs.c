// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "agent/edge/log.h"
#include "common/address.h"
#include "common/name.h"
#include "results.h"
#include "verbs.h"

enum {
	TOKEN_RANDOM_BYTES = 24,
};

/* --- tenants --------------------------------------------------------------------------------- */

/* Ingress points must be at ports of this node. */
static int points_check(const struct agent *a, const struct tenant *t, struct why *why)
{
	for (unsigned int i = 0; i < t->points; i++) {
		unsigned int k = 0;

		while (k < a->ports_count && strcmp(a->ports[k].name, t->point[i].port) != 0)
			k++;
		if (k == a->ports_count)
			return why_say(why, -EINVAL,
				       "ingress: %s is none of the node's ports (tallyctl links)",
				       t->point[i].port);
	}
	return 0;
}

/* The data plane and the disk follow the books; where they do not, the books go back. */
static int tenants_follow(struct agent *a, unsigned int index, const struct books_tenant *before,
			  struct why *why)
{
	struct why ignored;
	int r;

	r = agent_reconcile(a, why);
	if (r == 0)
		r = agent_save(a, why);
	if (r == 0)
		return 0;
	a->books.tenant[index] = *before;
	agent_reconcile(a, &ignored);
	return r;
}

int verb_tenant_add(struct agent *a, const struct request *q, json_t **ret, struct why *why)
{
	const struct books_tenant nobody = { 0 };
	struct tenant t = q->tenant;
	int index, r;

	r = points_check(a, &t, why);
	if (r < 0)
		return r;
	index = books_tenant_add(&a->books, &t, why);
	if (index < 0)
		return index;
	r = tenants_follow(a, index, &nobody, why);
	if (r < 0)
		return r;
	log_say(LOG_LEVEL_INFO, "tenant added", "tenant=%s slots=%u", t.name, t.slots);
	*ret = results_tenant(a, index);
	return 0;
}

/* The tenant as it is, but for what was given. */
static struct tenant merged(const struct tenant *now, const struct request *q)
{
	struct tenant t = *now;

	if (q->given & REQUEST_SLOTS)
		t.slots = q->tenant.slots;
	if (q->given & REQUEST_PACKETS_PER_SECOND)
		t.packets_per_second = q->tenant.packets_per_second;
	if (q->given & REQUEST_BYTES_PER_SECOND)
		t.bytes_per_second = q->tenant.bytes_per_second;
	if (q->given & REQUEST_PRIORITY)
		t.priority = q->tenant.priority;
	if (q->given & REQUEST_INGRESS) {
		t.points = q->tenant.points;
		memcpy(t.point, q->tenant.point, sizeof(t.point));
	}
	return t;
}

/* Its index, if it is not the configuration's. */
static int tenant_ours(struct agent *a, const char *name, struct why *why)
{
	int index = books_tenant_find(&a->books, name, why);

	if (index >= 0 && a->books.tenant[index].configured)
		return why_say(why, -EPERM,
			       "tenant %s is in %s: change it there, and send tallyd a SIGHUP",
			       name, a->config_path);
	return index;
}

int verb_tenant_set(struct agent *a, const struct request *q, json_t **ret, struct why *why)
{
	int index = tenant_ours(a, q->tenant.name, why), r;
	struct books_tenant before;
	struct tenant t;

	if (index < 0)
		return index;
	before = a->books.tenant[index];
	t = merged(&before.is, q);
	r = points_check(a, &t, why);
	if (r == 0)
		r = books_tenant_set(&a->books, index, &t, why);
	if (r == 0)
		r = tenants_follow(a, index, &before, why);
	if (r < 0)
		return r;
	log_say(LOG_LEVEL_INFO, "tenant changed",
		"tenant=%s slots=%u held=%u packets_per_second=%llu bytes_per_second=%llu", t.name,
		books_quota(&a->books, index), books_held(&a->books, index),
		(unsigned long long)t.packets_per_second, (unsigned long long)t.bytes_per_second);
	*ret = results_tenant(a, index);
	return 0;
}

int verb_tenant_del(struct agent *a, const struct request *q, json_t **ret, struct why *why)
{
	int index = tenant_ours(a, q->name, why), r;
	struct books_tenant before;

	if (index < 0)
		return index;
	before = a->books.tenant[index];
	r = books_tenant_del(&a->books, index, why);
	if (r < 0)
		return r;
	r = dataplane_tenant_del(a->dataplane, index, why);
	if (r < 0)
		a->books.tenant[index] = before;
	else
		r = tenants_follow(a, index, &before, why); /* which puts it back if it fails */
	if (r < 0)
		return r;
	traffic_tenant_forget(a->traffic, index);
	log_say(LOG_LEVEL_INFO, "tenant deleted", "tenant=%s", q->name);
	*ret = json_object();
	return 0;
}

/* --- jobs ------------------------------------------------------------------------------------ */

static int token_make(char ret[TOKEN_BYTES])
{
	unsigned char random[TOKEN_RANDOM_BYTES];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	for (size_t i = 0; i < sizeof(random); i++)
		sprintf(ret + 2 * i, "%02x", random[i]);
	explicit_bzero(random, sizeof(random));
	return 0;
}

/* Where its workers send: one of the node's own addresses. */
static int service_choose(const struct agent *a, const struct request_job *q,
			  struct sockaddr_storage *ret, struct why *why)
{
	const struct config *c = a->config;
	char text[ADDRESS_BYTES];

	if (!q->service.ss_family) {
		*ret = c->service[0];
		return 0;
	}
	for (unsigned int i = 0; i < c->services; i++)
		if (endpoint_is_equal(&c->service[i], &q->service)) {
			*ret = c->service[i];
			return 0;
		}
	address_print(&q->service, text, sizeof(text));
	return why_say(why, -EINVAL, "service: %s is none of those in %s (tallyctl status)", text,
		       a->config_path);
}

/* What was asked for, with the defaults of a job file. */
static int job_facts(const struct agent *a, const struct request *q, struct job *ret,
		     struct why *why)
{
	const struct request_job *j = &q->job;
	struct job facts = {
		.id = q->given & REQUEST_ID ? j->id : books_job_id(&a->books),
		.workers = j->workers,
		.window = j->window ? j->window : RUN_WINDOW,
	};
	int r;

	r = books_tenant_find(&a->books, *j->tenant ? j->tenant : "default", why);
	if (r < 0)
		return r;
	facts.tenant = r;
	memcpy(facts.name, j->name, sizeof(facts.name));
	r = service_choose(a, j, &facts.service, why);
	if (r == 0)
		r = token_make(facts.token);
	/* A stray packet of another job that had this number must not fit. */
	if (r == 0 && getrandom(&facts.epoch, sizeof(facts.epoch), 0) != sizeof(facts.epoch))
		r = -EIO;
	if (r < 0)
		return r;
	facts.payload_bytes = j->payload_bytes;
	if (!facts.payload_bytes)
		facts.payload_bytes = run_payload_default(facts.service.ss_family);
	*ret = facts;
	return 0;
}

int verb_job_create(struct agent *a, const struct request *q, json_t **ret, struct why *why)
{
	_cleanup_(job_freep) struct job *fresh = NULL;
	struct job facts, *j;
	int r;

	r = job_facts(a, q, &facts, why);
	if (r < 0)
		return r;
	fresh = job_new(&facts);
	if (!fresh)
		return -ENOMEM;
	r = books_job_add(&a->books, fresh, why);
	if (r < 0)
		return r;
	j = TAKE_PTR(fresh);
	r = agent_save(a, why);
	if (r < 0) {
		books_job_del(&a->books, j);
		return r;
	}
	log_say(LOG_LEVEL_INFO, "job created", "job=%s id=%u tenant=%s workers=%u window=%u",
		j->name, j->id, a->books.tenant[j->tenant].is.name, j->workers, j->window);
	*ret = json_pack("{ss sI ss}", "name", j->name, "id", (json_int_t)j->id, "token", j->token);
	return 0;
}

static struct job *job_named(const struct agent *a, const char *name, struct why *why)
{
	struct job *j = books_job_find(&a->books, name);

	if (!j)
		why_say(why, -ENOENT, "there is no job %s (tallyctl job list)", name);
	return j;
}

int verb_job_token(struct agent *a, const struct request *q, json_t **ret, struct why *why)
{
	const struct job *j = job_named(a, q->name, why);

	if (!j)
		return -ENOENT;
	*ret = json_pack("{ss}", "token", j->token);
	return 0;
}

int verb_job_del(struct agent *a, const struct request *q, json_t **ret, struct why *why)
{
	struct job *j = job_named(a, q->name, why);
	struct why ignored;
	int r;

	if (!j)
		return -ENOENT;
	books_job_take(&a->books, j);
	r = agent_save(a, why);
	if (r < 0) {
		books_job_restore(&a->books, j, &ignored); /* there is room: it was there */
		return r;
	}
	if (j->run_window)
		agent_run_end(a, j);
	members_cancel(a, j, "the job was deleted");
	rollcall_forget(a, j);
	traffic_job_forget(a->traffic, j->id);
	log_say(LOG_LEVEL_INFO, "job deleted", "job=%s", j->name);
	job_free(j);
	*ret = json_object();
	return 0;
}
