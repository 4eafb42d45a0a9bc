/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Read this file first: then jobfile.h and keys.h. The other files are helpers.
 *
 * What workers and agents say to each other when a worker joins a job (docs/joining.md): text
 * to plain structs and back. Pure. libtally and tallyd use the same functions, each one side. What
 * is said behind the two greetings comes with a proof each: session.h.
 *
 * Parsers look at what has come so far and may be called again whenever more is there. 0: one
 * message is whole, and *ret_length says how many bytes it took; -EAGAIN: right so far, but more
 * must come; -EINVAL, -EPROTONOSUPPORT, -EMSGSIZE: it will never be right, and `why` (a string in
 * any case, empty otherwise) says which line, which key and what is allowed.
 *
 * Printers make what parsers take. 0: *ret_length bytes and a NUL are in `text`; -ENOSPC: `size`
 * is too small. Outputs are untouched on failure.
 */
#ifndef TALLY_COMMON_JOINING_H
#define TALLY_COMMON_JOINING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tally/set.h>

#include "jobfile.h"
#include "name.h"
#include "secret.h"
#include "x25519.h"

enum {
	JOINING_VERSION = 4,
	JOINING_CHALLENGE_BYTES = 33, /* 32 hex digits, with their end */
	JOINING_MESSAGE_BYTES = 4096, /* never more, so a parser never says -EAGAIN to more */
	JOINING_ANSWER_BYTES = 16384, /* the same, for 256 workers with IPv6 */
	JOINING_TEXT_BYTES = 512, /* of an error's words, with their end */
	JOINING_RANK_ANY = -1,
	JOINING_ROOTS_MAX = 16, /* of a job */
	JOINING_SHARE_MAX = 1000,
	JOINING_OTHERS_MAX =
		4, /* agents of the cluster that are named beside the one that speaks */
};

enum joining_wants {
	JOINING_WANTS_NOTHING,
	JOINING_WANTS_SERVICE, /* the agent's greeting is to name `service` */
};

/* What a worker says first, and an agent answers, which names no job: random, never used again. */
struct joining_greeting {
	char job[NAME_BYTES];
	char challenge[JOINING_CHALLENGE_BYTES];
	unsigned int wants; /* enum joining_wants, of a worker */
	uint64_t run; /* of a worker, whose proofs are by its place: the nonce of that run; 0: they
		       * are by the token */
	uint16_t rank; /* then: its rank there */
	struct sockaddr_storage service; /* of an agent; ss_family 0: not said */
};

/* What two agents say first (docs/peering.md): the one that speaks up, and the one that listens. */
struct joining_peer {
	struct sockaddr_storage root; /* the service address of the jobs that it is about */
	struct sockaddr_storage to; /* of the node that listens: nobody answers in its place */
	char challenge[JOINING_CHALLENGE_BYTES];
	uint8_t share[X25519_BYTES]; /* of a secret that the agent has drawn: session_hide() */
};

/* What the one that listens says behind its greeting, with the first proof of the two. */
#define JOINING_READY "ready\n"

enum joining_what {
	JOINING_JOIN, /* a place in the next run */
	JOINING_LEAVE, /* the run */
	JOINING_STAY, /* in the run, over this connection, as the agent that had the first one has
		       * gone */
};

struct joining_message {
	enum joining_what what;
	int rank; /* 0 .. 255; when joining also JOINING_RANK_ANY */
	uint16_t epoch; /* leaving and staying: of that run */
	uint64_t nonce; /* staying: of that run */
	struct sockaddr_storage address; /* joining: where the worker receives */
	uint8_t share[X25519_BYTES]; /* joining: of a secret of this connection */
	uint64_t from; /* joining: the nonce of the run that the worker is in, and whose root it
			* hears no more; 0: it is in none */
	uint16_t mtu; /* joining: of the worker's way to the agent; 0: not said */
	uint16_t payload_bytes; /* joining: of the run that the worker is in, which is to go on
				 * here; 0: it is in none */
};

/* The key of a rank, for its worker alone: session_seal(). All zeros: packets have no tags. */
struct joining_key {
	uint8_t share[X25519_BYTES]; /* of the agent */
	uint8_t sealed[SECRET_RANK_KEY_BYTES];
};

enum joining_kind {
	JOINING_GREETING,
	JOINING_WAITING, /* `missing` ranks have not come; the answer is still to come */
	JOINING_RUN, /* `rank` of the run that `job` describes; the run begins */
	JOINING_ENDING, /* during the run: `text` says why calls of all ranks will find no end */
	JOINING_ERROR, /* `error` and `text`; the connection ends, and so does a run that is on */
	JOINING_LEFT,
	JOINING_STAYS, /* the connection is that of the rank's place in the run from now on; during
			* the run: the job has another token, which is told to who stays */
	JOINING_TOKEN, /* the key of the token that the job has now; JOINING_STAYS is to come */
	JOINING_SHARES, /* during the run: of `roots`, which have `shares` of calls to come */
	JOINING_ELSEWHERE, /* the job's root is at `elsewhere`: join there; the connection ends */
};

