// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/core/keys_json.h"
#include "agent/core/tenant_keys.h"
#include "books_file.h"
#include "common/file.h"
#include "common/util.h"
#include "replace.h"

enum {
	FORMAT = 1, /* of the file */
	FILE_BYTES_MAX = 64 << 20,
};

/* What this tallyd knows of what a state file may require: a tallyd before that would break it. */
#define SEALED "sealed"
#define TREES "trees"
#define NOWHERE "nowhere" /* a tenant may come in */

static const char *const presence_name[] = {
	[JOB_ABSENT] = "absent",
	[JOB_RUNNING] = "running",
	[JOB_DETACHED] = "detached",
	[JOB_LEFT] = "left",
	NULL,
};

/* --- keys ------------------------------------------------------------------------------------ */

struct tenant_record {
	struct tenant is;
	bool rest; /* has what nobody reserves */
};

struct job_record {
	struct job is; /* without its ranks */
	unsigned int ranks; /* 0: no run */
	struct job_rank rank[TALLY_WORKERS_MAX];
	struct tree tree;
};

struct inner_record {
	char name[NAME_BYTES]; /* here */
	char tenant[NAME_BYTES];
	struct document document;
	bool borrows;
};

#define JOB(member) KEY_MEMBER(struct job_record, is.member)
#define JOB_TREE(member) KEY_MEMBER(struct job_record, tree.member)

_Static_assert(offsetof(struct tenant_record, is) == 0, "rows of a tenant fit");

static const struct key tenant_rows[] = {
	TENANT_NAME_ROW,
	{ "rest", &key_bool, KEY_MEMBER(struct tenant_record, rest) },
	TENANT_QUOTA_ROWS(NULL),
	{ "clustered", &key_bool, KEY_MEMBER(struct tenant_record, is.clustered), .brief = true,
	  .later = true },
	{ "gated", &key_bool, KEY_MEMBER(struct tenant_record, is.gated), .brief = true,
	  .later = true },
};
static const struct keys record_tenant_keys = KEYS(tenant_rows);

static const struct key rank_rows[] = {
	{ "address", &key_endpoint, KEY_MEMBER(struct job_rank, address) },
	{ "presence", &key_choice, KEY_MEMBER(struct job_rank, presence), .words = presence_name,
	  .min = JOB_RUNNING },
};

static const struct key job_rows[] = {
	{ "name", &key_name, JOB(name) },
	{ "token", &key_token, JOB(token) },
	{ "id", &key_number, JOB(id), .min = 1, .max = UINT32_MAX },
	{ "tenant", &key_name, JOB(tenant_name) },
	{ "workers", &key_number, JOB(workers), .min = 1, .max = TALLY_WORKERS_MAX },
	{ "window", &key_power, JOB(window), .min = 1, .max = TALLY_WINDOW_MAX },
	{ "payload", &key_blocks, JOB(payload_bytes), .min = TALLY_BLOCK_BYTES,
	  .max = TALLY_PAYLOAD_MAX },
	{ "service", &key_address, JOB(service) },
	{ "epoch", &key_number, JOB(epoch), .max = UINT16_MAX },
	{ "run_window", &key_power, JOB(run_window), .max = TALLY_WINDOW_MAX },

	{ "birth", &key_hex, JOB(birth), .later = true },
	{ "nonce", &key_hex, JOB(draw.nonce), .later = true },
	{ "secret", &key_bytes, JOB(draw.secret), .word = "none", .later = true },
	{ "run_token_key", &key_bytes, JOB(run_token_key), .word = "none", .brief = true,
	  .later = true },
	{ "tags", &key_bool, JOB(tags), .initial = "true", .later = true },
	{ "sealed", &key_bool, JOB(sealed), .later = true },
	{ "clustered", &key_bool, JOB(clustered), .brief = true, .later = true },
	{ "fits", &key_bool, JOB(fits), .brief = true, .later = true },
	{ "over", &key_bool, JOB(over), .later = true },
	{ "spilled", &key_bool, JOB(spilled), .later = true },
	{ "borrows", &key_bool, JOB(borrows), .later = true },
	{ "ranks", NULL, KEY_LIST(struct job_record, rank, ranks), .keys = KEYS_OF(rank_rows) },
	{ "tree", NULL, KEY_LIST(struct job_record, tree.node, tree.nodes), .keys = &tree_node_keys,
	  .later = true },
	{ "find_tree", &key_bool, JOB_TREE(found), .initial = "false", .later = true },
	{ "generation", &key_number, JOB_TREE(generation), .max = UINT32_MAX, .initial = "0",
	  .later = true },
};
static const struct keys job_keys = KEYS(job_rows);

