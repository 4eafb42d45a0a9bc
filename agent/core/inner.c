// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Inner jobs: the root is another agent's node, and an operator brings this one a document for each
 * run (docs/trees.md). The document is what is wanted: it is on disk before the maps are changed,
 * and what keeps its run out of the maps is waited for.
 */
#include <errno.h>
#include <string.h>

#include "common/address.h"
#include "core_private.h"

enum {
	AGAIN_MS = 10000, /* what keeps a run out of the maps may have gone, and nobody says so */
};

/* --- into the maps --------------------------------------------------------------------------- */

void inner_note(struct core *c, struct job *j, int r)
{
	const char *reason = core_reason(&c->why, r);

	j->begin_by_ns = r < 0 ? UINT64_MAX : 0;
	if (r == 0) {
		*j->trouble.text = '\0';
		return;
	}
	j->begin_again_ns = c->now_ns + AGAIN_MS * 1000000ull;
	run_again_due(c, j);
	if (!strcmp(j->trouble.text, reason))
		return;
	snprintf(j->trouble.text, sizeof(j->trouble.text), "%s", reason);
	core_log(c, LOG_LEVEL_WARNING, "run waits at this inner node",
		 "job=%s epoch=%u reason=\"%s\"", j->name, j->epoch, j->trouble.text);
}

static void installed(struct core *c, int r)
{
	struct job *j = c->inner.job;

	if (r == -ENOSPC && !j->borrows) {
		j->borrows = true;
		core_save_soon(c);
		run_install(c, j, installed);
		return;
	}
	if (r < 0 && !j->over)
		j->borrows = false; /* perhaps there are slots the next time */
	c->inner.job = NULL;
	inner_note(c, j, r);
	if (r == 0 && j->borrows)
		refill_due(c);
	if (r == 0)
		core_log(c, LOG_LEVEL_INFO,
			 !j->borrows	 ? "run begins at this inner node"
			 : c->books.pool ? "run begins at this inner node, in borrowed slots"
					 : "run begins at this inner node, which has no slots for "
					   "it, and passes on what comes",
			 "job=%s id=%u epoch=%u window=%u", j->name, j->id, j->epoch,
			 j->run_window);
	if (c->inner.then)
		c->inner.then(c, 0);
}

static void room_made(struct core *c, int r) { run_install(c, c->inner.job, installed); }

void inner_install(struct core *c, struct job *j, core_step *then)
{
	c->inner.job = j;
	c->inner.then = then;
	lend_recall(c, j, job_slots(j), true, room_made);
}

/* --- a document comes ------------------------------------------------------------------------ */

/* Is it for this node, and is the root another one? */
static int node_check(struct core *c, const struct document *d)
{
	char text[ADDRESS_BYTES];
	bool own = false;
	int r;

	for (unsigned int i = 0; i < c->config->services; i++) {
		r = document_check_own(d, &c->config->service[i], &c->why);
		if (r < 0)
			return r;
		own |= endpoint_is_equal(&c->config->service[i], &d->address);
		if (!endpoint_is_equal(&c->config->service[i], &d->root))
			continue;
		address_print(&d->root, text, sizeof(text));
		return why_say(&c->why, -EINVAL,
			       "document: this node has the address %s, which is the root's: inner "
			       "nodes alone take documents",
			       text);
	}
	address_print(&d->address, text, sizeof(text));
	if (own)
		return 0;
	return why_say(&c->why, -EINVAL,
		       "document: it is for node %s, whose address is %s; this node's, at service: "
		       "in %s, are others",
		       d->node, text, c->path);
}

/* 1: this very document is there. */
static int before_check(const struct job *before, const struct document *d, unsigned int tenant,
			struct why *why)
{
	bool later;

	/* Its root has deleted it, since it has another one. Slots of one epoch are of one job. */
	later = before->document->birth != d->birth;
	if (before->id != d->id || (later && d->epoch != before->epoch))
		return 0;
	if ((int16_t)(d->epoch - before->epoch) < 0)
		return why_say(why, -ESTALE,
			       "job %s: the document is of run %u, and this node has one of run %u "
			       "already, which is later",
			       d->job, d->epoch, before->epoch);
	if (d->epoch != before->epoch)
		return 0;
	if (before->tenant == tenant && document_is_equal(before->document, d))
		return 1;
	if (!later && d->generation > before->document->generation)
		return 0;
	return why_say(why, -EEXIST,
		       "job %s: this node has another document of run %u, or for another tenant: "
		       "tallyctl job del %s first",
		       d->job, d->epoch, before->name);
}

