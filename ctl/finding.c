// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <jansson.h>
#include <string.h>

#include "ctl.h"
#include "finding.h"

enum {
	LEVEL_COLUMNS = 6,
	CHECK_COLUMNS = 12,
	INDENT = 2 + LEVEL_COLUMNS + CHECK_COLUMNS,
	TEXT_COLUMNS_MIN = 40, /* however narrow the terminal is */
};

static const struct {
	const char *name;
	enum colour colour;
} levels[FINDING_LEVELS] = {
	[FINDING_OK] = { "ok", COLOUR_GREEN },
	[FINDING_UNKNOWN] = { "?", COLOUR_DIM },
	[FINDING_WARN] = { "warn", COLOUR_YELLOW },
	[FINDING_FAIL] = { "fail", COLOUR_RED },
};

void finding_add(struct findings *f, enum finding_level level, const char *format, ...)
{
	struct finding *finding = &f->finding[f->count];
	va_list values;

	f->of_level[level]++;
	if (f->count == FINDINGS_MAX)
		return;
	*finding = (struct finding){ .level = level, .check = f->check };
	snprintf(finding->subject, sizeof(finding->subject), "%s", f->subject ? f->subject : "");
	va_start(values, format);
	vsnprintf(finding->text, sizeof(finding->text), format, values);
	va_end(values);
	f->count++;
}

void finding_mend(struct findings *f, const char *format, ...)
{
	struct finding *finding = &f->finding[f->count ? f->count - 1 : 0];
	va_list values;

	va_start(values, format);
	vsnprintf(finding->mend, sizeof(finding->mend), format, values);
	va_end(values);
}

/* Bytes of the words that fit; at least one word. */
static size_t line_bytes(const char *text, unsigned int columns)
{
	size_t bytes = style_bytes(text, columns), end = bytes;

	if (!text[bytes])
		return bytes;
	while (end && text[end] != ' ')
		end--;
	return end ? end : bytes + strcspn(text + bytes, " ");
}

/* The rest of the line, and what does not fit below it. */
static void wrapped_print(FILE *out, const struct style *style, const char *text)
{
	unsigned int width = style->width && style->width < STYLE_WIDTH ? style->width
									: STYLE_WIDTH;
	unsigned int columns = width > INDENT + TEXT_COLUMNS_MIN ? width - INDENT
								 : TEXT_COLUMNS_MIN;

	for (;;) {
		size_t bytes = line_bytes(text, columns);

		fprintf(out, "%.*s\n", (int)bytes, text);
		text += bytes + strspn(text + bytes, " ");
		if (!*text)
			return;
		fprintf(out, "%*s", INDENT, "");
	}
}

static void finding_print(FILE *out, const struct style *style, const struct finding *finding)
{
	enum colour colour = levels[finding->level].colour;

	fprintf(out, "  %s%-*s%s%-*s", style_begin(style, colour), LEVEL_COLUMNS,
		levels[finding->level].name, style_end(style, colour), CHECK_COLUMNS,
		finding->check);
	wrapped_print(out, style, finding->text);
	if (*finding->mend)
		fprintf(out, "%*s%s%s%s\n", INDENT, "", style_begin(style, COLOUR_BOLD),
			finding->mend, style_end(style, COLOUR_BOLD));
}

void findings_print(FILE *out, const struct style *style, const struct findings *f)
{
	const char *subject = NULL;

	for (unsigned int i = 0; i < f->count; i++) {
		const struct finding *finding = &f->finding[i];

		if (!subject || strcmp(subject, finding->subject) != 0)
			fprintf(out, "%s%s%s%s\n", subject ? "\n" : "",
				style_begin(style, COLOUR_BOLD),
				*finding->subject ? finding->subject : "node",
				style_end(style, COLOUR_BOLD));
		subject = finding->subject;
		finding_print(out, style, finding);
	}
	fprintf(out, "\n%u failed, %u warnings, %u not checked, %u ok\n", f->of_level[FINDING_FAIL],
		f->of_level[FINDING_WARN], f->of_level[FINDING_UNKNOWN], f->of_level[FINDING_OK]);
}

void findings_dump(const struct findings *f)
{
	_cleanup_(json_decrefp) json_t *list = json_array();

	for (unsigned int i = 0; i < f->count; i++) {
		const struct finding *finding = &f->finding[i];

		json_array_append_new(list,
				      json_pack("{ss ss ss ss ss}", "level",
						finding->level == FINDING_UNKNOWN
							? "unknown"
							: levels[finding->level].name,
						"check", finding->check, "port", finding->subject,
						"text", finding->text, "mend", finding->mend));
	}
	ctl_dump(list);
}
