// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What operators ask of the jobs that agents share: to the store, and the answer when it is there.
 */
#include <errno.h>
#include <string.h>

#include "common/clock.h"
#include "common/joining.h"
#include "common/owned.h"
#include "control.h"
#include "placing_private.h"

enum {
	KNOWN_NS = 2000000000, /* who asked waits no longer for us to hear of what was done */
};

static void ignore(void *context, int error, uint64_t revision, const char *why) {}

void placing_write(struct placing *p, const struct store_seen *seen, unsigned int seens,
		   const struct store_change *change, unsigned int changes)
{
	store_write(p->store, &(struct store_write){ seen, seens, change, changes }, ignore, NULL);
}

static void answer_forget(struct asked *a)
{
	if (a->answer)
		explicit_bzero(a->answer, strlen(a->answer)); /* it may have a token */
	free(TAKE_PTR(a->answer));
}

static void asked_free(struct asked *a)
{
	TAILQ_REMOVE(&a->placing->asked, a, list);
	answer_forget(a);
	free(a);
}

void placing_asked_close(struct placing *p)
{
	while (!TAILQ_EMPTY(&p->asked))
		asked_free(TAILQ_FIRST(&p->asked));
}

void placing_forget(struct placing *p, const void *connection)
{
	struct asked *a;

	if (p)
		TAILQ_FOREACH(a, &p->asked, list)
	if (a->connection == connection)
		a->connection = NULL;
}

static char *refusal(const struct asked *a, int error, const char *why)
{
	struct why text;

	if (error == -ESTALE && a->what == ASKED_CREATE && a->changes > 1)
		why_say(&text, error,
			"the cluster has a job %s, or one of %s.2 to %s.%u (tallyctl cluster)",
			a->job, a->job, a->job, a->changes);
	else if (error == -ESTALE && a->what == ASKED_CREATE)
		why_say(&text, error, "the cluster has a job %s (tallyctl cluster)", a->job);
	else if (error == -ESTALE)
		why_say(&text, error, "job %s was changed meanwhile: try again", a->job);
	else if (error == -ETIMEDOUT)
		why_say(&text, error,
			"the store did not say what became of it: see tallyctl cluster (%.300s)",
			why);
	else
		why_say(&text, error, "the store of the cluster did not take it: %.400s", why);
	return request_answer_error(error == -ESTALE && a->what == ASKED_CREATE ? -EEXIST : error,
				    text.text);
}

static void tell(struct asked *a)
{
	if (a->connection)
		control_told(a->connection, TAKE_PTR(a->answer));
	asked_free(a);
}

static bool is_known(const struct asked *a)
{
	const struct shared_job *j = shared_find(&a->placing->shared, a->job);

	switch (a->what) {
	case ASKED_CREATE:
		return j && j->revision >= a->revision;
	case ASKED_DELETE:
		return !j || j->revision > a->revision;
	case ASKED_PLACE:
		return !j || j->place_revision >= a->revision;
	}
	return true;
}

void placing_asked_look(struct placing *p)
{
	struct asked *a, *next;

	for (a = TAILQ_FIRST(&p->asked); a; a = next) {
		next = TAILQ_NEXT(a, list);
		if (a->revision && (is_known(a) || clock_now_ns() - a->done_ns > KNOWN_NS))
			tell(a);
	}
}

static void on_done(void *context, int error, uint64_t revision, const char *why)
{
	struct asked *a = context;
	struct placing *p = a->placing;

	if (error < 0) {
		answer_forget(a);
		a->answer = refusal(a, error, why);
		tell(a);
	} else {
		a->revision = revision;
		a->done_ns = clock_now_ns();
		placing_asked_look(p);
	}
	placing_wake(p);
}

/* `answer` is taken over. */
static int ask_store(struct placing *p, void *connection, const char *job, enum asked_for what,
		     char *answer, const struct store_write *w)
{
	struct asked *a = answer ? calloc(1, sizeof(*a)) : NULL;
	int r;

	if (!a) {
		free(answer);
		return -ENOMEM;
	}
	*a = (struct asked){ .placing = p,
			     .connection = connection,
			     .answer = answer,
			     .what = what,
			     .changes = w->changes };
	snprintf(a->job, sizeof(a->job), "%s", job);
	TAILQ_INSERT_TAIL(&p->asked, a, list);
	r = store_write(p->store, w, on_done, a);
	if (r < 0)
		asked_free(a);
	return r;
}

/* --- creation -------------------------------------------------------------------------------- */

