#include "runner/agent/program/program_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/display.h"
#include "base/memory.h"
#include "base/strbuf.h"

#define TRACEBACK  "Traceback (most recent call last):"
#define IGNORED    "Exception ignored in"
#define FATAL      "Fatal Python error: "
#define FRAME      "  File \""
#define LINE_MOST  400
#define LINES_MOST 300 /* before the end */

void dt_last_error_init(dt_last_error *out)
{
    *out = (dt_last_error){.text = dt_malloc(DT_LAST_ERROR_BYTES)};
}

void dt_last_error_release(dt_last_error *last)
{
    free(last->text);
    *last = (dt_last_error){0};
}

void dt_last_error_add(dt_last_error *last, const char *bytes, size_t length)
{
    while (length > 0) {
        size_t room = DT_LAST_ERROR_BYTES - last->at, part = length < room ? length : room;

        memcpy(last->text + last->at, bytes, part);
        last->at = (last->at + part) % DT_LAST_ERROR_BYTES;
        last->length += part;
        if (last->length > DT_LAST_ERROR_BYTES)
            last->length = DT_LAST_ERROR_BYTES;
        bytes += part;
        length -= part;
    }
}

/* Copies the ring, without NUL bytes, as text. */
static char *copy_text(const dt_last_error *last, dt_arena *arena)
{
    char *text = dt_arena_alloc_array(arena, last->length + 1, 1);
    size_t from = (last->at + DT_LAST_ERROR_BYTES - last->length) % DT_LAST_ERROR_BYTES, count = 0;

    for (size_t i = 0; i < last->length; i++) {
        char c = last->text[(from + i) % DT_LAST_ERROR_BYTES];

        if (c != '\0')
            text[count++] = c == '\r' ? '\n' : c;
    }
    text[count] = '\0';
    return text;
}

/* Returns where the lines to look at begin. */
static char *last_lines(char *text)
{
    char *at = text + strlen(text);

    for (int lines = 0; at > text && lines <= LINES_MOST; at--)
        lines += at[-1] == '\n';
    return at > text ? at + 1 : at;
}

/* Returns the line after PyTorch's "[rank1]: " or "[rank1]:". */
static char *after_prefix(char *line)
{
    char *end = strncmp(line, "[rank", 5) == 0 ? strstr(line, "]:") : NULL;

    if (end == NULL)
        return line;
    return end[2] == ' ' ? end + 3 : end + 2;
}

static bool has_one_of(const char *text, const char *const *parts)
{
    for (; *parts != NULL; parts++)
        if (strstr(text, *parts) != NULL)
            return true;
    return false;
}

/* An error that the death or silence of another rank causes. */
static bool is_secondary(const char *line)
{
    static const char *const parts[] = {"Connection closed by peer",
                                        "Connection reset by peer",
                                        "Broken pipe",
                                        "remote process exited",
                                        "collective operation timeout",
                                        "Timed out waiting",
                                        "Timed out after",
                                        "timed out while waiting",
                                        "wait timeout after",
                                        "Socket Timeout",
                                        "client socket has timed out",
                                        "Application timeout caused pair closure",
                                        "connectFullMesh failed",
                                        "failed to recv, got 0 bytes",
                                        "RendezvousConnectionError",
                                        "RendezvousClosedError",
                                        "RendezvousTimeoutError",
                                        "NCCL communicator was aborted",
                                        "ncclRemoteError",
                                        "Some of the ranks have failed",
                                        NULL};

    return has_one_of(line, parts);
}

/* The report of a process that waited for a failed one. */
static bool is_report(const char *line)
{
    static const char *const parts[] = {"ChildFailedError", "SignalException", "KeyboardInterrupt",
                                        "CalledProcessError", NULL};

    return has_one_of(line, parts);
}

static bool is_blank(const char *line)
{
    return line[strspn(line, " \t=-*~^")] == '\0';
}

/* True for a line that says nothing of an error: a warning of Python ("file.py:12: UserWarning: ..."), and lines of
 * logs with their level first, as PyTorch, NCCL, glog and Python's logging write them. */
