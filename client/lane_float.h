/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What lanes of floats have in common: formats as bits, and rounding with integers only, so that no
 * rounding mode, FTZ or DAZ of the process changes anything.
 */
#ifndef TALLY_CLIENT_LANE_FLOAT_H
#define TALLY_CLIENT_LANE_FLOAT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Of IEEE 754: sign, exponent, mantissa, from the highest bit on. */
struct float_format {
	uint8_t bytes;
	uint8_t mantissa_bits; /* without the hidden one */
	uint16_t exponent_max; /* as it is stored: of infinities and NaNs */
};

static const struct float_format float_bfloat16 = { 2, 7, 255 }, float_float16 = { 2, 10, 31 };

/* Of the smallest normal number: its stored exponent is 1. */
static inline int float_exponent_min(const struct float_format *f)
{
	return 1 - f->exponent_max / 2;
}

static inline uint64_t float_infinity(const struct float_format *f)
{
	return (uint64_t)f->exponent_max << f->mantissa_bits;
}

/* The quiet one that all NaNs become. */
static inline uint64_t float_nan(const struct float_format *f)
{
	return float_infinity(f) | UINT64_C(1) << (f->mantissa_bits - 1);
}

static inline uint64_t float_sign(const struct float_format *f)
{
	return UINT64_C(1) << (8 * f->bytes - 1);
}

/* A finite number without its sign: mantissa * 2^exponent. */
struct float_parts {
	uint64_t mantissa;
	int exponent;
};

static inline struct float_parts float_split(const struct float_format *f, uint64_t magnitude)
{
	int stored = (int)(magnitude >> f->mantissa_bits);
	uint64_t mantissa = magnitude & ((UINT64_C(1) << f->mantissa_bits) - 1);

	if (stored)
		mantissa |= UINT64_C(1) << f->mantissa_bits;
	return (struct float_parts){
		.mantissa = mantissa,
		.exponent = (stored ? stored : 1) - 1 + float_exponent_min(f) - f->mantissa_bits,
	};
}

/* m * 2^-n, rounded to nearest, ties to even; n > 0. */
static inline uint64_t float_shifted(unsigned __int128 m, int n)
{
	if (n > 126)
		return 0;
	return (uint64_t)((m + (((unsigned __int128)1 << (n - 1)) - 1) + (m >> n & 1)) >> n);
}

/* The number below 2^e, where e is the least such: -1074 .. 1024; magnitude is finite, not 0. */
static inline int float_below(const struct float_format *f, uint64_t magnitude)
{
	struct float_parts p = float_split(f, magnitude);

	return 64 - __builtin_clzll(p.mantissa) + p.exponent;
}

/* x * 2^exponent, rounded to nearest, ties to even; mod 2^64 where that is too large. */
static inline int64_t float_quantise(const struct float_format *f, uint64_t bits, int exponent)
{
	struct float_parts p = float_split(f, bits & ~float_sign(f));
	int shift = p.exponent + exponent;
	uint64_t q = p.mantissa;

	if (shift >= 0)
		q = shift < 64 ? q << shift : 0;
	else if (shift < -60) /* below 2^53 */
		q = 0;
	else
		q = (q + ((UINT64_C(1) << (-shift - 1)) - 1) + (q >> -shift & 1)) >> -shift;
	return (int64_t)(bits & float_sign(f) ? -q : q);
}

/* q / divisor as m * 2^exponent, with 64 bits behind the point and one that says if more is left.
 */
static inline unsigned __int128 float_divided(uint64_t q, uint16_t divisor, int *exponent)
{
	unsigned __int128 m = q / divisor;
	uint64_t rest = q % divisor;

	if (divisor == 1)
		return q;
	for (int half = 0; half < 2; half++) {
		rest <<= 32;
		m = m << 32 | rest / divisor;
		rest %= divisor;
	}
	*exponent -= 65;
	return m << 1 | (rest != 0);
}

/*
 * The bits of q / divisor * 2^exponent, rounded once to nearest, ties to even. What is too large is
 * an infinity.
 */
