/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * YAML into structs by tables of keys, with errors that name file, line and key. Pure; only
 * tree.c knows libyaml. Plain YAML alone: no aliases, anchors and tags, one document, bounded
 * depth.
 *
 * All functions return 0 or a negative errno, and then the tree's `why` says what is wrong.
 */
#ifndef TALLY_AGENT_TREE_H
#define TALLY_AGENT_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/util.h"

enum {
	TREE_DEPTH_MAX = 8, /* of lists and mappings in one another */
	TREE_KEYS_MAX = 32, /* of one table */
};

struct tree;

/* Where we are in the tree: a chain up to its root, on the stack of those who read. */
struct tree_place {
	const struct tree_place *above; /* NULL: the root */
	const struct tree_key *key; /* of the mapping above; an element of a list: of the list */
	int index; /* in the list above; -1: it is no list */
	int node; /* number of the value here; 0: nothing is there */
};

/* Reads what is at a place into something. */
typedef int tree_take(struct tree *t, const struct tree_place *at, void *into);

struct tree_key {
	const char *name;
	tree_take *take;
	size_t offset; /* of what it is read into */
	bool needed;
	uint64_t min, max; /* of a number */
	const char *const *words; /* of a choice, NULL at their end */
	const struct tree_key *keys; /* of a mapping */
	size_t count; /* of `keys` */
};

/*
 * Reads a buffer (no NUL at its end needed) whose outermost mapping has these keys. `name` leads in
 * `why`. What has been read up to an error stays in `into`. -EINVAL, -ENOMEM.
 */
int tree_read(const char *text, size_t length, const char *name, const struct tree_key *keys,
	      size_t count, void *into, struct why *why);

/* What tree_read() reads into, for keys deeper down. */
void *tree_root(struct tree *t);

/*
 * A mapping: keys are read in the order of the table, whatever their order in the file, so that
 * one can rely on another. Nothing at all is an empty mapping.
 */
int tree_mapping(struct tree *t, const struct tree_place *at, const struct tree_key *keys,
		 size_t count, void *into);
bool tree_is_mapping(struct tree *t, const struct tree_place *at);

/* Is this very word the value here? */
bool tree_is_word(struct tree *t, const struct tree_place *at, const char *word);

/* Takes each element of a list of at most `max`. One scalar is a list of one, nothing an empty one.
 */
int tree_list(struct tree *t, const struct tree_place *at, unsigned int max, tree_take *take,
	      void *into);

/* The scalar here, without NULs in it, alive as long as the tree. `allowed` is for the error. */
int tree_text(struct tree *t, const struct tree_place *at, const char *allowed, const char **ret);

/* Takers: a mapping with the key's keys; a number within the key's range; with k, M or G behind it;
 * one of the key's words. */
int tree_take_mapping(struct tree *t, const struct tree_place *at, void *into);
int tree_take_u8(struct tree *t, const struct tree_place *at, void *into);
int tree_take_u32(struct tree *t, const struct tree_place *at, void *into);
int tree_take_rate(struct tree *t, const struct tree_place *at, void *into); /* uint64_t */
int tree_take_choice(struct tree *t, const struct tree_place *at, void *into); /* unsigned int */
int tree_take_bool(struct tree *t, const struct tree_place *at, void *into);

/* -EINVAL: what is wrong at this place, or with the value that is there, which is then shown. */
__attribute__((format(printf, 3, 4))) int tree_refuse(struct tree *t, const struct tree_place *at,
						      const char *format, ...);
__attribute__((format(printf, 3, 4))) int
tree_refuse_value(struct tree *t, const struct tree_place *at, const char *format, ...);

#endif
