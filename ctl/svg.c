// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Machines are boxes in columns (layers.h). A link leaves at the right of one box and comes in at
 * the left of another, in a row of its own, where its figures are.
 */
#include "svg.h"

#include <string.h>

#include "common/owned.h"
#include "svg_private.h"
#include "table.h"

enum {
	MARGIN = 24,
	HEAD = 64, /* above the machines */
	ROW = 30,
	BOX_GAP = 8, /* between two boxes */
	COLUMN_GAP = 260, /* for links, */
	FIGURES = 165, /* which have their figures at the end, where they are level */
	BULGE = 40, /* before these, of links within a column */
	LETTER = 7, /* as wide as a letter is taken to be */
	NAME_LETTERS = 32, /* of longer names the beginning is shown */
	NOTE_LETTERS = 11, /* "256 workers" */
	WHY_LETTERS = 120,
	LEGEND = 96, /* as wide as one of its colours */
	WIDTH_MIN = 720,
};

/* How full a link is, in parts of its line, in its fuller direction. */
static const struct {
	double below;
	const char *name; /* of the class */
	const char *words;
} fullness[] = {
	{ 0.01, "idle", "under 1 %" }, { 0.25, "quarter", "to 25 %" }, { 0.5, "half", "to 50 %" },
	{ 0.75, "most", "to 75 %" },   { 0.9, "nearly", "to 90 %" },   { 1e300, "full", "fuller" },
};

enum {
	FULLNESSES = sizeof(fullness) / sizeof(*fullness),
};

/* --- machines -------------------------------------------------------------------------------- */

static bool is_root(const struct svg_drawn *d, int m)
{
	return d->part[m] && field_number(d->part[m], "depth") == 0;
}

/* Beside its name: what it does for the job, or that it takes no runs. */
static void note_of(const struct svg_drawn *d, int m, char *ret, size_t size)
{
	const double workers = field_number(d->part[m], "workers");

	*ret = '\0';
	if (d->part[m] && is_root(d, m))
		snprintf(ret, size, "root");
	else if (json_is_true(field(d->part[m], "sums")))
		snprintf(ret, size, "sums");
	else if (workers > 0)
		snprintf(ret, size, "%.0f worker%s", workers, workers > 1 ? "s" : "");
	else if (json_is_true(field(d->machine[m], "cordoned")))
		snprintf(ret, size, "cordoned");
}

static void machine_title(const struct svg_drawn *d, int m)
{
	const json_t *j = d->machine[m];
	const double workers = field_number(d->part[m], "workers");
	FILE *out = d->out;

	fputs("<title>", out);
	svg_say(out, field_text(j, "kind"));
	fputc(' ', out);
	svg_say(out, field_text(j, "name"));
	if (*field_text(j, "address")) {
		fputs(", ", out);
		svg_say(out, field_text(j, "address"));
	}
	if (!strcmp(field_text(j, "kind"), "node")) {
		fprintf(out, ", %s, %.0f of %.0f slots free, %.0f jobs, %.0f running, tallyd ",
			json_is_true(field(j, "cordoned")) ? "cordoned" : "ready",
			field_number(j, "slots_free"), field_number(j, "slots"),
			field_number(j, "jobs"), field_number(j, "running"));
		svg_say(out, field_text(j, "version"));
	}
	if (is_root(d, m))
		fputs("; the root", out);
	else if (json_is_true(field(d->part[m], "sums")))
		fputs("; it sums", out);
	if (workers > 0)
		fprintf(out, "; %.0f worker%s of the job", workers, workers > 1 ? "s" : "");
	fputs("</title>", out);
}

static const char *class_of(const struct svg_drawn *d, int m)
{
	const char *kind = field_text(d->machine[m], "kind");

	return !strcmp(kind, "node") ? "node" : !strcmp(kind, "switch") ? "switch" : "host";
}

static double left_of(const struct svg_drawn *d, int m)
{
	return MARGIN + d->place[m].column * (d->box + COLUMN_GAP);
}

static double top_of(const struct svg_drawn *d, int m)
{
	return HEAD + d->place[m].row * ROW + (double)BOX_GAP / 2;
}

static double middle_of(const struct svg_drawn *d, int m)
{
	return HEAD + (d->place[m].row + (double)d->place[m].rows / 2) * ROW;
}

