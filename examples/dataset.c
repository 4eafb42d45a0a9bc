// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "dataset.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
	IDX_LABELS = 0x0801, /* unsigned bytes, one dimension */
	IDX_IMAGES = 0x0803, /* three: images, rows, columns */
};

struct idx {
	gzFile file;
	char path[PATH_MAX];
	struct dataset_fault *fault;
};

__attribute__((format(printf, 3, 4))) static int fail(struct idx *idx, int error,
						      const char *format, ...)
{
	va_list arguments;
	int n = snprintf(idx->fault->text, sizeof(idx->fault->text), "%.300s: ", idx->path);

	va_start(arguments, format);
	vsnprintf(idx->fault->text + n, sizeof(idx->fault->text) - (size_t)n, format, arguments);
	va_end(arguments);
	return error;
}

static int idx_open(struct idx *idx, const char *directory, const char *name, const char *kind)
{
	snprintf(idx->path, sizeof(idx->path), "%s/%s-%s-ubyte.gz", directory, name, kind);
	errno = ENOMEM; /* zlib leaves it so when it is out of memory */
	idx->file = gzopen(idx->path, "rb");
	if (idx->file)
		return 0;
	if (errno == ENOENT)
		return fail(idx, -ENOENT, "not there; install the Debian package %s",
			    DATASET_PACKAGE);
	return fail(idx, -errno, "%m");
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
		return fail(idx, -EBADMSG, "ends too early");
	return fail(idx, -EBADMSG, "%s", idx_error(idx));
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
		return fail(idx, -EBADMSG, "%s is %u, not %u", what, number, low);
	if (number < low || number > high)
		return fail(idx, -EBADMSG, "%s is %u, not %u to %u", what, number, low, high);
	*ret = number;
	return 0;
}

static int idx_payload(struct idx *idx, size_t bytes, uint8_t **ret)
{
	uint8_t *payload = bytes ? malloc(bytes) : NULL, more;
	int r;

	if (!payload)
		return fail(idx, -ENOMEM, "no memory for %zu bytes", bytes);
	r = idx_read(idx, payload, bytes);
	if (r == 0) { /* zlib compares its checksum only on the way past the end */
		int got = gzread(idx->file, &more, 1);

		if (got > 0)
			r = fail(idx, -EBADMSG, "goes on after its end");
		else if (got < 0)
			r = fail(idx, -EBADMSG, "%s", idx_error(idx));
	}
	if (r != 0) {
		free(payload);
		return r;
	}
	*ret = payload;
	return 0;
}

static int images_read(struct idx *idx, uint32_t *ret_count, uint8_t **ret)
{
	uint32_t number, count = 0;
	int r = idx_number(idx, "magic", IDX_IMAGES, IDX_IMAGES, &number);

	if (r == 0)
		r = idx_number(idx, "number of images", 1, DATASET_COUNT_MAX, &count);
	if (r == 0)
		r = idx_number(idx, "number of rows", DATASET_SIDE, DATASET_SIDE, &number);
	if (r == 0)
		r = idx_number(idx, "number of columns", DATASET_SIDE, DATASET_SIDE, &number);
	if (r == 0)
		r = idx_payload(idx, (size_t)count * DATASET_PIXELS, ret);
	if (r == 0)
		*ret_count = count;
	return r;
}

static int labels_read(struct idx *idx, uint32_t count, uint8_t **ret)
{
	uint32_t number = 0;
	uint8_t *label = NULL;
	int r = idx_number(idx, "magic", IDX_LABELS, IDX_LABELS, &number);

	if (r == 0)
		r = idx_number(idx, "number of labels", count, count, &number);
	if (r == 0)
		r = idx_payload(idx, count, &label);
	if (r != 0)
		return r;
	assert(label);
	for (uint32_t i = 0; i < count; i++) {
		if (label[i] >= DATASET_CLASSES) {
			r = fail(idx, -EBADMSG, "label %u is %u", i, label[i]);
			free(label);
			return r;
		}
	}
	*ret = label;
	return 0;
}

int dataset_read(const char *directory, const char *name, struct dataset *ret,
		 struct dataset_fault *fault)
{
	struct idx idx = { .fault = fault };
	uint8_t *pixel = NULL, *label = NULL;
	uint32_t count = 0;
	int r;

	r = idx_open(&idx, directory, name, "images-idx3");
	if (r != 0)
		return r;
	r = images_read(&idx, &count, &pixel);
	gzclose_r(idx.file);
	if (r != 0)
		return r;

	r = idx_open(&idx, directory, name, "labels-idx1");
	if (r == 0) {
		r = labels_read(&idx, count, &label);
		gzclose_r(idx.file);
	}
	if (r != 0) {
		free(pixel);
		return r;
	}
	*ret = (struct dataset){ .count = count, .pixel = pixel, .label = label };
	return 0;
}

void dataset_free(struct dataset *d)
{
	free(d->pixel);
	free(d->label);
	*d = (struct dataset){ 0 };
}
