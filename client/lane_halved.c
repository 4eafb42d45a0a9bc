// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * float32 in 16 bits: as block floating point, four a word. bits = 15 - ceil(log2(workers)), so
 * that sums of q fit. The scale of a block is the smallest s, at least 1, such that every finite
 * |x| of it is at most 2^bits - 1 steps of 2^(s - 126 - bits); 0 when all are zero. All workers
 * use the largest scale among them; then q = round-to-nearest-even(x / step). A result is the sum
 * of q by the divisor, times the step, rounded once.
 *
 * What rounding takes is much here, so a rank may send with its values what earlier calls took of
 * them (struct lane_feedback). Both are first rounded to whole grains of 2^-GRAIN_BITS of a step
 * and then added, exactly. What q lacks of that sum is half a step at most, so many grains that a
 * float holds them: nothing else is lost than what is below a grain. A value of half a step and
 * more is of whole grains, and one below that stays below: so without what was kept q is the same
 * as if there were no grains.
 *
 * As in lane_float32.c, there are fast conversions, which are plain loops, and exact ones, for
 * processes in which the fast ones cannot be trusted. They give the same bits.
 */
#include <string.h>

#include "lane_float.h"
#include "lane_parts.h"
#include "lanes.h"

enum {
	TILE = 32, /* elements on their way between two vector loops */
	COUNTERS_SHIFT = 37,
	SCALE_BIAS = 126,
	SCALE_MIN = 1,
	SCALE_MAX = 255,
	SUM_BITS = 15, /* of a sum of q, without its sign */
	/* Of a q. Fewer would do with feedback only: over 256 ranks a model that float32 trains
	 * went on getting worse without it (docs/decisions/0035). */
	BITS_LEAST = 8,
	GRAIN_BITS = 24, /* so many fewer bits a value has that is below a step */
	/* Up to this exponent of a step, or of a grain, no subnormal float matters: as an input it
	 * is below half of it, and no multiple of it is one. */
	EXPONENT_NORMAL = 125,
	FLOAT_EXPONENT_MIN = -126, /* of a float that is no subnormal; 127 is the largest */
	FLOAT_EXPONENT_MAX = 127,
	FLOAT_INFINITY = 0x7f800000, /* bits of a float; more: NaN */
	FLOAT_MAGNITUDE = 0x7fffffff, /* all bits but the sign */
	FLOAT_NORMAL = 1 << 23, /* bits of the smallest that is no subnormal */
};

static const struct float_format format = { 4, 23, 255 };

static const float nothing[TILE];

static uint32_t bits_at(const float *x, size_t i)
{
	uint32_t bits;

	memcpy(&bits, x + i, sizeof(bits));
	return bits;
}

static bool is_finite(uint32_t bits) { return (bits & FLOAT_MAGNITUDE) < FLOAT_INFINITY; }

static int bits_of(uint16_t workers) { return SUM_BITS - float_headroom(workers); }

static int32_t most_of(uint16_t workers) { return (1 << bits_of(workers)) - 1; }

/* A step of q is 2^-step_exponent(). All scales that a byte can say are harmless. */
static int step_exponent(const struct lane_terms *terms)
{
	return bits_of(terms->workers) - (terms->scale - SCALE_BIAS);
}

/* --- the scale */

struct largest {
	int32_t all, finite; /* magnitudes, which order like their bits */
};

/* The comparison of bits knows no NaN. */
static struct largest largest_of(const float *restrict x, size_t count)
{
	struct largest l = { 0, 0 };

	for (size_t i = 0; i < count; i++) {
		int32_t magnitude = (int32_t)(bits_at(x, i) & FLOAT_MAGNITUDE);

		l.all = l.all > magnitude ? l.all : magnitude;
	}
	if (l.all < FLOAT_INFINITY)
		return (struct largest){ l.all, l.all };
	for (size_t i = 0; i < count; i++) {
		int32_t magnitude = (int32_t)(bits_at(x, i) & FLOAT_MAGNITUDE);

		if (magnitude < FLOAT_INFINITY && magnitude > l.finite)
			l.finite = magnitude;
	}
	return l;
}

