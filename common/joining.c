// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "address.h"
#include "joining.h"
#include "lines.h"
#include "name.h"
#include "ranks.h"
#include "text.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	REQUEST_LINE_MAX = 256, /* bytes before its end */
	REQUEST_LINES_MAX = 6, /* the first, each key once, and the empty line */
};

/* Keys cannot repeat and lines have a limit: so has a request. */
_Static_assert(REQUEST_LINES_MAX *(REQUEST_LINE_MAX + 1) <= JOINING_MESSAGE_BYTES,
	       "a request that may still become right fits an agent's buffer");
_Static_assert(JOINING_TEXT_BYTES + 24 <= LINES_BYTES_MAX, "an error's line fits");
_Static_assert(RANKS_BYTES + 8 <= LINES_BYTES_MAX, "a waiting line fits");
_Static_assert(TALLY_WORKERS_MAX *(ADDRESS_BYTES - 1) + 256 <= JOINING_ANSWER_BYTES,
	       "a place in the largest job fits: no worker's line is longer than 63 bytes");
_Static_assert(JOINING_VERSION == 4, "texts below name it");

/* --- messages */

static bool challenge_parse(const struct key *key, const char *text, void *member)
{
	if (strspn(text, "0123456789abcdef") != key->size - 1 || text[key->size - 1])
		return false;
	memcpy(member, text, key->size);
	return true;
}

static void challenge_print(const struct key *key, const void *member, char *text, size_t size)
{
	snprintf(text, size, "%s", (const char *)member);
}

static const struct key_type key_challenge = { challenge_parse, challenge_print,
					       .allowed = "32 digits of 0-9 and a-f" };

#define MESSAGE(member) KEY_MEMBER(struct joining_message, member)
#define CHALLENGE                                                                      \
	{ "challenge", &key_challenge, KEY_MEMBER(struct joining_greeting, challenge), \
	  .needed = true, .meaning = "Random, and drawn anew for each connection." }

static const char *const wants[] = {
	[JOINING_WANTS_NOTHING] = "nothing", [JOINING_WANTS_SERVICE] = "service", NULL
};

static const struct key greeting_rows[] = {
	{ "job", &key_name, KEY_MEMBER(struct joining_greeting, job), .needed = true,
	  .meaning = "The job's name." },
	CHALLENGE,
	{ "wants", &key_choice, KEY_MEMBER(struct joining_greeting, wants), .words = wants,
	  .brief = true, .initial = "nothing",
	  .meaning = "What the agent's greeting is to say, too. Not said where it is nothing." },
};
static const struct key challenge_rows[] = {
	CHALLENGE,
	{ "service", &key_address, KEY_MEMBER(struct joining_greeting, service), .brief = true },
};
static const struct key peer_rows[] = {
	{ "root", &key_address, KEY_MEMBER(struct joining_peer, root), .needed = true,
	  .meaning = "Service address of the root whose jobs this is about." },
	{ "to", &key_address, KEY_MEMBER(struct joining_peer, to), .needed = true,
	  .meaning = "Service address of the node that listens." },
	{ "challenge", &key_challenge, KEY_MEMBER(struct joining_peer, challenge), .needed = true,
	  .meaning = "Random, and drawn anew for each connection." },
	{ "share", &key_bytes, KEY_MEMBER(struct joining_peer, share), .needed = true,
	  .meaning = "Of a secret that the agent has drawn: see [messages](#messages)." },
};
static const struct key join_rows[] = {
	{ "rank", &key_number, MESSAGE(rank), .max = TALLY_WORKERS_MAX - 1, .word = "any",
	  .fill = 0xff, .initial = "any", .meaning = "The rank that the worker wants." },
	{ "address", &key_endpoint, MESSAGE(address), .needed = true,
	  .meaning = "Address and UDP port at which the worker receives. Over TCP the address "
		     "must be the connection's." },
	{ "share", &key_bytes, MESSAGE(share), .needed = true,
	  .meaning = "Of a secret that the worker draws for this connection: see "
		     "[keys](#keys-of-ranks)." },
};
static const struct key leave_rows[] = {
	{ "rank", &key_number, MESSAGE(rank), .max = TALLY_WORKERS_MAX - 1, .needed = true,
	  .meaning = "The worker's rank." },
	{ "epoch", &key_number, MESSAGE(epoch), .max = UINT16_MAX, .needed = true,
	  .meaning = "Epoch of the run that is left." },
};

