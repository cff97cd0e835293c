/* report: prints results, notes and errors, and writes output to stdout or atomically to a file. */
#include "runner/cli/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/display.h"
#include "base/file.h"
#include "runner/term/term.h"

enum { REPORT_VERSION = 1 };

json_t *dt_report_object(void)
{
    return json_pack("{s:i}", "version", REPORT_VERSION);
}

static dt_status write_out(const dt_strbuf *text, dt_error *err)
{
    if (dt_file_write_all(STDOUT_FILENO, text->data, text->length, NULL) != DT_OK)
        return DT_FAIL(err, DT_ERR_IO, "cannot write to stdout: %s", strerror(errno));
    return DT_OK;
}

static dt_status write_shown(const dt_strbuf *text, bool styled, dt_error *err)
{
    dt_strbuf shown;
    dt_status st;
    dt_term term;

    dt_term_init(&term, STDOUT_FILENO);
    term.colour = term.colour && styled;
    dt_strbuf_init(&shown);
    dt_term_add_whole(&shown, &term, text->data);
    st = write_out(&shown, err);
    dt_strbuf_release(&shown);
    return st;
}

dt_status dt_report_text(const dt_strbuf *text, dt_error *err)
{
    return write_shown(text, false, err);
}

dt_status dt_report_styled(const dt_strbuf *text, dt_error *err)
{
    return write_shown(text, true, err);
}

dt_status dt_report_data(const dt_strbuf *data, dt_error *err)
{
    return dt_term_is_seen() ? dt_report_text(data, err) : write_out(data, err);
}

dt_status dt_report_relayed(int fd, const dt_strbuf *text, dt_error *err)
{
    dt_strbuf shown;
    dt_status st = DT_OK;
    dt_term term;

    dt_strbuf_init(&shown);
    dt_term_init(&term, fd);
    if (isatty(fd))
        dt_term_add_whole(&shown, &term, text->data);
    else
        dt_strbuf_add(&shown, text->data, text->length);
    if (dt_file_write_all(fd, shown.data, shown.length, NULL) != DT_OK)
        st = DT_FAIL(err, DT_ERR_IO, "cannot write to std%s: %s",
                     fd == STDOUT_FILENO ? "out" : "err", strerror(errno));
    dt_strbuf_release(&shown);
    return st;
}

