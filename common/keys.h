/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tables of keys: one line says all about a key. By its table a tree of values is checked and a
 * struct filled, the struct is printed again, and the documents get their lists of keys
 * (tools/keys.c). Pure. Readers and printers of a format are beside this: lines.h here, yaml.h and
 * json.h in agent/core/.
 *
 * Functions return 0 or a negative errno; the reading's `why` then says what is wrong, and where.
 */
#ifndef TALLY_COMMON_KEYS_H
#define TALLY_COMMON_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "value.h"

enum {
	KEYS_MAX = 32, /* of one table */
	KEYS_ALLOWED_BYTES = 400, /* of the text that says what is allowed, with its end */
};

struct key;
struct reading;

/* Where we are in the tree: a chain up to its root, on the stack of those who read. */
struct place {
	const struct place *above; /* NULL: the root, which has no name */
	const struct key *key; /* of the mapping above; an element of a list: of the list */
	int index; /* in the list above; -1: not in a list */
	const struct value *value;
};

/* What a scalar is read into. The text has no NUL in it, `member` has key->size bytes. */
struct key_type {
	bool (*parse)(const struct key *key, const char *text, void *member); /* false: refused */
	void (*print)(const struct key *key, const void *member, char *text, size_t size);
	const char *allowed; /* or, if it depends on the key: */
	void (*describe)(const struct key *key, const char *number, char *text, size_t size);
	bool literal; /* numbers and booleans: JSON writes them without quotes, and so does YAML */
	bool bare; /* YAML needs no quotes, as nothing in such a text means anything to it */
	bool secret; /* is never shown */
};

/* What no type can say; `into` is what the table fills. */
typedef int key_check(struct reading *r, const struct place *at, void *into);

struct keys {
	const struct key *key;
	size_t count;
};

#define KEYS(table) { table, sizeof(table) / sizeof(*(table)) }
#define KEYS_OF(table) (&(const struct keys)KEYS(table))

struct key {
	const char *name; /* the first member: errors list names from the table itself */
	const struct key_type *type; /* of a scalar, or of each element of a list of them */
	size_t offset, size; /* of the member; of a list's first element */
	bool grows; /* a list: at `offset` is a pointer to its elements (rows.h) */
	uint64_t min, max; /* of a number; of a choice `min` is the first word that is allowed */
	const char *const *words; /* of a choice, NULL behind the last one */
	const struct keys *keys; /* of a mapping, or of each element of a list of mappings */
	unsigned int list_max; /* elements that there is room for; 0: not a list */
	size_t count_offset, count_size; /* of the number that counts elements */
	const char *empty; /* what is wrong with a list that has no elements; NULL: nothing */
	const char *full; /* of a list that comes line by line: what is said of one too many */
	const char *word; /* may stand in place of a value: each byte of it is then `fill` */
	unsigned char fill;
	const char *initial; /* the default, as it would be written; NULL: all bytes 0 */
	bool needed;
	bool later; /* older programs did not write it: not missing where every key is needed */
	bool shorthand; /* instead of an element that is a mapping, its first key's value may stand
			 */
	bool flow; /* printed as YAML on one line */
	bool brief; /* not printed if all its bytes are 0 */
	key_check *take; /* takes the value itself; then no type, size or list is looked at */
	key_check *check; /* after the member, or an element, was filled */
	/* For the documents. */
	const char *allowed; /* instead of what the type says, also in errors */
	const char *otherwise; /* instead of `initial`: what holds when the key is not there */
	const char *meaning; /* one sentence; NULL: not documented */
};

#define KEY_MEMBER(type, member) \
	.offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define KEY_LIST(type, array, counter)                                        \
	.offset = offsetof(type, array), .size = sizeof(*((type *)0)->array), \
	.list_max = sizeof(((type *)0)->array) / sizeof(*((type *)0)->array), \
	.count_offset = offsetof(type, counter), .count_size = sizeof(((type *)0)->counter)

/* Of a list that grows as it is read, up to `max` elements: keys_free() frees it. */
#define KEY_ROWS(type, pointer, counter, max)                                                    \
	.grows = true, .offset = offsetof(type, pointer), .size = sizeof(*((type *)0)->pointer), \
	.list_max = (max), .count_offset = offsetof(type, counter),                              \
	.count_size = sizeof(((type *)0)->counter)