static void machine_draw(const struct svg_drawn *d, int m)
{
	const double x = left_of(d, m), y = middle_of(d, m) + 4;
	char note[32];

	note_of(d, m, note, sizeof(note));
	fprintf(d->out, "<g class=\"%s%s%s\">", class_of(d, m), is_root(d, m) ? " root" : "",
		json_is_true(field(d->part[m], "sums")) ? " sums" : "");
	machine_title(d, m);
	fprintf(d->out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"%d\"/>", x,
		top_of(d, m), d->box, d->place[m].rows * ROW - BOX_GAP,
		!strcmp(class_of(d, m), "switch") ? 11 : 4);
	fprintf(d->out, "<text x=\"%.1f\" y=\"%.1f\">", x + LETTER, y);
	svg_say_some(d->out, field_text(d->machine[m], "name"), NAME_LETTERS);
	fputs("</text>", d->out);
	if (*note)
		fprintf(d->out, "<text class=\"note\" x=\"%.1f\" y=\"%.1f\">%s</text>",
			x + d->box - LETTER, y, note);
	fputs("</g>\n", d->out);
}

/* --- links ----------------------------------------------------------------------------------- */

static double load_of(const struct svg_drawn *d, int l, int end)
{
	return field_number(d->link[l], end ? "to.bytes_per_second" : "from.bytes_per_second");
}

static double line_of(const struct svg_drawn *d, int l)
{
	return field_number(d->link[l], "rate_mbps") * 125000;
}

static double use_of(const struct svg_drawn *d, int l)
{
	const double a = load_of(d, l, 0), b = load_of(d, l, 1);

	return line_of(d, l) > 0 ? (a > b ? a : b) / line_of(d, l) : 0;
}

static unsigned int fullness_of(double use)
{
	unsigned int i = 0;

	while (i + 1 < FULLNESSES && use >= fullness[i].below)
		i++;
	return i;
}

static void place_say(FILE *out, const json_t *end)
{
	svg_say(out, field_text(end, "name"));
	if (*field_text(end, "port")) {
		fputc(' ', out);
		svg_say(out, field_text(end, "port"));
	}
}

static void end_say(FILE *out, const json_t *end)
{
	fputs("; ", out);
	svg_say(out, field_text(end, "name"));
	fputs(" sends ", out);
	svg_bits(out, field_number(end, "bytes_per_second"));
	fputs(", in 5 s ", out);
	svg_bits(out, field_number(end, "forecast_bytes_per_second"));
}

static void link_title(const struct svg_drawn *d, int l)
{
	const json_t *j = d->link[l];

	fputs("<title>", d->out);
	place_say(d->out, field(j, "from"));
	fputs(" to ", d->out);
	place_say(d->out, field(j, "to"));
	fputs(": ", d->out);
	if (line_of(d, l) > 0) {
		svg_bits(d->out, line_of(d, l));
		fputs(" each way", d->out);
	} else {
		fputs("what its line carries is not known", d->out);
	}
	end_say(d->out, field(j, "from"));
	end_say(d->out, field(j, "to"));
	if (d->branch[l]) {
		fputs("; towards the root ", d->out);
		svg_bits(d->out, field_number(d->branch[l], "up_bytes_per_second"));
		fputs(", back ", d->out);
		svg_bits(d->out, field_number(d->branch[l], "down_bytes_per_second"));
	}
	fputs("</title>", d->out);
}

/* In a unit that fits all of them: "16", "0.006". */
static void in_unit(double bytes_per_second, double unit, char *ret, size_t size)
{
	const double n = bytes_per_second * 8 / unit;

	snprintf(ret, size, n < 9.95 && n >= 0.0005 ? "%.2g" : "%.0f", n);
}

