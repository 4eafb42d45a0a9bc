// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * tallyctl top. On a terminal it draws on the alternate screen, again after each interval and each
 * change of the size, and restores the terminal when it ends or stops. Elsewhere it prints frames
 * as lines.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <termios.h>

#include "ctl.h"
#include "show.h"
#include "top_frame.h"

/* Hides the cursor; cuts long lines instead of wrapping them. */
#define SCREEN_ENTER "\033[?1049h\033[?25l\033[?7l"
#define SCREEN_LEAVE "\033[?7h\033[?25h\033[?1049l"
#define SCREEN_HOME "\033[H"
#define LINE_REST "\033[K" /* clear to its end */
#define SCREEN_REST "\033[J"

static const char foot[] = "q quits; AGAIN: messages that were counted before; REFUSED: over "
			   "their tenant's rate";

struct screen {
	bool live; /* a terminal that we draw on */
	int keys; /* -1 if standard input is no terminal */
	int signals;
	int timer;
	struct termios before;
	struct top_history history;
	json_t *frame; /* the last one; NULL: none */
	struct why trouble; /* why there is no newer one, or "" */
};

static void screen_enter(struct screen *s)
{
	struct termios raw = s->before;

	raw.c_lflag &= ~(ICANON | ECHO); /* ^C and ^Z stay signals */
	if (s->keys >= 0)
		tcsetattr(s->keys, TCSADRAIN, &raw);
	fputs(SCREEN_ENTER, stdout);
	fflush(stdout);
}

static void screen_leave(struct screen *s)
{
	if (s->keys >= 0)
		tcsetattr(s->keys, TCSADRAIN, &s->before);
	fputs(SCREEN_LEAVE, stdout);
	fflush(stdout);
}

static void screen_close(struct screen *s)
{
	if (s->live)
		screen_leave(s);
	closep(&s->signals);
	closep(&s->timer);
	json_decref(s->frame);
}

/* Overwrites the old lines, so that nothing flickers. */
static void screen_write(const char *text, unsigned int height)
{
	fputs(SCREEN_HOME, stdout);
	for (unsigned int line = 1; *text && line <= height; line++) {
		size_t length = strcspn(text, "\n");

		fwrite(text, 1, length, stdout);
		fputs(LINE_REST, stdout);
		text += length;
		if (*text && line < height)
			fputs("\r\n", stdout);
		text += *text == '\n';
	}
	fputs(SCREEN_REST, stdout);
	fflush(stdout);
}

static int page_print(const struct ctl *ctl, const struct screen *s, const struct style *style,
		      FILE *out, const struct top_history *history, const char *foot,
		      struct why *why)
{
	if (ctl->value[OPTION_CLUSTER])
		return show_cluster_frame(ctl, style, s->frame, out, why);
	return top_frame_print(out, style, s->frame, history, foot);
}

static int screen_draw(const struct ctl *ctl, const struct screen *s, struct why *why)
{
	const struct style style = style_of(STDOUT_FILENO);
	_cleanup_(freep) char *text = NULL;
	size_t length = 0;
	FILE *page = open_memstream(&text, &length);
	int r = 0;

	if (!page)
		return -ENOMEM;
	if (s->frame)
		r = page_print(ctl, s, &style, page, &s->history, *s->trouble.text ? NULL : foot,
			       why);
	if (*s->trouble.text)
		fprintf(page, "\n%s%s%s", style_begin(&style, COLOUR_RED), s->trouble.text,
			style_end(&style, COLOUR_RED));
	if (fclose(page) == EOF)
		r = -ENOMEM;
	if (r == 0)
		screen_write(text, style.height ? style.height : UINT16_MAX);
	return r;
}

enum {
	LIVE_TIMEOUT_MS = 1000, /* top does not read keys while it waits for tallyd */
};

/* Of a cluster there are two answers in a frame: jobs, and links. */
static int frame_ask(const struct ctl *ctl, json_t **ret, struct why *why)
{
	_cleanup_(json_decrefp) json_t *jobs = NULL;
	_cleanup_(json_decrefp) json_t *topology = NULL;
	int r;

	if (!ctl->value[OPTION_CLUSTER])
		return ctl_ask(ctl, request_make(ctl), ret, why);
	r = ctl_ask(ctl, json_pack("{ss}", "do", "cluster-jobs"), &jobs, why);
	if (r == 0)
		r = ctl_ask(ctl, json_pack("{ss}", "do", "topology"), &topology, why);
	if (r == 0)
		*ret = json_pack("{sOsO}", "jobs", jobs, "topology", topology);
	return r;
}

