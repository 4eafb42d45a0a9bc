// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "address.h"
#include "joining_private.h"
#include "lines.h"
#include "name.h"
#include "ranks.h"
#include "text.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <tally/wire.h>

enum {
	REQUEST_LINE_MAX = 256, /* bytes before its end */
	REQUEST_LINES_MAX = 8, /* the first, each key once, and the empty line */
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
	{ "run", &key_hex, KEY_MEMBER(struct joining_greeting, run), .brief = true, .min = 1,
	  .allowed = "16 digits of 0-9 and a-f, not all of them 0", .otherwise = "none",
	  .meaning = "The nonce of the run that the worker is in: then its proofs are by its "
		     "[place](#places) there, and not by the token." },
	{ "rank", &key_number, KEY_MEMBER(struct joining_greeting, rank), .brief = true,
	  .max = TALLY_WORKERS_MAX - 1, .otherwise = "0", .meaning = "Its rank in that run." },
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
	{ "from", &key_hex, MESSAGE(from), .brief = true, .min = 1,
	  .allowed = "16 digits of 0-9 and a-f, not all of them 0", .otherwise = "none",
	  .meaning = "The nonce of the run that the worker is in, if it hears no more of that "
		     "one's [root](#a-root-that-is-gone)." },
	{ "mtu", &key_number, MESSAGE(mtu), .brief = true, .max = UINT16_MAX, .otherwise = "1500",
	  .meaning = "The largest packet that the worker's way to the node [carries](#payloads). "
		     "Not said where that is 1500 or less." },
	{ "payload", &key_blocks, MESSAGE(payload_bytes), .brief = true, .min = TALLY_BLOCK_BYTES,
	  .max = TALLY_PAYLOAD_MAX, .otherwise = "none",
	  .meaning = "The [payload](#payloads) of the run that the worker is in, and that is to go "
		     "on here." },
};
static const struct key leave_rows[] = {
	{ "rank", &key_number, MESSAGE(rank), .max = TALLY_WORKERS_MAX - 1, .needed = true,
	  .meaning = "The worker's rank." },
	{ "epoch", &key_number, MESSAGE(epoch), .max = UINT16_MAX, .needed = true,
	  .meaning = "Epoch of the run that is left." },
};

static const struct key stay_rows[] = {
	{ "rank", &key_number, MESSAGE(rank), .max = TALLY_WORKERS_MAX - 1, .needed = true,
	  .meaning = "The worker's rank." },
	{ "epoch", &key_number, MESSAGE(epoch), .max = UINT16_MAX, .needed = true,
	  .meaning = "Epoch of the run that the worker is in." },
	{ "nonce", &key_hex, MESSAGE(nonce), .min = 1, .needed = true,
	  .allowed = "16 digits of 0-9 and a-f, not all of them 0",
	  .meaning = "The nonce of that run." },
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
	{ "roots", &key_number, KEY_MEMBER(struct joining_answer, roots), .brief = true, .min = 2,
	  .max = JOINING_ROOTS_MAX, .otherwise = "1",
	  .meaning = "How many [roots](#several-roots-of-a-cluster) the job has. This and the next "
		     "two are said together." },
	{ "which", &key_number, KEY_MEMBER(struct joining_answer, which), .brief = true, .min = 1,
	  .max = JOINING_ROOTS_MAX, .otherwise = "1", .meaning = "Which of them this is." },
	{ "share", &key_number, KEY_MEMBER(struct joining_answer, share), .brief = true, .min = 1,
	  .max = JOINING_SHARE_MAX, .otherwise = "1",
	  .meaning = "This root's share in each call, in parts of all roots' shares." },
	{ "other", &key_address, KEY_LIST(struct joining_answer, other, others), .brief = true,
	  .full = "at most four are named",
	  .meaning = "Another agent of the cluster, where a worker asks for the job when this one "
		     "[is gone](#a-root-that-is-gone). At most four such lines." },
};

const struct keys joining_peer_keys = KEYS(peer_rows), joining_greeting_keys = KEYS(greeting_rows),
		  joining_join_keys = KEYS(join_rows), joining_leave_keys = KEYS(leave_rows),
		  joining_stay_keys = KEYS(stay_rows), joining_run_keys = KEYS(run_rows),
		  joining_challenge_keys = KEYS(challenge_rows);

_Static_assert(JOINING_RANK_ANY == -1, "all bits of it are set");

/* Both sides are named: whoever reads this must know which one to upgrade. */
int joining_version_check(struct lines *l, const char *speaker, const char *listener)
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
int joining_rows_take(struct lines *l, const struct keys *keys, void *into)
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

int joining_root_name(const char *job, unsigned int which, char ret[NAME_BYTES])
{
	char name[NAME_BYTES + 16], number[16] = "";

	if (which > 1)
		snprintf(number, sizeof(number), ".%u", which);
	snprintf(name, sizeof(name), "%s%s", job, number);
	if (strlen(name) >= NAME_BYTES)
		return -ENAMETOOLONG;
	memcpy(ret, name, strlen(name) + 1);
	return 0;
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
	r = joining_rows_take(&l, &joining_peer_keys, &p);
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
	r = joining_version_check(&l, "worker", "agent");
	if (r == 0)
		r = joining_rows_take(&l, &joining_greeting_keys, &g);
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
			   *greeting->job ? &joining_greeting_keys : &joining_challenge_keys,
			   greeting, "\n", text, size, ret_length);
}

static const struct {
	const char *name;
	const struct keys *keys;
} messages[] = {
	[JOINING_JOIN] = { "join", &joining_join_keys },
	[JOINING_LEAVE] = { "leave", &joining_leave_keys },
	[JOINING_STAY] = { "stay", &joining_stay_keys },
};

enum {
	MESSAGES = sizeof(messages) / sizeof(*messages)
};

int joining_message_parse(const char *text, size_t length, struct joining_message *ret,
			  size_t *ret_length, char *why, size_t why_size)
{
	struct joining_message q = { 0 };
	struct lines l;
	unsigned int what = 0;
	int r;

	lines_init(&l, text, length, REQUEST_LINE_MAX, why, why_size);
	r = lines_next(&l);
	if (r < 0)
		return r;
	while (what < MESSAGES && strcmp(l.key.text, messages[what].name) != 0)
		what++;
	if (*l.value.text || what == MESSAGES)
		return lines_refuse(&l, -EINVAL, "no such request; there are join, leave and stay");
	q.what = what;
	r = joining_rows_take(&l, messages[what].keys, &q);
	if (r < 0)
		return r;
	*ret = q;
	*ret_length = l.at;
	return 0;
}

int joining_message_print(const struct joining_message *q, char *text, size_t size,
			  size_t *ret_length)
{
	const bool joins = q->what == JOINING_JOIN;
	char first[16];

	assert(q->rank >= (joins ? JOINING_RANK_ANY : 0) && q->rank < TALLY_WORKERS_MAX);
	assert(!joins || q->address.ss_family);

	snprintf(first, sizeof(first), "%s\n", messages[q->what].name);
	return lines_print(first, messages[q->what].keys, q, "\n", text, size, ret_length);
}
