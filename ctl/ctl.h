/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tallyctl: what a command is, and what the command line said. Begin here. The table of commands
 * is in commands.c, the options are in options.c, the output for people in show.c and top_frame.c.
 */
#ifndef TALLY_CTL_CTL_H
#define TALLY_CTL_CTL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/core/tenant.h"
#include "common/util.h"
#include "style.h"

enum {
	CTL_LIST_MAX = TENANT_PLACES_MAX, /* values of an option that may be repeated */
	CTL_ARGUMENTS_MAX = 64,
	CTL_TIMEOUT_MS = 10000, /* for one answer of tallyd; top has a shorter one */
	CTL_INTERVAL_MAX = 3600, /* seconds between two frames of top */
	CTL_DRAIN_MAX = 30 * 24 * 3600, /* seconds that drain waits */
};

enum option_id {
	OPTION_SLOTS,
	OPTION_PACKETS,
	OPTION_BYTES,
	OPTION_PRIORITY,
	OPTION_INGRESS,
	OPTION_WORKERS,
	OPTION_TENANT,
	OPTION_WINDOW,
	OPTION_PAYLOAD,
	OPTION_SERVICE,
	OPTION_ID,
	OPTION_TOKEN_FILE,
	OPTION_JOB,
	OPTION_PORT,
	OPTION_ALL,
	OPTION_HISTORY,
	OPTION_EVERY,
	OPTION_ONCE,
	OPTION_INTERVAL,
	OPTION_RANK,
	OPTION_TIMEOUT,
	OPTION_GROUP,
	OPTION_TAGS,
	OPTION_SEALED,
	OPTION_TREE,
	OPTION_NODE,
	OPTION_EXPORT,
	OPTION_STAY,
	OPTION_CLUSTER,
	OPTION_ROOTS,
	OPTION_SVG,
	OPTION_COUNT,
};

#define CTL_LIST_NONE "any" /* alone: a list without elements, where each would restrict */

/* A set of options. */
#define OPTION_BIT(option) (UINT32_C(1) << (option))

enum option_type {
	OPTION_NUMBER, /* whole, not negative; k, M and G are understood */
	OPTION_FLAG, /* no value */
	OPTION_TEXT,
	OPTION_YES_NO,
	OPTION_LIST, /* of texts: may be given CTL_LIST_MAX times, or once as CTL_LIST_NONE */
};

/* What a value or an argument names: completion asks tallyd for such names. */
enum noun {
	NOUN_NONE, /* anything */
	NOUN_TENANT,
	NOUN_JOB,
	NOUN_PORT,
	NOUN_FILE,
	NOUN_COMMAND,
};

struct option_kind {
	const char *name; /* without its dashes */
	const char *value; /* as --help calls it; NULL for a flag */
	const char *key; /* in the request; NULL: tallyd does not get this option */
	const char *help;
	enum option_type type;
	enum noun noun;
	uint64_t least, most; /* of a number; both 0: tallyd checks the range */
};

extern const struct option_kind option_kinds[OPTION_COUNT];

/* The command line, checked, and the style of the output. */
struct ctl {
	const char *socket;
	unsigned int timeout_ms; /* for one answer of tallyd */
	bool json;
	struct style style; /* of standard output */
	const struct command *command;
	const char *value[OPTION_COUNT]; /* as given; NULL: not given. Of a list, the first value */
	uint64_t number[OPTION_COUNT]; /* of OPTION_NUMBER, where value is given */
	const char *list[CTL_LIST_MAX];
	unsigned int lists; /* only one option of a command is a list */
	char **arguments;
	int count;
};

struct command {
	const char *words; /* "tenant add": one or two */
	const char *help;
	const char *verb; /* of the request, or NULL */
	const char *arguments; /* "NAME", "[TENANT]", "[PORT]...", or NULL */
	const char *key; /* of the argument in the request */
	enum noun noun; /* of the arguments */
	/* Prints the result for people; NULL: nothing. main() checks for write errors at the end.
	 */
	int (*show)(const struct ctl *ctl, const json_t *result, FILE *out, struct why *why);
	/* Replaces the usual way: send `verb`, show the result. */
	int (*run)(const struct ctl *ctl, struct why *why);
	uint32_t options; /* a set */
	uint32_t needed; /* the options that must be there */
	bool named; /* with an option, the argument is needed, too */
};

extern const struct command commands[];
extern const unsigned int commands_count;

/* How many arguments a command takes, at least and at most. */
int command_arguments_min(const struct command *command);
int command_arguments_max(const struct command *command);

/* Is this the first of the command's two words? */
bool command_has_first(const struct command *command, const char *word);

/* The command whose words argv begins with; NULL: none. */
const struct command *command_find(int argc, char **argv);

/*
 * Parses options and arguments after argv[0] into `ctl`: those of ctl->command or, if that is NULL,
 * the options before a command; the arguments are then the command's words and what follows.
 * -EINVAL: `why` says what is wrong and what is allowed. 1: --help was among them.
 */
int options_parse(int argc, char **argv, struct ctl *ctl, struct why *why);

/* The request that the command line means. The caller owns it (json_decref()). Pure. */
json_t *request_make(const struct ctl *ctl);

/* Sends a request; the caller owns the result. Errors have tallyd's words. */
int ctl_ask(const struct ctl *ctl, json_t *request, json_t **ret, struct why *why);

/*
 * Replaces control characters in all texts of a result: names come from others, and must not
 * command the terminal. ctl_ask() does that unless the output is JSON.
 */
void ctl_disarm(json_t *result);
void ctl_disarm_text(char *text);

/* Prints the result as tallyd gave it, on one line. */
void ctl_dump(const json_t *result);

/* Commands that do more than send a request and show the result. */
int job_token(const struct ctl *ctl, struct why *why);
int quota(const struct ctl *ctl, struct why *why);
int top(const struct ctl *ctl, struct why *why);
int trace(const struct ctl *ctl, struct why *why);
int drain(const struct ctl *ctl, struct why *why);
int documents(const struct ctl *ctl, struct why *why);
int apply(const struct ctl *ctl, struct why *why);
int cluster(const struct ctl *ctl, struct why *why);
int doctor(const struct ctl *ctl, struct why *why);
int help(const struct ctl *ctl, struct why *why);

/*
 * The tree of a job, from a file or standard input ("-"). The caller owns it. -EINVAL: no list in
 * JSON; what is in the list tallyd looks at.
 */
int tree_read(const char *path, json_t **ret, struct why *why);

/* Prints what the last of these words may become, one candidate a line. Never fails. */
void complete(int argc, char **argv);

#endif
