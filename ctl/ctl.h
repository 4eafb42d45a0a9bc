/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tallyctl: what a command is and what the command line said. Begin here: the table of
 * commands is in commands.c, the options in options.c, what people see in show.c and top_frame.c.
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
	CTL_LIST_MAX = TENANT_POINTS_MAX, /* values of an option that may be repeated */
	CTL_ARGUMENTS_MAX = 64,
	CTL_TIMEOUT_MS = 10000, /* for one answer of the daemon, if nobody looks at a live screen */
	CTL_INTERVAL_MAX = 3600, /* seconds between two frames of top */
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
	OPTION_COUNT,
};

/* A set of options. */
#define OPTION_BIT(option) (UINT32_C(1) << (option))

enum option_type {
	OPTION_FLAG, /* no value */
	OPTION_NUMBER, /* whole, not negative; k, M and G are understood */
	OPTION_TEXT,
	OPTION_LIST, /* of texts: may stand there CTL_LIST_MAX times */
};

/* What may follow a value or stand as an argument: completion asks the daemon for names. */
enum noun {
	NOUN_NONE, /* anything */
	NOUN_TENANT,
	NOUN_JOB,
	NOUN_PORT,
	NOUN_FILE,
};

struct option_kind {
	const char *name; /* without its dashes */
	const char *value; /* as --help calls it; NULL for a flag */
	const char *key; /* of a request; NULL: not the daemon's */
	const char *help;
	enum option_type type;
	enum noun noun;
	uint64_t least, most; /* of a number; both 0: the daemon knows */
};

extern const struct option_kind option_kinds[OPTION_COUNT];

/* The command line, checked, and how to write. */
struct ctl {
	const char *socket;
	unsigned int timeout_ms; /* for one answer of the daemon */
	bool json;
	struct style style; /* of standard output */
	const struct command *command;
	const char *value[OPTION_COUNT]; /* as given; NULL: not. Of a list the first */
	uint64_t number[OPTION_COUNT]; /* of OPTION_NUMBER, where value is given */
	const char *list[CTL_LIST_MAX];
	unsigned int lists; /* only one option of a command is a list */
	char **arguments;
	int count;
};

struct command {
	const char *words; /* "tenant add": one or two */
	const char *help;
	const char *arguments; /* "NAME", "[TENANT]", "[PORT]...", or NULL */
	enum noun noun; /* of the arguments */
	uint32_t options; /* a set */
	uint32_t needed; /* the options that must be there */
	bool named; /* with options the argument must be there, too */
	const char *verb; /* of the request, or NULL */
	const char *key; /* of the argument in the request */
	/* For people. What fails to be written is noticed at the end. */
	int (*show)(const struct ctl *ctl, const json_t *result, FILE *out, struct why *why);
	/* Instead of asking `verb` and showing the result. */
	int (*run)(const struct ctl *ctl, struct why *why);
};

extern const struct command commands[];
extern const unsigned int commands_count;

/* How many arguments a command takes, at least and at most. */
int command_arguments_min(const struct command *command);
int command_arguments_max(const struct command *command);

/* By its words at the beginning of argv; NULL: none. *ret_words of them, 1 or 2. */
const struct command *command_find(int argc, char **argv, int *ret_words);

/*
 * Options and arguments behind the command's words into `ctl`, whose command is set. -EINVAL:
 * `why` says what is wrong and what there is. 1: --help was among them.
 */
int options_parse(int argc, char **argv, struct ctl *ctl, struct why *why);

/* Only those that may stand before the command: --socket, --json, --help, --version. */
int options_parse_global(int argc, char **argv, struct ctl *ctl, int *ret_used, struct why *why);

/* The request that the command line stands for; the caller's, for json_decref(). Pure. */
json_t *request_make(const struct ctl *ctl);

/* One question and its result, the caller's. Errors are the daemon's words. */
int ctl_ask(const struct ctl *ctl, json_t *request, json_t **ret, struct why *why);

/*
 * No control characters in any of its texts: a name may come from anywhere, and nothing of it is
 * to reach the terminal as a command. ctl_ask() does it for people's eyes.
 */
void ctl_disarm(json_t *result);
void ctl_disarm_text(char *text);

/* The result as the daemon gave it, on one line. */
void ctl_dump(const json_t *result);

/* commands that are more than a question and a table */
int job_create(const struct ctl *ctl, struct why *why);
int job_token(const struct ctl *ctl, struct why *why);
int quota(const struct ctl *ctl, struct why *why);
int top(const struct ctl *ctl, struct why *why);
int trace(const struct ctl *ctl, struct why *why);
int doctor(const struct ctl *ctl, struct why *why);

/* What may stand in place of the last of these words: one a line. Never fails. */
void complete(int argc, char **argv);

#endif