/* A job with several roots is a job for each, in one write. */
struct creation {
	unsigned int count;
	struct wanted_job job[JOINING_ROOTS_MAX];
	char key[JOINING_ROOTS_MAX][STORE_KEY_BYTES];
	char *text[JOINING_ROOTS_MAX];
	struct store_seen seen[JOINING_ROOTS_MAX];
	struct store_change change[JOINING_ROOTS_MAX];
};

static void creation_close(struct creation *c)
{
	for (unsigned int i = 0; i < c->count; i++) {
		if (c->text[i])
			explicit_bzero(c->text[i], strlen(c->text[i]));
		free(c->text[i]);
	}
	explicit_bzero(c->job, sizeof(c->job));
}

static void job_make(const struct request_job *q, const uint8_t random[CORE_RANDOM_BYTES],
		     struct wanted_job *ret)
{
	struct job drawn = { 0 };
	struct wanted_job j = { .workers = q->workers,
				.window = q->window ? q->window : RUN_WINDOW,
				.payload_bytes = q->payload_bytes,
				.tags = q->tags,
				.sealed = q->sealed };

	memcpy(j.name, q->name, sizeof(j.name));
	snprintf(j.tenant, sizeof(j.tenant), "%s", *q->tenant ? q->tenant : CONFIG_TENANT);
	job_token_make(&drawn, random);
	memcpy(j.token, drawn.token, sizeof(j.token));
	memcpy(&j.birth, random + TOKEN_RANDOM_BYTES, sizeof(j.birth));
	memcpy(&j.id, random + TOKEN_RANDOM_BYTES + sizeof(j.birth), sizeof(j.id));
	j.birth += !j.birth;
	j.id += !j.id;
	*ret = j;
	explicit_bzero(&drawn, sizeof(drawn));
}

/* The same with another number, for another root. */
static int job_of_root(const struct wanted_job *first, unsigned int which, unsigned int roots,
		       struct wanted_job *ret, struct why *why)
{
	*ret = *first;
	ret->roots = (uint16_t)roots;
	ret->which = (uint16_t)which;
	if (joining_root_name(first->name, which, ret->name) < 0)
		return why_say(why, -EINVAL,
			       "name: with %u roots it may have %zu characters at most: a number "
			       "comes behind it",
			       roots, sizeof(ret->name) - 1 - strlen(".16"));
	if (which == 1)
		return 0;
	if (getrandom(&ret->birth, sizeof(ret->birth), 0) != sizeof(ret->birth) ||
	    getrandom(&ret->id, sizeof(ret->id), 0) != sizeof(ret->id))
		return -EIO;
	ret->birth += !ret->birth;
	ret->id += !ret->id;
	return 0;
}

static int creation_add(struct creation *c, const struct wanted_job *j)
{
	const unsigned int i = c->count;

	c->job[i] = *j;
	c->text[i] = wanted_print(&wanted_job_keys, j);
	c->count++;
	snprintf(c->key[i], sizeof(c->key[i]), WANTED_JOBS "%s", j->name);
	c->seen[i] = (struct store_seen){ c->key[i], 0 };
	c->change[i] = (struct store_change){ c->key[i], c->text[i], false };
	return c->text[i] ? 0 : -ENOMEM;
}

static int creation_fill(struct creation *c, const struct wanted_job *first, unsigned int roots,
			 struct why *why)
{
	struct wanted_job j;
	int r = 0;

	if (roots <= 1)
		return creation_add(c, first);
	for (unsigned int which = 1; r == 0 && which <= roots; which++) {
		r = job_of_root(first, which, roots, &j, why);
		if (r == 0)
			r = creation_add(c, &j);
	}
	explicit_bzero(&j, sizeof(j));
	return r;
}

_Static_assert(TOKEN_RANDOM_BYTES + sizeof(uint64_t) + sizeof(uint32_t) <= CORE_RANDOM_BYTES,
	       "what a job needs");