static const struct key run_rows[] = {
	{ "rank", &key_number, KEY_MEMBER(struct joining_answer, rank),
	  .max = TALLY_WORKERS_MAX - 1, .needed = true, .meaning = "The worker's rank." },
	{ "nonce", &key_hex, KEY_MEMBER(struct joining_answer, job.nonce), .min = 1, .needed = true,
	  .allowed = "16 digits of 0-9 and a-f, not all of them 0",
	  .meaning = "A random number of this run, the same for all its ranks." },
	{ "key", &key_bytes, KEY_MEMBER(struct joining_answer, key), .word = "none", .needed = true,
	  .meaning = "The agent's share and the sealed [key of the rank](#keys-of-ranks), or none: "
		     "then packets have no tags with keys." },
	{ "sealed", &key_bool, KEY_MEMBER(struct joining_answer, sealed), .brief = true,
	  .otherwise = "false",
	  .meaning = "Is the job [sealed](#sealed-jobs)? Not said where it is not." },
};

const struct keys joining_peer_keys = KEYS(peer_rows), joining_greeting_keys = KEYS(greeting_rows),
		  joining_join_keys = KEYS(join_rows), joining_leave_keys = KEYS(leave_rows),
		  joining_run_keys = KEYS(run_rows);

_Static_assert(JOINING_RANK_ANY == -1, "all bits of it are set");

/* Both sides are named: whoever reads this must know which one to upgrade. */
static int version_check(struct lines *l, const char *speaker, const char *listener)
{
	uint32_t version;

	if (!text_u32(l->value.text, UINT32_MAX, &version))
		return lines_refuse(l, -EINVAL, "a version number is needed");
	if (version != JOINING_VERSION)
		return lines_refuse(l, -EPROTONOSUPPORT,
				    "version %u: the %s is %s than the %s, which speaks version 4",
				    version, speaker, version < JOINING_VERSION ? "older" : "newer",
				    listener);
	return 0;
}

/* All lines up to an empty one. */
static int rows_take(struct lines *l, const struct keys *keys, void *into)
{
	uint32_t seen = 0;
	int r;

	keys_default(keys, into);
	while ((r = lines_next(l)) == 0 && !lines_is_empty(l)) {
		r = lines_take(l, keys, into, &seen);
		if (r < 0)
			return r;
	}
	return r == 0 ? lines_end(l, keys, seen) : r;
}

void joining_challenge_set(const uint8_t random[JOINING_CHALLENGE_BYTES / 2],
			   char ret[JOINING_CHALLENGE_BYTES])
{
	text_hex_print(random, JOINING_CHALLENGE_BYTES / 2, ret);
}

#define PEER "tally-peer"
#define PEER_VERSION "3" /* version 1 hid nothing; 2 did not say to whom */

int joining_is_peer(const char *text, size_t length)
{
	const size_t whole = strlen(PEER);

	if (memcmp(text, PEER, length < whole ? length : whole) != 0)
		return 0;
	return length < whole ? -EAGAIN : 1;
}

int joining_peer_parse(const char *text, size_t length, struct joining_peer *ret,
		       size_t *ret_length, char *why, size_t why_size)
{
	struct joining_peer p = { .challenge = "" };
	struct lines l;
	int r;

	lines_init(&l, text, length, REQUEST_LINE_MAX, why, why_size);
	r = lines_next(&l);
	if (r < 0)
		return r;
	if (strcmp(l.key.text, PEER) != 0)
		return lines_refuse(&l, -EINVAL, "no greeting of an agent; that is " PEER);
	if (strcmp(l.value.text, PEER_VERSION) != 0)
		return lines_refuse(&l, -EPROTONOSUPPORT,
				    "agents of these versions do not understand each other: this "
				    "one speaks version " PEER_VERSION " of " PEER);
	r = rows_take(&l, &joining_peer_keys, &p);
	if (r < 0)
		return r;
	*ret = p;
	*ret_length = l.at;
	return 0;
}

