/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of opening share: open.c, open_join.c. Nobody else includes this. */
#ifndef TALLY_CLIENT_OPEN_PRIVATE_H
#define TALLY_CLIENT_OPEN_PRIVATE_H

#include <tally/tally.h>

#include "common/jobfile.h"
#include "progress.h"

/* What it takes to take part at one root. */
struct root {
	struct tally_options options; /* all but the addresses */
	struct sockaddr_storage service;
	struct channel *channel; /* bound */
	struct join *join; /* NULL: opened without an agent */
	uint64_t nonce; /* of the run, from an agent; 0: its ranks make one */
};

/* In the order of the ranks' lists. */
struct roots {
	bool follows; /* an agent says their shares, and may say others */
	unsigned int count;
	struct root root[SHARDS_MAX];
};

/* NULL: no memory, and the error text is set. */
struct roots *roots_new(unsigned int count);
void roots_freep(struct roots **roots);

/* Of several roots, an error says of which one it is: in the order in which they were given. */
int root_blame(int r, unsigned int which, unsigned int roots);

/* What `roots` have is the job's from now on, also on failure. Sets the error text. */
int roots_open(struct roots *roots, struct tally **ret);

/* They point into `job`. */
struct tally_options run_options(const struct run *job, uint16_t rank);

int check_progress(enum tally_progress_by by);
int check_congestion(enum tally_congestion congestion);

#endif
