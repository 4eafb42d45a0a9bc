// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "books_file.h"
#include "common/address.h"
#include "common/file.h"
#include "common/joining.h"
#include "common/name.h"

enum {
	FORMAT = 1, /* of the file */
	FILE_BYTES_MAX = 16 << 20,
};

static void json_freep(json_t **j) { json_decref(*j); }

static const char *const presence_name[] = {
	[JOB_ABSENT] = "absent",
	[JOB_RUNNING] = "running",
	[JOB_DETACHED] = "detached",
	[JOB_LEFT] = "left",
};

/* --- out ------------------------------------------------------------------------------------- */

static json_t *tenant_pack(const struct books_tenant *b)
{
	const struct tenant *t = &b->is;
	json_t *points = json_array();
	char text[TENANT_POINT_BYTES];

	for (unsigned int i = 0; i < t->points; i++) {
		tenant_point_print(&t->point[i], text, sizeof(text));
		json_array_append_new(points, json_string(text));
	}
	return json_pack("{ss sb sI sI sI si so}", "name", t->name, "rest", b->remainder, "slots",
			 (json_int_t)t->slots, "packets_per_second",
			 (json_int_t)t->packets_per_second, "bytes_per_second",
			 (json_int_t)t->bytes_per_second, "priority", t->priority, "ingress",
			 points);
}

static json_t *ranks_pack(const struct job *j)
{
	json_t *ranks = json_array();
	char text[ADDRESS_BYTES];

	for (unsigned int i = 0; j->run_window && i < j->workers; i++) {
		endpoint_print(&j->rank[i].address, text, sizeof(text));
		json_array_append_new(ranks, json_pack("{ss ss}", "address", text, "presence",
						       presence_name[j->rank[i].presence]));
	}
	if (json_array_size(ranks) != (j->run_window ? j->workers : 0)) {
		json_decref(ranks); /* no memory */
		return NULL;
	}
	return ranks;
}

static json_t *job_pack(const struct books *b, const struct job *j)
{
	char service[ADDRESS_BYTES];

	address_print(&j->service, service, sizeof(service));
	return json_pack("{ss ss sI ss si si si ss si si so}", "name", j->name, "token", j->token,
			 "id", (json_int_t)j->id, "tenant", b->tenant[j->tenant].is.name, "workers",
			 j->workers, "window", j->window, "payload", j->payload_bytes, "service",
			 service, "epoch", j->epoch, "run_window", j->run_window, "ranks",
			 ranks_pack(j));
}

char *books_print(const struct books *b)
{
	_cleanup_(json_freep) json_t *books = NULL;
	json_t *tenants = json_array(), *jobs = json_array();
	size_t written = 0;

	for (int i = 0; i < TALLY_TENANTS_MAX; i++) {
		const struct books_tenant *t = &b->tenant[i];

		if (!*t->is.name || t->configured)
			continue;
		written++;
		json_array_append_new(tenants, tenant_pack(t));
	}
	for (unsigned int i = 0; i < b->jobs; i++)
		json_array_append_new(jobs, job_pack(b, b->job[i]));
	if (json_array_size(jobs) != b->jobs || json_array_size(tenants) != written) {
		json_decref(tenants); /* no memory: what is left out would be lost for good */
		json_decref(jobs);
		return NULL;
	}
	books = json_pack("{si so so}", "format", FORMAT, "tenants", tenants, "jobs", jobs);
	return books ? json_dumps(books, JSON_INDENT(1)) : NULL;
}

