// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "perf_data.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
	PACKET_BYTES_MAX = 3392,
	PACKET_FLOATS_MAX = PACKET_BYTES_MAX / 2,
	REGION = 4096,   /* elements of about the same magnitude in wild data */
	STRANGE_ONE_IN = 509,  /* indices at which some ranks have no finite value */
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

static const struct type {
	uint8_t bytes;
	bool is_float, is_unsigned;
	uint16_t tame; /* integers are by so much smaller than they might be */
	/* Floats: bits of the mantissa without the hidden one, and what exponents are stored with.
	 */
	uint8_t mantissa;
	int16_t bias;
	/* Scales are multiples of so many binary orders, and sums of q have so many bits. */
	uint8_t scale_step, sum_bits;
} types[] = {
	[TALLY_INT32] = { 4, .tame = 256 },
	[TALLY_INT64] = { 8, .tame = 256 },
	[TALLY_FLOAT32] = { 4, .is_float = true, .mantissa = 23, .bias = 127, .scale_step = 4,
			    .sum_bits = 30 },
	[TALLY_INT8] = { 1, .tame = 64 },
	[TALLY_INT16] = { 2, .tame = 256 },
	[TALLY_UINT8] = { 1, .is_unsigned = true, .tame = 64 },
	[TALLY_UINT16] = { 2, .is_unsigned = true, .tame = 256 },
	[TALLY_UINT32] = { 4, .is_unsigned = true, .tame = 256 },
	[TALLY_UINT64] = { 8, .is_unsigned = true, .tame = 256 },
	[TALLY_BFLOAT16] = { 2, .is_float = true, .mantissa = 7, .bias = 127, .scale_step = 1,
			     .sum_bits = 15 },
	[TALLY_FLOAT16] = { 2, .is_float = true, .mantissa = 10, .bias = 15, .scale_step = 1,
			    .sum_bits = 15 },
	[TALLY_FLOAT64] = { 8, .is_float = true, .mantissa = 52, .bias = 1023, .scale_step = 9,
			    .sum_bits = 62 },
	[TALLY_FLOAT32_HALVED] = { 4, .is_float = true, .mantissa = 23, .bias = 127,
				   .scale_step = 1, .sum_bits = 15 },
};

/* --- floats as bits */

static uint64_t infinity_of(const struct type *t)
{
	return (2 * (uint64_t)t->bias + 1) << t->mantissa;
}

static uint64_t sign_of(const struct type *t) { return UINT64_C(1) << (8 * t->bytes - 1); }

static uint64_t nan_of(const struct type *t)
{
	return infinity_of(t) | UINT64_C(1) << (t->mantissa - 1);
}

/* Of the smallest subnormal number. */
static int exponent_least(const struct type *t) { return 1 - t->bias - t->mantissa; }

/* Cut to what the type has of it; finite. */
static uint64_t bits_of(const struct type *t, double x)
{
	uint64_t sign = signbit(x) ? sign_of(t) : 0, bits;
	int exponent;

	if (x == 0)
		return sign;
	frexp(x, &exponent);
	exponent -= t->mantissa + 1; /* of the last bit */
	if (exponent < exponent_least(t))
		exponent = exponent_least(t);
	bits = (uint64_t)ldexp(fabs(x), -exponent);
	/* The hidden bit raises the exponent by one. */
	bits += (uint64_t)(exponent - exponent_least(t)) << t->mantissa;
	return sign | bits;
}

static bool is_finite(const struct type *t, uint64_t bits)
{
	return (bits & (sign_of(t) - 1)) < infinity_of(t);
}

static double value_of(const struct type *t, uint64_t bits)
{
	uint64_t magnitude = bits & (sign_of(t) - 1);
	int stored = (int)(magnitude >> t->mantissa);
	double x = (double)(magnitude & ((UINT64_C(1) << t->mantissa) - 1));

	if (stored)
		x += (double)(UINT64_C(1) << t->mantissa);
	x = ldexp(x, (stored ? stored : 1) - 1 + exponent_least(t));
	if (!is_finite(t, bits))
		x = magnitude == infinity_of(t) ? INFINITY : NAN;
	return bits & sign_of(t) ? -x : x;
}