int placing_create(struct placing *p, void *connection, const struct request_job *q,
		   const uint8_t random[CORE_RANDOM_BYTES], struct why *why)
{
	_cleanup_(freep) struct creation *c = NULL;
	struct wanted_job first;
	int r = books_tenant_find(core_books(placing_core(p)),
				  *q->tenant ? q->tenant : CONFIG_TENANT, why);

	if (r < 0)
		return r;
	if (q->tree.nodes || q->tree.found || q->service.ss_family)
		return why_say(why, -EINVAL,
			       "cluster: agents decide where such a job is summed, so tree and "
			       "service cannot be given, too");
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	job_make(q, random, &first);
	r = creation_fill(c, &first, q->roots, why);
	if (r == 0)
		r = ask_store(
			p, connection, first.name, ASKED_CREATE,
			request_answer_ok(json_pack("{ss sI ss}", "name", first.name, "id",
						    (json_int_t)first.id, "token", first.token)),
			&(struct store_write){ c->seen, c->count, c->change, c->count });
	explicit_bzero(&first, sizeof(first));
	creation_close(c);
	return r;
}

/* --- deletion -------------------------------------------------------------------------------- */

/* Of one with several roots only all together. */
int placing_delete(struct placing *p, void *connection, const char *name, struct why *why)
{
	const struct shared_job *j = shared_find(&p->shared, name);
	char job[JOINING_ROOTS_MAX][STORE_KEY_BYTES], place[JOINING_ROOTS_MAX][STORE_KEY_BYTES];
	struct store_change change[2 * JOINING_ROOTS_MAX] = { 0 };
	unsigned int changes = 0, roots;
	char root[NAME_BYTES];

	if (!j)
		return why_say(why, -ENOENT, "the cluster has no job %s (tallyctl cluster)", name);
	if (j->job.which > 1)
		return why_say(why, -EINVAL,
			       "%s is root %u of a job with %u roots: delete that job, whose name "
			       "is the same without the number behind it",
			       name, j->job.which, j->job.roots);
	roots = j->job.roots ? j->job.roots : 1;
	for (unsigned int i = 0; i < roots; i++) {
		joining_root_name(name, i + 1, root);
		snprintf(job[i], sizeof(job[i]), WANTED_JOBS "%s", root);
		snprintf(place[i], sizeof(place[i]), WANTED_PLACES "%s", root);
		change[changes++] = (struct store_change){ job[i], NULL, false };
		change[changes++] = (struct store_change){ place[i], NULL, false };
	}
	return ask_store(p, connection, name, ASKED_DELETE, request_answer_ok(json_object()),
			 &(struct store_write){ &(struct store_seen){ job[0], j->revision }, 1,
						change, changes });
}

/* --- places ---------------------------------------------------------------------------------- */

/* Where it is in the picture. Only one that tells something, and takes runs. */
static int node_find(const struct picture *picture, const char *node, struct why *why)
{
	const int at = picture_place(picture, node);

	if (at < 0)
		return why_say(why, -ENOENT, "the cluster has no node %s (tallyctl topology)",
			       node);
	if (!picture->report[at]->services)
		return why_say(why, -EINVAL, "node %s has no address that workers could send to",
			       node);
	if (picture->report[at]->cordoned)
		return why_say(why, -EBUSY, "node %s is cordoned", node);
	return at;
}

int placing_place(struct placing *p, void *connection, const char *name, const char *node,
		  bool stays, struct why *why)
{
	_cleanup_(freep) struct wanted_place *place = calloc(1, sizeof(*place));
	const struct shared_job *j = shared_find(&p->shared, name);
	_cleanup_(freep) char *text = NULL;
	char job[STORE_KEY_BYTES], at[STORE_KEY_BYTES];
	struct store_change change = { at, NULL, false };
	const struct picture *picture = sharing_picture(p->sharing);
	const struct report *root;
	int at_node;

	if (!place)
		return -ENOMEM;
	if (!j)
		return why_say(why, -ENOENT, "the cluster has no job %s (tallyctl cluster)", name);
	at_node = node_find(picture, node, why);
	if (at_node < 0)
		return at_node;
	root = picture->report[at_node];
	if (shared_is_placed(j))
		*place = j->place;
	place->birth = j->job.birth;
	place->weighs = 0;
	place->stays = stays;
	memcpy(place->root, root->node, sizeof(place->root));
	place->address = root->service[0];
	snprintf(place->why, sizeof(place->why), "an operator said so%s",
		 stays ? ", and it stays there" : "");
	text = wanted_print(&wanted_place_keys, place);
	if (!text)
		return -ENOMEM;
	change.value = text;
	snprintf(job, sizeof(job), WANTED_JOBS "%s", name);
	snprintf(at, sizeof(at), WANTED_PLACES "%s", name);
	return ask_store(p, connection, name, ASKED_PLACE, request_answer_ok(json_object()),
			 &(struct store_write){ (struct store_seen[]){ { job, j->revision },
								       { at, j->place_revision } },
						2, &change, 1 });
}