static const struct key inner_rows[] = {
	{ "name", &key_name, KEY_MEMBER(struct inner_record, name), .later = true },
	{ "tenant", &key_name, KEY_MEMBER(struct inner_record, tenant) },
	{ "document", NULL, KEY_MEMBER(struct inner_record, document), .keys = &document_keys },
	{ "borrows", &key_bool, KEY_MEMBER(struct inner_record, borrows), .later = true },
};
static const struct keys inner_keys = KEYS(inner_rows);

/*
 * What a later tallyd has added is left alone, so that one can go back to this one; but not what
 * jobs cannot do without, which it names: SEALED and its like.
 */
static const struct keys_style style = {
	.number = "a whole number",
	.missing = "the key '%s' is needed",
	.strict_lists = true,
	.tolerant = true,
	.complete = true,
};

/* --- out ------------------------------------------------------------------------------------- */

static json_t *tenant_pack(const struct books_tenant *b)
{
	struct tenant_record record = { .is = b->is, .rest = b->remainder };

	return keys_json_make(&record_tenant_keys, &record);
}

static json_t *job_pack(const struct job *j)
{
	_cleanup_(freep) struct job_record *record = calloc(1, sizeof(*record));

	if (!record)
		return NULL;
	record->is = *j;
	record->ranks = j->run_window ? j->workers : 0;
	memcpy(record->rank, j->rank, record->ranks * sizeof(*j->rank));
	if (j->tree)
		record->tree = *j->tree;
	return keys_json_make(&job_keys, record);
}

static json_t *inner_pack(const struct job *j)
{
	_cleanup_(freep) struct inner_record *record = calloc(1, sizeof(*record));

	if (!record)
		return NULL;
	memcpy(record->name, j->name, sizeof(record->name));
	memcpy(record->tenant, j->tenant_name, sizeof(record->tenant));
	record->document = *j->document;
	record->borrows = j->borrows;
	return keys_json_make(&inner_keys, record);
}

/* NULL: no memory. */
static json_t *requires_make(const struct books *b)
{
	json_t *all = json_array();
	bool sealed = false, trees = false, nowhere = false;
	int r = 0;

	for (unsigned int i = 0; i < b->jobs; i++) {
		sealed |= b->job[i]->sealed;
		trees |= b->job[i]->tree || b->job[i]->document;
	}
	for (unsigned int i = 0; i < TALLY_TENANTS_MAX; i++)
		nowhere |= tenant_is_nowhere(&b->tenant[i].is);
	if (sealed)
		r |= json_array_append_new(all, json_string(SEALED));
	if (trees)
		r |= json_array_append_new(all, json_string(TREES));
	if (nowhere)
		r |= json_array_append_new(all, json_string(NOWHERE));
	if (r == 0)
		return all;
	json_decref(all);
	return NULL;
}

char *books_print(const struct books *b)
{
	_cleanup_(json_freep) json_t *books = NULL, *
		requires
	= requires_make(b);
	json_t *tenants = json_array(), *jobs = json_array(), *documents = json_array();
	size_t written = 0;

	for (int i = 0; i < TALLY_TENANTS_MAX; i++) {
		const struct books_tenant *t = &b->tenant[i];

		if (!*t->is.name || t->configured)
			continue;
		written++;
		json_array_append_new(tenants, tenant_pack(t));
	}
	for (unsigned int i = 0; i < b->jobs; i++)
		if (b->job[i]->document)
			json_array_append_new(documents, inner_pack(b->job[i]));
		else
			json_array_append_new(jobs, job_pack(b->job[i]));
	if (json_array_size(jobs) + json_array_size(documents) != b->jobs ||
	    json_array_size(tenants) != written) {
		json_decref(tenants); /* no memory: what is left out would be lost for good */
		json_decref(jobs);
		json_decref(documents);
		return NULL;
	}
	books = json_pack("{si so so so}", "format", FORMAT, "tenants", tenants, "jobs", jobs,
			  "documents", documents);
	if (books && b->cordoned && json_object_set_new(books, "cordoned", json_true()) < 0)
		return NULL;
	if (!requires || (books && json_array_size(requires) &&
			  json_object_set(books, "requires", requires) < 0))
		return NULL;
	return books ? json_dumps(books, JSON_INDENT(1)) : NULL;
}