size_t perf_element_bytes(enum tally_dtype dtype) { return types[dtype].bytes; }

bool perf_is_float(enum tally_dtype dtype) { return types[dtype].is_float; }

enum tally_dtype perf_dtype(const struct perf_data *d)
{
	return d->point ? TALLY_FIXED(d->dtype, d->point) : d->dtype;
}

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
static double wild_at(const struct perf_data *d, size_t index, uint64_t h)
{
	const struct type *t = &types[d->dtype];
	int least = exponent_least(t), most = t->bias - t->bias / 7 - 9; /* no sum is infinite */
	uint64_t region = key(d->iteration, UINT32_MAX, index / REGION);
	int exponent = least + 9 + (int)(region % (unsigned int)(most - least - 7)) - (int)(h & 31);
	double mantissa = 1 + (double)(h >> 41) * 0x1p-23;

	if (t->mantissa > 23)
		mantissa += (double)(key(0, 0, h) >> 35) * 0x1p-52;
	if ((h >> 5 & 63) == 0)
		return h >> 40 & 1 ? -0. : 0.;
	if ((h >> 5 & 63) == 1)
		exponent = (int)(h >> 11 & 255) + least;
	exponent = exponent < least ? least : exponent > most ? most : exponent;
	return ldexp(h >> 40 & 1 ? -mantissa : mantissa, exponent);
}

static uint64_t float_at(const struct perf_data *d, unsigned int rank, size_t index)
{
	const struct type *t = &types[d->dtype];
	uint64_t h = key(d->iteration, rank, index);

	if (d->nonfinite && key(d->iteration, UINT32_MAX - 1, index) % STRANGE_ONE_IN == 0) {
		/* NaNs of any sign and payload: what is not 0 there is a NaN */
		if (h % 16 == 0)
			return infinity_of(t) | 1 | h >> (64 - 8 * t->bytes);
		if (h % 16 <= 4)
			return infinity_of(t);
		if (h % 16 <= 6)
			return infinity_of(t) | sign_of(t);
	}
	if (d->wild)
		return bits_of(t, wild_at(d, index, h));
	return bits_of(t, (double)((int64_t)(h >> 40) - (1 << 23)) * 0x1p-23);
}

