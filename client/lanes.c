// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The float conversions exist twice. The fast ones are plain loops over doubles that the
 * compiler turns into vectors. They need round-to-nearest and, near the bottom of the
 * range, subnormals; a process may have switched off either (FTZ and DAZ are set by any
 * library linked with -ffast-math). The slow ones are integer arithmetic, need nothing, and
 * give the same bits; they run where the fast ones could not be trusted.
 */
#include "lanes.h"

#include <string.h>

enum {
	TILE = 32,	   /* elements on their way between two vector loops */
	FLOAT_INFINITY = 0x7f800000,  /* bits of a float; more: NaN */
	FLOAT_NAN = 0x7fc00000, /* the quiet one */
	FLOAT_MAGNITUDE = 0x7fffffff, /* all bits but the sign */
	FLOAT_HIDDEN = 1 << 23, /* the first bit of a normal float's mantissa */
	NANS_SHIFT = 37,
	PLUS_SHIFT = 46,
	MINUS_SHIFT = 55,
	COUNTER_MASK = 511,
	/*
	 * From this scale on no subnormal float matters: as an input it is below 2^-126 and
	 * half a step is at least 2^(4 (42 - 64) - 30 - 1) = 2^-119; and a result that is not
	 * 0 is at least a 256th of the step.
	 */
	SCALE_NORMAL = 42,
};

