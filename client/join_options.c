// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* How a worker joins: what the program says, else what the environment says. */
#include "common/address.h"
#include "common/name.h"
#include "common/owned.h"
#include "common/text.h"
#include "join_private.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "shards.h"

#define JOIN_SOCKET "/run/tally/join.sock"

enum {
	TOKEN_LINE_BYTES = TOKEN_BYTES + 2, /* room for the end of a line */
};

static const char *said(const char *option, const char *variable)
{
	const char *text = option ? option : getenv(variable);

	return text && (option || *text) ? text : NULL;
}

/* --- several roots: an agent for each, with commas between; of all else one for all, or as many.
 * Or several jobs at one agent: no job's name has a comma. */

static size_t at_most(size_t n, size_t max) { return n < max ? n : max; }

static unsigned int items(const char *text)
{
	unsigned int n = 1;

	for (; *text; text++)
		n += *text == ',';
	return n;
}

/* For one of `roots`; *ret_length of its characters. */
static const char *item(const char *text, unsigned int root, unsigned int roots, size_t *ret_length)
{
	for (; root && roots > 1 && items(text) > 1; root--)
		text = strchr(text, ',') + 1;
	*ret_length = roots > 1 ? strcspn(text, ",") : strlen(text);
	return text;
}

/* NULL, or what is said for this root: until the next one is asked for. */
static const char *given(struct join *j, const char *option, const char *variable)
{
	const char *text = said(option, variable);
	size_t length;

	if (!text)
		return NULL;
	text = item(text, j->root, j->roots, &length);
	snprintf(j->item, sizeof(j->item), "%.*s", (int)at_most(length, INT_MAX), text);
	return j->item;
}

static bool is_same(const char *text, unsigned int a, unsigned int b, unsigned int roots)
{
	size_t of_a, of_b;
	const char *x, *y;

	if (!text)
		return true;
	x = item(text, a, roots, &of_a);
	y = item(text, b, roots, &of_b);
	return of_a == of_b && !memcmp(x, y, of_a);
}

/* One job at one agent as two roots: who joined it again would end the run of the first. */
static int check_twice(const char *agents, const char *jobs, unsigned int roots)
{
	for (unsigned int i = 1; i < roots; i++)
		for (unsigned int k = 0; k < i; k++)
			if (is_same(agents, i, k, roots) && is_same(jobs, i, k, roots))
				return error_set(-EINVAL,
						 "job: roots %u and %u are one job at one agent: "
						 "each root is a job of its own",
						 k + 1, i + 1);
	return 0;
}

int join_roots(const struct tally_join_options *o)
{
	const char *agents = said(o->agent, "TALLY_AGENT"), *jobs = said(o->job, "TALLY_JOB");
	const bool are_at_one = !agents || items(agents) == 1;
	const char *named = are_at_one ? jobs : agents;
	const unsigned int roots = named ? items(named) : 1;
	const char *by = are_at_one && roots > 1 ? "job" : "agent";
	const struct {
		const char *name, *text;
	} lists[] = {
		{ "shares", said(o->shares, "TALLY_SHARES") },
		{ "job", jobs },
		{ "token", o->token },
		{ "$TALLY_TOKEN_FILE", o->token ? NULL : said(NULL, "TALLY_TOKEN_FILE") },
		{ "address", said(o->address, "TALLY_ADDRESS") },
	};
	const size_t count = roots > 1 ? sizeof(lists) / sizeof(*lists) : 1;

	if (roots > SHARDS_MAX)
		return error_set(-E2BIG, "%s: %u of them, allowed are 1 to %d", by, roots,
				 SHARDS_MAX);
	for (size_t i = 0; i < count; i++) {
		unsigned int n = lists[i].text ? items(lists[i].text) : 1;

		if (n != 1 && n != roots)
			return error_set(-EINVAL,
					 "%s: %u with commas between, and %u of %s: say one for "
					 "all, or one for each",
					 lists[i].name, n, roots, by);
	}
	return check_twice(agents, jobs, roots) < 0 ? -EINVAL : (int)roots;
}

bool join_has_shares(const struct tally_join_options *o) { return said(o->shares, "TALLY_SHARES"); }