void perf_fill(const struct perf_data *d, unsigned int rank, size_t first, size_t count, void *out)
{
	size_t bytes = perf_element_bytes(d->dtype);

	for (size_t i = 0; i < count; i++) {
		uint64_t x = types[d->dtype].is_float ? float_at(d, rank, first + i)
						      : (uint64_t)integer_at(d, rank, first + i);

		memcpy((uint8_t *)out + i * bytes, &x, bytes);
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
	long double sum[PACKET_FLOATS_MAX]; /* of the finite ones */
	uint64_t bits[PACKET_FLOATS_MAX]; /* what it is instead when not finite; 0: it is */
};

static void stretch_work_out(const struct perf_data *d, unsigned int workers, size_t first,
			     size_t count, struct stretch *ret)
{
	const struct type *t = &types[d->dtype];

	ret->count = count;
	ret->largest = 0;
	for (size_t i = 0; i < count; i++) {
		bool nan = false, plus = false, minus = false;

		ret->sum[i] = 0;
		for (unsigned int rank = 0; rank < workers; rank++) {
			double x = value_of(t, float_at(d, rank, first + i));

			nan |= isnan(x);
			plus |= isinf(x) && x > 0;
			minus |= isinf(x) && x < 0;
			if (!isfinite(x))
				continue;
			ret->sum[i] += x;
			ret->largest = fmax(ret->largest, fabs(x));
		}
		ret->bits[i] = 0;
		if (nan || (plus && minus))
			ret->bits[i] = nan_of(t);
		else if (plus || minus)
			ret->bits[i] = infinity_of(t) | (minus ? sign_of(t) : 0);
	}
}

/*
 * How far a sum may be off in a packet whose largest magnitude is this: half a step a rank, and a
 * little for the roundings of this reference.
 */
static long double error_bound(const struct perf_data *d, double largest, unsigned int workers)
{
	const struct type *t = &types[d->dtype];
	int exponent, least, bits = t->sum_bits, headroom = 0;
	long double bound;
	double part;

	if (largest == 0 && !d->feedback)
		return 0;
	if (d->point)
		return workers / 2.0L * ldexpl(1, -d->point) + largest * 0x1p-60L;
	while (1u << headroom < workers)
		headroom++;
	if (t->bytes == 2 && bits - headroom <= t->mantissa)
		bits = 31; /* two a word */
	if (d->feedback)
		largest = fmax(largest, 1) + 4 * ldexp(1, headroom - bits);
	part = frexp(largest, &exponent); /* largest < 2^exponent */
	exponent = (int)ceil(exponent / (double)t->scale_step) * t->scale_step;
	if (d->dtype == TALLY_FLOAT32_HALVED && part > 1 - ldexp(1, headroom - bits))
		exponent++; /* a step is left free */
	least = d->dtype == TALLY_FLOAT32_HALVED ? -125 : -126;
	if (t->scale_step == 1 && exponent < least)
		exponent = least;
	bound = workers / 2.0L * ldexpl(1, exponent - (bits - headroom)) * 1.0001L +
		largest * 0x1p-60L;
	return d->feedback ? 2 * bound : bound; /* what is kept was as much at most */
}

static void stretch_compare(const struct type *t, const struct stretch *s, long double bound,
			    long double factor, const void *out, size_t at,
			    struct perf_verdict *ret)
{
	for (size_t i = 0; i < s->count; i++) {
		long double wanted = s->sum[i] * factor, is, allowed;
		uint64_t bits = 0;

		memcpy(&bits, (const uint8_t *)out + (at + i) * t->bytes, t->bytes);
		is = value_of(t, bits);
		if (s->bits[i]) {
			if (bits != s->bits[i])
				wrong(ret, at + i,
				      "is %Lg (%#" PRIx64 "), should be %g (%#" PRIx64 ")", is,
				      bits, value_of(t, s->bits[i]), s->bits[i]);
			continue;
		}
		/* The last rounding. */
		allowed = bound * factor + fmaxl(ldexpl(fabsl(is) * 1.001L, -t->mantissa - 1),
						 ldexpl(1, exponent_least(t) - 1));
		if (!(fabsl(is - wanted) <= allowed))
			wrong(ret, at + i, "is %.17Lg, should be %.17Lg +- %.2Lg", is, wanted,
			      allowed);
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
	const struct type *t = &types[d->dtype];
	const size_t packet = PACKET_BYTES_MAX / ((t->sum_bits + 7u) / 8); /* q fills its element */
	size_t stretches = (count + packet - 1) / packet;
	long double factor = op == TALLY_AVG ? 1.0L / workers : 1;

	for (size_t n = 0; n <= stretches; n++) {
		struct stretch *behind = &ring[n % 3], *here = &ring[(n + 2) % 3];
		struct stretch *before = &ring[(n + 1) % 3];
		size_t at = n * packet;
		double largest;

		behind->largest = 0;
		if (n < stretches)
			stretch_work_out(d, workers, first + at,
					 count - at < packet ? count - at : packet, behind);
		if (n == 0)
			continue;
		largest = fmax(here->largest, behind->largest);
		if (n > 1)
			largest = fmax(largest, before->largest);
		stretch_compare(t, here, error_bound(d, largest, workers), factor, out, at - packet,
				ret);
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
