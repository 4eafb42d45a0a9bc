// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "perf_data.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
	PACKET_FLOATS_MAX = 848, /* in a payload of 3,392 bytes */
	REGION = 4096,   /* elements of about the same magnitude in wild data */
	STRANGE_ONE_IN = 509,  /* indices at which some ranks have no finite value */
	QUIET_NAN = 0x7fc00000,
	INFINITY_BITS = 0x7f800000,
};

/* splitmix64's finish: all bits of the key reach all bits of the value. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static uint64_t key(uint32_t iteration, uint64_t rank, uint64_t index)
{
	return mix((index + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)iteration << 40 ^ rank);
}

static uint32_t float_bits(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

static float float_of(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

static const struct type {
	uint8_t bytes;
	bool is_float, is_unsigned;
	uint16_t tame; /* integers are by so much smaller than they might be */
} types[] = {
	[TALLY_INT32] = { 4, false, false, 256 }, [TALLY_INT64] = { 8, false, false, 256 },
	[TALLY_FLOAT32] = { 4, true, false, 0 },  [TALLY_INT8] = { 1, false, false, 64 },
	[TALLY_INT16] = { 2, false, false, 256 }, [TALLY_UINT8] = { 1, false, true, 64 },
	[TALLY_UINT16] = { 2, false, true, 256 }, [TALLY_UINT32] = { 4, false, true, 256 },
	[TALLY_UINT64] = { 8, false, true, 256 },
};

size_t perf_element_bytes(enum tally_dtype dtype) { return types[dtype].bytes; }

bool perf_is_float(enum tally_dtype dtype) { return types[dtype].is_float; }

/* --- one element */

/* What the type makes of it. */
static int64_t wrapped(enum tally_dtype dtype, uint64_t x)
{
	unsigned int shift = 64 - 8 * types[dtype].bytes;

	return types[dtype].is_unsigned ? (int64_t)(x << shift >> shift)
					: (int64_t)(x << shift) >> shift;
}

/* Towards zero; of 64 bits, those of a sum that has wrapped. */
static int64_t divided(enum tally_dtype dtype, int64_t x, int64_t divisor)
{
	return types[dtype].is_unsigned ? (int64_t)((uint64_t)x / (uint64_t)divisor) : x / divisor;
}

/* Without wild data no sum of 256 of them wraps, of bytes one of 64 (42 without sign). */
static int64_t integer_at(const struct perf_data *d, unsigned int rank, size_t index)
{
	int64_t x = wrapped(d->dtype, key(d->iteration, rank, index));

	return d->wild ? x : divided(d->dtype, x, types[d->dtype].tame);
}

/* Magnitudes spread over 32 powers of two, which differ from region to region; outliers. */
static float wild_at(const struct perf_data *d, size_t index, uint64_t h)
{
	int highest = (int)(key(d->iteration, UINT32_MAX, index / REGION) % 242) - 140;
	int exponent = highest - (int)(h & 31);
	double mantissa = 1 + (double)(h >> 41) * 0x1p-23;

	if ((h >> 5 & 63) == 0)
		return h >> 40 & 1 ? -0.f : 0.f;
	if ((h >> 5 & 63) == 1)
		exponent = (int)(h >> 11 & 255) - 149;
	exponent = exponent < -149 ? -149 : exponent > 100 ? 100 : exponent;
	return (float)ldexp(h >> 40 & 1 ? -mantissa : mantissa, exponent);
}

static float float_at(const struct perf_data *d, unsigned int rank, size_t index)
{
	uint64_t h = key(d->iteration, rank, index);

	if (d->nonfinite && key(d->iteration, UINT32_MAX - 1, index) % STRANGE_ONE_IN == 0) {
		/* NaNs of any sign and payload: what is not 0 there is a NaN */
		if (h % 16 == 0)
			return float_of(INFINITY_BITS | 1 | (uint32_t)(h >> 32));
		if (h % 16 <= 4)
			return INFINITY;
		if (h % 16 <= 6)
			return -INFINITY;
	}
	if (d->wild)
		return wild_at(d, index, h);
	return (float)((int32_t)(h >> 40) - (1 << 23)) * 0x1p-23f;
}

void perf_fill(const struct perf_data *d, unsigned int rank, size_t first, size_t count, void *out)
{
	size_t bytes = perf_element_bytes(d->dtype);

	for (size_t i = 0; i < count; i++) {
		if (types[d->dtype].is_float)
			((float *)out)[i] = float_at(d, rank, first + i);
		else
			memcpy((uint8_t *)out + i * bytes,
			       &(int64_t){ integer_at(d, rank, first + i) }, bytes);
	}
}

/* --- checks */

__attribute__((format(printf, 3, 4))) static void wrong(struct perf_verdict *v, size_t at,
							const char *format, ...)
{
	va_list arguments;

	if (v->wrong++)
		return;
	v->first = at;
	va_start(arguments, format);
	vsnprintf(v->text, sizeof(v->text), format, arguments);
	va_end(arguments);
}

static void check_integers(const struct perf_data *d, unsigned int workers, enum tally_op op,
			   size_t first, size_t count, const void *out, struct perf_verdict *ret)
{
	size_t bytes = perf_element_bytes(d->dtype);

	for (size_t i = 0; i < count; i++) {
		uint64_t sum = 0, bits = 0;
		int64_t is, wanted;

		memcpy(&bits, (const uint8_t *)out + i * bytes, bytes);
		is = wrapped(d->dtype, bits);
		for (unsigned int rank = 0; rank < workers; rank++)
			sum += (uint64_t)integer_at(d, rank, first + i);
		wanted = op == TALLY_AVG ? divided(d->dtype, (int64_t)sum, workers) : (int64_t)sum;
		wanted = wrapped(d->dtype, (uint64_t)wanted);
		if (is != wanted)
			wrong(ret, i, "is %" PRId64 ", should be %" PRId64, is, wanted);
	}
}