int joining_peer_print(const struct joining_peer *peer, char *text, size_t size, size_t *ret_length)
{
	return lines_print(PEER " " PEER_VERSION "\n", &joining_peer_keys, peer, "\n", text, size,
			   ret_length);
}

int joining_greeting_parse(const char *text, size_t length, struct joining_greeting *ret,
			   size_t *ret_length, char *why, size_t why_size)
{
	struct joining_greeting g = { .job = "" };
	struct lines l;
	int r;

	lines_init(&l, text, length, REQUEST_LINE_MAX, why, why_size);
	r = lines_next(&l);
	if (r < 0)
		return r;
	/* version 2 had two */
	if (strcmp(l.key.text, "tally-join") != 0 && strcmp(l.key.text, "tally-leave") != 0)
		return lines_refuse(&l, -EINVAL, "no such greeting; there is tally-join");
	r = version_check(&l, "worker", "agent");
	if (r == 0)
		r = rows_take(&l, &joining_greeting_keys, &g);
	if (r < 0)
		return r;
	*ret = g;
	*ret_length = l.at;
	return 0;
}

int joining_greeting_print(const struct joining_greeting *greeting, char *text, size_t size,
			   size_t *ret_length)
{
	return lines_print("tally-join 4\n",
			   *greeting->job ? &joining_greeting_keys : KEYS_OF(challenge_rows),
			   greeting, "\n", text, size, ret_length);
}

int joining_message_parse(const char *text, size_t length, struct joining_message *ret,
			  size_t *ret_length, char *why, size_t why_size)
{
	struct joining_message q = { 0 };
	struct lines l;
	int r;

	lines_init(&l, text, length, REQUEST_LINE_MAX, why, why_size);
	r = lines_next(&l);
	if (r < 0)
		return r;
	q.leave = !strcmp(l.key.text, "leave");
	if (*l.value.text || (!q.leave && strcmp(l.key.text, "join") != 0))
		return lines_refuse(&l, -EINVAL, "no such request; there are join and leave");
	r = rows_take(&l, q.leave ? &joining_leave_keys : &joining_join_keys, &q);
	if (r < 0)
		return r;
	*ret = q;
	*ret_length = l.at;
	return 0;
}

int joining_message_print(const struct joining_message *q, char *text, size_t size,
			  size_t *ret_length)
{
	assert(q->rank >= (q->leave ? 0 : JOINING_RANK_ANY) && q->rank < TALLY_WORKERS_MAX);
	assert(q->leave || q->address.ss_family);

	return lines_print(q->leave ? "leave\n" : "join\n",
			   q->leave ? &joining_leave_keys : &joining_join_keys, q, "\n", text, size,
			   ret_length);
}

/* --- answers */

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

static int parse_left(struct lines *l, struct joining_answer *a)
{
	(void)a;
	if (*l->value.text)
		return lines_refuse(l, -EINVAL, "no value belongs here");
	return end_take(l);
}

static int parse_greeting(struct lines *l, struct joining_answer *a)
{
	int r = version_check(l, "agent", "worker");

	return r < 0 ? r : rows_take(l, KEYS_OF(challenge_rows), &a->greeting);
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
	for (size_t i = 0; error == 0 && i < joining_run_keys.count; i++) {
		const struct key *key = &joining_run_keys.key[i];

		/* a newline ends what is compared */
		if (!key->needed && strncmp(l->text + l->at, key->name, strlen(key->name)) != 0)
			break;
		error = lines_next(l);
		if (error == 0 && lines_is_empty(l))
			break;
		if (error == 0)
			error = lines_take(l, &joining_run_keys, a, &seen);
	}
	if (error == 0)
		error = lines_end(l, &joining_run_keys, seen);
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
	{ "left", JOINING_LEFT, parse_left },
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
	char head[192];
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

int joining_left_print(char *text, size_t size, size_t *ret_length)
{
	return lines_print("left", NULL, NULL, "\n\n", text, size, ret_length);
}
