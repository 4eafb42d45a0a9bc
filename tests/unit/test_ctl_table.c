// SPDX-License-Identifier: GPL-2.0-only
/* Tables and bars: where columns stand, and what happens where there is no room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/table.h"
#include "ctl/top_frame.h"

static const struct column columns[] = {
	{ "NAME", "name", cell_text, TABLE_ELASTIC },
	{ "RATE", "in.rate", cell_rate, TABLE_RIGHT },
	{ "BAD", "bad", cell_bad_rate, TABLE_RIGHT },
	{ "TAGS", "tags", cell_list, TABLE_LEFT },
};

static void assert_table(const struct style *style, const char *rows, size_t most,
			 const char *expected)
{
	json_t *json = json_loads(rows, JSON_DECODE_ANY, NULL);
	size_t length = 0;
	char *text = NULL;
	FILE *out = open_memstream(&text, &length);

	assert_int_equal(table_print(out, style, COLUMNS(columns), json, most), 0);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
	json_decref(json);
}

#define ROWS                                                                                        \
	"[{\"name\":\"resnet-imagenet\",\"in\":{\"rate\":1500},\"bad\":30,\"tags\":[\"a\",\"b\"]}," \
	"{\"name\":\"b\",\"in\":{\"rate\":0},\"bad\":0,\"tags\":[]}]"

static void columns_are_as_wide_as_what_is_in_them(void **state)
{
	assert_table(&(struct style){ 0 }, ROWS, 0,
		     "NAME                RATE   BAD  TAGS\n"
		     "resnet-imagenet  1.5 k/s  30/s  a, b\n"
		     "b                    0/s   0/s  -\n");
}

static void what_is_missing_or_of_another_type_is_a_dash(void **state)
{
	assert_table(&(struct style){ 0 }, "[{},[],null,{\"name\":7,\"in\":3,\"bad\":\"x\"}]", 0,
		     "NAME  RATE  BAD  TAGS\n"
		     "-        -    -  -\n"
		     "-        -    -  -\n"
		     "-        -    -  -\n"
		     "-        -    -  -\n");
	assert_table(&(struct style){ 0 }, "{}", 0, "NAME  RATE  BAD  TAGS\n");
}

static void elastic_columns_give_way_first(void **state)
{
	assert_table(&(struct style){ .width = 30 }, ROWS, 0,
		     "NAME          RATE   BAD  TAGS\n"
		     "resnet-i~  1.5 k/s  30/s  a, b\n"
		     "b              0/s   0/s  -\n");
}

static void no_line_is_wider_than_the_terminal(void **state)
{
	for (unsigned int width = 1; width < 60; width++) {
		const struct style style = { .width = width, .utf8 = width % 2 };
		json_t *json = json_loads(ROWS, 0, NULL);
		size_t length = 0;
		char *text = NULL;
		FILE *out = open_memstream(&text, &length);

		assert_int_equal(table_print(out, &style, COLUMNS(columns), json, 0), 0);
		fclose(out);
		for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
			assert_true(style_columns(line) <= width);
		free(text);
		json_decref(json);
	}
}

static void rows_left_out_are_counted(void **state)
{
	assert_table(&(struct style){ 0 }, ROWS, 1,
		     "NAME                RATE   BAD  TAGS\n"
		     "resnet-imagenet  1.5 k/s  30/s  a, b\n"
		     "+ 1 more\n");
}

static void only_bad_news_is_red(void **state)
{
	assert_table(&(struct style){ .colour = true }, ROWS, 0,
		     "\033[2mNAME\033[0m                \033[2mRATE\033[0m   \033[2mBAD\033[0m  "
		     "\033[2mTAGS\033[0m\n"
		     "resnet-imagenet  1.5 k/s  \033[1;31m30/s\033[0m  a, b\n"
		     "b                    0/s   0/s  -\n");
}

static void a_bar_is_as_full_as_its_share(void **state)
{
	const struct style ascii = { 0 }, utf8 = { .utf8 = true };
	char text[64];

	style_bar(&ascii, 0.5, 4, text, sizeof(text));
	assert_string_equal(text, "##..");
	style_bar(&utf8, 0.5, 3, text, sizeof(text));
	assert_string_equal(text, "█▌░");
	style_bar(&utf8, 2, 3, text, sizeof(text));
	assert_string_equal(text, "███");
	style_bar(&utf8, -1, 3, text, sizeof(text));
	assert_string_equal(text, "░░░");
	style_bar(&utf8, 0.0 / 0.0, 3, text, sizeof(text));
	assert_string_equal(text, "░░░");
	for (int i = 0; i <= 1000; i++) {
		style_bar(&utf8, i / 1000.0, 10, text, sizeof(text));
		assert_int_equal(style_columns(text), 10);
	}
}

/* The frame of a job with these rates, one after the other. */
static void assert_sparkline(const double *rate, unsigned int count, const char *expected)
{
	const struct style style = { .utf8 = true };
	json_t *job = json_pack("{ss}", "name", "a"), *frame = json_pack("{s[o]}", "jobs", job);
	struct top_history *history = calloc(1, sizeof(*history));
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);

	for (unsigned int i = 0; i < count; i++) {
		json_object_set_new(job, "bytes_per_second", json_real(rate[i]));
		top_history_add(history, frame);
	}
	assert_int_equal(top_frame_print(out, &style, frame, history, NULL), 0);
	fclose(out);
	assert_true(strstr(text, expected));
	free(text);
	free(history);
	json_decref(frame);
}

