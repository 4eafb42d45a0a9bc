// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What operators ask of the jobs that agents share: to the store, and the answer when it is there.
 */
#include <errno.h>
#include <string.h>

#include "common/clock.h"
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

	if (error == -ESTALE && a->what == ASKED_CREATE)
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
	*a = (struct asked){
		.placing = p, .connection = connection, .answer = answer, .what = what
	};
	snprintf(a->job, sizeof(a->job), "%s", job);
	TAILQ_INSERT_TAIL(&p->asked, a, list);
	r = store_write(p->store, w, on_done, a);
	if (r < 0)
		asked_free(a);
	return r;
}

static int job_make(const struct request_job *q, const uint8_t random[CORE_RANDOM_BYTES],
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
	return 0;
}

_Static_assert(TOKEN_RANDOM_BYTES + sizeof(uint64_t) + sizeof(uint32_t) <= CORE_RANDOM_BYTES,
	       "what a job needs");

int placing_create(struct placing *p, void *connection, const struct request_job *q,
		   const uint8_t random[CORE_RANDOM_BYTES], struct why *why)
{
	_cleanup_(freep) char *text = NULL;
	char key[STORE_KEY_BYTES];
	struct wanted_job j;
	const struct store_seen seen = { key, 0 };
	struct store_change change = { key, NULL, false };
	int r = books_tenant_find(core_books(placing_core(p)),
				  *q->tenant ? q->tenant : CONFIG_TENANT, why);

	if (r < 0)
		return r;
	if (q->tree.nodes || q->tree.found || q->service.ss_family)
		return why_say(why, -EINVAL,
			       "cluster: agents decide where such a job is summed, so tree and "
			       "service cannot be given, too");
	r = job_make(q, random, &j);
	text = wanted_print(&wanted_job_keys, &j);
	change.value = text;
	snprintf(key, sizeof(key), WANTED_JOBS "%s", j.name);
	if (!text)
		r = -ENOMEM;
	if (r == 0)
		r = ask_store(p, connection, j.name, ASKED_CREATE,
			      request_answer_ok(json_pack("{ss sI ss}", "name", j.name, "id",
							  (json_int_t)j.id, "token", j.token)),
			      &(struct store_write){ &seen, 1, &change, 1 });
	explicit_bzero(&j, sizeof(j));
	if (text)
		explicit_bzero(text, strlen(text));
	return r;
}

int placing_delete(struct placing *p, void *connection, const char *name, struct why *why)
{
	const struct shared_job *j = shared_find(&p->shared, name);
	char job[STORE_KEY_BYTES], place[STORE_KEY_BYTES];
	const struct store_change change[] = { { job, NULL, false }, { place, NULL, false } };

	if (!j)
		return why_say(why, -ENOENT, "the cluster has no job %s (tallyctl cluster)", name);
	snprintf(job, sizeof(job), WANTED_JOBS "%s", name);
	snprintf(place, sizeof(place), WANTED_PLACES "%s", name);
	return ask_store(
		p, connection, name, ASKED_DELETE, request_answer_ok(json_object()),
		&(struct store_write){ &(struct store_seen){ job, j->revision }, 1, change, 2 });
}

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
