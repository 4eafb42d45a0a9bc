// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Numbers modulo 2^255 - 19 have five limbs of 51 bits. Products leave limbs below 2^52, sums of
 * two products below 2^53, differences below 2^55; products take all of these.
 */
#include "x25519.h"

#include <string.h>

__extension__ typedef unsigned __int128 u128;

enum {
	LIMBS = 5,
	LIMB_BITS = 51,
	BITS = 255,
};

#define LIMB ((UINT64_C(1) << LIMB_BITS) - 1)

struct field {
	uint64_t limb[LIMBS];
};

static struct field add(const struct field *a, const struct field *b)
{
	struct field r;

	for (int i = 0; i < LIMBS; i++)
		r.limb[i] = a->limb[i] + b->limb[i];
	return r;
}

/* With eight times the modulus, so that no limb is negative. */
static struct field subtract(const struct field *a, const struct field *b)
{
	struct field r;

	for (int i = 0; i < LIMBS; i++)
		r.limb[i] = a->limb[i] + 8 * (i ? LIMB : LIMB - 18) - b->limb[i];
	return r;
}

/* What is above the last limb counts 19 times in the first. */
static struct field carry(u128 *t)
{
	struct field r;

	for (int i = 0; i + 1 < LIMBS; i++)
		t[i + 1] += t[i] >> LIMB_BITS;
	t[0] = (t[0] & LIMB) + 19 * (t[LIMBS - 1] >> LIMB_BITS);
	t[1] = (t[1] & LIMB) + (t[0] >> LIMB_BITS);
	for (int i = 0; i < LIMBS; i++)
		r.limb[i] = i == 1 ? (uint64_t)t[i] : (uint64_t)t[i] & LIMB;
	return r;
}

static struct field multiply(const struct field *a, const struct field *b)
{
	const uint64_t *x = a->limb, *y = b->limb;
	uint64_t over[LIMBS]; /* of y, one place above the last */
	u128 t[LIMBS];

	for (int i = 0; i < LIMBS; i++)
		over[i] = 19 * y[i];
#define ROW(r0, r1, r2, r3, r4)                                                          \
	((u128)x[0] * (r0) + (u128)x[1] * (r1) + (u128)x[2] * (r2) + (u128)x[3] * (r3) + \
	 (u128)x[4] * (r4))
	t[0] = ROW(y[0], over[4], over[3], over[2], over[1]);
	t[1] = ROW(y[1], y[0], over[4], over[3], over[2]);
	t[2] = ROW(y[2], y[1], y[0], over[4], over[3]);
	t[3] = ROW(y[3], y[2], y[1], y[0], over[4]);
	t[4] = ROW(y[4], y[3], y[2], y[1], y[0]);
#undef ROW
	return carry(t);
}

static struct field square(const struct field *a) { return multiply(a, a); }

/* To the power of 2^255 - 21. */
static struct field invert(const struct field *a)
{
	struct field r = *a;

	for (int bit = BITS - 2; bit >= 0; bit--) {
		r = square(&r);
		if (bit != 2 && bit != 4)
			r = multiply(&r, a);
	}
	return r;
}

/* 255 bits: the last one is nobody's. */
static struct field field_read(const uint8_t bytes[X25519_BYTES])
{
	struct field r = { { 0 } };

	for (int bit = 0; bit < BITS; bit++)
		r.limb[bit / LIMB_BITS] |= (uint64_t)(bytes[bit / 8] >> bit % 8 & 1)
					   << bit % LIMB_BITS;
	return r;
}

/* Below the modulus: the quotient is found first, by adding 19. */
static void field_write(const struct field *a, uint8_t ret[X25519_BYTES])
{
	u128 t[LIMBS];
	struct field r = *a;
	uint64_t over = 19;

	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < LIMBS; i++)
			t[i] = r.limb[i];
		r = carry(t);
	}
	for (int i = 0; i < LIMBS; i++)
		over = (r.limb[i] + over) >> LIMB_BITS;
	r.limb[0] += 19 * over;
	for (int i = 0; i + 1 < LIMBS; i++)
		r.limb[i + 1] += r.limb[i] >> LIMB_BITS;
	memset(ret, 0, X25519_BYTES);
	for (int bit = 0; bit < BITS; bit++)
		ret[bit / 8] |= (r.limb[bit / LIMB_BITS] >> bit % LIMB_BITS & 1) << bit % 8;
}

static void swap_if(uint64_t yes, struct field *a, struct field *b)
{
	for (int i = 0; i < LIMBS; i++) {
		uint64_t differs = (a->limb[i] ^ b->limb[i]) & -yes;

		a->limb[i] ^= differs;
		b->limb[i] ^= differs;
	}
}

/* A point as x / z. */
struct point {
	struct field x, z;
};

/* One step of the ladder (RFC 7748, section 5): a doubled, and a + b, of which a - b is `u`. */
static void step(const struct field *u, struct point *a, struct point *b)
{
	static const struct field a24 = { { 121665 } };
	struct field sum = add(&a->x, &a->z), difference = subtract(&a->x, &a->z);
	struct field aa = square(&sum), bb = square(&difference), e = subtract(&aa, &bb);
	struct field c = add(&b->x, &b->z), d = subtract(&b->x, &b->z);
	struct field da = multiply(&d, &sum), cb = multiply(&c, &difference);

	c = add(&da, &cb);
	b->x = square(&c);
	d = subtract(&da, &cb);
	d = square(&d);
	b->z = multiply(u, &d);
	a->x = multiply(&aa, &bb);
	c = multiply(&a24, &e);
	c = add(&aa, &c);
	a->z = multiply(&e, &c);
}

void x25519(const uint8_t secret[X25519_BYTES], const uint8_t share[X25519_BYTES],
	    uint8_t ret[X25519_BYTES])
{
	const struct field u = field_read(share), one = { { 1 } };
	struct point a = { .x = one }, b = { u, one };
	uint64_t swapped = 0;

	for (int i = BITS - 1; i >= 0; i--) {
		/* the three lowest bits are 0, and the highest one is 1 */
		uint64_t bit = i < 3 ? 0 : i == BITS - 1 ? 1 : secret[i / 8] >> i % 8 & 1;

		swap_if(bit ^ swapped, &a.x, &b.x);
		swap_if(bit ^ swapped, &a.z, &b.z);
		swapped = bit;
		step(&u, &a, &b);
	}
	swap_if(swapped, &a.x, &b.x);
	swap_if(swapped, &a.z, &b.z);
	a.z = invert(&a.z);
	a.x = multiply(&a.x, &a.z);
	field_write(&a.x, ret);
	explicit_bzero(&a, sizeof(a));
	explicit_bzero(&b, sizeof(b));
}

void x25519_share(const uint8_t secret[X25519_BYTES], uint8_t ret[X25519_BYTES])
{
	static const uint8_t base[X25519_BYTES] = { 9 };

	x25519(secret, base, ret);
}