static bool is_warning(const char *line)
{
    static const char *const heads[] = {"[W",    "[I",      "WARNING",  "INFO",      "DEBUG",
                                        "WARN ", "Warning", "warning:", "NCCL INFO", NULL};
    const char *word = strstr(line, "Warning: ");

    for (size_t i = 0; heads[i] != NULL; i++)
        if (strncmp(line, heads[i], strlen(heads[i])) == 0)
            return true;
    if (strchr("WI", line[0]) != NULL && line[0] != '\0' && strspn(line + 1, "0123456789") == 4 &&
        line[5] == ' ')
        return true; /* W1127 20:04:10.123 ... */
    while (word != NULL && word > line && word[-1] != ' ')
        word--;
    return word != NULL && word >= line + 2 && word[-1] == ' ' && word[-2] == ':';
}

typedef struct findings {
    const char *own, *secondary, *line, *fatal; /* the last of each; NULL: none */
    const char *warning;                        /* the last one, if there is nothing else */
    const char *place;                          /* of `fatal`: the innermost frame; NULL: unknown */
} findings;

typedef enum inside {
    OUTSIDE,
    IN_TRACEBACK, /* after the head of a traceback, before its exception */
    IN_IGNORED,   /* the same of an exception that Python ignores at its end */
    IN_FATAL      /* after the head that faulthandler writes, before the frames */
} inside;

/* Takes a line that ends a traceback. */
static void take_exception(findings *out, const char *line)
{
    if (is_secondary(line))
        out->secondary = line;
    else if (!is_report(line))
        out->own = line;
}

/* Reads the lines; they are cut in place. */
static void read_lines(findings *out, char *text)
{
    bool ignored = false, after_warning = false;
    inside where = OUTSIDE;

    for (char *line = text, *next; line != NULL && *line != '\0'; line = next) {
        bool is_frame, warns;

        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        line = after_prefix(line);
        is_frame = line[0] == ' ' || line[0] == '\0';
        warns = is_warning(line) || (after_warning && line[0] == ' '); /* with its source line */
        after_warning = warns && line[0] != ' ';
        if (strncmp(line, FATAL, strlen(FATAL)) == 0) {
            out->fatal = line;
            out->place = NULL;
            where = IN_FATAL;
        } else if (where == IN_FATAL) {
            if (strncmp(line, FRAME, strlen(FRAME)) == 0 && out->place == NULL)
                out->place = line;
            if (strncmp(line, "Thread ", 7) == 0 && out->place != NULL)
                where = OUTSIDE; /* the threads other than the one that failed */
        } else if (strstr(line, TRACEBACK) != NULL) {
            where = ignored ? IN_IGNORED : IN_TRACEBACK;
        } else if (where != OUTSIDE && !is_frame) {
            if (where == IN_TRACEBACK)
                take_exception(out, line);
            ignored = where == IN_IGNORED ? false : ignored;
            warns = warns || where == IN_IGNORED;
            where = OUTSIDE;
        }
        if (strncmp(line, IGNORED, strlen(IGNORED)) == 0)
            ignored = true;
        if (!is_blank(line) && !warns && !ignored)
            out->line = line;
        else if (!is_blank(line) && line[0] != '[')
            out->warning = line;
    }
}

/* Makes a line of valid UTF-8 without control characters. */
static const char *clean(const char *line, dt_arena *arena)
{
    const char *result;
    dt_strbuf out;

    dt_strbuf_init(&out);
    dt_utf8_add_valid(&out, line, strnlen(line, LINE_MOST));
    for (size_t i = 0; i < out.length; i++)
        if ((unsigned char)out.data[i] < 0x20 || out.data[i] == 0x7f)
            out.data[i] = ' ';
    result = dt_arena_strdup(arena, out.length > 0 ? out.data : "");
    dt_strbuf_release(&out);
    return result;
}

const char *dt_last_error_find(bool *secondary, const dt_last_error *last, dt_arena *arena)
{
    findings found = {0};

    *secondary = false;
    if (last->text == NULL)
        return NULL;
    read_lines(&found, last_lines(copy_text(last, arena)));
    if (found.fatal != NULL) /* the process ended of it */
        return clean(found.place != NULL
                         ? dt_arena_printf(arena, "%s" DT_LAST_ERROR_AT "%s", found.fatal,
                                           found.place + strspn(found.place, " "))
                         : found.fatal,
                     arena);
    if (found.own != NULL)
        return clean(found.own, arena);
    if (found.line == NULL)
        found.line = found.warning;
    *secondary = found.secondary != NULL || (found.line != NULL && is_secondary(found.line));
    if (found.secondary != NULL)
        return clean(found.secondary, arena);
    return found.line != NULL ? clean(found.line, arena) : NULL;
}

bool dt_last_error_is_fatal(const char *text)
{
    return strncmp(text, FATAL, strlen(FATAL)) == 0;
}