/* Of blocks whose magnitudes are a + b at most: what is behind the last bit is rounded up. */
static uint8_t scale_of(int32_t a, int32_t b, int bits)
{
	const struct float_parts more = float_split(&format, (uint64_t)(a > b ? a : b));
	const struct float_parts less = float_split(&format, (uint64_t)(a > b ? b : a));
	const int down = more.exponent - less.exponent;
	uint64_t sum = more.mantissa << 32, rest = less.mantissa << 32;
	int highest, below;

	if (!sum)
		return 0;
	if (rest)
		sum += down < 63 ? (rest + (UINT64_C(1) << down) - 1) >> down : 1;
	highest = 64 - __builtin_clzll(sum); /* sum < 2^highest */
	below = highest + more.exponent - 32;
	if (sum > ((UINT64_C(1) << bits) - 1) << (highest - bits))
		below++;
	below += SCALE_BIAS;
	return (uint8_t)(below < SCALE_MIN ? SCALE_MIN : below > SCALE_MAX ? SCALE_MAX : below);
}

static struct lane_need inspect_with(const void *in, const float *kept, size_t count,
				     uint16_t workers)
{
	const struct largest own = largest_of(in, count);
	const struct largest old = kept ? largest_of(kept, count) : (struct largest){ 0, 0 };

	return (struct lane_need){
		.scale = scale_of(own.finite, old.finite, bits_of(workers)),
		.wide = own.all >= FLOAT_INFINITY || old.all >= FLOAT_INFINITY,
	};
}

static struct lane_need inspect(const void *in, size_t count, uint16_t workers)
{
	return inspect_with(in, NULL, count, workers);
}

/* --- to q, and what it lacks */

/* A number of grains as q, which its sums have room for, and the grains that are left. */
struct parted {
	int32_t q;
	int64_t rest;
};

static struct parted part_exact(uint32_t in, uint32_t kept, int exponent, int32_t most)
{
	const uint64_t grains = (uint64_t)float_quantise(&format, in, exponent + GRAIN_BITS) +
				(uint64_t)float_quantise(&format, kept, exponent + GRAIN_BITS);
	const bool negative = grains >> 63;
	const uint64_t q = float_shifted(negative ? -grains : grains, GRAIN_BITS);
	struct parted p = { .q = q < (uint64_t)most ? (int32_t)q : most };

	p.q = negative ? -p.q : p.q;
	p.rest = (int64_t)(grains - ((uint64_t)(int64_t)p.q << GRAIN_BITS));
	return p;
}

/* To a whole number, if the process rounds to nearest. */
static inline double rounded(double x) { return x + FLOAT_ROUNDER - FLOAT_ROUNDER; }

/* Whatever there is, also a NaN, becomes a q that its sums have room for. */
static inline double part_fast(double grains, double most)
{
	double q = rounded(grains * (1. / (1 << GRAIN_BITS)));

	q = q < most ? q : most;
	return q > -most ? q : -most;
}

static inline double grains_fast(float in, float kept, double grains)
{
	return rounded((double)in * grains) + rounded((double)kept * grains);
}

/* A tile. What is not finite goes so only where its block is sent again, and as anything. */
static void quantise_with(const float *restrict in, const float *restrict kept, size_t count,
			  const struct lane_terms *terms, bool fast, int16_t *restrict q)
{
	const int exponent = step_exponent(terms);
	const double grains = float_power_of_two(exponent + GRAIN_BITS);
	const int32_t most = most_of(terms->workers);
	const double limit = most;

	for (size_t i = 0; fast && i < count; i++)
		q[i] = (int16_t)part_fast(grains_fast(in[i], kept[i], grains), limit);
	for (size_t i = 0; !fast && i < count; i++)
		q[i] = (int16_t)part_exact(bits_at(in, i), bits_at(kept, i), exponent, most).q;
}

static void quantise(const float *in, size_t count, const struct lane_terms *terms,
		     int16_t *restrict q)
{
	int32_t wide[TILE];

	float_quantise_fast(in, count, step_exponent(terms), wide);
	for (size_t i = 0; i < count; i++)
		q[i] = (int16_t)wide[i];
}

