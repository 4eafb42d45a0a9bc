/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The job file (docs/job-file.md): what workers and nodes must agree on. Text in, plain
 * struct out, and back; tally-node and the client library read the same one.
 */
#ifndef TALLY_COMMON_JOBFILE_H
#define TALLY_COMMON_JOBFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <tally/siphash.h>
#include <tally/wire.h>

enum {
	RUN_WINDOW = 128, /* where none is given */
	JOBFILE_BYTES_MAX = 65536, /* of a whole file: 256 workers and room for remarks */
};

struct run {
	uint64_t nonce; /* of the run alone, random, known to all its ranks; 0: none known */
	uint32_t job;
	uint16_t epoch;
	uint16_t window; /* a power of two, 1 .. TALLY_WINDOW_MAX */
	uint16_t payload_bytes; /* a multiple of 64, 64 .. TALLY_PAYLOAD_MAX */
	uint16_t workers; /* 1 .. TALLY_WORKERS_MAX */
	struct sockaddr_storage service; /* with TALLY_UDP_PORT; all are of its family */
	struct sockaddr_storage worker[TALLY_WORKERS_MAX]; /* by rank; sockaddr_in or _in6 */
	uint16_t keys; /* `workers`, or 0: the job has no rank keys */
	struct tally_key key[TALLY_WORKERS_MAX]; /* by rank; zeros: not known here. A secret */
	struct tally_key node_key; /* zeros: none is known here, as of any file. A secret */
	uint16_t secrets; /* 1, or 0: the job is not sealed */
	struct tally_key secret[1]; /* zeros: not known here, as it is to be on a node */
};

/* 16 bytes of `run`; NULL: there is none. */
static inline const unsigned char *run_rank_key(const struct run *run, unsigned int rank)
{
	return rank < run->keys ? (const unsigned char *)&run->key[rank] : NULL;
}

static inline const unsigned char *run_secret(const struct run *run)
{
	return run->secrets ? (const unsigned char *)run->secret : NULL;
}

/* Of struct run: the lines of the file, and of the answer to those who join. No file has a nonce.
 */
struct keys;
extern const struct keys jobfile_keys;

/*
 * Parses a buffer (no NUL at its end needed). Pure. -EINVAL: `why` says which line, which key
 * and what is allowed there; it is a string in any case, empty on success.
 */
int jobfile_parse(const char *text, size_t length, struct run *ret, char *why, size_t why_size);

/*
 * The same from a file, whose name then leads in `why`. -EPERM: it has secrets, and others may read
 * or write it; -EFBIG and what reading may say.
 */
int jobfile_read(const char *path, struct run *ret, char *why, size_t why_size);

/*
 * What jobfile_parse() takes back. Pure. 0: *ret_length bytes and a NUL are in `text`; -ENOSPC:
 * `size` is too small, and `text` holds a part.
 */
int jobfile_print(const struct run *file, char *text, size_t size, size_t *ret_length);

/* Bytes of payload where none are given: what an MTU of 1500 has room for. */
uint16_t run_payload_default(int family, unsigned int workers);

#endif
