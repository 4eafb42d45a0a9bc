// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "file.h"
#include "jobfile.h"
#include "text.h"
#include "util.h"

enum {
	KEY_BYTES = 16, /* longest key, its end, and room to see a wrong one */
	VALUE_BYTES = ADDRESS_BYTES,
	PAYLOAD_IP4 = 1408, /* the largest that fits an MTU of 1500 */
	PAYLOAD_IP6 = 1344,
};

uint16_t run_payload_default(int family) { return family == AF_INET ? PAYLOAD_IP4 : PAYLOAD_IP6; }

struct parser {
	struct run *file;
	unsigned int line; /* from 1; 0: the file as a whole */
	unsigned int seen; /* bit i: keys[i] */
	char key[KEY_BYTES];
	char value[VALUE_BYTES];
	char *why;
	size_t why_size;
};

/* What is wrong with this line's value, or its key if there is no value. */
static int refuse(struct parser *p, const char *allowed)
{
	snprintf(p->why, p->why_size, "line %u: %s%s%s: %s", p->line, p->key, *p->value ? " " : "",
		 p->value, allowed);
	return -EINVAL;
}

/* All addresses are of the family of the file's first one. */
static int check_family(struct parser *p, const struct sockaddr_storage *a)
{
	sa_family_t first = p->file->service.ss_family;

	if (!first)
		first = p->file->worker[0].ss_family;
	if (!first || first == a->ss_family)
		return 0;
	return refuse(p, first == AF_INET
				 ? "the addresses above are IPv4; all must be of one family"
				 : "the addresses above are IPv6; all must be of one family");
}

static int set_job(struct parser *p)
{
	if (!text_u32(p->value, UINT32_MAX, &p->file->job))
		return refuse(p, "a number from 0 to 4294967295");
	return 0;
}

static int set_epoch(struct parser *p)
{
	uint32_t n;

	if (!text_u32(p->value, UINT16_MAX, &n))
		return refuse(p, "a number from 0 to 65535");
	p->file->epoch = n;
	return 0;
}

static int set_window(struct parser *p)
{
	uint32_t n;

	if (!text_u32(p->value, TALLY_WINDOW_MAX, &n) || !n || n & (n - 1))
		return refuse(p, "a power of two from 1 to 1024");
	p->file->window = n;
	return 0;
}

static int set_payload(struct parser *p)
{
	uint32_t n;

	if (!text_u32(p->value, TALLY_PAYLOAD_MAX, &n) || !n || n % TALLY_BLOCK_BYTES)
		return refuse(p, "a multiple of 64 from 64 to 3392 (bytes)");
	p->file->payload_bytes = n;
	return 0;
}

static int set_service(struct parser *p)
{
	struct sockaddr_storage a;
	int r;

	if (address_parse(p->value, TALLY_UDP_PORT, &a) < 0)
		return refuse(p, "an address without port, such as 10.77.0.1 or fd77::1");
	r = check_family(p, &a);
	if (r < 0)
		return r;
	p->file->service = a;
	return 0;
}

static int set_worker(struct parser *p)
{
	struct run *f = p->file;
	struct sockaddr_storage a;
	int r;

	if (f->workers == TALLY_WORKERS_MAX)
		return refuse(p, "one too many; a job has at most 256 workers");
	if (address_parse(p->value, 0, &a) < 0)
		return refuse(p, "an address and port, such as 10.77.1.1:40000 or "
				 "[fd77:1::1]:40000");
	r = check_family(p, &a);
	if (r < 0)
		return r;
	for (unsigned int rank = 0; rank < f->workers; rank++)
		if (endpoint_is_equal(&f->worker[rank], &a))
			return refuse(p, "another worker has this address and port");
	f->worker[f->workers++] = a;
	return 0;
}

_Static_assert(TALLY_WINDOW_MAX == 1024 && TALLY_PAYLOAD_MAX == 3392 && TALLY_WORKERS_MAX == 256,
	       "the texts above and docs/job-file.md name them");

static const struct {
	const char *name;
	int (*set)(struct parser *p);
	bool repeats;
} keys[] = {
	{ "job", set_job, false },	   { "epoch", set_epoch, false },
	{ "window", set_window, false },   { "payload", set_payload, false },
	{ "service", set_service, false }, { "worker", set_worker, true },
};

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/*
 * The next word of a line into `ret`. Strange bytes become '?', and a word that does not fit
 * ends in '~': neither stands in anything that is allowed.
 */