static void a_sparklines_highest_bar_is_full(void **state)
{
	assert_sparkline((const double[]){ 0, 50, 100 }, 3, " ▁▄█\n");
	assert_sparkline((const double[]){ 0, 0 }, 2, " ▁▁\n");
}

static void history_keeps_the_last_rates_and_forgets_jobs_that_went(void **state)
{
	static struct top_history history;
	json_t *frame = json_pack("{s[{sssi}]}", "jobs", "name", "a", "bytes_per_second", 0);
	json_t *none = json_pack("{s[]}", "jobs");
	json_t *job = json_array_get(json_object_get(frame, "jobs"), 0);

	for (int i = 1; i <= 25; i++) {
		json_object_set_new(job, "bytes_per_second", json_integer(i));
		top_history_add(&history, frame);
	}
	assert_string_equal(history.job[0].name, "a");
	assert_int_equal(history.job[0].count, TOP_HISTORY);
	for (int i = 0; i < TOP_HISTORY; i++)
		assert_true(history.job[0].rate[i] == 25 - TOP_HISTORY + 1 + i);
	top_history_add(&history, none);
	assert_string_equal(history.job[0].name, "");
	top_history_add(&history, frame);
	assert_int_equal(history.job[0].count, 1);
	json_decref(frame);
	json_decref(none);
}

static void more_jobs_than_have_a_history_are_no_harm(void **state)
{
	static struct top_history history;
	json_t *jobs = json_array(), *frame = json_pack("{so}", "jobs", jobs);

	for (int i = 0; i < TOP_HISTORY_JOBS + 10; i++)
		json_array_append_new(jobs, json_pack("{so}", "name", json_sprintf("job-%d", i)));
	json_array_append_new(jobs, json_pack("{so}", "name", json_sprintf("%0200d", 1)));
	top_history_add(&history, frame);
	top_history_add(&history, frame);
	assert_string_equal(history.job[TOP_HISTORY_JOBS - 1].name, "job-255");
	assert_int_equal(history.job[TOP_HISTORY_JOBS - 1].count, 2);
	json_decref(frame);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_as_wide_as_what_is_in_them),
		cmocka_unit_test(what_is_missing_or_of_another_type_is_a_dash),
		cmocka_unit_test(elastic_columns_give_way_first),
		cmocka_unit_test(no_line_is_wider_than_the_terminal),
		cmocka_unit_test(rows_left_out_are_counted),
		cmocka_unit_test(only_bad_news_is_red),
		cmocka_unit_test(a_bar_is_as_full_as_its_share),
		cmocka_unit_test(a_sparklines_highest_bar_is_full),
		cmocka_unit_test(history_keeps_the_last_rates_and_forgets_jobs_that_went),
		cmocka_unit_test(more_jobs_than_have_a_history_are_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
