// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * tallyd: the agent of one node. Read main() first: options, set-up, the loop, the end. What is
 * done in between agent/core/ decides (core.h), and driver.c performs.
 */
#include <cap-ng.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>

#include "agent/dataplane/dataplane.h"
#include "agent/edge/log.h"
#include "common/file.h"
#include "driver.h"

enum {
	USAGE = 2, /* exit code: the command line is wrong */
	FILES_MAX = 16384, /* connections of workers, most of all */
	LARGE_BYTES = 128 << 10, /* that are freed are the kernel's again */
};

static const char help[] =
	"usage: tallyd [--config FILE] [--detach] [--verbose]    run a node in the foreground\n"
	"       tallyd [--config FILE] --check                   check the configuration and end\n"
	"\n"
	"  --config FILE   the configuration (" CONFIG_FILE "): tallyd.yaml(5)\n"
	"  --check         check the configuration; with --verbose print it with all defaults\n"
	"  --detach        remove the data plane at the end; otherwise it goes on without tallyd\n"
	"  -v, --verbose   also log details for developers\n"
	"  -h, --help, --version\n"
	"\n"
	"SIGHUP: read the configuration again. SIGTERM, SIGINT: end. tallyctl(1) asks tallyd.\n"
	"Exit codes: 0 (success), 1 (failure), 2 (wrong usage).\n";

static const struct option long_options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "check", no_argument, NULL, 'C' },
	{ "detach", no_argument, NULL, 'd' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

struct agent {
	sd_event *loop;
	struct driver *driver;
};

struct options {
	const char *config;
	bool check;
	bool detach;
	bool verbose;
};

static struct options options_parse(int argc, char **argv)
{
	struct options o = { .config = CONFIG_FILE };
	int c;

	while ((c = getopt_long(argc, argv, "vh", long_options, NULL)) != -1) {
		switch (c) {
		case 'c':
			o.config = optarg;
			break;
		case 'C':
			o.check = true;
			break;
		case 'd':
			o.detach = true;
			break;
		case 'v':
			o.verbose = true;
			break;
		case 'h':
			fputs(help, stdout);
			exit(0);
		case 'V':
			puts("tallyd " TALLY_VERSION_TEXT);
			exit(0);
		default:
			fputs("Run 'tallyd --help' for the usage.\n", stderr);
			exit(USAGE);
		}
	}
	if (optind < argc) {
		warnx("%s: tallyd takes no arguments, only options", argv[optind]);
		exit(USAGE);
	}
	return o;
}

/* --- set-up ---------------------------------------------------------------------------------- */

static int on_reload(sd_event_source *source, const struct signalfd_siginfo *info, void *data)
{
	struct agent *a = data;
	struct why why = { "" };

	log_say(LOG_LEVEL_INFO, "reload by signal", "uid=%u pid=%u", info->ssi_uid, info->ssi_pid);
	driver_reload(a->driver, &why); /* which has logged what is wrong */
	return 0;
}

static int loop_open(struct agent *a)
{
	sigset_t mask;
	int r;

	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGHUP);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	signal(SIGPIPE, SIG_IGN);
	r = sd_event_new(&a->loop);
	if (r >= 0)
		r = sd_event_add_signal(a->loop, NULL, SIGTERM, NULL, NULL);
	if (r >= 0)
		r = sd_event_add_signal(a->loop, NULL, SIGINT, NULL, NULL);
	if (r >= 0)
		r = sd_event_add_signal(a->loop, NULL, SIGHUP, on_reload, a);
	if (r >= 0)
		r = sd_event_set_watchdog(a->loop, true);
	return r < 0 ? r : 0;
}

static bool has_privileges(void)
{
	return capng_have_capability(CAPNG_EFFECTIVE, CAP_BPF) &&
	       capng_have_capability(CAPNG_EFFECTIVE, CAP_NET_ADMIN) &&
	       capng_have_capability(CAPNG_EFFECTIVE, CAP_PERFMON);
}

/*
 * What is left to it: BPF for maps and programs, NET_ADMIN for ports, PERFMON because a reload
 * may load programs, whose pointers the verifier otherwise takes for those of a stranger.
 */