int join_shares(const struct tally_join_options *o, unsigned int roots, uint16_t *ret)
{
	const char *text = said(o->shares, "TALLY_SHARES");

	for (unsigned int i = 0; i < roots; i++) {
		char one[16];
		size_t length;
		uint32_t share = 1;

		if (text) {
			const char *from = item(text, i, roots, &length);

			snprintf(one, sizeof(one), "%.*s", (int)at_most(length, INT_MAX), from);
		}
		if (text && (!text_u32(one, SHARE_MAX, &share) || !share))
			return error_set(
				-EINVAL,
				"shares: '%.80s': numbers from 1 to %d, one for each root, "
				"with commas between",
				text, SHARE_MAX);
		ret[i] = (uint16_t)share;
	}
	return 0;
}

int join_congestion(const struct tally_join_options *o, enum tally_congestion *ret)
{
	const char *text = said(NULL, "TALLY_CONGESTION");

	if (text && strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
		return error_set(-EINVAL, "$TALLY_CONGESTION: '%.80s': it is on or off", text);
	*ret = text && strcmp(text, "off") == 0 ? TALLY_CONGESTION_OFF : o->congestion;
	return 0;
}

static int agent_read(struct join *j, const struct tally_join_options *o)
{
	const char *text = given(j, o->agent, "TALLY_AGENT");
	struct sockaddr_un *un = (void *)&j->agent;

	if (!text && access(JOIN_SOCKET, F_OK) < 0)
		return error_set(
			-EINVAL,
			"no agent: name one in the option agent or in $TALLY_AGENT, or run "
			"one on this machine: there is no " JOIN_SOCKET);
	if (!text)
		text = JOIN_SOCKET;
	if (*text == '/') {
		if (strlen(text) >= sizeof(un->sun_path))
			return error_set(-ENAMETOOLONG,
					 "agent: a socket's path has at most %zu bytes: %s",
					 sizeof(un->sun_path) - 1, text);
		un->sun_family = AF_UNIX;
		snprintf(un->sun_path, sizeof(un->sun_path), "%s", text);
		snprintf(j->agent_text, sizeof(j->agent_text), "%s", text);
		return 0;
	}
	if (address_parse(text, 0, &j->agent) < 0 &&
	    address_parse(text, TALLY_UDP_PORT, &j->agent) < 0)
		return error_set(-EINVAL,
				 "agent: '%s' is neither a socket's path nor an address such as "
				 "10.77.0.1, 10.77.0.1:31249 or [fd77::1]:31249",
				 text);
	endpoint_print(&j->agent, j->agent_text, sizeof(j->agent_text));
	return 0;
}

/* Without a path: workers of one machine have one agent there. */
static int other_agents_read(struct join *j, const struct tally_join_options *o)
{
	const char *text = said(o->other_agents, "TALLY_OTHER_AGENTS");
	const unsigned int count = text ? items(text) : 0;
	char one[ADDRESS_BYTES];
	size_t length;

	if (count > JOIN_AGENTS_MAX)
		return error_set(-E2BIG, "other_agents: %u of them, allowed are %d", count,
				 JOIN_AGENTS_MAX);
	if (count && j->roots > 1)
		return error_set(-EINVAL, "other_agents: agents of several roots are no others of "
					  "one another: name one agent of a cluster");
	for (; j->listed < count; j->listed++) {
		struct sockaddr_storage *other = &j->list[j->listed];
		const char *from = item(text, j->listed, count, &length);

		snprintf(one, sizeof(one), "%.*s", (int)at_most(length, INT_MAX), from);
		if (address_parse(one, 0, other) < 0 &&
		    address_parse(one, TALLY_UDP_PORT, other) < 0)
			return error_set(-EINVAL,
					 "other_agents: '%s' is no address such as 10.77.0.1, "
					 "10.77.0.1:31249 or [fd77::1]:31249",
					 one);
		if (j->local_said && other->ss_family != j->local.ss_family)
			return error_set(-EINVAL,
					 "%s and other_agents: one is IPv4, the other IPv6",
					 j->local_said);
	}
	return 0;
}

static int job_read(struct join *j, const struct tally_join_options *o)
{
	const char *text = given(j, o->job, "TALLY_JOB");

	if (!text)
		return error_set(-EINVAL, "no job: name it in the option job or in $TALLY_JOB");
	if (!name_is_valid(text))
		return error_set(-EINVAL,
				 "job: '%.80s': a job's name is 1 to 63 of a-z, 0-9, '.', '_' and "
				 "'-', beginning with a letter or a digit",
				 text);
	snprintf(j->job, sizeof(j->job), "%s", text);
	return 0;
}

static void fclosep(FILE **file)
{
	if (*file)
		fclose(*file);
}

/* Its first line, or as much of it as a token may have and a little more. */
static int token_file_read(struct join *j, const char *path)
{
	_cleanup_(fclosep) FILE *file = fopen(path, "re");
	char line[TOKEN_LINE_BYTES] = "";
	struct stat s;
	int r = 0;

	if (!file || fstat(fileno(file), &s) < 0)
		/* NOLINTNEXTLINE(clang-analyzer-unix.Stream): _cleanup_ closes it */
		return error_set(-errno, "token file %s: %s", path, strerror(errno));
	if (!S_ISREG(s.st_mode) && !S_ISFIFO(s.st_mode))
		return error_set(-EINVAL, "token file %s: is not a file", path);
	if (s.st_mode & (S_IROTH | S_IWOTH))
		return error_set(-EPERM,
				 "token file %s: everybody on this machine may %s it, and who has "
				 "the token is a worker: chmod o-rw %s",
				 path, s.st_mode & S_IROTH ? "read" : "write", path);
	setvbuf(file, NULL, _IONBF, 0); /* no copy of the token stays behind */
	if (!fgets(line, sizeof(line), file) && ferror(file))
		return error_set(-errno, "token file %s: %s", path, strerror(errno));
	line[strcspn(line, "\r\n")] = '\0';
	if (token_is_valid(line))
		secret_token_key(line, j->token_key);
	else
		r = error_set(-EINVAL,
			      "token file %s: its first line is no token: 1 to 128 of A-Z, a-z, "
			      "0-9, '_' and '-'",
			      path);
	explicit_bzero(line, sizeof(line));
	return r;
}

static int token_read(struct join *j, const struct tally_join_options *o)
{
	const char *token = o->token ? given(j, o->token, NULL) : NULL;
	const char *path = token ? NULL : given(j, NULL, "TALLY_TOKEN_FILE");

	if (!token && !path)
		return error_set(-EINVAL,
				 "no token: put what 'tallyctl job token %s' says into a file and "
				 "name the file in $TALLY_TOKEN_FILE",
				 j->job);
	if (!token)
		return token_file_read(j, path);
	if (!token_is_valid(token))
		return error_set(-EINVAL,
				 "token: malformed: 1 to 128 of A-Z, a-z, 0-9, '_' and '-'");
	secret_token_key(token, j->token_key);
	return 0;
}

static int rank_read(struct join *j, const struct tally_join_options *o)
{
	const char *text = o->rank == JOINING_RANK_ANY ? said(NULL, "TALLY_RANK") : NULL;
	uint32_t rank;

	if (o->rank < JOINING_RANK_ANY || o->rank >= TALLY_WORKERS_MAX)
		return error_set(-EINVAL, "rank: %d, allowed are 0 to %d, and -1 for any", o->rank,
				 TALLY_WORKERS_MAX - 1);
	j->request.rank = o->rank;
	if (!text)
		return 0;
	if (!text_u32(text, TALLY_WORKERS_MAX - 1, &rank))
		return error_set(-EINVAL, "$TALLY_RANK: '%s', allowed are 0 to %d", text,
				 TALLY_WORKERS_MAX - 1);
	j->request.rank = (int)rank;
	return 0;
}

/* With a port or without: then any that is free. */
static int address_read(struct join *j, const struct tally_join_options *o)
{
	const char *text = given(j, o->address, "TALLY_ADDRESS");

	if (!text)
		return 0;
	j->local_said = o->address ? "option address" : "$TALLY_ADDRESS";
	if (address_parse(text, 0, &j->local) < 0) {
		if (address_parse(text, TALLY_UDP_PORT, &j->local) < 0)
			return error_set(-EINVAL,
					 "%s: '%s' is no address such as 10.77.1.1, "
					 "10.77.1.1:40000 or [fd77:1::1]:40000",
					 j->local_said, text);
		endpoint_port_set(&j->local, 0);
	}
	if (j->agent.ss_family != AF_UNIX && j->agent.ss_family != j->local.ss_family)
		return error_set(-EINVAL, "%s and agent: one is IPv4, the other IPv6",
				 j->local_said);
	return 0;
}

/* In this order: errors about a token name the job, and an address depends on the agent's. */
static int (*const readers[])(struct join *j, const struct tally_join_options *o) = {
	agent_read, job_read, token_read, rank_read, address_read, other_agents_read,
};

int join_options_read(struct join *j, const struct tally_join_options *o)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(readers) / sizeof(*readers); i++)
		r = readers[i](j, o);
	explicit_bzero(j->item, sizeof(j->item));
	return r;
}
