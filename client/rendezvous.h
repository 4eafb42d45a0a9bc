/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What workers and agents say to each other when a worker joins a job (docs/joining.md): text
 * to plain structs and back. Pure. libtally and tallyd use the same functions, each one side.
 *
 * Parsers look at what has come so far and may be called again whenever more is there. 0: one
 * message is whole, and *ret_length says how many bytes it took; -EAGAIN: right so far, but more
 * must come; -EINVAL, -EPROTONOSUPPORT, -EMSGSIZE: it will never be right, and `why` (a string in
 * any case, empty otherwise) says which line, which key and what is allowed. No token is
 * ever in `why`.
 *
 * Printers make what parsers take. 0: *ret_length bytes and a NUL are in `text`; -ENOSPC: `size`
 * is too small. Outputs are untouched on failure.
 */
#ifndef TALLY_CLIENT_RENDEZVOUS_H
#define TALLY_CLIENT_RENDEZVOUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tally/set.h>

#include "jobfile.h"

enum {
	RENDEZVOUS_VERSION = 1,
	RENDEZVOUS_REQUEST_BYTES = 4096, /* never more, so a parser never says -EAGAIN to more */
	RENDEZVOUS_ANSWER_BYTES = 16384, /* the same, for 256 workers with IPv6 */
	RENDEZVOUS_JOB_BYTES = 64, /* of a job's name, with its end */
	RENDEZVOUS_TOKEN_BYTES = 129, /* with its end */
	RENDEZVOUS_TEXT_BYTES = 512, /* of an error's words, with their end */
	RENDEZVOUS_RANKS_BYTES = 768, /* fits any printed set of ranks, with its end */
	RENDEZVOUS_RANK_ANY = -1,
};

struct rendezvous_request {
	bool leave; /* otherwise: join */
	char job[RENDEZVOUS_JOB_BYTES];
	char token[RENDEZVOUS_TOKEN_BYTES];
	int rank; /* 0 .. 255; when joining also RENDEZVOUS_RANK_ANY */
	uint16_t epoch; /* leaving: of the run that is left */
	/* Joining: exactly one of the two is given. */
	uint16_t port; /* UDP; the address is the connection's. 0: not given */
	struct sockaddr_storage address; /* with port. ss_family 0: not given */
};

enum rendezvous_kind {
	RENDEZVOUS_WAITING, /* `missing` ranks have not come; the answer is still to come */
	RENDEZVOUS_PLACE, /* `rank` of the run that `job` describes; the run begins */
	RENDEZVOUS_ERROR, /* `error` and `text`; the connection ends */
	RENDEZVOUS_LEFT,
};

struct rendezvous_answer {
	enum rendezvous_kind kind;
	struct tally_set missing; /* not empty */
	uint16_t rank; /* below job.workers */
	struct jobfile job;
	int error; /* a negative errno; -EIO for a name that is not in RENDEZVOUS_ERRORS */
	char text[RENDEZVOUS_TEXT_BYTES]; /* printable ASCII */
};

/* The errors that have a name on the wire. */
#define RENDEZVOUS_ERRORS(X) \
	X(EPROTONOSUPPORT)   \
	X(EINVAL)            \
	X(EMSGSIZE)          \
	X(ETIMEDOUT)         \
	X(EACCES)            \
	X(EADDRINUSE)        \
	X(ERANGE)            \
	X(EUSERS)            \
	X(ENOSPC)            \
	X(EHOSTUNREACH)      \
	X(EBUSY)             \
	X(ECANCELED)         \
	X(EIO)

/* 1 to 63 of a-z, 0-9, '.', '_' and '-', the first one no sign. */
bool rendezvous_job_is_valid(const char *name);

/* 1 to 128 of A-Z, a-z, 0-9, '_' and '-'. */
bool rendezvous_token_is_valid(const char *token);

/*
 * Is `token` the `secret`? How long that takes depends on nothing but their lengths: a stranger
 * cannot find out a secret letter by letter. An empty secret is nobody's.
 */
bool rendezvous_token_is(const char *token, const char *secret);

int rendezvous_request_parse(const char *text, size_t length, struct rendezvous_request *ret,
			     size_t *ret_length, char *why, size_t why_size);

/* Job and token must be valid, the rank in range; port or address given when joining. */
int rendezvous_request_print(const struct rendezvous_request *request, char *text, size_t size,
			     size_t *ret_length);

int rendezvous_answer_parse(const char *text, size_t length, struct rendezvous_answer *ret,
			    size_t *ret_length, char *why, size_t why_size);

/* `missing` must not be empty. */
int rendezvous_waiting_print(const struct tally_set *missing, char *text, size_t size,
			     size_t *ret_length);

int rendezvous_place_print(uint16_t rank, const struct jobfile *job, char *text, size_t size,
			   size_t *ret_length);

/*
 * `error` is a negative errno; one that has no name in RENDEZVOUS_ERRORS is said as EIO. `words` is
 * cut if it is too long; what is not printable ASCII in it becomes '?'.
 */
int rendezvous_error_print(int error, const char *words, char *text, size_t size,
			   size_t *ret_length);

int rendezvous_left_print(char *text, size_t size, size_t *ret_length);

/* "1,3-4"; empty for no rank. Cut if `size` is below RENDEZVOUS_RANKS_BYTES. */
void rendezvous_ranks_print(const struct tally_set *ranks, char *text, size_t size);

#endif