static const char *word_take(const char *at, const char *end, char *ret, size_t size)
{
	size_t n = 0;

	while (at < end && is_blank(*at))
		at++;
	for (; at < end && !is_blank(*at) && *at != '#'; at++) {
		if (n + 1 < size)
			ret[n++] = *at > ' ' && *at < '~' ? *at : '?';
		else
			ret[n - 1] = '~';
	}
	ret[n] = '\0';
	return at;
}

static int line_parse(struct parser *p, const char *at, const char *end)
{
	char more[2];
	size_t i;

	at = word_take(at, end, p->key, sizeof(p->key));
	at = word_take(at, end, p->value, sizeof(p->value));
	word_take(at, end, more, sizeof(more));
	if (!*p->key)
		return 0;
	for (i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (!strcmp(p->key, keys[i].name))
			break;
	if (i == sizeof(keys) / sizeof(*keys)) {
		*p->value = '\0';
		return refuse(p, "no such key; there are job, epoch, window, payload, service and "
				 "worker");
	}
	if (*more)
		return refuse(p, "one value only; remarks begin with #");
	if (!*p->value)
		return refuse(p, "a value is missing");
	if (!keys[i].repeats && p->seen & 1u << i)
		return refuse(p, "given twice");
	p->seen |= 1u << i;
	return keys[i].set(p);
}

/* What no single line can say. */
static int finish(struct parser *p)
{
	struct run *f = p->file;

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		bool needed = keys[i].set == set_job || keys[i].set == set_service ||
			      keys[i].set == set_worker;

		if (needed && !(p->seen & 1u << i)) {
			snprintf(p->why, p->why_size, "no line '%s ...', which is needed",
				 keys[i].name);
			return -EINVAL;
		}
	}
	if (!f->payload_bytes)
		f->payload_bytes = run_payload_default(f->service.ss_family);
	return 0;
}

int jobfile_parse(const char *text, size_t length, struct run *ret, char *why, size_t why_size)
{
	struct run file = { .epoch = 1, .window = RUN_WINDOW };
	struct parser p = { .file = &file, .why = why, .why_size = why_size };
	const char *end = text + length;
	int r;

	if (why_size)
		*why = '\0';
	while (text < end) {
		const char *newline = memchr(text, '\n', end - text);
		const char *stop = newline ? newline : end;

		p.line++;
		r = line_parse(&p, text, stop);
		if (r < 0)
			return r;
		text = newline ? newline + 1 : end;
	}
	r = finish(&p);
	if (r < 0)
		return r;
	*ret = file;
	return 0;
}

int jobfile_print(const struct run *f, char *text, size_t size, size_t *ret_length)
{
	char address[ADDRESS_BYTES];
	size_t length;

	address_print(&f->service, address, sizeof(address));
	length = snprintf(text, size, "job %u\nepoch %u\nwindow %u\npayload %u\nservice %s\n",
			  f->job, f->epoch, f->window, f->payload_bytes, address);
	for (unsigned int rank = 0; rank < f->workers && length < size; rank++) {
		endpoint_print(&f->worker[rank], address, sizeof(address));
		length += snprintf(text + length, size - length, "worker %s\n", address);
	}
	if (length >= size)
		return -ENOSPC;
	*ret_length = length;
	return 0;
}

int jobfile_read(const char *path, struct run *ret, char *why, size_t why_size)
{
	_cleanup_(freep) char *text = NULL;
	size_t length;
	char line[160];
	int r;

	if (why_size)
		*why = '\0';
	r = file_read(path, JOBFILE_BYTES_MAX, &text, &length);
	if (r == -EFBIG)
		snprintf(why, why_size, "%s: longer than %d bytes", path, JOBFILE_BYTES_MAX);
	else if (r < 0)
		snprintf(why, why_size, "%s: %s", path, strerror(-r));
	if (r < 0)
		return r;
	r = jobfile_parse(text, length, ret, line, sizeof(line));
	if (r < 0)
		snprintf(why, why_size, "%s: %s", path, line);
	return r;
}