extern const struct key_type key_number; /* in uint8_t to uint64_t, as the member's size says */
extern const struct key_type key_rate; /* with k, M or G behind it */
extern const struct key_type key_power; /* of two */
extern const struct key_type key_blocks; /* bytes: a multiple of TALLY_BLOCK_BYTES */
extern const struct key_type key_hex; /* in uint64_t: 16 hex digits */
extern const struct key_type key_bytes; /* two hex digits each; a secret */
extern const struct key_type
	key_rank_key; /* in struct tally_key: 32 hex digits, or "-" for zeros */
extern const struct key_type key_ranks; /* in struct tally_set: one rank at least; ranks.h */
extern const struct key_type key_choice; /* the index of one of key->words */
extern const struct key_type key_bool;
extern const struct key_type key_name; /* name.h */
extern const struct key_type key_token;
extern const struct key_type key_path; /* from / on */
extern const struct key_type key_address; /* address.h: gets TALLY_UDP_PORT */
extern const struct key_type key_endpoint; /* with a port */
extern const struct key_type key_listen; /* the same, also any address */

/* A number of 1, 2, 4 or 8 bytes. */
uint64_t key_number_load(const void *member, size_t size);
void key_number_store(uint64_t n, void *member, size_t size);

/* How a format speaks of what is wrong. */
enum keys_shown {
	KEYS_QUOTED, /* values are shown in quotes */
	KEYS_BARE, /* behind their key, as they stand there */
	KEYS_HIDDEN, /* never, as one may be a secret */
};

struct keys_style {
	const char *number; /* "a number" */
	const char *no_such_key;
	const char *missing; /* with one %s for the key's name */
	enum keys_shown shown;
	bool keys_lead; /* a wrong key is part of the place; otherwise it stands in quotes */
	bool nearest; /* the key that was probably meant is named instead of all */
	bool strict_lists; /* an element alone is not taken for a list of one */
	bool tolerant; /* what is not in a table is left alone */
	bool complete; /* every key is needed, but those that came later */
};

struct reading {
	const struct keys_style *style;
	const char *name; /* of the file, or what else leads in `why`; NULL: the line */
	void *root; /* the caller's, for checks */
	char *why;
	size_t why_size;
};

/* Fills what the keys of a table say when they are not there; all else is left alone. */
void keys_default(const struct keys *keys, void *into);

/* Frees lists that grow, also those of their elements; they are empty then. Whoever reads by a
 * table that has any begins with zeros, and calls this also if reading has failed. */
void keys_free(const struct keys *keys, void *from);

/* Reads a mapping: keys in the order of the table, whatever their order in the text, so that one
 * can rely on another. ret_seen, if not NULL: bit i says that key i was there. */
int keys_take(struct reading *r, const struct place *at, const struct keys *keys, void *into,
	      uint32_t *ret_seen);

/* The same for a tree's root. */
int keys_take_root(struct reading *r, const struct value *root, const struct keys *keys, void *into,
		   uint32_t *ret_seen);

/* One by one, for texts that have not come whole: which key is it, take its value, is one missing?
 */
int keys_find(struct reading *r, const struct place *above, const struct value *key,
	      const struct keys *keys); /* its index */
int keys_take_one(struct reading *r, const struct place *at, void *into);
int keys_missing(struct reading *r, const struct place *above, const struct keys *keys,
		 uint32_t seen);

/* For takers: calls `take` with each element of at most `max`. */
int keys_each(struct reading *r, const struct place *at, unsigned int max, key_check *take,
	      void *into);

/* For takers: the scalar here, without NULs; `allowed` is for the error. */
int keys_text(struct reading *r, const struct place *at, const char *allowed, const char **ret);

/* A check for lists: the last element has the bytes of none before it. */
int keys_check_unique(struct reading *r, const struct place *at, void *into);

/* -EINVAL: what is wrong at this place, or with the value that is there, which is then shown. */
__attribute__((format(printf, 3, 4))) int keys_refuse(struct reading *r, const struct place *at,
						      const char *format, ...);
__attribute__((format(printf, 3, 4))) int
keys_refuse_value(struct reading *r, const struct place *at, const char *format, ...);

/* For printers. */
unsigned int key_count(const struct key *key, const void *from); /* elements of a list */
const void *key_element(const struct key *key, const void *from, unsigned int i); /* of a list */
bool key_is_brief(const struct key *key, const void *from); /* is it not to be printed? */
/* A scalar, or element `i` of a list. */
void key_print(const struct key *key, const void *from, unsigned int i, char *text, size_t size);

/* What is allowed, for people: "a number from 1 to 256", also with the word. */
void key_allowed(const struct key *key, const char *number, char *text, size_t size);

#endif
