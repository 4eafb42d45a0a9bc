// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "address.h"
#include "joining.h"
#include "name.h"
#include "ranks.h"
#include "text.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
	REQUEST_LINE_MAX = 256, /* bytes before its end */
	ANSWER_LINE_MAX = 1024,
	REQUEST_LINES_MAX = 7, /* each key once, and the empty line */
	KEY_SHOWN = 24, /* of a wrong key */
};

/* Keys cannot repeat and lines have a limit: so has a request. */
_Static_assert(REQUEST_LINES_MAX *(REQUEST_LINE_MAX + 1) <= JOINING_MESSAGE_BYTES,
	       "a request that may still become right fits an agent's buffer");
_Static_assert(TOKEN_BYTES + 8 <= REQUEST_LINE_MAX, "a token's line fits");
_Static_assert(JOINING_TEXT_BYTES + 24 <= ANSWER_LINE_MAX, "an error's line fits");
_Static_assert(RANKS_BYTES + 8 <= ANSWER_LINE_MAX, "a waiting line fits");
_Static_assert(TALLY_WORKERS_MAX *(ADDRESS_BYTES - 1) + 256 <= JOINING_ANSWER_BYTES,
	       "a place in the largest job fits: no worker's line is longer than 63 bytes");
_Static_assert(JOINING_VERSION == 1, "texts below name it");

/* Walks over the lines of a message, and keeps a copy of the last one, cut into key and value. */
struct reader {
	const char *text;
	size_t length, at; /* `at`: behind the last line that was taken */
	size_t line_max;
	unsigned int line; /* from 1: the last one */
	char copy[ANSWER_LINE_MAX + 1];
	const char *key, *value; /* in `copy`; never NULL */
	char *why;
	size_t why_size;
};

static void reader_init(struct reader *r, const char *text, size_t length, size_t line_max,
			char *why, size_t why_size)
{
	*r = (struct reader){
		.text = text,
		.length = length,
		.line_max = line_max,
		.why = why,
		.why_size = why_size,
	};
	r->key = r->value = r->copy;
	if (why_size)
		*why = '\0';
}

/* Says what is wrong with this line, and returns `error`. */
__attribute__((format(printf, 3, 4))) static int refuse(struct reader *r, int error,
							const char *format, ...)
{
	char text[160];
	va_list values;

	va_start(values, format);
	vsnprintf(text, sizeof(text), format, values);
	va_end(values);
	snprintf(r->why, r->why_size, "line %u: %.*s%s%s", r->line, KEY_SHOWN, r->key,
		 *r->key ? ": " : "", text);
	return error;
}

static bool is_printable(char c) { return c >= ' ' && c <= '~'; }

/* The first `n` bytes of the line as two strings, for people where it is not printable. */
static void line_copy(struct reader *r, const char *line, size_t n)
{
	char *blank;

	for (size_t i = 0; i < n; i++)
		r->copy[i] = is_printable(line[i]) ? line[i] : '?';
	r->copy[n] = '\0';
	blank = strchr(r->copy, ' ');
	if (blank)
		*blank = '\0';
	r->value = blank ? blank + 1 : r->copy + n;
}

/* The next line. What is wrong with one is found before its end is there. */
static int line_take(struct reader *r)
{
	const char *line = r->text + r->at;
	size_t left = r->length - r->at, most = left < r->line_max + 1 ? left : r->line_max + 1;
	const char *end = memchr(line, '\n', most);
	size_t n = end ? (size_t)(end - line) : most;

	r->line++;
	line_copy(r, line, n < r->line_max ? n : r->line_max);
	for (size_t i = 0; i < n; i++)
		if (!is_printable(line[i]))
			return refuse(
				r, -EINVAL,
				"byte 0x%02x at column %zu: printable ASCII and newlines only",
				(unsigned char)line[i], i + 1);
	if (end) {
		r->at += n + 1;
		return 0;
	}
	if (n > r->line_max)
		return refuse(r, -EMSGSIZE, "the line is longer than %zu bytes", r->line_max);
	return -EAGAIN;
}

static bool line_is_empty(const struct reader *r) { return !*r->key && r->value == r->key; }

/* --- values that both sides know */

static int version_check(struct reader *r)
{
	uint32_t version;

	if (!text_u32(r->value, UINT32_MAX, &version))
		return refuse(r, -EINVAL, "a version number is needed");
	if (version != JOINING_VERSION)
		return refuse(r, -EPROTONOSUPPORT, "version %u: only version 1 is spoken here",
			      version);
	return 0;
}

