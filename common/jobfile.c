// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "file.h"
#include "jobfile.h"
#include "lines.h"
#include "owned.h"

enum {
	PAYLOAD_IP4 = 1408, /* the largest that fits an MTU of 1500 */
	PAYLOAD_IP6 = 1344, /* also with the larger header of a job of more than 64 workers */
};

uint16_t run_payload_default(int family, unsigned int workers)
{
	return family == AF_INET && workers <= TALLY_SMALL_WORKERS_MAX ? PAYLOAD_IP4 : PAYLOAD_IP6;
}

/* All addresses are of the family of the file's first one. */
static int check_family(struct reading *r, const struct place *at, sa_family_t family,
			sa_family_t first)
{
	if (!first || first == family)
		return 0;
	return keys_refuse(r, at, "the addresses above are %s; all must be of one family",
			   first == AF_INET ? "IPv4" : "IPv6");
}

static int check_service(struct reading *r, const struct place *at, void *into)
{
	const struct run *f = into;

	return check_family(r, at, f->service.ss_family, f->worker[0].ss_family);
}

static int check_worker(struct reading *r, const struct place *at, void *into)
{
	const struct run *f = into;
	const struct sockaddr_storage *last = &f->worker[f->workers - 1];
	sa_family_t service = f->service.ss_family;

	for (const struct sockaddr_storage *w = f->worker; w < last; w++)
		if (endpoint_is_equal(w, last))
			return keys_refuse(r, at, "another worker has this address and port");
	return check_family(r, at, last->ss_family, service ? service : f->worker[0].ss_family);
}

_Static_assert(TALLY_WORKERS_MAX == 256 && RUN_WINDOW == 128, "texts below name them");

static const struct key rows[] = {
	{ "job", &key_number, KEY_MEMBER(struct run, job), .max = UINT32_MAX, .needed = true,
	  .meaning = "Number of the job: another one for each job in the network." },
	{ "epoch", &key_number, KEY_MEMBER(struct run, epoch), .max = UINT16_MAX, .initial = "1",
	  .meaning = "Run of the job: change it for every new run, and when workers or the tree "
		     "change." },
	{ "window", &key_power, KEY_MEMBER(struct run, window), .min = 1, .max = TALLY_WINDOW_MAX,
	  .initial = "128",
	  .meaning = "Chunks a worker may have in flight; each node on the way needs twice as many "
		     "slots." },
	{ "payload", &key_blocks, KEY_MEMBER(struct run, payload_bytes), .min = TALLY_BLOCK_BYTES,
	  .max = TALLY_PAYLOAD_MAX,
	  .otherwise = "1408 with IPv4 and up to 64 workers, else 1344: what fits an MTU of 1500",
	  .meaning = "Bytes of data in a full packet." },
	{ "service", &key_address, KEY_MEMBER(struct run, service), .needed = true,
	  .check = check_service,
	  .meaning = "The root node's service address: contributions are sent to its UDP port "
		     "31249." },
	{ "worker", &key_endpoint, KEY_LIST(struct run, worker, workers), .needed = true,
	  .full = "a job has at most 256 workers", .check = check_worker,
	  .meaning = "Address and UDP port of a worker; 1 to 256 of them." },
	{ "key", &key_rank_key, KEY_LIST(struct run, key, keys),
	  .full = "a job has at most 256 workers", .otherwise = "no tags are made with keys",
	  .meaning = "Rank key of a worker, a secret: one for each, in the same order." },
	{ "secret", &key_rank_key, KEY_LIST(struct run, secret, secrets),
	  .full = "a job has one secret", .otherwise = "the job is not sealed",
	  .allowed = "32 digits of 0-9 and a-f, not all of them 0, or - on a node",
	  .meaning = "Secret of the workers, the same for all: they find out what a node adds "
		     "wrong." },
};

const struct keys jobfile_keys = KEYS(rows);

int jobfile_parse(const char *text, size_t length, struct run *ret, char *why, size_t why_size)
{
	struct run file = { 0 };
	uint32_t seen = 0;
	struct lines l;
	int r;

	keys_default(&jobfile_keys, &file);
	lines_init_loose(&l, text, length, why, why_size);
	while (lines_next(&l) == 0) {
		r = lines_take(&l, &jobfile_keys, &file, &seen);
		if (r < 0)
			return r;
	}
	r = lines_end(&l, &jobfile_keys, seen);
	if (r < 0)
		return r;
	if (file.keys && file.keys != file.workers) {
		snprintf(why, why_size,
			 "%u lines 'key' and %u lines 'worker': each worker needs a key ('key -' "
			 "where this machine need not know it), or none has one",
			 file.keys, file.workers);
		return -EINVAL;
	}
	if (!file.payload_bytes)
		file.payload_bytes = run_payload_default(file.service.ss_family, file.workers);
	*ret = file;
	return 0;
}

int jobfile_print(const struct run *f, char *text, size_t size, size_t *ret_length)
{
	return lines_print("", &jobfile_keys, f, "", text, size, ret_length);
}

/* Who has a rank's key can speak for the rank, and who has the job's secret for any sum. */
static int check_private(const char *path, char *why, size_t why_size)
{
	int r = file_is_open_to_all(path);

	if (r <= 0)
		return r;
	snprintf(why, why_size,
		 "%s: everybody on this machine may read or write it, and it has secrets: "
		 "chmod o-rw %s",
		 path, path);
	return -EPERM;
}

int jobfile_read(const char *path, struct run *ret, char *why, size_t why_size)
{
	_cleanup_(freep) char *text = NULL;
	_cleanup_(freep) struct run *run = NULL;
	size_t length;
	char line[240];
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
	run = calloc(1, sizeof(*run));
	if (!run)
		return -ENOMEM;
	r = jobfile_parse(text, length, run, line, sizeof(line));
	if (r < 0)
		snprintf(why, why_size, "%s: %s", path, line);
	else if (run->keys || run->secrets)
		r = check_private(path, why, why_size);
	if (r == 0)
		*ret = *run;
	explicit_bzero(text, length);
	explicit_bzero(run->key, sizeof(run->key));
	explicit_bzero(run->secret, sizeof(run->secret));
	return r;
}
