// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Read this file first: then jobs.c and ports.c.
 *
 * tally-node: the data plane of this machine by hand, where no tallyd runs it: tests, guests,
 * trees of nodes. Here are the options and the table of commands; what they do is in
 * ports.c and jobs.c.
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <string.h>

#include "common/address.h"
#include "common/file.h"
#include "common/ranks.h"
#include "spill/listen.h"
#include "tally_node.h"

enum {
	USAGE = 2, /* exit code: the command line is wrong */
	MEMORY_MIB_MAX = 1 << 16,
	STALLED_MS = 50,
};

static const char help[] =
	"usage: tally-node attach DEV... [--mode MODE] [--slots N] [--share]\n"
	"                                                            run a node on these interfaces\n"
	"       tally-node attach --replace [DEV...] [--slots N]     change the programs, keep the jobs\n"
	"       tally-node detach                                    end the node and remove all of it\n"
	"       tally-node job add FILE [--below RANKS [--borrow BASE|hash]] [--via RANKS=ADDRESS]...\n"
	"       tally-node job del JOB\n"
	"       tally-node job list [--json]\n"
	"       tally-node stats [--all] [--json]                    show packets by their outcome\n"
	"       tally-node spill FILE... [--memory MIB] [--threads N] [--via RANKS=ADDRESS]...\n"
	"                                                            sum jobs without XDP, here\n"
	"\n"
	"  --mode MODE          native (in the driver), generic (in the stack), tc (no XDP), or\n"
	"                       auto: native; generic where the driver refuses; tc where XDP\n"
	"                       is not possible (auto)\n"
	"  --slots N            chunks that the node has memory for, 3.4 KB each (4096); a job\n"
	"                       needs two for each chunk of its window\n"
	"  --pool N             slots that jobs share, 3.5 KB each, beside those of --slots (0)\n"
	"  --policy POLICY      who has a slot of the pool: fcfs, esa, or words with '+' between:\n"
	"                       holds, preempts, by-priority, downgrade, stalled (preempts)\n"
	"  --share              keep an XDP program that is attached already: it sees what Tally\n"
	"                       passes, and stays after detach\n"
	"  --replace            change the programs without losing a packet or a sum; a new --slots\n"
	"                       begins with empty slots. DEV... changes the interfaces, too\n"
	"  --below RANKS        this node is not the job's root; these ranks come through it,\n"
	"                       such as 0-3,7\n"
	"  --borrow BASE        the job has slots of the pool, as many as its window from BASE on;\n"
	"                       hash: any, by a hash of job and chunk\n"
	"  --via RANKS=ADDRESS  these ranks are behind the child node with this service address\n"
	"  --pin DIR            where the node is pinned (/sys/fs/bpf/tally); another directory\n"
	"                       for each node, if there are several on a machine\n"
	"  --memory MIB         of all sums in software together (64)\n"
	"  --threads N          that sum in software, 1 to 16; each job is one thread's (1)\n"
	"  --json               print JSON\n"
	"  --all                show counters that are 0, too\n"
	"  -v, --verbose        print messages of the kernel and libbpf, too\n"
	"  -h, --help, --version\n"
	"\n"
	"A job's FILE: docs/job-file.md. Exit codes: 0 (success), 1 (failure), 2 (wrong usage).\n";

static const char help_hint[] = "Run 'tally-node --help' for the usage.\n";

enum option_bit {
	MODE = 1 << 0,
	SLOTS = 1 << 1,
	REPLACE = 1 << 2,
	BELOW = 1 << 3,
	VIA = 1 << 4,
	JSON = 1 << 5,
	ALL = 1 << 6,
	SHARE = 1 << 7,
	MEMORY = 1 << 8,
	POOL = 1 << 9,
	POLICY = 1 << 10,
	BORROW = 1 << 11,
	THREADS = 1 << 12,
};

