/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The job file (docs/job-file.md): what workers and nodes must agree on. Text in, plain
 * struct out, and back; tally-node and the client library read the same one.
 */
#ifndef TALLY_CLIENT_JOBFILE_H
#define TALLY_CLIENT_JOBFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <tally/wire.h>

enum {
	JOBFILE_WINDOW = 128, /* where none is given */
	JOBFILE_BYTES_MAX = 65536, /* of a whole file: 256 workers and room for remarks */
	JOBFILE_ADDRESS_BYTES = 64, /* fits any printed address, with its end */
};

struct jobfile {
	uint32_t job;
	uint16_t epoch;
	uint16_t window; /* a power of two, 1 .. TALLY_WINDOW_MAX */
	uint16_t payload_bytes; /* a multiple of 64, 64 .. TALLY_PAYLOAD_MAX */
	uint16_t workers; /* 1 .. TALLY_WORKERS_MAX */
	struct sockaddr_storage service; /* with TALLY_UDP_PORT; all are of its family */
	struct sockaddr_storage worker[TALLY_WORKERS_MAX]; /* by rank; sockaddr_in or _in6 */
};

/*
 * Parses a buffer (no NUL at its end needed). Pure. -EINVAL: `why` says which line, which key
 * and what is allowed there; it is a string in any case, empty on success.
 */
int jobfile_parse(const char *text, size_t length, struct jobfile *ret, char *why, size_t why_size);

/* The same from a file, whose name then leads in `why`. -EFBIG and what reading may say. */
int jobfile_read(const char *path, struct jobfile *ret, char *why, size_t why_size);

/*
 * What jobfile_parse() takes back. Pure. 0: *ret_length bytes and a NUL are in `text`; -ENOSPC:
 * `size` is too small, and `text` holds a part.
 */
int jobfile_print(const struct jobfile *file, char *text, size_t size, size_t *ret_length);

/*
 * "10.77.1.1:40000", "[fd77:1::1]:40000"; with `port` not 0, an address alone, "10.77.1.1" or
 * "fd77:1::1", which gets that port. -EINVAL for everything else, also for addresses that are
 * not one machine's (any, multicast, broadcast).
 */
int jobfile_address_parse(const char *text, uint16_t port, struct sockaddr_storage *ret);

/* Bytes of payload where none are given: what an MTU of 1500 has room for. */
uint16_t jobfile_payload_default(int family);

/* The address without its port: what jobfile_address_parse() takes back. Cut if too long. */
void jobfile_address_print(const struct sockaddr_storage *address, char *text, size_t size);

/* The same with its port: "10.77.1.1:40000", "[fd77:1::1]:40000". */
void jobfile_endpoint_print(const struct sockaddr_storage *address, char *text, size_t size);

/* The same family, address and port? */
bool jobfile_endpoint_is_equal(const struct sockaddr_storage *a, const struct sockaddr_storage *b);

/* A whole decimal number of at most `max`: digits only, no sign, no blanks, no hex. */
bool jobfile_number_parse(const char *text, uint32_t max, uint32_t *ret);

#endif