static void pack_with(const void *in, const float *kept, size_t count,
		      const struct lane_terms *terms, uint64_t *word)
{
	const int finest = step_exponent(terms) + (kept ? GRAIN_BITS : 0);
	const bool fast = finest <= EXPONENT_NORMAL && float_rounds_to_nearest();
	const float *x = in;
	int16_t q[TILE];

	if (!terms->scale) {
		memset(word, 0, (count + 3) / 4 * sizeof(*word));
		return;
	}
	for (size_t at = 0; at < count; at += TILE) {
		size_t n = count - at < TILE ? count - at : TILE;

		if (fast && !kept)
			quantise(x + at, n, terms, q);
		else
			quantise_with(x + at, kept ? kept + at : nothing, n, terms, fast, q);
		lane_parts_pack(q, n * sizeof(*q), LANE_SIGNS_16, word + at / 4);
	}
}

static void pack(const void *in, size_t count, const struct lane_terms *terms, uint64_t *word)
{
	pack_with(in, NULL, count, terms, word);
}

/* A tile each. */
static void lose_fast(const float *restrict in, const float *restrict kept, size_t count,
		      const struct lane_terms *terms, float *restrict lost)
{
	const int exponent = step_exponent(terms) + GRAIN_BITS;
	const double grains = float_power_of_two(exponent), grain = float_power_of_two(-exponent);
	const double most = most_of(terms->workers);

	for (size_t i = 0; i < count; i++) {
		double all = grains_fast(in[i], kept[i], grains);

		lost[i] = (float)((all - part_fast(all, most) * (1 << GRAIN_BITS)) * grain);
	}
}

static void lose_exact(const float *in, const float *kept, size_t count,
		       const struct lane_terms *terms, float *lost)
{
	const int exponent = step_exponent(terms);
	const int32_t most = most_of(terms->workers);

	for (size_t i = 0; i < count; i++) {
		struct parted p = part_exact(bits_at(in, i), bits_at(kept, i), exponent, most);

		float_put(&format, lost, i,
			  float_result(&format, p.rest, 1, -exponent - GRAIN_BITS));
	}
}

static void lose(const void *in, const float *kept, size_t count, const struct lane_terms *terms,
		 float *lost)
{
	const bool fast = step_exponent(terms) + GRAIN_BITS <= EXPONENT_NORMAL &&
			  float_rounds_to_nearest();
	const float *x = in;
	float rest[TILE];

	if (!terms->scale) {
		memset(lost, 0, count * sizeof(*lost));
		return;
	}
	for (size_t at = 0; at < count; at += TILE) {
		size_t n = count - at < TILE ? count - at : TILE;

		if (fast)
			lose_fast(x + at, kept ? kept + at : nothing, n, terms, rest);
		else
			lose_exact(x + at, kept ? kept + at : nothing, n, terms, rest);
		memcpy(lost + at, rest, n * sizeof(*rest));
	}
}

/* One a word, as float32 has it: q in the low half, signed, and three counters above it. */
static void pack_wide_with(const void *in, const float *kept, size_t count,
			   const struct lane_terms *terms, uint64_t *word)
{
	const int exponent = step_exponent(terms);
	const int32_t most = most_of(terms->workers);

	for (size_t i = 0; i < count; i++) {
		uint32_t own = bits_at(in, i), old = kept ? bits_at(kept, i) : 0;
		uint32_t bits = is_finite(own) ? old : own;

		if (!is_finite(bits))
			word[i] = float_counter(&format, bits, COUNTERS_SHIFT);
		else if (terms->scale)
			word[i] = (uint64_t)part_exact(own, old, exponent, most).q;
		else
			word[i] = 0;
	}
}

static void pack_wide(const void *in, size_t count, const struct lane_terms *terms, uint64_t *word)
{
	pack_wide_with(in, NULL, count, terms, word);
}