/* --- requests */

static int set_job(struct reader *r, struct joining_message *q)
{
	if (!name_is_valid(r->value))
		return refuse(r, -EINVAL,
			      "1 to 63 of a-z, 0-9, '.', '_' and '-', the first one no sign");
	snprintf(q->job, sizeof(q->job), "%s", r->value);
	return 0;
}

static int set_token(struct reader *r, struct joining_message *q)
{
	if (!token_is_valid(r->value))
		return refuse(r, -EINVAL, "1 to 128 of A-Z, a-z, 0-9, '_' and '-'");
	snprintf(q->token, sizeof(q->token), "%s", r->value);
	return 0;
}

static int set_rank(struct reader *r, struct joining_message *q)
{
	uint32_t n;

	if (!q->leave && !strcmp(r->value, "any"))
		q->rank = JOINING_RANK_ANY;
	else if (text_u32(r->value, TALLY_WORKERS_MAX - 1, &n))
		q->rank = (int)n;
	else
		return refuse(r, -EINVAL, "a number from 0 to %d%s", TALLY_WORKERS_MAX - 1,
			      q->leave ? "" : ", or any");
	return 0;
}

static int set_epoch(struct reader *r, struct joining_message *q)
{
	uint32_t n;

	if (!text_u32(r->value, UINT16_MAX, &n))
		return refuse(r, -EINVAL, "a number from 0 to %d", UINT16_MAX);
	q->epoch = n;
	return 0;
}

static int set_port(struct reader *r, struct joining_message *q)
{
	uint32_t n;

	if (q->address.ss_family)
		return refuse(r, -EINVAL, "either port or address, and address is there");
	if (!text_u32(r->value, UINT16_MAX, &n) || !n)
		return refuse(r, -EINVAL, "a number from 1 to %d", UINT16_MAX);
	q->port = n;
	return 0;
}

static int set_address(struct reader *r, struct joining_message *q)
{
	if (q->port)
		return refuse(r, -EINVAL, "either port or address, and port is there");
	if (address_parse(r->value, 0, &q->address) < 0)
		return refuse(r, -EINVAL,
			      "an address and port, such as 10.77.1.1:40000 or [fd77:1::1]:40000");
	return 0;
}

static const struct request_key {
	const char *name;
	int (*set)(struct reader *r, struct joining_message *q);
	bool joining, leaving; /* is it a key of this request? */
	bool needed;
} request_keys[] = {
	{ "job", set_job, true, true, true },		{ "token", set_token, true, true, true },
	{ "rank", set_rank, true, true, false },	{ "port", set_port, true, false, false },
	{ "address", set_address, true, false, false }, { "epoch", set_epoch, false, true, true },
};

enum {
	REQUEST_KEYS = sizeof(request_keys) / sizeof(*request_keys)
};

static int request_line(struct reader *r, struct joining_message *q, unsigned int *seen)
{
	size_t i = 0;

	while (i < REQUEST_KEYS &&
	       (strcmp(r->key, request_keys[i].name) != 0 ||
		!(q->leave ? request_keys[i].leaving : request_keys[i].joining)))
		i++;
	if (i == REQUEST_KEYS)
		return refuse(r, -EINVAL, "no such key; there are %s",
			      q->leave ? "job, token, rank and epoch"
				       : "job, token, rank, port and address");
	if (*seen & 1u << i)
		return refuse(r, -EINVAL, "given twice");
	*seen |= 1u << i;
	return request_keys[i].set(r, q);
}

/* What no single line can say. */
static int request_finish(struct reader *r, const struct joining_message *q, unsigned int seen)
{
	for (size_t i = 0; i < REQUEST_KEYS; i++) {
		const struct request_key *k = &request_keys[i];
		bool needed = k->needed && (q->leave ? k->leaving : k->joining);

		if (q->leave && k->set == set_rank)
			needed = true;
		if (needed && !(seen & 1u << i)) {
			snprintf(r->why, r->why_size, "no line '%s ...', which is needed", k->name);
			return -EINVAL;
		}
	}
	if (q->leave || q->port || q->address.ss_family)
		return 0;
	snprintf(r->why, r->why_size,
		 "no line 'port ...' or 'address ...', one of which is needed");
	return -EINVAL;
}

