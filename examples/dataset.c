// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "dataset.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "common/owned.h"

enum {
	IDX_LABELS = 0x0801, /* unsigned bytes, one dimension */
	IDX_IMAGES = 0x0803, /* three: images, rows, columns */
};

struct idx {
	gzFile file;
	char path[PATH_MAX];
	struct why *why;
};

static void idx_close(struct idx *idx)
{
	if (idx->file)
		gzclose_r(idx->file);
}

#define FAIL(idx, error, format, ...) \
	why_say((idx)->why, error, "%.300s: " format, (idx)->path, ##__VA_ARGS__)

static int idx_open(struct idx *idx, const char *directory, const char *name, const char *kind)
{
	snprintf(idx->path, sizeof(idx->path), "%s/%s-%s-ubyte.gz", directory, name, kind);
	errno = ENOMEM; /* zlib leaves it so when it is out of memory */
	idx->file = gzopen(idx->path, "rb");
	if (idx->file)
		return 0;
	if (errno == ENOENT)
		return FAIL(idx, -ENOENT, "not there; install the Debian package %s",
			    DATASET_PACKAGE);
	return FAIL(idx, -errno, "%m");
}

/* What zlib says, without the path that it puts before it. */
static const char *idx_error(struct idx *idx)
{
	int error;
	const char *said = gzerror(idx->file, &error), *after = strstr(said, ": ");

	return after ? after + 2 : said;
}

static int idx_read(struct idx *idx, void *to, size_t bytes)
{
	int got = gzread(idx->file, to, (unsigned int)bytes);

	if (got >= 0 && (size_t)got == bytes)
		return 0;
	if (got >= 0)
		return FAIL(idx, -EBADMSG, "ends too early");
	return FAIL(idx, -EBADMSG, "%s", idx_error(idx));
}

static int idx_number(struct idx *idx, const char *what, uint32_t low, uint32_t high, uint32_t *ret)
{
	uint8_t b[4];
	uint32_t number = 0;
	int r = idx_read(idx, b, sizeof(b));

	if (r != 0)
		return r;
	number = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
	if (number != low && low == high)
		return FAIL(idx, -EBADMSG, "%s is %u, not %u", what, number, low);
	if (number < low || number > high)
		return FAIL(idx, -EBADMSG, "%s is %u, not %u to %u", what, number, low, high);
	*ret = number;
	return 0;
}

/* All that is left of the file, which must be so many bytes. */
static int idx_payload(struct idx *idx, size_t bytes, uint8_t **ret)
{
	_cleanup_(freep) uint8_t *payload = bytes ? malloc(bytes) : NULL;
	uint8_t more;
	int r, got;

	if (!payload)
		return FAIL(idx, -ENOMEM, "no memory for %zu bytes", bytes);
	r = idx_read(idx, payload, bytes);
	if (r < 0)
		return r;
	got = gzread(idx->file, &more, 1); /* zlib compares its checksum on the way past the end */
	if (got > 0)
		return FAIL(idx, -EBADMSG, "goes on after its end");
	if (got < 0)
		return FAIL(idx, -EBADMSG, "%s", idx_error(idx));
	*ret = TAKE_PTR(payload);
	return 0;
}

static int images_read(const char *directory, const char *name, struct dataset *d, struct why *why)
{
	_cleanup_(idx_close) struct idx idx = { .why = why };
	uint32_t number, count = 0;
	int r = idx_open(&idx, directory, name, "images-idx3");

	if (r == 0)
		r = idx_number(&idx, "magic", IDX_IMAGES, IDX_IMAGES, &number);
	if (r == 0)
		r = idx_number(&idx, "number of images", 1, DATASET_COUNT_MAX, &count);
	if (r == 0)
		r = idx_number(&idx, "number of rows", DATASET_SIDE, DATASET_SIDE, &number);
	if (r == 0)
		r = idx_number(&idx, "number of columns", DATASET_SIDE, DATASET_SIDE, &number);
	d->count = count;
	return r < 0 ? r : idx_payload(&idx, d->count * DATASET_PIXELS, &d->pixel);
}

static int labels_read(const char *directory, const char *name, struct dataset *d, struct why *why)
{
	_cleanup_(idx_close) struct idx idx = { .why = why };
	uint32_t number, count = (uint32_t)d->count;
	int r = idx_open(&idx, directory, name, "labels-idx1");

	if (r == 0)
		r = idx_number(&idx, "magic", IDX_LABELS, IDX_LABELS, &number);
	if (r == 0)
		r = idx_number(&idx, "number of labels", count, count, &number);
	if (r == 0)
		r = idx_payload(&idx, count, &d->label);
	for (uint32_t i = 0; r == 0 && i < count; i++)
		if (d->label[i] >= DATASET_CLASSES)
			r = FAIL(&idx, -EBADMSG, "label %u is %u", i, d->label[i]);
	return r;
}

int dataset_read(const char *directory, const char *name, struct dataset *ret, struct why *why)
{
	_cleanup_(dataset_free) struct dataset d = { 0 };
	int r = images_read(directory, name, &d, why);

	if (r == 0)
		r = labels_read(directory, name, &d, why);
	if (r == 0)
		*ret = TAKE(d, (struct dataset){ 0 });
	return r;
}

void dataset_free(struct dataset *d)
{
	free(d->pixel);
	free(d->label);
	*d = (struct dataset){ 0 };
}
