/* scan: finds the valid lines of a journal file.
 *
 * A damaged line, wherever it is, costs only itself (and its neighbour, if the newline was damaged): it is
 * set aside, and the scan continues at the next valid line. Blocks of zeros, which a power loss may leave, are
 * skipped like holes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner/agent/journal/journal.h"
#include "runner/channel/protocol.h"

#include "base/memory.h"

#define READ_BYTES  ((size_t)65536)
#define LINE_BYTES  ((size_t)4 << 20) /* a longer line is not of the agent */
#define ASIDE_BYTES ((off_t)1 << 20)

void dt_journal_mark_add(dt_journal *journal, int64_t sequence, int64_t offset)
{
    if (journal->mark_count == journal->mark_capacity) {
        journal->mark_capacity = journal->mark_capacity != 0 ? 2 * journal->mark_capacity : 16;
        journal->marks =
            dt_realloc(journal->marks, journal->mark_capacity, sizeof(journal->marks[0]));
    }
    journal->marks[journal->mark_count++] = (dt_journal_mark){sequence, offset};
}

void dt_journal_set_aside(dt_journal *journal, const char *bytes, size_t length)
{
    dt_strbuf path;
    int fd;

    journal->damaged_lines++;
    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s.damaged", journal->path);
    fd = open(path.data, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    dt_strbuf_release(&path);
    if (fd < 0)
        return;
    if (lseek(fd, 0, SEEK_END) < ASIDE_BYTES && write(fd, bytes, length) == (ssize_t)length &&
        write(fd, "\n", 1) < 0)
        errno = 0; /* for people only: what does not fit is left out */
    close(fd);
}

/* --- the scan */

typedef struct scan {
    dt_journal *journal;
    int64_t at;       /* file offset of buffer.data[0] */
    dt_strbuf buffer; /* bytes that were read but not scanned */
    int64_t last;     /* number of the last valid line, -1: none */
    dt_journal_fn *seen;
    void *context;
} scan;

static void take_line(scan *s, const char *line, size_t length)
{
    dt_journal *journal = s->journal;
    int64_t sequence = dt_journal_line_sequence(line, length);
    json_t *event = NULL;

    if (sequence <= s->last || dt_json_parse(&event, line, length, "journal", NULL) != DT_OK) {
        dt_journal_set_aside(journal, line, length);
        return;
    }
    if (sequence % DT_JOURNAL_MARK_EVERY == 0 || sequence != s->last + 1 ||
        s->at == journal->kept_bytes)
        dt_journal_mark_add(journal, sequence, s->at);
    s->last = sequence;
    journal->next_sequence = sequence + 1;
    s->seen(s->context, event);
    json_decref(event);
}

/* Skips the hole that trim made, or zeros where nothing was written. */
static void skip_hole(scan *s)
{
    const dt_journal *journal = s->journal;
    off_t data;

    if (journal->kept_bytes > 0 && s->at >= journal->head_bytes && s->at < journal->kept_bytes) {
        s->at = journal->kept_bytes;
        s->last = s->last < journal->kept_sequence - 1 ? journal->kept_sequence - 1 : s->last;
        dt_strbuf_reset(&s->buffer);
        return;
    }
    if (s->buffer.length > 0)
        return;
    data = lseek(journal->fd, (off_t)s->at, SEEK_DATA);
    if (data > s->at)
        s->at = data;
}

/* Reads more of the file; returns 0 at the end. */
static ssize_t fill(scan *s)
{
    char bytes[READ_BYTES];
    size_t zeros = 0;
    ssize_t got;

    do
        got = pread(s->journal->fd, bytes, sizeof(bytes), s->at + (int64_t)s->buffer.length);
    while (got < 0 && errno == EINTR);
    while (s->buffer.length == 0 && got > 0 && zeros < (size_t)got && bytes[zeros] == '\0')
        zeros++;
    if (zeros > 0) {
        s->journal->damaged_lines++;
        s->at += (int64_t)zeros;
    }
    if (got > 0)
        dt_strbuf_add(&s->buffer, bytes + zeros, (size_t)got - zeros);
    return got;
}

static void drop_front(scan *s, size_t bytes)
{
    dt_strbuf_remove_front(&s->buffer, bytes);
    s->at += (int64_t)bytes;
}

/* Returns how much of the buffer may be scanned: it must not cross the end of the head before a
 * hole. */
static size_t readable(const scan *s)
{
    const dt_journal *journal = s->journal;

    if (journal->kept_bytes > 0 && s->at < journal->head_bytes &&
        s->at + (int64_t)s->buffer.length > journal->head_bytes)
        return (size_t)(journal->head_bytes - s->at);
    return s->buffer.length;
}

dt_status dt_journal_scan(dt_journal *journal, dt_journal_fn *seen, void *context, dt_error *err)
{
    scan s = {.journal = journal, .last = -1, .seen = seen, .context = context};
    dt_status st = DT_OK;
    ssize_t got = 1;

    dt_strbuf_init(&s.buffer);
    while (got > 0) {
        const char *newline;
        size_t most;

        skip_hole(&s);
        most = readable(&s);
        newline = memchr(s.buffer.data, '\n', most);
        /* the last line of the head has no newline */
        if (newline == NULL && most < s.buffer.length) {
            dt_journal_set_aside(journal, s.buffer.data, most);
            drop_front(&s, most);
        } else if (newline != NULL) {
            size_t length = (size_t)(newline - s.buffer.data);

            take_line(&s, s.buffer.data, length);
            drop_front(&s, length + 1);
            journal->whole_bytes = s.at;
        } else if (s.buffer.length > LINE_BYTES) {
            dt_journal_set_aside(journal, s.buffer.data, 256);
            drop_front(&s, s.buffer.length);
        } else {
            got = fill(&s);
        }
    }
    if (got < 0)
        DT_THROW(err, DT_ERR_IO, "cannot read the journal '%s': %s", journal->path,
                 strerror(errno));
    if (s.buffer.length > 0) /* an incomplete line, or one with a damaged newline */
        dt_journal_set_aside(journal, s.buffer.data, s.buffer.length);
    if (s.last >= journal->next_sequence)
        journal->next_sequence = s.last + 1; /* everything after the hole is lost */
    journal->opened_again = s.at + (int64_t)s.buffer.length > 0;
out:
    dt_strbuf_release(&s.buffer);
    return st;
}