/* The directory too: otherwise the new name may not survive a crash of the machine. */
static int directory_sync(const char *path)
{
	char parent[PATH_MAX];
	_cleanup_(closep) int fd = -1;
	char *slash;

	snprintf(parent, sizeof(parent), "%s", path);
	slash = strrchr(parent, '/');
	if (slash)
		*slash = '\0';
	fd = open(slash ? (*parent ? parent : "/") : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int write_all(int fd, const char *text)
{
	size_t length = strlen(text);

	while (length) {
		ssize_t n = write(fd, text, length);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			text += n;
			length -= n;
		}
	}
	return fsync(fd) < 0 ? -errno : 0;
}

int books_write(const struct books *b, const char *path, struct why *why)
{
	_cleanup_(freep) char *text = books_print(b);
	_cleanup_(closep) int fd = -1;
	char fresh[PATH_MAX];
	int r;

	if (!text)
		return -ENOMEM;
	if (snprintf(fresh, sizeof(fresh), "%s.new", path) >= (int)sizeof(fresh))
		return why_say(why, -ENAMETOOLONG, "state: the name is too long");
	unlink(fresh); /* of one who crashed, whoever may read it */
	fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : write_all(fd, text);
	if (r == 0 && rename(fresh, path) < 0)
		r = -errno;
	if (r < 0 && fd >= 0)
		unlink(fresh);
	if (r == 0)
		r = directory_sync(path);
	explicit_bzero(text, strlen(text));
	if (r < 0)
		return why_say(why, r, "cannot write the state file %s: %s", path, strerror(-r));
	return 0;
}

/* --- in -------------------------------------------------------------------------------------- */

static bool name_read(const char *text, char ret[NAME_BYTES])
{
	if (!text || !name_is_valid(text))
		return false;
	snprintf(ret, NAME_BYTES, "%s", text);
	return true;
}

static bool is_rate(json_int_t n) { return n >= 0 && (uint64_t)n <= TENANT_RATE_MAX; }

static int tenant_unpack(json_t *from, struct tenant *ret, bool *ret_rest, struct why *why)
{
	json_int_t slots, packets, bytes, priority;
	const char *name;
	json_t *points, *point;
	size_t i;
	int rest;

	if (json_unpack(from, "{ss sb sI sI sI sI so}", "name", &name, "rest", &rest, "slots",
			&slots, "packets_per_second", &packets, "bytes_per_second", &bytes,
			"priority", &priority, "ingress", &points) < 0 ||
	    !name_read(name, ret->name) || slots < 0 || slots > UINT32_MAX || !is_rate(packets) ||
	    !is_rate(bytes) || priority < 0 || priority > TENANT_PRIORITY_MAX ||
	    !json_is_array(points) || json_array_size(points) > TENANT_POINTS_MAX)
		return why_say(why, -EINVAL, "a tenant is malformed");
	ret->slots = rest ? 0 : slots;
	ret->packets_per_second = packets;
	ret->bytes_per_second = bytes;
	ret->priority = priority;
	*ret_rest = rest;
	ret->points = 0;
	json_array_foreach(points, i, point)
	{
		const char *text = json_string_value(point);
		int r;

		if (!text)
			return why_say(why, -EINVAL, "an ingress point is no text");
		r = tenant_point_parse(text, &ret->point[ret->points++], why);
		if (r < 0)
			return r;
	}
	return 0;
}

static int rank_unpack(json_t *from, const struct job *j, struct job_rank *ret)
{
	const char *address, *presence;

	if (json_unpack(from, "{ss ss}", "address", &address, "presence", &presence) < 0 ||
	    address_parse(address, 0, &ret->address) < 0 ||
	    ret->address.ss_family != j->service.ss_family)
		return -EINVAL;
	for (size_t i = JOB_RUNNING; i < sizeof(presence_name) / sizeof(*presence_name); i++)
		if (!strcmp(presence, presence_name[i])) {
			ret->presence = i;
			return 0;
		}
	return -EINVAL;
}

static int facts_unpack(json_t *from, struct job *ret, const char **ret_tenant, json_t **ret_ranks)
{
	json_int_t id, workers, window, payload, epoch, run_window;
	const char *name, *token, *service;

	if (json_unpack(from, "{ss ss sI ss sI sI sI ss sI sI so}", "name", &name, "token", &token,
			"id", &id, "tenant", ret_tenant, "workers", &workers, "window", &window,
			"payload", &payload, "service", &service, "epoch", &epoch, "run_window",
			&run_window, "ranks", ret_ranks) < 0 ||
	    !name_read(name, ret->name) || !token_is_valid(token) || id < 1 || id > UINT32_MAX ||
	    workers < 1 || workers > TALLY_WORKERS_MAX || window < 1 || window > TALLY_WINDOW_MAX ||
	    window & (window - 1) || payload < TALLY_BLOCK_BYTES || payload > TALLY_PAYLOAD_MAX ||
	    payload % TALLY_BLOCK_BYTES || epoch < 0 || epoch > UINT16_MAX || run_window < 0 ||
	    run_window > window || run_window & (run_window - 1) ||
	    address_parse(service, TALLY_UDP_PORT, &ret->service) < 0 ||
	    !json_is_array(*ret_ranks) ||
	    json_array_size(*ret_ranks) != (run_window ? (size_t)workers : 0))
		return -EINVAL;
	memcpy(ret->token, token, strlen(token) + 1);
	ret->id = id;
	ret->workers = workers;
	ret->window = window;
	ret->payload_bytes = payload;
	ret->epoch = epoch;
	ret->run_window = run_window;
	return 0;
}

static int job_unpack(struct books *b, json_t *from, struct why *why)
{
	_cleanup_(job_freep) struct job *j = NULL;
	struct job facts = { 0 };
	const char *tenant = NULL;
	json_t *ranks = NULL, *rank;
	size_t i;
	int r;

	if (facts_unpack(from, &facts, &tenant, &ranks) < 0)
		return why_say(why, -EINVAL, "a job is malformed");
	r = books_tenant_find(b, tenant, why);
	if (r < 0)
		return r;
	facts.tenant = r;
	j = job_new(&facts);
	if (!j)
		return -ENOMEM;
	json_array_foreach(ranks, i, rank) if (rank_unpack(rank, j, &j->rank[i]) <
					       0) return why_say(why, -EINVAL,
								 "job %s: a rank is malformed",
								 j->name);
	job_detach(j);
	r = books_job_restore(b, j, why);
	if (r == 0)
		TAKE_PTR(j);
	return r;
}

static int tenant_restore(struct books *b, json_t *from, struct why *why)
{
	struct why what = { "" };
	struct tenant t = { 0 };
	bool rest = false;
	int index, r;

	r = tenant_unpack(from, &t, &rest, &what);
	index = r < 0 ? r : books_tenant_find(b, t.name, &what);
	if (r == 0 && index == BOOKS_DEFAULT && rest && !b->tenant[index].configured)
		b->tenant[index].is = t;
	else if (r == 0 && index == BOOKS_DEFAULT && !b->tenant[index].configured)
		r = books_tenant_set(b, index, &t, &what);
	else if (r == 0 && (index < 0 || !b->tenant[index].configured))
		r = books_tenant_add(b, &t, &what); /* which knows if it is there already */
	if (r >= 0)
		return 0;
	return why_say(why, r, "%s%s%s%.400s", *t.name ? "tenant " : "", t.name,
		       *t.name ? ": " : "", what.text);
}

static int books_unpack(struct books *b, json_t *from, struct why *why)
{
	json_t *tenants, *jobs, *each;
	int format, r = 0;
	size_t i;

	if (json_unpack(from, "{si so so}", "format", &format, "tenants", &tenants, "jobs", &jobs) <
		    0 ||
	    !json_is_array(tenants) || !json_is_array(jobs))
		return why_say(why, -EINVAL, "these are no books of tallyd's");
	if (format != FORMAT)
		return why_say(why, -EINVAL, "format %d; this tallyd reads %d", format, FORMAT);
	json_array_foreach(tenants, i, each) if (r == 0) r = tenant_restore(b, each, why);
	json_array_foreach(jobs, i, each) if (r == 0) r = job_unpack(b, each, why);
	return r;
}

int books_parse(struct books *b, const char *text, size_t length, const char *name, struct why *why)
{
	_cleanup_(json_freep) json_t *books = NULL;
	json_error_t e;
	struct why what = { "" };
	int r;

	books = json_loadb(text, length, JSON_REJECT_DUPLICATES, &e);
	if (!books)
		return why_say(why, -EINVAL, "%s:%d: %s", name, e.line, e.text);
	r = books_unpack(b, books, &what);
	return r < 0 ? why_say(why, r, "%s: %.400s", name, what.text) : 0;
}

int books_read(struct books *b, const char *path, struct why *why)
{
	_cleanup_(freep) char *text = NULL;
	size_t length;
	int r;

	r = file_read(path, FILE_BYTES_MAX, &text, &length);
	if (r == -EFBIG)
		return why_say(why, r, "%s: more than %d bytes", path, FILE_BYTES_MAX);
	if (r < 0)
		return why_say(why, r, "%s: %s", path, strerror(-r));
	return books_parse(b, text, length, path, why);
}