static uint32_t float_bits(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

static uint64_t double_bits(double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

/* 2^exponent, which is in the range of normal doubles. */
static double power_of_two(int exponent)
{
	uint64_t bits = (uint64_t)(exponent + 1023) << 52;
	double x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

/* Does the process, as it is now, round to nearest? */
static bool rounds_to_nearest(void)
{
	volatile double one = 1, little = 0x1p-60;

	return one + little == one && one - little == one;
}

/* A step of q is 2^-step_exponent(). All scales that a byte can say are harmless. */
static int step_exponent(uint8_t scale, unsigned int workers)
{
	int bits = 30;

	while (bits > 0 && 1u << (30 - bits) < workers)
		bits--;
	return bits - 4 * (scale - 64);
}

/* m * 2^-n, rounded to nearest, ties to even; n > 0. */
static uint64_t shift_rounded(unsigned __int128 m, int n)
{
	if (n > 126)
		return 0;
	return (m + (((unsigned __int128)1 << (n - 1)) - 1) + (m >> n & 1)) >> n;
}

/* --- int32 */

/*
 * In memory (lo, hi) is one little-endian word already; only lo's sign has to reach into
 * hi. (lo ^ 2^31) - 2^31 extends a sign, and done on the whole word its borrow goes to hi.
 * Unpacking is the same backwards.
 */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "lanes lie in memory as in a word");

#define LOW_SIGN (UINT64_C(1) << 31)

void lanes_pack_int32(const int32_t *restrict in, size_t count, uint64_t *restrict word)
{
	for (size_t i = 0; i < count / 2; i++) {
		uint64_t pair;

		memcpy(&pair, in + 2 * i, sizeof(pair));
		word[i] = (pair ^ LOW_SIGN) - LOW_SIGN;
	}
	if (count % 2)
		word[count / 2] = (uint64_t)(int64_t)in[count - 1];
}

void lanes_unpack_int32(const uint64_t *restrict word, size_t count, int32_t *restrict out)
{
	for (size_t i = 0; i < count / 2; i++) {
		uint64_t pair = (word[i] + LOW_SIGN) ^ LOW_SIGN;

		memcpy(out + 2 * i, &pair, sizeof(pair));
	}
	if (count % 2)
		out[count - 1] = (int32_t)(uint32_t)word[count / 2];
}

bool lanes_int32_is_wide(const int32_t *in, size_t count, unsigned int workers)
{
	int32_t most = (int32_t)(INT32_MAX / workers);
	int wide = 0;

	for (size_t i = 0; i < count; i++)
		wide |= (in[i] > most) | (in[i] < -most);
	return wide;
}

void lanes_pack_int32_wide(const int32_t *restrict in, size_t count, uint64_t *restrict word)
{
	for (size_t i = 0; i < count; i++)
		word[i] = (uint64_t)(int64_t)in[i];
}

void lanes_unpack_int32_wide(const uint64_t *restrict word, size_t count, int32_t *restrict out)
{
	for (size_t i = 0; i < count; i++)
		out[i] = (int32_t)(uint32_t)word[i];
}

/* --- float32: the scale */

/* The smallest scale for a finite magnitude: with x in [2^e, 2^(e+1)), 64 + ceil((e + 1) / 4). */
static uint8_t scale_of(uint32_t magnitude)
{
	int exponent = (int)(magnitude >> 23) - 127;

	if (!magnitude)
		return 0;
	if (magnitude < FLOAT_HIDDEN)
		exponent = 31 - __builtin_clz(magnitude) - 149;
	return (uint8_t)((exponent + 260) / 4);
}

/* Magnitudes of floats order like their bits, and the comparison of bits knows no NaN. */
struct lanes_scale lanes_scale_find(const float *in, size_t count)
{
	int32_t all = 0, finite = 0;

	for (size_t i = 0; i < count; i++) {
		int32_t magnitude = (int32_t)(float_bits(in[i]) & FLOAT_MAGNITUDE);

		all = all > magnitude ? all : magnitude;
	}
	if (all < FLOAT_INFINITY)
		return (struct lanes_scale){ .scale = scale_of((uint32_t)all) };

	for (size_t i = 0; i < count; i++) {
		int32_t magnitude = (int32_t)(float_bits(in[i]) & FLOAT_MAGNITUDE);

		if (magnitude < FLOAT_INFINITY && magnitude > finite)
			finite = magnitude;
	}
	return (struct lanes_scale){ .scale = scale_of((uint32_t)finite), .wide = true };
}

/* --- float32: to q */

/*
 * 1.5 * 2^52: doubles around it are whole numbers, so adding it rounds to one, and the bits
 * of the sum are its own plus q. The product before is exact, because the float has 24 bits
 * and the other factor is a power of two far from the ends of the range. So it does not
 * matter whether a compiler makes one FMA of the two: there is one rounding either way.
 */
#define ROUNDER 0x1.8p52

static void quantise_fast(const float *restrict in, size_t count, int exponent, int32_t *restrict q)
{
	double steps = power_of_two(exponent);

	for (size_t i = 0; i < count; i++) {
		uint32_t bits = float_bits(in[i]);
		int32_t over = (int32_t)(bits & FLOAT_MAGNITUDE) - FLOAT_INFINITY;
		float x;

		bits &= (uint32_t)(over >> 31); /* not finite: 0 */
		memcpy(&x, &bits, sizeof(x));
		q[i] = (int32_t)(uint32_t)double_bits((double)x * steps + ROUNDER);
	}
}

/* x = mantissa * 2^(max(exponent, 1) - 150), for normals and subnormals alike. */
static int32_t quantise_exact(float x, int exponent)
{
	uint32_t bits = float_bits(x);
	uint32_t mantissa = bits & (FLOAT_HIDDEN - 1);
	int biased = bits >> 23 & 255, shift;
	uint32_t q;

	if (biased == 255)
		return 0;
	if (biased)
		mantissa |= FLOAT_HIDDEN;
	shift = (biased ? biased : 1) - 150 + exponent;
	if (shift >= 0)
		q = mantissa << (shift & 31); /* at most 6, if the scale is that of the block */
	else
		q = (uint32_t)shift_rounded(mantissa, -shift);
	return (int32_t)(bits >> 31 ? -q : q);
}

void lanes_pack_float32(const float *restrict in, size_t count, uint8_t scale, unsigned int workers,
			uint64_t *restrict word)
{
	int exponent = step_exponent(scale, workers);
	bool fast = scale >= SCALE_NORMAL && rounds_to_nearest();
	int32_t q[TILE];

	if (!scale) {
		memset(word, 0, (count + 1) / 2 * sizeof(*word));
		return;
	}
	for (size_t at = 0; at < count; at += TILE) {
		size_t n = count - at < TILE ? count - at : TILE;

		if (fast)
			quantise_fast(in + at, n, exponent, q);
		else
			for (size_t i = 0; i < n; i++)
				q[i] = quantise_exact(in[at + i], exponent);
		lanes_pack_int32(q, n, word + at / 2);
	}
}

void lanes_pack_float32_wide(const float *restrict in, size_t count, uint8_t scale,
			     unsigned int workers, uint64_t *restrict word)
{
	int exponent = step_exponent(scale, workers);

	for (size_t i = 0; i < count; i++) {
		uint32_t bits = float_bits(in[i]), magnitude = bits & FLOAT_MAGNITUDE;

		if (magnitude > FLOAT_INFINITY)
			word[i] = UINT64_C(1) << NANS_SHIFT;
		else if (magnitude == FLOAT_INFINITY)
			word[i] = UINT64_C(1) << (bits >> 31 ? MINUS_SHIFT : PLUS_SHIFT);
		else
			word[i] = (uint64_t)(int64_t)(scale ? quantise_exact(in[i], exponent) : 0);
	}
}

/* --- float32: from sums of q */

/* A sum beyond FLT_MAX becomes the infinity that IEEE 754 makes of it. */
static void scale_back_fast(const int32_t *restrict q, size_t count, double step,
			    float *restrict out)
{
	for (size_t i = 0; i < count; i++)
		out[i] = (float)(q[i] * step);
}

/* The bits of (float)(q * step) as IEEE 754 has them: first to 53 bits, then to float. */
static uint32_t scale_back_exact(int32_t q, double step)
{
	uint64_t step_bits = double_bits(step), mantissa;
	int exponent = (int)(step_bits >> 52 & 2047) - 1075, over, biased;
	unsigned __int128 product;

	product = (unsigned __int128)(q < 0 ? -(uint64_t)q : (uint64_t)q) *
		  ((step_bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52);
	if (!product)
		return 0;
	over = 64 - __builtin_clzll((uint64_t)(product >> 52)) - 1;
	mantissa = over > 0 ? shift_rounded(product, over) : (uint64_t)product;
	if (over > 0)
		exponent += over;

	/* Now 2^52 <= mantissa <= 2^53. A carry out of the rounding raises the exponent. */
	biased = exponent + 52 + 127;
	if (biased >= 255)
		return FLOAT_INFINITY | (q < 0 ? 1u << 31 : 0);
	if (biased > 0)
		mantissa = shift_rounded(mantissa, 29) + ((uint64_t)(biased - 1) << 23);
	else
		mantissa = shift_rounded(mantissa, 30 - biased);
	return (uint32_t)mantissa | (q < 0 ? 1u << 31 : 0);
}

static void scale_back(const int32_t *restrict q, size_t count, double step, bool fast,
		       float *restrict out)
{
	if (fast) {
		scale_back_fast(q, count, step, out);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		uint32_t bits = scale_back_exact(q[i], step);

		memcpy(out + i, &bits, sizeof(bits));
	}
}

void lanes_unpack_float32(const uint64_t *restrict word, size_t count, uint8_t scale,
			  unsigned int workers, double factor, float *restrict out)
{
	double step = factor * power_of_two(-step_exponent(scale, workers));
	bool fast = scale >= SCALE_NORMAL && rounds_to_nearest();
	int32_t q[TILE] = { 0 };

	if (!scale) {
		memset(out, 0, count * sizeof(*out));
		return;
	}
	for (size_t at = 0; at < count; at += TILE) {
		size_t n = count - at < TILE ? count - at : TILE;

		lanes_unpack_int32(word + at / 2, n, q);
		scale_back(q, n, step, fast, out + at);
	}
}

/* What the counters say of an element with NaNs or infinities; 0: it has none. */
static uint32_t nonfinite_bits(uint64_t counters)
{
	bool nan = counters >> NANS_SHIFT & COUNTER_MASK;
	bool plus = counters >> PLUS_SHIFT & COUNTER_MASK;
	bool minus = counters >> MINUS_SHIFT & COUNTER_MASK;

	if (nan || (plus && minus))
		return FLOAT_NAN;
	if (plus || minus)
		return FLOAT_INFINITY | (uint32_t)minus << 31;
	return 0;
}

void lanes_unpack_float32_wide(const uint64_t *restrict word, size_t count, uint8_t scale,
			       unsigned int workers, double factor, float *restrict out)
{
	double step = factor * power_of_two(-step_exponent(scale, workers));
	bool fast = scale >= SCALE_NORMAL && rounds_to_nearest();

	for (size_t i = 0; i < count; i++) {
		int32_t q = (int32_t)(uint32_t)word[i]; /* sums of q fit 31 bits of the 37 */
		uint32_t bits = nonfinite_bits(word[i] - (uint64_t)(int64_t)q);

		if (bits)
			memcpy(out + i, &bits, sizeof(bits));
		else if (scale)
			scale_back(&q, 1, step, fast, out + i);
		else
			out[i] = 0;
	}
}

/* --- the check word */

enum {
	STRANDS = 8
};

/*
 * Without a multiplication per word: eight strands keep the sum of their words, and the sum
 * of those sums after each row. With `rows` rows, the word of row r is in the latter
 * (rows - r) times, and 2 i + 1 = 16 r + (2 strand + 1).
 */
uint64_t lanes_check(const uint64_t *word, size_t words)
{
	uint64_t sum[STRANDS] = { 0 }, sums[STRANDS] = { 0 }, check = 0;
	size_t rows = words / STRANDS;

	for (size_t row = 0; row < rows; row++) {
		for (size_t i = 0; i < STRANDS; i++) {
			sum[i] += word[STRANDS * row + i];
			sums[i] += sum[i];
		}
	}
	for (size_t i = 0; i < STRANDS; i++)
		check += 2 * STRANDS * (rows * sum[i] - sums[i]) + (2 * i + 1) * sum[i];
	for (size_t i = STRANDS * rows; i < words; i++)
		check += (2 * i + 1) * word[i];
	return check;
}