static const struct option long_options[] = {
	{ "mode", required_argument, NULL, MODE },
	{ "slots", required_argument, NULL, SLOTS },
	{ "replace", no_argument, NULL, REPLACE },
	{ "below", required_argument, NULL, BELOW },
	{ "via", required_argument, NULL, VIA },
	{ "json", no_argument, NULL, JSON },
	{ "all", no_argument, NULL, ALL },
	{ "share", no_argument, NULL, SHARE },
	{ "memory", required_argument, NULL, MEMORY },
	{ "threads", required_argument, NULL, THREADS },
	{ "pool", required_argument, NULL, POOL },
	{ "policy", required_argument, NULL, POLICY },
	{ "borrow", required_argument, NULL, BORROW },
	{ "pin", required_argument, NULL, 'p' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static const struct command {
	const char *name;
	const char *more; /* second word, or NULL */
	unsigned int options; /* enum option_bit that it takes */
	int arguments; /* at least */
	int arguments_max;
	int (*run)(const struct command_line *q, struct why *why);
} commands[] = {
	{ "attach", NULL, MODE | SLOTS | REPLACE | SHARE | POOL | POLICY, 0, TALLY_PORTS_MAX,
	  node_attach },
	{ "detach", NULL, 0, 0, 0, node_detach },
	{ "stats", NULL, JSON | ALL, 0, 0, node_stats },
	{ "job", "add", BELOW | BORROW | VIA, 1, 1, job_add },
	{ "job", "del", 0, 1, 1, job_del },
	{ "job", "list", JSON, 0, 0, job_list },
	{ "spill", NULL, MEMORY | THREADS | VIA, 1, INT_MAX, node_spill },
};

/* Or a letter, none of which is a power of two. */
static bool is_bit(int option) { return !(option & (option - 1)); }

/* Says it, points to --help, and is the end. */
__attribute__((noreturn, format(printf, 1, 2))) static void usage(const char *format, ...)
{
	va_list values;

	va_start(values, format);
	vwarnx(format, values);
	va_end(values);
	fputs(help_hint, stderr);
	exit(USAGE);
}

static uint32_t slots_parse(const char *option, const char *text, uint32_t least)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || n < least || n > DATAPLANE_SLOTS_MAX)
		usage("%s %s: must be a number from %u to %d", option, text, least,
		      DATAPLANE_SLOTS_MAX);
	return n;
}

/* What one word says, is added. */
static bool policy_add(const char *word, size_t length, struct tally_borrowed_policy *policy)
{
	static const struct {
		const char *word;
		struct tally_borrowed_policy policy;
	} words[] = {
		{ "fcfs", { .holds = true } },
		{ "esa", { .preempts = true, .by_priority = true, .downgrade = 1 } },
		{ "holds", { .holds = true } },
		{ "preempts", { .preempts = true } },
		{ "by-priority", { .by_priority = true } },
		{ "downgrade", { .downgrade = 1 } },
		{ "stalled", { .stalled_ms = STALLED_MS } },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		const struct tally_borrowed_policy *p = &words[i].policy;

		if (strlen(words[i].word) != length || strncmp(word, words[i].word, length) != 0)
			continue;
		policy->holds |= p->holds;
		policy->preempts |= p->preempts;
		policy->by_priority |= p->by_priority;
		policy->downgrade |= p->downgrade;
		policy->stalled_ms |= p->stalled_ms;
		return true;
	}
	return false;
}

static struct tally_borrowed_policy policy_parse(const char *text)
{
	struct tally_borrowed_policy policy = { .holds = false };
	const char *word = text;

	for (size_t length; word; word = word[length] ? word + length + 1 : NULL) {
		length = strcspn(word, "+");
		if (!policy_add(word, length, &policy))
			usage("--policy %s: must be fcfs, esa, or some of holds, preempts, "
			      "by-priority, downgrade and stalled with '+' between",
			      text);
	}
	return policy;
}

static uint32_t number_parse(const char *option, const char *text, const char *of, uint32_t most)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || n < 1 || n > most)
		usage("%s %s: must be a number %sfrom 1 to %u", option, text, of, most);
	return n;
}

static enum dataplane_mode mode_parse(const char *text)
{
	static const char *const modes[] = { [DATAPLANE_AUTO] = "auto",
					     [DATAPLANE_NATIVE] = "native",
					     [DATAPLANE_GENERIC] = "generic",
					     [DATAPLANE_TC] = "tc" };

	for (int i = 0; i <= DATAPLANE_TC; i++)
		if (!strcmp(text, modes[i]))
			return i;
	usage("--mode %s: must be native, generic, tc or auto", text);
}

static struct tally_set ranks_of(const char *option, const char *text)
{
	struct tally_set ranks;

	if (ranks_parse(text, &ranks) < 0)
		usage("%s %s: must be ranks from 0 to %d, such as 0-3,7", option, text,
		      TALLY_WORKERS_MAX - 1);
	return ranks;
}

static void via_parse(char *text, struct installation_role *role)
{
	char *equals = strchr(text, '=');
	struct installation_via *via;

	if (role->vias == INSTALLATION_VIAS_MAX)
		usage("--via %s: at most %d child nodes", text, INSTALLATION_VIAS_MAX);
	if (!equals)
		usage("--via %s: must be RANKS=ADDRESS, such as 0-3=10.77.0.2", text);
	via = &role->via[role->vias++];
	*equals = '\0';
	via->ranks = ranks_of("--via", text);
	if (address_parse(equals + 1, TALLY_UDP_PORT, &via->address) < 0)
		usage("--via %s=%s: must be an address such as 10.77.0.2 or fd77::2", text,
		      equals + 1);
}

