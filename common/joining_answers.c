// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What an agent says to a worker behind the greetings, and its own greeting. */
#include "address.h"
#include "joining_private.h"
#include "text.h"
#include "ranks.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <tally/wire.h>

static int parse_waiting(struct lines *l, struct joining_answer *a)
{
	if (ranks_parse(l->value.text, &a->missing) < 0)
		return lines_refuse(l, -EINVAL, "ranks up to %d, such as 1,3-4",
				    TALLY_WORKERS_MAX - 1);
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

static int end_take(struct lines *l)
{
	int error = lines_next(l);

	if (error < 0)
		return error;
	return lines_is_empty(l) ? 0 : lines_refuse(l, -EINVAL, "an empty line should be here");
}

static int words_take(struct lines *l, const char *words, struct joining_answer *a)
{
	if (strlen(words) >= sizeof(a->text))
		return lines_refuse(l, -EMSGSIZE, "more than %zu bytes of words",
				    sizeof(a->text) - 1);
	snprintf(a->text, sizeof(a->text), "%s", words);
	return 0;
}

static int parse_ending(struct lines *l, struct joining_answer *a)
{
	if (!*l->value.text)
		return lines_refuse(l, -EINVAL, "the reason is needed");
	return words_take(l, l->value.text, a);
}

static int parse_error(struct lines *l, struct joining_answer *a)
{
	size_t name = strspn(l->value.text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
	const char *words = l->value.text + name;
	int r;

	if (!name || (*words && *words != ' '))
		return lines_refuse(l, -EINVAL, "the name of an error is needed, such as EACCES");
	a->error = error_of(l->value.text, name);
	r = words_take(l, words + (*words == ' '), a);
	return r < 0 ? r : end_take(l);
}

/* All of it is said by its first line. */
static int parse_bare(struct lines *l, struct joining_answer *a)
{
	(void)a;
	if (*l->value.text)
		return lines_refuse(l, -EINVAL, "no value belongs here");
	return end_take(l);
}

static int parse_elsewhere(struct lines *l, struct joining_answer *a)
{
	if (address_parse(l->value.text, TALLY_UDP_PORT, &a->elsewhere) < 0)
		return lines_refuse(l, -EINVAL, "an address is needed, such as 10.77.0.1");
	return 0;
}

static int parse_token(struct lines *l, struct joining_answer *a)
{
	if (!text_hex_parse(l->value.text, a->token_key, sizeof(a->token_key)))
		return lines_refuse(l, -EINVAL, "64 digits of 0-9 and a-f are needed");
	return 0;
}

/* As "800,200". */
static int parse_shares(struct lines *l, struct joining_answer *a)
{
	const char *text = l->value.text;
	uint32_t share = 0;

	for (a->roots = 0; a->roots < JOINING_ROOTS_MAX; text += *text == ',') {
		const size_t length = strcspn(text, ",");
		char one[16];

		if (length >= sizeof(one))
			break;
		memcpy(one, text, length);
		one[length] = '\0';
		if (!text_u32(one, JOINING_SHARE_MAX, &share) || !share)
			break;
		a->shares[a->roots++] = (uint16_t)share;
		text += length;
		if (!*text && a->roots > 1)
			return 0;
	}
	return lines_refuse(l, -EINVAL, "2 to %d numbers from 1 to %d, with commas between",
			    JOINING_ROOTS_MAX, JOINING_SHARE_MAX);
}

static int parse_greeting(struct lines *l, struct joining_answer *a)
{
	int r = joining_version_check(l, "agent", "worker");

	return r < 0 ? r : joining_rows_take(l, &joining_challenge_keys, &a->greeting);
}

static int check_roots(struct lines *l, const struct joining_answer *a)
{
	if (!a->roots && !a->which && !a->share)
		return 0;
	if (!a->roots || !a->which || !a->share)
		return lines_refuse(l, -EINVAL, "roots, which and share are said together");
	if (a->which > a->roots)
		return lines_refuse(l, -EINVAL, "root %u, but there are %u roots", a->which,
				    a->roots);
	return 0;
}

static bool is_next(const struct lines *l, const struct key *key)
{
	/* a newline ends what is compared */
	return !strncmp(l->text + l->at, key->name, strlen(key->name));
}

/* A key that must be there has one line. 1: there are no more lines. */
static int rows_of_key_take(struct lines *l, const struct key *key, struct joining_answer *a,
			    uint32_t *seen)
{
	bool is_due = key->needed || is_next(l, key);
	int error = 0;

	while (error == 0 && is_due) {
		error = lines_next(l);
		if (error == 0 && lines_is_empty(l))
			return 1;
		if (error == 0)
			error = lines_take(l, &joining_run_keys, a, seen);
		is_due = error == 0 && !key->needed && is_next(l, key);
	}
	return error;
}

/* All of it must be there: the job file says only as a whole whether it is right. */
static int parse_place(struct lines *l, struct joining_answer *a)
{
	const char *start = l->text + l->at - 1; /* the end of the first line */
	const char *end = memmem(start, l->length - l->at + 1, "\n\n", 2);
	uint32_t seen = 0;
	uint64_t nonce;
	char why[160];
	int error = 0;

	if (*l->value.text)
		return lines_refuse(l, -EINVAL, "no value belongs here");
	if (!end && l->length >= JOINING_ANSWER_BYTES)
		return lines_refuse(l, -EMSGSIZE, "no end within %d bytes", JOINING_ANSWER_BYTES);
	if (!end)
		return -EAGAIN;
	for (size_t i = 0; error == 0 && i < joining_run_keys.count; i++)
		error = rows_of_key_take(l, &joining_run_keys.key[i], a, &seen);
	if (error >= 0)
		error = lines_end(l, &joining_run_keys, seen);
	if (error == 0)
		error = check_roots(l, a);
	if (error < 0)
		return error;
	nonce = a->job.nonce;
	/* The end may be that of the line just taken: then there is no file at all. */
	start = l->text + l->at;
	error = jobfile_parse(start, start < end ? (size_t)(end - start) : 0, &a->job, why,
			      sizeof(why));
	if (error < 0)
		return lines_refuse(l, error, "the job file behind it: %s", why);
	if (a->rank >= a->job.workers)
		return lines_refuse(l, -EINVAL, "rank %u, but there are %u workers", a->rank,
				    a->job.workers);
	a->job.nonce = nonce;
	a->job.keys = a->job.secrets = 0; /* none is said in the clear */
	l->at = (size_t)(end + 2 - l->text);
	return 0;
}

static const struct {
	const char *name;
	enum joining_kind kind;
	int (*parse)(struct lines *l, struct joining_answer *a);
} answers[] = {
	{ "tally-join", JOINING_GREETING, parse_greeting },
	{ "waiting", JOINING_WAITING, parse_waiting },
	{ "run", JOINING_RUN, parse_place },
	{ "ending", JOINING_ENDING, parse_ending },
	{ "error", JOINING_ERROR, parse_error },
	{ "left", JOINING_LEFT, parse_bare },
	{ "stays", JOINING_STAYS, parse_bare },
	{ "token", JOINING_TOKEN, parse_token },
	{ "shares", JOINING_SHARES, parse_shares },
	{ "elsewhere", JOINING_ELSEWHERE, parse_elsewhere },
};

int joining_answer_parse(const char *text, size_t length, struct joining_answer *ret,
			 size_t *ret_length, char *why, size_t why_size)
{
	struct joining_answer a = { 0 };
	struct lines l;
	int error;

	lines_init(&l, text, length, LINES_BYTES_MAX, why, why_size);
	error = lines_next(&l);
	if (error < 0)
		return error;
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		if (strcmp(l.key.text, answers[i].name) != 0)
			continue;
		a.kind = answers[i].kind;
		error = answers[i].parse(&l, &a);
		if (error < 0)
			return error;
		*ret = a;
		*ret_length = l.at;
		return 0;
	}
	return lines_refuse(&l, -EINVAL,
			    "an agent says no such thing: something else listens there");
}

int joining_waiting_print(const struct tally_set *missing, char *text, size_t size,
			  size_t *ret_length)
{
	char line[RANKS_BYTES + 16] = "waiting ";

	assert(!tally_set_is_empty(missing));
	ranks_print(missing, line + strlen(line), RANKS_BYTES);
	return lines_print(line, NULL, NULL, "\n", text, size, ret_length);
}

int joining_run_print(const struct joining_answer *a, char *text, size_t size, size_t *ret_length)
{
	char head[512];
	int r;

	assert(a->rank < a->job.workers && a->job.nonce && !a->job.keys);
	r = lines_print("run\n", &joining_run_keys, a, "", head, sizeof(head), ret_length);
	return r < 0 ? r : lines_print(head, &jobfile_keys, &a->job, "\n", text, size, ret_length);
}

/* A line, and what ends the message. */
static int words_print(const char *key, const char *words, const char *end, char *text, size_t size,
		       size_t *ret_length)
{
	char line[JOINING_TEXT_BYTES + 32];

	snprintf(line, sizeof(line), "%s%s%.*s", key, *words ? " " : "", JOINING_TEXT_BYTES - 1,
		 words);
	for (char *c = line; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return lines_print(line, NULL, NULL, end, text, size, ret_length);
}

int joining_ending_print(const char *words, char *text, size_t size, size_t *ret_length)
{
	return words_print("ending", words, "\n", text, size, ret_length);
}

int joining_error_print(int error, const char *words, char *text, size_t size, size_t *ret_length)
{
	const char *name = "EIO";
	char key[32];

	for (size_t i = 0; i < ERRORS; i++)
		if (errors[i].number == -error)
			name = errors[i].name;
	snprintf(key, sizeof(key), "error %s", name);
	return words_print(key, words, "\n\n", text, size, ret_length);
}

int joining_elsewhere_print(const struct sockaddr_storage *address, char *text, size_t size,
			    size_t *ret_length)
{
	char words[ADDRESS_BYTES];

	address_print(address, words, sizeof(words));
	return words_print("elsewhere", words, "\n", text, size, ret_length);
}

int joining_shares_print(const uint16_t *share, unsigned int roots, char *text, size_t size,
			 size_t *ret_length)
{
	char words[8 * JOINING_ROOTS_MAX] = "";

	for (unsigned int i = 0; i < roots; i++)
		snprintf(words + strlen(words), sizeof(words) - strlen(words), "%s%u", i ? "," : "",
			 share[i]);
	return words_print("shares", words, "\n", text, size, ret_length);
}

int joining_token_print(const uint8_t token_key[SECRET_KEY_BYTES], char *text, size_t size,
			size_t *ret_length)
{
	char digits[2 * SECRET_KEY_BYTES + 1];

	text_hex_print(token_key, SECRET_KEY_BYTES, digits);
	return words_print("token", digits, "\n", text, size, ret_length);
}

int joining_left_print(char *text, size_t size, size_t *ret_length)
{
	return lines_print("left", NULL, NULL, "\n\n", text, size, ret_length);
}

int joining_stays_print(char *text, size_t size, size_t *ret_length)
{
	return lines_print("stays", NULL, NULL, "\n\n", text, size, ret_length);
}
