/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Help, and what is said where the command line is wrong. */
#ifndef TALLY_CTL_HELP_H
#define TALLY_CTL_HELP_H

#include "ctl.h"

enum {
	EXIT_USAGE = 2,
};

/* All commands; one command with its options. */
void help_print(FILE *out);
void help_command(const struct command *command);

/* Ends the program; the second one lists the commands that begin with the same word, or all. */
__attribute__((noreturn)) void help_wrong_usage(const char *text);
__attribute__((noreturn)) void help_wrong_command(int argc, char **argv);

#endif