int books_write(const struct books *b, const char *path, struct why *why)
{
	_cleanup_(freep) char *text = books_print(b);
	int r;

	if (!text)
		return -ENOMEM;
	r = replace_file(path, text);
	explicit_bzero(text, strlen(text));
	if (r < 0)
		return why_say(why, r, "cannot write the state file %s: %s", path, strerror(-r));
	return 0;
}

/* --- in -------------------------------------------------------------------------------------- */

/* What the books say of a tenant or job, in place of what is wrong with the text. */
static int refuse(struct reading *r, int error, const char *noun, const char *name,
		  const struct why *what)
{
	snprintf(r->why, r->why_size, "%s: %s%s%s%.400s", r->name, noun, name, *name ? ": " : "",
		 what->text);
	return error;
}

static int take_tenant(struct reading *r, const struct place *at, void *into)
{
	struct tenant_record record = { 0 };
	struct why what = { "" };
	int error;

	error = keys_take(r, at, &record_tenant_keys, &record, NULL);
	if (error < 0)
		return error;
	if (record.rest)
		record.is.slots = 0;
	error = books_tenant_restore(into, &record.is, record.rest, &what);
	return error < 0 ? refuse(r, error, "tenant ", record.is.name, &what) : 0;
}

/* What several keys say together. */
static int job_check(struct reading *r, const struct place *at, const struct job_record *record)
{
	const struct job *j = &record->is;
	struct why what = { "" };

	if (j->run_window > j->window)
		return keys_refuse(r, at, "job %s: run_window %u is more than window %u", j->name,
				   j->run_window, j->window);
	if (record->ranks != (j->run_window ? j->workers : 0))
		return keys_refuse(r, at, "job %s: %u ranks, but its run has %u workers", j->name,
				   record->ranks, j->run_window ? j->workers : 0);
	for (unsigned int i = 0; i < record->ranks; i++)
		if (record->rank[i].address.ss_family != j->service.ss_family)
			return keys_refuse(r, at,
					   "job %s: rank %u and service must be of one family",
					   j->name, i);
	if (tree_check(&record->tree, j->workers, &j->service, &what) < 0)
		return keys_refuse(r, at, "job %s: %.400s", j->name, what.text);
	return 0;
}

/* Into the books, with the tenant that it names: without one it is suspended. */
static int job_restore(struct reading *r, struct books *b, struct job *j)
{
	struct why what = { "" };
	int error;

	error = books_tenant_find(b, j->tenant_name, &what);
	j->tenant = error < 0 ? 0 : error;
	error = books_job_restore(b, j, &what);
	return error < 0 ? refuse(r, error, "", "", &what) : 0;
}

static int job_take(struct reading *r, const struct place *at, struct books *b,
		    struct job_record *record)
{
	_cleanup_(job_freep) struct job *j = NULL;
	struct why what = { "" };
	int error;

	keys_default(&job_keys, record);
	error = keys_take(r, at, &job_keys, record, NULL);
	if (error == 0)
		error = job_check(r, at, record);
	if (error < 0)
		return error;
	j = job_new(&record->is);
	if (!j || job_tree_set(j, &record->tree) < 0)
		return refuse(r, -ENOMEM, "", strerror(ENOMEM), &what);
	memcpy(j->rank, record->rank, record->ranks * sizeof(*j->rank));
	job_detach(j);
	error = job_restore(r, b, j);
	if (error == 0)
		TAKE_PTR(j);
	return error;
}

static int take_job(struct reading *r, const struct place *at, void *into)
{
	_cleanup_(freep) struct job_record *record = calloc(1, sizeof(*record));
	struct why what = { "" };

	if (!record)
		return refuse(r, -ENOMEM, "", strerror(ENOMEM), &what);
	return job_take(r, at, into, record);
}

static int take_document(struct reading *r, const struct place *at, void *into)
{
	_cleanup_(freep) struct inner_record *record = calloc(1, sizeof(*record));
	_cleanup_(job_freep) struct job *j = NULL;
	struct why what = { "" };
	int error;

	if (!record)
		return refuse(r, -ENOMEM, "", strerror(ENOMEM), &what);
	error = keys_take(r, at, &inner_keys, record, NULL);
	if (error == 0 && document_check(&record->document, &what) < 0)
		error = keys_refuse(r, at, "job %s: %.400s", record->document.job, what.text);
	if (error < 0)
		return error;
	j = job_new_inner(&record->document, 0);
	if (!j)
		return refuse(r, -ENOMEM, "", strerror(ENOMEM), &what);
	if (*record->name)
		memcpy(j->name, record->name, sizeof(j->name));
	memcpy(j->tenant_name, record->tenant, sizeof(j->tenant_name));
	j->over = j->borrows = record->borrows;
	error = job_restore(r, into, j);
	if (error == 0)
		TAKE_PTR(j);
	return error;
}