dt_status dt_report_json(json_t *object, dt_error *err)
{
    dt_strbuf text, whole;
    dt_status st;

    if (object == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory");
    dt_strbuf_init(&text);
    dt_strbuf_init(&whole);
    if (dt_term_is_seen())
        dt_json_write_pretty(&whole, object);
    else
        dt_json_write(&whole, object);
    dt_json_shorten(&text, whole.data);
    dt_strbuf_release(&whole);
    if (text.length == 0 || text.data[text.length - 1] != '\n')
        dt_strbuf_add_char(&text, '\n');
    st = dt_report_text(&text, err);
    dt_strbuf_release(&text);
    json_decref(object);
    return st;
}

/* --- CSV */

static void add_joined(dt_strbuf *out, const json_t *array)
{
    size_t i;
    json_t *item;

    json_array_foreach(array, i, item) {
        if (i > 0)
            dt_strbuf_add_char(out, ' ');
        if (json_is_string(item))
            dt_strbuf_add_str(out, json_string_value(item));
        else
            dt_json_write(out, item);
    }
}

static void add_cell(dt_strbuf *out, const json_t *value)
{
    char number[DT_FORMAT_SIZE];
    dt_strbuf text;

    if (value == NULL || json_is_null(value))
        return;
    dt_strbuf_init(&text);
    if (json_is_string(value))
        dt_csv_add_text(out, json_string_value(value));
    else if (json_is_real(value))
        dt_strbuf_add_str(out, dt_format_exact(number, sizeof(number), json_real_value(value)));
    else if (json_is_integer(value))
        dt_strbuf_add_fmt(out, "%lld", (long long)json_integer_value(value));
    else if (json_is_boolean(value))
        dt_strbuf_add_str(out, json_is_true(value) ? "true" : "false");
    else if (json_is_array(value))
        add_joined(&text, value);
    else
        dt_json_write(&text, value);
    dt_csv_add_text(out, text.data);
    dt_strbuf_release(&text);
}

dt_status dt_report_csv(const json_t *head, const json_t *rows, dt_error *err)
{
    const char *key;
    json_t *value, *row;
    dt_strbuf text;
    dt_status st;
    size_t i;

    dt_strbuf_init(&text);
    json_object_foreach((json_t *)head, key, value) {
        if (text.length > 0)
            dt_strbuf_add_char(&text, ',');
        dt_csv_add_text(&text, key);
    }
    dt_strbuf_add_char(&text, '\n');
    json_array_foreach(rows, i, row) {
        bool first = true;

        json_object_foreach((json_t *)head, key, value) {
            if (!first)
                dt_strbuf_add_char(&text, ',');
            first = false;
            add_cell(&text, json_object_get(row, key));
        }
        dt_strbuf_add_char(&text, '\n');
    }
    st = dt_report_data(&text, err);
    dt_strbuf_release(&text);
    return st;
}

static void say(const char *fmt, va_list args)
{
    dt_strbuf text, shown;
    va_list again;
    int length;

    dt_strbuf_init(&text);
    dt_strbuf_init(&shown);
    va_copy(again, args);
    length = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    dt_strbuf_add_fmt(&text, "%*s", length, ""); /* room */
    vsnprintf(text.data, (size_t)length + 1, fmt, args);
    dt_display_add(&shown, text.data, text.length);
    dt_strbuf_add_char(&shown, '\n');
    (void)dt_file_write_all(STDERR_FILENO, shown.data, shown.length, NULL);
    dt_strbuf_release(&shown);
    dt_strbuf_release(&text);
}

void dt_report_say(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    say(fmt, args);
    va_end(args);
}

void dt_report_note(const dt_call *call, const char *fmt, ...)
{
    va_list args;

    if (call->json)
        return;
    va_start(args, fmt);
    say(fmt, args);
    va_end(args);
}

int dt_report_exit_code(dt_status status)
{
    switch (status) {
    case DT_OK:
        return DT_EXIT_GOOD;
    case DT_ERR_USAGE:
    case DT_ERR_RECIPE:
    case DT_ERR_NOT_FOUND: /* no such run, recipe or checkpoint: an error of the command line */
        return DT_EXIT_USAGE;
    case DT_ERR_PEER:
        return DT_EXIT_FAILED;
    default:
        return DT_EXIT_SYSTEM;
    }
}

void dt_report_problems(const dt_command *command, dt_problems *problems)
{
    dt_strbuf text, place;
    dt_term term;

    dt_term_init(&term, STDERR_FILENO);
    dt_strbuf_init(&text);
    dt_strbuf_init(&place);
    for (size_t i = 0; i < problems->count; i++) {
        dt_problem *problem = &problems->items[i];

        if (problem->printed)
            continue;
        problem->printed = true;
        dt_term_add(&text, &term, problem->warning ? DT_STYLE_WARN : DT_STYLE_BAD, "dtrun %s:%s",
                    command->name, problem->warning ? " warning:" : "");
        dt_term_add(&text, &term, DT_STYLE_PLAIN, " %s\n", problem->message);
        dt_strbuf_reset(&place);
        dt_problem_write_place(&place, problem);
        dt_term_add(&text, &term, DT_STYLE_PLAIN, "%s", place.data);
    }
    (void)dt_file_write_all(STDERR_FILENO, text.data, text.length, NULL);
    dt_strbuf_release(&place);
    dt_strbuf_release(&text);
}

/* {"version", "error": {"status", "message", "problems"}} */
static void print_error(const dt_error *error, const dt_problems *problems)
{
    json_t *object = dt_report_object();
    json_t *reported = json_pack("{s:s, s:o}", "status", dt_status_name(error->code), "message",
                                 dt_json_text(error->message));

    if (problems != NULL)
        json_object_set_new(reported, "problems", dt_problems_to_json(problems));
    json_object_set_new(object, "error", reported);
    (void)dt_report_json(object, NULL);
}

int dt_report_bad_recipe(const dt_call *call, const dt_error *error)
{
    dt_report_problems(call->args->command, call->problems);
    if (call->json)
        print_error(error, call->problems);
    return dt_report_exit_code(error->code);
}

int dt_report_error(const dt_command *command, bool json, const dt_error *error)
{
    const char *name = command != NULL ? command->name : "", *blank = command != NULL ? " " : "";
    dt_strbuf text;
    dt_term term;

    dt_term_init(&term, STDERR_FILENO);
    dt_strbuf_init(&text);
    dt_term_add(&text, &term, DT_STYLE_BAD, "dtrun%s%s:", blank, name);
    dt_strbuf_add_char(&text, ' ');
    dt_term_add(&text, &term, DT_STYLE_PLAIN, "%s\n", error->message);
    if (error->code == DT_ERR_USAGE)
        dt_term_add(&text, &term, DT_STYLE_DIM, "see 'dtrun help%s%s'\n", blank, name);
    (void)dt_file_write_all(STDERR_FILENO, text.data, text.length, NULL);
    dt_strbuf_release(&text);
    if (json)
        print_error(error, NULL);
    return dt_report_exit_code(error->code);
}

/* Output: a file is written under a temporary name and renamed once it is complete. */

#define PASS_BYTES ((size_t)256 << 10)

static dt_status check_place(const char *path, bool replace, dt_error *err)
{
    struct stat info;

    if (lstat(path, &info) != 0)
        return DT_OK; /* other problems are reported when the file is created */
    if (!S_ISREG(info.st_mode))
        return DT_FAIL(err, DT_ERR_USAGE, "'%s' is not a regular file", path);
    if (!replace)
        return DT_FAIL(err, DT_ERR_USAGE, "'%s' exists; use --force to replace it", path);
    return DT_OK;
}

static mode_t usual_mode(void)
{
    mode_t mask = umask(0);

    umask(mask);
    return 0666 & ~mask;
}

dt_status dt_output_open(dt_output *out, const char *path, bool replace, dt_arena *arena,
                         dt_error *err)
{
    char *temporary = NULL;
    dt_status st = DT_OK;

    *out = (dt_output){.path = path, .fd = -1, .replace = replace};
    dt_strbuf_init(&out->text);
    if (path == NULL)
        return DT_OK;
    DT_TRY(check_place(path, replace, err));
    temporary = dt_arena_printf(arena, "%s.XXXXXX", path);
    out->fd = mkostemp(temporary, O_CLOEXEC);
    if (out->fd < 0)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
    out->temporary = temporary;
    (void)fchmod(out->fd, usual_mode()); /* mkostemp makes it readable for its owner only */
out:
    if (st != DT_OK)
        (void)dt_output_close(out, st, NULL);
    return st;
}

static dt_status write_pending(dt_output *out, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;

    if (out->path == NULL)
        DT_TRY(dt_report_data(&out->text, err));
    else if (dt_file_write_all(out->fd, out->text.data, out->text.length, &problem) != DT_OK)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", out->path, strerror(errno));
    out->passed += out->text.length;
    dt_strbuf_reset(&out->text);
out:
    return st;
}

dt_status dt_output_pass(dt_output *out, dt_error *err)
{
    return out->text.length >= PASS_BYTES ? write_pending(out, err) : DT_OK;
}

size_t dt_output_place(const dt_output *out)
{
    return out->passed + out->text.length;
}

static dt_status name_file(dt_output *out, dt_error *err)
{
    dt_status st = DT_OK;
    int fd = out->fd;

    if (fsync(fd) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", out->path, strerror(errno));
    out->fd = -1;
    if (close(fd) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", out->path, strerror(errno));
    DT_TRY(dt_file_name(out->temporary, out->path, out->replace, err));
    out->temporary = NULL;
out:
    return st;
}

dt_status dt_output_close(dt_output *out, dt_status st, dt_error *err)
{
    if (st == DT_OK)
        st = write_pending(out, err);
    if (st == DT_OK && out->path != NULL)
        st = name_file(out, err);
    if (out->fd >= 0)
        close(out->fd);
    if (out->temporary != NULL)
        (void)unlink(out->temporary);
    dt_strbuf_release(&out->text);
    out->fd = -1;
    out->temporary = NULL;
    return st;
}

dt_status dt_output_check(const char *path, bool replace, dt_arena *arena, dt_error *err)
{
    dt_output output;
    dt_status st = dt_output_open(&output, path, replace, arena, err);

    if (st == DT_OK)
        (void)dt_output_close(&output, DT_ERR_USAGE, NULL); /* discards the file */
    return st;
}

dt_status dt_output_write_asked(const dt_strbuf *text, const dt_call *call, dt_error *err)
{
    const char *path = dt_arguments_get(call->args, "output")->text;
    dt_output output;
    dt_status st = DT_OK;

    if (path == NULL)
        return DT_OK;
    DT_TRY(dt_output_open(&output, path, dt_arguments_flag(call->args, "force"), call->arena, err));
    dt_strbuf_add(&output.text, text->data, text->length);
    st = dt_output_close(&output, DT_OK, err);
out:
    return st;
}