int joining_message_parse(const char *text, size_t length, struct joining_message *ret,
			  size_t *ret_length, char *why, size_t why_size)
{
	struct joining_message q = { .rank = JOINING_RANK_ANY };
	unsigned int seen = 0;
	struct reader r;
	int error;

	reader_init(&r, text, length, REQUEST_LINE_MAX, why, why_size);
	error = line_take(&r);
	if (error < 0)
		return error;
	q.leave = !strcmp(r.key, "tally-leave");
	if (!q.leave && strcmp(r.key, "tally-join") != 0)
		return refuse(&r, -EINVAL, "no such request; there are tally-join and tally-leave");
	error = version_check(&r);
	while (error == 0) {
		error = line_take(&r);
		if (error == 0 && line_is_empty(&r))
			break;
		if (error == 0)
			error = request_line(&r, &q, &seen);
	}
	if (error == 0)
		error = request_finish(&r, &q, seen);
	if (error < 0)
		return error;
	*ret = q;
	*ret_length = r.at;
	return 0;
}

/* What every printer ends with: the length that snprintf() wants, or that it does not fit. */
static int printed(int length, size_t size, size_t *ret_length)
{
	if (length < 0 || (size_t)length >= size)
		return -ENOSPC;
	*ret_length = length;
	return 0;
}

int joining_message_print(const struct joining_message *q, char *text, size_t size,
			  size_t *ret_length)
{
	char where[ADDRESS_BYTES + 16], address[ADDRESS_BYTES], rank[16] = "any";

	assert(name_is_valid(q->job) && token_is_valid(q->token));
	assert(q->rank >= (q->leave ? 0 : JOINING_RANK_ANY) && q->rank < TALLY_WORKERS_MAX);
	assert(q->leave || !q->port == !!q->address.ss_family);

	if (q->leave)
		return printed(snprintf(text, size,
					"tally-leave 1\njob %s\ntoken %s\nrank %d\nepoch %u\n\n",
					q->job, q->token, q->rank, q->epoch),
			       size, ret_length);
	if (q->rank != JOINING_RANK_ANY)
		snprintf(rank, sizeof(rank), "%d", q->rank);
	endpoint_print(&q->address, address, sizeof(address));
	if (q->port)
		snprintf(where, sizeof(where), "port %u", q->port);
	else
		snprintf(where, sizeof(where), "address %s", address);
	return printed(snprintf(text, size, "tally-join 1\njob %s\ntoken %s\nrank %s\n%s\n\n",
				q->job, q->token, rank, where),
		       size, ret_length);
}

/* --- answers */

static int parse_waiting(struct reader *r, struct joining_answer *a)
{
	if (ranks_parse(r->value, &a->missing) < 0)
		return refuse(r, -EINVAL, "ranks up to %d, such as 1,3-4", TALLY_WORKERS_MAX - 1);
	return 0;
}

static const struct {
	int number;
	const char *name;
} errors[] = {
#define X(name) { name, #name },
	JOINING_ERRORS(X)
#undef X
};

enum {
	ERRORS = sizeof(errors) / sizeof(*errors)
};

/* -EIO for a name that a later version may have: its words say what is wrong. */
static int error_of(const char *name, size_t length)
{
	for (size_t i = 0; i < ERRORS; i++)
		if (strlen(errors[i].name) == length && !memcmp(errors[i].name, name, length))
			return -errors[i].number;
	return -EIO;
}

static int end_take(struct reader *r)
{
	int error = line_take(r);

	if (error < 0)
		return error;
	return line_is_empty(r) ? 0 : refuse(r, -EINVAL, "an empty line should be here");
}