struct joining_answer {
	enum joining_kind kind;
	struct joining_greeting greeting;
	struct tally_set missing; /* not empty */
	uint16_t rank; /* below job.workers */
	struct joining_key key;
	uint8_t token_key[SECRET_KEY_BYTES]; /* as session_cover() has made it */
	bool sealed; /* the workers' secret follows from the token and the run */
	uint16_t roots; /* 2 .. JOINING_ROOTS_MAX; 0: the job has one */
	uint16_t which; /* of several roots: 1 .. roots */
	uint16_t share; /* of several roots, this one's: 1 .. JOINING_SHARE_MAX */
	uint16_t shares[JOINING_ROOTS_MAX]; /* [roots]: those of all */
	struct sockaddr_storage other[JOINING_OTHERS_MAX]; /* [others]: agents of the cluster, with
							    * TALLY_UDP_PORT: where to ask when
							    * the root is gone */
	unsigned int others;
	struct run job; /* with a nonce, and without keys */
	struct sockaddr_storage elsewhere; /* with TALLY_UDP_PORT */
	int error; /* a negative errno; -EIO for a name that is not in JOINING_ERRORS */
	char text[JOINING_TEXT_BYTES]; /* printable ASCII */
};

/* The errors that have a name on the wire. */
#define JOINING_ERRORS(X)  \
	X(EPROTONOSUPPORT) \
	X(EINVAL)          \
	X(EMSGSIZE)        \
	X(ETIMEDOUT)       \
	X(EACCES)          \
	X(EPERM)           \
	X(EADDRINUSE)      \
	X(ERANGE)          \
	X(EUSERS)          \
	X(ENOSPC)          \
	X(EHOSTUNREACH)    \
	X(EBUSY)           \
	X(EAGAIN)          \
	X(ECANCELED)       \
	X(EIO)

/* The lines behind the first one: of struct joining_message, and of the answer, before the job's.
 */
struct keys;
extern const struct keys joining_peer_keys, joining_greeting_keys, joining_join_keys,
	joining_leave_keys, joining_stay_keys, joining_run_keys;

/*
 * A job of a cluster that has several roots is a job at each of them, with one token. The name of
 * the one at root `which`: 1 .. JOINING_ROOTS_MAX. -ENAMETOOLONG.
 */
int joining_root_name(const char *job, unsigned int which, char ret[NAME_BYTES]);

/* `random`: bytes that nobody can guess. */
void joining_challenge_set(const uint8_t random[JOINING_CHALLENGE_BYTES / 2],
			   char ret[JOINING_CHALLENGE_BYTES]);

/* Of a worker. */
int joining_greeting_parse(const char *text, size_t length, struct joining_greeting *ret,
			   size_t *ret_length, char *why, size_t why_size);

/* Of a worker; of an agent, if `job` is empty. */
int joining_greeting_print(const struct joining_greeting *greeting, char *text, size_t size,
			   size_t *ret_length);

/* Does it begin as a peer's greeting does? -EAGAIN: that cannot be said yet. */
int joining_is_peer(const char *text, size_t length);

int joining_peer_parse(const char *text, size_t length, struct joining_peer *ret,
		       size_t *ret_length, char *why, size_t why_size);
int joining_peer_print(const struct joining_peer *peer, char *text, size_t size,
		       size_t *ret_length);

int joining_message_parse(const char *text, size_t length, struct joining_message *ret,
			  size_t *ret_length, char *why, size_t why_size);

/* The rank must be in range, the address given when joining. */
int joining_message_print(const struct joining_message *request, char *text, size_t size,
			  size_t *ret_length);

int joining_answer_parse(const char *text, size_t length, struct joining_answer *ret,
			 size_t *ret_length, char *why, size_t why_size);

/* `missing` must not be empty. */
int joining_waiting_print(const struct tally_set *missing, char *text, size_t size,
			  size_t *ret_length);

/* `rank`, `key`, `sealed`, `roots` and what belongs to these, and `job` are said. */
int joining_run_print(const struct joining_answer *a, char *text, size_t size, size_t *ret_length);

/* `words` as below, and not empty. */
int joining_ending_print(const char *words, char *text, size_t size, size_t *ret_length);

/*
 * `error` is a negative errno; one that has no name in JOINING_ERRORS is said as EIO. `words` is
 * cut if it is too long; what is not printable ASCII in it becomes '?'.
 */
int joining_error_print(int error, const char *words, char *text, size_t size, size_t *ret_length);

int joining_elsewhere_print(const struct sockaddr_storage *address, char *text, size_t size,
			    size_t *ret_length);

/* roots: 2 .. JOINING_ROOTS_MAX. */
int joining_shares_print(const uint16_t *share, unsigned int roots, char *text, size_t size,
			 size_t *ret_length);

/* The key as session_cover() has made it. */
int joining_token_print(const uint8_t token_key[SECRET_KEY_BYTES], char *text, size_t size,
			size_t *ret_length);

int joining_left_print(char *text, size_t size, size_t *ret_length);
int joining_stays_print(char *text, size_t size, size_t *ret_length);

#endif