/* As many elements as the largest packet has, with what their sums should be. */
struct stretch {
	size_t count;
	double largest; /* finite magnitude of all ranks */
	double sum[PACKET_FLOATS_MAX];   /* of the finite ones */
	uint32_t bits[PACKET_FLOATS_MAX]; /* what it is instead when not finite; 0: it is */
};

static void stretch_work_out(const struct perf_data *d, unsigned int workers, size_t first,
			     size_t count, struct stretch *ret)
{
	ret->count = count;
	ret->largest = 0;
	for (size_t i = 0; i < count; i++) {
		bool nan = false, plus = false, minus = false;
		double sum = 0;

		for (unsigned int rank = 0; rank < workers; rank++) {
			float x = float_at(d, rank, first + i);

			nan |= isnan(x);
			plus |= isinf(x) && x > 0;
			minus |= isinf(x) && x < 0;
			if (!isfinite(x))
				continue;
			sum += (double)x;
			ret->largest = fmax(ret->largest, fabs((double)x));
		}
		ret->sum[i] = sum;
		ret->bits[i] = 0;
		if (nan || (plus && minus))
			ret->bits[i] = QUIET_NAN;
		else if (plus || minus)
			ret->bits[i] = INFINITY_BITS | (uint32_t)minus << 31;
	}
}

/* How far a sum may be off in a packet whose largest magnitude is this: half a step a rank. */
static double error_bound(double largest, unsigned int workers)
{
	int exponent, bits = 30;

	if (largest == 0)
		return 0;
	while (1u << (30 - bits) < workers)
		bits--;
	frexp(largest, &exponent); /* largest < 2^exponent */
	exponent = (int)ceil(exponent / 4.0) * 4;
	return workers / 2.0 * ldexp(1, exponent - bits);
}

static void stretch_compare(const struct stretch *s, double bound, double factor, const float *out,
			    size_t at, struct perf_verdict *ret)
{
	for (size_t i = 0; i < s->count; i++) {
		double is = (double)out[at + i], wanted = s->sum[i] * factor, allowed;

		if (s->bits[i]) {
			if (float_bits(out[at + i]) != s->bits[i])
				wrong(ret, at + i, "is %g (%#x), should be %g (%#x)", is,
				      float_bits(out[at + i]), (double)float_of(s->bits[i]),
				      s->bits[i]);
			continue;
		}
		/* The last rounding, and a little for the roundings of this reference. */
		allowed = bound * factor * 1.0001 + fmax(fabs(is) * 0x1.001p-24, 0x1p-150);
		if (!(fabs(is - wanted) <= allowed))
			wrong(ret, at + i, "is %.9g, should be %.9g +- %.2g", is, wanted, allowed);
	}
}

/*
 * Where packets begin is the library's business. But whatever packet an element travels in,
 * its elements are all in the same stretch or the two beside it.
 */
static void check_float(const struct perf_data *d, unsigned int workers, enum tally_op op,
			size_t first, size_t count, const void *out, struct perf_verdict *ret)
{
	static struct stretch ring[3]; /* before, here, behind */
	size_t stretches = (count + PACKET_FLOATS_MAX - 1) / PACKET_FLOATS_MAX;
	double factor = op == TALLY_AVG ? 1.0 / workers : 1;

	for (size_t n = 0; n <= stretches; n++) {
		struct stretch *behind = &ring[n % 3], *here = &ring[(n + 2) % 3];
		struct stretch *before = &ring[(n + 1) % 3];
		size_t at = n * PACKET_FLOATS_MAX;
		double largest;

		behind->largest = 0;
		if (n < stretches)
			stretch_work_out(d, workers, first + at,
					 count - at < PACKET_FLOATS_MAX ? count - at
									: PACKET_FLOATS_MAX,
					 behind);
		if (n == 0)
			continue;
		largest = fmax(here->largest, behind->largest);
		if (n > 1)
			largest = fmax(largest, before->largest);
		stretch_compare(here, error_bound(largest, workers), factor, out,
				at - PACKET_FLOATS_MAX, ret);
	}
}

void perf_check_reduced(const struct perf_data *d, unsigned int workers, enum tally_op op,
			size_t first, size_t count, const void *out, struct perf_verdict *ret)
{
	assert(workers > 0);
	(types[d->dtype].is_float ? check_float : check_integers)(d, workers, op, first, count, out,
								  ret);
}

void perf_check_copied(const struct perf_data *d, unsigned int rank, size_t count, size_t at,
		       const void *out, struct perf_verdict *ret)
{
	size_t bytes = perf_element_bytes(d->dtype);

	for (size_t i = 0; i < count; i++) {
		const uint8_t *is = (const uint8_t *)out + (at + i) * bytes;
		uint64_t wanted = 0, found = 0;

		perf_fill(d, rank, i, 1, &wanted);
		memcpy(&found, is, bytes);
		if (found != wanted)
			wrong(ret, at + i, "has the bits %#" PRIx64 ", should have %#" PRIx64,
			      found, wanted);
	}
}

uint64_t perf_hash(uint64_t hash, const void *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
	return hash;
}
