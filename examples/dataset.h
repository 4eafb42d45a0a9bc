/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fashion-MNIST as Debian packages it: gzipped IDX files of small grey images and labels. */
#ifndef TALLY_EXAMPLES_DATASET_H
#define TALLY_EXAMPLES_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "common/why.h"

#define DATASET_PACKAGE "dataset-fashion-mnist"
#define DATASET_DIRECTORY "/usr/share/datasets/fashion-mnist"

enum {
	DATASET_SIDE = 28,
	DATASET_PIXELS = DATASET_SIDE * DATASET_SIDE,
	DATASET_CLASSES = 10,
	DATASET_COUNT_MAX = 1000 * 1000,
};

struct dataset {
	size_t count;
	uint8_t *pixel; /* [count][DATASET_PIXELS]: 0 white paper, 255 black ink */
	uint8_t *label; /* [count]: below DATASET_CLASSES */
};

/*
 * Reads the set `name` ("train" or "t10k") of a directory. *ret is the caller's, to be given
 * to dataset_free(). -ENOENT: no such files; -EBADMSG: they are not what they should be;
 * -EIO, -ENOMEM. On failure `why` says more.
 */
int dataset_read(const char *directory, const char *name, struct dataset *ret, struct why *why);
void dataset_free(struct dataset *d);

#endif