/* "up 16, down 6.1 of 100 Mbit/s" in a tree; elsewhere arrows say which way. */
static void figures_say(const struct svg_drawn *d, int l, bool is_within_column)
{
	static const struct {
		double is;
		const char *name;
	} units[] = { { 1e9, "Gbit/s" }, { 1e6, "Mbit/s" }, { 1e3, "kbit/s" }, { 1, "bit/s" } };
	const json_t *branch = d->branch[l];
	const int near = d->line[l].near;
	const double back = branch ? field_number(branch, "up_bytes_per_second")
				   : load_of(d, l, !near);
	const double there = branch ? field_number(branch, "down_bytes_per_second")
				    : load_of(d, l, near);
	const double most = line_of(d, l) > 0 ? line_of(d, l) : back > there ? back : there;
	char of_back[32], of_there[32], of_line[32];
	size_t u = 0;

	while (u < 3 && most * 8 < units[u].is)
		u++;
	in_unit(back, units[u].is, of_back, sizeof(of_back));
	in_unit(there, units[u].is, of_there, sizeof(of_there));
	in_unit(line_of(d, l), units[u].is, of_line, sizeof(of_line));
	fprintf(d->out, "%s %s%s %s",
		branch		   ? "up"
		: is_within_column ? "\xe2\x86\x91"
				   : "\xe2\x86\x90",
		of_back,
		branch		   ? ", down"
		: is_within_column ? " \xe2\x86\x93"
				   : " \xe2\x86\x92",
		of_there);
	if (line_of(d, l) > 0)
		fprintf(d->out, " of %s", of_line);
	fprintf(d->out, " %s", units[u].name);
}

static void link_draw(const struct svg_drawn *d, int l)
{
	const bool has_tree = json_array_size(field(d->job, "tree"));
	const struct layers_link *line = &d->line[l];
	const int near = line->end[line->near], far = line->end[!line->near];
	const bool within = d->place[near].column == d->place[far].column;
	const double x2 = left_of(d, far), level = x2 - FIGURES;
	const double y2 = HEAD + (d->place[far].row + line->arrives + 0.5) * ROW;
	const double x1 = left_of(d, near) + (within ? 0 : d->box);
	const double y1 = middle_of(d, near) +
			  (within ? d->place[near].rows * ROW / 2.0 - BOX_GAP : 0);
	const double bend = within ? level - BULGE : (x1 + level) / 2;

	fprintf(d->out, "<g class=\"link %s%s%s\">", fullness[fullness_of(use_of(d, l))].name,
		line_of(d, l) > 0 ? "" : " unknown",
		d->branch[l] ? " branch"
		: has_tree   ? " other"
			     : "");
	link_title(d, l);
	fprintf(d->out, "<path d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1fH%.1f\"/>", x1, y1, bend,
		y1, bend, y2, level, y2, x2);
	fprintf(d->out, "<text x=\"%.1f\" y=\"%.1f\">", x2 - 5, y2 - 4);
	figures_say(d, l, within);
	fputs("</text></g>\n", d->out);
}

/* --- the whole ------------------------------------------------------------------------------- */

struct palette {
	const char *ground, *ink, *faint, *box, *edge, *node, *sums, *root;
	const char *full[FULLNESSES];
};

static const struct palette light = {
	"#fff",	   "#1d2329", "#5b6570",
	"#f3f5f7", "#8a949e", "#dcebff",
	"#d3f0dc", "#ffd9a8", { "#9aa3ad", "#2b8a5f", "#7aa32d", "#c99400", "#e06a1b", "#d11f2d" },
};
static const struct palette dark = {
	"#14181c", "#e4e8ec", "#9aa5b0",
	"#242a30", "#7a858f", "#1d3a5f",
	"#1f4a30", "#6b4411", { "#66707a", "#45c08a", "#a6cf4f", "#f0c23c", "#ff9450", "#ff5a62" },
};

/* Without custom properties, which not every program knows. */
static void colours_print(FILE *out, const struct palette *p)
{
	fprintf(out,
		".ground{fill:%s}text{fill:%s}.note,.words,.link text{fill:%s}"
		"rect{fill:%s;stroke:%s}.node rect{fill:%s}"
		".sums rect{fill:%s}.root rect{fill:%s}\n",
		p->ground, p->ink, p->faint, p->box, p->edge, p->node, p->sums, p->root);
	for (unsigned int i = 0; i < FULLNESSES; i++)
		fprintf(out, ".%s path{stroke:%s}", fullness[i].name, p->full[i]);
	fputc('\n', out);
}