static int parse_error(struct reader *r, struct joining_answer *a)
{
	size_t name = strspn(r->value, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
	const char *words = r->value + name;

	if (!name || (*words && *words != ' '))
		return refuse(r, -EINVAL, "the name of an error is needed, such as EACCES");
	words += *words == ' ';
	if (strlen(words) >= sizeof(a->text))
		return refuse(r, -EMSGSIZE, "more than %zu bytes of words", sizeof(a->text) - 1);
	a->error = error_of(r->value, name);
	snprintf(a->text, sizeof(a->text), "%s", words);
	return end_take(r);
}

static int parse_left(struct reader *r, struct joining_answer *a)
{
	(void)a;
	if (*r->value)
		return refuse(r, -EINVAL, "no value belongs here");
	return end_take(r);
}

/* All of it must be there: the job file says only as a whole whether it is right. */
static int parse_place(struct reader *r, struct joining_answer *a)
{
	const char *start = r->text + r->at - 1; /* the end of the first line */
	const char *end = memmem(start, r->length - r->at + 1, "\n\n", 2);
	int error = version_check(r);
	char why[160];
	uint32_t rank;

	if (error < 0)
		return error;
	if (!end && r->length >= JOINING_ANSWER_BYTES)
		return refuse(r, -EMSGSIZE, "no end within %d bytes", JOINING_ANSWER_BYTES);
	if (!end)
		return -EAGAIN;
	error = line_take(r);
	if (error < 0)
		return error;
	if (strcmp(r->key, "rank") != 0 || !text_u32(r->value, TALLY_WORKERS_MAX - 1, &rank))
		return refuse(r, -EINVAL, "the worker's rank should be here");
	/* The end may be that of the line just taken: then there is no file at all. */
	start = r->text + r->at;
	error = jobfile_parse(start, start < end ? (size_t)(end - start) : 0, &a->job, why,
			      sizeof(why));
	if (error < 0)
		return refuse(r, error, "the job file behind it: %s", why);
	if (rank >= a->job.workers)
		return refuse(r, -EINVAL, "%u, but there are %u workers", rank, a->job.workers);
	a->rank = rank;
	r->at = (size_t)(end + 2 - r->text);
	return 0;
}

static const struct {
	const char *name;
	enum joining_kind kind;
	int (*parse)(struct reader *r, struct joining_answer *a);
} answers[] = {
	{ "waiting", JOINING_WAITING, parse_waiting },
	{ "tally-join", JOINING_RUN, parse_place },
	{ "error", JOINING_ERROR, parse_error },
	{ "left", JOINING_LEFT, parse_left },
};

int joining_answer_parse(const char *text, size_t length, struct joining_answer *ret,
			 size_t *ret_length, char *why, size_t why_size)
{
	struct joining_answer a = { 0 };
	struct reader r;
	int error;

	reader_init(&r, text, length, ANSWER_LINE_MAX, why, why_size);
	error = line_take(&r);
	if (error < 0)
		return error;
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		if (strcmp(r.key, answers[i].name) != 0)
			continue;
		a.kind = answers[i].kind;
		error = answers[i].parse(&r, &a);
		if (error < 0)
			return error;
		*ret = a;
		*ret_length = r.at;
		return 0;
	}
	return refuse(&r, -EINVAL, "nothing that an agent says: is it one?");
}

int joining_waiting_print(const struct tally_set *missing, char *text, size_t size,
			  size_t *ret_length)
{
	char ranks[RANKS_BYTES];

	assert(!tally_set_is_empty(missing));
	ranks_print(missing, ranks, sizeof(ranks));
	return printed(snprintf(text, size, "waiting %s\n", ranks), size, ret_length);
}

int joining_run_print(uint16_t rank, const struct run *job, char *text, size_t size,
		      size_t *ret_length)
{
	size_t head, file;
	int r;

	assert(rank < job->workers);
	r = printed(snprintf(text, size, "tally-join 1\nrank %u\n", rank), size, &head);
	if (r < 0)
		return r;
	r = jobfile_print(job, text + head, size - head, &file);
	if (r < 0)
		return r;
	r = printed(snprintf(text + head + file, size - head - file, "\n"), size - head - file,
		    &(size_t){ 0 });
	if (r < 0)
		return r;
	*ret_length = head + file + 1;
	return 0;
}

int joining_error_print(int error, const char *words, char *text, size_t size, size_t *ret_length)
{
	char printable[JOINING_TEXT_BYTES];
	const char *name = "EIO";

	for (size_t i = 0; i < ERRORS; i++)
		if (errors[i].number == -error)
			name = errors[i].name;
	snprintf(printable, sizeof(printable), "%s", words);
	for (char *c = printable; *c; c++)
		if (!is_printable(*c))
			*c = '?';
	return printed(
		snprintf(text, size, "error %s%s%s\n\n", name, *printable ? " " : "", printable),
		size, ret_length);
}

int joining_left_print(char *text, size_t size, size_t *ret_length)
{
	return printed(snprintf(text, size, "left\n\n"), size, ret_length);
}