/* An element that is not finite has sent nothing of what was kept. */
static void lose_wide(const void *in, const float *kept, size_t count,
		      const struct lane_terms *terms, float *lost)
{
	const int exponent = step_exponent(terms);
	const int32_t most = most_of(terms->workers);

	for (size_t i = 0; i < count; i++) {
		uint32_t own = bits_at(in, i), old = kept ? bits_at(kept, i) : 0;
		uint64_t bits = is_finite(old) ? old : 0;
		struct parted p;

		if (is_finite(own) && is_finite(old)) {
			p = part_exact(own, old, exponent, most);
			bits = !terms->scale
				       ? 0
				       : float_result(&format, p.rest, 1, -exponent - GRAIN_BITS);
		}
		float_put(&format, lost, i, bits);
	}
}

/* --- from sums of q */

/* The quotient has one rounding, and the step changes no bit of it. False: some result other than
 * 0 is subnormal, and to be made anew. */
static bool results_fast(const int16_t *restrict q, size_t count, uint16_t divisor, int exponent,
			 float *restrict out)
{
	float step = (float)float_power_of_two(exponent), by = divisor;
	int32_t subnormal = 0;

	for (size_t i = 0; i < count; i++) {
		float y = (float)q[i] / by * step;
		uint32_t bits;

		memcpy(&bits, &y, sizeof(bits));
		subnormal |= ((bits & FLOAT_MAGNITUDE) < FLOAT_NORMAL) & (q[i] != 0);
		out[i] = y;
	}
	return !subnormal;
}

static void unpack(const uint64_t *word, size_t count, const struct lane_terms *terms, void *out)
{
	const int exponent = -step_exponent(terms);
	const bool fast = exponent >= FLOAT_EXPONENT_MIN && exponent <= FLOAT_EXPONENT_MAX &&
			  float_rounds_to_nearest();
	int16_t q[TILE] = { 0 };
	float *x = out;

	if (!terms->scale) {
		memset(x, 0, count * sizeof(*x));
		return;
	}
	for (size_t at = 0; at < count; at += TILE) {
		size_t n = count - at < TILE ? count - at : TILE;

		lane_parts_unpack(word + at / 4, n * sizeof(*q), LANE_SIGNS_16, q);
		if (fast && results_fast(q, n, terms->divisor, exponent, x + at))
			continue;
		for (size_t i = 0; i < n; i++)
			float_put(&format, x, at + i,
				  float_result(&format, q[i], terms->divisor, exponent));
	}
}

static void unpack_wide(const uint64_t *word, size_t count, const struct lane_terms *terms,
			void *out)
{
	const int exponent = -step_exponent(terms);

	for (size_t i = 0; i < count; i++) {
		int32_t q = (int32_t)(uint32_t)word[i];
		uint64_t bits = float_nonfinite(&format, word[i] - (uint64_t)(int64_t)q,
						COUNTERS_SHIFT);

		if (!bits && terms->scale)
			bits = float_result(&format, q, terms->divisor, exponent);
		float_put(&format, out, i, bits);
	}
}

const struct lane lane_float32_halved = {
	.dtype = TALLY_FLOAT32_HALVED,
	.workers_max = 1 << (SUM_BITS - BITS_LEAST),
	.element_bytes = 4,
	.bits = 16,
	.number_bits = 16,
	.signs = LANE_SIGNS_16,
	.scale_min = SCALE_MIN,
	.scale_max = SCALE_MAX,
	.scale_first = SCALE_BIAS,
	.wide = TALLY_LANE_FLOAT32_HALVED_WIDE,
	.inspect = inspect,
	.pack = pack,
	.unpack = unpack,
	.feedback = &(const struct lane_feedback){ inspect_with, pack_with, lose },
};

const struct lane lane_float32_halved_wide = {
	.element_bytes = 4,
	.bits = 64,
	.number_bits = 32, /* q, and the counters */
	.signs = UINT64_C(1) << 31,
	.scale_min = SCALE_MIN,
	.scale_max = SCALE_MAX,
	.pack = pack_wide,
	.unpack = unpack_wide,
	.feedback = &(const struct lane_feedback){ NULL, pack_wide_with, lose_wide },
};