static inline uint64_t float_result(const struct float_format *f, int64_t q, uint16_t divisor,
				    int exponent)
{
	const int least = float_exponent_min(f);
	uint64_t sign = q < 0 ? float_sign(f) : 0, rounded;
	unsigned __int128 m = float_divided(q < 0 ? -(uint64_t)q : (uint64_t)q, divisor, &exponent);
	int highest, shift;

	if (!q)
		return 0;
	/* Of the highest bit of m, and then of the hidden one: subnormals have that of `least`. */
	highest = m >> 64 ? 127 - __builtin_clzll((uint64_t)(m >> 64))
			  : 63 - __builtin_clzll((uint64_t)m);
	highest += exponent;
	if (highest < least)
		highest = least;
	if (highest - least >= f->exponent_max)
		return sign | float_infinity(f);
	shift = highest - f->mantissa_bits - exponent;
	rounded = shift <= 0 ? (uint64_t)m << -shift : float_shifted(m, shift);
	/* The hidden bit, and a carry out of the rounding, raise the exponent. */
	rounded += (uint64_t)(highest - least) << f->mantissa_bits;
	return sign | (rounded < float_infinity(f) ? rounded : float_infinity(f));
}

static inline uint64_t float_get(const struct float_format *f, const void *array, size_t i)
{
	uint64_t bits = 0;

	memcpy(&bits, (const uint8_t *)array + i * f->bytes, f->bytes);
	return bits;
}

static inline void float_put(const struct float_format *f, void *array, size_t i, uint64_t bits)
{
	memcpy((uint8_t *)array + i * f->bytes, &bits, f->bytes);
}

/* ceil(log2(workers)). */
static inline int float_headroom(uint16_t workers)
{
	int bits = 0;

	while (1u << bits < workers)
		bits++;
	return bits;
}

/* Does the process, as it is now, round to nearest? */
static inline bool float_rounds_to_nearest(void)
{
	volatile double one = 1, little = 0x1p-60;

	return one + little == one && one - little == one;
}

/* 2^exponent, which is in the range of normal doubles. */
static inline double float_power_of_two(int exponent)
{
	uint64_t bits = (uint64_t)(exponent + 1023) << 52;
	double x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

static inline uint64_t float_double_bits(double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

/*
 * 1.5 * 2^52: doubles around it are whole numbers, so adding it rounds to one, and the bits
 * of the sum are its own plus q. The product before is exact, because the float has 24 bits
 * and the other factor is a power of two far from the ends of the range. So it does not
 * matter whether a compiler makes one FMA of the two: there is one rounding either way.
 */
#define FLOAT_ROUNDER 0x1.8p52

/* To nearest, if the process rounds so. What is not finite goes as 0. */
static inline void float_quantise_fast(const float *restrict in, size_t count, int exponent,
				       int32_t *restrict q)
{
	const int32_t infinity = 0x7f800000;
	double steps = float_power_of_two(exponent);

	for (size_t i = 0; i < count; i++) {
		uint64_t sum_bits;
		uint32_t bits;
		int32_t over;
		double sum;
		float x;

		memcpy(&bits, in + i, sizeof(bits));
		over = (int32_t)(bits & INT32_MAX) - infinity;
		bits &= (uint32_t)(over >> 31);
		memcpy(&x, &bits, sizeof(x));
		sum = (double)x * steps + FLOAT_ROUNDER;
		memcpy(&sum_bits, &sum, sizeof(sum_bits));
		q[i] = (int32_t)(uint32_t)sum_bits;
	}
}

/*
 * A wide word with the counters of its NaNs and infinities, nine bits each: with 256 workers a
 * counter may reach 256, which still fits. `shift` is where they begin.
 */
enum {
	FLOAT_COUNTER_BITS = 9,
	FLOAT_COUNTER_MASK = (1 << FLOAT_COUNTER_BITS) - 1,
};

/* Of an element that is not finite. */
static inline uint64_t float_counter(const struct float_format *f, uint64_t bits, int shift)
{
	uint64_t magnitude = bits & ~float_sign(f);

	if (magnitude > float_infinity(f))
		return UINT64_C(1) << shift;
	return UINT64_C(1) << (shift + FLOAT_COUNTER_BITS * (bits & float_sign(f) ? 2 : 1));
}

/* What the counters say of an element with NaNs or infinities; 0: it has none. */
static inline uint64_t float_nonfinite(const struct float_format *f, uint64_t counters, int shift)
{
	bool nan = counters >> shift & FLOAT_COUNTER_MASK;
	bool plus = counters >> (shift + FLOAT_COUNTER_BITS) & FLOAT_COUNTER_MASK;
	bool minus = counters >> (shift + 2 * FLOAT_COUNTER_BITS) & FLOAT_COUNTER_MASK;

	if (nan || (plus && minus))
		return float_nan(f);
	if (plus || minus)
		return float_infinity(f) | (minus ? float_sign(f) : 0);
	return 0;
}

#endif