/* Only what is reserved counts: jobs are read later, and those that hold more slots drain. */
static int take_tenants(struct reading *r, const struct place *at, void *into)
{
	struct why what = { "" };
	int error = keys_each(r, at, UINT_MAX, take_tenant, into);

	if (error == 0 && books_fit(into, &what) < 0)
		books_yield(into);
	if (error == 0 && books_fit(into, &what) < 0)
		error = refuse(r, -ENOSPC, "", "", &what);
	return error;
}

static int take_jobs(struct reading *r, const struct place *at, void *into)
{
	return keys_each(r, at, UINT_MAX, take_job, into);
}

static int take_documents(struct reading *r, const struct place *at, void *into)
{
	return keys_each(r, at, UINT_MAX, take_document, into);
}

static int take_format(struct reading *r, const struct place *at, void *into)
{
	if (value_is(at->value, "1"))
		return 0;
	snprintf(r->why, r->why_size, "%s: format %s; this tallyd reads %d", r->name,
		 at->value->text, FORMAT);
	return -EINVAL;
}

_Static_assert(FORMAT == 1, "a text above names it");

static int take_requirement(struct reading *r, const struct place *at, void *into)
{
	const char *text = NULL;
	int error = keys_text(r, at, "a name", &text);

	if (error < 0 || !strcmp(text, SEALED) || !strcmp(text, TREES) || !strcmp(text, NOWHERE))
		return error;
	snprintf(r->why, r->why_size,
		 "%s: it requires '%.64s', which a later tallyd has promised to jobs and this one "
		 "does not know: start the tallyd that wrote it, or a later one",
		 r->name, text);
	return -EOPNOTSUPP;
}

static int take_requires(struct reading *r, const struct place *at, void *into)
{
	return keys_each(r, at, UINT_MAX, take_requirement, into);
}

/* In the order in which they are read: jobs have tenants. */
static const struct key books_rows[] = {
	{ "format", .take = take_format },
	{ "requires", .take = take_requires, .later = true },
	{ "cordoned", &key_bool, KEY_MEMBER(struct books, cordoned), .later = true },
	{ "tenants", .take = take_tenants },
	{ "jobs", .take = take_jobs },
	{ "documents", .take = take_documents, .later = true },
};
static const struct keys books_keys = KEYS(books_rows);

int books_parse(struct books *b, const char *text, size_t length, const char *name, struct why *why)
{
	struct reading reading = { &style, name, b, why->text, sizeof(why->text) };
	_cleanup_(json_freep) json_t *json = NULL;
	_cleanup_(value_freep) struct value *root = NULL;
	json_error_t e;
	int r;

	r = keys_json_parse(text, length, &json, &e);
	if (r == -ENOMEM)
		return why_say(why, r, "%s: %s", name, strerror(ENOMEM));
	if (r < 0) /* without "near '...'": a token may be near */
		return why_say(why, -EINVAL, "%s:%d: column %d: %.*s", name, e.line, e.column,
			       (int)(strstr(e.text, " near '") ? strstr(e.text, " near '") - e.text
							       : JSON_ERROR_TEXT_LENGTH),
			       e.text);
	r = keys_json_tree(json, &root);
	if (r < 0)
		return why_say(why, r, "%s: %s", name,
			       r == -ENOMEM ? strerror(ENOMEM) : "nested too deeply");
	return keys_take_root(&reading, root, &books_keys, b, NULL);
}

int books_read(struct books *b, const char *path, struct why *why)
{
	_cleanup_(freep) char *text = NULL;
	size_t length;
	int r;

	r = file_read(path, FILE_BYTES_MAX, &text, &length);
	if (r == -EFBIG)
		return why_say(why, r, "%s: the file has more than %d bytes", path, FILE_BYTES_MAX);
	if (r < 0)
		return why_say(why, r, "%s: %s", path, strerror(-r));
	return books_parse(b, text, length, path, why);
}