static void pin_parse(char *text, struct command_line *q)
{
	size_t length = strlen(text);

	while (length > 1 && text[length - 1] == '/')
		text[--length] = '\0';
	if (*text != '/' || length >= PATH_MAX - 32)
		usage("--pin %s: must be the full path of a directory, such as " DATAPLANE_PIN,
		      text);
	if (strchr(strrchr(text, '/'), '.'))
		usage("--pin %s: a BPF file system allows no dots in names", text);
	q->pin = text;
}

/* Which option bits were given. */
static unsigned int options_parse(int argc, char **argv, struct command_line *q)
{
	unsigned int given = 0;
	int o;

	while ((o = getopt_long(argc, argv, "vh", long_options, NULL)) != -1) {
		switch (o) {
		case 'h':
			fputs(help, stdout);
			exit(0);
		case 'V':
			puts("tally-node " TALLY_VERSION_TEXT);
			exit(0);
		case 'v':
			dataplane_be_verbose();
			continue;
		case 'p':
			pin_parse(optarg, q);
			continue;
		case MODE:
			q->mode = mode_parse(optarg);
			break;
		case SLOTS:
			q->slots = slots_parse("--slots", optarg, 2);
			break;
		case POOL:
			q->pool.slots = slots_parse("--pool", optarg, 0);
			break;
		case POLICY:
			q->pool.policy = policy_parse(optarg);
			break;
		case BORROW:
			q->borrow_any = !strcmp(optarg, "hash");
			q->borrow_base = q->borrow_any ? 0 : slots_parse("--borrow", optarg, 0);
			break;
		case BELOW:
			q->role.below = ranks_of("--below", optarg);
			break;
		case VIA:
			via_parse(optarg, &q->role);
			break;
		case MEMORY:
			q->memory =
				(size_t)number_parse("--memory", optarg, "of MiB ", MEMORY_MIB_MAX)
				<< 20;
			break;
		case THREADS:
			q->threads = number_parse("--threads", optarg, "", LISTEN_THREADS_MAX);
			break;
		case '?':
			fputs(help_hint, stderr);
			exit(USAGE);
		}
		given |= o;
	}
	q->replace = given & REPLACE;
	q->json = given & JSON;
	q->all = given & ALL;
	q->share = given & SHARE;
	q->role.root = !(given & BELOW);
	q->has_pool = given & POOL;
	q->borrows = given & BORROW;
	return given;
}

static const struct command *command_find(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		const struct command *c = &commands[i];

		if (argc > 0 && !strcmp(argv[0], c->name) &&
		    (!c->more || (argc > 1 && !strcmp(argv[1], c->more))))
			return c;
	}
	if (argc > 1 && !strcmp(argv[0], "job"))
		usage("job %s: unknown command; the commands are job add, job del and job list",
		      argv[1]);
	if (argc > 0 && !strcmp(argv[0], "job"))
		usage("job: the commands are job add, job del and job list");
	if (argc > 0)
		usage("%s: unknown command; the commands are attach, detach, job, stats and spill",
		      argv[0]);
	fputs(help, stderr);
	exit(USAGE);
}

int main(int argc, char **argv)
{
	static struct command_line q = {
		.pin = DATAPLANE_PIN, .memory = 64 << 20, .threads = 1, .pool.policy.preempts = true
	};
	const struct command *c;
	struct why why = { "" };
	unsigned int given;
	int words, r;

	file_watch_output();
	given = options_parse(argc, argv, &q);
	c = command_find(argc - optind, argv + optind);
	words = c->more ? 2 : 1;
	setlinebuf(stdout); /* in order with what goes to stderr */
	q.arguments = argv + optind + words;
	q.count = argc - optind - words;
	for (size_t i = 0; long_options[i].name; i++)
		if (is_bit(long_options[i].val) && long_options[i].val & given & ~c->options)
			usage("%s%s%s does not take --%s", c->name, c->more ? " " : "",
			      c->more ? c->more : "", long_options[i].name);
	if (q.count < c->arguments || q.count > c->arguments_max)
		usage("%s%s%s: %s", c->name, c->more ? " " : "", c->more ? c->more : "",
		      q.count < c->arguments ? "an argument is missing" : "too many arguments");
	if (c->run == node_attach && !q.count && !q.replace)
		usage("attach: name the interfaces");
	if (given & POLICY && !q.has_pool)
		usage("attach --policy: of which --pool?");
	if (q.borrows && q.role.root)
		usage("job add --borrow: name the ranks --below: who borrows sends sums on");
	if (geteuid() != 0 && c->run != node_spill)
		errx(1, "must be run as root: BPF programs and maps need it");

	r = c->run(&q, &why);
	if (r < 0)
		errx(1, "%s", *why.text ? why.text : strerror(-r));
	return 0;
}