/* If tallyd does not answer for a while, the old frame stays, with the reason below. */
static int frame_get(const struct ctl *ctl, struct screen *s, struct why *why)
{
	struct ctl asking = *ctl;
	json_t *frame = NULL;
	int r;

	if (s->live)
		asking.timeout_ms = LIVE_TIMEOUT_MS;
	r = frame_ask(&asking, &frame, why);

	if (r < 0 && !(s->live && s->frame))
		return r;
	if (r < 0) {
		s->trouble = *why;
		return 0;
	}
	*s->trouble.text = '\0';
	json_decref(s->frame);
	s->frame = frame;
	if (!ctl->value[OPTION_CLUSTER])
		top_history_add(&s->history, frame);
	return 0;
}

static int frame_show(const struct ctl *ctl, struct screen *s, struct why *why)
{
	int r = 0;

	if (s->live)
		return screen_draw(ctl, s, why);
	if (ctl->json)
		ctl_dump(s->frame);
	else
		r = page_print(ctl, s, &ctl->style, stdout,
			       ctl->value[OPTION_ONCE] ? NULL : &s->history, NULL, why);
	if (r == 0 && !ctl->json && !ctl->value[OPTION_ONCE])
		putchar('\n');
	if (fflush(stdout) == EOF)
		return 1; /* the reader has gone */
	return r;
}

/* ^Z: gives the terminal back to the shell until `fg`. */
static void pause_here(struct screen *s)
{
	if (s->live)
		screen_leave(s);
	raise(SIGSTOP);
	if (s->live)
		screen_enter(s);
}

/* 1: the end; 0: draw again. */
static int signal_take(struct screen *s)
{
	struct signalfd_siginfo info;

	if (read(s->signals, &info, sizeof(info)) != sizeof(info))
		return 0;
	if (info.ssi_signo == SIGTSTP)
		pause_here(s);
	return info.ssi_signo != SIGTSTP && info.ssi_signo != SIGWINCH && info.ssi_signo != SIGCONT;
}

static bool key_ends(int fd)
{
	char keys[64];
	ssize_t n = read(fd, keys, sizeof(keys));

	return n == 0 || (n > 0 && (memchr(keys, 'q', n) || memchr(keys, 'Q', n)));
}

/* Waits for what happens next. 1: the end; 0: draw again; 2: a new frame is due. */
static int wait_next(struct screen *s)
{
	struct pollfd fds[] = { { .fd = s->signals, .events = POLLIN },
				{ .fd = s->timer, .events = POLLIN },
				{ .fd = s->live ? s->keys : -1, .events = POLLIN },
				{ .fd = s->live ? -1 : STDOUT_FILENO, .events = 0 } };
	uint64_t expirations;

	if (poll(fds, sizeof(fds) / sizeof(*fds), -1) < 0)
		return errno == EINTR ? 0 : 1;
	if (fds[0].revents)
		return signal_take(s);
	if ((fds[2].revents && key_ends(s->keys)) || fds[3].revents)
		return 1;
	if (fds[1].revents && read(s->timer, &expirations, sizeof(expirations)) > 0)
		return 2;
	return 0;
}

static int screen_open(const struct ctl *ctl, struct screen *s)
{
	static const int wanted[] = {
		SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH
	};
	uint64_t seconds = ctl->value[OPTION_INTERVAL] ? ctl->number[OPTION_INTERVAL] : 1;
	const struct itimerspec every = { { (time_t)seconds, 0 }, { (time_t)seconds, 0 } };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
		sigaddset(&set, wanted[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC);
	s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (s->signals < 0 || s->timer < 0 || timerfd_settime(s->timer, 0, &every, NULL) < 0)
		return -errno;
	if (tcgetattr(STDIN_FILENO, &s->before) == 0)
		s->keys = STDIN_FILENO;
	return 0;
}

static bool is_live(const struct ctl *ctl)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !ctl->json && !ctl->value[OPTION_ONCE] && term &&
	       strcmp(term, "dumb") != 0;
}

int top(const struct ctl *ctl, struct why *why)
{
	_cleanup_(screen_close) struct screen s = { .keys = -1, .signals = -1, .timer = -1 };
	int r, next = 2;

	r = screen_open(ctl, &s);
	if (r < 0)
		return r;
	/* If tallyd does not run, the error is on the ordinary screen. */
	r = frame_get(ctl, &s, why);
	if (r < 0)
		return r;
	s.live = is_live(ctl);
	if (s.live)
		screen_enter(&s);
	while ((r = frame_show(ctl, &s, why)) == 0 && !ctl->value[OPTION_ONCE]) {
		do
			next = wait_next(&s);
		while (!s.live && next == 0);
		if (next == 1)
			return 0;
		if (next == 2)
			r = frame_get(ctl, &s, why);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : 0;
}