static int privileges_drop(struct why *why)
{
	/* NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): a set of flags */
	const capng_type_t sets = CAPNG_EFFECTIVE | CAPNG_PERMITTED | CAPNG_BOUNDING_SET;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return why_say(why, -errno, "cannot set no_new_privs: %m");
	capng_clear(CAPNG_SELECT_BOTH);
	if (capng_updatev(CAPNG_ADD, sets, CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON, -1) < 0 ||
	    capng_apply(CAPNG_SELECT_BOTH) < 0)
		return why_say(why, -EPERM,
			       "cannot drop privileges; tallyd needs CAP_BPF, "
			       "CAP_NET_ADMIN and CAP_PERFMON");
	return 0;
}

/*
 * Root without CAP_DAC_OVERRIDE, as it is soon, may not write where others own the files: better
 * now than at the first change.
 */
static int places_check(const struct config *c, struct why *why)
{
	char state[CONFIG_PATH_BYTES];
	const char *place[] = { c->pin, NULL };
	struct stat s;

	snprintf(state, sizeof(state), "%s", c->state);
	place[1] = dirname(state);
	for (size_t i = 0; geteuid() == 0 && i < sizeof(place) / sizeof(*place); i++)
		if (stat(place[i], &s) == 0 && s.st_uid != geteuid() && !(s.st_mode & S_IWOTH))
			return why_say(why, -EPERM,
				       "%s belongs to user %u, as which tallyd.service may run: "
				       "systemctl start tallyd, or chown -R %u %s",
				       place[i], s.st_uid, geteuid(), place[i]);
	return 0;
}

static void files_allow(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= FILES_MAX)
		return;
	if (limit.rlim_max < FILES_MAX)
		log_say(LOG_LEVEL_WARNING, "the limit of open files is low", "limit=%llu wanted=%d",
			(unsigned long long)limit.rlim_max, FILES_MAX);
	limit.rlim_cur = limit.rlim_max < FILES_MAX ? limit.rlim_max : FILES_MAX;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int agent_open(struct agent *a, struct config *config, const char *path, struct why *why)
{
	int r;

	files_allow();
	r = places_check(config, why);
	if (r == 0)
		r = loop_open(a);
	if (r == 0)
		r = driver_open(a->loop, config, path, &a->driver, why);
	if (r == 0)
		r = privileges_drop(why);
	return r;
}

static void agent_close(struct agent *a, bool detach)
{
	driver_close(a->driver, detach);
	sd_event_unref(a->loop);
}

static int check(const struct options *o, const struct config *c)
{
	struct why why = { "" };
	int r = driver_check(c, o->config, &why);

	if (r < 0)
		errx(1, "%s: %s", o->config, *why.text ? why.text : strerror(-r));
	if (o->verbose)
		config_print(c, stdout);
	else
		printf("%s: right: %u ports, %u tenants, %u slots\n", o->config, c->ports,
		       c->tenants, c->slots);
	if (*why.text)
		printf("%s\n", why.text);
	if (dataplane_layout_check(c->pin, &why) == -ESTALE)
		printf("%s\n", why.text);
	return 0;
}

int main(int argc, char **argv)
{
	static struct config *config;
	static struct agent a;
	struct why why = { "" };
	unsigned int ports, jobs;
	struct options o;
	int r;

	file_watch_output();
	o = options_parse(argc, argv);
	setlinebuf(stderr);
	mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
	if (driver_config_read(o.config, &config, &why) < 0)
		errx(1, "%s", why.text);
	if (o.check)
		return check(&o, config);
	if (!has_privileges())
		errx(1, "needs CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON: start it as root, or by its "
			"unit (systemctl start tallyd)");
	log_level_set(o.verbose ? LOG_LEVEL_DEBUG : config->log_level);

	r = agent_open(&a, config, o.config, &why);
	if (r < 0) {
		log_say(LOG_LEVEL_ERROR, "cannot start", "%s", *why.text ? why.text : strerror(-r));
		driver_abandon(a.driver);
		return 1;
	}
	core_ports(driver_core(a.driver), &ports);
	jobs = core_books(driver_core(a.driver))->jobs;
	sd_notifyf(0, "READY=1\nSTATUS=%u ports, %u jobs", ports, jobs);
	log_say(LOG_LEVEL_INFO, "ready", "control=%s jobs=%u", config->control_socket, jobs);
	r = sd_event_loop(a.loop);
	sd_notify(0, "STOPPING=1");
	log_say(LOG_LEVEL_INFO, "tallyd stops", "data_plane=%s", o.detach ? "removed" : "goes on");
	agent_close(&a, o.detach);
	return r < 0;
}