static void style_print(FILE *out)
{
	fputs("<style>\n"
	      "text{font:12px sans-serif}.head{font-size:14px}.note,.words{font-size:11px}\n"
	      ".note,.link text{text-anchor:end}.link text{font-size:10px}\n"
	      ".switch rect{stroke-dasharray:4 3}.sums rect,.root rect{stroke-width:2}\n"
	      "path{fill:none;stroke-width:2}.unknown path{stroke-dasharray:2 4}\n"
	      ".branch path{stroke-width:5}.other{opacity:.45}\n",
	      out);
	colours_print(out, &light);
	fputs("@media (prefers-color-scheme:dark){\n", out);
	colours_print(out, &dark);
	fputs("}\n</style>\n", out);
}

static void head_print(const struct svg_drawn *d)
{
	FILE *out = d->out;

	fprintf(out, "<text class=\"head\" x=\"%d\" y=\"%d\">cluster ", MARGIN, MARGIN);
	svg_say_some(out, field_text(d->topology, "cluster.name"), NAME_LETTERS);
	fputs(", as node ", out);
	svg_say_some(out, field_text(d->topology, "cluster.node"), NAME_LETTERS);
	fputs(" sees it", out);
	if (d->job) {
		fputs("; job ", out);
		svg_say_some(out, field_text(d->job, "name"), NAME_LETTERS);
		fprintf(out, " of %.0f workers: ", field_number(d->job, "workers"));
		svg_say_some(out, field_text(d->job, "state"), NAME_LETTERS);
		if (*field_text(d->job, "root")) {
			fputs(", its root is ", out);
			svg_say_some(out, field_text(d->job, "root"), NAME_LETTERS);
		}
	}
	fprintf(out, "</text>\n<text class=\"words\" x=\"%d\" y=\"%d\">", MARGIN, MARGIN + 18);
	svg_say_some(out, field_text(d->job, "why"), WHY_LETTERS);
	fputs("</text>\n", out);
}

static void legend_print(FILE *out, double y)
{
	for (unsigned int i = 0; i < FULLNESSES; i++) {
		const unsigned int x = MARGIN + i * LEGEND;

		fprintf(out,
			"<g class=\"%s\"><path d=\"M%u %.1fh24\"/><text class=\"words\" x=\"%u\" "
			"y=\"%.1f\">%s</text></g>\n",
			fullness[i].name, x, y, x + 30, y + 4, fullness[i].words);
	}
}

/* As wide as the longest name, with a note where there is one. */
static double box_of(const struct svg_drawn *d)
{
	unsigned int letters = 4;

	for (int m = 0; m < d->machines; m++) {
		unsigned int needed = svg_letters(field_text(d->machine[m], "name"));
		char note[32];

		note_of(d, m, note, sizeof(note));
		if (needed > NAME_LETTERS)
			needed = NAME_LETTERS + 1;
		if (*note)
			needed += 1 + strlen(note);
		if (needed > letters)
			letters = needed;
	}
	return (letters + 2) * LETTER;
}

static void all_print(const struct svg_drawn *d)
{
	const double needed = 2 * MARGIN + d->columns * d->box +
			      (d->columns > 1 ? d->columns - 1 : 0) * COLUMN_GAP;
	const double width = needed > WIDTH_MIN ? needed : WIDTH_MIN;
	const double height = HEAD + (double)d->rows * ROW + 2 * MARGIN;

	fprintf(d->out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		"viewBox=\"0 0 %.0f %.0f\">\n",
		width, height, width, height);
	style_print(d->out);
	fputs("<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n", d->out);
	head_print(d);
	for (int l = 0; l < d->links; l++)
		link_draw(d, l);
	for (int m = 0; m < d->machines; m++)
		machine_draw(d, m);
	legend_print(d->out, height - MARGIN);
	fputs("</svg>\n", d->out);
}

int svg_print(const json_t *topology, const json_t *job, FILE *out, struct why *why)
{
	_cleanup_(svg_drawn_close) struct svg_drawn d = { .topology = topology,
							  .job = job,
							  .out = out };
	int first, r = svg_drawn_make(&d, why);

	if (r < 0)
		return r;
	first = svg_number_of(&d, field_text(job, "root"));
	r = layers_make(d.place, d.machines, d.line, d.links, first, &d.columns, &d.rows);
	if (r < 0)
		return r;
	d.box = box_of(&d);
	all_print(&d);
	return 0;
}