/* Who may apply documents may know all jobs: books_job_restore() would not say whose it is. */
static int number_check(const struct books *b, const struct job *before, const struct document *d,
			struct why *why)
{
	const struct job *other = books_job_numbered(b, d->id);

	if (!other || other == before)
		return 0;
	return why_say(why, -EEXIST,
		       "job %s: job %s of this node has its number, %u: tallyctl job del %s "
		       "first, if that one is over",
		       d->job, other->name, d->id, other->name);
}

/* Who is at another root knows nothing of the names here: a name that is taken gets the number. */
static void name_choose(const struct books *b, const struct job *before, struct job *fresh)
{
	if (before)
		memcpy(fresh->name, before->name, sizeof(fresh->name));
	else if (books_job_find(b, fresh->name))
		snprintf(fresh->name, sizeof(fresh->name), "%.*s-%u",
			 (int)(sizeof(fresh->name) - sizeof("-4294967295")), fresh->document->job,
			 fresh->id);
}

static bool is_same_run(const struct job *before, const struct job *j)
{
	return before && before->id == j->id && before->epoch == j->epoch;
}

/* The maps are to have what is below us now; of a tree that has changed elsewhere, they do. */
static bool is_to_rewrite(const struct job *before, const struct job *j)
{
	return is_same_run(before, j) &&
	       (before->rewrite || !document_says_same(before->document, j->document));
}

static void agreed(struct core *c, int r)
{
	struct job *j = TAKE_PTR(c->change.created);

	core_agreed(c, r);
	if (r < 0)
		inner_note(c, j, r);
	request_answer(c, CORE_ANSWER_APPLIED, 0, j);
}

static void saved(struct core *c, int r)
{
	struct job *before = TAKE_PTR(c->change.deleted);
	struct why ignored;

	if (r == 0) {
		core_log(c, LOG_LEVEL_INFO, "document taken", "job=%s epoch=%u",
			 c->change.created->name, c->change.created->epoch);
		if (is_to_rewrite(before, c->change.created))
			follow_rewrite(c, c->change.created);
		job_free(before);
		runs_agree(c, agreed);
		return;
	}
	books_job_del(&c->books, TAKE_PTR(c->change.created));
	if (before) /* there is room: it was there */
		books_job_restore(&c->books, before, &ignored);
	request_refuse(c, r, &c->why);
}

/* In the place of the job with the document of an earlier run, if there is one. */
static int replace(struct core *c, struct job *before, struct job *fresh)
{
	struct why ignored;
	int r;

	if (before)
		books_job_take(&c->books, before);
	r = books_job_add(&c->books, fresh, &c->why);
	if (r < 0 && before)
		books_job_restore(&c->books, before, &ignored);
	return r;
}

int inner_apply(struct core *c, const struct request_apply *q)
{
	struct job *before = books_inner_find(&c->books, q->document.job, &q->document.root);
	_cleanup_(job_freep) struct job *fresh = NULL;
	int r, tenant;

	r = document_check(&q->document, &c->why);
	if (r == 0)
		r = document_check_ranks(&q->document, &c->why);
	if (r == 0)
		r = node_check(c, &q->document);
	tenant = r < 0 ? r
		       : books_tenant_find(&c->books, *q->tenant ? q->tenant : CONFIG_TENANT,
					   &c->why);
	if (tenant < 0)
		return tenant;
	r = core_entry_check(c, &c->books.tenant[tenant].is, &c->why);
	if (r == 0 && before)
		r = before_check(before, &q->document, tenant, &c->why);
	if (r == 0)
		r = number_check(&c->books, before, &q->document, &c->why);
	if (r < 0)
		return r;
	if (r > 0) { /* the maps may have lost its run all the same */
		c->change.created = before;
		runs_agree(c, agreed);
		return 0;
	}
	r = core_cordon_check(c, &c->why);
	fresh = r < 0 ? NULL : job_new_inner(&q->document, tenant);
	if (fresh)
		name_choose(&c->books, before, fresh);
	if (fresh && is_same_run(before, fresh))
		fresh->borrows = before->borrows;
	if (r == 0)
		r = fresh ? replace(c, before, fresh) : -ENOMEM;
	if (r < 0)
		return r;
	c->change.created = TAKE_PTR(fresh);
	c->change.deleted = before;
	core_await(c, ACTION(CORE_SAVE), NULL, saved);
	return 0;
}
